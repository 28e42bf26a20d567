"""Maximum likelihood by mini-batches: Adam, a schedule of rates, and the best epoch on validation data."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any

import numpy as np

from pgcc.backend.kernels.learning_tables import Table
from pgcc.backend.learning import Adam, Likelihood, log_likelihoods
from pgcc.learn.checkpoint import State
from pgcc.learn.encoding import Grouped
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
    """The state of a run between two epochs: all that it takes to go on."""

    adam: Adam
    leg: int
    best: np.ndarray
    best_score: float = -math.inf
    best_epoch: int = -1
    history: dict[str, list[float]] = field(
        default_factory=lambda: {"leg": [], "train": [], "validation": [], "seconds": []}
    )

    @property
    def scores(self) -> list[float]:
        """Of the validation data, after each epoch of the leg that is on."""
        pairs = zip(self.history["leg"], self.history["validation"], strict=True)
        return [score for leg, score in pairs if leg == self.leg]

    def record(self, train: float, validation: float, seconds: float) -> None:
        """Note an epoch, and its parameters if they are the best."""
        if validation > self.best_score:
            self.best, self.best_score = self.adam.average.copy(), validation
            self.best_epoch = len(self.history["leg"])
        for name, value in (("leg", self.leg), ("train", train), ("validation", validation), ("seconds", seconds)):
            self.history[name].append(value)

    def state(self) -> tuple[State, dict[str, Any]]:
        """All that it takes to go on, for a checkpoint."""
        adam = self.adam
        arrays = {
            "parameters": adam.parameters, "mean": adam.mean, "square": adam.square, "average": adam.average,
            "best": self.best,
        }  # fmt: skip
        rest = {name: getattr(self, name) for name in ("leg", "best_score", "best_epoch", "history")}
        return arrays, {"steps": adam.steps, **rest}

    @classmethod
    def of(cls, arrays: State, rest: dict[str, Any]) -> Progress:
        """What goes on from there."""
        adam = Adam(arrays["parameters"])
        adam.mean, adam.square, adam.average = arrays["mean"], arrays["square"], arrays["average"]
        adam.steps = rest["steps"]
        return cls(adam, rest["leg"], arrays["best"], rest["best_score"], rest["best_epoch"], rest["history"])

    def is_over(self, recipe: Recipe) -> bool:
        """Whether the leg that is on has come to its end."""
        scores = self.scores
        since = len(scores) - 1 - int(np.argmax(scores)) if scores else 0
        return len(scores) >= recipe.epochs or since >= recipe.patience


def train(
    progress: Progress | None,
    data: Grouped,
    validation: Grouped,
    components: int,
    legs: Sequence[Leg],
    threads: int = 1,
    after_epoch: Callable[[Progress], Any] = lambda progress: None,
) -> Progress:
    """Run the epochs that are left, all of them if there is no progress yet.

    What happens in an epoch depends on the state before it and the seed only.
    """
    # legs of one seed follow each other, and start from the same place
    start = lru_cache(maxsize=1)(lambda seed: start_by_em(data.start, components, np.random.default_rng(seed)))
    if progress is None:
        first = start(legs[0].seed)
        progress = Progress(Adam(first.copy()), 0, first.copy())
    likelihoods = _Likelihoods(components, threads)
    prior = prior_codes(data.start) / len(data.start.where)
    while True:
        leg = legs[progress.leg]
        while not progress.is_over(leg.recipe):
            began, epoch = time.perf_counter(), len(progress.scores)
            mean = _run_epoch(likelihoods, progress.adam, data, leg, epoch, prior)
            seconds = time.perf_counter() - began
            score = validation.average(partial(log_likelihoods, parameters=progress.adam.average, threads=threads))
            progress.record(mean, score, seconds)
            after_epoch(progress)
        if progress.leg + 1 == len(legs):
            return progress
        progress.leg += 1
        progress.adam = Adam(start(legs[progress.leg].seed).copy())


def join_legs(legs: Sequence[Progress]) -> Progress:
    """The state after several legs that ran apart, each as the only one of its run: as if they had been one run's."""
    last = legs[-1]
    joined = Progress(last.adam, len(legs) - 1, legs[0].best)
    for number, leg in enumerate(legs):
        if leg.best_score > joined.best_score:
            joined.best, joined.best_score = leg.best, leg.best_score
            joined.best_epoch = len(joined.history["leg"]) + leg.best_epoch
        for name, values in leg.history.items():
            joined.history[name] += [number] * len(values) if name == "leg" else values
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
