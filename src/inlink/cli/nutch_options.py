"""Options that the commands of ``inlink nutch`` share: Nutch's flags and properties, and inlink's own."""

from collections.abc import Callable
from difflib import get_close_matches
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from inlink.cli.options import Output
from inlink.cli.sections import Uncut

if TYPE_CHECKING:
    from inlink.nutch.urlrules import NutchUrlRules

__all__ = [
    "Command",
    "Group",
    "database",
    "given",
    "properties",
    "switch",
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
                    raise click.NoSuchOption(
                        name, possibilities=get_close_matches(name, known, cutoff=0.75), ctx=ctx
                    )
                option = arg if arg in _SEVERAL else ""
                values = 0 if equals else known.get(name, 0)
            elif option and spread[-1] != option:
                spread.append(option)
            spread.append(arg)
        ctx.meta[_GIVEN] = [arg.partition("=")[0] for arg in spread]
        return super().parse_args(ctx, spread)


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


def properties(**named: tuple[str, Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add Nutch's properties to a command. Options take precedence over -D, and -D over files.

    Parameters
    ----------
    **named : (str, object)
        For an option of the command, the property that it stands for, and the value if neither is given.

    Returns
    -------
    callable
        A decorator. The command gets the properties that are set as ``settings``.
    """

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def run(confs: tuple[Path, ...], defined: tuple[str, ...], **options: Any) -> Any:
            from inlink.nutch.properties import read_properties

            settings = read_properties(confs, defined)
            for option, (name, default) in named.items():
                if options[option] is None:
                    options[option] = settings.get(name, default)
            return command(settings=settings, **options)

        run = click.option("-D", "defined", metavar="NAME=VALUE", multiple=True, help="A property of Nutch.")(
            run
        )
        file = click.Path(path_type=Path)
        return click.option("--conf", "-conf", "confs", type=file, multiple=True, help="A nutch-site.xml.")(
            run
        )

    return add


def switch(flag: str, name: str, value: bool, help: str) -> Callable[..., Any]:
    """Return an option that sets a property to true or false. Without it, the option is None."""
    return click.option(flag, name, is_flag=True, flag_value=value, type=bool, default=None, help=help)


def url_rules(
    normalize: bool, filter: bool, conf_dir: Path | None, settings: dict[str, Any]
) -> "NutchUrlRules | None":
    """Return the rules for URLs that -normalize and -filter ask for; None if neither is given."""
    from inlink.nutch.urlrules import NutchUrlRules

    confs = click.get_current_context().params["confs"]
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
