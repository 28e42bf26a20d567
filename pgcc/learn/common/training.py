"""The training loop of all estimators: epochs with early stopping, which keep the best parameters on validation data.

An estimator makes one run or several, which differ in seed and hyper-parameters. A `RunPlan` says how a run starts and
when it stops; a `Trainer` does the epochs; a `Run` is the progress so far. Runs are written to a checkpoint every few
epochs, and a resumed run ends with the same numbers, to the last bit.
"""

from __future__ import annotations

import math
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

import numpy as np

from pgcc.cluster import HERE, Crew, Lost
from pgcc.errors import PgccError
from pgcc.learn.common.checkpoint import EVERY, Checkpoint, Shapes, State, fits
from pgcc.progress import progress

# What is said after an interrupt, with the number of epochs that were done.
INTERRUPTED = "fit was interrupted after {} epochs: the best parameters so far are kept"


class Trainer(Protocol):
    """An optimizer with its objective. When restored from a state, it continues identically, to the last bit."""

    def advance(self) -> float | None:
        """Run one epoch; return the mean log-likelihood of the training data, or None if it has converged."""

    def validate(self) -> float | None:
        """The mean log-likelihood of the validation data; None if there are none: the training data then choose."""

    def learned(self) -> State:
        """The parameters after the last epoch; these arrays are never changed later."""

    def state(self) -> State:
        """The state to resume from; valid until the next epoch."""


@dataclass(frozen=True)
class RunPlan:
    """How a run starts, and when it stops.

    Attributes
    ----------
    make_trainer : callable
        state → Trainer: restored from the state of an interrupted run, or new if the state is None.
    epochs : int
        The largest number of epochs.
    patience : int, optional
        Early stopping: the number of epochs without improvement after which to stop. If None, the last epoch is kept.
    learned, state : Shapes
        What `Trainer.learned` and `Trainer.state` return.
    shared : optional
        What the runs of an estimator share, an argument of `make_trainer` after the state. Each of these runs is given
        to a worker as a whole. (Otherwise the trainer makes use of workers.)
    scores : callable, optional
        What `Trainer.learned` returned → the log-likelihood of every distinct row of the validation data (of
        `Rows.packed`), for ensembles. Without it, they build a circuit to learn them.
    """

    make_trainer: Callable[..., Trainer]
    epochs: int
    patience: int | None
    learned: Shapes
    state: Shapes
    shared: Any = None
    scores: Callable[[State], np.ndarray] | None = None

    def trainer(self, state: State | None) -> Trainer:
        """The trainer, new or restored from a state."""
        return self.make_trainer(state) if self.shared is None else self.make_trainer(state, self.shared)


@dataclass(eq=False)
class Run:
    """The progress of a run: best parameters, history, and the trainer with its state until the run is over."""

    best: State = field(default_factory=dict)
    best_epoch: int = -1
    over: bool = False
    history: dict[str, list[float]] = field(default_factory=lambda: {"train": [], "validation": [], "seconds": []})
    state: State = field(default_factory=dict)
    trainer: Trainer | None = None

    @property
    def epochs(self) -> int:
        """The number of epochs done."""
        return len(self.history["train"])

    @property
    def best_score(self) -> float:
        """The mean log-likelihood of the validation data in the best epoch."""
        return self.history["validation"][self.best_epoch]

    def record(self, train: float, score: float, seconds: float) -> None:
        """Append an epoch to the history."""
        for name, value in (("train", train), ("validation", score), ("seconds", seconds)):
            self.history[name].append(value)

    def keep(self, trainer: Trainer, plan: RunPlan) -> None:
        """After an epoch: keep its parameters if they are the best, and the state unless the run is over."""
        if plan.patience is None or self._last_is_best():
            self.best, self.best_epoch = trainer.learned(), self.epochs - 1
        since = self.epochs - 1 - self.best_epoch
        self.over = self.epochs >= plan.epochs or (plan.patience is not None and since >= plan.patience)
        self.state, self.trainer = ({}, None) if self.over else (trainer.state(), trainer)

    def _last_is_best(self) -> bool:
        score = self.history["validation"][-1]
        return self.best_epoch < 0 or score > self.best_score or (math.isnan(self.best_score) and not math.isnan(score))


def run_epochs(plan: RunPlan, run: Run) -> Iterator[None]:
    """Run the remaining epochs, yielding after each. Between two, others may go on where these end."""
    if run.over:
        return
    run.trainer = trainer = run.trainer or plan.trainer(run.state or None)
    if not run.state:
        run.best = trainer.learned()
    while not run.over:
        began = time.perf_counter()
        train = trainer.advance()
        if train is None:
            run.over, run.state, run.trainer = True, {}, None
            return
        score = trainer.validate()
        run.record(train, train if score is None else score, time.perf_counter() - began)
        run.keep(trainer, plan)
        yield


def train(
    plans: Sequence[RunPlan],
    checkpoint: Checkpoint,
    workers: Crew = HERE,
    verbose: bool | None = False,
    what: str = "fit",
) -> list[Run]:
    """Complete all runs, resuming those that are in the checkpoint.

    An interrupt (Ctrl-C) after the first epoch ends all runs, with a warning: what they have found so far is kept.

    Parameters
    ----------
    plans : sequence of RunPlan
    checkpoint : Checkpoint
    workers : Crew
        Runs that share something are given to workers of a cluster; others are done one after another in this process.
    verbose : bool, optional
        Print a line on standard error for every epoch (of runs on workers: for every run). None shows a progress bar
        instead, on a terminal.
    what : str
        The label of the progress bar.
    """
    runs = read_runs(checkpoint, plans) or [Run() for _ in plans]
    if all(run.over for run in runs):
        return runs
    written = _epochs(runs)
    done = _run_sequentially if plans[0].shared is None or workers.is_here else partial(_run_on_workers, workers)
    with progress(what, None, "epoch", None if verbose is None else False) as bar:
        try:
            for i in done(plans, runs):
                if _epochs(runs) - written >= EVERY:
                    write_runs(checkpoint, runs)
                    written = _epochs(runs)
                if verbose:
                    print(progress_line(plans, runs, i), file=sys.stderr, flush=True)
                left = _epochs_left(plans, runs)
                bar.at(_epochs(runs), _epochs(runs) + left, f"validation {runs[i].history['validation'][-1]:.4f}")
        except KeyboardInterrupt:
            if best_of(runs) is None:
                raise
            warnings.warn(INTERRUPTED.format(_epochs(runs)), stacklevel=5)
            return runs  # not written: a state is valid until the next epoch, which was interrupted
    write_runs(checkpoint, runs)
    return runs


def _run_sequentially(plans: Sequence[RunPlan], runs: list[Run]) -> Iterator[int]:
    """Do one run after another; yield the index of the run after every epoch."""
    for i, (plan, run) in enumerate(zip(plans, runs, strict=True)):
        for _ in run_epochs(plan, run):
            yield i


def _run_on_workers(workers: Crew, plans: Sequence[RunPlan], runs: list[Run]) -> Iterator[int]:
    """Do every run on a worker; yield the index of each finished run. Runs are independent, so results are the same."""
    left = [i for i, run in enumerate(runs) if not run.over]
    parts = [(replace(plans[i], shared=None, scores=None), runs[i]) for i in left]
    for k, found in workers.as_completed(_finish, parts, workers.send(plans[0].shared)):
        i = left[k]
        if isinstance(found, Lost):
            raise PgccError(f"run {i + 1} of {len(runs)} was lost with its worker repeatedly: {found.reason}")
        runs[i] = found
        yield i


def _finish(part: tuple[RunPlan, Run], shared: Any) -> Run:
    plan, run = part[0], deepcopy(part[1])  # if the worker is lost, another starts from the same run
    for _ in run_epochs(replace(plan, shared=shared), run):
        pass
    return run


def despite_interrupt(work: Callable[[], None]) -> None:
    """Finish what was learned: if that is interrupted (Ctrl-C), it begins again, until the next interrupt."""
    try:
        work()
    except KeyboardInterrupt:
        warnings.warn("fit is about to end: another interrupt stops it", stacklevel=5)
        work()


def progress_line(plans: Sequence[RunPlan], runs: Sequence[Run], i: int) -> str:
    """A line about run i, with the largest number of seconds that all runs together may still take."""
    run, plan = runs[i], plans[i]
    best = max(one.best_score for one in runs if one.epochs)
    seconds = _epochs_left(plans, runs) * math.fsum(run.history["seconds"]) / run.epochs
    which = f"run {i + 1}/{len(runs)}, " if len(runs) > 1 else ""
    return (
        f"{which}epoch {run.epochs}/{plan.epochs}: train {run.history['train'][-1]:.4f}, "
        f"validation {run.history['validation'][-1]:.4f}, best {best:.4f}, at most {seconds:.0f} s left"
    )


def _epochs_left(plans: Sequence[RunPlan], runs: Sequence[Run]) -> int:
    """The largest number of epochs that all runs together may still take."""
    return sum(plan.epochs - run.epochs for plan, run in zip(plans, runs, strict=True) if not run.over)


def best_of(runs: Sequence[Run]) -> Run | None:
    """The run with the best score, the first if several are equal. None if no score is a finite number.

    >>> runs = [Run(best_epoch=0, history={"validation": [score]}) for score in (math.nan, -2.0, -2.0, -3.0)]
    >>> best_of(runs) is runs[1], best_of(runs[:1])
    (True, None)
    """
    finite = [run for run in runs if run.best_epoch >= 0 and run.best_score > -math.inf]
    return max(finite, key=lambda run: run.best_score, default=None)


# -- checkpoints ----------------------------------------------------------------------------------------------

# The fields of a `Run` that go to the JSON part of a checkpoint; the others are arrays.
_JSON_FIELDS = ("best_epoch", "over", "history")


def _epochs(runs: Sequence[Run]) -> int:
    return sum(run.epochs for run in runs)


def write_runs(checkpoint: Checkpoint, runs: Sequence[Run]) -> None:
    """Write runs to a checkpoint, between epochs: a state is valid until the next one."""
    arrays = {
        f"{i}.{kind}.{name}": array
        for i, run in enumerate(runs)
        for kind in ("best", "state")
        for name, array in getattr(run, kind).items()
    }
    checkpoint.write(arrays, {"runs": [{name: getattr(run, name) for name in _JSON_FIELDS} for run in runs]})


def read_runs(checkpoint: Checkpoint, plans: Sequence[RunPlan]) -> list[Run] | None:
    """The runs of these plans in a checkpoint, if there is one."""
    if (found := checkpoint.read()) is None:
        return None
    arrays, rest = found
    try:
        runs = [Run(**{name: fields[name] for name in _JSON_FIELDS}) for fields in rest["runs"]]
        for key, array in arrays.items():
            i, kind, name = key.split(".", 2)
            {"best": runs[int(i)].best, "state": runs[int(i)].state}[kind][name] = array
        if len(runs) == len(plans) and all(map(_is_possible, runs, plans)):
            return runs
    except (LookupError, TypeError, ValueError, AttributeError):
        pass
    raise checkpoint.damaged()


def _is_possible(run: Run, plan: RunPlan) -> bool:
    """Whether a run that was read is one that the plan makes."""
    if run.history.keys() != Run().history.keys():
        return False
    columns, epochs = run.history.values(), run.epochs
    return (
        type(run.over) is bool
        and all(type(one) is list and len(one) == epochs and {*map(type, one)} <= {float} for one in columns)
        and epochs <= plan.epochs
        and type(run.best_epoch) is int
        and run.best_epoch in (range(epochs) if epochs else (-1,))
        and fits(run.best, plan.learned if epochs or run.over else {})
        and fits(run.state, plan.state if epochs and not run.over else {})
        and (not epochs or not math.isfinite(run.best_score) or all(np.isfinite(x).all() for x in run.best.values()))
    )
