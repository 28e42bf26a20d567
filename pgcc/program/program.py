"""The compiled form of a circuit: flat arrays, at most one instruction per node, no code generated.

Every instruction writes one value slot:

    LEAF   table[l][code of variable l]          an affine form a·ȳ + b·z in one variable (or a constant)
    SUM    Σ w_j · v[x_j] + Σ w_k · v[x_k] · v[y_k]      products with one parent are read in place
    TIMES  Π v[x_j]
    QUOTIENT  w · v[x] / v[y]                    0 where v[y] is below the normal numbers (see `flows`)
    DET    det [[M0, U·diag(f)], [−Vᵀ, diag(y)]]
    DETMAG how far the float64 value of that DET can be trusted (see `Program.magnitude`)
    DETBAR its derivatives by f and by y, in as many slots from the target on (see `adjoints`)
    DETIN  its derivatives by f and how far they can be trusted, likewise (see `reverse`)
    LOOKUP wide table[t][state of some variables]  (only in the fast form: see `condense`)
    PAIR   table[t][joint code of two variables]   (likewise)

The arguments of a SUM are its single values x_j, then its pairs x_k, y_k; it has a weight for every term, in this
order. The number of single values follows from the number of arguments and the number of weights (`Code.alone`).

The same program runs in every number system of the backend; only what the leaves become differs. As `lower` makes it,
every value keeps its own slot, which is what a reverse pass needs; `schedule` lets dead values share slots. `weights`
is a plain array, so that weights can be trained in place.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from pgcc.errors import PgccError
from pgcc.ir.numbers import Number
from pgcc.program.determinant import DetStructure

LEAF, SUM, TIMES, QUOTIENT, DET, DETMAG, DETBAR, DETIN, LOOKUP, PAIR = range(10)
NAMES = ("LEAF", "SUM", "TIMES", "QUOTIENT", "DET", "DETMAG", "DETBAR", "DETIN", "LOOKUP", "PAIR")
# What a polynomial is made of, without determinants; and what `lower` makes.
ARITHMETIC = (LEAF, SUM, TIMES)
LOWERED = (*ARITHMETIC, DET, DETMAG)
# The entries of a table that PAIR reads, and the most variables of one that LOOKUP reads.
ENTRIES, MOST_VARIABLES = 16, 7


@dataclass(frozen=True, eq=False)
class Code:
    """Instructions and their weights: what a `Program` and its fast form (`Condensed`) have in common.

    Attributes
    ----------
    op : uint8 array
        What each instruction does.
    target : int32 array
        The slot that it writes.
    start : int64 array, one longer
        Its arguments are ``args[start[i]:start[i + 1]]``: slots (LEAF: the number of a leaf; PAIR and LOOKUP: that
        of a table; DET: the number of the determinant, then the slots of f and y; DETMAG: those, then the slots of
        their magnitudes).
    first_weight : int64 array, one longer
        Its weights are ``weights[first_weight[i]:first_weight[i + 1]]``.
    weights : float64 array
    numbers : list
        The numbers that the weights are rounded from.
    slots : int
    """

    op: np.ndarray
    target: np.ndarray
    start: np.ndarray
    args: np.ndarray
    first_weight: np.ndarray
    weights: np.ndarray
    numbers: list[Number]
    slots: int

    def expect(self, *known: int) -> Self:
        """These instructions, if they have no operations but the known ones; otherwise, an error."""
        for op in np.flatnonzero(np.bincount(self.op)).tolist():
            if op not in known:
                raise PgccError(f"internal error: nobody has said how to run {NAMES[op]} here; please report it")
        return self

    @property
    def instructions(self) -> int:
        """How many instructions."""
        return len(self.op)

    @property
    def operations(self) -> int:
        """Multiply-adds per row."""
        return int(self.start[-1])

    @cached_property
    def alone(self) -> np.ndarray:
        """How many terms of every SUM are w·x; the other ones are w·x·y."""
        return np.where(self.op == SUM, 2 * np.diff(self.first_weight) - np.diff(self.start), 0)

    def terms(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        """(values, pairs) of SUM number i: the slots x of its terms w·x, and (x, y), a row for each term w·x·y."""
        args = self.args[self.start[i] : self.start[i + 1]]
        alone = int(self.alone[i])
        return args[:alone], args[alone:].reshape(-1, 2)

    def __repr__(self) -> str:
        name = type(self).__name__
        return f"<{name}: {self.instructions} instructions, {self.operations} operations, {self.slots} slots>"


@dataclass(frozen=True, eq=False, repr=False)
class Program(Code):
    """Instructions and constants.

    Attributes
    ----------
    leaf_variable : int32 array
        The column of the variable of each leaf; −1 for a constant.
    leaf_table : float64 array, m × 3
        a, b and a + b of the leaf a·ȳ + b·z: its value where the variable is observed 0, observed 1, free.
    leaf_numbers : list of (a, b)
        The numbers that the table is rounded from.
    structures : list of DetStructure
        The determinants.
    value, magnitude : int
        The slots of the root and of its magnitude: the same circuit with absolute numbers. The float64 value is off
        by at most (rounding count) · 2⁻⁵³ · magnitude. The two are one slot where nothing can cancel.
    flow_of : int array, optional
        Of a program with its reverse pass, for every slot the one whose derivative or flow it belongs to; −1 for values
        of the forward pass, −2 for what comes after all.
    """

    leaf_variable: np.ndarray
    leaf_table: np.ndarray
    leaf_numbers: list[tuple[Number, Number]]
    structures: list[DetStructure]
    value: int
    magnitude: int
    n_variables: int
    flow_of: np.ndarray | None = None

    @property
    def signed(self) -> bool:
        """Whether something may cancel."""
        return self.value != self.magnitude

    @property
    def has_det(self) -> bool:
        """Whether there is a determinant."""
        return len(self.structures) > 0

    @cached_property
    def leaves(self) -> tuple[np.ndarray, np.ndarray]:
        """The slots that leaves are written to, and the number of the leaf in each."""
        where = np.flatnonzero(self.op == LEAF)
        return self.target[where], self.args[self.start[where]]

    @cached_property
    def literals(self) -> np.ndarray:
        """The slots of the leaves a·ȳ + b·z with b ≠ 0, which depend on a variable z."""
        slots, numbers = self.leaves
        dependent = [self.leaf_numbers[k][1] != 0 for k in numbers.tolist()]
        return slots[np.array(dependent, bool) & (self.leaf_variable[numbers] >= 0)]

    @property
    def det_children(self) -> list[np.ndarray]:
        """The slots of the children f_1..f_k and y_1..y_k of every DET."""
        return [self.args[self.start[i] + 1 : self.start[i + 1]] for i in np.flatnonzero(self.op == DET).tolist()]

    @cached_property
    def det_shape(self) -> np.ndarray:
        """(r, k) of every determinant."""
        return np.array([(s.rank, s.children) for s in self.structures], np.int64).reshape(-1, 2)

    @cached_property
    def det_numbers(self) -> list[Number]:
        """M0, U and V of every determinant, row by row, one after another."""
        return [x for s in self.structures for matrix in s.matrices for row in matrix.numbers() for x in row]

    @cached_property
    def det_start(self) -> np.ndarray:
        """Where M0, U, V of every determinant start in `det_data`."""
        r, k = self.det_shape.T
        return np.cumsum([0, *(r * (r + 2 * k))])[:-1].astype(np.int64)

    @cached_property
    def det_data(self) -> np.ndarray:
        """`det_numbers` as doubles."""
        return np.concatenate([np.zeros(0), *(m.ravel() for s in self.structures for m in s.floats)])
