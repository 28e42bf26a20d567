"""The compiled form of a circuit: flat arrays, one instruction per node, no code generated.

Every instruction writes one value slot:

    LEAF   table[l][code of variable l]          an affine form a·ȳ + b·z in one variable (or a constant)
    SUM    Σ w_j · v[x_j]
    DOT    Σ w_j · v[x_j] · v[y_j]               products with one parent are read in place
    MORE   the same, added to what the slot holds
    TIMES  Π v[x_j]
    QUOTIENT  w · v[x] / v[y]                    0 where v[y] is below the normal numbers (see `flows`)
    DET    det [[M0, U·diag(f)], [−Vᵀ, diag(y)]]
    DETMAG how far the float64 value of that DET can be trusted (see `Program.magnitude`)
    DETBAR its derivatives by f and by y, in as many slots from the target on (see `adjoints`)
    DETIN  its derivatives by f and how far they can be trusted, likewise (see `reverse`)
    LOOKUP wide table[t][state of some variables]  (see `condense`)

The same program runs in every number system of the backend; only what the leaves become differs. As `lower` makes it,
every value keeps its own slot, which is what a reverse pass needs; `schedule` lets dead values share slots. `weights`
is a plain array, so that weights can be trained in place.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pgcc.errors import PgccError
from pgcc.ir.numbers import Number
from pgcc.program.determinant import DetStructure

LEAF, SUM, DOT, MORE, TIMES, QUOTIENT, DET, DETMAG, DETBAR, DETIN, LOOKUP = range(11)
NAMES = ("LEAF", "SUM", "DOT", "MORE", "TIMES", "QUOTIENT", "DET", "DETMAG", "DETBAR", "DETIN", "LOOKUP")
# What a polynomial is made of, without determinants; and what `lower` makes.
ARITHMETIC = (LEAF, SUM, DOT, MORE, TIMES)
LOWERED = (*ARITHMETIC, DET, DETMAG)


@dataclass(frozen=True, eq=False)
class Program:
    """Instructions and constants.

    Attributes
    ----------
    op : uint8 array
        What each instruction does.
    target : int32 array
        The slot that it writes.
    start : int64 array, one longer
        Its arguments are ``args[start[i]:start[i + 1]]``: slots (LEAF: the number of a leaf; DET: the number of
        the determinant, then the slots of f and y; DETMAG: those, then the slots of their magnitudes).
    first_weight : int64 array
        Where its weights start in `weights`.
    leaf_variable : int32 array
        The column of the variable of each leaf; −1 for a constant.
    leaf_table : float64 array, m × 3
        a, b and a + b of the leaf a·ȳ + b·z: its value where the variable is observed 0, observed 1, free.
    value, magnitude : int
        The slots of the root and of its magnitude: the same circuit with absolute numbers. The float64 value is off
        by at most (rounding count) · 2⁻⁵³ · magnitude. The two are one slot where nothing can cancel.
    mirrored : int array, optional
        Of a program with its reverse pass, for every slot the one whose derivative or flow it belongs to; −1 for values
        of the forward pass, −2 for what comes after all.
    """

    op: np.ndarray
    target: np.ndarray
    start: np.ndarray
    args: np.ndarray
    first_weight: np.ndarray
    weights: np.ndarray
    leaf_variable: np.ndarray
    leaf_table: np.ndarray
    structures: list[DetStructure]
    slots: int
    value: int
    magnitude: int
    n_variables: int
    numbers: list[Number]
    leaf_numbers: list[tuple[Number, Number]]
    mirrored: np.ndarray | None = None

    def expect(self, *known: int) -> Program:
        """This program, if it has no operations but these: what runs it says so, and its last `else` is one of them."""
        strange = np.setdiff1d(self.op, known)
        if len(strange):
            raise PgccError(f"internal error: nobody has said how to run {NAMES[strange[0]]} here; please report it")
        return self

    @property
    def instructions(self) -> int:
        """How many instructions."""
        return len(self.op)

    @property
    def operations(self) -> int:
        """Multiply-adds per row."""
        return int(self.start[-1])

    @property
    def signed(self) -> bool:
        """Whether something may cancel."""
        return self.value != self.magnitude

    @property
    def has_det(self) -> bool:
        """Whether there is a determinant."""
        return len(self.structures) > 0

    @cached_property
    def det_shape(self) -> np.ndarray:
        """(r, k) of every determinant."""
        return np.array([(s.rank, s.children) for s in self.structures], np.int64).reshape(-1, 2)

    @cached_property
    def det_numbers(self) -> list[Number]:
        """M0, U and V of every determinant, row by row, one after another."""
        return [x for s in self.structures for matrix in s.matrices for row in matrix.numbers() for x in row]

    @cached_property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """What every kernel takes, in the order in which it takes it."""
        return (
            self.op,
            self.target,
            self.start,
            self.args,
            self.first_weight,
            self.weights,
            self.leaf_variable,
            self.leaf_table,
        )

    @cached_property
    def det_start(self) -> np.ndarray:
        """Where M0, U, V of every determinant start in `det_data`."""
        r, k = self.det_shape.T
        return np.cumsum([0, *(r * (r + 2 * k))])[:-1].astype(np.int64)

    @cached_property
    def det_data(self) -> np.ndarray:
        """`det_numbers` as doubles."""
        return np.concatenate([np.zeros(0), *(m.ravel() for s in self.structures for m in s.floats)])

    @property
    def dets(self) -> tuple[np.ndarray, ...]:
        """What kernels take that make nothing special of determinants."""
        return self.det_shape, self.det_start, self.det_data

    def __repr__(self) -> str:
        return f"<Program: {self.instructions} instructions, {self.operations} operations, {self.slots} slots>"
