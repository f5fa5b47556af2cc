"""Agreement of two rankings: correlations over common nodes, overlap of the best nodes, rank-biased overlap.

Sources: Spearman, "The proof and measurement of association between two things", 1904; Kendall, "The treatment of ties
in ranking problems", Biometrika 1945 (τ-b); Webber, Moffat & Zobel, "A similarity measure for indefinite rankings",
ACM TOIS 2010.
"""

import numpy as np

from inlink.base.arrays import AnyArray, Int64Array

__all__ = ["common_at", "kendall", "rank_biased_overlap", "spearman"]

# Places that together weigh less than this are not summed.
_NEGLIGIBLE = 1e-18


def spearman(one: AnyArray, other: AnyArray) -> float | None:
    """Return Spearman's ρ of two columns, the correlation of their places; equal values share the mean place.

    None if one of the columns has only one value.
    """
    from scipy.stats import rankdata

    middle = (len(one) + 1) / 2
    a, b = rankdata(one) - middle, rankdata(other) - middle
    size = float(np.sqrt(a @ a) * np.sqrt(b @ b))
    return float(a @ b) / size if size else None


def kendall(one: AnyArray, other: AnyArray) -> float | None:
    """Return Kendall's τ-b of two columns, in O(n log n); None if one of the columns has only one value."""
    from scipy.stats import kendalltau

    if not len(one) or one.min() == one.max() or other.min() == other.max():
        return None
    return float(kendalltau(one, other).statistic)


def common_at(one: Int64Array, other: Int64Array, depth: int) -> Int64Array:
    """Count what two lists have in common up to each depth.

    Parameters
    ----------
    one, other : int64[k]
        The positions, from 1, that each of the k common items has in either list.
    depth : int

    Returns
    -------
    int64[depth + 1]
        At d, how many items are among the first d of both lists.
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
        p, between 0 and 1 and neither of them.

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
