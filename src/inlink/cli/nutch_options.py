"""Options that the commands of ``inlink nutch`` share: Nutch's flags and properties, and inlink's own."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

__all__ = ["Command", "Group", "database", "properties", "read_settings", "switched_off", "url_option"]

# Nutch's flags that take several values.
_SEVERAL = ("--segment", "-segment", "-segmentDir", "--segment-dir")
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
    """Commands that can also be called by Nutch's names."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command by its name, or by Nutch's name for it."""
        return super().get_command(ctx, _ALIASES.get(cmd_name, cmd_name))


database = click.option(
    "--db",
    "-webgraphdb",
    "db",
    required=True,
    type=click.Path(path_type=Path),
    help="The web graph's folder.",
)

url_option = click.option("--url", "-url", "url", required=True, help="The URL, as in the web graph.")


def properties(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add Nutch's properties to a command. Options take precedence over -D, and -D over files."""
    for option in (
        click.option("-D", "defined", metavar="NAME=VALUE", multiple=True, help="A property of Nutch."),
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


def read_settings(confs: tuple[Path, ...], defined: tuple[str, ...]) -> dict[str, bool | int | float]:
    """Return the properties that are set by files and by -D."""
    from inlink.nutch.properties import read_properties

    return read_properties(confs, defined)


def switched_off(settings: dict[str, bool | int | float], flags: dict[str, bool]) -> None:
    """Set the properties whose flags are given to false."""
    settings.update({name: False for name, flag in flags.items() if flag})
