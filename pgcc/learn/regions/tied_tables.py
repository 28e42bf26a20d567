"""The tables of a hidden tree as outputs of two small nets: the idea of integral circuits (Gala et al. 2024)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from pgcc.learn.common.net import Net, logits_of, tanh
from pgcc.learn.common.optimizers import RowBatches
from pgcc.learn.regions.layer_training import PRECISION, LayerLikelihood
from pgcc.learn.regions.layers import Layers

# Random Fourier features of a point and their frequency, and the units of each of the two hidden layers. (With a
# frequency of 3, hidden trees stick near their start: −13.24 on plants where 6 reaches −12.96.)
_FEATURES, _FREQUENCY, _UNITS = 32, 6.0, 128
# By how much the weights of the last layer are larger at the start than by `Net.start`.
_SPREAD = 12**0.5


class TiedTables:
    """The tables of `tree_layers`: states are points of an interval, at which nets have logits as outputs.

    One net has an output for each column and one for the root, at single points; the other has an output for each edge,
    at pairs of points.

    Parameters
    ----------
    layers : Layers
        From `tree_layers`.
    means : array
        How often each column is 1.

    Attributes
    ----------
    size : int
        The number of parameters.
    """

    def __init__(self, layers: Layers, means: np.ndarray):
        blocks, self._h = layers.blocks, layers.shapes[-1][0]
        widths = blocks.states[blocks.first]
        edges, first = len(widths) - 1, np.cumsum(widths) - widths
        # the row of the logit of a column; one alone shows the second of two states, the first of which has the logit 0
        self._shown = first[blocks.block] + np.arange(len(means)) - blocks.first[blocks.block] + (blocks.size == 1)
        self._starts = np.concatenate([first, widths.sum() + self._h * np.arange(edges)])
        self._group = np.repeat(np.arange(len(widths) + edges), [*widths, *[self._h] * edges])
        self._rows, self._bias = int(widths.sum()), logits_of(means, blocks.size == 1)
        z, rng = np.linspace(-1, 1, self._h), np.random.default_rng(0)
        pairs = np.stack(np.meshgrid(z, z, indexing="ij")).reshape(2, -1)
        points = [(z[None], len(means) + 1), (pairs, edges)][: 1 + bool(edges)]
        self._features = [_features(where, rng).astype(PRECISION) for where, _ in points]
        self._nets = [Net([2 * _FEATURES, _UNITS, _UNITS, outputs], tanh) for _, outputs in points]
        self._ends = np.cumsum([net.size for net in self._nets])
        self.size = int(self._ends[-1])

    def start(self, rng: np.random.Generator) -> np.ndarray:
        """Random parameters, with which columns are about as often 1 as in the data."""
        theta = np.concatenate([net.start(rng) for net in self._nets])
        for net, part in self._parts(theta):
            weights, bias = net.layers(part)[-1]
            weights *= _SPREAD
            bias[...] = 0
        self._nets[0].layers(theta)[-1][1][:-1, 0] = self._bias
        return theta

    def _parts(self, theta: np.ndarray) -> Iterator[tuple[Net, np.ndarray]]:
        """Each net with its parameters."""
        return zip(self._nets, np.split(theta, self._ends[:-1]), strict=True)

    def numbers(self, theta: np.ndarray) -> tuple[np.ndarray, Any]:
        """All tables in the precision of θ, and what `gradient` needs."""
        outputs, kept = zip(
            *(
                net.forward(part, features.astype(theta.dtype, copy=False))
                for (net, part), features in zip(self._parts(theta), self._features, strict=True)
            ),
            strict=True,
        )
        logits = np.zeros((len(self._group), self._h), theta.dtype)
        logits[self._shown] = outputs[0][:-1]
        for pairs in outputs[1:]:
            logits[self._rows :] = pairs.reshape(-1, self._h)
        logits -= np.maximum.reduceat(logits, self._starts)[self._group]
        shares = np.exp(logits, out=logits)
        shares /= np.add.reduceat(shares, self._starts)[self._group]
        root = np.exp(outputs[0][-1] - outputs[0][-1].max())
        numbers = np.append(shares, root / root.sum())
        return np.maximum(numbers, np.finfo(numbers.dtype).tiny, out=numbers), (theta, kept)

    def gradient(self, numbers: np.ndarray, counts: np.ndarray, kept: Any) -> np.ndarray:
        """The gradient by θ from expected counts: by a logit, it is count − probability · Σ counts of the column."""
        theta, passes = kept
        (shares, root), (used, root_used) = (
            (of[: -self._h].reshape(-1, self._h), of[-self._h :]) for of in (numbers, counts)
        )
        logits = used - shares * np.add.reduceat(used, self._starts)[self._group]
        adjoints = [
            np.vstack([logits[self._shown], root_used - root * root_used.sum()]),
            logits[self._rows :].reshape(-1, self._h**2),
        ]
        parts = zip(self._parts(theta), passes, adjoints, strict=False)
        return np.concatenate([net.backward(part, of, adjoint) for (net, part), of, adjoint in parts])


def _features(points: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Random Fourier features of points."""
    angles = _FREQUENCY * rng.normal(size=(_FEATURES, len(points))) @ points
    return np.concatenate([np.sin(angles), np.cos(angles)])


def tied_batches(likelihood: LayerLikelihood, tied: TiedTables) -> RowBatches:
    """The objective of `MiniBatches`: the mean log-likelihood of a mini-batch."""

    def value_and_gradient(codes: np.ndarray, rng: np.random.Generator, theta: np.ndarray) -> tuple[float, np.ndarray]:
        numbers, kept = tied.numbers(theta.astype(PRECISION))
        value, counts = likelihood.expected(numbers, codes, np.full(len(codes), 1 / len(codes)))
        return value * len(codes), tied.gradient(numbers, counts.astype(PRECISION), kept).astype(float)

    def validate(theta: np.ndarray) -> float:
        return likelihood.validate(tied.numbers(theta.astype(PRECISION))[0])

    return RowBatches(likelihood.data.rows, likelihood.batch, value_and_gradient, validate)
