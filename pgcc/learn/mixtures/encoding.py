"""Encodes rows for the kernels of SimplePGC: for each group of variables, which of its sets a row allows.

Rows       all rows of the data, packed (`rows.py`)
Grouped    rows of any number, by groups of variables, as one table or a part at a time
Encoded    a table of distinct rows, and the place of every row in it
Table      the arrays of distinct rows that kernels read (`kernels/tables.py`)
Batch      the rows of a table that are in a mini-batch (`kernels/tables.py`)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pgcc.evaluate.distinct import number_rows
from pgcc.learn.kernels.encoded_tables import Table
from pgcc.learn.mixtures.partition import Exclusive
from pgcc.learn.tables.packed_rows import BLOCK, FEW, Rows, shuffled, tally, unpack
from pgcc.locks import cached_property


@dataclass(frozen=True)
class Encoded:
    """Rows of data, by groups of variables.

    Attributes
    ----------
    table : Table
        The distinct rows.
    where : array
        For every row of the data, the index of its distinct row in the table.
    weights : array, optional
        The weight of every row.
    """

    table: Table
    where: np.ndarray
    weights: np.ndarray | None = None

    @cached_property
    def counts(self) -> np.ndarray:
        """How often each distinct row occurs."""
        return tally(self.where, len(self.table.of_row), self.weights)


class Grouped:
    """Data of any length, by groups of variables.

    Few distinct rows are encoded once, in one table. Many are encoded again in every epoch, a part at a time.
    Mini-batches have the same rows in both cases.

    Attributes
    ----------
    rows : Rows
    groups : sequence of sequences of int
    start : Encoded
        The rows for the initialization: all, or a random sample if there are too many for one table.
    """

    def __init__(self, rows: Rows, groups: Sequence[Sequence[int]]):
        self.rows, self.groups = rows, groups
        self._all: Encoded | None = None
        if rows.where is not None:
            self._all = Encoded(tabulate(unpack(rows.packed, rows.n), groups), rows.where, rows.weights)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the rows only: tables are larger, and are recomputed."""
        return Grouped, (self.rows, self.groups)

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def start(self) -> Encoded:
        if self._all is not None:
            return self._all
        rows = self.rows
        drawn = next(shuffled(len(rows), np.random.default_rng(len(rows))))
        drawn = np.sort(drawn[: max(1, FEW // rows.n)])
        some = encode(rows.codes(drawn), self.groups)
        return some if rows.weights is None else replace(some, weights=rows.weights[drawn])

    def batches(self, size: int, rng: np.random.Generator) -> Iterator[tuple[Table, np.ndarray]]:
        """All rows in random order, in mini-batches: for each, a table and the indices of its rows in the table."""
        rows = self.rows
        if self._all is not None:
            for drawn in rows.draw(size, rng):
                yield self._all.table, self._all.where[drawn].astype(np.int64)
            return
        at_once = size * max(1, BLOCK // (rows.n * size))
        for drawn in rows.draw(at_once, rng):
            some = encode(rows.codes(drawn), self.groups)
            for first in range(0, len(drawn), size):
                yield some.table, some.where[first : first + size]

    def each(self, values: Callable[[Table], np.ndarray]) -> np.ndarray:
        """What a function from a table to one value per row says of every distinct row (of `Rows.packed`)."""
        if self._all is not None:
            return values(self._all.table)
        parts = (encode(block.codes, self.groups) for block in self.rows.blocks())
        return np.concatenate([values(part.table)[part.where] for part in parts])


def encode(codes: np.ndarray, groups: Sequence[Sequence[int]]) -> Encoded:
    """Encode rows: each group is out (all variables 0), in (some variable 1), or uncertain (none 1, some missing).

    The group of a variable with states comes after all others. It has a code where that is known, and is never in or
    uncertain: determinants are about the other groups.

    The code of a set of variables is its bit mask − 1, with the lowest bit for the first variable of the group.

    >>> encoded = encode(np.array([[1, 0, 0], [1, 1, 1], [0, 0, 0]], np.int8), [[0, 1], [2]])
    >>> [encoded.table.codes[encoded.table.seen].tolist(), encoded.table.row.tolist()]
    [[0, 2, 3], [0, 1, 3, 3]]
    """
    first, where = number_rows(codes)
    return Encoded(tabulate(codes[first], groups), where)


def leaf_starts(groups: Sequence[Sequence[int]]) -> np.ndarray:
    """The offset of the codes of every group: a leaf has one code for each non-empty set, or for each state."""
    sizes = [len(group) if isinstance(group, Exclusive) else (1 << len(group)) - 1 for group in groups]
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def tabulate(rows: np.ndarray, groups: Sequence[Sequence[int]]) -> Table:
    """The table of distinct rows; see `encode`."""
    leaf = leaf_starts(groups)
    observations = _Observations()
    # −2: out; −1: in; otherwise uncertain: the number of the observation
    state = np.full((len(rows), len(groups)), -2, np.int32)
    seen = np.full((len(rows), len(groups)), -1, np.int32)
    for g, group in enumerate(groups):
        if isinstance(group, Exclusive):
            numbers = observations.states(int(leaf[g]), len(group))
            seen[:, g] = np.where((rows[:, group] == 1).any(axis=1), numbers[(rows[:, group] == 1).argmax(axis=1)], -1)
            continue
        bits = 1 << np.arange(len(group))
        ones, unknown = (rows[:, group] == 1) @ bits, (rows[:, group] < 0) @ bits
        keys, index = np.unique(ones + (unknown << len(group)), return_inverse=True)
        known = [observations.number(int(key), len(group), int(leaf[g])) for key in keys]
        mine = np.array(known)[index.reshape(-1)]
        state[:, g] = np.where(ones > 0, -1, np.where(unknown > 0, mine, -2))
        seen[:, g] = np.where(ones > 0, mine, -1)
    patterns, of_row = np.unique(state, axis=0, return_inverse=True)
    active, inside = patterns > -2, seen >= 0
    table = Table(
        leaf=leaf,
        observation=np.array(observations.starts),
        codes=np.array(observations.codes, dtype=np.int64),
        pattern=_starts(active),
        groups=np.nonzero(active)[1],
        free=patterns[active].astype(np.int64),
        row=_starts(inside),
        seen=seen[inside].astype(np.int64),
        of_row=of_row.reshape(-1),
    )
    return Table(*map(np.ascontiguousarray, table))


def _starts(present: np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(present.sum(axis=1))])


class _Observations:
    """Sets of codes that are consistent with some row, numbered in order of first use."""

    def __init__(self) -> None:
        self.starts, self.codes = [0], list[int]()

    def number(self, key: int, size: int, first: int) -> int:
        """Add an observation; return its number. Low bits of `key` mark variables that are 1, high bits unknown."""
        ones, unknown = key & ((1 << size) - 1), key >> size
        if key == 0:
            return -1
        consistent = [s for s in range(1, 1 << size) if s & ~unknown == ones]
        self.codes += [first + s - 1 for s in consistent]
        self.starts.append(len(self.codes))
        return len(self.starts) - 2

    def states(self, first: int, count: int) -> np.ndarray:
        """Add an observation of each state of a variable; return their numbers."""
        numbers = len(self.starts) - 1 + np.arange(count)
        self.starts += range(len(self.codes) + 1, len(self.codes) + count + 1)
        self.codes += range(first, first + count)
        return numbers
