"""The compiled form of a circuit: a straight-line program in flat arrays, with at most one instruction per node.

An instruction reads values from slots of memory and writes its result to another slot, its *target*:

    LEAF   table[l][code of variable l]          an affine form a·ȳ + b·z in one variable (or a constant)
    SUM    Σ w_j · v[x_j] + Σ w_k · v[x_k] · v[y_k]      products with one parent are read in place
    TIMES  Π v[x_j]
    DET    det [[M0, U·diag(f)], [−Vᵀ, diag(y)]]
    DETMAG the magnitude of that DET: its absolute value times its relative error in units of 2⁻⁵³
    DETBAR its derivatives by f and by y, in consecutive slots from the target on (see `adjoints`)
    DETIN  its derivatives by f, then the magnitudes of these, likewise (see `reverse`)
    LOOKUP wide table[t][state of up to seven variables]  (only in the fast form: see `condense`)
    PAIR   table[t][joint code of two variables]          (likewise)

The arguments of a SUM are the slots x_j of its terms w·x, then the slots x_k, y_k of its terms w·x·y; its weights are
in the same order. The number of terms w·x follows from the numbers of arguments and weights (`Code.alone`).

The same program runs in every number system of the backend; only what the leaves become differs. As `lower` makes it,
every value has a slot of its own, which a reverse pass needs; `schedule` assigns slots again once their values are
dead. `weights` is a plain array, so that weights can be trained in place.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple, Self

import numpy as np

from pgcc.errors import PgccError
from pgcc.ir.flat import spread, starts
from pgcc.ir.numbers import Number
from pgcc.locks import cached_property
from pgcc.program.det_structure import DetStructure

LEAF, SUM, TIMES, DET, DETMAG, DETBAR, DETIN, LOOKUP, PAIR = range(9)
NAMES = ("LEAF", "SUM", "TIMES", "DET", "DETMAG", "DETBAR", "DETIN", "LOOKUP", "PAIR")
# Groups of operations, for `op in DETERMINANTS` (in kernels, too) and `np.isin(program.op, DETERMINANTS)`.
ARITHMETIC = (LEAF, SUM, TIMES)  # the operations of a polynomial without determinants
LOWERED = (*ARITHMETIC, DET, DETMAG)  # the operations that `lower` uses
DETERMINANTS = (DET, DETMAG, DETBAR, DETIN)
NUMBERED = (LEAF, *DETERMINANTS, LOOKUP, PAIR)  # the first argument is no slot, but the number of a leaf, …
# The number of entries of a table that PAIR reads, and the most variables of one that LOOKUP reads.
ENTRIES, MOST_VARIABLES = 16, 7


class DetInstruction(NamedTuple):
    """An instruction about a determinant.

    Attributes
    ----------
    place : int
        Its position in the program.
    op : int
        One of `DETERMINANTS`.
    det : int
        The number of the determinant (see `Program.structures`).
    slots : int32 array
        The slots that it reads: those of the children f, then those of their complements y. Of a DETMAG: the slots of
        their magnitudes, or that of the determinant itself if the magnitude of every child is its value.
    target : int
        The first slot that it writes.
    """

    place: int
    op: int
    det: int
    slots: np.ndarray
    target: int

    @property
    def inside(self) -> np.ndarray:
        """The slots of the children f."""
        return self.slots[: len(self.slots) // 2]

    @property
    def outside(self) -> np.ndarray:
        """The slots of their complements y."""
        return self.slots[len(self.slots) // 2 :]


@dataclass(frozen=True, eq=False)
class Code:
    """Instructions and their weights: what a `Program` and its fast form (`Condensed`) have in common.

    Attributes
    ----------
    op : uint8 array
        The operation of each instruction.
    target : int32 array
        The slot that it writes.
    start : int64 array, one longer
        Its arguments are ``args[start[i]:start[i + 1]]``: slots, but the first argument of an operation in `NUMBERED`
        is the number of a leaf (LEAF), of a determinant (DET, …: see `DetInstruction`) or of a table (PAIR, LOOKUP).
    args : int32 array
    first_weight : int64 array, one longer
        Its weights are ``weights[first_weight[i]:first_weight[i + 1]]``.
    weights : float64 array
    numbers : list
        The numbers that the weights are rounded from.
    slots : int
        The number of slots.
    """

    op: np.ndarray
    target: np.ndarray
    start: np.ndarray
    args: np.ndarray
    first_weight: np.ndarray
    weights: np.ndarray
    numbers: list[Number]
    slots: int

    # -- how code is made from columns, and from other code ------------------------------------------------------------

    @staticmethod
    def assemble(
        op: np.ndarray, target: np.ndarray, lengths: np.ndarray, args: np.ndarray,
        counts: np.ndarray, weights: np.ndarray, numbers: list[Number], slots: int,
    ) -> Code:  # fmt: skip
        """Code from the columns of its instructions; lengths, counts : how many arguments and weights each has."""
        return Code(
            op=op.astype(np.uint8),
            target=target.astype(np.int32),
            start=starts(lengths),
            args=args.astype(np.int32),
            first_weight=starts(counts),
            weights=weights.astype(np.float64),
            numbers=numbers,
            slots=slots,
        )

    @property
    def columns(self) -> dict[str, Any]:
        """The fields of `Code` by name, to make a `Program` or a `Condensed` with the same instructions."""
        return {field.name: getattr(self, field.name) for field in fields(Code)}

    def select(self, keep: np.ndarray) -> Self:
        """Only some instructions. Slots, leaves and determinants keep their numbers.

        keep : which of them, in the same order (a mask), or their positions in another order.

        >>> import pgcc
        >>> from pgcc.program.lower import lower
        >>> program = lower(pgcc.parse("0.5*a*b + 0.25*a + 0.25"))
        >>> program.select(program.op == LEAF)
        <Program: 3 instructions, 3 operations, 4 slots>
        """
        lengths, counts = np.diff(self.start)[keep], np.diff(self.first_weight)[keep]
        weights = spread(self.first_weight[:-1][keep], counts)
        return replace(
            self,
            op=self.op[keep],
            target=self.target[keep],
            start=starts(lengths),
            args=self.args[spread(self.start[:-1][keep], lengths)],
            first_weight=starts(counts),
            weights=self.weights[weights],
            numbers=[self.numbers[k] for k in weights.tolist()],
        )

    def renamed(self, new: np.ndarray, slots: int) -> Self:
        """The same instructions with slot new[s] in place of slot s, out of `slots` slots.

        The results are the same if no two values that are alive at the same time get the same slot, and if the slots
        that a DETBAR or DETIN writes stay consecutive.
        """
        args = self.args.copy()
        args[self.is_slot] = new[args[self.is_slot]]
        return replace(self, target=new[self.target].astype(np.int32), args=args, slots=slots)

    def followed_by(self, then: Code) -> Code:
        """These instructions and then others, which read and write the same slots and possibly more."""
        return Code(
            op=np.concatenate([self.op, then.op]),
            target=np.concatenate([self.target, then.target]),
            start=np.concatenate([self.start, self.start[-1] + then.start[1:]]),
            args=np.concatenate([self.args, then.args]),
            first_weight=np.concatenate([self.first_weight, self.first_weight[-1] + then.first_weight[1:]]),
            weights=np.concatenate([self.weights, then.weights]),
            numbers=[*self.numbers, *then.numbers],
            slots=then.slots,
        )

    # -- what it consists of -------------------------------------------------------------------------------------------

    def expect(self, *known: int) -> Self:
        """This code, if it has no operations but the known ones; otherwise, an error."""
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
    def is_slot(self) -> np.ndarray:
        """Which entries of `args` are slots, and not the numbers of leaves, determinants or tables."""
        found = np.ones(len(self.args), bool)
        found[self.start[:-1][np.isin(self.op, NUMBERED)]] = False
        return found

    @cached_property
    def first_slot(self) -> np.ndarray:
        """By instruction, where in `args` the slots that it reads begin; they end at start[i + 1]."""
        return self.start[:-1] + np.isin(self.op, NUMBERED)

    @property
    def arity(self) -> np.ndarray:
        """By instruction, how many slots it reads."""
        return self.start[1:] - self.first_slot

    @cached_property
    def alone(self) -> np.ndarray:
        """How many terms of every SUM are w·x; the other ones are w·x·y."""
        return np.where(self.op == SUM, 2 * np.diff(self.first_weight) - np.diff(self.start), 0)

    def terms(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        """(values, pairs) of SUM number i: the slots x of its terms w·x, and (x, y), a row for each term w·x·y."""
        args = self.args[self.start[i] : self.start[i + 1]]
        alone = int(self.alone[i])
        return args[:alone], args[alone:].reshape(-1, 2)

    @cached_property
    def det_instructions(self) -> list[DetInstruction]:
        """The instructions about determinants, in the order of the program."""
        found = []
        for i in np.flatnonzero(np.isin(self.op, DETERMINANTS)).tolist():
            args = self.args[self.start[i] : self.start[i + 1]]
            found.append(DetInstruction(i, int(self.op[i]), int(args[0]), args[1:], int(self.target[i])))
        return found

    def segments(self) -> Iterator[tuple[int, int, DetInstruction | None]]:
        """(begin, end, det): the runs of instructions begin … end − 1 between those about determinants.

        Every run, which may be empty, is followed by the instruction `det`; the last run, by none.

        >>> import pgcc
        >>> from pgcc.program.lower import lower
        >>> program = lower(pgcc.dpp(L=[[2, 1], [1, 2]]))
        >>> [(begin, end, det and NAMES[det.op]) for begin, end, det in program.segments()]
        [(0, 3, 'DET'), (4, 4, 'DETMAG'), (5, 5, None)]
        """
        begin = 0
        for det in self.det_instructions:
            yield begin, det.place, det
            begin = det.place + 1
        yield begin, self.instructions, None

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
        The slots of the root and of its magnitude: the value of the same circuit with absolute numbers. The error of
        the float64 value is at most (number of roundings) · 2⁻⁵³ · magnitude. The two are one slot where nothing can
        cancel.
    n_variables : int
    adjoint_of : int array, optional
        Of a program with a reverse pass: for every slot that holds an adjoint, the slot of its value. −1 for the slots
        of the forward pass, and −2 for all others, such as the sums over leaves at the end.
    """

    leaf_variable: np.ndarray
    leaf_table: np.ndarray
    leaf_numbers: list[tuple[Number, Number]]
    structures: list[DetStructure]
    value: int
    magnitude: int
    n_variables: int
    adjoint_of: np.ndarray | None = None

    @property
    def signed(self) -> bool:
        """Whether something may cancel."""
        return self.value != self.magnitude

    def renamed(self, new: np.ndarray, slots: int) -> Self:
        """See `Code.renamed`; the root and its magnitude are renamed, too."""
        renamed, value, magnitude = super().renamed(new, slots), int(new[self.value]), int(new[self.magnitude])
        return replace(renamed, value=value, magnitude=magnitude, adjoint_of=None)

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
    def dets(self) -> list[DetInstruction]:
        """The instruction DET of every determinant, in the order of `structures`."""
        return [one for one in self.det_instructions if one.op == DET]

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
