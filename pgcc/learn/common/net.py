"""A small neural network in numpy: its value and its gradient, with all parameters in one vector."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

# An activation: x ↦ its value y, and the function that turns the gradient by y into that by x.
Activation = Callable[[np.ndarray], tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]]
Kept = list[tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]]  # what `Net.backward` needs of a forward pass

# The slope of a leaky rectifier below 0, and what is added to variances.
_SLOPE, _LEAST = 0.01, 1e-5


def tanh(x: np.ndarray) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
    """The hyperbolic tangent."""
    y = np.tanh(x)
    return y, lambda adjoint: adjoint * (1 - y * y)


def normalized(x: np.ndarray) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
    """A leaky rectifier, with mean 0 and variance 1 over the points at hand (batch normalization)."""
    slope = np.where(x > 0, x.dtype.type(1), x.dtype.type(_SLOPE))
    y = x * slope
    y -= y.mean(axis=1, keepdims=True)
    scale = 1 / np.sqrt(np.square(y).mean(axis=1, keepdims=True) + x.dtype.type(_LEAST))
    y *= scale

    def backward(adjoint: np.ndarray) -> np.ndarray:
        along = (adjoint * y).mean(axis=1, keepdims=True)
        return (adjoint - adjoint.mean(axis=1, keepdims=True) - y * along) * (scale * slope)

    return y, backward


def logits_of(often: np.ndarray, alone: np.ndarray) -> np.ndarray:
    """The outputs that stand for these frequencies of columns: log-odds of those that are alone, else logarithms."""
    return np.log(often) - np.where(alone, np.log1p(-often), 0)


class Net:
    """Dense layers, each x ↦ activation(W·x + b), but the last one is linear. Points are columns.

    Parameters
    ----------
    widths : sequence of int
        The number of inputs, of the units of every hidden layer, and of outputs.
    activation : function
        `tanh` or `normalized`.

    Attributes
    ----------
    size : int
        The number of parameters. All functions compute in the precision of θ.

    Examples
    --------
    >>> net = Net([2, 3, 1], tanh)
    >>> theta = net.start(np.random.default_rng(0))
    >>> values, kept = net.forward(theta, np.zeros((2, 5)))
    >>> values.shape, net.backward(theta, kept, np.ones((1, 5))).shape == (net.size,)
    ((1, 5), True)
    """

    def __init__(self, widths: Sequence[int], activation: Activation):
        self._shapes = list(zip(widths[1:], widths, strict=False))
        self._activation = activation
        self.size = sum(out * (into + 1) for out, into in self._shapes)

    def start(self, rng: np.random.Generator) -> np.ndarray:
        """Random parameters: uniform within ±1/√inputs."""
        bounds = [np.full(out * (into + 1), into**-0.5) for out, into in self._shapes]
        return np.concatenate(bounds) * rng.uniform(-1, 1, self.size)

    def layers(self, theta: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        """W and b of every layer, as views of θ."""
        found, first = [], 0
        for out, into in self._shapes:
            middle, last = first + out * into, first + out * (into + 1)
            found.append((theta[first:middle].reshape(out, into), theta[middle:last, None]))
            first = last
        return found

    def forward(self, theta: np.ndarray, points: np.ndarray) -> tuple[np.ndarray, Kept]:
        """The outputs at points (outputs × points), and what `backward` needs."""
        *hidden, (last, bias) = self.layers(theta)
        kept: Kept = []
        for weights, shift in hidden:
            value, backward = self._activation(weights @ points + shift)
            kept.append((points, backward))
            points = value
        kept.append((points, lambda adjoint: adjoint))
        return last @ points + bias, kept

    def backward(self, theta: np.ndarray, kept: Kept, adjoint: np.ndarray) -> np.ndarray:
        """The gradient by θ, from that by the outputs."""
        gradient = np.empty(self.size, theta.dtype)
        layers = list(zip(self.layers(theta), self.layers(gradient), kept, strict=True))
        for i, ((weights, _), (by_weights, by_shift), (points, backward)) in reversed(list(enumerate(layers))):
            adjoint = backward(adjoint)
            by_weights[...], by_shift[...] = adjoint @ points.T, adjoint.sum(axis=1, keepdims=True)
            if i:
                adjoint = weights.T @ adjoint
        return gradient
