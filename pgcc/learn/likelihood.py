"""The mean log-likelihood of data as a function of a circuit's numbers, and three ways to climb it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pgcc.errors import PgccError
from pgcc.ir.circuit import Circuit
from pgcc.learn.checkpoint import State
from pgcc.learn.data import distinct_rows
from pgcc.learn.descent import LBFGS, Adam
from pgcc.learn.parameters import Parameters, with_weights_only
from pgcc.lowering.program import SUM
from pgcc.queries.gradient import GradientFunction


class Likelihood:
    """The mean log-likelihood of data as a function of θ.

    Parameters
    ----------
    circuit : Circuit
    codes : array
        The training data.
    held_out : array, optional
        The validation data.
    free : bool
        Whether matrices are learned that no parametrisation keeps a distribution.
    """

    def __init__(self, circuit: Circuit, codes: np.ndarray, held_out: np.ndarray | None = None, free: bool = False):
        self.circuit = with_weights_only(circuit)
        self.function = GradientFunction(self.circuit)
        self.parameters = Parameters(self.function.parametrized, free)
        self.held_out = held_out
        self.rows, self.where = distinct_rows(codes)
        self.counts = np.bincount(self.where).astype(np.float64)

    @property
    def has_em(self) -> bool:
        """Whether weights are choices: none is negative, and what a sum chooses from has one total."""
        program = self.function.parametrized.program
        if program.has_det or (program.weights < 0.0).any() or (program.leaf_table < 0.0).any():
            return False
        totals = self.function.differentiator.totals()
        for i in np.flatnonzero(program.op == SUM).tolist():
            args = program.args[program.start[i] : program.start[i + 1]]
            chosen = totals[args[program.weights[program.first_weight[i] :][: len(args)] > 0.0]]
            if len(chosen) and not np.allclose(chosen, chosen[0], rtol=1e-9, atol=0.0):
                return False
        return True

    def mean(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Of all rows, and its gradient; −inf where a row is impossible."""
        return self.of(theta, self.rows, self.counts / len(self.where))

    def of(self, theta: np.ndarray, rows: np.ndarray, share: np.ndarray) -> tuple[float, np.ndarray]:
        """Σ share · log p(row), and its gradient."""
        self._put(theta)
        found = self.function.evaluate(rows, share)
        value = float(share @ found.logs)
        if not math.isfinite(value):
            return -math.inf, np.zeros_like(theta)
        return value, self.parameters.gradient(theta, found.weights, found.matrices)

    def validate(self, theta: np.ndarray) -> float | None:
        """Of the rows held out, if there are any."""
        if self.held_out is None:
            return None
        self._put(theta)
        return float(np.mean(self.function.logs(self.held_out)))

    def _put(self, theta: np.ndarray) -> None:
        """θ into the program."""
        self.function.differentiator.update(*self.parameters.numbers(theta))


class _Climb:
    """An ascent of θ by an optimiser, which has the state."""

    def __init__(self, likelihood: Likelihood, optimizer: Adam | LBFGS | _Weights):
        self.likelihood, self.state, self.restore = likelihood, optimizer.state, optimizer.restore
        self._optimizer = optimizer

    def validate(self) -> float | None:
        """Of the validation data, after the last epoch."""
        return self.likelihood.validate(self._optimizer.theta)

    def learned(self) -> State:
        """θ of the last epoch."""
        return {"theta": self._optimizer.theta.copy()}


class AllRows(_Climb):
    """A step of L-BFGS is an epoch."""

    def __init__(self, likelihood: Likelihood, optimizer: LBFGS):
        super().__init__(likelihood, optimizer)
        self.advance = optimizer.advance
        if optimizer.value == -math.inf:
            raise _impossible()


class MiniBatches(_Climb):
    """Mini-batches in random order, by Adam; the rate falls along a half cosine."""

    def __init__(self, likelihood: Likelihood, optimizer: Adam, epochs: int, batch: int, seed: int):
        super().__init__(likelihood, optimizer)
        self.adam, self.epochs, self.batch, self.seed = optimizer, epochs, batch, seed

    def advance(self) -> float:
        """All rows once; their mean log-likelihood along the way."""
        likelihood, adam, total = self.likelihood, self.adam, 0.0
        steps = -(-len(likelihood.where) // self.batch)
        order = np.random.default_rng([self.seed, adam.steps // steps]).permutation(len(likelihood.where))
        for first in range(0, len(order), self.batch):
            drawn = order[first : first + self.batch]
            rows, counts = np.unique(likelihood.where[drawn], return_counts=True)
            value, gradient = likelihood.of(adam.theta, likelihood.rows[rows], counts / len(drawn))
            if value == -math.inf:
                raise _impossible()
            total += value * len(drawn)
            adam.ascend(gradient, 0.5 * (1 + math.cos(math.pi * adam.steps / (self.epochs * steps))))
        return total / len(order)


class ExpectedCounts(_Climb):
    """EM: every weight becomes its share of the expected number of rows that went its way."""

    def __init__(self, likelihood: Likelihood, smoothing: float):
        start = likelihood.parameters.start
        self.first, _ = likelihood.parameters.numbers(start)
        self.smoothing, self.now = smoothing, _Weights(start, self.first)
        super().__init__(likelihood, self.now)

    def advance(self) -> float:
        """The likelihood at the weights, and the next ones."""
        parameters, differentiator = self.likelihood.parameters, self.likelihood.function.differentiator
        rows, counts, weights = self.likelihood.rows, self.likelihood.counts, self.now.following
        differentiator.update(weights, parameters.matrices)
        found = differentiator.evaluate(rows, counts)
        if not np.isfinite(found.logs).all():
            raise _impossible()
        total = differentiator.evaluate(np.full((1, rows.shape[1]), -1, np.int8), np.zeros(1))
        went, following = weights * found.weights, weights.copy()
        for one in parameters.sums:
            mine = went[one.which] + self.smoothing * self.first[one.which] / one.total
            if mine.sum() > 0.0:
                following[one.which] = np.maximum(one.total * mine / mine.sum(), 1e-300)
        self.now.theta = np.concatenate([one.start(weights) for one in parameters.sums])
        self.now.following = following
        return float(counts @ found.logs) / len(self.likelihood.where) - float(total.logs[0])


@dataclass
class _Weights:
    """θ of the last epoch of EM, and the weights of the one that follows."""

    theta: np.ndarray
    following: np.ndarray

    def state(self) -> State:
        """All that it takes to go on."""
        return {"theta": self.theta, "following": self.following}

    def restore(self, state: State) -> None:
        """Go on from there."""
        self.theta, self.following = state["theta"], state["following"]


def _impossible() -> PgccError:
    return PgccError("a row of the data has probability 0: it cannot be learned from this circuit")
