"""Output of commands: safe names, tables, JSON."""

import json
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any

import click

from inlink.base.table import counted, printable
from inlink.errors import InlinkError

if TYPE_CHECKING:
    from inlink.graph.graph import Graph


def say(line: str, err: bool = False) -> None:
    """Print one line to standard output, or to standard error."""
    click.echo(line, err=err)


def note(line: str) -> None:
    """Print one line to standard error that explains the output, or why there is none."""
    click.echo(f"inlink: {printable(line)}", err=True)


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


def show_answer(answer: Any, as_json: bool, show: Callable[[Any], None]) -> None:
    """Print the answer of a command: as JSON, or as text by ``show``.

    The answer is an object, or rows: a list or an iterator, whose rows are printed as they are found.
    """
    (show_json if as_json else show)(answer)


def show_json(answer: Any) -> None:
    """Print an answer as JSON: rows as an array with a row a line, anything else as an object.

    Numbers that are not finite are null. After an error, the array ends with the rows before it.
    """
    if not isinstance(answer, list | Iterator):
        say(json.dumps(_plain(answer), indent=2))
        return
    mark = "[\n"
    try:
        for row in answer:
            sys.stdout.write(mark + json.dumps(_plain(row)))
            mark = ",\n"
    except InlinkError:
        if mark == ",\n":
            say("\n]")
        raise
    say("[]" if mark == "[\n" else "\n]")


def _plain(value: Any) -> Any:
    """Structs and dataclasses as dicts, and null for numbers that JSON does not have."""
    import msgspec

    def finite(part: Any) -> Any:
        if isinstance(part, dict):
            return {key: finite(value) for key, value in part.items()}
        if isinstance(part, list | tuple):
            return [finite(value) for value in part]
        return None if isinstance(part, float) and not isfinite(part) else part

    # NumPy's numbers have this method.
    return finite(msgspec.to_builtins(value, enc_hook=lambda other: other.item()))


def say_fields(fields: Iterable[tuple[str, object]], width: int = 18) -> None:
    """Print a line for each label and value."""
    for label, value in fields:
        say(f"{printable(label):<{width}} {'' if value is None else printable(value)}".rstrip())


def say_rows(rows: Iterable[dict[str, Any]], indent: str = "") -> None:
    """Print pages or nodes: the number in 16 hexadecimal digits, the URL or name, and further texts after tabs."""
    for number, name, *more in map(dict.values, rows):
        label = printable(number if name is None else name)
        sys.stdout.write("\t".join([f"{indent}{number:016x} {label}", *more]) + "\n")


def summary(graph: "Graph", name: str) -> str:
    """One line about a new graph."""
    level = f"{graph.level} graph, " if graph.level else ""
    return f"{name}: {level}{counted(graph.num_nodes, 'node')}, {counted(graph.num_arcs, 'arc')}"


def say_folding(graph: "Graph", err: bool = False) -> None:
    """Print how names were read as hosts, and the number of nodes without a host or domain, if the graph was folded."""
    if form := graph.meta.get("hosts"):
        say(f"names are {form} hosts ({'com.example.www' if form == 'reversed' else 'www.example.com'})", err)
    if left_out := graph.meta.get("left_out"):
        say(
            f"left out: {counted(left_out, 'node')} without a {graph.level} (IP addresses, names that are neither URLs "
            "nor hosts, public suffixes)",
            err,
        )


def show_reading(read: Callable[[], "Graph"], name: str, err: bool = False) -> "Graph":
    """Read a graph. Print the finished parts of a resumed build, one line about the graph, and the skipped records.

    ``err``: print to standard error.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        left_out: list[str] = []

        def show(message: Warning | str, *_: Any, **__: Any) -> None:
            line = printable(str(message))
            if line.startswith("left out"):
                left_out.append(line)
            else:
                say(line, err or not line.startswith("going on"))

        warnings.showwarning = show
        graph = read()
    say(summary(graph, name), err)
    say_folding(graph, err)
    for line in left_out:
        say(line.partition(". ")[0], err)
    for reason, number in graph.meta.get("skipped", {}).items():
        say(f"skipped {number:,}: {printable(reason)}", err)
    return graph
