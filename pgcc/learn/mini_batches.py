"""Stochastic ascent: rows in random order, in mini-batches, by Adam, with a learning rate that falls."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Protocol

import numpy as np

from pgcc.learn.checkpoint import State
from pgcc.learn.optimizers import Adam, Function


class Objective(Protocol):
    """A sum over rows of data, as a function of θ.

    Attributes
    ----------
    rows, batch : int
        Rows of the training data, and of a mini-batch.
    length : int
        Rows by which the learning rate is scheduled: those of an epoch.
    """

    rows: int
    batch: int
    length: int

    def batches(self, rng: np.random.Generator) -> Iterator[tuple[int, Function]]:
        """All rows once in random order: of every batch the number of rows, and θ ↦ Σ log p(row), gradient.

        The gradient is that of the function that is climbed, with what regularises it. The next call may overwrite it.
        """

    def validate(self, theta: np.ndarray) -> float | None:
        """The mean log-likelihood of the validation data, if there are any."""


class MiniBatches:
    """An ascent by Adam; the learning rate falls along a half cosine to `last_rate` · rate (1 is a constant rate)."""

    def __init__(self, objective: Objective, adam: Adam, rate: float, last_rate: float, epochs: int, seed: int):
        self._objective, self._adam = objective, adam
        self._rate, self._last_rate, self._epochs, self._seed = rate, last_rate, epochs, seed

    def advance(self) -> float:
        """All rows once; their mean log-likelihood along the way."""
        objective, adam = self._objective, self._adam
        epoch = adam.steps // -(-objective.rows // objective.batch)
        total, done = 0.0, 0
        for rows, function in objective.batches(np.random.default_rng([self._seed, epoch])):
            rate = self._rate_at((epoch + done / objective.length) / self._epochs)
            value, gradient = function(adam.theta)
            adam.ascend(gradient, rate)
            total += value
            done += rows
        return total / objective.rows

    def _rate_at(self, done: float) -> float:
        """The learning rate when this part of all epochs is done."""
        low = self._last_rate
        return self._rate * (low + (1 - low) * 0.5 * (1 + math.cos(math.pi * done)))

    def validate(self) -> float | None:
        """The mean log-likelihood of the validation data at the average of the parameters."""
        return self._objective.validate(self._adam.average)

    def learned(self) -> State:
        """The average of the parameters (the last ones, where Adam has no memory)."""
        return {"theta": self._adam.average.copy()}

    def state(self) -> State:
        """All that it takes to go on: Adam's."""
        return self._adam.state()
