"""Witnesses that symmetric matrices are positive semidefinite, as the checker of proofs wants them.

A witness of A is a lower triangular X without zeros on its diagonal such that X·A·Xᵀ is diagonally dominant; None stands
for the identity. It is the inverse of a Cholesky factor in doubles, where there is room for rounding, else that of
an exact factor. Whether it is a witness is decided by exact arithmetic (`proof.is_semidefinite`), never by doubles.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from flint import fmpq

from pgcc.ir.numbers import Number, nearest_float
from pgcc.queries.proof import is_semidefinite as is_witnessed

# Exact elimination is not tried on larger matrices: its numbers grow with every row.
MOST_EXACT_ROWS = 64

Rows = Sequence[Sequence[Number]]
Plain = int | float | str  # a number as plain data: text is a fraction


def is_semidefinite(rows: Rows) -> bool:
    """Whether a matrix is surely symmetric and positive semidefinite; False also where that was not decided.

    >>> is_semidefinite([[1, 1], [1, 1]]), is_semidefinite([[1, 2], [2, 1]])
    (True, False)
    """
    return bool(find_witness(rows))


def find_witness(rows: Rows) -> list[Any]:
    """[X] with a witness X, or [] where none was found.

    >>> find_witness([[2, 1], [1, 2]])
    [None]
    """
    exact = [[Fraction(x) for x in row] for row in rows]
    if any(exact[i][j] != exact[j][i] for i in range(len(exact)) for j in range(i)):
        return []
    if any(row[i] < 0 for i, row in enumerate(exact)):
        return []
    return next(([x] for x in _candidates(exact) if is_witnessed(exact, x)), [])


def _candidates(rows: list[list[Fraction]]) -> Iterator[list[list[Plain]] | None]:
    yield None
    for find in (_by_cholesky, _by_elimination):
        if (found := find(rows)) is not None:
            yield found


def _by_cholesky(rows: list[list[Fraction]]) -> list[list[Plain]] | None:
    """The inverse of a factor in doubles, of rows and columns scaled by powers of 2 so that the diagonal is about 1."""
    if any(not row[i] for i, row in enumerate(rows)):
        return None
    half = [Fraction(2) ** (-_exponent(row[i]) // 2) for i, row in enumerate(rows)]
    scaled = [[nearest_float(x * half[i] * half[j]) for j, x in enumerate(row)] for i, row in enumerate(rows)]
    try:
        inverse = np.linalg.inv(np.linalg.cholesky(np.array(scaled)))
    except np.linalg.LinAlgError:
        return None
    if not np.isfinite(inverse).all() or not np.diag(inverse).all():
        return None
    return [[plain(Fraction(x) * half[j]) for j, x in enumerate(row[: i + 1])] for i, row in enumerate(inverse.tolist())]


def _by_elimination(rows: list[list[Fraction]]) -> list[list[Plain]] | None:
    """X with X·A·Xᵀ diagonal, exactly: symmetric elimination, in which a pivot of 0 is only allowed in a row of zeros."""
    n = len(rows)
    if n > MOST_EXACT_ROWS:
        return None
    a = [[fmpq(*x.as_integer_ratio()) for x in row] for row in rows]
    x = [[fmpq(i == j) for j in range(i + 1)] for i in range(n)]
    for k in range(n):
        pivot = a[k][k]
        if pivot < 0 or (pivot == 0 and any(a[k][k + 1 :])):
            return None
        for i in range(k + 1, n):
            if not a[i][k]:
                continue
            factor = a[i][k] / pivot
            for j in range(k, n):
                a[i][j] -= factor * a[k][j]
            for j in range(k + 1):
                x[i][j] -= factor * x[k][j]
    return [[plain(Fraction(int(value.p), int(value.q))) for value in row] for row in x]


def _exponent(x: Fraction) -> int:
    return x.numerator.bit_length() - x.denominator.bit_length()


def plain(x: Fraction) -> Plain:
    """A fraction as plain data, of the same value.

    >>> plain(Fraction(3)), plain(Fraction(1, 4)), plain(Fraction(1, 3))
    (3, 0.25, '1/3')
    """
    if x.denominator == 1:
        return x.numerator
    near = nearest_float(x)
    return near if np.isfinite(near) and Fraction(near) == x else str(x)
