"""Draw how fast PageRank converges: the error after each sweep, for both of its methods."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from inlink.base.arrays import Float64Array, Int64Array
from inlink.base.progress import Work, reporting, track
from inlink.base.table import counted
from inlink.errors import ParameterError
from inlink.graph.interop import GraphLike, as_graph
from inlink.plot.scale import Scale
from inlink.plot.style import FAINT, FIRST, SECOND, axes_for, dress
from inlink.plot.values import called
from inlink.rank.pagerank import pagerank

# Smaller errors are drawn here. Ranks sum to 1, so rounding alone causes errors of this size.
LEAST = 1e-16


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
    for method, label in (("gauss-seidel", "Gauss–Seidel"), ("power", "Power method")):
        with track(f"PageRank by {label}", None, "sweeps") as shown:
            recorder = _Recorder(shown)
            with reporting(recorder):
                ranking = pagerank(
                    graph, damping=damping, tol=tol, max_iter=max_iter, threads=1 if method != "power" else None,
                    method="power" if method == "power" else "gauss-seidel",
                )  # fmt: skip
        bound = float("inf") if ranking.error_bound is None else ranking.error_bound
        # The power method reports the bound of the vector before a round, Gauss–Seidel the error after a sweep.
        begin = 0 if method == "power" else 1
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
    """Keeps the errors that PageRank reports as its progress, and passes them on to the task that is shown.

    They have two digits, which is finer than a line in a picture. A recorder is its own reporter.
    """

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
