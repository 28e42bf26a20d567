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
from pgcc.learn.common.estimator import Estimator, check_positive, check_whole
from pgcc.learn.common.training import Run, RunPlan, best_of
from pgcc.learn.strudel.decisions import Decisions
from pgcc.learn.strudel.growth import CompleteRows, Growth
from pgcc.learn.tables.data_split import DataSplit


@dataclass(eq=False, repr=False)
class Strudel(Estimator):
    """Learn a circuit that grows from a Chow–Liu tree by splits, or a mixture of such circuits (Dang et al. 2020).

    TODO

    Examples
    --------
    >>> import numpy as np
    >>> from pgcc.learn import Strudel
    """

    n_components: int | Sequence[int] = (1, 5, 20)
    _: KW_ONLY
    smoothing: float = 1.0
    n_splits: int = 10
    max_iter: int = 500
    n_iter_no_change: int = 10
    binarize: float | None = None
    random_state: Any = 0
    verbose: bool | None = None

    def _plans(self, data: DataSplit, seed: int, workers: Crew) -> list[RunPlan]:
        """A run for each number of components. Workers do one run each."""
        several = self.n_components if isinstance(self.n_components, (list, tuple)) else [self.n_components]
        components = dict.fromkeys(check_whole("n_components", one) for one in several)
        smoothing = check_positive("smoothing", self.smoothing, zero=True)
        splits = check_whole("n_splits", self.n_splits)
        epochs = check_whole("max_iter", self.max_iter)
        patience = check_whole("n_iter_no_change", self.n_iter_no_change)
        rows = CompleteRows.of(data.rows, data.held_out, seed)
        plans = []
        for one in components:
            shapes = Growth.shapes(min(one, rows.training), len(rows.states))
            plans.append(RunPlan(partial(Growth, one, smoothing, splits, seed), epochs, patience, shapes, shapes, rows))
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
        decisions = Decisions(found["parents"].tolist(), blocks.states[blocks.first].tolist(), found["splits"])
        self.n_components_ = len(found["weights"])
        with collector_paused():
            self.circuit_ = decisions.circuit(found["theta"], found["weights"], data.rows.names)
