"""Draw one number of each node against another: points for a few nodes, the density of nodes for many.

Both axes are logarithmic with a place for 0. :mod:`inlink.rank.agreement` measures agreement.
"""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm

from inlink.base.arrays import AnyArray, Float64Array
from inlink.base.table import counted
from inlink.errors import ParameterError
from inlink.graph.interop import GraphLike, as_graph
from inlink.plot.scale import Scale, steps, tick_label
from inlink.plot.style import (
    DENSITY,
    FAINT,
    FIRST,
    PLAIN,
    SECOND,
    axes_for,
    best,
    called,
    cut,
    drawable,
    dress,
    label_of,
    values_of,
    values_on,
)  # fmt: skip
from inlink.rank.agreement import kendall, spearman
from inlink.rank.ranking import Ranking
from inlink.sources.diff import Diff

# Maximum number of nodes that are drawn as points.
POINTS = 2000
# Number of cells along each axis.
CELLS = 80
# Maximum number of nodes for Kendall's τ, which then takes two seconds.
KENDALL = 2_000_000
TOPS = (10, 100)
# The number of nodes of a difference that are named, and the places that they are chosen from.
NAMED, WITHIN = 8, 100


def rank_against_degree(
    graph: GraphLike, ranking: Ranking, *, name: str | None = None, ax: Axes | None = None
) -> Axes:
    """Draw each node's rank over its indegree.

    Parameters
    ----------
    graph : Graph, pairs, SciPy matrix, data frame, or graph of NetworkX or igraph
        The graph to draw.
    ranking : Ranking
        A ranking of this graph. Pages that a crawl found later are left out.
    name : str or None
        Label of the ranking; None is the algorithm.
    ax : matplotlib.axes.Axes or None
        The axes to draw on; None makes a figure.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    inlink.errors.ParameterError
        If the ranking is of another graph or has no nodes, or a value is negative, infinite or not a number.
    """
    graph = as_graph(graph)
    values = values_on(graph, ranking)
    indegrees = graph.indegrees[: len(values)]
    ax = axes_for(ax)
    scatter(ax, indegrees, values, whole=True)
    name = label_of(name or ranking.algorithm)
    facts = f"{called(graph)}; Spearman's ρ {_number(spearman(indegrees, values))}"
    dress(ax, f"{name} against the number of inlinks", facts, "Inlinks", name)
    return ax


def compare(
    one: Ranking, other: Ranking, *, names: tuple[str, str] | None = None, ax: Axes | None = None
) -> Axes:
    """Draw two rankings of the same nodes against each other, with a measure of their agreement.

    Parameters
    ----------
    one, other : Ranking
        Nodes are matched by number. Of two rankings of a crawl, pages that only the later one knows are left out.
    names : (str, str) or None
        Labels of the rankings; None is their algorithms.
    ax : matplotlib.axes.Axes or None
        The axes to draw on; None makes a figure.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    inlink.errors.ParameterError
        If the rankings have different nodes or none, or a value is negative, infinite or not a number.
    """
    x, y = values_of(one), values_of(other)
    if len(x) != len(y) and (one.graph_uuid is None or one.graph_uuid != other.graph_uuid):
        raise ParameterError(
            f"rankings of {len(x):,} and of {len(y):,} nodes belong to different graphs: give two rankings of one graph"
        )
    count = min(len(x), len(y))
    x, y = x[:count], y[:count]
    ax = axes_for(ax)
    scatter(ax, x, y)
    first, second = map(label_of, names or (one.algorithm, other.algorithm))
    dress(ax, f"{second} against {first}", _agreement(x, y), first, second)
    return ax


def _agreement(x: Float64Array, y: Float64Array) -> str:
    """Return the agreement of two rankings in one line."""
    facts = [counted(len(x), "node"), f"Spearman's ρ {_number(spearman(x, y))}"]
    if len(x) <= KENDALL:
        facts.append(f"Kendall's τ {_number(kendall(x, y))}")
    both = ((k, len(set(best(x, k)) & set(best(y, k)))) for k in TOPS if k < len(x))
    common = [f"{count} of the top {k}" for k, count in both]
    return "; ".join(facts + (["in common " + ", ".join(common)] if common else []))


def _number(value: float | None) -> str:
    return "undefined (all are equal)" if value is None else f"{value:.2f}".replace("-", "−")


def scatter(ax: Axes, x: AnyArray, y: AnyArray, *, whole: bool = False) -> tuple[Scale, Scale]:
    """Draw points, or their number in each cell; return both scales. ``whole`` is True if x has whole numbers."""
    across, up = Scale.of(x), Scale.of(y)
    px, py = across.place(x), up.place(y)
    if len(px) <= POINTS:
        ax.scatter(px, py, s=16, color=FIRST, alpha=0.5, linewidths=0, clip_on=False)
    else:
        edges = across.edges(CELLS, whole=whole), up.edges(CELLS)
        counts, _, _ = np.histogram2d(px, py, bins=edges)
        top = max(10.0, float(counts.max()))
        cells = np.ma.masked_equal(counts.T, 0)
        mesh = ax.pcolormesh(*edges, cells, norm=LogNorm(1, top), cmap=DENSITY, rasterized=True)
        bar = ax.figure.colorbar(mesh, ax=ax, pad=0.02)
        ticks = steps(1, top)
        bar.set_ticks(ticks, labels=[tick_label(tick) for tick in ticks])
        bar.minorticks_off()
        bar.outline.set_visible(False)
        bar.set_label("Nodes in a cell", **PLAIN)
    across.apply(ax, "x")
    up.apply(ax, "y")
    return across, up


def diff(found: Diff, *, ax: Axes | None = None) -> Axes:
    """Draw each node's place in B over its place in A. Nodes on the line did not move.

    Of the nodes that are among the first 100 of A or B, those that moved the most are named.

    Parameters
    ----------
    found : Diff
        The result of :func:`inlink.diff`. Nodes that only one list has are left out.
    ax : matplotlib.axes.Axes or None
        The axes to draw on; None makes a figure.

    Returns
    -------
    matplotlib.axes.Axes
    """
    ax = axes_for(ax)
    x, y = found.common_places()
    if len(x):
        across, up = scatter(ax, x, y, whole=True)
        ends = np.array([1, max(x.max(), y.max())])
        ax.plot(across.place(ends), up.place(ends), color=FAINT, linewidth=0.8, zorder=0.5)
        for change in found.movers(NAMED, within=WITHIN):
            at = across.place(np.array([change.place_a])), up.place(np.array([change.place_b]))
            ax.annotate(
                drawable(cut(str(change.name), 40)), (float(at[0][0]), float(at[1][0])), (4, 3),
                textcoords="offset points", fontsize=7, color=SECOND, **PLAIN,
            )  # fmt: skip
    first, second = cut(found.a.name, 60), cut(found.b.name, 60)
    dress(
        ax, "Places in two rankings", "; ".join(found.facts()[2:]), f"Place in {first}", f"Place in {second}"
    )
    return ax
