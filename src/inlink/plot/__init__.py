"""Pictures of graphs and rankings, drawn by Matplotlib.

Each function takes a Graph, a Ranking or both, draws on the given Axes or on a new Figure, and returns the Axes.
:func:`save` writes it to a file. None of the functions needs a display or uses pyplot.
"""

from inlink.errors import MissingExtraError

try:
    import matplotlib as _matplotlib
except ModuleNotFoundError as _error:
    if _error.name != "matplotlib":
        raise
    raise MissingExtraError("Matplotlib is not installed: pip install 'inlink[plot]'") from None

from inlink.plot.against import compare, diff, rank_against_degree
from inlink.plot.curves import convergence, degrees, orders, ranks
from inlink.plot.near import neighbourhood
from inlink.plot.style import save

__all__ = [
    "compare",
    "convergence",
    "degrees",
    "diff",
    "neighbourhood",
    "orders",
    "rank_against_degree",
    "ranks",
    "save",
]
del _matplotlib
