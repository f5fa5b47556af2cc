"""Groups of commands: their lists in ``--help``, and what all commands share: -q, -v, examples, and advice on names."""

import logging
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from difflib import get_close_matches
from functools import wraps
from importlib import import_module
from typing import Any

import click

from inlink.cli.examples import examples_of

QUIET, VERBOSE = "inlink.cli.quiet", "inlink.cli.verbose"
"""Keys of the context's notes: whether -q and -v stand anywhere on the line."""


def _keep(key: str) -> Callable[[click.Context, click.Parameter, bool], None]:
    def keep(context: click.Context, _: click.Parameter, value: bool) -> None:
        context.meta[key] = value or context.meta.get(key, False)

    return keep


SHARED = [
    click.Option(
        ["--quiet", "-q"], is_flag=True, expose_value=False, callback=_keep(QUIET), help="Show no progress."
    ),
    click.Option(
        ["--verbose", "-v"], is_flag=True, expose_value=False, callback=_keep(VERBOSE), help="Show the log."
    ),
]


def _completed(command: click.Command, name: str) -> click.Command:
    """Add to a command, and to those in a group, what all commands share. ``name`` has the names of the groups too."""
    if SHARED[0] in command.params:
        return command
    command.params += SHARED
    command.epilog = examples_of(name)
    if isinstance(command, click.Group):
        for part, one in command.commands.items():
            _completed(one, f"{name} {part}")
        return command
    assert command.callback is not None
    command.callback = _reporting(command.callback)
    return command


def _reporting(callback: Callable[..., Any]) -> Callable[..., Any]:
    """Show the progress and the log as -q and -v say."""

    @wraps(callback)
    def call(*arguments: Any, **options: Any) -> Any:
        from inlink.base.progress import progress

        context = click.get_current_context()
        # `inlink crawl` shows the log beside its progress.
        if context.meta[VERBOSE] and context.info_name != "crawl":
            logging.basicConfig(level=logging.INFO, format="%(name)s: %(message)s")
        with nullcontext() if context.meta[QUIET] else progress():
            return callback(*arguments, **options)

    return call


class Uncut(click.Group):
    """A group whose help shows the first sentence of each command's help, uncut."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands."""
        _write(formatter, "Commands", {name: self.commands[name] for name in self.list_commands(ctx)})

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command. If there is none, name the commands with a similar name.

        Raises
        ------
        click.UsageError
            If there is none.
        """
        name = args[0]
        if not (ctx.resilient_parsing or name.startswith("-") or self.get_command(ctx, name)):
            near = get_close_matches(name, self.list_commands(ctx))
            advice = f"did you mean {' or '.join(near)}?" if near else f"{ctx.command_path} --help lists them"
            raise click.UsageError(f"there is no command {name!r}: {advice}", ctx)
        return super().resolve_command(ctx, args)


class Sections(Uncut):
    """A group that shows its commands in sections, and imports a command's module when the command is called."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.params += SHARED
        self._titles: dict[str, Sequence[str]] = {}
        self._places: dict[str, str] = {}

    def add_section(self, title: str, places: Sequence[str]) -> None:
        """Add commands under a title, in this order: ``module:function``, or ``module`` alone if both have one name."""
        names = {place.rpartition(":")[2].rstrip("_").replace("_", "-"): place for place in places}
        self._places |= names
        self._titles[title] = list(names)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return sorted(self._places)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command with this name, or None."""
        return self._command(cmd_name) if cmd_name in self._places else None

    def every(self) -> dict[str, click.Command]:
        """Return all commands by name. This imports their modules."""
        return {name: self._command(name) for name in self._places}

    def _command(self, name: str) -> click.Command:
        module, _, function = self._places[name].partition(":")
        return _completed(getattr(import_module(f"inlink.cli.{module}"), function or module), name)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command. If the reader of the output stops reading, as ``head`` does, end quietly."""
        try:
            super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            for stream in (sys.stdout, sys.stderr):
                # What is still in the buffers goes nowhere.
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the sections. Each command has the first sentence of its help, uncut."""
        commands = self.every()
        for title, names in self._titles.items():
            _write(formatter, title, {name: commands[name] for name in names})


def _write(formatter: click.HelpFormatter, title: str, commands: dict[str, click.Command]) -> None:
    with formatter.section(title):
        formatter.write_dl([(name, one.get_short_help_str(limit=1000)) for name, one in commands.items()])
