"""Is a symmetric matrix positive semidefinite? In floating point where there is room for rounding, else exactly."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from pgcc.ir.definite import surely_definite
from pgcc.ir.numbers import Number

# Exact elimination is not tried on larger matrices: its numbers grow with every row.
MOST_EXACT_ROWS = 64

Rows = Sequence[Sequence[Number]]


def is_semidefinite(rows: Rows) -> bool:
    """Whether a symmetric matrix is surely positive semidefinite; False also where that was not decided.

    >>> is_semidefinite([[1, 1], [1, 1]]), is_semidefinite([[1, 2], [2, 1]])
    (True, False)
    """
    floats = np.array([[_nearest(x) for x in row] for row in rows], float).reshape(len(rows), len(rows))
    if surely_definite(floats):
        return True
    if all(not x for i, row in enumerate(rows) for j, x in enumerate(row) if i != j):
        return all(row[i] >= 0 for i, row in enumerate(rows))
    return len(rows) <= MOST_EXACT_ROWS and is_semidefinite_exactly(rows)


def is_semidefinite_exactly(rows: Rows) -> bool:
    """The same in whole numbers: symmetric elimination without fractions (Bareiss), in which no pivot may be negative.

    A pivot of 0 is only allowed in a row of zeros.
    """
    exact = [[Fraction(x) for x in row] for row in rows]
    common = math.lcm(*(x.denominator for row in exact for x in row)) if exact else 1
    a = [[int(x * common) for x in row] for row in exact]
    n, previous = len(a), 1
    if any(a[i][j] != a[j][i] for i in range(n) for j in range(i)):
        return False
    for k in range(n):
        pivot = a[k][k]
        if pivot < 0 or (pivot == 0 and any(a[k][k + 1 :])):
            return False
        if pivot == 0:
            continue
        for i in range(k + 1, n):
            for j in range(i, n):
                a[i][j] = a[j][i] = (pivot * a[i][j] - a[i][k] * a[k][j]) // previous
        previous = pivot
    return True


def _nearest(x: Number) -> float:
    try:
        return float(x)
    except OverflowError:
        return math.inf
