"""Rows of data for learning trees: complete ones as sets of what is 1, those with gaps as codes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pgcc.evaluate.parallel import for_chunks
from pgcc.learn.kernels import trees as kernels


class Forest(NamedTuple):
    """Trees as kernels read them; the first axis is the component.

    `parents` are −1 for roots, `order` has parents before children, `probs` are Pr(x = 1 | parent = 0), Pr(x = 1 |
    parent = 1), which for a root are the same.
    """

    parents: np.ndarray
    order: np.ndarray
    probs: np.ndarray
    log_weights: np.ndarray


class Sets:
    """Rows of 1, 0 and −1 (missing).

    >>> sets = Sets(np.array([[1, 0, 1], [0, 0, 1]]))
    >>> alone = Forest(np.array([[-1, 0, 0]]), np.array([[0, 1, 2]]), np.full((1, 3, 2), 0.5), np.zeros(1))
    >>> sets.pair_counts(np.array([[2.0, 1.0]]), alone)[0].tolist()
    [[2.0, 0.0, 2.0], [0.0, 0.0, 0.0], [2.0, 0.0, 3.0]]
    """

    def __init__(self, rows: np.ndarray):
        self.shape = rows.shape
        gaps = (rows < 0).any(axis=1)
        self._complete, self._gaps = np.flatnonzero(~gaps), np.flatnonzero(gaps)
        self._codes = np.ascontiguousarray(rows[gaps], dtype=np.int8)
        ones = rows[~gaps] == 1
        self._start = np.concatenate([[0], np.cumsum(ones.sum(axis=1))])
        self._ones = np.nonzero(ones)[1]

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def complete(self) -> bool:
        """Whether nothing is missing."""
        return not len(self._gaps)

    def pair_counts(self, shares: np.ndarray, trees: Forest, threads: int = 1) -> np.ndarray:
        """Σ shares · Pr(i and j are both 1), components × n × n; of what is missing, as the trees have it."""
        both = np.zeros((len(shares), self.shape[1], self.shape[1]))
        known, other = (np.ascontiguousarray(shares[:, rows]) for rows in (self._complete, self._gaps))

        def work(c: slice) -> None:
            kernels.pair_counts(self._start, self._ones, known, c.start, c.stop, both)
            kernels.gap_counts(self._codes, trees.order, trees.parents, trees.probs, other, c.start, c.stop, both)

        for_chunks(len(shares), 1, threads, work)
        return both

    def scores(self, trees: Forest, threads: int = 1) -> np.ndarray:
        """log(weight · Pr(what is known of a row)): components × rows.

        For complete rows log p(x | v) is linear in x, in its parent's v, and in x·v.
        """
        no_low, no_high = np.log1p(-trees.probs).transpose(2, 0, 1)
        low, high = np.log(trees.probs).transpose(2, 0, 1)
        alone = low - no_low
        for slopes, parents, change in zip(alone, trees.parents, no_high - no_low, strict=True):
            np.add.at(slopes, parents[parents >= 0], change[parents >= 0])
        together = (high - no_high) - (low - no_low)
        nothing = trees.log_weights + no_low.sum(axis=1)
        components = len(trees.parents)
        known, other = np.empty((components, len(self._complete))), np.empty((components, len(self._gaps)))

        def work(c: slice) -> None:
            inside = np.zeros(self.shape[1])
            kernels.tree_scores(
                self._start, self._ones, trees.parents, nothing, alone, together, c.start, c.stop, inside, known
            )
            kernels.gap_scores(
                self._codes, trees.order, trees.parents, trees.probs, trees.log_weights, c.start, c.stop, other
            )

        for_chunks(components, 1, threads, work)
        scores = np.empty((components, len(self)))
        scores[:, self._complete], scores[:, self._gaps] = known, other
        return scores
