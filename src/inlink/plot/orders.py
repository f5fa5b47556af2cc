"""Draw the pages that each order of a replay collects: a line for each order, with its spread over seed sets."""

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes

from inlink.base.table import counted
from inlink.errors import ParameterError
from inlink.plot.style import FAINT, axes_for, dress
from inlink.replaying.measures import MEASURES
from inlink.replaying.result import BOUND, GREEDY, LOOK_AHEAD, Replay

DASHES = {GREEDY: ":", LOOK_AHEAD: "--", BOUND: "-."}


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
        # The lines have no freshness.
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
        MEASURES[measure].capitalize(),
    )
    ax.legend(loc="best", frameon=False, fontsize=9)
    return ax
