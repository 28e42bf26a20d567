"""Data, split into training and validation data, with a cache of the tables that estimators derive from them."""

from __future__ import annotations

from typing import Any

import numpy as np

from pgcc.ir.blocks import Blocks
from pgcc.ir.domains import domains_of
from pgcc.learn.mixtures.encoding import Grouped
from pgcc.learn.mixtures.partition import count_pairs, partition_columns, positive_dependence
from pgcc.learn.tables.packed_rows import Rows
from pgcc.locks import cached_property, new_lock

# Where so many empty rows would be expected and there is none, they do not occur.
_EXPECTED = 10


class DataSplit:
    """Training and validation data, which several estimators can share: `fit` accepts it in place of X.

    Thread-safe: if several estimators need the same result at the same time, one computes it and the others wait.

    Parameters
    ----------
    rows : Rows
        The training data.
    validation : Rows, optional
        The validation data, if any choices are made with them.
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

    def __init__(self, rows: Rows, validation: Rows | None, named: bool):
        self.rows, self.validation, self.named = rows, validation, named
        self._grouped: dict[int, tuple[Grouped, Grouped]] = {}
        self._lock = new_lock()

    def __reduce__(self) -> tuple[Any, ...]:
        """Only the data are pickled: derived tables are larger, and are computed again."""
        return DataSplit, (self.rows, self.validation, self.named)

    @property
    def tables(self) -> list[Rows]:
        """The training data, and the validation data if there are any."""
        return [self.rows] if self.validation is None else [self.rows, self.validation]

    @property
    def held_out(self) -> Rows:
        """The validation data, which are there whenever the estimator makes choices."""
        assert self.validation is not None
        return self.validation

    @cached_property
    def has_empty(self) -> bool:
        """Whether some row is empty: all its variables are known to be 0."""
        return any(not block.codes.any(axis=1).all() for rows in self.tables for block in rows.blocks())

    @cached_property
    def never_empty(self) -> bool:
        """Whether no row is empty, though ten and more would be if variables were independent; they are plain ones."""
        rows = self.rows
        if domains_of(rows.names) is not None or self.has_empty:
            return False
        blocks = rows.blocks()
        ones = sum(block.counts @ (block.codes == 1) for block in blocks)
        known = sum(block.counts @ (block.codes >= 0) for block in blocks)
        return bool(len(rows) * np.prod(1 - ones / np.maximum(known, 1)) >= _EXPECTED)

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
