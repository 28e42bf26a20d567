"""How determinants are laid out for kernels, and the named tuples that these pass around."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

# The forms: see `pgcc.determinants.kernels.forms`.
FREE, OUT, RANK, TREES = range(4)
FORMS = 4
# The rows of `Layout.bases` for each determinant: its values at the bases FREE and OUT, and where everything is free.
# FREE and TOTAL are the same unless a size is given.
TOTAL = 2
BASES = 3
# Columns of `plan`, one row per determinant; the last ones say where its arrays start in `data` and in `ints`.
R, K, SYMMETRIC, DIRECTED, VARIABLES, HAS = 0, 1, 2, 3, 4, 5
CHILDREN, TABLE, MATRICES, EDGES, COLUMNS, READY, SIZE, DEFINITE, COUNTED, LOW = 9, 10, 12, 13, 14, 15, 16, 17, 18, 19
PREFERS_TREES = 21
PLAN_COLUMNS = 22


class Layout(NamedTuple):
    """The determinants of a program (`lay_out` makes it).

    Attributes
    ----------
    plan : int64 array, determinants × PLAN_COLUMNS
        Their shapes, the forms that they have, and where the numbers of each start.
    data : float64 array
    ints : int64 array
    bases : float64 array, (BASES · determinants) × 3
        For FREE, OUT and TOTAL of each: mantissa, exponent and relative error of the determinant.
    """

    plan: np.ndarray
    data: np.ndarray
    ints: np.ndarray
    bases: np.ndarray


class Children(NamedTuple):
    """Where the values of the children of a determinant are, for a block of rows.

    Attributes
    ----------
    inside, outside : int32 arrays
        The slots of f and y in `work`.
    work : float64 array
        `lanes` doubles for each slot.
    lanes : int
    evidence : uint8 array
        Rows of codes (1, 0, 255), flat and with PADDING bytes more. If the children are variables they are read here,
        and not from `work`; plan[d, VARIABLES] is then the length of a row.
    start : int
        Where the first row starts in it; the last row repeats.
    rows : int
        How many are wanted.
    """

    inside: np.ndarray
    outside: np.ndarray
    work: np.ndarray
    lanes: int
    evidence: np.ndarray
    start: int
    rows: int


class Found(NamedTuple):
    """What is found of every row: mantissa · 2^exponent, and a bound on its error; inf: nothing is known."""

    mantissa: np.ndarray
    exponent: np.ndarray
    error: np.ndarray


class Minor(NamedTuple):
    """Which matrix is filled in: that of determinant d, in one form, with q rows."""

    d: int
    form: int
    q: int


class Scratch(NamedTuple):
    """Memory for eight eliminations at a time.

    Attributes
    ----------
    matrix, low : float64 arrays
        The matrices, and what their entries are beyond doubles; `low` has no entries if that is not computed.
    factors : float64 array
        What the pivots are multiplied by.
    inverse : float64 array
    vectors : float64 array, 3 × …
    listed : int64 array
        The children that the rows stand for.
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
