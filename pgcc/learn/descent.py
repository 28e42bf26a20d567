"""Optimisers of a function of one vector, to be maximised: Adam in mini-batches, and L-BFGS."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

import numpy as np

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


def lbfgs(function: Function, theta: np.ndarray, steps: int, tolerance: float) -> Iterator[tuple[float, np.ndarray]]:
    """Value and θ after every step, each better than the one before; stops where steps gain less than `tolerance`."""
    value, gradient = function(theta)
    pairs: deque[tuple[np.ndarray, np.ndarray]] = deque(maxlen=_MEMORY)
    for _ in range(steps):
        direction = _newton_direction(gradient, pairs)
        slope = float(direction @ gradient)
        if slope <= 0.0:  # the memory misleads
            pairs.clear()
            direction, slope = gradient, float(gradient @ gradient)
        length = 1.0 if pairs else min(1.0, 1.0 / max(float(np.abs(gradient).max()), 1e-300))
        while True:
            step = length * direction
            new_value, new_gradient = function(theta + step)
            if new_value >= value + _ARMIJO * length * slope or length < 1e-12:
                break
            length /= 2
        if not new_value > value:
            return
        change = gradient - new_gradient
        if step @ change > 1e-12 * np.sqrt((step @ step) * (change @ change)):
            pairs.append((step, change))
        gain, theta, value, gradient = new_value - value, theta + step, new_value, new_gradient
        yield value, theta
        if gain < tolerance:
            return


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
