"""The order of packed arcs against NumPy's."""

import numpy as np
import pytest
from hypothesis import given, settings
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
def test_arcs_get_the_order_of_numpy(arcs):
    expected = np.sort(arcs)
    by_digits, by_either = arcs.copy(), arcs.copy()
    sort_digits(by_digits, np.empty_like(arcs))
    sort_arcs(by_either)
    assert np.array_equal(by_digits, expected)
    assert np.array_equal(by_either, expected)


@pytest.mark.parametrize("length", [0, 1, 1_023, 1_024, 200_000])
def test_arcs_of_a_graph_are_sorted_within_a_longer_array(length):
    random = np.random.default_rng(length)
    sources, targets = (random.integers(0, 30_000, length + 20, dtype=np.uint64) for _ in range(2))
    arcs = sources << np.uint64(32) | targets
    whole = arcs.copy()
    sort_arcs(whole[10 : 10 + length])
    assert np.array_equal(whole[10 : 10 + length], np.sort(arcs[10 : 10 + length]))
    # Nothing beside it is touched.
    assert np.array_equal(np.delete(whole, np.s_[10 : 10 + length]), np.delete(arcs, np.s_[10 : 10 + length]))
