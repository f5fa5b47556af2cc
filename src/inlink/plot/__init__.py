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

from inlink.plot.against import compare, rank_against_degree
from inlink.plot.differences import diff
from inlink.plot.distributions import degrees, ranks
from inlink.plot.near import neighbourhood
from inlink.plot.orders import orders
from inlink.plot.saving import save
from inlink.plot.sweeps import convergence

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
