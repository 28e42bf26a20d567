"""Training epoch by epoch: the best one on validation data is kept, and a killed run goes on where it was."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from math import fsum
from typing import Any, Protocol

from pgcc.learn.checkpoint import EVERY, Checkpoint, State


class Ascent(Protocol):
    """What climbs an epoch at a time. The same state goes on the same way, to the last bit."""

    def advance(self) -> float | None:
        """One epoch: the mean log-likelihood of the training data; None where there is nothing more to gain."""

    def validate(self) -> float | None:
        """The mean log-likelihood of the validation data; None where there are none, and the training data choose."""

    def learned(self) -> State:
        """What there is to be kept of an epoch. It is not changed later."""

    def state(self) -> State:
        """All that it takes to go on."""

    def restore(self, state: State) -> None:
        """Go on from there."""


@dataclass
class Run:
    """What came of the epochs so far."""

    best: State
    best_epoch: int = -1
    over: bool = False
    history: dict[str, list[float]] = field(default_factory=lambda: {"train": [], "validation": [], "seconds": []})

    @property
    def epochs(self) -> int:
        """How many are done."""
        return len(self.history["train"])

    @property
    def best_score(self) -> float:
        """Of the validation data, in the epoch that is kept."""
        return self.history["validation"][self.best_epoch]

    def record(self, train: float, score: float, seconds: float, ascent: Ascent) -> None:
        """Note an epoch, and what was learned if it is the best."""
        if self.best_epoch < 0 or score > self.best_score:
            self.best, self.best_epoch = ascent.learned(), self.epochs
        for name, value in (("train", train), ("validation", score), ("seconds", seconds)):
            self.history[name].append(value)

    def seconds_left(self, epochs: int) -> float:
        """What all epochs that are left would take."""
        return (epochs - self.epochs) * fsum(self.history["seconds"]) / self.epochs

    def is_over(self, epochs: int, patience: int) -> bool:
        """Whether there was no gain, enough epochs, or too many without a better one."""
        return self.over or self.epochs >= epochs or (self.epochs > 0 and self.epochs - 1 - self.best_epoch >= patience)


def run_epochs(
    ascent: Ascent,
    epochs: int,
    patience: int,
    checkpoint: Checkpoint,
    tell: Callable[[Run], Any] = lambda run: None,
) -> Run:
    """Run the epochs that are left; `tell` hears of each."""
    run = _resumed(ascent, checkpoint) or Run(ascent.learned())
    if run.is_over(epochs, patience):
        return run
    while not run.is_over(epochs, patience):
        began = time.perf_counter()
        train = ascent.advance()
        if train is None:
            run.over = True
            break
        score = ascent.validate()
        run.record(train, train if score is None else score, time.perf_counter() - began, ascent)
        if run.epochs % EVERY == 0:
            _keep(run, ascent, checkpoint)
        tell(run)
    _keep(run, ascent, checkpoint)
    return run


def _keep(run: Run, ascent: Ascent, checkpoint: Checkpoint) -> None:
    if checkpoint.place is not None:
        arrays = {f"state.{name}": array for name, array in ascent.state().items()}
        arrays |= {f"best.{name}": array for name, array in run.best.items()}
        checkpoint.write(arrays, {"best_epoch": run.best_epoch, "over": run.over, "history": run.history})


def _resumed(ascent: Ascent, checkpoint: Checkpoint) -> Run | None:
    if (found := checkpoint.read()) is None:
        return None
    arrays, rest = found
    state, best = (
        {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
        for prefix in ("state.", "best.")
    )
    ascent.restore(state)
    return Run(best, **rest)
