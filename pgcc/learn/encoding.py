"""Rows of data as the kernels of learning read them: patterns of groups, and what was observed of each group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pgcc.backend.kernels.learning_tables import Table
from pgcc.learn.data import distinct_rows


@dataclass(frozen=True)
class Encoded:
    """Data, by groups of variables.

    Attributes
    ----------
    table : Table
        The distinct rows.
    where : array
        For every row of the data its place in the table.
    """

    table: Table
    where: np.ndarray

    @cached_property
    def counts(self) -> np.ndarray:
        """How often each distinct row occurs."""
        return np.bincount(self.where, minlength=len(self.table.of_row)).astype(np.float64)

    def average(self, values: np.ndarray) -> float:
        """The mean over the data of a value per distinct row."""
        return float(self.counts @ values / self.counts.sum())


def encode(codes: np.ndarray, groups: Sequence[Sequence[int]]) -> Encoded:
    """Group by group: nothing in (all 0), something in (with which sets it may be), or not known.

    Sets of a group are numbered by their bits, the lowest for its first variable, and stand at bits − 1 of its leaf.

    >>> encoded = encode(np.array([[1, 0, 0], [1, 1, 1], [0, 0, 0]], np.int8), [[0, 1], [2]])
    >>> [encoded.table.codes[encoded.table.seen].tolist(), encoded.table.row.tolist()]
    [[0, 2, 3], [0, 0, 1, 3]]
    """
    return encode_distinct(*distinct_rows(codes), groups)


def encode_distinct(rows: np.ndarray, where: np.ndarray, groups: Sequence[Sequence[int]]) -> Encoded:
    """The same of distinct rows, with the place of every row among them."""
    leaf = np.concatenate([[0], np.cumsum([(1 << len(group)) - 1 for group in groups])])
    observations = _Observations()
    state = np.full((len(rows), len(groups)), -2)  # −2: not in; −1: in; else the observation, if it may be in
    seen = np.full((len(rows), len(groups)), -1)
    for g, group in enumerate(groups):
        bits = 1 << np.arange(len(group))
        ones, unknown = (rows[:, group] == 1) @ bits, (rows[:, group] < 0) @ bits
        keys, index = np.unique(ones + (unknown << len(group)), return_inverse=True)
        known = [observations.number(int(key), len(group), int(leaf[g])) for key in keys]
        mine = np.array(known)[index.reshape(-1)]
        state[:, g] = np.where(ones > 0, -1, np.where(unknown > 0, mine, -2))
        seen[:, g] = np.where(ones > 0, mine, -1)
    patterns, of_row = distinct_rows(state)
    active = patterns > -2
    table = Table(
        leaf=leaf.astype(np.int64),
        observation=np.array(observations.starts),
        codes=np.array(observations.codes, dtype=np.int64),
        pattern=_starts(active),
        groups=np.nonzero(active)[1],
        free=patterns[active],
        row=_starts(seen >= 0),
        seen=seen[seen >= 0],
        of_row=of_row,
    )
    return Encoded(Table(*map(np.ascontiguousarray, table)), where)


def _starts(present: np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(present.sum(axis=1))])


class _Observations:
    """Sets of codes, numbered as they come."""

    def __init__(self) -> None:
        self.starts, self.codes = [0], list[int]()

    def number(self, key: int, size: int, first: int) -> int:
        """The number of an observation: `key` has the bits that are 1, and above them those that are unknown."""
        ones, unknown = key & ((1 << size) - 1), key >> size
        if key == 0:
            return -1
        consistent = [s for s in range(1, 1 << size) if s & ~unknown == ones]
        self.codes += [first + s - 1 for s in consistent]
        self.starts.append(len(self.codes))
        return len(self.starts) - 2
