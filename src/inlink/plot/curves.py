"""Draw curves: the distributions of degrees and ranks, the convergence of PageRank, the orders of a replay.

In distributions every node is drawn, without bins, which would hide the tail. Degrees are drawn as the complementary
cumulative distribution, P(D ≥ d) over d = 1, 2, …. Ranks are drawn as value over place (Zipf's plot), which is the same
curve with its axes exchanged. Both axes are logarithmic, so that a power law is a straight line. (Newman, "Power laws,
Pareto distributions and Zipf's law", Contemporary Physics 2005, section 2.1, appendix A.)
"""

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from inlink.base.arrays import AnyArray, Float64Array, Int64Array, UInt32Array
from inlink.base.memory import require_memory
from inlink.base.progress import Work, reporting, track
from inlink.base.table import counted
from inlink.errors import ParameterError
from inlink.graph.interop import GraphLike, as_graph
from inlink.plot.scale import Scale
from inlink.plot.style import FAINT, FIRST, SECOND, axes_for, called, dress, label_of, thinned, values_of
from inlink.rank.pagerank import pagerank
from inlink.rank.ranking import Ranking
from inlink.replaying.measures import MEASURES
from inlink.replaying.result import BOUND, GREEDY, LOOK_AHEAD, OPTIMUM, Replay

# Maximum number of points that get dots.
FEW = 50
# Smaller errors are drawn here. Ranks sum to 1, so rounding alone causes errors of this size.
LEAST = 1e-16
DASHES = {GREEDY: ":", LOOK_AHEAD: "--", BOUND: "-.", OPTIMUM: "--"}


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
    name = label_of(name or ranking.algorithm)
    few = -(-len(values) // 100)
    held = (ordered[:few] / ordered[0]).sum() / (ordered / ordered[0]).sum()
    facts = f"{counted(len(values), 'node')}; the best 1% ({few:,}) hold {held:.0%} of all"
    if shown < len(values):
        facts += f"; {len(values) - shown:,} have 0 and are not drawn"
    dress(ax, f"Values of {name}", facts, "Place", name)
    return ax


def convergence(
    graph: GraphLike,
    *,
    damping: float = 0.85,
    tol: float = 1e-9,
    max_iter: int = 1000,
    ax: Axes | None = None,
) -> Axes:
    """Rank a graph by Gauss–Seidel and by the power method, and draw the error after each sweep.

    The dots at the ends are bounds on the L1 errors of the rankings, and so is the whole line of the power method. The
    line of Gauss–Seidel is its own estimate of the error, because it computes a bound only at the end. It runs on one
    thread, so that the picture is the same each time.

    Parameters
    ----------
    graph : Graph, pairs, SciPy matrix, data frame, or graph of NetworkX or igraph
        The graph to rank.
    damping : float
        Damping of PageRank.
    tol : float
        Bound on the L1 error to reach.
    max_iter : int
        Maximum number of sweeps of each method.
    ax : matplotlib.axes.Axes or None
        The axes to draw on; None makes a figure.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    inlink.errors.ParameterError
        If the graph has no nodes, or a parameter is out of range as in :func:`inlink.pagerank`.
    """
    graph = as_graph(graph)
    if not graph.num_nodes:
        raise ParameterError("the graph has no nodes, so there is nothing to draw")
    runs: list[tuple[str, Int64Array, Float64Array]] = []
    for by_power, label in ((False, "Gauss–Seidel"), (True, "Power method")):
        with track(f"PageRank by {label}", None, "sweeps") as shown:
            recorder = _Recorder(shown)
            with reporting(recorder):
                ranking = pagerank(
                    graph, damping=damping, tol=tol, max_iter=max_iter, threads=None if by_power else 1,
                    method="power" if by_power else "gauss-seidel",
                )  # fmt: skip
        bound = float("inf") if ranking.error_bound is None else ranking.error_bound
        # The power method reports the bound of the vector before a round, Gauss–Seidel the error after a sweep.
        begin = int(not by_power)
        at = np.array([*range(begin, begin + len(recorder.errors)), ranking.iterations])
        state = "" if ranking.converged else ", not converged"
        said = f"{label}: error at most {bound:.1e} after {counted(ranking.iterations, 'sweep')}{state}"
        runs.append((said, at, np.array([*recorder.errors, bound])))
    wanted = max(tol, LEAST)
    everything = np.concatenate([errors for _, _, errors in runs])
    most = float(everything[np.isfinite(everything)].max(initial=wanted))
    ax = axes_for(ax)
    for (label, at, errors), colour, style in zip(runs, (FIRST, SECOND), ("-", "--"), strict=True):
        # The last point is a bound and the point before it an estimate, so no line connects them.
        line = slice(None) if at[0] == 0 else slice(-1)
        errors = np.clip(errors, LEAST, most)
        ax.plot(at[line], errors[line], color=colour, linestyle=style, linewidth=1.8)
        ax.plot(at[-1:], errors[-1:], "o", color=colour, markersize=6, clip_on=False)
        # This line is for the legend.
        ax.plot([], [], color=colour, linestyle=style, marker="o", label=label)
    ax.axhline(wanted, color=FAINT, linewidth=0.8, linestyle=":", zorder=0.5)
    Scale(max(LEAST, min(wanted, float(everything.min()))), most, None).apply(ax, "y")
    ax.set_xlim(0, 1.03 * max(1, *(int(at.max()) for _, at, _ in runs)))
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    dress(
        ax,
        "Convergence of PageRank",
        f"{called(graph)}; damping {damping:g}, until {tol:g}. Dots and the dashed line are bounds on the error, "
        "the other line is an estimate.",
        "Sweeps over all arcs",
        "L1 error",
    )
    ax.legend(loc="best", frameon=False, fontsize=9)
    return ax


class _Recorder(Work):
    """Keeps the errors that PageRank reports as its progress, and passes them on to the task that is shown."""

    def __init__(self, shown: Work) -> None:
        super().__init__(shown.label, shown.total, shown.unit)
        self.shown = shown
        self.errors: list[float] = []

    def task(self, label: str, total: float | None, unit: str) -> Work:
        """Return this recorder, because PageRank has only one task."""
        return self

    def advance(self, amount: float, note: str = "") -> None:
        """Record the error after a sweep. It is at the end of the note."""
        super().advance(amount, note)
        self.errors.append(float(note.rpartition(" ")[2]))
        self.shown.advance(amount, note)


def orders(
    replay: Replay, *, measure: str = "pagerank", hosts: str | None = None, ax: Axes | None = None
) -> Axes:
    """Draw the share that each order of a replay has collected, against its fetches.

    A line is the mean over seed sets, and the band around it reaches one standard deviation to each side. The lines
    that know the whole graph are grey.

    Parameters
    ----------
    replay : Replay
        The replay to draw.
    measure : str
        One of ``replay.measures``.
    hosts : str or None
        One of ``replay.hosts``; None is the first.
    ax : matplotlib.axes.Axes or None
        The axes to draw on; None makes a figure.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    inlink.errors.ParameterError
        If there is no such measure or kind of hosts, or no seed set was replayed whole.
    """
    if measure not in replay.measures:
        raise ParameterError(f"`measure` must be one of {', '.join(replay.measures)}; got {measure!r}")
    hosts = replay.hosts[0] if hosts is None else hosts
    if hosts not in replay.hosts:
        raise ParameterError(f"`hosts` must be one of {', '.join(replay.hosts)}; got {hosts!r}")
    if not replay.seeds:
        raise ParameterError("no seed set was replayed whole: there is nothing to draw")
    ax = axes_for(ax)
    colours = iter(colormaps["tab10"].colors * (1 + len(replay.orders) // 10))  # type: ignore[attr-defined]
    for order in replay.orders:
        line = order in DASHES
        runs = [run for run in replay.runs if run.order == order and (line or run.hosts == hosts)]
        # A line has only some of the measures.
        runs = [run for run in runs if measure in run.measures]
        if not runs:
            continue
        points = np.array([run.measures[measure].points for run in runs])
        shares = np.array([run.budget / run.reached for run in runs]).mean()
        at = 100 * shares * np.arange(1, points.shape[1] + 1) / points.shape[1]
        mean, spread = points.mean(axis=0), points.std(axis=0, ddof=1) if len(runs) > 1 else 0.0
        colour = FAINT if line else next(colours)
        ax.plot(at, mean, color=colour, linestyle=DASHES.get(order, "-"), linewidth=1.6, label=order)
        if not line:
            ax.fill_between(at, mean - spread, mean + spread, color=colour, alpha=0.15, linewidth=0)
    ax.set_xlim(0, None)
    ax.set_ylim(0, 1)
    named = "real hosts" if hosts == "real" else "one host" if hosts == "all" else f"hosts of {hosts} pages"
    sets = counted(len(replay.seeds), "seed set")
    dress(
        ax,
        f"Pages of {replay.web} that each order collects",
        f"{counted(replay.pages, 'page')}, {counted(replay.links, 'link')}; {named}. Means over {sets}, with one "
        "standard deviation to each side.",
        "Fetches, in percent of the pages that the seeds reach",
        MEASURES[measure],
    )
    ax.legend(loc="best", frameon=False, fontsize=9)
    return ax
