"""Witnesses that symmetric matrices are positive semidefinite, in the form that the proof checker needs.

A witness for A is a lower triangular X without zeros on its diagonal such that X·A·Xᵀ is diagonally dominant; None
stands for the identity. It is the inverse of a Cholesky factor in doubles if rounding allows, and otherwise that of an
exact factor. Whether it is a witness is decided by exact arithmetic (`proof.is_semidefinite`), never by doubles.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from flint import fmpq

from pgcc.exact.balls import rational
from pgcc.validity.proof.determinants import is_semidefinite, is_symmetric
from pgcc.validity.proof.exact_arithmetic import Rows

# Exact elimination is not tried on larger matrices: its numbers grow with every row.
MOST_EXACT_ROWS = 64

Plain = int | float | str  # a number as plain data: text is a fraction


def find_witness(rows: Rows) -> list[Any]:
    """[X] with a witness X, or [] if none was found.

    >>> find_witness([[2, 1], [1, 2]]), find_witness([[1, 2], [2, 1]])
    ([None], [])
    """
    exact = [[x if type(x) is fmpq else rational(x) for x in row] for row in rows]
    if not is_symmetric(exact) or any(row[i] < 0 for i, row in enumerate(exact)):
        return []
    return next(([x] for x in _candidates(exact) if is_semidefinite(exact, x)), [])


def _candidates(rows: list[list[fmpq]]) -> Iterator[list[list[Plain]] | None]:
    yield None
    for find in (_by_cholesky, _by_elimination):
        if (found := find(rows)) is not None:
            yield found


def _by_cholesky(rows: list[list[fmpq]]) -> list[list[Plain]] | None:
    """The inverse of a factor in doubles, of rows and columns scaled by powers of 2 so that the diagonal is about 1."""
    if any(not row[i] for i, row in enumerate(rows)):
        return None
    half = [fmpq(2) ** (-_exponent(row[i]) // 2) for i, row in enumerate(rows)]
    scaled = [[_nearest(x * half[i] * half[j]) for j, x in enumerate(row)] for i, row in enumerate(rows)]
    try:
        inverse = np.linalg.inv(np.linalg.cholesky(np.array(scaled).reshape(len(rows), len(rows))))
    except np.linalg.LinAlgError:
        return None
    if not np.isfinite(inverse).all() or not np.diag(inverse).all():
        return None
    return [
        [plain(rational(x) * half[j]) for j, x in enumerate(row[: i + 1])] for i, row in enumerate(inverse.tolist())
    ]


def _by_elimination(rows: list[list[fmpq]]) -> list[list[Plain]] | None:
    """X with X·A·Xᵀ diagonal, exactly: symmetric elimination; a pivot of 0 is only allowed in a row of zeros."""
    n = len(rows)
    if n > MOST_EXACT_ROWS:
        return None
    a = [list(row) for row in rows]
    x = [[fmpq(int(i == j)) for j in range(i + 1)] for i in range(n)]
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
    return [[plain(value) for value in row] for row in x]


def _exponent(x: fmpq) -> int:
    return int(x.p).bit_length() - int(x.q).bit_length()


def _nearest(x: fmpq) -> float:
    try:
        return int(x.p) / int(x.q)  # correctly rounded
    except OverflowError:
        return math.inf


def plain(x: fmpq) -> Plain:
    """A rational as plain data, of the same value.

    >>> plain(fmpq(3)), plain(fmpq(1, 4)), plain(fmpq(1, 3))
    (3, 0.25, '1/3')
    """
    if x.q == 1:
        return int(x.p)
    near = _nearest(x)
    return near if math.isfinite(near) and rational(near) == x else str(x)
