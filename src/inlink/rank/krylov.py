"""Krylov subspaces: an orthonormal basis of x, Ax, A²x, …, and what two methods find in it.

Sources: Arnoldi, "The principle of minimized iterations in the solution of the matrix eigenvalue problem", Quarterly of
Applied Mathematics 1951; Stewart, "A Krylov–Schur algorithm for large eigenproblems", SIAM J. Matrix Anal. Appl. 2001
(the restart); Saad & Schultz, "GMRES", SIAM J. Sci. Stat. Comput. 1986.
"""

import math
from collections.abc import Callable

import numpy as np

from inlink.base.arrays import AnyArray, Float64Array

Product = Callable[[Float64Array], Float64Array]
"""The product of a matrix with a vector, float64[n] → float64[n]; it returns a new array."""

# A vector shorter than this, relative to the vector that it was made of, is rounding.
_ROUNDING = 1e-14


def length_of(x: Float64Array) -> float:
    """Return the L2 norm of float64[n], without BLAS and its threads."""
    return math.sqrt(float((x * x).sum()))


def principal_vector(
    product: Product, start: Float64Array, *, basis: int, cycles: int, tol: float
) -> tuple[Float64Array, int]:
    """Approximate the eigenvector of the eigenvalue with the largest real part, by restarted Arnoldi iteration.

    Each cycle extends the basis to its full size. It keeps the subspace of the better half of the eigenvalues.

    Parameters
    ----------
    product : function of float64[n]
        The product of the matrix with a vector.
    start : float64[n]
        A first guess, of length 1.
    basis : int
        The number of vectors in the basis; at least 4, below n.
    cycles : int
        The largest number of cycles; at least 1.
    tol : float
        Stop when the residual is at most this share of the eigenvalue.

    Returns
    -------
    float64[n], int
        The real part of the eigenvector of A's projection to the basis, and the number of products. The vector is
        ``start`` if a product overflows.
    """
    vectors, small = np.empty((basis + 1, len(start))), np.zeros((basis + 1, basis))
    vectors[0] = start
    kept = products = 0
    for cycle in range(cycles):
        size = _extend(product, vectors, small, kept)
        products += size - kept
        if not np.isfinite(small).all():
            return start, products
        values, within = np.linalg.eig(small[:size, :size])
        order = np.argsort(-values.real, kind="stable")
        best = within[:, order[0]]
        residual = abs(small[size, :size] @ best)
        if size < basis or residual <= tol * abs(values[order[0]]) or cycle == cycles - 1:
            break
        kept = _restart(vectors, small, values[order], within[:, order])
    vector: Float64Array = best.real @ vectors[:size]
    return vector, products


def _extend(product: Product, vectors: Float64Array, small: Float64Array, kept: int) -> int:
    """Extend a basis of ``kept`` vectors and the next one to a full basis.

    After the call A·V = V·H + h·v. The last row of ``vectors`` is v, and its other rows are V. The last row of
    ``small`` is h, and its other rows are H.

    Returns
    -------
    int
        The size of the basis. It is smaller than the full size if the basis has become invariant.
    """
    for k in range(kept, small.shape[1]):
        image = product(vectors[k])
        before = length_of(image)
        # The second pass removes the parts along the basis that rounding left in the first.
        for _ in range(2):
            shares = vectors[: k + 1] @ image
            image = image - shares @ vectors[: k + 1]
            small[: k + 1, k] += shares
        length = length_of(image)
        if length <= _ROUNDING * before:
            return k + 1
        small[k + 1, k] = length
        vectors[k + 1] = image / length
    return int(small.shape[1])


def _restart(vectors: Float64Array, small: Float64Array, values: AnyArray, within: AnyArray) -> int:
    """Reduce a full basis to the subspace of the first half of these eigenvalues. Return its size."""
    basis = len(values)
    kept = basis // 2
    # A pair of conjugate eigenvalues stays together.
    kept += int(values[kept - 1].imag > 0)
    # An orthonormal basis of the real space that their eigenvectors span.
    chosen = within[:, :kept]
    rotation = np.linalg.svd(np.hstack([chosen.real, chosen.imag]))[0][:, :kept]
    vectors[:kept] = rotation.T @ vectors[:basis]
    vectors[kept] = vectors[basis]
    inside, last = rotation.T @ small[:basis] @ rotation, small[basis] @ rotation
    small[:] = 0
    small[:kept, :kept], small[kept, :kept] = inside, last
    return kept


def solve(product: Product, right: Float64Array, depth: int) -> Float64Array:
    """Return the x in the Krylov space of ``right`` with the smallest residual of A·x = ``right``: one run of GMRES.

    The result is 0 if a product overflows.

    Parameters
    ----------
    product : function of float64[n]
        The product of A with a vector.
    right : float64[n]
        Not 0.
    depth : int
        The number of products.
    """
    depth = min(depth, len(right))
    vectors, small = np.empty((depth + 1, len(right))), np.zeros((depth + 1, depth))
    length = length_of(right)
    vectors[0] = right / length
    size = _extend(product, vectors, small, 0)
    if not np.isfinite(small).all():
        return np.zeros(len(right))
    goal = np.zeros(size + 1)
    goal[0] = length
    shares = np.linalg.lstsq(small[: size + 1, :size], goal, rcond=None)[0]
    solution: Float64Array = shares @ vectors[:size]
    return solution
