"""The likelihood of data under layers, and EM for their tables."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pgcc.errors import PgccError
from pgcc.learn.common.checkpoint import Shapes, State
from pgcc.learn.regions.layers import Layers
from pgcc.learn.tables.data_split import DataSplit
from pgcc.learn.tables.packed_rows import Rows

# The largest number of rows to compute at once, and the largest number of values.
_ROWS, _VALUES = 1024, 1 << 24
# The precision of training. (Float64 takes 1.3 to 1.9 times as long and learns nothing better.)
PRECISION = np.float32
_POWER, _STEP = 0.6, 0.0


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
            raise PgccError("training diverged, or a row of the data has probability 0: try a lower `learning_rate`")
        return self._expected(
            numbers.astype(float), codes, weights
        )  # a product was below the range of single precision

    def mean(self, numbers: np.ndarray, rows: Rows) -> float:
        """The mean log-likelihood of rows."""
        total = 0.0
        for block in rows.blocks():
            for first in range(0, len(block.packed), self._piece):
                part = slice(first, first + self._piece)
                logs = self.layers.forward(numbers, self.layers.encode(block.codes[part]))[1]
                total += float(block.counts[part] @ logs)
        return total / rows.total

    def all_rows(self, numbers: np.ndarray) -> tuple[float, np.ndarray]:
        """The sum of log-likelihoods and the expected counts of the training data."""
        parts = [self.expected(numbers, block.codes, block.counts) for block in self.data.rows.blocks()]
        return sum(value for value, _ in parts), np.sum([counts for _, counts in parts], axis=0)

    def drawn(self, rng: np.random.Generator) -> Iterator[np.ndarray]:
        """Mini-batches of the training data, in random order."""
        return self.data.rows.draw(self.batch, rng)


class LayerEM:
    """EM for tables: mini-batches with smaller and smaller steps first, and all rows after that.

    Parameters
    ----------
    likelihood : LayerLikelihood
    start : array
        Counts from which the first tables are made.
    pseudo : float
        The number of rows that is added to every column of a table, evenly.
    epochs : int
        The number of epochs with mini-batches.
    seed : int
    state : State or None
    """

    def __init__(
        self, likelihood: LayerLikelihood, start: np.ndarray, pseudo: float, epochs: int, seed: int, state: State | None
    ):
        self._likelihood, self._pseudo, self._epochs, self._seed = likelihood, pseudo, epochs, seed
        given = {"counts": start, "epoch": np.array(0)} if state is None else state
        self._counts, self._epoch = given["counts"], int(given["epoch"])

    @property
    def numbers(self) -> np.ndarray:
        """The tables."""
        return self._likelihood.layers.normalized(self._counts, self._pseudo)

    def advance(self) -> float:
        """An epoch; returns the mean log-likelihood of the training data, of tables before each step."""
        likelihood, epoch = self._likelihood, self._epoch
        self._epoch += 1
        if epoch >= self._epochs:
            total, self._counts = likelihood.all_rows(self.numbers)
            return total / likelihood.rows
        total, steps = 0.0, -(-likelihood.rows // likelihood.batch)
        for i, drawn in enumerate(likelihood.drawn(np.random.default_rng([self._seed, epoch]))):
            value, counts = likelihood.expected(
                self.numbers.astype(PRECISION), likelihood.data.rows.codes(drawn), np.ones(len(drawn))
            )
            step = max((epoch * steps + i + 2) ** -_POWER, _STEP)
            self._counts = (1 - step) * self._counts + step * likelihood.rows / len(drawn) * counts
            total += value
        return total / likelihood.rows

    def validate(self) -> float:
        """The mean log-likelihood of the validation data."""
        return self._likelihood.mean(self.numbers, self._likelihood.data.held_out)

    def learned(self) -> State:
        """The expected counts of which the tables are made."""
        return {"counts": self._counts.copy()}

    def state(self) -> State:
        """The state to resume from."""
        return {"counts": self._counts, "epoch": np.array(self._epoch)}

    @staticmethod
    def shapes(layers: Layers) -> tuple[Shapes, Shapes]:
        """The arrays of `learned` and `state`."""
        return {"counts": (float, layers.size)}, {"counts": (float, layers.size), "epoch": (int,)}
