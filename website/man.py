"""Writes the manual pages of all commands into a folder, from the texts of ``--help``: inlink.1, inlink-rank.1, …."""

import inspect
import re
import sys
from collections.abc import Iterable
from pathlib import Path

import click

from inlink import __version__
from inlink.cli import commands


class Roff(click.HelpFormatter):
    """Writes help as the source of a manual page."""

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        """Write the section that shows how the command is called."""
        self.write(f".SH SYNOPSIS\n.B {escaped(prog)}\n{escaped(args)}\n.SH DESCRIPTION\n")

    def write_heading(self, heading: str) -> None:
        """Begin a section."""
        self.write(f".SH {escaped(heading).upper()}\n")

    def write_paragraph(self) -> None:
        """Begin a paragraph."""
        self.write(".PP\n")

    def write_text(self, text: str) -> None:
        """Write paragraphs. Those that begin with a backspace keep their lines."""
        for paragraph in inspect.cleandoc(text).split("\n\n"):
            lines = paragraph.split("\n")
            if lines[0] == "\b":
                if lines[1] == "Examples:":
                    self.write_heading(lines.pop(1)[:-1])
                self.write(".PP\n.nf\n" + "".join(f"{escaped(line)}\n" for line in lines[1:]) + ".fi\n")
            else:
                self.write(f".PP\n{escaped(' '.join(lines))}\n")

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        """Write terms with their explanations."""
        for term, text in rows:
            self.write(f".TP\n.B {escaped(term)}\n{escaped(text)}\n")


def escaped(text: str) -> str:
    """Return a text that roff shows as it is."""
    text = text.replace("\\", "\\e").replace("-", "\\-").strip()
    return re.sub(r"^(?=[.'])", r"\\&", text)


def page(name: str, context: click.Context) -> str:
    """Return the manual page of a command."""
    command, formatter = context.command, Roff()
    command.format_help(context, formatter)
    short = command.get_short_help_str(limit=1000).rstrip(".")
    head = f'.TH {escaped(name.upper())} 1 "" "inlink {__version__}" "inlink"\n'
    return f"{head}.SH NAME\n{escaped(name)} \\- {escaped(short)}\n{formatter.getvalue()}"


def pages(name: str, context: click.Context) -> dict[str, str]:
    """Return the manual pages of a command and, if it is a group, of its commands, by the names of their files."""
    found = {f"{name}.1": page(name, context)}
    if isinstance(context.command, click.Group):
        for part in context.command.list_commands(context):
            command = context.command.get_command(context, part)
            assert command is not None
            found |= pages(
                f"{name}-{part}", click.Context(command, context, part, **command.context_settings)
            )
    return found


def main(folder: Path) -> None:
    """Write the pages into a folder, which is made."""
    folder.mkdir(parents=True, exist_ok=True)
    for file, text in pages(
        "inlink", click.Context(commands, info_name="inlink", **commands.context_settings)
    ).items():
        (folder / file).write_text(text)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
