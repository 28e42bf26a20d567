"""Chow–Liu trees, and mixtures of them: each variable depends on one other at most, given the component."""

from __future__ import annotations

from functools import partial
from typing import Any

from pgcc.cluster import crew
from pgcc.frontend.chow_liu import PairCounts
from pgcc.learn.base import (
    Estimator,
    check_positive,
    check_whole,
    has_names,
    seed_of,
    thread_count,
)
from pgcc.learn.checkpoint import Checkpoint, Place, State
from pgcc.learn.data import read_rows
from pgcc.learn.renamed import with_new_names
from pgcc.learn.shared import Shared
from pgcc.learn.training import Attempt, train
from pgcc.learn.tree_em import MixtureEM, SingleTreeEM
from pgcc.learn.tree_mixture import Trees

# Steps of EM for a single tree from rows with missing entries.
_STEPS = 50


class MixtureOfTrees(Estimator):
    """A mixture of Chow–Liu trees by expectation–maximisation (Meilă and Jordan 2000).

    Every step takes, for each component, the tree with the largest expected likelihood of all trees.

    Parameters
    ----------
    n_components : int
    smoothing : float
        Rows that are added to every component, in which pairs of variables are distributed as in the whole of the data.
    max_iter, n_iter_no_change : int
        At most so many steps; stop after as many without a better likelihood of the validation data.
    binarize : float, optional
        The threshold above which numbers are 1. By default data are 0 and 1 (and −1, NaN, None for what is missing).
    random_state : int, generator of numpy, or None
        The same number gives the same model, on any number of threads.
    n_jobs : int, optional
        Threads, −1 for one a processor. Components are shared out among them.
    verbose : bool, optional
        Tell of every step, on standard error. By default a bar shows the progress, if that is a terminal; False is
        quiet.

    Attributes
    ----------
    circuit_ : Circuit
    n_iter_ : int
        How many steps were made.
    history_ : dict of lists
        Of every step: mean log-likelihood of the training and of the validation data, seconds.
    best_epoch_ : int
        The step, from 0, that was kept: the best on the validation data.

    See Also
    --------
    pgcc.learn.ChowLiu : learn the most likely tree
    pgcc.learn.PGC : learn the best mixture of several models

    Examples
    --------
    >>> import numpy as np
    >>> from pgcc.learn import MixtureOfTrees
    >>> X = np.array([[0, 0, 0], [1, 1, 1]] * 50)
    >>> bool(MixtureOfTrees(n_components=2).fit(X).score(X) > np.log(0.4))
    True
    """

    @with_new_names
    def __init__(
        self,
        n_components: int = 10,
        *,
        smoothing: float = 10.0,
        max_iter: int = 100,
        n_iter_no_change: int = 5,
        binarize: float | None = None,
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: bool | None = None,
    ):
        self.n_components = n_components
        self.smoothing = smoothing
        self.max_iter = max_iter
        self.n_iter_no_change = n_iter_no_change
        self.binarize = binarize
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _fit(self, X: Any, validation: Any, checkpoint: Place | None, cluster: Any) -> None:
        """Trees and weights, by EM. Workers share the rows."""
        components, seed = check_whole("n_components", self.n_components), seed_of(self.random_state, checkpoint)
        smoothing = check_positive("smoothing", self.smoothing)
        epochs = check_whole("max_iter", self.max_iter)
        patience = check_whole("n_iter_no_change", self.n_iter_no_change)
        threads = thread_count(self.n_jobs)
        data = self._read(X, validation, seed)
        settings = {"model": "MixtureOfTrees", "components": components, "smoothing": smoothing, "epochs": epochs}
        settings |= {"patience": patience, "seed": seed}
        kept = Checkpoint(checkpoint, settings, data.rows, data.held_out)
        with crew(cluster) as workers:

            def begin(state: State | None) -> MixtureEM:
                return MixtureEM(data, components, smoothing, seed, threads, workers, state)

            (run,) = train([Attempt(begin, epochs, patience)], kept, verbose=self.verbose, what=type(self).__name__)
        self.history_, self.best_epoch_, self.n_iter_ = run.history, run.best_epoch, run.epochs
        self.trees_ = Trees(**run.best)
        self.circuit_ = self.trees_.circuit(data.rows.names)


class ChowLiu(Estimator):
    """The Chow–Liu tree of data: of all trees the one with the largest likelihood.

    Parameters
    ----------
    smoothing : float
        Laplace smoothing: added to the count of each of the four values of every pair of variables.
    binarize : float, optional
        The threshold above which numbers are 1. By default data are 0 and 1 (and −1, NaN, None for what is missing).

    See Also
    --------
    pgcc.learn.MixtureOfTrees : learn a mixture of trees by EM
    pgcc.builders.chow_liu_from_data : the most likely tree for a table of data

    Examples
    --------
    >>> from pgcc.learn import ChowLiu
    >>> ChowLiu().fit([[0, 0], [0, 0], [1, 1], [1, 1]]).model_.prob([[1, 1], [1, 0]])
    array([0.375, 0.125])
    """

    def __init__(self, smoothing: float = 1.0, *, binarize: float | None = None):
        self.smoothing = smoothing
        self.binarize = binarize

    def _fit(self, X: Any, validation: Any, checkpoint: Place | None, cluster: Any) -> None:
        """The tree; there is nothing to choose, so that `validation` is not read.

        With gaps (−1, NaN, None) it takes some steps of EM: each finds the best tree for what the last one expects.
        """
        smoothing = check_positive("smoothing", self.smoothing)
        rows = X.rows if isinstance(X, Shared) else read_rows(X, threshold=self._threshold)
        self._keep_names(rows.names, X.named if isinstance(X, Shared) else has_names(X, rows))
        prior = PairCounts.even(rows.n, smoothing)
        complete = all((block.codes >= 0).all() for block in rows.blocks())
        kept = Checkpoint(checkpoint, {"model": "ChowLiu", "smoothing": smoothing}, rows)
        with crew(cluster) as workers:
            begin = partial(SingleTreeEM, rows, prior, workers)
            (run,) = train([Attempt(begin, 1 if complete else _STEPS, patience=None)], kept)
        self.trees_ = Trees(**run.best)
        self.circuit_ = self.trees_.circuit(rows.names)
