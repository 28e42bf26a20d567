"""How programs are written: instructions one by one, or many at once, then the program of them all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pgcc.ir.flat import doubles
from pgcc.ir.numbers import Number, add, nearest_float
from pgcc.program.det_structure import DetStructure
from pgcc.program.program import LEAF, SUM, TIMES, Code, Program


class Builder:
    """Collects instructions. Every value gets a slot of its own, in the order in which they are made.

    Parameters
    ----------
    n_variables : int
    after : Program, optional
        The instructions, leaves and determinants that these follow.
    """

    def __init__(self, n_variables: int, after: Program | None = None):
        self.n_variables, self._after = n_variables, after
        self.slots = 0 if after is None else after.slots
        self.structures: list[DetStructure] = [] if after is None else list(after.structures)
        self.numbers: list[Number] = []
        self._chunks: list[tuple[Sequence[float] | np.ndarray, ...]] = []  # columns (see `Code.assemble`)
        self._begin_chunk()
        self._leaf_variable: list[int] = []
        self._leaf_numbers: list[tuple[Number, Number]] = []
        self._leaves_before = 0 if after is None else len(after.leaf_numbers)

    def _begin_chunk(self) -> None:
        self._op: list[int] = []
        self._target: list[int] = []
        self._lengths: list[int] = []
        self._args: list[int] = []
        self._counts: list[int] = []
        self._weights: list[float] = []
        self._chunks.append((self._op, self._target, self._lengths, self._args, self._counts, self._weights))

    def new_slots(self, count: int) -> int:
        """Reserve this many consecutive slots; the first of them."""
        self.slots += count
        return self.slots - count

    def emit(self, op: int, args: Sequence[int], weights: Sequence[Number] = (), width: int = 1) -> int:
        """An instruction that writes `width` new slots; the first of them."""
        target = self.new_slots(width)
        self._op.append(op)
        self._target.append(target)
        self._args += args
        self._lengths.append(len(args))
        self._counts.append(len(weights))
        if weights:
            self.numbers += weights
            self._weights += map(nearest_float, weights)
        return target

    def emit_all(
        self, op: np.ndarray, target: np.ndarray, lengths: np.ndarray, args: np.ndarray,
        counts: np.ndarray, weights: np.ndarray, numbers: list[Number],
    ) -> None:  # fmt: skip
        """Many instructions, in columns (see `Code.assemble`), which write slots reserved by `new_slots`."""
        self._chunks.append((op, target, lengths, args, counts, weights))
        self.numbers += numbers
        self._begin_chunk()

    def leaf(self, variable: int, a: Number, b: Number) -> int:
        """a·ȳ + b·z of the variable in this column, or for −1 the constant a."""
        self._leaf_variable.append(variable)
        self._leaf_numbers.append((a, b))
        return self.emit(LEAF, [self._leaves_before + len(self._leaf_numbers) - 1])

    def sum(self, values: Sequence[int], weights: Sequence[Number]) -> int:
        """Σ w·x"""
        return self.emit(SUM, values, weights)

    def product(self, factors: Sequence[int]) -> int:
        """Π x"""
        return self.emit(TIMES, factors)

    def finish(self, value: int, magnitude: int, adjoint_of: np.ndarray | None = None) -> Program:
        """The program of all instructions, with its root in these slots."""
        op, target, lengths, args, counts, weights = map(np.concatenate, zip(*self._chunks, strict=True))
        code = Code.assemble(op, target, lengths, args, counts, weights, self.numbers, self.slots)
        new = Program(
            **code.columns,
            leaf_variable=np.array(self._leaf_variable, np.int32),
            leaf_table=leaf_table(self._leaf_numbers),
            leaf_numbers=self._leaf_numbers,
            structures=self.structures,
            value=value,
            magnitude=magnitude,
            n_variables=self.n_variables,
            adjoint_of=adjoint_of,
        )
        return new if self._after is None else _joined(self._after, new)


class BySlot:
    """Arguments or weights of instructions, collected in any order, to be sorted by the slots of these."""

    def __init__(self) -> None:
        self._slots: list[np.ndarray] = []
        self._entries: list[np.ndarray] = []

    def add(self, slots: np.ndarray, *columns: np.ndarray) -> None:
        """An entry of each column for each slot, after those that the slot has."""
        self._slots.append(np.repeat(slots, len(columns)))
        self._entries.append(np.stack(columns, axis=1).reshape(-1))

    def sorted(self, first: int, count: int) -> tuple[np.ndarray, np.ndarray]:
        """All entries, sorted by slot; and how many of them each of the slots first … first + count − 1 has."""
        slots = np.concatenate(self._slots) - first
        order = np.argsort(slots, kind="stable")
        return np.concatenate(self._entries)[order], np.bincount(slots, minlength=count)


def _joined(first: Program, then: Program) -> Program:
    """The program `then`, with the instructions and leaves of another one before its own.

    The leaves of `then` are numbered from the last leaf of `first` on, and it has the determinants of both.
    """
    return replace(
        then,
        **first.followed_by(then).columns,
        leaf_variable=np.concatenate([first.leaf_variable, then.leaf_variable]),
        leaf_table=np.concatenate([first.leaf_table, then.leaf_table]),
        leaf_numbers=[*first.leaf_numbers, *then.leaf_numbers],
    )


def leaf_table(numbers: Sequence[tuple[Number, Number]]) -> np.ndarray:
    """The doubles nearest to a, b and a + b, a row for each leaf."""
    a, b = [a for a, _ in numbers], [b for _, b in numbers]
    table = np.stack([doubles(a), doubles(b), np.zeros(len(numbers))], axis=1)
    with np.errstate(over="ignore", invalid="ignore"):
        table[:, 2] = table[:, 0] + table[:, 1]  # IEEE addition rounds the sum of two doubles correctly
    for i, (x, y) in enumerate(numbers):
        if type(x) is not float or type(y) is not float:
            table[i, 2] = nearest_float(add(x, y))
    return table
