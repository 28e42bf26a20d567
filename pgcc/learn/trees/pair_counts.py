"""The algorithm of Chow and Liu (1968): find the tree with the largest likelihood from the counts of pairs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pgcc.errors import CircuitError


@dataclass(frozen=True)
class PairCounts:
    """Counts of rows, which need not be whole numbers (they may be expected or smoothed counts).

    Attributes
    ----------
    both : array, n × n
        How often two variables are both 1.
    one : array
        How often each variable is 1.
    total : float
        How many rows there are.

    Examples
    --------
    >>> X = np.array([[0, 0, 1], [0, 1, 1], [1, 1, 0], [1, 1, 0]])
    >>> parents, probs = (PairCounts(X.T @ X, X.sum(axis=0), 4.0) + PairCounts.even(3, 1.0)).tree()
    >>> parents.tolist(), probs[2].tolist()
    ([-1, 0, 0], [0.75, 0.25])
    """

    both: np.ndarray
    one: np.ndarray
    total: float

    @classmethod
    def even(cls, n: int, rows: float) -> PairCounts:
        """Laplace smoothing: this many rows for each of the four values of every pair."""
        if not 4 * rows < np.inf:
            raise CircuitError(f"Laplace smoothing by {rows:g} rows is beyond the range of doubles")
        return cls(np.full((n, n), rows), np.full(n, 2 * rows), 4 * rows)

    def spread(self, rows: float) -> PairCounts:
        """This many rows with the same distribution, plus each of the four values once, so that none is impossible."""
        scale = rows / (self.total + 4)
        return PairCounts(scale * (self.both + 1), scale * (self.one + 2), rows)

    def __add__(self, other: PairCounts) -> PairCounts:
        return PairCounts(self.both + other.both, self.one + other.one, self.total + other.total)

    def information(self) -> np.ndarray:
        """Mutual information of all pairs: Σ p(x, y) · log p(x, y) / p(x) p(y)."""
        p11 = self.both / self.total
        p1 = self.one / self.total
        p10, p01 = p1[:, None] - p11, p1[None, :] - p11
        result = np.zeros_like(p11)
        for p, x, y in ((p11, p1, p1), (p10, p1, 1 - p1), (p01, 1 - p1, p1), (1 - p11 - p10 - p01, 1 - p1, 1 - p1)):
            independent = x[:, None] * y[None, :]
            ratio = np.divide(p, independent, out=np.ones_like(p), where=(p > 0) & (independent > 0))
            result += p * np.log(ratio)
        return result

    def tree(self) -> tuple[np.ndarray, np.ndarray]:
        """Parents (variable 0 is the root) and Pr(x = 1 | parent = 0), Pr(x = 1 | parent = 1), n × 2.

        If the parent never has a value, the probability given that value is Pr(x = 1).
        """
        parents = maximum_spanning_tree(self.information())
        above = np.maximum(parents, 0)
        both = self.both[np.arange(len(parents)), above]
        ones, zeros, marginal = self.one[above], self.total - self.one[above], self.one / self.total
        low = np.divide(self.one - both, zeros, out=marginal.copy(), where=zeros > 0)
        high = np.divide(both, ones, out=marginal.copy(), where=ones > 0)
        low[0] = high[0] = marginal[0]
        return parents, np.clip(np.stack([low, high], axis=1), 0.0, 1.0)


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
