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
from itertools import chain
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
    observations = list[list[int]]()  # the codes of each
    # −2: out; −1: in; otherwise uncertain: the number of the observation
    state = np.full((len(rows), len(groups)), -2, np.int32)
    seen = np.full((len(rows), len(groups)), -1, np.int32)
    for g, group in enumerate(groups):
        is_one, before = rows[:, group] == 1, len(observations)
        if isinstance(group, Exclusive):
            seen[:, g] = np.where(is_one.any(axis=1), before + is_one.argmax(axis=1), -1)
            observations += [[code] for code in range(leaf[g], leaf[g + 1])]
            continue
        bits = 1 << np.arange(len(group))
        ones, unknown = is_one @ bits, (rows[:, group] < 0) @ bits
        keys, index = np.unique(ones + (unknown << len(group)), return_inverse=True)
        observations += [_consistent(key, len(group), int(leaf[g])) for key in keys.tolist() if key]
        mine = before + index.reshape(-1) - (keys[0] == 0)  # (0 is the first key, and no observation)
        state[:, g] = np.where(ones > 0, -1, np.where(unknown > 0, mine, -2))
        seen[:, g] = np.where(ones > 0, mine, -1)
    patterns, of_row = np.unique(state, axis=0, return_inverse=True)
    active, inside = patterns > -2, seen >= 0
    table = Table(
        leaf=leaf,
        observation=np.cumsum([0, *map(len, observations)]),
        codes=np.array(list(chain.from_iterable(observations)), dtype=np.int64),
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


def _consistent(key: int, size: int, first: int) -> list[int]:
    """The codes that are consistent with a key: low bits mark variables that are 1, high bits unknown ones."""
    unknown, ones = divmod(key, 1 << size)
    return [first + code - 1 for code in range(1, 1 << size) if code & ~unknown == ones]
