"""Options that the commands of ``inlink nutch`` share: Nutch's flags and properties, and inlink's own."""

from collections.abc import Callable, Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import click

from inlink.cli.options import Output
from inlink.cli.sections import Uncut

__all__ = [
    "Command",
    "Group",
    "database",
    "given",
    "properties",
    "read_settings",
    "switched_off",
    "url_option",
    "url_rules",
]

# Nutch's flags that take several values.
_SEVERAL = ("--segment", "-segment", "-segmentDir", "--segment-dir")
# Key of the names in the command line, as a list, in click's context.
_GIVEN = "inlink.nutch.given"
_ALIASES = {"scoreupdater": "scoreupdate", "nodedumper": "nodedump", "linkdumper": "linkdump"}


class Command(click.Command):
    """A command that reads its arguments as Nutch does.

    ``-segment A B C`` means ``-segment A -segment B -segment C``. A long name after a single dash is one name, and not
    several short options. Without arguments the command prints its help.
    """

    def __init__(self, name: str | None, **attributes: Any) -> None:
        super().__init__(name, **attributes | {"no_args_is_help": True})

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Repeat options of several values before each value, and refuse unknown names as a whole."""
        known = {
            name: param.nargs if isinstance(param, click.Option) and not param.is_flag else 0
            for param in self.get_params(ctx)
            for name in param.opts
        }
        spread: list[str] = []
        option, values = "", 0
        for place, arg in enumerate(args):
            if arg == "--":
                spread += args[place:]
                break
            if values:
                values -= 1
            elif arg.startswith("-") and len(arg) > 1:
                name, equals, _ = arg.partition("=")
                if not arg.startswith(("--", "-D")) and name not in known:
                    raise click.NoSuchOption(name, possibilities=_close(name, known), ctx=ctx)
                option = arg if arg in _SEVERAL else ""
                values = 0 if equals else known.get(name, 0)
            elif option and spread[-1] != option:
                spread.append(option)
            spread.append(arg)
        ctx.meta[_GIVEN] = [arg.partition("=")[0] for arg in spread]
        return super().parse_args(ctx, spread)


def _close(name: str, known: Iterable[str]) -> list[str]:
    """Return the options that are similar to a misspelt name."""
    return get_close_matches(name, known, n=3, cutoff=0.75)


def given(name: str) -> bool:
    """Return whether the running command was given an option by this name."""
    return name in click.get_current_context().meta[_GIVEN]


_HELP = ["-h", "-help", "--help"]


class Group(Uncut):
    """Commands that can also be called by Nutch's names."""

    def __init__(self, name: str | None = None, **attributes: Any) -> None:
        super().__init__(name, **attributes)
        self.context_settings["help_option_names"] = _HELP

    def add_command(self, cmd: click.Command, name: str | None = None) -> None:
        """Add a command with Nutch's names for help, because click keeps the first names that it sees."""
        cmd.context_settings.setdefault("help_option_names", _HELP)
        super().add_command(cmd, name)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command by its name, or by Nutch's name for it."""
        return super().get_command(ctx, _ALIASES.get(cmd_name, cmd_name))


database = click.option(
    "--db",
    "-webgraphdb",
    "db",
    required=True,
    type=Output(),
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


def read_settings(confs: tuple[Path, ...], defined: tuple[str, ...]) -> dict[str, bool | int | float | str]:
    """Return the properties that are set by files and by -D."""
    from inlink.nutch.properties import read_properties

    return read_properties(confs, defined)


def url_rules(
    normalize: bool, filter: bool, conf_dir: Path | None, confs: tuple[Path, ...], settings: dict[str, Any]
) -> Any:
    """Return the rules for URLs that -normalize and -filter ask for; None if neither is given."""
    from inlink.nutch.urlrules import NutchUrlRules

    folder = conf_dir or (confs[-1].parent if confs else None)
    chosen: dict[str, Path | None] = {}
    for asked, option, setting, name in (
        (normalize, "normalize", "urlnormalizer.regex.file", "regex-normalize.xml"),
        (filter, "filter", "urlfilter.regex.file", "regex-urlfilter.txt"),
    ):
        path = Path(str(settings.get(setting, name)))
        if asked and folder is None and not path.is_absolute():
            raise click.UsageError(
                f"-{option} reads {path}: name Nutch's configuration folder with --conf-dir or NUTCH_CONF_DIR"
            )
        chosen[option] = (folder or Path()) / path if asked else None
    return NutchUrlRules(**chosen) if normalize or filter else None


def switched_off(settings: dict[str, bool | int | float | str], flags: dict[str, bool]) -> None:
    """Set the properties whose flags are given to false."""
    settings.update({name: False for name, flag in flags.items() if flag})
