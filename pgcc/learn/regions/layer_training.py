"""The likelihood of data under layers, and EM for their tables."""

from __future__ import annotations

from functools import partial

import numpy as np

from pgcc.errors import PgccError
from pgcc.interrupts import end_if_unwanted
from pgcc.learn.common.checkpoint import State
from pgcc.learn.common.training import RunPlan
from pgcc.learn.regions.layers import Layers
from pgcc.learn.tables.data_split import DataSplit
from pgcc.learn.tables.packed_rows import Rows

# The largest number of rows to compute at once, and the largest number of values.
_ROWS, _VALUES = 1024, 1 << 24
# The precision of mini-batches and of validation. (Float64 takes 1.3 to 1.9 times as long and learns nothing better.)
PRECISION = np.float32
# EM in mini-batches: for so many epochs; step t replaces the share t^−power of the expected counts, and never less than
# the last number. (From eight epochs on, all rows together are better: −12.54 → −12.52 on plants.)
_MINI_EPOCHS, _POWER, _LEAST_STEP = 8, 0.6, 0.02


class LayerLikelihood:
    """The log-likelihood of training and validation data.

    Parameters
    ----------
    layers : Layers
    data : DataSplit
    batch : int
        The number of rows of a mini-batch.
    """

    def __init__(self, layers: Layers, data: DataSplit, batch: int):
        self.layers, self.data, self.batch, self.rows = layers, data, batch, data.rows.epoch
        self._piece = min(_ROWS, max(16, _VALUES // sum(region.width for region in layers.regions)))

    def expected(self, numbers: np.ndarray, codes: np.ndarray, weights: np.ndarray) -> tuple[float, np.ndarray]:
        """Σ weight(row) · log p(row), and the expected counts."""
        total, counts = 0.0, np.zeros(len(numbers))
        for first in range(0, len(codes), self._piece):
            end_if_unwanted()
            part = slice(first, first + self._piece)
            value, flows = self._expected(numbers, codes[part], weights[part])
            total, counts = total + value, counts + flows
        return total, counts

    def _expected(self, numbers: np.ndarray, codes: np.ndarray, weights: np.ndarray) -> tuple[float, np.ndarray]:
        batch = self.layers.encode(codes)
        with np.errstate(divide="ignore", invalid="ignore"):
            values, logs = self.layers.forward(numbers, batch)
        if np.isfinite(logs).all():
            return float(weights @ logs), self.layers.flows(numbers, batch, values, weights)
        if numbers.dtype == np.float64:
            raise PgccError("training diverged: try a lower `learning_rate`", argument="learning_rate")
        return self._expected(numbers.astype(float), codes, weights)  # single precision is not enough for these rows

    def all_rows(self, numbers: np.ndarray) -> tuple[float, np.ndarray]:
        """`expected` of the training data."""
        total, counts = 0.0, np.zeros(len(numbers))
        for block in self.data.rows.blocks():
            value, flows = self.expected(numbers, block.codes, block.counts)
            total, counts = total + value, counts + flows
        return total, counts

    def logs(self, numbers: np.ndarray, rows: Rows) -> np.ndarray:
        """The log-likelihood of every distinct row (of `Rows.packed`)."""
        pieces = (
            codes[first : first + self._piece]
            for codes in (block.codes for block in rows.blocks())
            for first in range(0, len(codes), self._piece)
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.concatenate([self.layers.forward(numbers, self.layers.encode(piece))[1] for piece in pieces])

    def validate(self, numbers: np.ndarray) -> float:
        """The mean log-likelihood of the validation data."""
        held_out = self.data.held_out
        return float(held_out.counts @ self.logs(numbers.astype(PRECISION), held_out)) / held_out.total


class LayerEM:
    """EM for tables: mini-batches first, whose steps become smaller (Cappé and Moulines 2009), and then all rows.

    Parameters
    ----------
    likelihood : LayerLikelihood
    start : array
        The counts of which the first tables are made.
    smoothing : float
        The number of rows that are added to every column of a table, evenly.
    seed : int
    state : State or None
    """

    def __init__(
        self,
        likelihood: LayerLikelihood,
        start: np.ndarray,
        smoothing: float,
        seed: int,
        state: State | None,
    ):
        self._likelihood, self._smoothing, self._seed = likelihood, smoothing, seed
        given = {"counts": start, "epoch": np.array(0)} if state is None else state
        self._counts, self._epoch = given["counts"], int(given["epoch"])

    @property
    def numbers(self) -> np.ndarray:
        """The tables."""
        return self._likelihood.layers.normalized(self._counts, self._smoothing)

    def advance(self) -> float:
        """An epoch; returns the mean log-likelihood of the training data, under the tables before each step."""
        likelihood, epoch, rows = self._likelihood, self._epoch, self._likelihood.data.rows
        self._epoch += 1
        if epoch >= _MINI_EPOCHS:
            total, self._counts = likelihood.all_rows(self.numbers)
            return total / rows.total
        total, steps = 0.0, 2 + epoch * -(-likelihood.rows // likelihood.batch)
        for t, drawn in enumerate(rows.draw(likelihood.batch, np.random.default_rng([self._seed, epoch])), start=steps):
            codes, step = rows.codes(drawn), max(t**-_POWER, _LEAST_STEP)
            value, counts = likelihood.expected(self.numbers.astype(PRECISION), codes, np.ones(len(drawn)))
            self._counts = (1 - step) * self._counts + step * rows.total / len(drawn) * counts
            total += value
        return total / likelihood.rows

    def validate(self) -> float:
        """The mean log-likelihood of the validation data."""
        return self._likelihood.validate(self.numbers)

    def learned(self) -> State:
        """The expected counts of which the tables are made."""
        return {"counts": self._counts.copy()}

    def state(self) -> State:
        """The state to resume from."""
        return {"counts": self._counts, "epoch": np.array(self._epoch)}


def em_plan(
    likelihood: LayerLikelihood, start: np.ndarray, smoothing: float, seed: int, epochs: int, patience: int
) -> RunPlan:
    """A run of `LayerEM`."""
    layers, counts = likelihood.layers, {"counts": (float, len(start))}

    def scores(learned: State) -> np.ndarray:
        return likelihood.logs(layers.normalized(learned["counts"], smoothing), likelihood.data.held_out)

    make_em = partial(LayerEM, likelihood, start, smoothing, seed)
    return RunPlan(make_em, epochs, patience, counts, {**counts, "epoch": (int,)}, scores=scores)
