"""A mixture of trees as arrays, and rows of data as its kernels read them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from pgcc.builders import chow_liu, parents_first
from pgcc.errors import FormatError
from pgcc.evaluate.parallel import for_chunks
from pgcc.frontend.combine import mixture
from pgcc.ir.circuit import Circuit
from pgcc.learn.common.checkpoint import Shapes, State, fits
from pgcc.learn.kernels import tree_passes as kernels
from pgcc.learn.tables.packed_rows import Rows
from pgcc.learn.trees.pair_counts import PairCounts
from pgcc.locks import cached_property

# Conditional probabilities stay this far from 0 and 1.
_LEAST = 1e-12


@dataclass(frozen=True)
class Trees:
    """A mixture of trees.

    Attributes
    ----------
    weights : array
        The weight of every component.
    parents : array, components × n
        The parent of every variable; −1 for a root.
    probs : array, components × n × 2
        Pr(x = 1 | parent = 0), Pr(x = 1 | parent = 1).
    """

    weights: np.ndarray
    parents: np.ndarray
    probs: np.ndarray

    @classmethod
    def independent(cls, rows: Rows) -> Trees:
        """One tree in which variables are independent, each with its frequency in the rows where it is known."""
        ones, known = np.zeros(rows.n), np.zeros(rows.n)
        for block in rows.blocks():
            ones += block.counts @ (block.codes == 1)
            known += block.counts @ (block.codes >= 0)
        often = (ones + 0.5) / (known + 1)
        parents = np.where(np.arange(rows.n) > 0, 0, -1)
        return cls(np.ones(1), parents[None], np.tile(often[:, None], (1, 1, 2)))

    def repeated(self, components: int) -> Trees:
        """This many copies of the first tree, with equal weights."""
        weights = np.full(components, 1 / components)
        return Trees(weights, np.tile(self.parents[:1], (components, 1)), np.tile(self.probs[:1], (components, 1, 1)))

    @classmethod
    def most_likely(cls, counts: Sequence[PairCounts], rows: np.ndarray) -> Trees:
        """For every component, the Chow–Liu tree of its counts; weights are proportional to its rows plus one."""
        parents, probs = zip(*(one.tree() for one in counts), strict=True)
        weights = rows + 1
        return cls(weights / weights.sum(), np.stack(parents), np.clip(np.stack(probs), _LEAST, 1 - _LEAST))

    @staticmethod
    def shapes(components: int, variables: int) -> Shapes:
        """The arrays of a mixture of this size."""
        return {
            "weights": (float, components),
            "parents": (int, components, variables),
            "probs": (float, components, variables, 2),
        }

    def checked(self) -> Self:
        """The same trees, from a file; an error if they are none."""
        components, n = self.parents.shape if self.parents.ndim == 2 else (0, 0)
        is_mixture = n > 0 and fits(self.arrays(), self.shapes(components, n)) and bool((self.weights > 0.0).all())
        if not (is_mixture and (self.parents >= -1).all() and (self.parents < n).all()):
            raise FormatError("these are no trees: parents are numbers of variables, or −1 for a root")
        if any(len(parents_first(parents)) < n for parents in self.parents.tolist()):
            raise FormatError("these are no trees: a variable is its own ancestor")
        if not ((self.probs >= 0.0) & (self.probs <= 1.0)).all():
            raise FormatError("these are no trees: a probability is not between 0 and 1")
        return self

    def arrays(self) -> State:
        """The attributes by name, for checkpoints and files."""
        return {"weights": self.weights, "parents": self.parents, "probs": self.probs}

    @cached_property
    def order(self) -> np.ndarray:
        """Variables of every tree, parents before children: components × n."""
        return np.array([parents_first(parents) for parents in self.parents.tolist()], np.int64)

    def circuit(self, names: list[str]) -> Circuit:
        """The mixture as a circuit."""
        trees = [chow_liu(p.tolist(), q.tolist(), names) for p, q in zip(self.parents, self.probs, strict=True)]
        return mixture(self.weights.tolist(), trees) if len(trees) > 1 else trees[0]


class TreeRows:
    """Rows of 1, 0 and −1 (missing): complete rows as lists of the variables that are 1, other rows as codes.

    With lists, an epoch of EM on complete rows is 7 (nltcs) to 250 times (apparel) as fast as with belief propagation.

    >>> rows = TreeRows(np.array([[1, 0, 1], [0, 0, 1]]))
    >>> independent = Trees(np.ones(1), np.array([[-1, 0, 0]]), np.full((1, 3, 2), 0.5))
    >>> rows.pair_counts(np.array([[2.0, 1.0]]), independent)[0].tolist()
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

    def pair_counts(self, responsibilities: np.ndarray, trees: Trees, threads: int = 1) -> np.ndarray:
        """Σ responsibilities · Pr(i and j are both 1 | the observed entries of the row): components × n × n."""
        both = np.zeros((len(responsibilities), self.shape[1], self.shape[1]))
        known, other = (np.ascontiguousarray(responsibilities[:, rows]) for rows in (self._complete, self._gaps))

        def work(c: slice) -> None:
            kernels.pair_counts(self._start, self._ones, known, c.start, c.stop, both)
            kernels.pair_counts_with_missing(
                self._codes, trees.order, trees.parents, trees.probs, other, c.start, c.stop, both
            )

        for_chunks(len(responsibilities), 1, threads, work)
        return both

    def scores(self, trees: Trees, threads: int = 1) -> np.ndarray:
        """log(weight · Pr(observed entries of a row)): components × rows.

        For complete rows, log p(x | parent = v) is linear in x, in v, and in x·v.
        """
        no_low, no_high = np.log1p(-trees.probs).transpose(2, 0, 1)
        low, high = np.log(trees.probs).transpose(2, 0, 1)
        linear = low - no_low
        for slopes, parents, change in zip(linear, trees.parents, no_high - no_low, strict=True):
            np.add.at(slopes, parents[parents >= 0], change[parents >= 0])
        pairwise = (high - no_high) - (low - no_low)
        log_weights = np.log(trees.weights)
        constant = log_weights + no_low.sum(axis=1)
        components = len(trees.parents)
        known, other = np.empty((components, len(self._complete))), np.empty((components, len(self._gaps)))

        def work(c: slice) -> None:
            is_one = np.zeros(self.shape[1])
            kernels.tree_scores(
                self._start, self._ones, trees.parents, constant, linear, pairwise, c.start, c.stop, is_one, known
            )
            kernels.scores_with_missing(
                self._codes, trees.order, trees.parents, trees.probs, log_weights, c.start, c.stop, other
            )

        for_chunks(components, 1, threads, work)
        scores = np.empty((components, len(self)))
        scores[:, self._complete], scores[:, self._gaps] = known, other
        return scores
