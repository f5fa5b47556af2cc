"""Draw the distributions of degrees and ranks. Every node is drawn, without bins, which would hide the tail.

Degrees are drawn as the complementary cumulative distribution, P(D ≥ d) over d = 1, 2, …. Ranks are drawn as value over
place (Zipf's plot), which is the same curve with its axes exchanged. Both axes are logarithmic, so that a power law is
a straight line. (Newman, "Power laws, Pareto distributions and Zipf's law", Contemporary Physics 2005, section 2.1,
appendix A.)
"""

import numpy as np
from matplotlib.axes import Axes

from inlink.base.arrays import AnyArray, Float64Array, UInt32Array
from inlink.base.memory import require_memory
from inlink.base.table import counted
from inlink.errors import ParameterError
from inlink.graph.interop import GraphLike, as_graph
from inlink.plot.scale import Scale
from inlink.plot.style import FIRST, SECOND, axes_for, cut, dress
from inlink.plot.values import called, thinned, values_of
from inlink.rank.ranking import Ranking, title_of

# Maximum number of points that get dots.
FEW = 50


def degrees(graph: GraphLike, *, ax: Axes | None = None) -> Axes:
    """Draw the distributions of indegrees and outdegrees.

    Parameters
    ----------
    graph : Graph, pairs, SciPy matrix, data frame, or graph of NetworkX or igraph
        The graph to draw.
    ax : matplotlib.axes.Axes or None
        The axes to draw on; None makes a figure.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    inlink.errors.ParameterError
        If the graph has no arcs.
    """
    graph = as_graph(graph)
    if not graph.num_arcs:
        raise ParameterError("the graph has no arcs, so there is nothing to draw")
    require_memory(24 * graph.num_nodes, f"a picture of {graph.num_nodes:,} nodes")
    ax = axes_for(ax)
    lines = [
        ("inlinks", graph.indegrees, FIRST, "-"),
        ("outlinks", graph.outdegrees, SECOND, "--"),
    ]
    least, most = 1.0, 1
    for what, degrees_of_nodes, colour, style in lines:
        x, share = _at_least(degrees_of_nodes)
        none = int(np.count_nonzero(degrees_of_nodes == 0))
        label = f"{what}: at most {x[-1]:,}; {counted(none, 'node')} ({none / graph.num_nodes:.0%}) have none"
        ax.plot(x, share, drawstyle="steps-pre", color=colour, linestyle=style, linewidth=1.8, label=label,
                marker="o" if len(x) <= FEW else "", markersize=3.5)  # fmt: skip
        least, most = min(least, float(share[-1])), max(most, int(x[-1]))
    Scale(1, most, None).apply(ax, "x")
    Scale(least, 1, None).apply(ax, "y")
    mean = graph.num_arcs / graph.num_nodes
    dress(
        ax,
        "Numbers of links of the nodes",
        f"{called(graph)}, {mean:.1f} a node",
        "Links",
        "Share of nodes with at least as many links",
    )
    ax.legend(loc="best", frameon=False, fontsize=9)
    return ax


def _at_least(degrees: UInt32Array) -> tuple[AnyArray, Float64Array]:
    """Return the degrees above 0 that occur, int64[k], and the share of nodes with at least each, float64[k]."""
    counts = np.bincount(degrees)
    share = counts[::-1].cumsum()[::-1] / len(degrees)
    x = np.flatnonzero(counts)
    x = x[x > 0]
    x = x[thinned(len(x))]
    return x, share[x]


def ranks(ranking: Ranking, *, name: str | None = None, ax: Axes | None = None) -> Axes:
    """Draw the values of a ranking over their places.

    Parameters
    ----------
    ranking : Ranking
        The ranking to draw.
    name : str or None
        The label; None is the algorithm.
    ax : matplotlib.axes.Axes or None
        The axes to draw on; None makes a figure.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    inlink.errors.ParameterError
        If no value is above 0, or a value is negative, infinite or not a number.
    """
    values = values_of(ranking)
    scale = Scale.of(values)
    ordered = np.sort(values)[::-1]
    shown = int(np.count_nonzero(ordered >= scale.low))
    if not ordered[0] or not shown:
        raise ParameterError("all ranks are 0, so there is nothing to draw")
    ax = axes_for(ax)
    places = thinned(shown)
    ax.plot(places + 1, ordered[places], color=FIRST, linewidth=1.8,
            marker="o" if len(places) <= FEW else "", markersize=3.5)  # fmt: skip
    Scale(1, shown, None).apply(ax, "x")
    Scale(scale.low, scale.high, None).apply(ax, "y")
    name = cut(title_of(name or ranking.algorithm), 40)
    few = -(-len(values) // 100)
    held = (ordered[:few] / ordered[0]).sum() / (ordered / ordered[0]).sum()
    facts = f"{counted(len(values), 'node')}; the best 1% ({few:,}) hold {held:.0%} of all"
    if shown < len(values):
        facts += f"; {len(values) - shown:,} have 0 and are not drawn"
    dress(ax, f"Values of {name}", facts, "Place", name)
    return ax
