"""Three ways to climb the likelihood of a circuit: expectation–maximisation, L-BFGS, and Adam in mini-batches."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

import numpy as np

from pgcc.errors import PgccError
from pgcc.learn.checkpoint import State
from pgcc.learn.circuit_likelihood import CircuitLikelihood
from pgcc.learn.optimizers import LBFGS, Function
from pgcc.learn.rows import batches, distinct_rows

# L-BFGS ends where a step gains less than this in the mean log-likelihood; EM keeps weights at least this large.
_TOLERANCE, _SMALLEST = 1e-9, 1e-300


class FullBatch:
    """An ascent whose epochs are steps of L-BFGS, over all rows."""

    def __init__(self, likelihood: CircuitLikelihood, state: State | None):
        self._likelihood = likelihood
        self._optimizer = LBFGS(likelihood.mean, likelihood.parameters.start, _TOLERANCE)
        if self._optimizer.value == -math.inf:
            raise _impossible()
        if state is not None:
            self._optimizer.restore(state)
        self.advance, self.state = self._optimizer.advance, self._optimizer.state

    def validate(self) -> float | None:
        """The mean log-likelihood of the validation data."""
        return self._likelihood.validate(self._optimizer.theta)

    def learned(self) -> State:
        """θ after the last step."""
        return {"theta": self._optimizer.theta.copy()}


class ExpectationMaximization:
    """EM: every weight becomes its share of the expected number of rows that chose its term.

    `smoothing` rows are added to every sum, spread like its first weights.
    """

    def __init__(self, likelihood: CircuitLikelihood, smoothing: float, state: State | None):
        parameters = likelihood.parameters
        self._likelihood, self._smoothing = likelihood, smoothing
        self._first, _ = parameters.numbers(parameters.start)
        # θ of the weights whose likelihood is known, and the weights that follow from them
        self._theta, self._following = parameters.start, self._first
        if state is not None:
            self._theta, self._following = state["theta"], state["following"]

    def advance(self) -> float:
        """The likelihood at the weights, and the next ones."""
        weights, sums = self._following, self._likelihood.parameters.sums
        value, expected = self._likelihood.expected_counts(weights)
        if not math.isfinite(value):
            raise _impossible()
        following = weights.copy()
        for one in sums:
            counts = expected[one.which] + self._smoothing * self._first[one.which] / one.total
            if counts.sum() > 0.0:
                following[one.which] = np.maximum(one.total * counts / counts.sum(), _SMALLEST)
        self._theta = np.concatenate([one.start(weights) for one in sums])
        self._following = following
        return value

    def validate(self) -> float | None:
        """The mean log-likelihood of the validation data."""
        return self._likelihood.validate(self._theta)

    def learned(self) -> State:
        """θ of the weights whose likelihood is known."""
        return {"theta": self._theta.copy()}

    def state(self) -> State:
        """θ, and the weights of the next epoch."""
        return {"theta": self._theta, "following": self._following}


class CircuitBatches:
    """The mean log-likelihood of mini-batches, for `pgcc.learn.mini_batches`."""

    def __init__(self, likelihood: CircuitLikelihood, batch: int):
        self._likelihood, self.rows, self.batch = likelihood, len(likelihood.rows), batch
        self.length = -(-self.rows // batch) * batch  # every step counts the same: the last batch as a full one
        self.validate = likelihood.validate

    def batches(self, rng: np.random.Generator) -> Iterator[tuple[int, Function]]:
        """All rows once in random order."""
        for drawn in batches(self.rows, self.batch, rng):
            yield len(drawn), partial(self._climb, drawn)

    def _climb(self, drawn: np.ndarray, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Σ log p(row), and the gradient of its mean."""
        distinct, where = distinct_rows(self._likelihood.rows.codes(drawn))
        value, gradient = self._likelihood.of(theta, distinct, np.bincount(where) / len(drawn))
        if value == -math.inf:
            raise _impossible()
        return value * len(drawn), gradient


def _impossible() -> PgccError:
    return PgccError("a row of the data has probability 0: it cannot be learned from this circuit")
