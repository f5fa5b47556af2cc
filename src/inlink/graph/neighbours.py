"""Look-ups in a graph around single nodes: neighbourhoods, co-citation, shortest chains of links, nodes by name.

Each function reads only the rows of the nodes that it meets, and takes memory in proportion to them.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from inlink.base.arrays import Int64Array, UInt32Array
from inlink.base.memory import require_memory
from inlink.errors import ParameterError, UnknownNodeError
from inlink.graph.graph import CompressedGraph, Graph
from inlink.graph.rows import unsplit
from inlink.urls.canonical import canonical
from inlink.urls.hosts import reverse_host

if TYPE_CHECKING:
    from inlink.urls.matching import Kind

Direction = Literal["in", "out", "both"]

# Arcs a node. If there are more, only the most specific are drawn, so many of each node.
_DENSE, _EACH = 3, 2
# The largest number of arcs that are gathered at once, unless one node has more.
_ARCS = 1 << 20
# Rows of a compressed graph that are decoded one by one. If more are needed, all rows are decoded into memory.
_FEW = 1 << 10
_NUMBER = re.compile(r"[0-9a-fA-F]{16}")


def node_of(graph: Graph, text: str) -> int:
    """Return the number of the node that a text describes.

    Parameters
    ----------
    graph : Graph
        The graph.
    text : str
        A name in the graph, or the node's number as 16 hexadecimal digits. In a graph of pages, it may also be a URL
        with the same canonical form. In a graph of hosts or domains, it may also be a name that is not reversed. In a
        graph without names, it may also be a decimal number.

    Raises
    ------
    inlink.errors.UnknownNodeError
        If there is no such node.
    """
    if graph.names is not None:
        for name in names_for(text, graph.level):
            if name in graph.names:
                return graph.names.find(name)
    number = number_for(text, graph.names is not None)
    if number is None or number >= graph.num_nodes:
        raise UnknownNodeError(
            f"{text!r} is not known in {graph.path or 'the graph'}: search with `inlink find`"
        )
    return number


def names_for(text: str, level: str | None) -> list[str]:
    """Return the names that a text may stand for: itself, its canonical form in a graph of pages, or reversed."""
    other = None
    if level == "page":
        other = canonical(text)
    elif level is not None:
        other = reverse_host(text)
    return [text] if other is None or other == text else [text, other]


def number_for(text: str, named: bool) -> int | None:
    """Return the number of a node that a text may be: 16 hexadecimal digits, or decimal if nodes have no names."""
    if _NUMBER.fullmatch(text):
        return int(text, 16)
    return int(text) if not named and text.isascii() and text.isdigit() and len(text) <= 10 else None


def near(
    graph: Graph, node: int, hops: int = 1, direction: Direction = "both"
) -> tuple[UInt32Array, UInt32Array]:
    """Return the nodes within a number of links of a node, without the node itself.

    Parameters
    ----------
    graph : Graph
        The graph.
    node : int
        The node's number.
    hops : int
        Maximum number of links, at least 1.
    direction : {"in", "out", "both"}
        Follow links backwards, forwards, or both.

    Returns
    -------
    nodes : uint32[k]
        The nodes, sorted by distance, then by number.
    distances : uint32[k]
        The number of links to each node.

    Raises
    ------
    inlink.errors.ParameterError
        If ``hops`` is below 1 or ``direction`` is unknown.
    inlink.errors.UnknownNodeError
        If there is no such node.
    """
    if hops < 1:
        raise ParameterError(f"`hops` must be at least 1; got {hops}")
    if direction not in get_args(Direction):
        raise ParameterError(f"`direction` must be 'in', 'out' or 'both'; got {direction!r}")
    sides = {"in": (False,), "out": (True,), "both": (True, False)}[direction]
    front = seen = np.array([graph.node(node)], np.uint32)
    levels: list[UInt32Array] = []
    while len(front) and len(levels) < hops:
        front = _next(graph, front, seen, sides)
        seen = np.union1d(seen, front)
        levels.append(front)
    distances = [np.full(len(level), k, np.uint32) for k, level in enumerate(levels, 1)]
    return np.concatenate(levels), np.concatenate(distances)


def arcs_between(graph: Graph, chosen: list[int]) -> list[tuple[int, int]]:
    """Return the arcs between chosen nodes as pairs of places in ``chosen``, without self-loops.

    Parameters
    ----------
    graph : Graph
        The graph.
    chosen : list of int
        Different nodes.

    Returns
    -------
    list of (int, int)
        For an arc from ``chosen[i]`` to ``chosen[j]``, the pair (i, j). Pairs are in the order of ``chosen``.
    """
    place = {node: k for k, node in enumerate(chosen)}
    wanted = np.array(sorted(chosen), np.uint32)
    arcs = []
    for node, k in place.items():
        row = graph.outlinks(node)
        arcs += [(k, place[end]) for end in row[np.isin(row, wanted)].tolist() if end != node]
    return arcs


def specific_arcs(
    graph: Graph, chosen: list[int], sections: Sequence[str]
) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Return the arcs between chosen nodes: those that tell most of the nodes, for a picture, and the others.

    The weight of an arc is 1 / (outdegree of the source · indegree of the target). If there are many arcs, those of
    templates are among the others, and of the rest all but the two of the largest weight of each node.

    Parameters
    ----------
    graph : Graph
        The graph.
    chosen : list of int
        Different nodes.
    sections : sequence of str
        The host or folder of each chosen node.

    Returns
    -------
    list of (int, int), list of (int, int)
        Arcs as :func:`arcs_between` returns them. The largest weight is first.
    """
    outdegrees, indegrees = (
        graph.outdegrees[chosen].tolist(),
        graph.indegrees[chosen].tolist(),
    )
    arcs = sorted(
        arcs_between(graph, chosen),
        key=lambda arc: (outdegrees[arc[0]] * indegrees[arc[1]], arc),
    )
    if len(arcs) <= _DENSE * len(chosen):
        return arcs, []
    menu, counts = _template(arcs, sections), [0] * len(chosen)
    kept, others = [], []
    for arc in arcs:
        i, j = arc
        if arc not in menu and min(counts[i], counts[j]) < _EACH:
            kept.append(arc)
            counts[i] += 1
            counts[j] += 1
        else:
            others.append(arc)
    return kept, others


def _template(arcs: list[tuple[int, int]], sections: Sequence[str]) -> set[tuple[int, int]]:
    """Return the arcs of templates: to a target that more than half of a section's pages link to."""
    sizes = Counter(sections)
    links = Counter((sections[i], j) for i, j in arcs)
    return {
        (i, j) for i, j in arcs if sizes[sections[i]] > 2 and 2 * links[sections[i], j] > sizes[sections[i]]
    }


def sharing(graph: Graph, node: int) -> tuple[UInt32Array, Int64Array]:
    """Return the nodes that share inlinks with a node (co-citation), and the number of shared inlinks of each.

    Source: Small, "Co-citation in the scientific literature", JASIS 1973.

    Returns
    -------
    nodes : uint32[k]
        The nodes without the node itself. The largest count is first; nodes with equal counts are sorted by number.
    counts : int64[k]
        The number of nodes that link to both.

    Raises
    ------
    inlink.errors.UnknownNodeError
        If there is no such node.
    """
    node = graph.node(node)
    nodes, counts = np.empty(0, np.uint32), np.empty(0, np.int64)
    for ends in _ends(graph, graph.inlinks(node), True):
        # Each link counts once in a row, so the number of occurrences is the number of linkers.
        others, times = np.unique(ends, return_counts=True)
        nodes, places = np.unique(np.concatenate([nodes, others]), return_inverse=True)
        counts = np.bincount(places, np.concatenate([counts, times]), len(nodes)).astype(np.int64)
    different = nodes != node
    nodes, counts = nodes[different], counts[different]
    order = np.lexsort((nodes, -counts))
    return nodes[order], counts[order]


def chain(graph: Graph, source: int, target: int) -> list[int] | None:
    """Return a shortest path of links from one node to another, with both ends; None if there is no path.

    The search goes from both ends, and each step continues at the end with fewer nodes in its front. If there are
    several shortest paths, the same path is returned each time.

    Raises
    ------
    inlink.errors.UnknownNodeError
        If there is no such node.
    """
    begin, end = graph.node(source), graph.node(target)
    levels = {True: [np.array([begin], np.uint32)], False: [np.array([end], np.uint32)]}
    seen = {True: levels[True][0], False: levels[False][0]}
    meeting = np.intersect1d(seen[True], seen[False])
    while not len(meeting):
        if not len(levels[True][-1]) or not len(levels[False][-1]):
            return None
        forward = len(levels[True][-1]) <= len(levels[False][-1])
        front = _next(graph, levels[forward][-1], seen[forward], (forward,))
        levels[forward].append(front)
        seen[forward] = np.union1d(seen[forward], front)
        meeting = np.intersect1d(front, levels[not forward][-1])
    middle = int(meeting[0])
    before, after = [middle], [middle]
    for level in reversed(levels[True][:-1]):
        before.append(int(np.intersect1d(level, graph.inlinks(before[-1]))[0]))
    for level in reversed(levels[False][:-1]):
        after.append(int(np.intersect1d(level, graph.outlinks(after[-1]))[0]))
    return before[::-1] + after[1:]


def find(
    graph: Graph, expression: str, kind: "Kind" = "regex"
) -> Iterator[tuple[list[tuple[int, str]], int]]:
    """Yield the nodes whose names match an expression, in order, a part of the names at a time.

    Parameters
    ----------
    graph : Graph
        A graph with names.
    expression : str
        See :func:`inlink.urls.matching.matcher`.
    kind : {"regex", "glob", "text"}
        The kind of the expression.

    Yields
    ------
    nodes : list of (int, str)
        The numbers and names of the matching nodes in this part.
    searched : int
        The number of names that were searched so far.

    Raises
    ------
    inlink.errors.ParameterError
        If the graph has no names, or the expression is not valid.
    """
    if graph.names is None:
        raise ParameterError("this graph has no names to search, only numbers of nodes")
    # Look-ups by name need no expressions, and not the import of RE2.
    from inlink.urls.matching import matcher

    matches = matcher(expression, kind)
    for first, column in graph.names.columns():
        rows = matches(column).tolist()
        yield [(first + row, graph.names[first + row]) for row in rows], first + len(column)


# -- inside ---------------------------------------------------------------------------------------------------------


def _next(graph: Graph, front: UInt32Array, seen: UInt32Array, sides: tuple[bool, ...]) -> UInt32Array:
    """Return the unseen nodes that are one link away from the nodes in ``front``, uint32[k], increasing."""
    reached = np.empty(0, np.uint32)
    for forward in sides:
        for ends in _ends(graph, front, forward):
            most = len(seen) + len(reached) + len(ends)
            require_memory(64 * most, f"up to {most:,} nodes of a search")
            reached = np.union1d(reached, ends)
    return np.setdiff1d(reached, seen, assume_unique=True)


def _ends(graph: Graph, nodes: UInt32Array, forward: bool) -> Iterator[UInt32Array]:
    """Yield the other ends of the outlinks or inlinks of ``nodes``, in parts of about a million arcs."""
    if isinstance(graph, CompressedGraph) and len(nodes) <= _FEW:
        yield from map(graph.outlinks if forward else graph.inlinks, nodes.tolist())
        return
    rows = unsplit(graph.out_rows) if forward else graph.split_in_rows
    at = rows.places(nodes)
    begins = rows.offsets[at].astype(np.int64)
    counts = rows.offsets[at + 1].astype(np.int64) - begins
    done = np.concatenate([[0], np.cumsum(counts)])
    low = 0
    while low < len(nodes):
        high = max(int(np.searchsorted(done, done[low] + _ARCS, "right")) - 1, low + 1)
        places = np.arange(done[low], done[high])
        places += np.repeat(begins[low:high] - done[low:high], counts[low:high])
        yield rows.named(rows.nodes[places])
        low = high
