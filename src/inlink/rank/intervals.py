"""Compute intervals for many probabilities at once, from the number of independent trials in which each event happened.

Event v has the probability b_v. Several events can happen in one trial, but on average at most ρ of them: Σ_v b_v ≤ ρ.
Of t trials, c have event v. Chernoff's bound for a binomial variable says, with b̂ = c/t and the divergence
kl(x, y) = x·ln(x/y) + (1 − x)·ln((1 − x)/(1 − y)), that on each side of b_v ::

    P(t·kl(b̂, b_v) ≥ L) ≤ exp(−L)                                                                        (1)

L may depend on b_v. With L = ln(2rρ/(δ·b_v)), both sides fail with a probability of at most δ·b_v/(rρ), and with
Σ_v b_v ≤ ρ some event fails with a probability of at most δ/r. So if the counts are looked at r times, after numbers of
trials that were fixed beforehand, then with a probability of at least 1 − δ all events at all these times satisfy ::

    t·kl(b̂, b_v) < ln(C/b_v),      C = 2rρ/δ                                                             (2)

This holds for any number of events, and a rule that stops at one of these times may depend on the counts. Solved for
b_v, (2) is an interval that depends on c, t and C only.

Sources: Chernoff, "A measure of asymptotic efficiency for tests of a hypothesis based on the sum of observations", Ann.
Math. Statist. 1952; that rare events need few trials together because Σ b_v is bounded: Pellegrina & Vandin, "SILVAN:
estimating betweenness centralities with progressive sampling and non-uniform Rademacher bounds", TKDD 2024.
"""

import math
from typing import Any

import numpy as np

from inlink.base.arrays import AnyArray, Float64Array

__all__ = ["intervals", "planned_trials"]

# The logarithm in (2) is increased by this number, because kl and the probabilities of paths are rounded.
_ROUNDING = 1e-6
_HALVINGS = 60
# Each planned number of trials is this factor times the one before. With a smaller factor, sampling stops sooner, but
# there are more looks, which make the intervals wider.
_GROWTH = 1.15


def _divergence(x: AnyArray, y: AnyArray) -> Any:
    """kl(x, y) for 0 ≤ x ≤ 1 and 0 < y < 1."""
    with np.errstate(divide="ignore", invalid="ignore"):
        left = np.where(x > 0, x * np.log(x / y), 0.0)
        right = np.where(x < 1, (1 - x) * (np.log1p(-x) - np.log1p(-y)), 0.0)
    return left + right


def intervals(counts: AnyArray, trials: int, constant: float) -> tuple[Float64Array, Float64Array]:
    """Return the ends of the intervals (2).

    Parameters
    ----------
    counts : number[k]
        How many trials had each event, from 0 to ``trials``.
    trials : int
        The number of trials t, at least 1.
    constant : float
        C in (2).

    Returns
    -------
    low, high : float64[k]
        Each with low ≤ counts / trials ≤ high.
    """
    different, place = np.unique(counts, return_inverse=True)
    share = different / trials
    odds = math.log(constant) + _ROUNDING

    def outside(b: Float64Array) -> Any:
        return trials * _divergence(share, b) >= odds - np.log(b)

    # If b grows above the share, the left side of (2) grows and the right side shrinks.
    inner, high = share.copy(), np.ones(len(share))
    for _ in range(_HALVINGS):
        middle = (inner + high) / 2
        beyond = outside(np.clip(middle, 1e-300, 1 - 1e-16))
        high, inner = np.where(beyond, middle, high), np.where(beyond, inner, middle)
    # Below the share, the difference of the sides changes its sign once, below (c - 1)/(t - 1). For c < 2 it does not.
    low, inner = np.zeros(len(share)), np.maximum(different - 1, 0) / max(trials - 1, 1)
    for _ in range(_HALVINGS):
        middle = (inner + low) / 2
        beyond = (different >= 2) & outside(np.clip(middle, 1e-300, 1 - 1e-16))
        low, inner = np.where(beyond, middle, low), np.where(beyond, inner, middle)
    low = np.where(different >= 2, low, 0.0)
    return np.minimum(low, share)[place], np.maximum(high, share)[place]


def planned_trials(width: float, odds: float) -> list[int]:
    """Return the numbers of trials after which the counts are looked at.

    Parameters
    ----------
    width : float
        The largest distance wanted between a share and the ends of its interval: above 0 and at most 1/2.
    odds : float
        2ρ/δ.

    Returns
    -------
    list of int
        Increasing. At the first one, the interval of a count of 0 is narrow enough. At the last one, that of any count
        is. With r numbers, C is r · ``odds``.
    """
    grid = np.unique(np.concatenate([np.geomspace(1e-12, 0.5, 2000), np.linspace(0.001, 0.999, 999)]))
    grid = grid[grid < 1 - 1e-9]
    above, below = grid[grid + width < 1] + width, np.maximum(grid - width, 0)
    # The divergence between each probability and a share that is `width` above or below it: the smaller of the two.
    apart = np.full(len(grid), np.inf)
    apart[: len(above)] = _divergence(above, grid[: len(above)])
    apart = np.where(grid >= width, np.minimum(apart, _divergence(below, grid)), apart)
    looks = 1
    while True:
        constant = math.log(looks * odds) + _ROUNDING
        first = math.ceil((constant - math.log(width)) / -math.log1p(-width))
        last = float(np.max((constant - np.log(grid)) / apart))
        needed = 1 + max(math.ceil(math.log(last / first) / math.log(_GROWTH)), 0)
        if needed <= looks:
            break
        looks = needed
    return sorted({math.ceil(first * _GROWTH**look) for look in range(looks)})
