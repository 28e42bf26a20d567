"""Chow–Liu trees, and mixtures of them: each variable depends on one other at most, given the component."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np

from pgcc.backend.learning_trees import Forest, Sets
from pgcc.frontend.builders import chow_liu
from pgcc.frontend.combine import mixture
from pgcc.ir.circuit import Circuit
from pgcc.learn.base import Estimator, check_positive, check_whole
from pgcc.learn.checkpoint import EVERY, Checkpoint, State
from pgcc.learn.data import distinct_rows, read_table
from pgcc.learn.epochs import Run, run_epochs
from pgcc.learn.shared import Shared

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

    def fit(self, X: Any, validation: Any = None, *, checkpoint: str | Path | None = None) -> Self:
        """Learn trees and weights from data.

        Parameters
        ----------
        X : array, list of rows or DataFrame
            0 and 1; −1, NaN or None for what is missing, which is summed out.
        validation : the same, optional
            The step with the largest likelihood of these data is kept. By default a tenth of the rows is put aside.
        checkpoint : path, optional
            Where the state of the run is written every few steps. A run that was killed goes on from there, and ends
            with the same trees.
        """
        seed, components = check_whole("seed", self.seed, 0), check_whole("components", self.components)
        smoothing = check_positive("smoothing", self.smoothing)
        epochs, patience = check_whole("epochs", self.epochs), check_whole("patience", self.patience)
        threads = check_whole("threads", self.threads)
        data = self._read(X, validation, seed)
        settings = {"model": "MixtureOfTrees", "components": components, "smoothing": smoothing, "epochs": epochs}
        settings |= {"patience": patience, "seed": seed}
        kept = Checkpoint(checkpoint, settings, data.codes, data.held_out)
        run = run_epochs(_Steps(data, components, smoothing, seed, threads), epochs, patience, kept, self._tell)
        self.history_, self.best_epoch_ = run.history, run.best_epoch
        self.trees_ = Trees(**run.best)
        self.circuit_ = self.trees_.circuit(self.feature_names_in_)
        return self

    def _tell(self, run: Run) -> None:
        if self.verbose:
            told = f"step {run.epochs}: validation {run.history['validation'][-1]:.4f}, best {run.best_score:.4f}"
            print(told, file=sys.stderr, flush=True)


class _Steps:
    """EM for a mixture of trees, from rows that are mostly of one component each, drawn at random."""

    def __init__(self, data: Shared, components: int, smoothing: float, seed: int, threads: int):
        (self.rows, self.counts), (self.valid, self.valid_counts) = data.sets()
        self.threads, self.trees = threads, Trees.alone(data.codes, components)
        everything = np.tile(self.counts, (components, 1))
        self.prior = self.trees.expected(self.rows, everything, threads)[0].spread(smoothing)
        self.shares = np.random.default_rng(seed).dirichlet(np.full(components, 0.1), size=len(self.rows)).T

    def advance(self) -> float:
        """The best trees for the shares of the rows, and the shares that belong to them."""
        self.trees = self.trees.refitted(self.rows, self.shares * self.counts, self.prior, self.threads)
        return float(self.counts @ self._share_out() / self.counts.sum())

    def _share_out(self) -> np.ndarray:
        """log p(row); every row is shared out among the components."""
        scores = self.trees.scores(self.rows, self.threads)
        logs = np.logaddexp.reduce(scores, axis=0)
        self.shares = np.exp(scores - logs)
        return logs

    def validate(self) -> float:
        """Of the validation data, after the last step."""
        return float(self.valid_counts @ self.trees.log_likelihoods(self.valid, self.threads) / self.valid_counts.sum())

    def state(self) -> State:
        """The trees: the shares follow from them."""
        return self.learned()

    def learned(self) -> State:
        """The trees of the last step."""
        return self.trees.arrays()

    def restore(self, state: State) -> None:
        """Go on from there."""
        self.trees = Trees(**state)
        self._share_out()


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

    def fit(self, X: Any, validation: Any = None, *, checkpoint: str | Path | None = None) -> Self:
        """Learn the tree from data; there is nothing to choose, so validation data are not looked at.

        With gaps (−1, NaN, None) it takes some steps of EM: each finds the best tree for what the last one expects.
        `checkpoint` is where it keeps the tree every few steps, to go on from there if it was killed.
        """
        smoothing = check_positive("smoothing", self.smoothing)
        codes, self.feature_names_in_ = (X.codes, X.names) if isinstance(X, Shared) else read_table(X)
        distinct, where = distinct_rows(codes)
        rows, counts = Sets(distinct), np.bincount(where).astype(np.float64)
        n = codes.shape[1]
        even = _PairCounts(np.full((n, n), smoothing), np.full(n, 2 * smoothing), 4 * smoothing)
        kept = Checkpoint(checkpoint, {"model": "ChowLiu", "smoothing": smoothing}, codes)
        found = kept.read()
        self.trees_, done = (Trees.alone(codes, 1), 0) if found is None else (Trees(**found[0]), found[1]["steps"])
        for step in range(done, 1 if rows.complete else _STEPS):
            self.trees_ = self.trees_.refitted(rows, counts[None], even)
            if (step + 1) % EVERY == 0:
                kept.write(self.trees_.arrays(), {"steps": step + 1})
        self.circuit_ = self.trees_.circuit(self.feature_names_in_)
        return self


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
    def alone(cls, codes: np.ndarray, components: int) -> Trees:
        """Equal components, in which variables are independent and as often 1 as in the rows where they are known."""
        n = codes.shape[1]
        often = ((codes == 1).sum(axis=0) + 0.5) / ((codes >= 0).sum(axis=0) + 1)
        parents = np.where(np.arange(n) > 0, 0, -1)
        weights = np.full(components, 1 / components)
        return cls(weights, np.tile(parents, (components, 1)), np.tile(often[:, None], (components, 1, 2)))

    def arrays(self) -> State:
        """All of it, by name."""
        return {"weights": self.weights, "parents": self.parents, "probs": self.probs}

    def expected(self, rows: Sets, shares: np.ndarray, threads: int = 1) -> list[_PairCounts]:
        """Counts of pairs for every component, with what is missing as its tree has it."""
        both = rows.pair_counts(shares, self._forest, threads)
        return [_PairCounts(b, np.diag(b).copy(), float(share.sum())) for b, share in zip(both, shares, strict=True)]

    def refitted(self, rows: Sets, shares: np.ndarray, prior: _PairCounts, threads: int = 1) -> Trees:
        """The trees with the largest expected likelihood of all trees; `prior` is added to the counts of each."""
        found = [(counts + prior).tree() for counts in self.expected(rows, shares, threads)]
        weights = shares.sum(axis=1) + 1
        return Trees(weights / weights.sum(), np.stack([p for p, _ in found]), np.stack([q for _, q in found]))

    @cached_property
    def _forest(self) -> Forest:
        order = np.stack([_topological(parents) for parents in self.parents])
        return Forest(self.parents, order, self.probs, np.log(self.weights))

    def scores(self, rows: Sets, threads: int = 1) -> np.ndarray:
        """log(weight · p(row)), components × rows."""
        return rows.scores(self._forest, threads)

    def log_likelihoods(self, rows: Sets, threads: int = 1) -> np.ndarray:
        """log p(row)."""
        return np.logaddexp.reduce(self.scores(rows, threads), axis=0)

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
