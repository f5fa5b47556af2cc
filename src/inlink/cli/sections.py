"""The list of commands in ``inlink --help``: in sections by what one wants, with whole sentences."""

from collections.abc import Sequence
from typing import Any

import click

__all__ = ["Sections"]


class Sections(click.Group):
    """A group that shows its commands in sections."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._titles: dict[str, Sequence[str]] = {}

    def add_section(self, title: str, commands: Sequence[click.Command]) -> None:
        """Add commands under a title, in this order."""
        for command in commands:
            self.add_command(command)
        self._titles[title] = [command.name or "" for command in commands]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the sections. Each command has the first sentence of its help, uncut."""
        for title, names in self._titles.items():
            rows = [(name, self.commands[name].get_short_help_str(limit=1000)) for name in names]
            with formatter.section(title):
                formatter.write_dl(rows)
