"""Expectation–maximization for trees: trainers whose sums over rows are computed by a crew of workers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from pgcc.cluster import HERE, Crew
from pgcc.ir.blocks import Blocks
from pgcc.learn.common.checkpoint import State
from pgcc.learn.tables.data_split import DataSplit
from pgcc.learn.tables.packed_rows import Block, Rows
from pgcc.learn.trees.pair_counts import PairCounts
from pgcc.learn.trees.tree_mixture import TreeRows, Trees


class MixtureEM:
    """EM for a mixture of trees, starting from random responsibilities.

    An epoch is an M-step (the best trees for the expected counts) and the E-step after it, which gives the likelihood.
    """

    def __init__(
        self,
        data: DataSplit,
        components: int,
        smoothing: float,
        seed: int,
        threads: int,
        workers: Crew,
        state: State | None,
    ):
        self._total, self._threads = workers.total, threads
        self._rows, self._held_out = data.rows.total, data.held_out.total
        self._blocks, self._valid = _keep(workers, data.rows), _keep(workers, data.held_out)
        independent = Trees.independent(data.rows)
        self._prior = self._expect(independent).pairs(0).spread(smoothing)
        if state is not None:
            self._trees = Trees(**state).checked()
            self._expected = self._expect(self._trees)
        else:
            self._trees = independent.repeated(components)
            self._expected = self._total(_expect_at_random, self._blocks, independent, components, seed, threads)

    def _expect(self, trees: Trees) -> _Expected:
        return self._total(_expect, self._blocks, trees, self._threads)

    def advance(self) -> float:
        """An M-step and the E-step after it; returns the mean log-likelihood of the training data."""
        self._trees = self._expected.best_trees(self._prior)
        self._expected = self._expect(self._trees)
        return self._expected.log_likelihood / self._rows

    def validate(self) -> float:
        """The mean log-likelihood of the validation data."""
        return self._total(_log_likelihood, self._valid, self._trees, self._threads) / self._held_out

    def learned(self) -> State:
        """The trees of the last M-step."""
        return self._trees.arrays()

    state = learned  # the expected counts follow from the trees


def log_likelihoods(rows: Rows, threads: int, learned: State) -> np.ndarray:
    """The log-likelihood of every distinct row under a mixture of trees."""
    blocks = (TreeRows(block.codes).scores(Trees(**learned), threads) for block in rows.blocks())
    return np.concatenate([np.logaddexp.reduce(scores, axis=0) for scores in blocks])


class SingleTreeEM:
    """EM for one tree: an epoch is an E-step (which only counts, if no entry is missing) and the M-step after it."""

    def __init__(self, rows: Rows, prior: PairCounts, workers: Crew, state: State | None):
        self._total, self._blocks = workers.total, _keep(workers, rows)
        self._rows, self._prior = rows.total, prior
        self._tree = Trees.independent(rows) if state is None else Trees(**state).checked()

    def advance(self) -> float:
        """An E-step and an M-step; returns the mean log-likelihood of the tree before them."""
        expected = self._total(_expect, self._blocks, self._tree, 1)
        self._tree = expected.best_trees(self._prior)
        return expected.log_likelihood / self._rows

    def validate(self) -> None:
        """Nothing is chosen: the last tree is kept."""

    def learned(self) -> State:
        """The tree of the last M-step."""
        return self._tree.arrays()

    state = learned


def chow_liu_structure(rows: Rows) -> np.ndarray:
    """The parent of every variable in the Chow–Liu tree; missing values are as frequent as those that are known."""
    trainer = SingleTreeEM(rows, PairCounts.even(Blocks.of(rows.names), 1.0), HERE, None)
    trainer.advance()
    return trainer.learned()["parents"][0]


# -- the contribution of a block of rows ---------------------------------------------------------------------


class _Counted(NamedTuple):
    """A block of rows, how often each occurs, and the number of the block."""

    rows: TreeRows
    counts: np.ndarray
    number: int


def _keep(workers: Crew, rows: Rows) -> Sequence[Any]:
    return workers.keep(_count, list(enumerate(rows.blocks())))


def _count(part: tuple[int, Block]) -> _Counted:
    number, block = part
    return _Counted(TreeRows(block.codes), np.ascontiguousarray(block.counts), number)


@dataclass(frozen=True)
class _Expected:
    """The result of an E-step.

    Attributes
    ----------
    both : array, components × n × n
        The expected number of rows in which two variables are both 1.
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
        """The M-step: the trees with the largest expected log-likelihood, with pseudo-counts `prior` for each."""
        return Trees.most_likely([self.pairs(c) + prior for c in range(len(self.rows))], self.rows)

    def __add__(self, other: _Expected) -> _Expected:
        log_likelihood = self.log_likelihood + other.log_likelihood
        return _Expected(self.both + other.both, self.rows + other.rows, log_likelihood, self.blocks)


def _expect(block: _Counted, trees: Trees, threads: int) -> _Expected:
    """The E-step for a block of rows."""
    scores = block.rows.scores(trees, threads)
    logs = np.logaddexp.reduce(scores, axis=0)
    return _expected_counts(block, trees, np.exp(scores - logs), float(block.counts @ logs), threads)


def _expect_at_random(block: _Counted, tree: Trees, components: int, seed: int, threads: int) -> _Expected:
    """The initial E-step: random responsibilities, with most of each row assigned to one component."""
    rng = np.random.default_rng([seed, block.number])
    responsibilities = np.ascontiguousarray(rng.dirichlet(np.full(components, 0.1), size=len(block.rows)).T)
    return _expected_counts(block, tree.repeated(components), responsibilities, math.nan, threads)


def _expected_counts(
    block: _Counted, trees: Trees, responsibilities: np.ndarray, log_likelihood: float, threads: int
) -> _Expected:
    counts = responsibilities * block.counts
    return _Expected(block.rows.pair_counts(counts, trees, threads), counts.sum(axis=1), log_likelihood, trees.blocks)


def _log_likelihood(block: _Counted, trees: Trees, threads: int) -> float:
    return float(block.counts @ np.logaddexp.reduce(block.rows.scores(trees, threads), axis=0))
