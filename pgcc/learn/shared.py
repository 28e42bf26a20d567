"""Data that several estimators are fitted to: what is computed of them is computed once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar

import numpy as np

from pgcc.backend.learning_trees import Sets
from pgcc.learn.data import distinct_rows
from pgcc.learn.encoding import Encoded, encode_distinct
from pgcc.learn.partition import partition_variables, positive_dependence

T = TypeVar("T")


class Shared:
    """Training and validation data; `fit` takes it in the place of X.

    Estimators in several threads may ask for the same thing at a time: one computes it, the others wait.

    Parameters
    ----------
    codes, held_out : array
        Rows of 1, 0 and −1.
    names : sequence of str
        Of the columns.
    named : bool
        Whether the names are those of the data, and not ours.

    Examples
    --------
    >>> data = Shared(np.array([[1, 1], [0, 0]], np.int8), np.array([[1, 0]], np.int8), ["a", "b"], True)
    >>> groups, train, valid = data.encoded(2)
    >>> groups, train is data.encoded(2)[1]
    ([[0, 1]], True)
    """

    def __init__(self, codes: np.ndarray, held_out: np.ndarray, names: Sequence[str], named: bool):
        self.codes, self.held_out, self.names, self.named = codes, held_out, list(names), named
        self._known: dict[Hashable, Any] = {}
        self._lock = threading.RLock()

    def encoded(self, most: int) -> tuple[list[list[int]], Encoded, Encoded]:
        """The groups of at most so many variables, and the rows by these groups: for training, and for validation."""
        return self._once(("encoded", most), lambda: self._encode(most))

    def _encode(self, most: int) -> tuple[list[list[int]], Encoded, Encoded]:
        dependence = self._once("dependence", lambda: positive_dependence(self.codes))
        groups = partition_variables(dependence, most)
        train, valid = (encode_distinct(*rows, groups) for rows in self._distinct())
        return groups, train, valid

    def sets(self) -> tuple[tuple[Sets, np.ndarray], tuple[Sets, np.ndarray]]:
        """Distinct rows and how often each occurs: for training, and for validation."""

        def compute() -> Any:
            return tuple((Sets(rows), np.bincount(where).astype(np.float64)) for rows, where in self._distinct())

        return self._once("sets", compute)

    def _distinct(self) -> list[tuple[np.ndarray, np.ndarray]]:
        return self._once("distinct", lambda: [distinct_rows(rows) for rows in (self.codes, self.held_out)])

    def _once(self, key: Hashable, compute: Callable[[], T]) -> T:
        with self._lock:
            if key not in self._known:
                self._known[key] = compute()
            return self._known[key]
