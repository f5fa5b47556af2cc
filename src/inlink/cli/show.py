"""Output of commands: safe names, tables, JSON."""

import json
import sys
from collections.abc import Sequence
from typing import Any

import click

from inlink.base.table import printable

__all__ = [
    "counted",
    "printable",
    "say",
    "say_folding",
    "say_json",
    "show_json",
    "show_table",
    "summary",
    "write_all",
]


def say(line: str) -> None:
    """Print one line to standard output."""
    click.echo(line)


def counted(number: int, noun: str) -> str:
    """A number with its noun, whose plural ends with s: ``1 page``, ``1,000 pages``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def show_table(columns: Sequence[str], rows: Sequence[Sequence[object]], right: Sequence[int] = ()) -> None:
    """Print rows as a table on a terminal, and tab-separated elsewhere."""
    cells = [[printable(cell) for cell in row] for row in rows]
    if not sys.stdout.isatty():
        for row in cells:
            click.echo("\t".join(row))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for k, column in enumerate(columns):
        table.add_column(column, justify="right" if k in right else "left", overflow="fold")
    for row in cells:
        table.add_row(*(Text(cell) for cell in row))
    Console().print(table)


def show_json(value: Any) -> None:
    """Print a value as JSON."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=True))


def say_json(value: Any) -> None:
    """Print structs as JSON."""
    import msgspec

    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def write_all(lines: bytes) -> None:
    """Write lines to standard output and flush, so that an error for a closed pipe is raised here."""
    sys.stdout.buffer.write(lines)
    sys.stdout.buffer.flush()


def summary(graph: Any, name: str) -> str:
    """One line about a new graph."""
    level = f"{graph.level} graph, " if graph.level else ""
    return f"{name}: {level}{graph.num_nodes:,} nodes, {graph.num_arcs:,} arcs"


def say_folding(graph: Any) -> None:
    """Print how names were read as hosts, and the number of nodes without a host or domain, if the graph was folded."""
    if form := graph.meta.get("hosts"):
        say(f"names are {form} hosts ({'com.example.www' if form == 'reversed' else 'www.example.com'})")
    if left_out := graph.meta.get("left_out"):
        say(
            f"left out: {left_out:,} nodes without a {graph.level} (IP addresses, names that are neither URLs nor "
            "hosts, public suffixes)"
        )
