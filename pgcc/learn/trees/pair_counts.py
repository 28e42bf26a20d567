"""The algorithm of Chow and Liu (1968): find the tree with the largest likelihood from the counts of pairs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pgcc.errors import CircuitError
from pgcc.ir.blocks import Blocks


@dataclass(frozen=True)
class PairCounts:
    """Counts of rows, which need not be whole numbers (they may be expected or smoothed counts).

    Attributes
    ----------
    both : array, n × n
        How often two columns are both 1.
    one : array
        How often each column is 1.
    total : float
        How many rows there are.
    blocks : Blocks
        The columns that show one variable. A column alone shows two states, the first of which is that it is 0.

    Examples
    --------
    >>> X, blocks = np.array([[0, 0, 1], [0, 1, 1], [1, 1, 0], [1, 1, 0]]), Blocks.of(["a", "b", "c"])
    >>> parents, probs = (PairCounts(X.T @ X, X.sum(axis=0), 4.0, blocks) + PairCounts.even(blocks, 1.0)).tree()
    >>> parents.tolist(), probs[2].tolist()
    ([-1, 0, 0], [0.75, 0.25])
    """

    both: np.ndarray
    one: np.ndarray
    total: float
    blocks: Blocks

    @classmethod
    def even(cls, blocks: Blocks, rows: float) -> PairCounts:
        """Laplace smoothing: four times this many rows, so many for each of the four values of two binary variables.

        All states of a variable are equally frequent in them, and variables are independent.
        """
        if not 4 * rows < np.inf:
            raise CircuitError(f"Laplace smoothing by {rows:g} rows is beyond the range of doubles")
        share = 1 / blocks.states
        return cls(4 * rows * np.outer(share, share), 4 * rows * share, 4 * rows, blocks)

    def spread(self, rows: float) -> PairCounts:
        """This many rows with the same distribution, after `even` smoothing by one, so that nothing is impossible."""
        smoothed = self + PairCounts.even(self.blocks, 1.0)
        scale = rows / smoothed.total
        return PairCounts(scale * smoothed.both, scale * smoothed.one, rows, self.blocks)

    def __add__(self, other: PairCounts) -> PairCounts:
        return PairCounts(self.both + other.both, self.one + other.one, self.total + other.total, self.blocks)

    def information(self) -> np.ndarray:
        """Mutual information of all pairs of variables: Σ p(x, y) · log p(x, y) / p(x) p(y)."""
        p11, p1, blocks = self.both / self.total, self.one / self.total, self.blocks
        p0 = np.where(blocks.size == 1, 1 - p1, 0.0)  # the other columns do not have the state 0
        p10, p01 = p1[:, None] - p11, p1[None, :] - p11
        result = np.zeros_like(p11)
        for p, x, y in ((p11, p1, p1), (p10, p1, p0), (p01, p0, p1), (1 - p11 - p10 - p01, p0, p0)):
            independent = x[:, None] * y[None, :]
            ratio = np.divide(p, independent, out=np.ones_like(p), where=(p > 0) & (independent > 0))
            result += p * np.log(ratio)
        return result if blocks.are_columns else np.add.reduceat(np.add.reduceat(result, blocks.first), blocks.first, 1)

    def tree(self) -> tuple[np.ndarray, np.ndarray]:
        """Parents of variables (the first is the root), and Pr(column = 1 | state of the parent), columns × states.

        If the parent never has a value, the probability given that value is Pr(column = 1).
        """
        parents, blocks = maximum_spanning_tree(self.information()), self.blocks
        above, states = blocks.first[np.maximum(parents, 0)][blocks.block][:, None], np.arange(blocks.states.max())
        column = above + np.minimum(states, blocks.size[above] - 1)
        is_0 = (blocks.size[above] == 1) & (states == 0)  # the state of a parent that has one column: it is not 1
        given, both = self.one[column], self.both[np.arange(len(above))[:, None], column]
        given, both = np.where(is_0, self.total - given, given), np.where(is_0, self.one[:, None] - both, both)
        marginal = np.broadcast_to((self.one / self.total)[:, None], given.shape).copy()
        known = given > 0
        known[: blocks.size[0]] = False
        return parents, np.clip(np.divide(both, given, out=marginal, where=known), 0.0, 1.0)


def maximum_spanning_tree(weights: np.ndarray) -> np.ndarray:
    """Parents in the maximum spanning tree rooted at variable 0, by Prim's algorithm; ties go to the first."""
    n = len(weights)
    parents, best, outside = np.full(n, -1), np.full(n, -np.inf), np.ones(n, dtype=bool)
    newest = 0
    for _ in range(n - 1):
        outside[newest] = False
        better = outside & (weights[newest] > best)
        best[better], parents[better] = weights[newest][better], newest
        newest = int(np.argmax(np.where(outside, best, -np.inf)))
    return parents
