"""The E-step of mixtures of trees: rows of data as the passes over trees read them, and what is expected of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pgcc.evaluate.parallel import for_chunks
from pgcc.ir.blocks import Blocks
from pgcc.learn.kernels import tree_passes as kernels
from pgcc.learn.trees.pair_counts import PairCounts
from pgcc.learn.trees.tree_mixture import Trees

# The most parts of the rows that threads share in an E-step; the fewest rows of a part, the most counts of all parts.
_PARTS, _ROWS, _SUMS = 16, 1 << 11, 1 << 23
# Rows whose counts are added together, if there are more counts of pairs than this.
_BATCH, _BATCH_SUMS = 256, 1 << 22
# Conditional probabilities stay this far from 0 and 1.
_LEAST = 1e-12


@dataclass(frozen=True)
class Expected:
    """The result of an E-step.

    Attributes
    ----------
    both : array, components × n × n
        The expected number of rows in which two columns are both 1.
    rows : array
        The expected number of rows of every component.
    log_likelihood : float
        Σ log p(row)
    blocks : Blocks
        The columns that show one variable.
    """

    both: np.ndarray
    rows: np.ndarray
    log_likelihood: float
    blocks: Blocks

    def pairs(self, component: int) -> PairCounts:
        """The counts of one component."""
        both = self.both[component]
        return PairCounts(both, np.diag(both).copy(), float(self.rows[component]), self.blocks)

    def best_trees(self, prior: PairCounts) -> Trees:
        """The M-step: the trees with the largest expected log-likelihood, with pseudo-counts `prior` for each.

        Weights are proportional to the rows plus one.
        """
        trees = [(self.pairs(c) + prior).tree() for c in range(len(self.rows))]
        parents, probs = map(np.stack, zip(*trees, strict=True))
        first = None if self.blocks.are_columns else self.blocks.first
        return Trees((self.rows + 1) / (self.rows + 1).sum(), parents, np.clip(probs, _LEAST, 1 - _LEAST), first)

    def __add__(self, other: Expected) -> Expected:
        log_likelihood = self.log_likelihood + other.log_likelihood
        return Expected(self.both + other.both, self.rows + other.rows, log_likelihood, self.blocks)


class TreeRows:
    """Rows of 1, 0 and −1 (missing), how often each occurs, and the number of this block of rows.

    Examples
    --------
    >>> rows = TreeRows(np.array([[1, 0, 1], [0, 0, 1]]), np.array([2.0, 1.0]), Blocks.of(["x", "y", "z"]))
    >>> expected = rows.expect(Trees(np.ones(1), np.array([[-1, 0, 0]]), np.full((1, 3, 2), 0.5)))
    >>> expected.both[0].tolist(), expected.rows.tolist(), round(expected.log_likelihood, 6)
    ([[2.0, 0.0, 2.0], [0.0, 0.0, 0.0], [2.0, 0.0, 3.0]], [3.0], -6.238325)
    """

    def __init__(self, codes: np.ndarray, counts: np.ndarray, blocks: Blocks, number: int = 0):
        entries = (np.logical_or.reduceat(codes < 0, blocks.first, axis=1)[:, blocks.block]) | (codes == 1)
        start, columns = np.concatenate([[0], np.cumsum(entries.sum(axis=1))]), np.nonzero(entries)[1]
        self._table = kernels.Table(np.ascontiguousarray(codes, np.int8), start, np.ascontiguousarray(columns))
        self._counts, self._number = np.ascontiguousarray(counts), number

    def log_likelihood(self, trees: Trees, threads: int = 1) -> float:
        """Σ log Pr(row)"""
        return float(self._counts @ self.log_likelihoods(trees, threads))

    def log_likelihoods(self, trees: Trees, threads: int = 1) -> np.ndarray:
        """log Pr(row) of every row."""
        return self._pass(trees, threads, None, 0)[2]

    def expect(self, trees: Trees, threads: int = 1, given: np.ndarray | None = None) -> Expected:
        """The E-step. Responsibilities (components × rows) are those of the trees, unless they are given."""
        n = trees.probs.shape[1]
        half, rows, logs = self._pass(trees, threads, given, n)
        both = np.empty((len(rows), n, n))
        for i in range(n):
            both[:, i] = (half[i] + half[:, i]).T
        both[:, range(n), range(n)] /= 2
        return Expected(both, rows, float(self._counts @ logs), trees.blocks)

    def expect_at_random(self, tree: Trees, components: int, seed: int, threads: int) -> Expected:
        """The initial E-step: random responsibilities, with most of each row assigned to one component."""
        rng = np.random.default_rng([seed, self._number])
        given = rng.dirichlet(np.full(components, 0.1), size=len(self._counts)).T
        return self.expect(tree.repeated(components), threads, given)

    def _pass(self, trees: Trees, threads: int, given: np.ndarray | None, n: int) -> tuple[np.ndarray, ...]:
        """Threads share parts of the rows that are always the same, and so is the rounding of sums."""
        forms, length, components = trees.forms, len(self._counts), len(trees.weights)
        parts = max(1, min(_PARTS, length // _ROWS, _SUMS // (n * n * components + 1)))
        half, rows, logs = np.zeros((parts, n, n, components)), np.zeros((parts, components)), np.empty(length)
        shares = np.empty((components, 0)) if given is None else np.ascontiguousarray(given)
        few = max(1, min(_BATCH, _BATCH_SUMS // forms.above.size)) if n * n * components > _BATCH_SUMS else 1

        def work(which: slice) -> None:
            for k in range(which.start, which.stop):
                ends, sums = (k * length // parts, (k + 1) * length // parts), kernels.Sums(logs, rows[k], half[k])
                kernels.expect(self._table, forms, self._counts, shares, *ends, few, _work(forms), sums)

        for_chunks(parts, 1, threads, work)
        for k in range(1, parts):
            half[0] += half[k]
        return half[0], rows.sum(axis=0), logs


def _work(forms: kernels.Forms) -> kernels.Work:
    (n, components), whole = forms.above.shape, np.int64
    pending, case, order = np.zeros((3, n, components), whole)
    lists = np.empty(components, whole), np.empty((n, components)), np.empty((components, 1))
    island = np.empty(n, whole), np.empty((n, n))
    return kernels.Work(np.zeros((n, components)), pending, case, np.empty(forms.chance.shape), order, *lists, *island)
