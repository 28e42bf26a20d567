"""Chow–Liu trees, and mixtures of them: each variable depends on one other at most, given the component."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np

from pgcc.cluster import Crew, crew
from pgcc.frontend.builders import chow_liu
from pgcc.frontend.combine import mixture
from pgcc.ir.circuit import Circuit
from pgcc.learn.base import Estimator, check_positive, check_whole
from pgcc.learn.checkpoint import EVERY, Checkpoint, Place, State
from pgcc.learn.data import read_rows
from pgcc.learn.epochs import Run, run_epochs
from pgcc.learn.rows import Block, Rows
from pgcc.learn.shared import Shared
from pgcc.learn.tree_evaluator import Forest, Sets

# Steps of EM for a single tree from rows with gaps.
_STEPS = 50


class MixtureOfTrees(Estimator):
    """A mixture of Chow–Liu trees by expectation–maximisation (Meilă and Jordan 2000).

    Every step takes, for each component, the tree with the largest expected likelihood of all trees.

    Parameters
    ----------
    components : int
    smoothing : float
        Rows that are added to every component, in which pairs of variables are distributed as in the whole of the data.
    epochs, patience : int
        At most so many steps; stop after as many without a better likelihood of the validation data.
    seed : int
        The same seed gives the same model, on any number of threads.
    threads : int
        Components are shared out among them.
    verbose : bool
        Tell of every step, on standard error.

    Attributes
    ----------
    circuit_ : Circuit
    history_ : dict of lists
        Of every step: mean log-likelihood of the training and of the validation data, seconds.
    best_epoch_ : int
        The step, from 0, that was kept: the best on the validation data.

    Examples
    --------
    >>> import numpy as np
    >>> from pgcc.learn import MixtureOfTrees
    >>> X = np.array([[0, 0, 0], [1, 1, 1]] * 50)
    >>> bool(MixtureOfTrees(components=2).fit(X).score(X) > np.log(0.4))
    True
    """

    def __init__(
        self,
        components: int = 10,
        *,
        smoothing: float = 10.0,
        epochs: int = 100,
        patience: int = 5,
        seed: int = 0,
        threads: int = 1,
        verbose: bool = False,
    ):
        self.components = components
        self.smoothing = smoothing
        self.epochs = epochs
        self.patience = patience
        self.seed = seed
        self.threads = threads
        self.verbose = verbose

    def fit(self, X: Any, validation: Any = None, *, checkpoint: Place | None = None, cluster: Any = None) -> Self:
        """Learn trees and weights from data.

        Parameters
        ----------
        X : array, list of rows, DataFrame or path
            0 and 1; −1, NaN or None for what is missing, which is summed out. A path is of a CSV file or an array in
            .npy, which is read in pieces: it may be longer than memory.
        validation : the same, optional
            The step with the largest likelihood of these data is kept. By default a tenth of the rows is put aside.
        checkpoint : path, optional
            Where the state of the run is written every few steps. A run that was killed goes on from there, and ends
            with the same trees.
        cluster : str or distributed.Client, optional
            The address of the scheduler of a Dask cluster, whose workers share the blocks of rows of every step. What
            is learned is the same.
        """
        seed, components = check_whole("seed", self.seed, 0), check_whole("components", self.components)
        smoothing = check_positive("smoothing", self.smoothing)
        epochs, patience = check_whole("epochs", self.epochs), check_whole("patience", self.patience)
        threads = check_whole("threads", self.threads)
        data = self._read(X, validation, seed)
        settings = {"model": "MixtureOfTrees", "components": components, "smoothing": smoothing, "epochs": epochs}
        settings |= {"patience": patience, "seed": seed}
        kept = Checkpoint(checkpoint, settings, data.rows, data.held_out)
        with crew(cluster) as workers:
            steps = _Steps(data, components, smoothing, seed, threads, workers)
            run = run_epochs(steps, epochs, patience, kept, self._tell)
        self.history_, self.best_epoch_ = run.history, run.best_epoch
        self.trees_ = Trees(**run.best)
        self.circuit_ = self.trees_.circuit(self.feature_names_in_)
        return self

    def _tell(self, run: Run) -> None:
        if self.verbose:
            train, score = (run.history[name][-1] for name in ("train", "validation"))
            told = f"step {run.epochs}/{self.epochs}: train {train:.4f}, validation {score:.4f}"
            left = f"at most {run.seconds_left(self.epochs):.0f} s left"
            print(f"{told}, best {run.best_score:.4f}, {left}", file=sys.stderr, flush=True)


class _Steps:
    """EM for a mixture of trees, from rows that are mostly of one component each, drawn at random."""

    def __init__(self, data: Shared, components: int, smoothing: float, seed: int, threads: int, workers: Crew):
        self._total, self._threads = workers.total, threads
        self._rows, self._held_out = len(data.rows), len(data.held_out)
        self._blocks, self._valid = _keep(workers, data.rows), _keep(workers, data.held_out)
        alone = Trees.alone(data.rows)
        self.prior = self._expect(alone).pairs(0).spread(smoothing)
        self.expected = self._total(_expect_anything, self._blocks, alone, components, seed, threads)
        self.trees = alone.repeated(components)

    def _expect(self, trees: Trees) -> _Expected:
        return self._total(_expect, self._blocks, trees, self._threads)

    def advance(self) -> float:
        """The best trees for what was expected, and what these expect."""
        self.trees = Trees.most_likely(self.expected, self.prior)
        self.expected = self._expect(self.trees)
        return self.expected.log_likelihood / self._rows

    def validate(self) -> float:
        """Of the validation data, after the last step."""
        return self._total(_log_likelihood, self._valid, self.trees, self._threads) / self._held_out

    def state(self) -> State:
        """The trees: what they expect follows from them."""
        return self.learned()

    def learned(self) -> State:
        """The trees of the last step."""
        return self.trees.arrays()

    def restore(self, state: State) -> None:
        """Go on from there."""
        self.trees = Trees(**state)
        self.expected = self._expect(self.trees)


class ChowLiu(Estimator):
    """The Chow–Liu tree of data: of all trees the one with the largest likelihood.

    Parameters
    ----------
    smoothing : float
        Laplace smoothing: added to the count of each of the four values of every pair of variables.

    Examples
    --------
    >>> from pgcc.learn import ChowLiu
    >>> ChowLiu().fit([[0, 0], [0, 0], [1, 1], [1, 1]]).model_.prob([[1, 1], [1, 0]])
    array([0.375, 0.125])
    """

    def __init__(self, smoothing: float = 1.0):
        self.smoothing = smoothing

    def fit(self, X: Any, validation: Any = None, *, checkpoint: Place | None = None, cluster: Any = None) -> Self:
        """Learn the tree from data (see `MixtureOfTrees.fit`); there is nothing to choose: `validation` is not read.

        With gaps (−1, NaN, None) it takes some steps of EM: each finds the best tree for what the last one expects.
        `checkpoint` is where it keeps the tree every few steps, to go on from there if it was killed.
        """
        smoothing = check_positive("smoothing", self.smoothing)
        rows = X.rows if isinstance(X, Shared) else read_rows(X)
        self.feature_names_in_, n = rows.names, rows.n
        even = _PairCounts(np.full((n, n), smoothing), np.full(n, 2 * smoothing), 4 * smoothing)
        complete = all((block.codes >= 0).all() for block in rows.blocks())
        kept = Checkpoint(checkpoint, {"model": "ChowLiu", "smoothing": smoothing}, rows)
        found = kept.read()
        self.trees_, done = (Trees.alone(rows), 0) if found is None else (Trees(**found[0]), found[1]["steps"])
        with crew(cluster) as workers:
            data = _keep(workers, rows)
            for step in range(done, 1 if complete else _STEPS):
                self.trees_ = Trees.most_likely(workers.total(_expect, data, self.trees_, 1), even)
                if (step + 1) % EVERY == 0:
                    kept.write(self.trees_.arrays(), {"steps": step + 1})
        self.circuit_ = self.trees_.circuit(self.feature_names_in_)
        return self


# -- what a block of rows adds to a step of EM --------------------------------------------------------------


class _Counted(NamedTuple):
    """A block of rows, how often each occurs, and the number of the block."""

    rows: Sets
    counts: np.ndarray
    number: int


def _keep(workers: Crew, rows: Rows) -> Sequence[Any]:
    return workers.keep(_count, list(enumerate(rows.blocks())))


def _count(part: tuple[int, Block]) -> _Counted:
    number, block = part
    return _Counted(Sets(block.codes), np.ascontiguousarray(block.counts), number)


@dataclass(frozen=True)
class _Expected:
    """Of every component: how often pairs of variables are both 1, and the rows in all; log-likelihood of the rows."""

    both: np.ndarray
    rows: np.ndarray
    log_likelihood: float

    def pairs(self, component: int) -> _PairCounts:
        both = self.both[component]
        return _PairCounts(both, np.diag(both).copy(), float(self.rows[component]))

    def __add__(self, other: _Expected) -> _Expected:
        return _Expected(self.both + other.both, self.rows + other.rows, self.log_likelihood + other.log_likelihood)


def _expect(block: _Counted, trees: Trees, threads: int) -> _Expected:
    """With rows shared out as these trees have them."""
    scores = trees.scores(block.rows, threads)
    logs = np.logaddexp.reduce(scores, axis=0)
    return _expect_shares(block, trees, np.exp(scores - logs), float(block.counts @ logs), threads)


def _expect_anything(block: _Counted, tree: Trees, components: int, seed: int, threads: int) -> _Expected:
    """To begin with: every row is mostly of one component, drawn at random."""
    rng = np.random.default_rng([seed, block.number])
    shares = np.ascontiguousarray(rng.dirichlet(np.full(components, 0.1), size=len(block.rows)).T)
    return _expect_shares(block, tree.repeated(components), shares, math.nan, threads)


def _expect_shares(block: _Counted, trees: Trees, shares: np.ndarray, log_likelihood: float, threads: int) -> _Expected:
    counts = shares * block.counts
    return _Expected(trees.pair_counts(block.rows, counts, threads), counts.sum(axis=1), log_likelihood)


def _log_likelihood(block: _Counted, trees: Trees, threads: int) -> float:
    return float(block.counts @ np.logaddexp.reduce(trees.scores(block.rows, threads), axis=0))


# -- trees as arrays ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _PairCounts:
    """How often two variables are both 1, and each of them is, in so many rows; all may be fractions."""

    both: np.ndarray
    one: np.ndarray
    total: float

    def spread(self, rows: float) -> _PairCounts:
        """As many rows with the same distribution, with each of the four values once more: none is impossible."""
        scale = rows / (self.total + 4)
        return _PairCounts(scale * (self.both + 1), scale * (self.one + 2), rows)

    def __add__(self, other: _PairCounts) -> _PairCounts:
        return _PairCounts(self.both + other.both, self.one + other.one, self.total + other.total)

    def information(self) -> np.ndarray:
        """Mutual information of all pairs: Σ p(x, y) · log p(x, y) / p(x) p(y)."""
        p11 = self.both / self.total
        p1 = self.one / self.total
        p10, p01 = p1[:, None] - p11, p1[None, :] - p11
        result = np.zeros_like(p11)
        for p, x, y in ((p11, p1, p1), (p10, p1, 1 - p1), (p01, 1 - p1, p1), (1 - p11 - p10 - p01, 1 - p1, 1 - p1)):
            apart = x[:, None] * y[None, :]
            result += p * np.log(np.divide(p, apart, out=np.ones_like(p), where=(p > 0) & (apart > 0)))
        return result

    def tree(self) -> tuple[np.ndarray, np.ndarray]:
        """Parents (the first variable is the root) and Pr(x = 1 | parent = 0), Pr(x = 1 | parent = 1)."""
        parents = _spanning_tree(self.information())
        above = np.maximum(parents, 0)
        both = self.both[np.arange(len(parents)), above]
        low = (self.one - both) / (self.total - self.one[above])
        high = both / self.one[above]
        low[0] = high[0] = self.one[0] / self.total
        return parents, np.clip(np.stack([low, high], axis=1), 1e-12, 1 - 1e-12)


def _spanning_tree(weights: np.ndarray) -> np.ndarray:
    """Parents in the maximum spanning tree from variable 0, by Prim's algorithm."""
    n = len(weights)
    parents, best, outside = np.full(n, -1), np.full(n, -np.inf), np.ones(n, dtype=bool)
    newest = 0
    for _ in range(n - 1):
        outside[newest] = False
        better = outside & (weights[newest] > best)
        best[better], parents[better] = weights[newest][better], newest
        newest = int(np.argmax(np.where(outside, best, -np.inf)))
    return parents


@dataclass(frozen=True)
class Trees:
    """A mixture of trees.

    Attributes
    ----------
    weights : array
        One per component.
    parents : array, components × n
    probs : array, components × n × 2
        Pr(x = 1 | parent = 0), Pr(x = 1 | parent = 1).
    """

    weights: np.ndarray
    parents: np.ndarray
    probs: np.ndarray

    @classmethod
    def alone(cls, rows: Rows) -> Trees:
        """One tree, in which variables are independent and as often 1 as in the rows where they are known."""
        ones, known = np.zeros(rows.n), np.zeros(rows.n)
        for block in rows.blocks():
            ones += block.counts @ (block.codes == 1)
            known += block.counts @ (block.codes >= 0)
        often = (ones + 0.5) / (known + 1)
        parents = np.where(np.arange(rows.n) > 0, 0, -1)
        return cls(np.ones(1), parents[None], np.tile(often[:, None], (1, 1, 2)))

    def repeated(self, components: int) -> Trees:
        """As many times the first tree, all equally likely."""
        weights = np.full(components, 1 / components)
        return Trees(weights, np.tile(self.parents[:1], (components, 1)), np.tile(self.probs[:1], (components, 1, 1)))

    @classmethod
    def most_likely(cls, expected: _Expected, prior: _PairCounts) -> Trees:
        """The trees with the largest expected likelihood of all trees; `prior` is added to the counts of each."""
        found = [(expected.pairs(c) + prior).tree() for c in range(len(expected.rows))]
        weights = expected.rows + 1
        return cls(weights / weights.sum(), np.stack([p for p, _ in found]), np.stack([q for _, q in found]))

    def arrays(self) -> State:
        """All of it, by name."""
        return {"weights": self.weights, "parents": self.parents, "probs": self.probs}

    def pair_counts(self, rows: Sets, shares: np.ndarray, threads: int = 1) -> np.ndarray:
        """Σ shares · Pr(i and j are both 1) for every component, with what is missing as its tree has it."""
        return rows.pair_counts(shares, self._forest, threads)

    @cached_property
    def _forest(self) -> Forest:
        order = np.stack([_topological(parents) for parents in self.parents])
        return Forest(self.parents, order, self.probs, np.log(self.weights))

    def scores(self, rows: Sets, threads: int = 1) -> np.ndarray:
        """log(weight · p(row)), components × rows."""
        return rows.scores(self._forest, threads)

    def circuit(self, names: list[str]) -> Circuit:
        """The mixture as a circuit."""
        trees = [chow_liu(p.tolist(), q.tolist(), names) for p, q in zip(self.parents, self.probs, strict=True)]
        return mixture(self.weights.tolist(), trees) if len(trees) > 1 else trees[0]


def _topological(parents: np.ndarray) -> np.ndarray:
    """Parents before children: by depth."""
    depth = np.zeros(len(parents), np.int64)
    above = parents.copy()
    while (above >= 0).any():
        depth += above >= 0
        above = np.where(above >= 0, parents[above], -1)
    return np.argsort(depth, kind="stable")
