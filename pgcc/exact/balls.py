"""Numbers and matrices as balls and rationals of flint; determinants, and whether a matrix is definite."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb, arb_mat, ctx, fmpq

from pgcc.exact.precision import precision
from pgcc.ir.matrix import Matrix
from pgcc.ir.numbers import Number, nearest_float
from pgcc.linalg import eigh, surely_definite

# Matrices of balls are eliminated in blocks of this many rows: the first block, and the rest.
_BLOCK = 100
_HEAD, _TAIL = slice(_BLOCK), slice(_BLOCK, None)
# Enough bits that the rounding of balls is negligible beside the entries of X·A·Xᵀ − I that matter.
_DEFINITE_BITS = 256


def ball(number: Number) -> arb:
    """A number in the working precision; integers and floats exactly."""
    return arb(rational(number) if isinstance(number, Fraction) else number)


def rational(number: Number) -> fmpq:
    """A number, exactly."""
    return fmpq(number) if type(number) is int else fmpq(*number.as_integer_ratio())


def fraction(number: fmpq) -> Fraction:
    """A rational of flint as one of Python."""
    return Fraction(int(number.p), int(number.q))


def ball_matrix(matrix: Matrix) -> arb_mat:
    """A matrix in balls of the working precision."""
    return arb_mat(*matrix.shape, [ball(x) for x in flat(matrix.numbers())])


def floats(matrix: Any) -> np.ndarray:
    """The midpoints of a matrix of balls, as doubles."""
    return np.array([float(x) for x in matrix.entries()]).reshape(matrix.nrows(), matrix.ncols())


def midpoints(matrix: arb_mat) -> arb_mat:
    """The midpoints of a matrix of balls, as exact numbers: not the same matrix."""
    return arb_mat(matrix.nrows(), matrix.ncols(), [x.mid() for x in matrix.entries()])


def flat(rows: Iterable[Iterable[Any]]) -> list[Any]:
    """The entries of a matrix, row by row, as flint takes them."""
    return [x for row in rows for x in row]


def ball_determinant(matrix: Any) -> Any:
    """The determinant of a matrix of balls: by blocks, three times as fast, unless that loses half the bits."""
    if matrix.nrows() <= _BLOCK:
        return matrix.det()
    try:
        value = _by_blocks(matrix)
    except ZeroDivisionError:  # a block is singular, the matrix may not be
        return matrix.det()
    return value if value.rel_accuracy_bits() >= ctx.prec // 2 else matrix.det()


def _by_blocks(matrix: Any) -> Any:
    """det [[A, B], [C, D]] = det A · det(D − C·A⁻¹·B)"""
    kind, value = type(matrix), arb(1)
    while matrix.nrows() > _BLOCK:
        rows, n = matrix.tolist(), matrix.nrows() - _BLOCK
        top, low = rows[:_BLOCK], rows[_BLOCK:]
        A, B = (kind(_BLOCK, m, flat([row[part] for row in top])) for m, part in ((_BLOCK, _HEAD), (n, _TAIL)))
        C, D = (kind(n, m, flat([row[part] for row in low])) for m, part in ((_BLOCK, _HEAD), (n, _TAIL)))
        value = A.det() * value
        matrix = D - C * A.solve(B)
    return matrix.det() * value


def is_definite(rows: Sequence[Sequence[Number]]) -> bool:
    """Whether a symmetric matrix is positive definite: proved; False where that is in doubt.

    With X = |Λ|^-½·Qᵀ of approximate eigenvectors, X·A·Xᵀ is about I, however small the eigenvalues of A are.

    >>> is_definite([[1.0, 1.0 - 1e-13], [1.0 - 1e-13, 1.0]]), is_definite([[1.0, 1.0], [1.0, 1.0]])
    (True, False)
    """
    n = len(rows)
    floats = np.array([[nearest_float(x) for x in row] for row in rows], float).reshape(n, n)
    if surely_definite(floats):
        return True
    diagonal = np.diag(floats)
    if not np.isfinite(floats).all() or not ((diagonal > 2.0**-900) & (diagonal < 2.0**900)).all():
        return False
    power = -(np.frexp(diagonal)[1] // 2)
    values, Q = eigh(np.ldexp(floats, power + power[:, None]))
    if not values[0] > 0.0:
        return False
    X = np.ldexp((Q / np.sqrt(values)).T, power)
    with precision(_DEFINITE_BITS):
        A = arb_mat(n, n, [ball(x) for x in flat(rows)])
        left = arb_mat(n, n, [arb(x) for x in X.ravel().tolist()])
        near = (left * A * left.transpose()).entries()
        middle = np.array([float(x.mid()) for x in near]).reshape(n, n)
        radius = np.array([float(x.rad()) for x in near]).reshape(n, n)
    lower = np.tril(middle)
    return surely_definite(lower + np.tril(middle, -1).T, np.maximum(radius, radius.T))
