"""Linear algebra in doubles: eigenvalues that Ctrl-C can interrupt, and a proof that a matrix is definite."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pgcc.interrupts import interruptible
from pgcc.ir.numbers import UNIT
from pgcc.progress import waiting

# Rows of a matrix below which eigenvalues take no time worth mentioning.
_FEW_ROWS = 400
# Of matrices with diagonal entries outside of this range nothing is proved. Within it, underflow is negligible.
_LEAST, _MOST = 2.0**-500, 2.0**500


def eigh(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`numpy.linalg.eigh`, interruptible.

    >>> values, vectors = eigh(np.array([[2.0, 1.0], [1.0, 2.0]]))
    >>> values.round(12)
    array([1., 3.])
    """
    values, vectors = _run(np.linalg.eigh, matrix)
    return values, vectors


def eigvalsh(matrix: np.ndarray) -> np.ndarray:
    """`numpy.linalg.eigvalsh`, interruptible.

    >>> eigvalsh(np.array([[2.0, 1.0], [1.0, 2.0]])).round(12)
    array([1., 3.])
    """
    return _run(np.linalg.eigvalsh, matrix)


def _run(function: Callable[[np.ndarray], Any], matrix: np.ndarray) -> Any:
    if len(matrix) < _FEW_ROWS:
        return function(matrix)
    with waiting(f"eigenvalues of a matrix of {len(matrix):,} rows"):
        return interruptible(function, matrix)


def surely_definite(matrix: np.ndarray, error: np.ndarray | None = None) -> bool:
    """Whether a symmetric matrix is positive definite by more than rounding errors; False where that is not proved.

    Parameters
    ----------
    matrix : float64 array, n × n
        The nearest doubles of the entries; the matrix itself is symmetric.
    error : float64 array, n × n, optional
        Bounds on further errors of the entries, where they were computed and are not the nearest doubles.

    Notes
    -----
    Of A with a diagonal near 1, c is subtracted from the diagonal. If Cholesky's elimination runs to its end, in
    whatever order it adds up, its factor is that of a matrix off by at most γ/(1 − γ)·√(a_ii·a_jj) in every entry,
    γ = (n + 1)·u/(1 − (n + 1)·u) (Higham, *Accuracy and Stability*, theorem 10.3 and lemma 6.6): in norm by at most
    γ/(1 − γ)·trace A. Hence A is definite if c is more than that and the norm of what the entries are off by.

    Examples
    --------
    >>> surely_definite(np.array([[2.0, 1.0], [1.0, 2.0]])), surely_definite(np.array([[1.0, 1.0], [1.0, 1.0]]))
    (True, False)
    """
    n = len(matrix)
    if not n:
        return True
    diagonal = np.diag(matrix)
    if not np.isfinite(matrix).all() or not np.array_equal(matrix, matrix.T):
        return False
    if not ((diagonal > _LEAST) & (diagonal < _MOST)).all():
        return False
    scale = np.sqrt(diagonal)
    scaled = matrix / scale / scale[:, None]
    if not np.isfinite(scaled).all() or (np.abs(scaled) > 2.0).any():
        return False  # a definite matrix has no entry above √(a_ii·a_jj)
    off = 4.0 * UNIT * np.abs(scaled) + 2.0**-500  # rounded to a double, and divided twice
    if error is not None:
        off += 1.001 * error / scale / scale[:, None]
    # 4·(n + 8) roundings where n + 1 would do: this also covers implementations of Cholesky's method that multiply by
    # reciprocals of pivots, and add up in blocks
    shift = 4.0 * (n + 8.0) * UNIT * 1.001 * float(np.trace(scaled)) + 1.001 * float(off.sum(axis=1).max())
    if not shift < 0.5:
        return False
    try:
        factor = np.linalg.cholesky(scaled - shift * np.eye(n))
    except np.linalg.LinAlgError:
        return False
    return bool(np.isfinite(factor).all())
