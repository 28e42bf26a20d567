"""How determinants are laid out in flat arrays, and the named tuples that their kernels share.

`pgcc.determinants.forms.lay_out` writes the arrays; every kernel of this folder that computes values reads them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

# The forms by which a determinant can be computed: see `pgcc.determinants.kernels.forms`.
FREE, OUT, RANK, TREES = range(4)
FORMS = 4
# `bases` has BASES rows per determinant: its values at the bases FREE and OUT, and its TOTAL, if nothing is observed.
# FREE and TOTAL are the same unless the determinant has a size.
TOTAL = 2
BASES = 3
# A record says what kernels know about a determinant. Its arrays are given by their offsets in `data` or `ints` of the
# `FloatLayout`; two offsets are those of the base FREE and of the base OUT. (A record array is one argument: a named
# tuple of as many arrays takes Numba 2.3 µs more to unpack at a call, 5 % of the time of a query about one row.)
DETERMINANT = np.dtype((np.record, [
    ("rank", np.int64),  # the number of rows r of M0
    ("children", np.int64),  # the number of children k
    ("variables", np.int64),  # if the children are variables: the number of variables of the circuit; otherwise 0
    ("fixed_size", np.int64),  # the number of counted children that are in; −1 if it has no size
    ("symmetric", np.bool_),  # whether its kernel matrices are
    ("definite", np.bool_),  # whether its coefficients are not negative, and u_i = s_i·v_i with s_i > 0
    ("directed", np.bool_),  # of a graph
    ("prefers_trees", np.bool_),  # of a graph: whether it is computed by TREES even where FREE would be cheaper
    ("has", np.int64, (FORMS,)),  # 1 for the forms by which it can be computed
    # offsets in `data`
    ("phi", np.int64),  # the values of the children where nothing is observed
    ("kernel", np.int64, (2,)),  # G, k × k (see `Base`)
    ("scale", np.int64, (2,)),  # the scales of the rows of G
    ("gap", np.int64),  # h_i = 1/φ_i − G_ii, at the base FREE
    ("ratio", np.int64),  # s_i, of a symmetric form RANK
    ("m0", np.int64),  # M0, r × r, for the form RANK
    ("u", np.int64),  # Uᵀ, k × r
    ("v", np.int64),  # Vᵀ, k × r
    ("weight", np.int64),  # the weights of edges, for the form TREES
    ("kill", np.int64),  # the killing rates of nodes
    ("changes", np.int64, (2,)),  # d_i, divided by the scale, of variables that are observed 1; then of all others
    ("diagonals", np.int64, (2,)),  # G_ii + y_i/d_i, likewise
    ("has_low", np.int64, (2,)),  # 1 where G is known in pairs of doubles
    ("low", np.int64, (2,)),  # the low parts of G
    ("low_diagonals", np.int64, (2,)),  # the low parts of G_ii + y_i/d_i
    # offsets in `ints`
    ("counted", np.int64),  # 1 for the children that the size counts
    ("child_of", np.int64),  # the child that a variable is; 0 for other variables
    ("variable_of", np.int64),  # the variable that a child is
    ("child_bits", np.int64),  # for every 64 variables a word, whose bits say which of them are children
    ("tail", np.int64),  # the ends of edges
    ("head", np.int64),
]))  # fmt: skip


class FloatLayout(NamedTuple):
    """The determinants of a program, as `pgcc.determinants.forms.lay_out` writes them.

    Attributes
    ----------
    plan : array of DETERMINANT
        A record for every determinant.
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
        instead of `work`; `variables` of the plan is then the length of a row.
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
