"""Draw the places of two rankings against each other, with the names of the nodes that moved the most."""

import numpy as np
from matplotlib.axes import Axes

from inlink.plot.against import scatter
from inlink.plot.style import FAINT, PLAIN, SECOND, axes_for, cut, drawable, dress
from inlink.sources.diff import Diff

NAMED = 8
WITHIN = 100


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
