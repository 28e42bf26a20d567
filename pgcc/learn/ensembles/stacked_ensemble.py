"""StackedEnsemble: models of several kinds, with the weights that maximize the likelihood of the validation data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from pgcc.errors import PgccError, brief
from pgcc.learn.common.checkpoint import CheckpointPath
from pgcc.learn.common.estimator import Estimator, seed_of, thread_count
from pgcc.learn.common.mixing import mixture_of_learned
from pgcc.learn.ensembles.candidates import fit_all, name_of
from pgcc.learn.mixtures.simple_pgc import SimplePGC
from pgcc.learn.tables.data_split import DataSplit
from pgcc.learn.trees.tree_estimators import MixtureOfTrees

# Candidates with a smaller weight are dropped from the mixture. The number of EM iterations for the weights.
_LEAST_WEIGHT = 0.005
_ITERATIONS = 1000


@dataclass(eq=False, repr=False)
class StackedEnsemble(Estimator):
    """Learn the best density model that pgcc offers: mixtures of trees and of determinantal PGCs, stacked.

    Trees model positive dependence and determinants negative dependence; models that differ only in their seeds make
    different mistakes. Every candidate is fitted to the training data. The weights of their mixture then maximize the
    likelihood of the validation data (Smyth and Wolpert 1999), and candidates with weight 0 are dropped.

    Parameters
    ----------
    candidates : sequence of estimators, optional
        The estimators to fit (copies of them), in turn. By default, `default_candidates`.
    binarize : float, optional
        The threshold above which numbers count as 1. By default, data are 0 and 1 (or −1, NaN, None if missing).
        Candidates receive the data after this step, so their own thresholds are not used.
    random_state : int, numpy Generator or RandomState, or None
        The seed of the default candidates, and of the choice of rows that are set aside for validation.
    n_jobs : int, optional
        The number of threads of the default candidates; −1 means one per processor.
    verbose : bool, optional
        Report every candidate on standard error. By default, a bar shows the progress if that is a terminal; False
        shows nothing.

    Attributes
    ----------
    circuit_ : Circuit
        The distribution that was learned.
    members_ : list of estimators
        The fitted candidates that are in the mixture.
    weights_ : array
        Their weights.
    history_ : dict of lists
        For every candidate: its name, the mean log-likelihood of the validation data, and None or the reason why it
        failed. A candidate that failed has the likelihood NaN and is not a member.

    See Also
    --------
    pgcc.learn.SimplePGC : learn the model of the paper
    pgcc.learn.MixtureOfTrees : learn a mixture of trees by EM

    Examples
    --------
    >>> import numpy as np
    >>> from pgcc.learn import MixtureOfTrees, SimplePGC, StackedEnsemble
    >>> X = np.random.default_rng(0).integers(0, 2, (300, 4))
    >>> model = StackedEnsemble([MixtureOfTrees(2), SimplePGC(2, 2, max_iter=5)]).fit(X)
    >>> round(float(model.weights_.sum()), 9)
    1.0
    """

    candidates: Sequence[Estimator] | None = None
    _: KW_ONLY
    binarize: float | None = None
    random_state: Any = 0
    n_jobs: int | None = None
    verbose: bool | None = None

    def _fit(self, X: Any, validation: Any, checkpoint: CheckpointPath | None, cluster: Any) -> None:
        """Fit the candidates and find the weights of their best mixture. Workers fit the candidates."""
        seed, threads = seed_of(self.random_state, checkpoint), thread_count(self.n_jobs)
        data = self._read(X, validation, seed)
        candidates = _copies(self.candidates, seed, threads)
        fitted = fit_all(
            candidates, data, _score_held_out, checkpoint, cluster, self.verbose, lambda x: f"validation {x.mean():.4f}"
        )
        self.history_: dict[str, list[Any]] = {
            "candidate": [name_of(one.candidate) for one in fitted],
            "validation": [math.nan if one.failure else float(one.answer.mean()) for one in fitted],
            "failure": [one.failure for one in fitted],
        }
        succeeded = [one for one in fitted if one.failure is None]
        logs = np.array([one.answer for one in succeeded])
        weights = stacking_weights(logs)
        kept = np.flatnonzero(weights >= min(_LEAST_WEIGHT, weights.max()))
        self.weights_ = stacking_weights(logs[kept])
        self.members_ = [succeeded[i].candidate for i in kept]
        circuits = [member.circuit_ for member in self.members_]
        self.circuit_ = mixture_of_learned(self.weights_.tolist(), circuits, data.rows.names)

    def _score_codes(self, codes: np.ndarray) -> np.ndarray:
        """Log-sum-exp over the members. Each member's log-likelihood is certified, so the mixture is as accurate."""
        logs = np.array([member._score_codes(codes) for member in self.members_])
        return np.logaddexp.reduce(logs + np.log(self.weights_)[:, None], axis=0)


def _score_held_out(candidate: Estimator, data: DataSplit) -> np.ndarray:
    """The log-likelihood of every row of the validation data."""
    return candidate.score_samples(data.held_out)


def default_candidates(seed: int = 0, threads: int = 1) -> list[Estimator]:
    """Four mixtures of trees, and mixtures of few and of many determinantal PGCs with groups of 1, 2 and 5."""
    trees = [MixtureOfTrees(20, random_state=seed + i, n_jobs=threads) for i in range(4)]
    sizes = [(1, 7), (2, 4), (2, 10), (5, 2), (5, 10)]
    return [*trees, *(SimplePGC(K, C, random_state=seed + i, n_jobs=threads) for i, (K, C) in enumerate(sizes))]


def _copies(candidates: Sequence[Estimator] | None, seed: int, threads: int) -> list[Estimator]:
    if candidates is None:
        return default_candidates(seed, threads)
    listed = isinstance(candidates, Sequence) and len(candidates) > 0
    if not listed or not all(isinstance(one, Estimator) for one in candidates):
        raise PgccError(f"candidates are a list of estimators of pgcc.learn, at least one; not {brief(candidates)}")
    return [clone(one) for one in candidates]


def stacking_weights(logs: np.ndarray) -> np.ndarray:
    """The mixture weights that maximize the likelihood of rows, by EM; `logs` has log p(row), models × rows.

    >>> stacking_weights(np.log([[0.9, 0.9, 0.1], [0.1, 0.1, 0.9]])).round(3).tolist()
    [0.708, 0.292]
    """
    possible = logs[:, ~np.isneginf(logs.max(axis=0))]  # rows that are impossible under every model are left out
    weights = np.full(len(logs), 1 / len(logs))
    relative = np.exp(possible - possible.max(axis=0))
    for _ in range(_ITERATIONS if possible.size else 0):
        joint = weights[:, None] * relative
        weights = (joint / joint.sum(axis=0)).mean(axis=1)  # the mean responsibilities
    return weights / weights.sum()
