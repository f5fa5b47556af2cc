"""What the commands of ``inlink nutch`` share: Nutch's flags and properties beside ours."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

__all__ = ["Command", "Group", "database", "properties", "read_settings", "switched_off", "url_option"]

_SEVERAL = ("--segment", "-segment", "-segmentDir", "--segment-dir")  # Nutch's take several values each
_ALIASES = {"scoreupdater": "scoreupdate", "nodedumper": "nodedump", "linkdumper": "linkdump"}


class Command(click.Command):
    """A command whose ``-segment A B C`` is ``-segment A -segment B -segment C``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Repeat the option before each of its values."""
        spread: list[str] = []
        option = ""
        for arg in args:
            if arg.startswith("-"):
                option = arg if arg in _SEVERAL else ""
            elif option and spread[-1] != option:
                spread.append(option)
            spread.append(arg)
        return super().parse_args(ctx, spread)


class Group(click.Group):
    """Commands that answer to Nutch's names too."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """A command by its name, or by Nutch's."""
        return super().get_command(ctx, _ALIASES.get(cmd_name, cmd_name))


database = click.option(
    "--db",
    "-webgraphdb",
    "db",
    required=True,
    type=click.Path(path_type=Path),
    help="The web graph's folder.",
)

url_option = click.option(
    "--url", "-url", "url", required=True, help="The URL, as it stands in the web graph."
)


def properties(command: Callable[..., Any]) -> Callable[..., Any]:
    """Nutch's properties; options of a command win over -D, and -D over the files."""
    for option in (
        click.option("-D", "defined", metavar="NAME=VALUE", multiple=True, help="A property of Nutch's."),
        click.option(
            "--conf",
            "-conf",
            "confs",
            type=click.Path(path_type=Path),
            multiple=True,
            help="A nutch-site.xml.",
        ),
    ):
        command = option(command)
    return command


def read_settings(given: dict[str, Any]) -> dict[str, bool | int | float]:
    """The properties that a command was given."""
    from inlink.sources.nutch_properties import read_properties

    return read_properties(given["confs"], given["defined"])


def switched_off(settings: dict[str, bool | int | float], flags: dict[str, bool]) -> None:
    """Set the properties whose flags are given to false."""
    settings.update({name: False for name, flag in flags.items() if flag})
