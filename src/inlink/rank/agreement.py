"""Agreement of two rankings: correlations over common nodes, overlap of the best nodes, rank-biased overlap.

Sources: Spearman, "The proof and measurement of association between two things", 1904; Kendall, "The treatment of ties
in ranking problems", Biometrika 1945 (τ-b); Webber, Moffat & Zobel, "A similarity measure for indefinite rankings",
ACM TOIS 2010.
"""

import numpy as np

from inlink.base.arrays import AnyArray, Float64Array, Int64Array

# Places that together weigh less than this are not summed.
_NEGLIGIBLE = 1e-18


def spearman(one: AnyArray, other: AnyArray) -> float | None:
    """Return Spearman's ρ of two columns, the correlation of their places; equal values share the mean place.

    None if one of the columns has only one value.
    """
    middle = (len(one) + 1) / 2
    a, b = _places(one) - middle, _places(other) - middle
    size = float(np.sqrt(a @ a) * np.sqrt(b @ b))
    return float(a @ b) / size if size else None


def _places(values: AnyArray) -> Float64Array:
    """Return the places of values from 1, float64[n]; equal values share the mean of their places."""
    _, group, sizes = np.unique(values, return_inverse=True, return_counts=True)
    places: Float64Array = (np.cumsum(sizes) - (sizes - 1) / 2)[group]
    return places


def kendall(one: AnyArray, other: AnyArray) -> float | None:
    """Return Kendall's τ-b of two columns, in O(n log² n); None if one of the columns has only one value.

    Source: Knight, "A computer method for calculating Kendall's tau with ungrouped data", JASA 1966.
    """
    if not len(one) or one.min() == one.max() or other.min() == other.max():
        return None
    a, b = (np.unique(values, return_inverse=True)[1].astype(np.int64) for values in (one, other))
    order = np.lexsort((b, a))
    pairs = len(a) * (len(a) - 1) // 2
    tied_a, tied_b, tied_both = (_ties(groups) for groups in (a, b, a * (int(b.max()) + 1) + b))
    surplus = pairs - tied_a - tied_b + tied_both - 2 * _inversions(b[order])
    share = surplus / np.sqrt(float(pairs - tied_a)) / np.sqrt(float(pairs - tied_b))
    return float(np.clip(share, -1, 1))


def _ties(groups: Int64Array) -> int:
    """Return the number of pairs of equal values."""
    counts = np.unique(groups, return_counts=True)[1]
    return int((counts * (counts - 1) // 2).sum())


def _inversions(values: Int64Array) -> int:
    """Count the pairs with the larger value first; values int64[n] are at least 0.

    Two values compare by the highest bit in which they differ. So for each bit, pairs are counted among the values with
    the same higher bits.
    """
    total = 0
    for bit in reversed(range(int(values.max()).bit_length())):
        upper = values >> (bit + 1)
        order = np.argsort(upper, kind="stable")
        upper, values = upper[order], values[order]
        ones = values >> bit & 1
        before = np.cumsum(ones) - ones
        starts = np.flatnonzero(np.diff(upper, prepend=-1))
        here = before - np.repeat(before[starts], np.diff(np.append(starts, len(values))))
        total += int(here[ones == 0].sum())
    return total


def common_at(one: Int64Array, other: Int64Array, depth: int) -> Int64Array:
    """Count the common items of two lists up to each depth.

    Parameters
    ----------
    one, other : int64[k]
        The positions, from 1, that each of the k common items has in either list.
    depth : int
        The largest depth, at least 0.

    Returns
    -------
    int64[depth + 1]
        At d, the number of items among the first d of both lists.
    """
    deeper = np.maximum(one, other)
    return np.cumsum(np.bincount(deeper[deeper <= depth], minlength=depth + 1))


def rank_biased_overlap(
    one: Int64Array, other: Int64Array, lengths: tuple[int, int], persistence: float
) -> float:
    """Return the extrapolated rank-biased overlap, RBO_EXT, of two lists without ties.

    The overlap of the first d items weighs pᵈ. Beyond the ends of the lists, the overlap at their ends is assumed to
    go on: equation (32) of Webber et al., which also holds for lists of two lengths.

    Parameters
    ----------
    one, other : int64[k]
        The positions, from 1, that each of the k common items has in either list.
    lengths : (int, int)
        The lengths of the lists.
    persistence : float
        p, above 0 and below 1.

    Returns
    -------
    float
        From 0, nothing in common, to 1, the same list; 0 if a list is empty.
    """
    short, long = sorted(lengths)
    if not short:
        return 0.0
    p = persistence
    depth = min(long, int(np.ceil(np.log(_NEGLIGIBLE * (1 - p)) / np.log(p))))
    common = common_at(one, other, long)
    at = np.arange(1, depth + 1)
    share = common[1 : depth + 1] / at
    beyond = at > short
    share[beyond] += common[short] * (at[beyond] - short) / (short * at[beyond])
    ends = (common[long] - common[short]) / long + common[short] / short
    return float((1 - p) / p * (share @ p ** at.astype(np.float64)) + ends * p**long)
