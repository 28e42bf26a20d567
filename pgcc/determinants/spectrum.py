"""The eigenvalues of a symmetric matrix of balls, enclosed far more tightly than doubles allow; for `poisson_binomial`.

Eigenvectors X are found in doubles and refined by matrix products in ball arithmetic, X ← X + X·E, each time by some
fifteen digits (Ogita and Aishima, 2018). Let S = Xᵀ·A·X, B = Xᵀ·X and λ_i = S_ii/B_ii. As B^(−½)·S·B^(−½) has the
eigenvalues of A, Weyl's inequality bounds the distance of every eigenvalue from its λ_i by
‖S − diag(λ)‖ + ‖S‖·(2η + η²), where η = ‖B − I‖ ≤ ½.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from flint import arb, arb_mat

from pgcc.exact.balls import floats, midpoints
from pgcc.linalg import eigh

BITS = 256
_STEPS = 4  # of refinement, at most
# The error wanted, relative to the smallest eigenvalue and to the smallest distance of an eigenvalue from 1.
_ENOUGH = 2.0**-52

# The largest asymmetry, in norm, that is taken for rounding.
_ASYMMETRY = 2.0**-100
# The smallest normal number: doubles below it lose digits.
_LEAST = 2.0**-1022


class Spectrum(NamedTuple):
    """λ and 1 − λ in ascending order of λ, both with errors of at most `off` and a rounding."""

    value: np.ndarray
    rest: np.ndarray
    off: float

    @property
    def are_probabilities(self) -> bool:
        """Whether no λ is certainly negative or above 1."""
        return bool((self.value >= -self.off).all() and (self.rest >= -self.off).all())


def find_spectrum(A: arb_mat, off: float) -> Spectrum | None:
    """The eigenvalues of a symmetric matrix with an error of norm `off`; the working precision is `BITS` or more."""
    n = A.nrows()
    middle = floats(A)
    if not np.isfinite(middle).all() or not np.isfinite(off) or not _norm(A - A.transpose()) <= _ASYMMETRY:
        return None
    _, vectors = eigh(0.5 * (middle + middle.T))
    X, best = arb_mat(n, n, vectors.ravel().tolist()), np.inf
    for _ in range(_STEPS):
        S, B = X.transpose() * (A * X), X.transpose() * X
        values = [S[i, i] / B[i, i] for i in range(n)]
        off_diagonal, nonorthogonality = S - _diagonal(values), B - arb_mat(n, n, 1)
        eta = _norm(nonorthogonality)
        error = (_norm(off_diagonal) + _norm(S) * (2.0 * eta + eta**2)) * 1.01 + off if eta < 0.5 else np.inf
        if not error < best:
            break  # the iteration does not separate clustered eigenvalues
        best = error
        found = Spectrum(np.array([float(x) for x in values]), np.array([float(1 - x) for x in values]), error)
        if error <= _ENOUGH * min(_smallest(found.value, error), _smallest(found.rest, error)):
            break
        X = midpoints(X + X * _step(floats(off_diagonal), -floats(nonorthogonality), found.value, error))
    if not np.isfinite(best):
        return None
    order = np.argsort(found.value, kind="stable")
    return Spectrum(found.value[order], found.rest[order], found.off)


def _step(S: np.ndarray, R: np.ndarray, values: np.ndarray, error: float) -> arb_mat:
    """E_ij = (S_ij + λ_j·R_ij)/(λ_j − λ_i), or R_ij/2 where the two eigenvalues are not separated; R = I − B."""
    gap = values - values[:, None]
    close = np.abs(gap) <= 2.0 * error
    with np.errstate(divide="ignore", invalid="ignore"):
        E = np.where(close, 0.5 * R, (S + values * R) / gap)
    return arb_mat(len(E), len(E), E.ravel().tolist())


def _smallest(values: np.ndarray, error: float) -> float:
    """The smallest value that is certainly positive, at most 1."""
    return float(np.min(values[values > 2.0 * error], initial=1.0))


def _norm(matrix: arb_mat) -> float:
    """The Frobenius norm, rounded up; at least `_LEAST`, unless it is 0."""
    if all(x.is_zero() for x in matrix.entries()):
        return 0.0
    sizes = np.array([float(x.abs_upper()) for x in matrix.entries()])
    top = max(float(sizes.max()), _LEAST)  # the squares of tiny entries would underflow
    return top * max(float(np.linalg.norm(sizes / top)), 1.0) * 1.0001


def _diagonal(values: list[arb]) -> arb_mat:
    n = len(values)
    return arb_mat(n, n, [values[i] if i == j else 0 for i in range(n) for j in range(n)])
