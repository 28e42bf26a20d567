"""Maximum likelihood by mini-batches: Adam, a schedule of rates, and the best epoch on validation data."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any

import numpy as np

from pgcc.learn.checkpoint import State
from pgcc.learn.encoding import Grouped
from pgcc.learn.evaluator import Adam, Likelihood, log_likelihoods
from pgcc.learn.kernels.tables import Table
from pgcc.learn.starting import prior_codes, start_by_em


@dataclass(frozen=True)
class Recipe:
    """How to train.

    Attributes
    ----------
    rate, last_rate : float
        The learning rate of Adam; it falls along a half cosine to `last_rate` · rate. (1 is a constant rate.)
    decay : float
        Of weights: a batch of rows has the loss −Σ log p + decay/2 · |parameters|².
    smoothing : float
        Rows that are added to every leaf of every component, with sets distributed as in the whole of the data.
    memory : float
        The parameters that are kept are a running mean, of which each step leaves as much.
    batch, epochs : int
    patience : int
        Stop after as many epochs without a better likelihood of the validation data.
    """

    rate: float
    last_rate: float
    decay: float
    smoothing: float
    memory: float
    batch: int
    epochs: int
    patience: int

    def rate_at(self, done: float) -> float:
        """The rate when this part of all epochs is done."""
        low = self.last_rate
        return self.rate * (low + (1 - low) * 0.5 * (1 + math.cos(math.pi * done)))


@dataclass(frozen=True)
class Leg:
    """A run is a number of legs, each from a start of its own; the best epoch of all of them is kept."""

    recipe: Recipe
    seed: int


@dataclass
class Progress:
    """The state of a leg between two epochs: all that it takes to go on.

    Attributes
    ----------
    adam : Adam, optional
        None when the leg is over.
    best : array
        The parameters of the best epoch.
    """

    adam: Adam | None
    best: np.ndarray
    best_score: float = -math.inf
    best_epoch: int = -1
    history: dict[str, list[float]] = field(default_factory=lambda: {"train": [], "validation": [], "seconds": []})

    @property
    def epochs(self) -> int:
        """How many are done."""
        return len(self.history["train"])

    def record(self, train: float, validation: float, seconds: float, parameters: np.ndarray) -> None:
        """Note an epoch, and its parameters if they are the best."""
        if validation > self.best_score:
            self.best, self.best_score, self.best_epoch = parameters.copy(), validation, self.epochs
        for name, value in (("train", train), ("validation", validation), ("seconds", seconds)):
            self.history[name].append(value)

    def is_over(self, recipe: Recipe) -> bool:
        """Whether the leg has come to its end."""
        scores = self.history["validation"]
        since = len(scores) - 1 - int(np.argmax(scores)) if scores else 0
        return len(scores) >= recipe.epochs or since >= recipe.patience

    def state(self) -> tuple[State, dict[str, Any]]:
        """All that it takes to go on, for a checkpoint."""
        arrays, rest = {"best": self.best}, {name: getattr(self, name) for name in _TOLD}
        if (adam := self.adam) is not None:
            arrays |= {name: getattr(adam, name) for name in _OF_ADAM}
            rest["steps"] = adam.steps
        return arrays, rest

    @classmethod
    def of(cls, arrays: State, rest: dict[str, Any]) -> Progress:
        """What goes on from there."""
        adam = None
        if "steps" in rest:
            adam = Adam(arrays["parameters"])
            adam.mean, adam.square, adam.average = arrays["mean"], arrays["square"], arrays["average"]
            adam.steps = rest["steps"]
        return cls(adam, arrays["best"], *(rest[name] for name in _TOLD))


_TOLD = ("best_score", "best_epoch", "history")
_OF_ADAM = ("parameters", "mean", "square", "average")


class Training:
    """What all legs of a run have in common: data, and how many components are fitted to them."""

    def __init__(self, data: Grouped, validation: Grouped, components: int, threads: int = 1):
        self._data, self._validation, self._threads = data, validation, threads
        self._likelihoods = _Likelihoods(components, threads)
        self._prior = prior_codes(data.start) / len(data.start.where)
        # legs of one seed follow each other, and start from the same place
        self._start = lru_cache(maxsize=1)(
            lambda seed: start_by_em(data.start, components, np.random.default_rng(seed))
        )

    def begin(self, leg: Leg) -> Progress:
        """Before the first epoch."""
        first = self._start(leg.seed)
        return Progress(Adam(first.copy()), first.copy())

    def epochs(self, leg: Leg, progress: Progress) -> Iterator[None]:
        """Run the epochs that are left, and stop after each.

        What happens in an epoch depends on the state before it and the seed only.
        """
        while (adam := progress.adam) is not None:
            began = time.perf_counter()
            mean = _run_epoch(self._likelihoods, adam, self._data, leg, progress.epochs, self._prior)
            seconds = time.perf_counter() - began
            likelihoods = partial(log_likelihoods, parameters=adam.average, threads=self._threads)
            progress.record(mean, self._validation.average(likelihoods), seconds, adam.average)
            if progress.is_over(leg.recipe):
                progress.adam = None
            yield


# -- all legs of a run --------------------------------------------------------------------------------------

Run = list[Progress | None]  # of every leg; None for one that has not begun


def epochs_of(run: Run) -> int:
    """How many are done in all legs."""
    return sum(progress.epochs for progress in run if progress is not None)


def state_of(run: Run) -> tuple[State, dict[str, Any]]:
    """All that it takes to go on, for a checkpoint."""
    states = [None if progress is None else progress.state() for progress in run]
    arrays = {f"{i}.{name}": array for i, one in enumerate(states) if one for name, array in one[0].items()}
    return arrays, {"legs": [one and one[1] for one in states]}


def run_from(arrays: State, rest: dict[str, Any]) -> Run:
    """What goes on from there."""
    run: Run = []
    for i, told in enumerate(rest["legs"]):
        mine = {name.removeprefix(f"{i}."): array for name, array in arrays.items() if name.startswith(f"{i}.")}
        run.append(told and Progress.of(mine, told))
    return run


def join_legs(legs: Sequence[Progress]) -> Progress:
    """The best epoch of all legs, and one history, which has the number of the leg too."""
    joined = Progress(None, legs[0].best, history={"leg": [], **{name: [] for name in legs[0].history}})
    for number, leg in enumerate(legs):
        if leg.best_score > joined.best_score:
            joined.best, joined.best_score = leg.best, leg.best_score
            joined.best_epoch = joined.epochs + leg.best_epoch
        joined.history["leg"] += [number] * leg.epochs
        for name, values in leg.history.items():
            joined.history[name] += values
    return joined


class _Likelihoods:
    """The likelihood of a table, made anew where it is another one than the last."""

    def __init__(self, components: int, threads: int):
        self._components, self._threads = components, threads
        self._last: Likelihood | None = None

    def of(self, table: Table) -> Likelihood:
        if self._last is None or self._last.table is not table:
            self._last = Likelihood(table, self._components, self._threads)
        return self._last


def _run_epoch(likelihoods: _Likelihoods, adam: Adam, data: Grouped, leg: Leg, epoch: int, prior: np.ndarray) -> float:
    """All rows once, in random order; their mean log-likelihood along the way."""
    recipe, total, done = leg.recipe, 0.0, 0
    for table, drawn in data.batches(recipe.batch, np.random.default_rng([leg.seed, epoch])):
        rate = recipe.rate_at((epoch + done / len(data)) / recipe.epochs)
        counts = recipe.smoothing * len(drawn) * prior
        total += likelihoods.of(table).ascend(adam, drawn, rate, recipe.decay, recipe.memory, counts)
        done += len(drawn)
    return total / len(data)
