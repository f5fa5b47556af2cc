"""The lists of commands in ``--help``, with whole sentences; that of ``inlink --help`` is in sections by purpose."""

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import click

__all__ = ["Sections", "Uncut"]


class Uncut(click.Group):
    """A group whose help shows the first sentence of each command's help, uncut."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands."""
        _write(formatter, "Commands", {name: self.commands[name] for name in self.list_commands(ctx)})


class Sections(click.Group):
    """A group that shows its commands in sections, and imports a command's module when the command is called."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._titles: dict[str, Sequence[str]] = {}
        self._modules: dict[str, str] = {}

    def add_section(self, title: str, modules: Sequence[str]) -> None:
        """Add commands under a title, in this order: each is the function in the module of this room with its name."""
        names = {module.rstrip("_").replace("_", "-"): module for module in modules}
        self._modules |= names
        self._titles[title] = list(names)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return sorted(self._modules)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command with this name, or None."""
        return self._command(cmd_name) if cmd_name in self._modules else None

    def every(self) -> dict[str, click.Command]:
        """Return all commands by name. This imports their modules."""
        return {name: self._command(name) for name in self._modules}

    def _command(self, name: str) -> click.Command:
        module = self._modules[name]
        found: click.Command = getattr(import_module(f"inlink.cli.{module}"), module)
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the sections. Each command has the first sentence of its help, uncut."""
        commands = self.every()
        for title, names in self._titles.items():
            _write(formatter, title, {name: commands[name] for name in names})


def _write(formatter: click.HelpFormatter, title: str, commands: dict[str, click.Command]) -> None:
    with formatter.section(title):
        formatter.write_dl([(name, one.get_short_help_str(limit=1000)) for name, one in commands.items()])
