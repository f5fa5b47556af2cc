"""Files of changes of links: a source, a target, and + or - in each line."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from inlink.base.opening import open_binary
from inlink.base.table import counted
from inlink.errors import InputError, UnknownNodeError
from inlink.graph.graph import Graph

__all__ = ["read_changes"]

Pair = tuple[Any, Any]


def read_changes(
    path: Path, graph: Graph, resolve: Callable[[str, bool], str] = lambda name, _: name
) -> tuple[list[Pair], list[Pair]]:
    """Read the links to add and to remove from a tab-separated file.

    Blank lines and further columns are ignored. A name that the graph lacks is a new node if a link to it is added.

    Parameters
    ----------
    path : Path
    graph : Graph
    resolve : callable
        Returns the full name of a node that is named in the file. The second argument is whether the node may be new.

    Returns
    -------
    add, remove : list of (source, target)
        Nodes by name, as str, or by number if the graph has no names.

    Raises
    ------
    inlink.errors.InputError
        If the file cannot be read, or a line is wrong; names the line.
    """
    sides: dict[str, dict[Pair, int]] = {"+": {}, "-": {}}
    with open_binary(path) as stream:
        for line, raw in enumerate(stream, 1):
            fields = (
                raw.decode("utf-8-sig" if line == 1 else "utf-8", "surrogateescape")
                .rstrip("\r\n")
                .split("\t")
            )
            if fields == [""]:
                continue
            place = f"{path}, line {line}"
            if len(fields) < 3:
                raise InputError(
                    f"{place}: expected a source, a target, and + or -, separated by tabs; got "
                    f"{counted(len(fields), 'field')}"
                )
            source, target, sign = fields[:3]
            if sign not in sides:
                raise InputError(f"{place}: the third field must be + or -; got {sign!r:.80}")
            source_node, target_node = (
                _node(text, graph, place, resolve, sign == "+") for text in (source, target)
            )
            link = source_node, target_node
            other = sides["-" if sign == "+" else "+"]
            if link in other:
                raise InputError(
                    f"{place}: line {other[link]} has the same link with the other sign: leave out one"
                )
            if sign == "-":
                _check_there(graph, link, place)
            sides[sign].setdefault(link, line)
    return list(sides["+"]), list(sides["-"])


def _node(
    text: str, graph: Graph, place: str, resolve: Callable[[str, bool], str], may_be_new: bool
) -> str | int:
    if graph.names is not None and text:
        try:
            return resolve(text, may_be_new)
        except UnknownNodeError as error:
            raise InputError(f"{place}: {error}") from None
    if not text.isdecimal() or len(text) > 10:
        what = "the nodes of this graph are numbers" if text else "a name is empty"
        raise InputError(f"{place}: {what}; got {text!r}")
    return int(text)


def _check_there(graph: Graph, link: Pair, place: str) -> None:
    try:
        there = graph.node(link[1]) in graph.outlinks(link[0])
    except UnknownNodeError as error:
        raise InputError(f"{place}: {error}") from None
    if not there:
        raise InputError(
            f"{place}: the graph has no link from {link[0]!r} to {link[1]!r}: leave out this line"
        )
