"""Chow–Liu trees and mixtures of them: given the component, each variable depends on at most one other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any

from pgcc.cluster import Crew
from pgcc.ir.blocks import Blocks
from pgcc.learn.common.estimator import Estimator, check_positive, check_whole, thread_count
from pgcc.learn.common.training import Run, RunPlan
from pgcc.learn.tables.data_split import DataSplit
from pgcc.learn.trees.pair_counts import PairCounts
from pgcc.learn.trees.tree_em import MixtureEM, SingleTreeEM, log_likelihoods
from pgcc.learn.trees.tree_mixture import Trees

# The number of EM iterations for a single tree if entries are missing.
_STEPS = 50


@dataclass(eq=False, repr=False)
class MixtureOfTrees(Estimator):
    """Learn a mixture of Chow–Liu trees by expectation–maximization (Meilă and Jordan 2000).

    Every step finds, for each component, the tree with the largest expected likelihood among all trees.

    Parameters
    ----------
    n_components : int
        The number of trees in the mixture.
    smoothing : float
        The number of rows that are added to every component; in these, pairs of variables are distributed as in the
        data as a whole.
    max_iter, n_iter_no_change : int
        The largest number of steps, and the number of steps without a better likelihood of the validation data after
        which to stop.
    binarize : float, optional
        The threshold above which numbers count as 1. By default, data are 0 and 1 (or −1, NaN, None if missing).
    exclude_empty : bool or "auto"
        Whether the distribution is that given that a row is not empty (`Circuit.exclude_empty`). "auto": if no row is,
        though at least ten would be if the variables were independent; not of variables with states.
    random_state : int, numpy Generator or RandomState, or None
        The same number gives the same model, whatever the number of threads.
    n_jobs : int, optional
        The number of threads; −1 means one per processor. Rows are divided among them.
    verbose : bool, optional
        Report every step on standard error. By default, a bar shows the progress if that is a terminal; False shows
        nothing.

    Attributes
    ----------
    circuit_ : Circuit
        The distribution that was learned.
    n_iter_ : int
        The number of steps made.
    history_ : dict of lists
        For every step: the mean log-likelihood of the training and of the validation data, and the seconds it took.
    best_epoch_ : int
        The step, counted from 0, that was kept because it was the best on the validation data.

    See Also
    --------
    pgcc.learn.ChowLiu : learn the most likely tree
    pgcc.learn.StackedEnsemble : learn the best mixture of several models

    Examples
    --------
    >>> import numpy as np
    >>> from pgcc.learn import MixtureOfTrees
    >>> X = np.array([[0, 0, 0], [1, 1, 1]] * 50)
    >>> bool(MixtureOfTrees(n_components=2).fit(X).score(X) > np.log(0.4))
    True
    """

    n_components: int = 10
    _: KW_ONLY
    smoothing: float = 10.0
    max_iter: int = 100
    n_iter_no_change: int = 5
    binarize: float | None = None
    exclude_empty: bool | str = "auto"
    random_state: Any = 0
    n_jobs: int | None = None
    verbose: bool | None = None

    def _plans(self, data: DataSplit, seed: int, workers: Crew) -> list[RunPlan]:
        """One run of EM. Workers share the rows."""
        components = check_whole("n_components", self.n_components)
        smoothing = check_positive("smoothing", self.smoothing)
        epochs, patience = self._limits()
        threads, shapes = thread_count(self.n_jobs), Trees.shapes(components, Blocks.of(data.rows.names))
        make_trainer = partial(MixtureEM, data, components, smoothing, seed, threads, workers)
        scores = partial(log_likelihoods, data.held_out, threads)
        return [RunPlan(make_trainer, epochs, patience, shapes, shapes, scores=scores)]

    def _finish(self, runs: Sequence[Run], data: DataSplit) -> None:
        self.trees_ = Trees(**self._keep_history(runs[0])).checked()
        self.circuit_ = self.trees_.circuit(data.rows.names)


@dataclass(eq=False, repr=False)
class ChowLiu(Estimator):
    """Learn the Chow–Liu tree of data: of all trees, the one with the largest likelihood.

    Parameters
    ----------
    smoothing : float
        Laplace smoothing: the number added to the count of each of the four values of every pair of binary variables.
        (Four times as many rows, spread evenly over all states, if variables have more.) With 0, the tree is the
        maximum-likelihood estimate (but its probabilities stay 1e-12 away from 0 and 1).
    binarize : float, optional
        The threshold above which numbers count as 1. By default, data are 0 and 1 (or −1, NaN, None if missing).
    exclude_empty : bool or "auto"
        Whether the distribution is that given that a row is not empty (`Circuit.exclude_empty`). "auto": if no row is,
        though at least ten would be if the variables were independent; not of variables with states.

    Attributes
    ----------
    circuit_ : Circuit
        The distribution that was learned.
    trees_ : Trees
        The tree as arrays: its `parents` and `probs` have one row, with the arguments of `pgcc.builders.chow_liu`.

    See Also
    --------
    pgcc.learn.MixtureOfTrees : learn a mixture of trees by EM
    pgcc.builders.chow_liu : a tree-shaped network with given probabilities

    Examples
    --------
    >>> from pgcc.learn import ChowLiu
    >>> ChowLiu().fit([[0, 0], [0, 0], [1, 1], [1, 1]]).model_.prob([[1, 1], [1, 0]])
    array([0.375, 0.125])
    """

    smoothing: float = 1.0
    _: KW_ONLY
    binarize: float | None = None
    exclude_empty: bool | str = "auto"

    _validation = "never"

    def _plans(self, data: DataSplit, seed: int, workers: Crew) -> list[RunPlan]:
        """Count pairs of variables.

        If values are missing (−1, NaN, None), it takes some steps of EM, each of which finds the best tree for the
        values that the previous tree expects.
        """
        prior = PairCounts.even(Blocks.of(data.rows.names), check_positive("smoothing", self.smoothing, zero=True))
        complete = all((block.codes >= 0).all() for block in data.rows.blocks())
        shapes = Trees.shapes(1, prior.blocks)
        make_trainer = partial(SingleTreeEM, data.rows, prior, workers)
        scores = None if data.validation is None else partial(log_likelihoods, data.validation, 1)
        return [RunPlan(make_trainer, 1 if complete else _STEPS, None, shapes, shapes, scores=scores)]

    def _finish(self, runs: Sequence[Run], data: DataSplit) -> None:
        self.trees_ = Trees(**runs[0].best).checked()
        self.circuit_ = self.trees_.circuit(data.rows.names)
