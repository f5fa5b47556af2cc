"""Options that several commands share."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from inlink.cli.remote import FolderOrUrl, refuse_url

if TYPE_CHECKING:
    from inlink.base.declare import Parameter


class Output(click.Path):
    """The type of an option that names a file or folder to write. Its parent folder must exist.

    Parameters
    ----------
    instead : str
        The advice in the error message for a URL.
    dash : bool
        Whether ``-`` is allowed, which means standard output.
    """

    def __init__(
        self, instead: str = "the output must be on this machine", *, dash: bool = False, **more: Any
    ) -> None:
        super().__init__(path_type=Path, **more)
        self._instead, self._dash = instead, dash

    def convert(self, value: Any, param: click.Parameter | None, context: click.Context | None) -> Any:
        """Return the path.

        Raises
        ------
        inlink.errors.OutputError
            If the parent folder does not exist. Its name may be misspelt, so it is not made.
        inlink.errors.ParameterError
            If the value is a URL.
        """
        refuse_url(value, self._instead)
        if str(value) == "-" and not self._dash:
            self.fail("this output cannot go to standard output: name a file or folder", param, context)
        path = cast(Path, super().convert(value, param, context))
        if not path.parent.is_dir():
            from inlink.errors import OutputError

            raise OutputError(
                f"{path}: the folder {path.parent} does not exist. Make it first, or correct the name."
            )
        return path


def number_option(help: str) -> Callable[..., Any]:
    """The option ``-n``: a number of rows, 10 by default, as ``count``."""
    return click.option(
        "-n", "--number", "count", type=click.IntRange(0), default=10, show_default=True, help=help
    )


graph_argument = click.argument(
    "graph",
    type=FolderOrUrl(
        "this command reads a folder: run it on the machine where the crawl's folder is, also while the server runs"
    ),
)

crawl_argument = click.argument("folder", metavar="DIR|URL", type=FolderOrUrl())

folder_argument = click.argument(
    "folder",
    metavar="DIR",
    type=FolderOrUrl("this command works on a crawl's folder: run it on the machine where the folder is"),
)

as_of_option = click.option(
    "--as-of",
    "moment",
    metavar="TIME|EVENT",
    help="Take the crawl as it was at a time (2026-11-22T16:00:00 in UTC, or Unix seconds) or at an event (#1200).",
)

as_of_options = click.option(
    "--as-of",
    "moments",
    multiple=True,
    metavar="TIME|EVENT",
    help="Compare crawl A as it was at this moment with A now. Twice: with A at the second moment.",
)

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")

folder_output = click.option(
    "--output",
    "-o",
    required=True,
    type=Output(),
    help="The folder to build. A graph in this folder is replaced when the new graph is complete.",
)


compress_option = click.option(
    "--compress", is_flag=True, help="Compress the rows of links: less disk, and less memory for PageRank."
)


def declared_option(row: "Parameter") -> click.Option:
    """Return the option that a parameter declares. A flag ``--no-…``, ``--drop-…`` or ``--un…`` means False."""
    flag = row.option or f"--{row.name.replace('_', '-')}"
    # None stands for an option that is not given, so the function that takes it has the default.
    default = row.none if row.default is None and row.none != "the default" else row.default
    if isinstance(default, bool):
        default = None
    shown = f"{default:g}".replace("e-0", "e-") if isinstance(default, float) else default
    text = row.help if default is None else f"{row.help} Default: {shown}."
    if "/" in flag:
        return click.Option([flag, row.name], default=None, help=text)
    if row.kind is bool:
        value = not flag.startswith(("--no-", "--drop-", "--un"))
        return click.Option(
            [flag, row.name], is_flag=True, flag_value=value, type=bool, default=None, help=row.help
        )
    if row.kind is tuple:
        return click.Option([flag, row.name], metavar="NAME[,NAME…]", callback=_split, help=text)
    kind = click.Choice(row.choices) if row.choices else row.kind
    return click.Option([flag, row.name], type=kind, help=text)


def declared_options(rows: "Mapping[str, Parameter]") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that adds the options that parameters declare to a command."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        # As click's own decorators do.
        command.__click_params__ = [  # type: ignore[attr-defined]
            *getattr(command, "__click_params__", ()),
            *map(declared_option, reversed(list(rows.values()))),
        ]
        return command

    return add


def _split(_: click.Context, __: click.Parameter, value: str | None) -> list[str] | None:
    return None if value is None else value.split(",")


set_option = click.option(
    "--set",
    "changed_settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="Change a setting of the crawl, such as politeness.delay=2; docs/crawling.md lists them.",
)


_KINDS = {int: "integer", float: "number", str: "name", tuple: "text"}


class _Value(click.ParamType):  # type: ignore[type-arg]  # generic in newer versions of click only
    """A setting's value, read from text by the table of settings."""

    def __init__(self, row: "Parameter") -> None:
        self.row, self.name = row, _KINDS[row.kind]

    def convert(self, value: Any, param: click.Parameter | None, context: click.Context | None) -> Any:
        """Return the value that the text stands for."""
        return self.row.parse(value, self.row.option) if isinstance(value, str) else value


def setting_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for a crawl's settings to a command: those in the table of settings, and ``--set``."""
    from inlink.frontier.settings import TABLE

    command = set_option(command)
    for name, row in reversed(TABLE.items()):
        parameter, text = name.replace(".", "_"), row.help.replace("`", "")
        if not row.option:
            continue
        if row.kind is bool:
            flag = f"{row.option}/--no-{row.option.removeprefix('--')}"
            option = click.option(flag, parameter, default=None, help=text)
        else:
            several = row.kind is tuple
            option = click.option(row.option, parameter, type=_Value(row), multiple=several, help=text)
        command = option(command)
    return command


def settings_given(options: dict[str, Any]) -> dict[str, Any]:
    """Remove the settings from a command's options, and return them as arguments of :class:`inlink.Crawl`.

    Raises
    ------
    inlink.errors.ParameterError
        If ``--set`` does not name a setting, or its value is outside its range.
    """
    changes = options.pop("changed_settings", ())
    if not options and not changes:
        # A look-up without --set need not wait for the import of the table.
        return {}
    from inlink.crawl.settings import from_name, lay_over
    from inlink.errors import ParameterError
    from inlink.frontier.settings import TABLE

    found: dict[str, Any] = {}
    for name, row in TABLE.items():
        value = options.pop(name.replace(".", "_"), None) if row.option else None
        if value is None or value == ():
            continue
        if row.kind is tuple:
            value = tuple(part for given in value for part in given)
        group, dot, field = name.partition(".")
        lay_over(found, group, {field: value} if dot else value)
    for change in changes:
        name, equals, text = change.partition("=")
        if not equals:
            raise ParameterError(f"--set takes NAME=VALUE, such as politeness.delay=2; got {change!r}")
        lay_over(found, *from_name(name.strip(), text.strip(), f"--set {name.strip()}"))
    return found
