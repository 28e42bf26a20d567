"""Entrants of a race: runs of candidates that can be paused after any epoch, and what they have found so far."""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from pgcc.cluster import HERE
from pgcc.errors import CircuitError, EvidenceError, FormatError, PgccError, PrecisionError, SemanticsError
from pgcc.kernels.announce import search_clock
from pgcc.learn.common.checkpoint import EVERY, Checkpoint, CheckpointError, CheckpointPath, State, part_of
from pgcc.learn.common.estimator import Estimator, seed_of
from pgcc.learn.common.optimizers import MiniBatches
from pgcc.learn.common.training import Run, RunPlan, Trainer, read_runs, run_epochs, write_runs
from pgcc.learn.tables.data_split import DataSplit

# Errors that concern one candidate only: it cannot be learned (from these data), or is too large.
FAILURES = (PgccError, ArithmeticError, np.linalg.LinAlgError, MemoryError)
_KINDS: tuple[type[PgccError], ...] = (CircuitError, EvidenceError, FormatError, PrecisionError, SemanticsError)
# Validation rows are scored in between as long as that takes less than this part of the time.
_LOOKING = 0.05
# The parts of a budget that are kept for the end, at least, and that it may be late. Circuits may take so many times as
# long to build as when that was tried.
_RESERVE, _GRACE, _LONGER = 0.03, 0.04, 1.2


class Found(NamedTuple):
    """What a run has found so far: its best parameters with its history, and how likely the validation rows are."""

    run: Run
    logs: np.ndarray


class Clock:
    """A budget in seconds, perhaps infinite; some are kept for the circuits at the end. Compiling does not count."""

    def __init__(self, budget: float = math.inf):
        self.budget, self.began, self.building = budget, search_clock(), 0.0

    @property
    def passed(self) -> float:
        """The seconds that have passed."""
        return search_clock() - self.began

    @property
    def left(self) -> float:
        """The seconds that are left for training."""
        return (1 - _RESERVE) * self.budget - _LONGER * self.building - self.passed

    def has(self, seconds: float) -> bool:
        """Whether most of something that takes so long would be in time."""
        return self.left > 0.6 * seconds

    def has_until_the_end(self, seconds: float) -> bool:
        """Whether something that takes so long would end before the budget does, or a little later."""
        return (1 + _GRACE) * self.budget - self.passed > seconds


@dataclass(eq=False)
class Entrant:
    """A run of a candidate, which can be paused after any epoch.

    Attributes
    ----------
    candidate : Estimator
    number, seed : int
        The number of the run among those of the candidate, and the seed of these.
    plan : RunPlan
    data : DataSplit
    saved : Checkpoint
    run : Run
    found : Found, optional
        What it has found; consistent at any time, while `run` may be in the middle of an epoch.
    seconds, building : float
        The seconds it has run, and those that its circuit takes to build, if that was tried.
    out : bool
        Whether it takes no further part.
    failure : PgccError, optional
        Why it failed.
    """

    candidate: Estimator
    number: int
    seed: int
    plan: RunPlan
    data: DataSplit
    saved: Checkpoint
    run: Run = field(default_factory=Run)
    found: Found | None = None
    seconds: float = field(init=False)
    building: float = 0.0
    out: bool = False
    failure: PgccError | None = None
    _looking: float = 0.0

    def __post_init__(self) -> None:
        self.seconds = math.fsum(self.run.history["seconds"])

    @property
    def kind(self) -> tuple[Any, ...]:
        """Its class, and what was chosen by words, such as the parameters of a hidden tree: those alike are similar."""
        values = self.candidate.get_params(deep=False).values()
        return type(self.candidate), *(value for value in values if isinstance(value, str))

    @property
    def size(self) -> int:
        """How many numbers it learns, at least."""
        shapes = (shape for _, *shape in self.plan.learned.values())
        return max(1, sum(math.prod(length for length in shape if isinstance(length, int)) for shape in shapes))

    @property
    def is_live(self) -> bool:
        """Whether it can go on."""
        return not (self.out or self.run.over)

    @property
    def epoch_seconds(self) -> float:
        """The seconds of an epoch; 0 before the first."""
        return float(np.median(self.run.history["seconds"][-5:])) if self.run.epochs else 0.0

    @property
    def score(self) -> float:
        """The mean log-likelihood of the validation data; NaN if nothing was found."""
        counts = self.data.held_out.counts
        return float(counts @ self.found.logs / counts.sum()) if self.found else math.nan

    @property
    def gain(self) -> float:
        """How much better the validation data are than in the first half of the epochs; inf if there is none."""
        scores, half = self.run.history["validation"], (self.run.epochs + 1) // 2
        gain = float(np.max(scores) - np.max(scores[:half])) if self.run.epochs > 1 else math.inf
        return math.inf if math.isnan(gain) else gain

    def go(self, clock: Clock, epochs: int = 0, seconds: float = 0.0, last: bool = False) -> None:
        """Go on until it has done so many epochs and run so many seconds in all, or time is up; see what was found.

        If these epochs are the last ones, the schedule of the learning rate ends with them.
        """
        run, began = self.run, search_clock() - self.seconds
        try:
            if last:  # try how long the circuit takes: its seconds are kept for the end
                self._built(run)
                epochs = run.epochs + round((seconds - self.seconds - self.building) / self.epoch_seconds)
                seconds = 0.0
            steps = run_epochs(self.plan, run)
            while self.is_live and (run.epochs < epochs or self.seconds < seconds) and clock.has(self.epoch_seconds):
                if last and isinstance(run.trainer, MiniBatches):
                    run.trainer.epochs = epochs
                next(steps, None)
                self.seconds = search_clock() - began
                if not self.found or self._looking < _LOOKING * self.seconds:
                    self.look()
                if not run.epochs % EVERY:
                    write_runs(self.saved, [run])
            self.look()
            write_runs(self.saved, [run])
            if last:
                self.leave()
        except CheckpointError:
            raise
        except FAILURES as error:
            self.fail(error)

    def look(self) -> None:
        """Score the validation data with the best parameters so far, if they are new."""
        run, began = self.run, search_clock()
        if not run.best or (self.found and self.found.run.best_epoch == run.best_epoch and run.epochs):
            return
        history = {name: list(values) for name, values in run.history.items()}
        found = Run(run.best, run.best_epoch, True, history)
        rows = self.data.held_out
        if self.plan.scores is not None:
            logs = self.plan.scores(run.best)
        else:
            member = self._built(found)
            logs = np.concatenate([member._score_codes(block.codes) for block in rows.blocks()])
        if not np.isnan(logs).any():
            self.found = Found(found, logs)
        self._looking += search_clock() - began

    def member(self) -> Estimator:
        """The candidate as an estimator that has learned what was found."""
        assert self.found is not None
        return self._built(self.found.run)

    def _built(self, run: Run) -> Estimator:
        began, member = search_clock(), copy(self.candidate)  # as it was planned, perhaps with numbers that were drawn
        member._conclude([run], self.data)
        self.building = search_clock() - began
        return member

    def fail(self, error: BaseException | str) -> None:
        """Leave the race, for this reason."""
        kind = next((kind for kind in _KINDS if type(error) is kind), PgccError)
        self.failure = kind(error if isinstance(error, str) else f"{type(error).__name__}: {error}")
        self.leave()
        self.found = None

    def leave(self) -> None:
        """Take no further part; what was found stays."""
        self.out, self.run.state, self.run.trainer = True, {}, None


def enter(candidates: Sequence[Estimator], data: DataSplit, folder: CheckpointPath | None) -> list[Entrant]:
    """All runs of all candidates, with what a checkpoint has of them."""
    entrants: list[Entrant] = []
    for candidate in candidates:
        seed, no_plan = seed_of(getattr(candidate, "random_state", 0), folder), RunPlan(_never, 0, None, {}, {})
        try:
            plans = candidate._plans(candidate._read(data, None, seed), seed, HERE)
            if candidate._excludes_empty(data) and not candidate._learns_nonempty:  # the circuit has other scores
                plans = [replace(plan, scores=None) for plan in plans]
            settings, arrays = candidate._settings(seed), list(candidate._arrays(data))
        except FAILURES as error:
            entrants.append(Entrant(candidate, 0, seed, no_plan, data, Checkpoint(None, {})))
            entrants[-1].fail(error)
            continue
        for number, plan in enumerate(plans):
            place = part_of(folder, len(entrants))
            saved = Checkpoint(place, {**settings, "run": number}, *data.tables, *arrays)
            run = (read_runs(saved, [plan]) or [Run()])[0]
            entrants.append(Entrant(candidate, number, seed, plan, data, saved, run))
    return entrants


def _never(state: State | None) -> Trainer:
    """The trainer of a candidate that cannot be planned."""
    raise AssertionError
