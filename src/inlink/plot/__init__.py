"""The pictures' door: what graphs and rankings look like, drawn by Matplotlib.

Each function takes a Graph, a Ranking or both, draws on the Axes that it is given or on a Figure of its own, and
returns the Axes; :func:`save` writes it. None of them needs a display or touches pyplot.
"""

from inlink.errors import MissingExtraError

try:
    import matplotlib as _matplotlib
except ModuleNotFoundError as _error:
    if _error.name != "matplotlib":
        raise
    raise MissingExtraError("Matplotlib is not installed: pip install 'inlink[plot]'") from None

from inlink.plot.against import compare, rank_against_degree
from inlink.plot.distributions import degrees, ranks
from inlink.plot.near import neighbourhood
from inlink.plot.saving import save
from inlink.plot.sweeps import convergence

__all__ = ["compare", "convergence", "degrees", "neighbourhood", "rank_against_degree", "ranks", "save"]
del _matplotlib
