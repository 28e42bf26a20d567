"""Expectation–maximisation of trees: ascents for the training loop, whose sums over rows are the work of a crew."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from pgcc.cluster import Crew
from pgcc.frontend.chow_liu import PairCounts
from pgcc.learn.checkpoint import State
from pgcc.learn.rows import Block, Rows
from pgcc.learn.shared import Shared
from pgcc.learn.tree_mixture import TreeRows, Trees


class MixtureEM:
    """EM for a mixture of trees, from rows that are mostly of one component each, drawn at random.

    An epoch is an M-step (the best trees for the counts), and the E-step after it, which has their likelihood.
    """

    def __init__(
        self,
        data: Shared,
        components: int,
        smoothing: float,
        seed: int,
        threads: int,
        workers: Crew,
        state: State | None,
    ):
        self._total, self._threads = workers.total, threads
        self._rows, self._held_out = len(data.rows), len(data.held_out)
        self._blocks, self._valid = _keep(workers, data.rows), _keep(workers, data.held_out)
        independent = Trees.independent(data.rows)
        self._prior = self._expect(independent).pairs(0).spread(smoothing)
        if state is not None:
            self._trees = Trees(**state)
            self._expected = self._expect(self._trees)
        else:
            self._trees = independent.repeated(components)
            self._expected = self._total(_expect_at_random, self._blocks, independent, components, seed, threads)

    def _expect(self, trees: Trees) -> _Expected:
        return self._total(_expect, self._blocks, trees, self._threads)

    def advance(self) -> float:
        """The best trees for the expected counts, and the counts that these trees expect."""
        self._trees = self._expected.best_trees(self._prior)
        self._expected = self._expect(self._trees)
        return self._expected.log_likelihood / self._rows

    def validate(self) -> float:
        """The mean log-likelihood of the validation data."""
        return self._total(_log_likelihood, self._valid, self._trees, self._threads) / self._held_out

    def learned(self) -> State:
        """The trees of the last step."""
        return self._trees.arrays()

    state = learned  # the expected counts follow from the trees


class SingleTreeEM:
    """EM for one tree: an epoch is an E-step (which changes nothing if no entry is missing) and the M-step after it."""

    def __init__(self, rows: Rows, prior: PairCounts, workers: Crew, state: State | None):
        self._total, self._blocks = workers.total, _keep(workers, rows)
        self._rows, self._prior = len(rows), prior
        self._tree = Trees.independent(rows) if state is None else Trees(**state)

    def advance(self) -> float:
        """The best tree for the counts that the last one expects; the likelihood of the last one."""
        expected = self._total(_expect, self._blocks, self._tree, 1)
        self._tree = expected.best_trees(self._prior)
        return expected.log_likelihood / self._rows

    def validate(self) -> None:
        """Nothing is chosen: the last tree is kept."""

    def learned(self) -> State:
        """The tree of the last step."""
        return self._tree.arrays()

    state = learned


# -- what a block of rows adds to the counts ------------------------------------------------------------------


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
    """The expected counts of every component (pairs of variables that are both 1, and rows); Σ log p(row)."""

    both: np.ndarray
    rows: np.ndarray
    log_likelihood: float

    def pairs(self, component: int) -> PairCounts:
        """The counts of one component."""
        both = self.both[component]
        return PairCounts(both, np.diag(both).copy(), float(self.rows[component]))

    def best_trees(self, prior: PairCounts) -> Trees:
        """The M-step: the trees with the largest expected likelihood; `prior` is added to the counts of each."""
        return Trees.most_likely([self.pairs(c) + prior for c in range(len(self.rows))], self.rows)

    def __add__(self, other: _Expected) -> _Expected:
        return _Expected(self.both + other.both, self.rows + other.rows, self.log_likelihood + other.log_likelihood)


def _expect(block: _Counted, trees: Trees, threads: int) -> _Expected:
    """The E-step: rows are shared out by the posterior probabilities of the components."""
    scores = block.rows.scores(trees, threads)
    logs = np.logaddexp.reduce(scores, axis=0)
    return _expect_shares(block, trees, np.exp(scores - logs), float(block.counts @ logs), threads)


def _expect_at_random(block: _Counted, tree: Trees, components: int, seed: int, threads: int) -> _Expected:
    """The start: every row is mostly of one component, drawn at random."""
    rng = np.random.default_rng([seed, block.number])
    shares = np.ascontiguousarray(rng.dirichlet(np.full(components, 0.1), size=len(block.rows)).T)
    return _expect_shares(block, tree.repeated(components), shares, math.nan, threads)


def _expect_shares(block: _Counted, trees: Trees, shares: np.ndarray, log_likelihood: float, threads: int) -> _Expected:
    counts = shares * block.counts
    return _Expected(block.rows.pair_counts(counts, trees, threads), counts.sum(axis=1), log_likelihood)


def _log_likelihood(block: _Counted, trees: Trees, threads: int) -> float:
    return float(block.counts @ np.logaddexp.reduce(block.rows.scores(trees, threads), axis=0))
