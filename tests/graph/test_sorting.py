"""The order of packed arcs against NumPy's."""

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from inlink.graph.kernels.arcs import sort_digits
from inlink.graph.ranges import sort_arcs


@st.composite
def packed_arcs(draw):
    """Arcs that differ in some bits only, with repeats."""
    mask = sum(1 << bit for bit in draw(st.sets(st.integers(0, 63))))
    fixed = draw(st.integers(0, 2**64 - 1)) & ~mask
    length = draw(st.sampled_from([1, 2, 3, 100, 5_000]))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    arcs = random.integers(0, 2**64, length, dtype=np.uint64, endpoint=False)
    arcs[: length // 3] = arcs[length // 2 : length // 2 + length // 3]
    return arcs & np.uint64(mask) | np.uint64(fixed)


@settings(max_examples=150, deadline=None)
@given(packed_arcs())
@example(np.random.default_rng(1).integers(0, 2**45, 200_000, dtype=np.uint64))
def test_arcs_get_the_order_of_numpy(arcs):
    expected = np.sort(arcs)
    by_digits = arcs.copy()
    sort_digits(by_digits, np.empty_like(arcs))
    assert np.array_equal(by_digits, expected)
    # Nothing beside the arcs is touched.
    longer = np.pad(arcs, 10, constant_values=3)
    sort_arcs(longer[10:-10], np.empty(0))
    assert np.array_equal(longer, np.pad(expected, 10, constant_values=3))
    # Weights follow their arcs, and equal arcs are in the order of their weights if that is asked for.
    weights = np.arange(len(arcs), 0, -1, dtype=np.float64)
    for by_weight in (False, True):
        ordered, moved = sort_arcs(arcs, weights, by_weight=by_weight)
        assert np.array_equal(ordered, expected)
        assert np.array_equal(arcs[(len(arcs) - moved).astype(int)], expected)
    assert (moved[1:][ordered[1:] == ordered[:-1]] > moved[:-1][ordered[1:] == ordered[:-1]]).all()
