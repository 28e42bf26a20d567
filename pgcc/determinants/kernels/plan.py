"""How determinants are laid out in flat arrays, and the named tuples that their kernels share.

`pgcc.determinants.forms.lay_out` writes the arrays; every kernel of this folder that computes values reads them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

# The forms by which a determinant can be computed: see `pgcc.determinants.kernels.forms`.
FREE, OUT, RANK, TREES = range(4)
FORMS = 4
# `Layout.bases` has BASES rows per determinant: its values at the bases FREE and OUT, and its TOTAL, where nothing is
# observed. FREE and TOTAL are the same unless the determinant has a size.
TOTAL = 2
BASES = 3
# Columns of `plan`, one row per determinant. From CHILDREN on, most are offsets of its arrays in `data` or `ints`.
R, K, SYMMETRIC, DIRECTED, VARIABLES, HAS = 0, 1, 2, 3, 4, 5
CHILDREN, TABLE, MATRICES, EDGES, COLUMNS, VARIABLE_TABLES = 9, 10, 12, 13, 14, 15
SIZE, DEFINITE, COUNTED, LOW, PREFERS_TREES = 16, 17, 18, 19, 21
PLAN_COLUMNS = 22


class Layout(NamedTuple):
    """The determinants of a program, as `pgcc.determinants.forms.lay_out` writes them.

    Attributes
    ----------
    plan : int64 array, determinants × PLAN_COLUMNS
        The shape of every determinant, the forms that it has, and the offsets of its arrays.
    data : float64 array
        Kernel matrices, scales, weights: all arrays of doubles, one after another.
    ints : int64 array
        All arrays of integers.
    bases : float64 array, (BASES · determinants) × 3
        Mantissa, binary exponent and relative error of every determinant at FREE, OUT and TOTAL.
    """

    plan: np.ndarray
    data: np.ndarray
    ints: np.ndarray
    bases: np.ndarray


class Children(NamedTuple):
    """Where a kernel finds the values f and y of the children of a determinant, for a block of rows.

    Attributes
    ----------
    inside, outside : int32 arrays
        The slots of f and y in `work`.
    work : float64 array
        `lanes` doubles for each slot.
    lanes : int
    evidence : uint8 array
        Rows of codes (1, 0, 255), flat, followed by PADDING bytes. Children that are variables are read from here
        instead of `work`; plan[d, VARIABLES] is then the length of a row.
    start : int
        The offset of the first row of the block in `evidence`; beyond the end, the last row is read again.
    rows : int
        The number of rows to compute.
    """

    inside: np.ndarray
    outside: np.ndarray
    work: np.ndarray
    lanes: int
    evidence: np.ndarray
    start: int
    rows: int


class Found(NamedTuple):
    """The value of every row as mantissa · 2^exponent, with a bound on its error; inf if the value is unknown."""

    mantissa: np.ndarray
    exponent: np.ndarray
    error: np.ndarray


class Minor(NamedTuple):
    """The matrix to fill in: the one of determinant d in a given form, with q rows."""

    d: int
    form: int
    q: int


class Scratch(NamedTuple):
    """Memory for eight eliminations at a time.

    Attributes
    ----------
    matrix, low : float64 arrays
        The high and low parts of the entries, which are pairs of doubles; `low` is empty where entries are doubles.
    factors : float64 array
        The factors of the pivots in the determinant.
    inverse : float64 array
        The inverse of a triangular factor.
    vectors : float64 array, 3 × …
    listed : int64 array
        The children to which the rows of the matrices belong.
    values : float64 array, 2 × children
        f and y of one row.
    """

    matrix: np.ndarray
    low: np.ndarray
    factors: np.ndarray
    inverse: np.ndarray
    vectors: np.ndarray
    listed: np.ndarray
    values: np.ndarray
