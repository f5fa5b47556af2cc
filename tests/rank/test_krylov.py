"""Krylov subspaces and Student's quantile, against SciPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse.linalg import gmres
from scipy.special import stdtrit

from inlink.rank.krylov import length_of, principal_vector, solve
from inlink.rank.mcmc import t_quantile


def matrix(seed: int, n: int, density: float) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.random((n, n)) * (rng.random((n, n)) < density)


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(11, 40), density=st.sampled_from([0.05, 0.2, 0.6, 1.0]))
def test_the_principal_vector_is_that_of_all_eigenvectors(seed, n, density):
    a = matrix(seed, n, density)
    start = np.full(n, n**-0.5)
    found, products = principal_vector(lambda v: a @ v, start, basis=10, cycles=200, tol=1e-9)
    largest = np.linalg.eigvals(a).real.max()
    assert products >= 1
    if largest > 1e-3:
        found /= length_of(found)
        assert length_of(a @ found - largest * found) <= 1e-6 * np.abs(a).sum()


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 30), depth=st.integers(1, 25))
def test_one_run_of_gmres_is_scipys(seed, n, depth):
    a = np.eye(n) - 0.9 / n * matrix(seed, n, 0.7)
    right = np.random.default_rng(seed).random(n) + 0.1
    expected = gmres(a, right, rtol=0, restart=min(depth, n), maxiter=1)[0]
    assert np.allclose(solve(lambda v: a @ v, right, depth), expected, rtol=1e-8, atol=1e-10)


def test_products_that_overflow_leave_the_guess():
    start = np.full(20, 20**-0.5)
    with np.errstate(all="ignore"):
        found, _ = principal_vector(lambda v: v * 1e308 * 1e308, start, basis=10, cycles=5, tol=0)
        assert (found == start).all()
        assert not solve(lambda v: v * 1e308 * 1e308, start, 5).any()


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 5, 10, 31, 100, 999])
@pytest.mark.parametrize("confidence", [1e-3, 0.5, 0.9, 0.95, 0.999, 1 - 1e-9])
def test_students_quantile(freedom, confidence):
    assert t_quantile(freedom, confidence) == pytest.approx(
        float(stdtrit(freedom, (1 + confidence) / 2)), rel=1e-6
    )
