"""Optimisers of a function of one vector, to be maximised: Adam in mini-batches, and L-BFGS."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np

from pgcc.learn.checkpoint import State
from pgcc.learn.kernels.adam import adam_step
from pgcc.rings.float64.loop import aligned

Function = Callable[[np.ndarray], tuple[float, np.ndarray]]  # θ → value, gradient

# Pairs of steps and changes of gradients that L-BFGS remembers; the Armijo condition: the part of the first-order gain
# that a step must achieve.
_MEMORY, _ARMIJO = 10, 1e-4


class Adam:
    """Ascent by running means of gradients and of their squares (Kingma & Ba 2015).

    Parameters
    ----------
    theta : array
        The parameters to start from.
    decay : float
        Decoupled weight decay (Loshchilov & Hutter 2019).
    memory : float
        `average` is a running mean of the parameters, of which every step keeps as much.
    """

    def __init__(self, theta: np.ndarray, decay: float = 0.0, memory: float = 0.0):
        # at cache lines: a step takes half the time that it takes elsewhere
        self.theta, self.mean, self.square, self.average = (aligned(theta.size).reshape(theta.shape) for _ in range(4))
        self.theta[...], self.mean[...], self.square[...], self.average[...] = theta, 0.0, 0.0, theta
        self.steps, self._decay, self._memory = 0, decay, memory

    def ascend(self, gradient: np.ndarray, rate: float) -> None:
        """One step with this learning rate."""
        self.steps += 1
        arrays = (self.theta, gradient, self.mean, self.square, self.average)
        memory = min(self._memory, 1 - 1 / self.steps)
        adam_step(*(array.reshape(-1) for array in arrays), self.steps, rate, self._decay, memory)

    def state(self) -> State:
        """All that it takes to go on."""
        arrays = {name: getattr(self, name) for name in ("theta", "mean", "square", "average")}
        return {**arrays, "steps": np.array(self.steps)}

    def restore(self, state: State) -> None:
        """Go on from there."""
        for name in ("theta", "mean", "square", "average"):
            getattr(self, name)[...] = state[name]
        self.steps = int(state["steps"])


class LBFGS:
    """Limited-memory BFGS with backtracking: every step gains something; it ends where the gain is too small."""

    def __init__(self, function: Function, theta: np.ndarray, tolerance: float):
        self.function, self.theta, self.tolerance = function, theta, tolerance
        self.value, self.gradient = function(theta)
        self.gain = np.inf
        self.pairs: deque[tuple[np.ndarray, np.ndarray]] = deque(maxlen=_MEMORY)

    def advance(self) -> float | None:
        """One step: the value after it, or None if there is none that gains anything."""
        if self.gain < self.tolerance:
            return None
        direction = _newton_direction(self.gradient, self.pairs)
        slope = float(direction @ self.gradient)
        if slope <= 0.0:  # no direction of ascent: forget the pairs, and take the gradient
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
        """All that it takes to go on."""
        shape = (2, 0, len(self.theta))
        pairs = np.array(list(zip(*self.pairs, strict=True))) if self.pairs else np.zeros(shape)
        numbers = np.array([self.value, self.gain])
        return {"theta": self.theta, "gradient": self.gradient, "numbers": numbers, "pairs": pairs}

    def restore(self, state: State) -> None:
        """Go on from there."""
        self.theta, self.gradient = state["theta"], state["gradient"]
        self.value, self.gain = map(float, state["numbers"])
        steps, changes = state["pairs"]
        self.pairs = deque(((s.copy(), c.copy()) for s, c in zip(steps, changes, strict=True)), _MEMORY)


def _newton_direction(gradient: np.ndarray, pairs: deque[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """About (−Hessian)⁻¹·gradient, from the last steps and the changes of slope along them (two-loop recursion)."""
    direction, shares = gradient.copy(), []
    for step, change in reversed(pairs):
        share = (step @ direction) / (step @ change)
        direction -= share * change
        shares.append(share)
    if pairs:
        step, change = pairs[-1]
        direction *= (step @ change) / (change @ change)
    for (step, change), share in zip(pairs, reversed(shares), strict=True):
        direction += (share - (change @ direction) / (step @ change)) * step
    return direction
