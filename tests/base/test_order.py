"""Sorted arrays without duplicates, beside NumPy's own function, and ranges in slices."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inlink.base.arrays import distinct, slices


@given(st.lists(st.integers(0, 20)), st.sampled_from([np.uint8, np.uint32, np.int64]))
def test_distinct_values_are_those_of_numpy(values, dtype):
    given_values = np.array(values, dtype)
    found = distinct(given_values)
    assert found.dtype == dtype
    assert found.tolist() == np.unique(given_values).tolist()
    assert given_values.tolist() == values


@pytest.mark.parametrize("values", [[], [2**64 - 1, 0, 2**64 - 1]])
def test_distinct_values_at_the_ends(values):
    assert distinct(np.array(values, np.uint64)).tolist() == sorted(set(values))


@given(st.integers(0, 20), st.integers(1, 5), st.integers(0, 20))
def test_slices_cover_a_range_once_and_in_order(end, size, begin):
    parts = list(slices(end, size, begin))
    assert [place for part in parts for place in range(part.start, part.stop)] == list(range(begin, end))
    assert [part.stop - part.start for part in parts[:-1]] == [size] * len(parts[:-1])
