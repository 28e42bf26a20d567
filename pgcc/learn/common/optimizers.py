"""Optimizers that maximize a function of a vector: L-BFGS, Adam, and epochs of Adam over mini-batches."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import Protocol

import numpy as np

from pgcc.errors import FormatError
from pgcc.learn.common.checkpoint import Shapes, State
from pgcc.learn.kernels.adam import adam_step
from pgcc.learn.tables.packed_rows import Rows
from pgcc.rings.float64.loop import aligned

Function = Callable[[np.ndarray], tuple[float, np.ndarray]]  # θ → value, gradient

# The memory of L-BFGS: the number of pairs (step, change of the gradient). The Armijo condition: the part of the
# first-order gain that a step must achieve.
_MEMORY, _ARMIJO = 10, 1e-4


class Adam:
    """Adam (Kingma & Ba 2015), ascending: a function is maximized.

    Parameters
    ----------
    theta : array
        The initial parameters.
    state : State, optional
        The state to resume from.
    weight_decay : float
        Decoupled weight decay (Loshchilov & Hutter 2019).
    ema_decay : float
        The decay of `average`, an exponential moving average of the parameters. With 0, it equals the parameters.
    """

    def __init__(
        self, theta: np.ndarray, state: State | None = None, *, weight_decay: float = 0.0, ema_decay: float = 0.0
    ):
        # aligned to cache lines, which halves the time of a step
        self.theta, self.mean, self.square, self.average = (aligned(theta.size).reshape(theta.shape) for _ in range(4))
        self.theta[...], self.mean[...], self.square[...], self.average[...] = theta, 0.0, 0.0, theta
        self.steps, self._weight_decay, self._ema_decay = 0, weight_decay, ema_decay
        if state is not None:
            self.restore(state)

    def step(self, gradient: np.ndarray, rate: float) -> None:
        """One step with this learning rate."""
        self.steps += 1
        arrays = (self.theta, gradient, self.mean, self.square, self.average)
        ema_decay = min(self._ema_decay, 1 - 1 / self.steps)  # at first, the plain mean of all steps
        adam_step(*(array.reshape(-1) for array in arrays), self.steps, rate, self._weight_decay, ema_decay)

    def state(self) -> State:
        """The state to resume from."""
        arrays = {name: getattr(self, name) for name in ("theta", "mean", "square", "average")}
        return {**arrays, "steps": np.array(self.steps)}

    @staticmethod
    def shapes(*shape: int) -> Shapes:
        """The arrays of a state, for parameters of a shape."""
        return {**dict.fromkeys(("theta", "mean", "square", "average"), (float, *shape)), "steps": (int,)}

    def restore(self, state: State) -> None:
        """Resume from a state."""
        if state["steps"] < 0:
            raise FormatError(f"a checkpoint after {state['steps']} steps of Adam is damaged: delete it to start over")
        for name in ("theta", "mean", "square", "average"):
            getattr(self, name)[...] = state[name]
        self.steps = int(state["steps"])


class LBFGS:
    """Limited-memory BFGS with a backtracking line search. It stops when the gain of a step is below `tolerance`."""

    def __init__(self, function: Function, theta: np.ndarray, tolerance: float):
        self.function, self.theta, self.tolerance = function, theta, tolerance
        self.value, self.gradient = function(theta)
        self.gain = np.inf
        self.pairs: deque[tuple[np.ndarray, np.ndarray]] = deque(maxlen=_MEMORY)

    def advance(self) -> float | None:
        """Take one step; return the new value, or None if it has converged."""
        if self.gain < self.tolerance:
            return None
        direction = _newton_direction(self.gradient, self.pairs)
        slope = float(direction @ self.gradient)
        if slope <= 0.0:  # not a direction of ascent: forget the pairs, and use the gradient
            self.pairs.clear()
            direction, slope = self.gradient, float(self.gradient @ self.gradient)
        length = 1.0 if self.pairs else min(1.0, 1.0 / max(float(np.abs(self.gradient).max()), 1e-300))
        while True:
            step = length * direction
            value, gradient = self.function(self.theta + step)
            if value >= self.value + _ARMIJO * length * slope or length < 1e-12:
                break
            length /= 2
        if not value > self.value:
            return None
        change = self.gradient - gradient
        if step @ change > 1e-12 * np.sqrt((step @ step) * (change @ change)):
            self.pairs.append((step, change))
        self.gain = value - self.value
        self.theta, self.value, self.gradient = self.theta + step, value, gradient
        return value

    def state(self) -> State:
        """The state to resume from."""
        shape = (2, 0, len(self.theta))
        pairs = np.array(list(zip(*self.pairs, strict=True))) if self.pairs else np.zeros(shape)
        numbers = np.array([self.value, self.gain])
        return {"theta": self.theta, "gradient": self.gradient, "numbers": numbers, "pairs": pairs}

    @staticmethod
    def shapes(parameters: int) -> Shapes:
        """The arrays of a state, for a number of parameters."""
        return {
            "theta": (float, parameters),
            "gradient": (float, parameters),
            "numbers": (float, 2),
            "pairs": (float, 2, None, parameters),
        }

    def restore(self, state: State) -> None:
        """Resume from a state."""
        self.theta, self.gradient = state["theta"], state["gradient"]
        self.value, self.gain = map(float, state["numbers"])
        steps, changes = state["pairs"]
        self.pairs = deque(((s.copy(), c.copy()) for s, c in zip(steps, changes, strict=True)), _MEMORY)


def _newton_direction(gradient: np.ndarray, pairs: deque[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Approximately (−Hessian)⁻¹·gradient, from the last steps and changes of the gradient (two-loop recursion)."""
    direction, alphas = gradient.copy(), []
    for step, change in reversed(pairs):
        alpha = (step @ direction) / (step @ change)
        direction -= alpha * change
        alphas.append(alpha)
    if pairs:
        step, change = pairs[-1]
        direction *= (step @ change) / (change @ change)
    for (step, change), alpha in zip(pairs, reversed(alphas), strict=True):
        direction += (alpha - (change @ direction) / (step @ change)) * step
    return direction


class Objective(Protocol):
    """A log-likelihood of rows of data, as a function of θ, that is maximized in mini-batches.

    Attributes
    ----------
    rows, batch : int
        The number of rows of the training data, and of a mini-batch.
    """

    rows: int
    batch: int

    def batches(self, rng: np.random.Generator) -> Iterator[Function]:
        """All rows once, in random order: for every mini-batch, θ ↦ (Σ log p(row), gradient).

        The gradient includes that of the regularization. The next call may overwrite it.
        """

    def validate(self, theta: np.ndarray) -> float | None:
        """The mean log-likelihood of the validation data, if there are any."""


class RowBatches:
    """The objective whose mini-batches are rows.

    Parameters
    ----------
    rows : Rows
    batch : int
        The number of rows of a mini-batch.
    function : callable
        The codes of some rows, random numbers, θ → Σ log p(row), gradient.
    validate : callable
        θ → the mean log-likelihood of the validation data, if there are any.
    times : int
        How often all rows are drawn in an epoch.
    """

    def __init__(
        self,
        rows: Rows,
        batch: int,
        function: Callable[[np.ndarray, np.random.Generator, np.ndarray], tuple[float, np.ndarray]],
        validate: Callable[[np.ndarray], float | None],
        times: int = 1,
    ):
        self._rows, self._function, self._times = rows, function, times
        self.rows, self.batch, self.validate = rows.epoch * times, batch, validate

    def batches(self, rng: np.random.Generator) -> Iterator[Function]:
        """All rows, in random order; see `Objective`."""
        for drawn in self._rows.draw(self.batch, rng, self._times):
            yield partial(self._function, self._rows.codes(drawn), rng)


class MiniBatches:
    """Trains with Adam on mini-batches; cosine decay of the learning rate, from `rate` to `last_rate` · rate."""

    def __init__(self, objective: Objective, adam: Adam, rate: float, last_rate: float, epochs: int, seed: int):
        self._objective, self._adam = objective, adam
        self._rate, self._last_rate, self._seed = rate, last_rate, seed
        self.epochs = epochs  # when the schedule of the learning rate ends; it may be changed between epochs

    def advance(self) -> float:
        """One epoch. Returns the mean log-likelihood of the training data, each mini-batch before its step."""
        objective, adam, total = self._objective, self._adam, 0.0
        steps = -(-objective.rows // objective.batch)
        for function in objective.batches(np.random.default_rng([self._seed, adam.steps // steps])):
            value, gradient = function(adam.theta)
            adam.step(gradient, self._rate_at(adam.steps / (steps * self.epochs)))
            total += value
        return total / objective.rows

    def _rate_at(self, done: float) -> float:
        """The learning rate when this fraction of all epochs is done."""
        low = self._last_rate
        return self._rate * (low + (1 - low) * 0.5 * (1 + math.cos(math.pi * min(done, 1.0))))

    def validate(self) -> float | None:
        """The mean log-likelihood of the validation data at the moving average of the parameters."""
        return self._objective.validate(self._adam.average)

    def learned(self) -> State:
        """The moving average of the parameters."""
        return {"theta": self._adam.average.copy()}

    def state(self) -> State:
        """The state of Adam."""
        return self._adam.state()
