"""Three trainers for the likelihood of a circuit: expectation–maximization, L-BFGS, and Adam with mini-batches."""

from __future__ import annotations

import math

import numpy as np

from pgcc.errors import PgccError
from pgcc.evaluate.distinct import number_rows
from pgcc.learn.circuits.circuit_likelihood import CircuitLikelihood
from pgcc.learn.common.checkpoint import Shapes, State
from pgcc.learn.common.optimizers import LBFGS, RowBatches

# L-BFGS stops if a step gains less than this in the mean log-likelihood; EM keeps weights at least this large.
_TOLERANCE, _SMALLEST = 1e-9, 1e-300


class FullBatch:
    """L-BFGS on all rows: every epoch is one step."""

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
        """A copy of θ after the last step."""
        return {"theta": self._optimizer.theta.copy()}


class ExpectationMaximization:
    """EM: every weight becomes proportional to the expected number of rows that choose its term.

    `smoothing` rows are added to every sum, distributed as its initial weights.
    """

    def __init__(self, likelihood: CircuitLikelihood, smoothing: float, state: State | None):
        parameters = likelihood.parameters
        self._likelihood, self._smoothing = likelihood, smoothing
        self._first, _ = parameters.numbers(parameters.start)
        # θ of the last weights whose likelihood was computed, and the weights of the next iteration
        self._theta, self._following = parameters.start, self._first
        if state is not None:
            self._theta, self._following = state["theta"], state["following"]

    def advance(self) -> float:
        """One iteration: the likelihood of the current weights, and the next weights."""
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
        """θ of the last weights whose likelihood was computed."""
        return {"theta": self._theta.copy()}

    @staticmethod
    def shapes(likelihood: CircuitLikelihood) -> Shapes:
        """The arrays of a state."""
        start = likelihood.parameters.start
        return {"theta": (float, len(start)), "following": (float, len(likelihood.parameters.numbers(start)[0]))}

    def state(self) -> State:
        """θ, and the weights of the next iteration."""
        return {"theta": self._theta, "following": self._following}


def circuit_batches(likelihood: CircuitLikelihood, batch: int) -> RowBatches:
    """The objective of `MiniBatches`: the mean log-likelihood of a mini-batch."""

    def value_and_gradient(codes: np.ndarray, rng: np.random.Generator, theta: np.ndarray) -> tuple[float, np.ndarray]:
        first, number = number_rows(codes)
        value, gradient = likelihood.of(theta, codes[first], np.bincount(number) / len(codes))
        if value == -math.inf:
            raise PgccError(f"{_impossible()}; or training diverged: try a lower `learning_rate`")
        return value * len(codes), gradient

    return RowBatches(likelihood.rows, batch, value_and_gradient, likelihood.validate)


def _impossible() -> PgccError:
    return PgccError("a row of the data has probability 0: it cannot be learned from this circuit")
