"""Find the places of a ranking that are proven by its error bound.

Let ε bound the L1 distance between the values and the exact ones. The errors of two nodes add up to at most ε, so two
nodes whose values are more than ε apart stand in the exact ranking in the same order. A place is *certain* if the
node there is more than ε below the node before it and more than ε above the node after it. Then the exact ranking has
this node at this place.

Samples have an interval for each node instead. Larger values have intervals whose two ends are both larger. A place is
certain, with the confidence of the intervals, if its interval overlaps neither that of the node before it nor that of
the node after it.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from inlink.base.arrays import BoolArray, Float64Array, Int64Array, slices

_BLOCK = 1 << 16
_SHOWN = 5
"""Stretches of places that one line names."""


class FirstPlaces(NamedTuple):
    """The first places of a ranking.

    Attributes
    ----------
    nodes : int64[k]
        The nodes at these places, best first; nodes with the same value in the order of their numbers.
    certain : bool[k]
        Whether each place is certain.
    gap : float
        The smallest difference above 0 that keeps a place from being certain; ``inf`` if there is none.
    """

    nodes: Int64Array
    certain: BoolArray
    gap: float

    def ties(self) -> list[tuple[int, int]]:
        """The stretches of places that are not certain, each as its first and last place, from 1."""
        open_places = np.flatnonzero(~self.certain) + 1
        stretches = np.split(open_places, np.flatnonzero(np.diff(open_places) > 1) + 1)
        return [(int(places[0]), int(places[-1])) for places in stretches if len(places)]

    def summary(self) -> str:
        """Return in one line how many places are certain, and which places are not."""
        places, sure = len(self.certain), int(self.certain.sum())
        if sure == places:
            return "the first place is certain" if places == 1 else f"the first {places:,} places are certain"
        ties = [f"{first}" if first == last else f"{first} to {last}" for first, last in self.ties()]
        shown = ", ".join(ties[:_SHOWN]) + (f" and {len(ties) - _SHOWN} more" if len(ties) > _SHOWN else "")
        return f"{sure:,} of the first {places:,} places are certain; no proven order at places {shown}"


def best_nodes(values: Float64Array, count: int) -> Int64Array:
    """Return the nodes with the largest values, int64[min(count, n)]; equal values in the order of node numbers."""
    if not 0 < count <= _BLOCK:
        return _best(values, count)
    best = _best(values[:_BLOCK], count)
    # A later value must exceed the least so far, so few values of a block are compared any further.
    for block in slices(len(values), _BLOCK, _BLOCK):
        better = np.flatnonzero(values[block] > values[best[-1]])
        nodes = np.concatenate([best, better + block.start])
        best = nodes[_best(values[nodes], count)] if len(better) else best
    return best


def _best(values: Float64Array, count: int) -> Int64Array:
    """Do the same as :func:`best_nodes`, with a copy of all values."""
    count = min(count, len(values))
    if count == 0:
        return np.empty(0, np.int64)
    least = np.partition(values, len(values) - count)[len(values) - count]
    above = np.flatnonzero(values > least)
    level = np.flatnonzero(values == least)[: count - len(above)]
    return np.concatenate([above[np.argsort(-values[above], kind="stable")], level])


def certain_places(values: Float64Array, bound: float, count: int) -> FirstPlaces:
    """Return the first ``count`` places, and which of them are certain.

    Parameters
    ----------
    values : float64[n]
        The values of the ranking.
    bound : float
        ε, a bound on the L1 distance to the exact values.
    count : int
        At least 0; places beyond n are left out.
    """
    nodes = best_nodes(values, count + 1)
    gaps = -np.diff(values[nodes])
    return _first_places(nodes, gaps, gaps > bound, count)


def separate_places(
    values: Float64Array,
    intervals_of: Callable[[Float64Array], tuple[Float64Array, Float64Array]],
    count: int,
) -> FirstPlaces:
    """Return the first ``count`` places, and which of them are certain by the intervals of their values.

    Parameters
    ----------
    values : float64[n]
        The values of the ranking.
    intervals_of : callable
        Returns the lower and the upper ends of the intervals of values; both increase with the value.
    count : int
        At least 0; places beyond n are left out.
    """
    nodes = best_nodes(values, count + 1)
    low, high = intervals_of(values[nodes])
    return _first_places(nodes, -np.diff(values[nodes]), low[:-1] > high[1:], count)


def _first_places(nodes: Int64Array, gaps: Float64Array, separate: BoolArray, count: int) -> FirstPlaces:
    """Return the first places. ``separate`` tells for each of the best nodes whether the next one is surely worse."""
    places = min(count, len(nodes))
    apart = np.ones(places + 1, bool)
    apart[1 : len(gaps) + 1] = separate
    missing = gaps[(gaps > 0) & ~separate]
    return FirstPlaces(nodes[:places], apart[:-1] & apart[1:], float(missing.min(initial=np.inf)))
