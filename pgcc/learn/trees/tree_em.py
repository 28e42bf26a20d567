"""Expectation–maximization for trees: trainers whose sums over rows are computed by a crew of workers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pgcc.cluster import HERE, Crew
from pgcc.ir.blocks import Blocks
from pgcc.learn.common.checkpoint import State
from pgcc.learn.tables.data_split import DataSplit
from pgcc.learn.tables.packed_rows import Block, Rows
from pgcc.learn.trees.pair_counts import PairCounts, maximum_spanning_tree
from pgcc.learn.trees.tree_mixture import Trees
from pgcc.learn.trees.tree_rows import Expected, TreeRows

# The standard deviation of the logarithm of random factors.
_NOISE = 0.3


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
            start = independent, components, seed, threads
            self._trees = independent.repeated(components)
            self._expected = self._total(TreeRows.expect_at_random, self._blocks, *start)

    def _expect(self, trees: Trees) -> Expected:
        return self._total(TreeRows.expect, self._blocks, trees, self._threads)

    def advance(self) -> float:
        """An M-step and the E-step after it; returns the mean log-likelihood of the training data."""
        self._trees = self._expected.best_trees(self._prior)
        self._expected = self._expect(self._trees)
        return self._expected.log_likelihood / self._rows

    def validate(self) -> float:
        """The mean log-likelihood of the validation data."""
        return self._total(TreeRows.log_likelihood, self._valid, self._trees, self._threads) / self._held_out

    def learned(self) -> State:
        """The trees of the last M-step."""
        return self._trees.arrays()

    state = learned  # the expected counts follow from the trees


def log_likelihoods(rows: Rows, threads: int, learned: State) -> np.ndarray:
    """The log-likelihood of every distinct row under a mixture of trees."""
    trees = Trees(**learned)
    return np.concatenate([block.log_likelihoods(trees, threads) for block in map(_read, _blocks(rows))])


class SingleTreeEM:
    """EM for one tree: an epoch is an E-step (which only counts, if no entry is missing) and the M-step after it."""

    def __init__(self, rows: Rows, prior: PairCounts, workers: Crew, state: State | None):
        self._total, self._blocks = workers.total, _keep(workers, rows)
        self._rows, self._prior = rows.total, prior
        self._tree = Trees.independent(rows) if state is None else Trees(**state).checked()

    def advance(self) -> float:
        """An E-step and an M-step; returns the mean log-likelihood of the tree before them."""
        expected = self._total(TreeRows.expect, self._blocks, self._tree)
        self._tree = expected.best_trees(self._prior)
        return expected.log_likelihood / self._rows

    def validate(self) -> None:
        """Nothing is chosen: the last tree is kept."""

    def learned(self) -> State:
        """The tree of the last M-step."""
        return self._tree.arrays()

    state = learned


def chow_liu_structure(rows: Rows, tree_seed: int | None = None) -> np.ndarray:
    """The parent of every variable in the Chow–Liu tree; missing values are as frequent as those that are known.

    With a seed, that of a tree which is nearly as good: mutual informations are multiplied by random numbers.
    """
    blocks, independent = Blocks.of(rows.names), Trees.independent(rows)
    expected = HERE.total(TreeRows.expect, _keep(HERE, rows), independent)
    information = (expected.pairs(0) + PairCounts.even(blocks, 1.0)).information()
    if tree_seed is not None:
        noise = np.triu(np.random.default_rng(tree_seed).normal(size=information.shape))
        information *= np.exp(_NOISE * (noise + noise.T))
    return maximum_spanning_tree(information)


def _keep(workers: Crew, rows: Rows) -> Sequence[Any]:
    return workers.keep(_read, list(_blocks(rows)))


def _blocks(rows: Rows) -> Iterator[tuple[Block, Sequence[str], int]]:
    return ((block, rows.names, number) for number, block in enumerate(rows.blocks()))


def _read(part: tuple[Block, Sequence[str], int]) -> TreeRows:
    block, names, number = part
    return TreeRows(block.codes, block.counts, Blocks.of(names), number)
