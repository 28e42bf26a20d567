"""Data, split into training and validation data, with a cache of the tables that estimators derive from them."""

from __future__ import annotations

from typing import Any

import numpy as np

from pgcc.ir.blocks import Blocks
from pgcc.learn.mixtures.encoding import Grouped
from pgcc.learn.mixtures.partition import count_pairs, partition_columns, positive_dependence
from pgcc.learn.tables.packed_rows import Rows
from pgcc.locks import cached_property, new_lock


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
        self._grouped: dict[int, tuple[Grouped, Grouped]] = {}
        self._lock = new_lock()

    def __reduce__(self) -> tuple[Any, ...]:
        """Only the data are pickled: derived tables are larger, and are computed again."""
        return DataSplit, (self.rows, self.held_out, self.named)

    def grouped(self, most: int) -> tuple[Grouped, Grouped]:
        """Training and validation data, by groups of at most `most` variables."""
        with self._lock:
            if most not in self._grouped:
                groups = partition_columns(self._dependence, most, Blocks.of(self.rows.names))
                self._grouped[most] = Grouped(self.rows, groups), Grouped(self.held_out, groups)
            return self._grouped[most]

    @cached_property
    def _dependence(self) -> np.ndarray:
        pairs = sum(count_pairs(block.codes, block.counts) for block in self.rows.blocks())
        return positive_dependence(np.asarray(pairs))
