"""Measures of a replay: the value of each page, and the share of the total value after each fetch."""

import math
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from inlink.base.arrays import BoolArray, Float64Array, UInt32Array
from inlink.graph.graph import Graph, Rows
from inlink.replaying.lines import sort_bound
from inlink.replaying.web import NO_PAGE, Web

MEASURES = {
    "pagerank": "Share of the PageRank of all pages that can be reached",
    "top": "Share of the pages with the highest PageRank",
    "authority": "Share of their HITS authority",
    "indegree": "Share of their inlinks",
    "score": "Share of their content scores",
    "relevant": "Share of their relevant pages",
    "freshness": "Share of the copies that are current",
    "fresh-rank": "Share of the PageRank of all reachable pages that belongs to pages with a current copy",
}
"""Measures. All but the last two add up the values of pages; a value is at least 0."""

FRESHNESS, FRESH_RANK = "freshness", "fresh-rank"

POINTS = 100
"""Number of points of a curve that are kept."""

ROUNDING = 1e-9


class Curve(msgspec.Struct, frozen=True):
    """A measure of one order.

    Attributes
    ----------
    at : list of float
        The value at each mark, after its number of fetches.
    area : float
        The mean over all fetches of the budget; of freshness, over the time.
    half : int or None
        Number of fetches until the value reaches one half; None if it does not within the budget.
    points : list of float
        The value at :data:`POINTS` equal steps of the budget.
    """

    at: list[float]
    area: float
    half: int | None
    points: list[float]


def worth_of(web: Web, *, damping: float, relevant: float, top: int) -> dict[str, Float64Array]:
    """Return the values of all pages by measure, float64[n] at least 0; 0 for a page that cannot be fetched.

    Parameters
    ----------
    web : Web
        The web.
    damping : float
        Damping of PageRank.
    relevant : float
        The least content score of a relevant page.
    top : int
        The number of pages that count as the top by PageRank; of equal pages, those with the lower number.
    """
    from inlink.rank.certain import best_nodes
    from inlink.rank.hits import hits
    from inlink.rank.pagerank import pagerank

    graph, there = web.graph, web.fetchable
    ranks = np.where(there, pagerank(graph, damping=damping, tol=1e-9, threads=1).values, 0.0)
    best = np.zeros(len(ranks))
    best[best_nodes(ranks, top)] = 1.0
    worth = {
        "pagerank": ranks,
        "top": best,
        "authority": np.maximum(hits(graph, threads=1).values, 0.0),
        "indegree": graph.indegrees.astype(np.float64),
    }
    if web.scores.any():
        worth["score"] = np.maximum(np.asarray(web.scores, np.float64), 0.0)
        worth["relevant"] = (np.asarray(web.scores) >= relevant).astype(np.float64)
    return {name: np.where(there, values, 0.0) for name, values in worth.items()}


def counts_at(marks: Sequence[float], reached: int) -> list[int]:
    """Return the numbers of fetches for marks, which are shares of the pages that can be reached; at least 1."""
    return [max(1, int(mark * reached + 1e-9)) for mark in marks]


def harvest_of(home: UInt32Array, worth: Float64Array, total: float, budget: int) -> Float64Array:
    """Return the share of ``total`` after 1, 2, …, ``budget`` fetches: float64[budget].

    If a crawl ends before its budget, the share stays the same after its end.
    """
    gains = np.zeros(budget)
    brought = home[:budget]
    some = brought != NO_PAGE
    gains[: len(brought)][some] = worth[brought[some]]
    shares: Float64Array = np.cumsum(gains) / total if total > 0 else np.zeros(budget)
    return shares


def curve_of(
    values: Float64Array, counts: Sequence[int], *, area: float | None = None, budget: int = 0
) -> Curve:
    """Return the kept points and marks of a measure.

    Parameters
    ----------
    values : float64[k]
        The value after each fetch. A crawl that ends before its budget keeps its last value.
    counts : sequence of int
        The numbers of fetches of the marks.
    area : float or None
        The area of freshness, which has no half; None: ``values`` is a harvest.
    budget : int
        The number of fetches that are allowed; 0 is k.
    """

    def at(count: int) -> float:
        return float(values[min(count, len(values)) - 1]) if len(values) else math.nan

    enough = np.flatnonzero((values >= 0.5) & (area is None))
    return Curve(
        [at(count) for count in counts],
        float(values.mean()) if area is None else area,
        int(enough[0]) + 1 if len(enough) else None,
        [at(place) for place in curve_points(budget or len(values))],
    )


def curve_points(budget: int) -> list[int]:
    """Return the numbers of fetches that have a point on the curve."""
    return [max(1, budget * step // POINTS) for step in range(1, POINTS + 1)]


def check_order(
    home: UInt32Array, worth: Mapping[str, Float64Array], reached: BoolArray, budget: int, label: str
) -> None:
    """Check two properties of all orders: no page is fetched twice, and no curve is above the sort bound.

    Raises
    ------
    RuntimeError
        If a property does not hold, which is a mistake in inlink.
    """
    brought = home[home != NO_PAGE]
    if len(np.unique(brought)) < len(brought):
        raise RuntimeError(f"{label}: a page was collected twice")
    if not reached[brought].all():
        raise RuntimeError(f"{label}: a page was collected that the seeds do not reach")
    for name, values in worth.items():
        total = float(values[reached].sum())
        bound = sort_bound(values, reached, budget)
        if total > 0 and (harvest_of(home, values, 1.0, budget) > bound + ROUNDING * total).any():
            raise RuntimeError(f"{label}: {name} is above the sort bound")


def agreement(
    graph: Graph, home: UInt32Array, counts: Sequence[int], ranks: Float64Array, damping: float
) -> list[float | None]:
    """Return Kendall's τ-b between PageRank of the collected part of the web and PageRank of all pages.

    The part has the pages that were collected so far, and the links between them.

    As in P. Boldi, M. Santini, S. Vigna, "Do your worst to make the best: paradoxical effects in PageRank incremental
    computations", WAW 2004.

    Parameters
    ----------
    graph : Graph
        The graph of the web.
    home : uint32[k]
        The page that each fetch collected for the first time; :data:`.web.NO_PAGE` if none.
    counts : sequence of int
        The numbers of fetches after which to compare.
    ranks : float64[n]
        PageRank of all pages.
    damping : float
        The probability of following a link.

    Returns
    -------
    list of float or None
        τ-b after each number of fetches; None if fewer than two pages were collected, or all have the same rank.
    """
    from inlink.rank.agreement import kendall
    from inlink.rank.pagerank import pagerank

    rows = graph.out_rows
    sources = np.repeat(np.arange(graph.num_nodes, dtype=np.uint32), np.diff(rows.offsets).astype(np.int64))
    agreements: list[float | None] = []
    for count in counts:
        brought = home[:count]
        inside = np.zeros(graph.num_nodes, np.bool_)
        inside[brought[brought != NO_PAGE]] = True
        pages = np.flatnonzero(inside)
        if len(pages) < 2:
            agreements.append(None)
            continue
        part = pagerank(_induced(rows, sources, inside), damping=damping, tol=1e-9, threads=1).values
        agreements.append(kendall(np.round(part, 12), np.round(ranks[pages], 12)))
    return agreements


def _induced(rows: Rows, sources: UInt32Array, inside: BoolArray) -> Graph:
    """Return the graph of the nodes where ``inside`` is True, and the arcs between them."""
    nodes = np.asarray(rows.nodes)
    kept = inside[sources] & inside[nodes]
    number = np.cumsum(inside, dtype=np.uint32) - np.uint32(1)
    count = int(inside.sum())
    offsets = np.zeros(count + 1, np.uint64)
    offsets[1:] = np.cumsum(np.bincount(number[sources[kept]], minlength=count))
    return Graph(Rows(offsets, number[nodes[kept]]), checked=True)
