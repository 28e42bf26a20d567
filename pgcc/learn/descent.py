"""Optimisers of a function of one vector, to be maximised: Adam in mini-batches, and L-BFGS."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np

from pgcc.learn.checkpoint import State

Function = Callable[[np.ndarray], tuple[float, np.ndarray]]  # θ → value, gradient

# Pairs of steps that L-BFGS remembers; how much of what the slope promises a step must keep (Armijo).
_MEMORY, _ARMIJO = 10, 1e-4


class Adam:
    """Ascent by running means of gradients and of their squares (Kingma & Ba 2015), with decoupled weight decay."""

    def __init__(self, theta: np.ndarray, rate: float, decay: float = 0.0):
        self.theta, self.rate, self.decay = theta.copy(), rate, decay
        self.mean, self.square, self.steps = np.zeros_like(theta), np.zeros_like(theta), 0

    def ascend(self, gradient: np.ndarray, part: float = 1.0) -> None:
        """One step, at this part of the rate."""
        self.steps += 1
        self.mean += 0.1 * (gradient - self.mean)
        self.square += 0.001 * (gradient**2 - self.square)
        mean, square = self.mean / (1 - 0.9**self.steps), self.square / (1 - 0.999**self.steps)
        self.theta += part * self.rate * (mean / (np.sqrt(square) + 1e-8) - self.decay * self.theta)

    def state(self) -> State:
        """All that it takes to go on."""
        return {"theta": self.theta, "mean": self.mean, "square": self.square, "steps": np.array(self.steps)}

    def restore(self, state: State) -> None:
        """Go on from there."""
        self.theta, self.mean, self.square = state["theta"], state["mean"], state["square"]
        self.steps = int(state["steps"])


class LBFGS:
    """Ascent by all rows at a time, each step better than the one before; at its end where they gain too little."""

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
        if slope <= 0.0:  # the memory misleads
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
