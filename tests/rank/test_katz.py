import re

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from inlink import Graph
from inlink.errors import ParameterError
from inlink.rank.katz import katz
from strategies import Arcs, arcs

both = st.one_of(arcs(min_nodes=1), arcs(min_nodes=1, weighted=True))


def radius(A: np.ndarray) -> float:
    """λ₁, by the strong components: the eigenvalues of nilpotent parts are not computed well."""
    _, label = scipy.sparse.csgraph.connected_components(scipy.sparse.csr_array(A), connection="strong")
    return max(
        (float(np.abs(np.linalg.eigvals(A[np.ix_(label == c, label == c)])).max()) for c in set(label)),
        default=0.0,
    )


def solved(A: np.ndarray, alpha: float) -> np.ndarray:
    """((I − αAᵀ)⁻¹ − I)·1, the closed form."""
    one = np.eye(len(A))
    return (np.linalg.inv(one - alpha * A.T) - one) @ np.ones(len(A))


@given(both, st.sampled_from([0.0, 0.1, 0.5, 0.9, 0.99]), st.sampled_from([0.5, 1.0, 3.0]), st.booleans())
def test_it_is_the_closed_form_and_the_bound_holds(a: Arcs, share: float, beta: float, normalized: bool):
    A = a.dense()
    alpha = share / max(radius(A), 0.5)
    ours = katz(a.graph(), alpha=alpha, beta=beta, tol=1e-8, normalized=normalized)
    exact = (solved(A, alpha) + 1) * beta
    if normalized:
        exact /= np.linalg.norm(exact)
    assert ours.converged
    assert np.abs(ours.values - exact).sum() <= ours.error_bound + 1e-12 * exact.sum()
    assert ours.error_bound <= 2.1e-8 * exact.sum()
    np.testing.assert_allclose(ours.values, exact, rtol=2.1e-8)


@given(both, st.integers(0, 60))
def test_an_unconverged_ranking_says_so_and_its_bound_holds(a: Arcs, rounds: int):
    A = a.dense()
    alpha = 0.95 / max(radius(A), 0.5)
    for normalized in (False, True):
        ours = katz(a.graph(), alpha=alpha, tol=1e-15, max_iter=rounds, normalized=normalized)
        exact = solved(A, alpha) + 1
        exact /= np.linalg.norm(exact) if normalized else 1
        assert np.abs(ours.values - exact).sum() <= ours.error_bound + 1e-11 * exact.sum()
        assert not ours.converged
        assert ours.iterations <= rounds


@given(both, st.sampled_from([1.0, 1.0001, 1.5, 40.0]))
def test_an_alpha_that_is_not_below_is_refused_with_the_eigenvalue(a: Arcs, factor: float):
    largest = radius(a.dense())
    if largest == 0:
        return
    with pytest.raises(ParameterError, match="is not below 1/λ₁") as caught:
        katz(a.graph(), alpha=factor * (1 + 1e-9) / largest)
    found = [
        float(x)
        for x in re.findall(r"is (?:between )?([\d.e+-]+)(?: and ([\d.e+-]+))?;", str(caught.value))[0]
        if x
    ]
    assert found[0] * (1 - 1e-5) <= largest <= found[-1] * (1 + 1e-5)
    assert found[-1] <= found[0] * 1.0011
    below = float(re.search(r"an alpha below ([\d.e+-]+)$", str(caught.value))[1])
    katz(a.graph(), alpha=below * 0.999)
    assert below <= 1 / largest * (1 + 1e-12)


@pytest.mark.slow
def test_near_the_limit_it_takes_few_rounds():
    rng = np.random.default_rng(0)
    A = scipy.sparse.csr_array((rng.random((400, 400)) < 0.02).astype(float))
    alpha = 0.999 / radius(A.toarray())
    ours = katz(A, alpha=alpha, tol=1e-8, normalized=False)
    assert ours.converged
    assert ours.iterations < 200
    np.testing.assert_allclose(ours.values, solved(A.toarray(), alpha) + 1, rtol=2e-8)


def test_it_stops_at_the_limit_of_rounding():
    loop = Graph.from_arcs([(0, 1), (1, 0), (1, 2)])
    ours = katz(loop, alpha=1 - 1e-9, tol=1e-12, normalized=False)
    assert not ours.converged
    assert ours.iterations < 1000
    assert 0 < ours.error_bound < ours.values.sum() * 1e-3
    assert abs(ours.values[0] - 1e9) <= ours.error_bound


def test_values_whose_rounding_is_larger_than_beta_have_no_bound():
    chain = katz(Graph.from_arcs([(i, i + 1) for i in range(499)]), alpha=2.0, normalized=False)
    np.testing.assert_allclose(chain.values, 2.0 ** np.arange(1, 501) - 1, rtol=1e-9)
    assert not chain.converged
    assert chain.error_bound == np.inf


def test_values_that_no_float_can_hold_are_refused():
    chain = Graph.from_arcs([(i, i + 1) for i in range(700)])
    with pytest.raises(ParameterError, match="grow beyond what a float64 can hold"):
        katz(chain, alpha=10.0)
