"""Strudel: learn a deterministic circuit by splitting, or a mixture of circuits that share one structure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any

from pgcc.cluster import Crew
from pgcc.collector import collector_paused
from pgcc.errors import PgccError
from pgcc.ir.blocks import Blocks
from pgcc.learn.common.checkpoint import Shapes
from pgcc.learn.common.estimator import Estimator, check_positive, check_whole
from pgcc.learn.common.training import Run, RunPlan, best_of
from pgcc.learn.strudel.decisions import Decisions
from pgcc.learn.strudel.growth import CompleteRows, Growth
from pgcc.learn.tables.data_split import DataSplit


@dataclass(eq=False, repr=False)
class Strudel(Estimator):
    """Learn a circuit that grows from a Chow–Liu tree by splits, or a mixture of such circuits (Dang et al. 2020).

    The circuit is deterministic: every row takes one way through it. So its parameters are found by counting, and the
    most probable assignment, `model_.mode()`, by one evaluation. Every split takes the element (a term of a sum) with
    the largest flow, the number of rows that take it, and the variable below it that has most mutual information with
    the others in these rows; the element is replaced by a copy for each state of the variable. The copies share what
    does not depend on the variable.

    The circuits of a mixture have one structure, which grows while their parameters are learned by EM, from clusters of
    rows. A mixture has a better likelihood on some data, but is not deterministic: for exact modes, set n_components=1.

    Parameters
    ----------
    n_components : int, or list or tuple of int
        The number of circuits. Of several numbers, that is kept whose result is best on the validation data.
    smoothing : float
        Laplace smoothing: the number of rows added to every sum of the circuit, in equal parts to its terms.
    n_splits : int
        The number of splits in an iteration. (With several components, a step of EM follows them.)
    max_iter, n_iter_no_change : int
        The largest number of iterations, and the number of iterations without a better likelihood of the validation
        data after which to stop.
    binarize : float, optional
        The threshold above which numbers count as 1. By default, data are 0 and 1 (or −1, NaN, None if missing).
    exclude_empty : bool or "auto"
        Whether the distribution is that given that a row is not empty (`Circuit.exclude_empty`); the circuit is then no
        longer deterministic. "auto": if no row is, though at least ten would be if the variables were independent.
    random_state : int, numpy Generator or RandomState, or None
        The same number gives the same model.
    verbose : bool, optional
        Report every iteration on standard error. By default, a bar shows the progress if that is a terminal; False
        shows nothing.

    Attributes
    ----------
    circuit_ : Circuit
        The distribution that was learned.
    n_components_ : int
        The number of circuits in the mixture.
    n_iter_ : int
        The number of iterations made.
    history_ : dict of lists
        For every iteration: the mean log-likelihood of the training and of the validation data, and the seconds it
        took. (Of the run that was kept, if there were several numbers of components.)
    best_epoch_ : int
        The iteration, counted from 0, that was kept because it was the best on the validation data.

    See Also
    --------
    pgcc.learn.ChowLiu : the tree that it starts from
    pgcc.Model.mode : the most probable assignment
    pgcc.pc.structure : shows that a circuit is structured-decomposable and deterministic

    Notes
    -----
    Missing values are first drawn from a Chow–Liu tree, given the rest of their row. The rows are held in memory; if
    those that are different have more than 2²⁴ entries, as many are drawn at random as have so many.

    Examples
    --------
    >>> import numpy as np
    >>> import pgcc
    >>> from pgcc.learn import ChowLiu, Strudel
    >>> X = np.random.default_rng(0).integers(0, 2, (400, 3))
    >>> X[:, 2] = X[:, 0] ^ X[:, 1]                     # a tree cannot express that
    >>> model = Strudel(n_components=1).fit(X)
    >>> print(f"{ChowLiu().fit(X).score(X):.1f} {model.score(X):.1f}")
    -2.1 -1.4
    >>> pgcc.pc.structure(model.circuit_).deterministic, model.model_.mode({"x1": 1, "x2": 0}).exact
    (True, True)
    """

    n_components: int | Sequence[int] = (1, 5, 20)
    _: KW_ONLY
    smoothing: float = 1.0
    n_splits: int = 10
    max_iter: int = 500
    n_iter_no_change: int = 10
    binarize: float | None = None
    exclude_empty: bool | str = False
    random_state: Any = 0
    verbose: bool | None = None

    def _plans(self, data: DataSplit, seed: int, workers: Crew) -> list[RunPlan]:
        """A run for each number of components. Workers do one run each."""
        several = self.n_components if isinstance(self.n_components, (list, tuple)) else [self.n_components]
        components = [check_whole("n_components", one) for one in several]
        if not components:
            raise PgccError("n_components is empty: expected at least one number", argument="n_components")
        smoothing = check_positive("smoothing", self.smoothing, zero=True)
        splits, limits = check_whole("n_splits", self.n_splits), self._limits()
        rows = CompleteRows.of(data.rows, data.held_out, seed)
        plans = []
        for one in dict.fromkeys(min(number, rows.training) for number in components):
            shapes: Shapes = {"theta": (float, None, one), "weights": (float, one)}
            shapes = {"parents": (int, len(rows.blocks.first)), "splits": (int, None, 2), **shapes}
            plans.append(RunPlan(partial(Growth, one, smoothing, splits, seed), *limits, shapes, shapes, rows))
        return plans

    def _finish(self, runs: Sequence[Run], data: DataSplit) -> None:
        best = best_of(runs)
        if best is None:
            raise PgccError(
                "no circuit gives all validation data a positive probability",
                advice="a larger smoothing=… makes nothing impossible",
                argument="smoothing",
            )
        found, blocks = self._keep_history(best), Blocks.of(data.rows.names)
        decisions = Decisions(found["parents"].tolist(), blocks.states[blocks.first].tolist(), found["splits"].tolist())
        self.n_components_ = len(found["weights"])
        with collector_paused():
            self.circuit_ = decisions.circuit(found["theta"], found["weights"], data.rows.names)
