"""Data, split into training and validation data, with a cache of the tables that estimators derive from them."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

import numpy as np

from pgcc.learn.mixtures.encoding import Grouped
from pgcc.learn.mixtures.partition import count_pairs, partition_variables, positive_dependence
from pgcc.learn.tables.packed_rows import Rows
from pgcc.locks import new_lock

T = TypeVar("T")


class DataSplit:
    """Training and validation data, which several estimators can share: `fit` accepts it in place of X.

    Thread-safe: if several estimators need the same result at the same time, one computes it and the others wait.

    Parameters
    ----------
    rows, held_out : Rows
        The training and the validation data.
    named : bool
        Whether the columns have names of their own, and not x1, x2, …

    Examples
    --------
    >>> from pgcc.learn.tables.read_rows import read_rows
    >>> data = DataSplit(read_rows([[1, 1], [0, 0]]), read_rows([[1, 0]]), named=False)
    >>> train, valid = data.grouped(2)
    >>> train.groups, train is data.grouped(2)[0]
    ([[0, 1]], True)
    """

    def __init__(self, rows: Rows, held_out: Rows, named: bool):
        self.rows, self.held_out, self.named = rows, held_out, named
        self._cache: dict[Hashable, Any] = {}
        self._lock = new_lock()

    def __reduce__(self) -> tuple[Any, ...]:
        """Only the data are pickled: derived tables are larger, and are computed again."""
        return DataSplit, (self.rows, self.held_out, self.named)

    def grouped(self, most: int) -> tuple[Grouped, Grouped]:
        """Training and validation data, by groups of at most `most` variables."""
        return self._cached(("grouped", most), lambda: self._group(most))

    def _group(self, most: int) -> tuple[Grouped, Grouped]:
        groups = partition_variables(self._cached("dependence", self._dependence), most)
        return Grouped(self.rows, groups), Grouped(self.held_out, groups)

    def _dependence(self) -> np.ndarray:
        pairs = sum(count_pairs(block.codes, block.counts) for block in self.rows.blocks())
        return positive_dependence(np.asarray(pairs))

    def _cached(self, key: Hashable, compute: Callable[[], T]) -> T:
        with self._lock:
            if key not in self._cache:
                self._cache[key] = compute()
            return self._cache[key]
