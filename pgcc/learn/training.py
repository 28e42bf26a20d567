"""The training loop of every estimator: epochs of an ascent, of which the best on validation data is kept.

An estimator makes one run or several (*attempts*, which differ in seed and learning rate). All that a run needs to go
on is in its `Run`, which is written to the checkpoint every few epochs: a killed run ends with the same numbers.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Protocol

from pgcc.cluster import Crew, Lost
from pgcc.errors import PgccError
from pgcc.learn.checkpoint import EVERY, Checkpoint, State
from pgcc.progress import progress


class Ascent(Protocol):
    """An optimiser working on its objective. The same state continues in the same way, to the last bit."""

    def advance(self) -> float | None:
        """One epoch: the mean log-likelihood of the training data; None where there is nothing more to gain."""

    def validate(self) -> float | None:
        """The mean log-likelihood of the validation data; None where there are none, and the training data choose."""

    def learned(self) -> State:
        """The parameters to be kept of the last epoch. They are not changed later."""

    def state(self) -> State:
        """All that it takes to go on; valid until the next epoch."""


@dataclass(frozen=True)
class Attempt:
    """A run to be made: how it begins, and when it stops.

    Attributes
    ----------
    begin : callable
        (state, *common) → Ascent: from the state of a run that was interrupted, or from the start if it is None.
    epochs : int
        At most so many.
    patience : int, optional
        Stop after as many epochs without a better one. Without it nothing is chosen: the last epoch is kept.
    """

    begin: Callable[..., Ascent]
    epochs: int
    patience: int | None


@dataclass(eq=False)
class Run:
    """The outcome of the epochs so far, and the state of the ascent until the run is over."""

    best: State = field(default_factory=dict)
    best_epoch: int = -1
    over: bool = False
    history: dict[str, list[float]] = field(default_factory=lambda: {"train": [], "validation": [], "seconds": []})
    state: State = field(default_factory=dict)

    @property
    def epochs(self) -> int:
        """How many are done."""
        return len(self.history["train"])

    @property
    def best_score(self) -> float:
        """The mean log-likelihood of the validation data in the epoch that is kept."""
        return self.history["validation"][self.best_epoch]

    def record(self, train: float, score: float, seconds: float) -> None:
        """Note the figures of an epoch."""
        for name, value in (("train", train), ("validation", score), ("seconds", seconds)):
            self.history[name].append(value)

    def keep(self, ascent: Ascent, attempt: Attempt) -> None:
        """Keep the parameters of the epoch recorded last if it is the best; then its state, or that the run is over."""
        if attempt.patience is None or self._last_is_best():
            self.best, self.best_epoch = ascent.learned(), self.epochs - 1
        since = self.epochs - 1 - self.best_epoch
        self.over = self.epochs >= attempt.epochs or (attempt.patience is not None and since >= attempt.patience)
        self.state = {} if self.over else ascent.state()

    def _last_is_best(self) -> bool:
        score = self.history["validation"][-1]
        return self.best_epoch < 0 or score > self.best_score or (math.isnan(self.best_score) and not math.isnan(score))


def climb(attempt: Attempt, run: Run, *common: Any) -> Iterator[None]:
    """Make the epochs of a run that are left, pausing after each."""
    if run.over:
        return
    ascent = attempt.begin(run.state or None, *common)
    if not run.state:
        run.best = ascent.learned()
    while not run.over:
        began = time.perf_counter()
        train = ascent.advance()
        if train is None:
            run.over, run.state = True, {}
            return
        score = ascent.validate()
        run.record(train, train if score is None else score, time.perf_counter() - began)
        run.keep(ascent, attempt)
        yield


def train(
    attempts: Sequence[Attempt],
    checkpoint: Checkpoint,
    *common: Any,
    workers: Crew | None = None,
    verbose: bool | None = False,
    what: str = "fit",
) -> list[Run]:
    """Make every run, from where the checkpoint has it.

    Parameters
    ----------
    attempts : sequence of Attempt
    checkpoint : Checkpoint
    common : optional
        Further arguments of all `begin`.
    workers : Crew, optional
        Each run is made by one of these workers; without them one run is made after another, here.
    verbose : bool, optional
        Print a line on standard error for every epoch (for every run, where workers make them); None is to show a bar
        instead, on a terminal.
    what : str
        What the bar is about.
    """
    runs = _read(checkpoint) or [Run() for _ in attempts]
    if all(run.over for run in runs):
        return runs
    written = _epochs(runs)
    done = _in_turn(attempts, runs, common) if workers is None else _apart(workers, attempts, runs, common)
    with progress(what, None, "epoch", None if verbose is None else False) as bar:
        for i in done:
            if _epochs(runs) - written >= EVERY:
                _write(checkpoint, runs)
                written = _epochs(runs)
            if verbose:
                print(progress_line(attempts, runs, i), file=sys.stderr, flush=True)
            left = _epochs_left(attempts, runs)
            bar.at(_epochs(runs), _epochs(runs) + left, f"validation {runs[i].history['validation'][-1]:.4f}")
    _write(checkpoint, runs)
    return runs


def _in_turn(attempts: Sequence[Attempt], runs: list[Run], common: tuple) -> Iterator[int]:
    """One run after another; yields the number of the run after every epoch."""
    for i, (attempt, run) in enumerate(zip(attempts, runs, strict=True)):
        for _ in climb(attempt, run, *common):
            yield i


def _apart(workers: Crew, attempts: Sequence[Attempt], runs: list[Run], common: tuple) -> Iterator[int]:
    """Every run by a worker; yields the number of each that is over. No run depends on another: they end the same."""
    left = [i for i, run in enumerate(runs) if not run.over]
    parts = [(attempts[i], runs[i]) for i in left]
    for k, found in workers.as_completed(_finish, parts, *map(workers.send, common)):
        i = left[k]
        if isinstance(found, Lost):
            raise PgccError(f"run {i + 1} of {len(runs)} was lost with its worker repeatedly: {found.reason}")
        runs[i] = found
        yield i


def _finish(part: tuple[Attempt, Run], *common: Any) -> Run:
    attempt, run = part[0], deepcopy(part[1])  # a part that is lost starts from the same run again
    for _ in climb(attempt, run, *common):
        pass
    return run


def progress_line(attempts: Sequence[Attempt], runs: Sequence[Run], i: int) -> str:
    """A line about run i, and the seconds that all runs would take at the most."""
    run, attempt = runs[i], attempts[i]
    best = max(one.best_score for one in runs if one.epochs)
    seconds = _epochs_left(attempts, runs) * math.fsum(run.history["seconds"]) / run.epochs
    which = f"run {i + 1}/{len(runs)}, " if len(runs) > 1 else ""
    return (
        f"{which}epoch {run.epochs}/{attempt.epochs}: train {run.history['train'][-1]:.4f}, "
        f"validation {run.history['validation'][-1]:.4f}, best {best:.4f}, at most {seconds:.0f} s left"
    )


def _epochs_left(attempts: Sequence[Attempt], runs: Sequence[Run]) -> int:
    """At most so many are still to be made."""
    return sum(attempt.epochs - run.epochs for attempt, run in zip(attempts, runs, strict=True) if not run.over)


def best_of(runs: Sequence[Run]) -> Run | None:
    """The run with the best epoch of all; of equal ones the first. None if no likelihood was a finite number.

    >>> runs = [Run(best_epoch=0, history={"validation": [score]}) for score in (math.nan, -2.0, -2.0, -3.0)]
    >>> best_of(runs) is runs[1], best_of(runs[:1])
    (True, None)
    """
    able = [run for run in runs if run.best_epoch >= 0 and run.best_score > -math.inf]
    return max(able, key=lambda run: run.best_score, default=None)


# -- checkpoints ----------------------------------------------------------------------------------------------

_TOLD = ("best_epoch", "over", "history")


def _epochs(runs: Sequence[Run]) -> int:
    return sum(run.epochs for run in runs)


def _write(checkpoint: Checkpoint, runs: Sequence[Run]) -> None:
    arrays = {
        f"{i}.{kind}.{name}": array
        for i, run in enumerate(runs)
        for kind in ("best", "state")
        for name, array in getattr(run, kind).items()
    }
    checkpoint.write(arrays, {"runs": [{name: getattr(run, name) for name in _TOLD} for run in runs]})


def _read(checkpoint: Checkpoint) -> list[Run] | None:
    if (found := checkpoint.read()) is None:
        return None
    arrays, rest = found
    runs = [Run(**told) for told in rest["runs"]]
    for key, array in arrays.items():
        i, kind, name = key.split(".", 2)
        getattr(runs[int(i)], kind)[name] = array
    return runs
