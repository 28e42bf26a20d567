"""StackedEnsemble: models of several kinds, with the weights that maximize the likelihood of the validation data."""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from pgcc.cluster import crew
from pgcc.errors import PgccError, brief
from pgcc.ir.circuit import from_flat
from pgcc.ir.flat_builder import weighted_sum_of
from pgcc.learn.common.checkpoint import Checkpoint, CheckpointPath, part_of
from pgcc.learn.common.estimator import Estimator, check_positive, seed_of, thread_count
from pgcc.learn.common.mixing import mixture_of_learned
from pgcc.learn.common.training import INTERRUPTED, despite_interrupt
from pgcc.learn.continuous.continuous_mixture import ContinuousMixture
from pgcc.learn.ensembles.entrants import FAILURES, Clock, Entrant, enter
from pgcc.learn.ensembles.race import Threads, go_on_threads, go_on_workers, race_by_rungs, race_by_seconds
from pgcc.learn.ensembles.stacking import additions, cross_fitted_score, stacking_weights
from pgcc.learn.mixtures.simple_pgc import SimplePGC
from pgcc.learn.regions.hidden_tree import HiddenTree
from pgcc.learn.tables.data_split import DataSplit
from pgcc.learn.trees.tree_estimators import MixtureOfTrees
from pgcc.progress import progress

# Parts with a smaller weight are dropped.
_LEAST_WEIGHT = 0.005
# The relative accuracy of each of the two numbers whose quotient is a conditional probability.
_RTOL_OF_PARTS = 0.4e-9


@dataclass(eq=False, repr=False)
class StackedEnsemble(Estimator):
    """Learn the best density model that pgcc offers: mixtures of trees and of determinantal PGCs, stacked.

    Trees model positive dependence and determinants negative dependence; models that differ only in their seeds make
    different mistakes. The runs of all candidates race: each does a few epochs on the training data, and those go on
    that may still add something to the others. The weights of their mixture maximize the likelihood of the validation
    data (Smyth and Wolpert 1999), and parts with weight 0 are dropped.

    Ctrl-C ends the race, with a warning: the model is the best stack of what was found so far.

    Parameters
    ----------
    candidates : sequence of estimators, optional
        The estimators to fit (copies of them), in any order. By default, `default_candidates`.
    budget : float, optional
        Seconds of wall time, but for kernels that are compiled for the first time. More of them go to the parts that
        promise most, and the fit ends within a tenth more. What is learned then depends on the speed of the machine. By
        default, every part that is promising runs to its end.
    binarize : float, optional
        The threshold above which numbers count as 1. By default, data are 0 and 1 (or −1, NaN, None if missing).
        Candidates receive the data after this step, so their own thresholds are not used.
    exclude_empty : bool or "auto"
        Whether the distribution is that given that a row is not empty (`Circuit.exclude_empty`). "auto" leaves it to
        the candidates: by default, if no row is, though at least ten would be if the variables were independent.
    random_state : int, numpy Generator or RandomState, or None
        The seed of the default candidates, and of the choice of rows that are set aside for validation.
    n_jobs : int, optional
        The number of runs at the same time, in threads; −1 means one per processor. Without a budget, the model is the
        same for any number.
    verbose : bool, optional
        Report the leading runs on standard error. By default, a bar shows the progress if that is a terminal; False
        shows nothing.

    Attributes
    ----------
    circuit_ : Circuit
        The distribution that was learned.
    members_ : list of estimators
        The fitted candidates that are in the mixture, one for each of their runs that is.
    weights_ : array
        Their weights.
    validation_score_ : float
        The mean log-likelihood of the validation data, each half of them with weights that the other half chose.
    history_ : dict of lists
        For every run of a candidate: its candidate, the mean log-likelihood of the validation data, and None or the
        reason why it failed (then the likelihood is NaN); its epochs, seconds, weight, and what it adds: by how much
        the likelihood is better with it than without it. `summary` prints them.

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
    budget: float | None = None
    _: KW_ONLY
    binarize: float | None = None
    exclude_empty: bool | str = "auto"
    random_state: Any = 0
    n_jobs: int | None = None
    verbose: bool | None = None

    def _fit(self, X: Any, validation: Any, checkpoint: CheckpointPath | None, cluster: Any) -> None:
        """Race, and find the weights of the best mixture. Workers run candidates for some epochs."""
        clock = Clock() if self.budget is None else Clock(check_positive("budget", self.budget))
        seed, threads = seed_of(self.random_state, checkpoint), Threads(thread_count(self.n_jobs), clock)
        if self.budget is not None and cluster is not None:
            raise PgccError(
                "a budget is for the threads of one machine: on a cluster, every run goes to its end", argument="budget"
            )
        data = self._read(X, validation, seed)
        counts = data.held_out.counts
        with threadpool_limits(1, "blas"), crew(cluster) as workers, self._progress(clock) as tell:
            candidates = _copies(self.candidates, seed)
            for candidate in candidates:
                if self.exclude_empty != "auto" and "exclude_empty" in candidate.get_params():
                    candidate.set_params(exclude_empty=self.exclude_empty)
            entrants = enter(candidates, data, checkpoint)
            try:
                for one in entrants:
                    one.look()  # at what a checkpoint has of it
                show = partial(tell, entrants)
                if self.budget is not None:
                    race_by_seconds(entrants, counts, threads, show)
                else:
                    here = partial(go_on_threads, threads, show)
                    go = here if cluster is None else partial(go_on_workers, workers, data, show)
                    place = None if checkpoint is None else part_of(checkpoint, "race")
                    saved = Checkpoint(place, self._settings(seed), *data.tables)
                    race_by_rungs(entrants, counts, saved, go)
            except KeyboardInterrupt:
                if not any(one.found for one in entrants):
                    raise
                warnings.warn(INTERRUPTED.format(sum(one.run.epochs for one in entrants)), stacklevel=3)
            finally:
                threads.stop(threads.running)
            despite_interrupt(lambda: self._stack(entrants, data, clock))

    def _stack(self, entrants: Sequence[Entrant], data: DataSplit, clock: Clock) -> None:
        """Set the learned attributes: build the circuits of the parts that get weight in the stack."""
        counts = data.held_out.counts
        members = _build(entrants, counts, clock)
        parts = [one for one in entrants if one in members]
        logs = np.array([one.found.logs for one in parts if one.found])
        self.weights_ = stacking_weights(logs, counts)
        self.members_ = [members[one] for one in parts]
        self.excludes_empty_ = self._excludes_empty(data)
        self.validation_score_ = cross_fitted_score(logs, counts)
        weight = dict(zip(parts, self.weights_.tolist(), strict=True))
        added = dict(zip(parts, additions(logs, counts).tolist(), strict=True))
        self.history_: dict[str, list[Any]] = {
            "candidate": [_name(one.candidate) for one in entrants],
            "validation": [one.score for one in entrants],
            "failure": [None if one.failure is None else str(one.failure) for one in entrants],
            "epochs": [one.run.epochs for one in entrants],
            "seconds": [one.seconds for one in entrants],
            "weight": [weight.get(one, 0.0) for one in entrants],
            "adds": [added.get(one, 0.0) for one in entrants],
        }
        names = data.rows.names
        circuits = [
            one.circuit_ if one._has_total_1 else mixture_of_learned([1.0], [one.circuit_], names)
            for one in self.members_
        ]
        mixed = weighted_sum_of([one._flat for one in circuits], self.weights_.tolist())
        self.circuit_ = from_flat(mixed, names) if len(circuits) > 1 else circuits[0]

    def summary(self) -> str:
        """The parts, those with the largest weights first, as text: a table with a line for each run that began."""
        self._learned()
        columns = ("weight", "validation", "adds", "epochs", "seconds", "candidate")
        lines = [f"{'weight':>6} {'validation':>11} {'adds':>8} {'epochs':>6} {'seconds':>8}  candidate"]
        rows = list(zip(*(self.history_[name] for name in columns), self.history_["failure"], strict=True))
        rows.sort(key=lambda row: (row[-1] is not None, -row[0], -row[1]))
        for weight, score, adds, epochs, seconds, name, failure in rows:
            if epochs or failure:
                told = f"{weight:6.3f} {score:11.4f} {adds:8.4f} {epochs:6d} {seconds:8.1f}  {name}"
                lines.append(told + (f" failed: {failure}" if failure else ""))
        if self.excludes_empty_:
            lines.append("no row is empty: the parts are distributions given that (exclude_empty)")
        lines.append(f"together, weights cross-fitted: validation {self.validation_score_:.4f}")
        return "\n".join(lines)

    def _parameter_count(self) -> int:
        return sum(one._parameter_count() for one in self.members_) + len(self.members_) - 1

    @contextmanager
    def _progress(self, clock: Clock) -> Iterator[Callable[[Sequence[Entrant]], None]]:
        """Shows how far the race has come: a bar of seconds or epochs; if verbose, a line for every new best run."""
        best, seconds = -math.inf, None if self.budget is None else math.ceil(clock.budget)
        unit, shown = "epoch" if seconds is None else "s", None if self.verbose is None else False
        with progress(type(self).__name__, seconds, unit, shown) as bar:

            def tell(entrants: Sequence[Entrant]) -> None:
                nonlocal best
                leader = max(entrants, key=lambda one: (one.found is not None, one.score))
                if seconds is None:
                    done = sum(one.run.epochs for one in entrants)
                    total = done + sum(one.plan.epochs - one.run.epochs for one in entrants if one.is_live)
                else:
                    done, total = int(clock.passed), seconds
                bar.at(min(done, total), total, f"best {leader.score:.4f}")
                if self.verbose and leader.found and leader.score > best:
                    best = leader.score
                    print(f"{_name(leader.candidate)}: validation {best:.4f}", file=sys.stderr, flush=True)

            yield tell

    def _score_codes(self, codes: np.ndarray, rtol: float | None = None) -> np.ndarray:
        """Log-sum-exp over the members. Each member's log-likelihood is certified, so the mixture is as accurate."""
        logs = np.array([member._score_codes(codes, rtol) for member in self.members_])
        return np.logaddexp.reduce(logs + np.log(self.weights_)[:, None], axis=0)

    def _given_others(self, codes: np.ndarray, name: str) -> np.ndarray:
        """Pr(state, others) of every state, divided by their sum: members are faster one by one than their mixture."""
        domain, columns = self._domains[name], self.circuit_.variables
        logs = np.empty((len(codes), len(domain.states)))
        for i, state in enumerate(domain.columns):
            joint = codes.copy()
            for column in filter(None, domain.columns):
                joint[:, columns.index(column)] = column == state
            logs[:, i] = self._score_codes(joint, _RTOL_OF_PARTS)
        largest = logs.max(axis=1, keepdims=True)
        if np.isneginf(largest).any():
            return super()._given_others(codes, name)  # says which row has probability 0
        joints = np.exp(logs - largest)
        return joints / joints.sum(axis=1, keepdims=True)


def default_candidates(seed: int = 0) -> list[Estimator]:
    """Continuous mixtures of products and of trees, hidden trees, mixtures of trees, and mixtures of determinantal PGCs
    with groups of 1, 2 and 5: some of every kind, because parts that differ make different mistakes."""
    products = [ContinuousMixture(latent_dim=latent) for latent in (8, 16)]
    trees = [ContinuousMixture("tree", latent_dim=latent, tree_seed=i) for latent, i in ((16, None), (8, 0), (16, 1))]
    hidden = [HiddenTree(), HiddenTree(), *(HiddenTree(32, "tied", batch_size=128) for _ in range(2))]
    sizes = [(1, 7), (2, 4), (2, 10), (5, 2), (5, 10)]
    others = [MixtureOfTrees(20), MixtureOfTrees(20), *(SimplePGC(K, C) for K, C in sizes)]
    return [one.set_params(random_state=seed + i) for i, one in enumerate([*products, *trees, *hidden, *others])]


def _copies(candidates: Sequence[Estimator] | None, seed: int) -> list[Estimator]:
    """Copies of the candidates; those of a stack in place of the stack."""
    if candidates is None:
        return default_candidates(seed)
    listed = isinstance(candidates, Sequence) and len(candidates) > 0
    if not listed or not all(isinstance(one, Estimator) for one in candidates):
        raise PgccError(f"candidates are a list of estimators of pgcc.learn, at least one; not {brief(candidates)}")
    parts = ([one] if not isinstance(one, StackedEnsemble) else _copies(one.candidates, seed) for one in candidates)
    return [clone(one) for part in parts for one in part]


def _name(candidate: Estimator) -> str:
    """An estimator with the parameters that were set, on one line."""
    return " ".join(repr(candidate).split())


def _build(entrants: Sequence[Entrant], counts: np.ndarray, clock: Clock) -> dict[Entrant, Estimator]:
    """The parts that get weight in the stack, as estimators; with a clock, those that can be built in time."""
    members: dict[Entrant, Estimator] = {}
    while parts := [one for one in entrants if one.found]:
        weights = stacking_weights(np.array([one.found.logs for one in parts if one.found]), counts)
        for i in np.argsort(-weights, kind="stable"):
            one = parts[i]
            late = bool(members) and not clock.has_until_the_end(one.building)
            if one in members or late or weights[i] < min(_LEAST_WEIGHT, weights.max()):
                continue
            try:
                members[one] = one.member()
            except FAILURES as error:
                one.fail(error)
                break  # the others share its weight
        else:
            break
    for one in entrants:
        if one.failure is not None:
            warnings.warn(f"a candidate failed and is left out: {_name(one.candidate)}: {one.failure}", stacklevel=7)
    if not members:
        first = next((one for one in entrants if one.failure is not None), None)
        if first is None or first.failure is None:
            raise PgccError("no candidate did an epoch in time: a larger budget= is needed", argument="budget")
        raise type(first.failure)(
            f"every candidate failed; the first one was {_name(first.candidate)}: {first.failure}"
        )
    return {one: members[one] for one in entrants if one in members and one.found}
