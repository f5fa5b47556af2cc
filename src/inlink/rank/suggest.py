"""The links that raise the PageRank of some pages most.

The best set of k links cannot be found by a quick method: the problem has no fully polynomial approximation scheme
unless P = NP. Adding the best link k times ("greedy") is within a constant factor of the best set. Taking the sources
with the largest rank per outlink is much worse (Olsen & Viglas, "On the approximability of the link building problem",
Theoretical Computer Science 518, 2014).

For a set T of pages, the gain of a link s → t is the sum over T of equation (3) of :mod:`inlink.rank.whatif`. One
reverse push from T gives N[·, T], and so the numerators of all links ::

    c·x_s/(k + 1) · (N[t, T] − (N[s, T] − [s ∈ T])/c)

The divisor is at least 1 − c/(k + 1), because N[t, s] ≤ N[s, s] and N[s, s] ≥ 1. The sum of all values changes by at
most c·x_s / ((k + 1)·(1 − c)). From both follows an upper bound on each gain. The exact gains of at most 50 links are
computed, in the order of their bounds, until no other link can be better. The best one is added. The next link is found
in the same way on the graph with this link.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from inlink.base.arrays import BoolArray, Float64Array, Int64Array
from inlink.base.declare import Parameter
from inlink.base.progress import track
from inlink.base.table import counted
from inlink.errors import ParameterError
from inlink.graph.edits import Edits
from inlink.graph.graph import Graph
from inlink.rank.certain import best_nodes
from inlink.rank.inputs import Nodes, NodeValues, marked
from inlink.rank.whatif import Before, Interval, Visits, changes_of

__all__ = [
    "MOST_LINKS",
    "SECTION",
    "Filter",
    "Suggestion",
    "filters_of",
    "left_out",
    "sections_of",
    "suggest",
]

Filter = Callable[[int], BoolArray]
"""For a page to raise, the pages from which a link to it is not plausible, bool[n]."""

SECTION = "in another section"
"""Reason of the filter by host and first folder."""

CANDIDATES = 50
"""The number of links whose exact gains are compared."""

MOST_LINKS = 100
"""A page with this number of links gets no further link."""

PUSH = 1e-4
"""Numerators are exact to this number, divided by 1 − c."""

_COUNT = Parameter(name="count", kind=int, at_least=0)


class Suggestion(NamedTuple):
    """A link, and its gain: the increase of the sum of the pages' PageRank if the links before it are added.

    Attributes
    ----------
    source, target : str or int
        The names, or the numbers if there are no names.
    gain : Interval
        The gain of the sum, which contains the exact gain and is above 0.
    before : float
        The sum before this link.
    """

    source: str | int
    target: str | int
    gain: Interval
    before: float


def suggest(
    graph: Graph,
    targets: Nodes,
    count: int = 20,
    *,
    sources: Nodes | None = None,
    filters: Mapping[str, Filter] | None = None,
    most_links: int = MOST_LINKS,
    damping: float = 0.85,
    personalization: NodeValues | None = None,
    weighted: bool | None = None,
    start: NodeValues | None = None,
    threads: int | None = None,
) -> Iterator[Suggestion]:
    """Yield links to some pages that raise the sum of their PageRank most, the best first.

    Parameters
    ----------
    graph : Graph
        The graph, which is not changed.
    targets : iterable of nodes
        The pages to raise.
    count : int
        The largest number of links. There are fewer if no further link is proven to raise the sum.
    sources : iterable of nodes, or None
        The pages that may get a link. None: those that no filter leaves out.
    filters : mapping of str to callable, or None
        Filters by reason, which apply if ``sources`` is None. Default: those of :func:`filters_of`.
    most_links : int
        Pages with this number of links get none.
    damping, personalization, weighted, start, threads
        As in :func:`inlink.whatif`.

    Yields
    ------
    Suggestion

    Raises
    ------
    inlink.errors.ParameterError
        If there are no targets, a parameter is out of range, or a filter returns another type than bool[n].
    inlink.errors.UnknownNodeError
        If a node is not in the graph.

    Examples
    --------
    >>> import inlink
    >>> from inlink.rank.suggest import suggest
    >>> graph = inlink.Graph([("home", "news"), ("news", "home"), ("news", "story"), ("story", "home")])
    >>> [(link.source, link.target) for link in suggest(graph, ["story"], 1)]
    [('home', 'story')]
    """
    _COUNT.check(count, "`count`")
    raised = np.flatnonzero(marked(graph, targets, "targets"))
    if sources is not None:
        others = marked(graph, sources, "sources") == 0
        filters = {"not in `sources`": lambda _: others}
    chosen = list((filters_of(graph) if filters is None else filters).values())
    before = Before(graph, damping, personalization, weighted, start, threads)
    with track("Suggestions", count, "links") as task:
        for _ in range(count):
            best, gain = _best_link(before, raised, chosen, most_links)
            if best is None or gain.low <= 0:
                return
            source, target = best
            nodes = before.graph.nodes
            yield Suggestion(nodes[source], nodes[target], gain, float(before.x[raised].sum()))
            edited = Edits(before.graph, [best], weighted=before.weighted).edited()
            before = Before(edited, damping, before.teleport, weighted, before.x, threads)
            task.advance(1)


def filters_of(graph: Graph) -> dict[str, Filter]:
    """The default filters: pages that have no links or were not crawled; in graphs of pages, also other sections."""
    silent = graph.outdegrees == 0
    if graph.crawled is not None:
        silent |= ~graph.crawled
    filters: dict[str, Filter] = {"without links, or not crawled": lambda _: silent}
    if graph.level == "page" and graph.names is not None:
        section = sections_of(graph)
        filters[SECTION] = lambda target: section != section[target]
    return filters


def sections_of(graph: Graph) -> Int64Array:
    """A number for the section of each page, its host and first folder, int64[n]. The graph has URLs as names."""
    sections: dict[str, int] = {}
    assert graph.names is not None
    return np.array(
        [sections.setdefault(_section(name), len(sections)) for name in graph.names], dtype=np.int64
    )


def left_out(
    graph: Graph, targets: Nodes, filters: Mapping[str, Filter], most_links: int = MOST_LINKS
) -> dict[str, int]:
    """Return how many pages each filter leaves out.

    A page counts once: at the first filter that leaves it out, for the target for which it passes most filters.

    Parameters
    ----------
    graph, targets, filters, most_links
        As in :func:`suggest`.

    Returns
    -------
    dict of str to int
        Numbers of pages by reason, and under "" the number of pages from which a link to a target is plausible.
    """
    full = graph.outdegrees >= most_links
    stages: dict[str, Filter] = {**filters, f"with {counted(most_links, 'link')} or more": lambda _: full}
    reached = np.zeros(graph.num_nodes, np.int64)
    for target in np.flatnonzero(marked(graph, targets, "targets")).tolist():
        stays, passed = np.ones(graph.num_nodes, np.bool_), np.zeros(graph.num_nodes, np.int64)
        for leaves_out in stages.values():
            stays &= ~_mask(leaves_out, target, graph)
            passed += stays
        np.maximum(reached, passed, out=reached)
    counts = np.bincount(reached, minlength=len(stages) + 1).tolist()
    return dict(zip([*stages, ""], counts, strict=True))


def _mask(leaves_out: Filter, target: int, graph: Graph) -> BoolArray:
    """Return what a filter leaves out. A mask of another type would select other pages without an error."""
    mask = np.asarray(leaves_out(target))
    if mask.dtype != np.bool_ or mask.shape != (graph.num_nodes,):
        raise ParameterError(
            f"a filter must return bool[{graph.num_nodes}]; got an array of {mask.dtype} with shape {mask.shape}"
        )
    return mask


def _section(url: str) -> str:
    """The host and the first folder of a URL."""
    scheme, _, rest = url.partition("://")
    return "/".join([scheme, *rest.split("?")[0].split("/")[:-1][:2]])


def _best_link(
    before: Before, raised: Int64Array, filters: list[Filter], most_links: int
) -> tuple[tuple[int, int] | None, Interval]:
    """The link with the largest gain, as numbers, and its gain."""
    graph = before.graph
    visits = Visits(before, Edits(graph, weighted=before.weighted), raised)
    visits.push(PUSH)
    free = graph.outdegrees < most_links
    links: list[tuple[float, int, int]] = []
    for target in raised.tolist():
        bounds = _largest_gains(before, visits, raised, target)
        bounds[~free] = 0.0
        for leaves_out in filters:
            bounds[_mask(leaves_out, target, graph)] = 0.0
        bounds[graph.inlinks(target)] = bounds[target] = 0.0
        links += [(float(bounds[source]), int(source), target) for source in best_nodes(bounds, CANDIDATES)]
    best, gain = None, Interval(0.0, 0.0)
    for bound, source, target in sorted(links, reverse=True)[:CANDIDATES]:
        if bound <= gain.low:
            break
        edits = Edits(graph, [(source, target)], weighted=before.weighted)
        [change] = changes_of(before, edits, [raised])
        if change.middle > gain.middle:
            best, gain = (source, target), change
    return best, gain


def _largest_gains(before: Before, visits: Visits, raised: Int64Array, target: int) -> Float64Array:
    """Upper bounds on the gains of the links from all nodes to a target, float64[n]."""
    c, own = before.damping, np.zeros(len(before.x))
    own[raised] = 1.0
    share = (before.x + before.bound) / (before.strengths + 1.0)
    numerators = share * (c * (visits.p[target] + visits.error()) - (visits.p - own))
    moved = c * share / (1 - c)
    gains = np.maximum(numerators, 0) / (1 - c / (before.strengths + 1.0)) + moved * float(
        before.x[raised].sum()
    )
    bounds: Float64Array = gains / np.maximum(1 - moved, 1 - c)
    return bounds
