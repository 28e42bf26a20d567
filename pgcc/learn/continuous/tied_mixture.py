"""A mixture whose components are tied by a neural network: its likelihood, and the objective of mini-batches."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri
from scipy.stats import qmc

from pgcc.learn.common.net import Net, logits_of, normalized
from pgcc.learn.common.optimizers import RowBatches
from pgcc.learn.continuous.log_linear import LogLinear
from pgcc.learn.tables.packed_rows import Rows, slices, unpack
from pgcc.learn.trees.missing_trees import MissingTrees

# The widths of the hidden layers of the net. (The six growing layers of the paper take three times as long.)
_HIDDEN = 128, 128
# The precision of training. (Float64 takes 1.8 times as long and learns nothing better.)
_PRECISION = np.float32
# Frequencies at the start are so far from 0 and 1. The probability of the empty row in training is at most so large.
_RARE, _MOST_EMPTY = 0.01, 1 - 1e-6
# An epoch has at least so many mini-batches: several passes over few rows.
_MINI_BATCHES = 32


class TiedMixture:
    """A mixture of distributions with equal weights, whose logits are a net's outputs at points of a Gaussian.

    Parameters
    ----------
    form : LogLinear
    latent : int
        The dimension of the Gaussian.
    nonempty : bool
        Whether the likelihood is that of rows given that they are not empty: p(row) / (1 − p(empty)).
    """

    def __init__(self, form: LogLinear, latent: int, nonempty: bool):
        self.form, self.latent = form, latent
        self.net = Net([latent, *_HIDDEN, form.logits], normalized)
        self._missing = MissingTrees(form.parents, form.blocks) if (form.parents >= 0).any() else None
        self.outside = np.zeros((int(nonempty), len(form.blocks.block)), np.int8)

    def start(self, rng: np.random.Generator, often: np.ndarray) -> np.ndarray:
        """Random parameters of the net, around independent variables with these frequencies of columns."""
        theta, form = self.net.start(rng), self.form
        free = form.column[form.is_one == 1]
        often = np.clip(often[free], _RARE, 1 - _RARE)
        self.net.layers(theta)[-1][1][:, 0] = logits_of(often, form.blocks.size[free] == 1)
        return theta

    def table(self, theta: np.ndarray, points: np.ndarray) -> np.ndarray:
        """The table of the components at these points (latent × points); see `LogLinear`."""
        return self.form.table(self.net.forward(theta, points)[0])

    def logs(self, table: np.ndarray, codes: np.ndarray, log_weights: np.ndarray | np.floating) -> np.ndarray:
        """log(weight · Pr(row)): rows × components."""
        if (codes >= 0).all():
            return self.form.folded(codes, table.dtype.type) @ self.form.fold(table) + log_weights
        logs = self.form.features(codes, table.dtype.type) @ table + log_weights
        if self._missing is not None:
            self._missing.add_logs(self._missing.possible(codes), self._by_state(np.exp(table)), logs)
        return logs

    def _counts(self, table: np.ndarray, codes: np.ndarray, shares: np.ndarray) -> np.ndarray:
        """The expected numbers of rows that take each entry, given their shares of the components."""
        form = self.form
        if (codes >= 0).all():
            return form.unfold(form.folded(codes, table.dtype.type).T @ shares)
        counts = form.features(codes, table.dtype.type).T @ shares
        if self._missing is not None:
            flows = self._by_state(np.zeros_like(table))
            self._missing.add_flows(self._missing.possible(codes), self._by_state(np.exp(table)), shares, flows)
            counts += flows[form.states]
        return counts

    def _by_state(self, table: np.ndarray) -> np.ndarray:
        """A table as `MissingTrees` reads it: states × states of the parent × components."""
        state, given = self.form.states
        found = np.zeros((state.max() + 1, self.form.blocks.states.max(), table.shape[1]), table.dtype)
        found[state, given] = table
        return found

    def scores(self, table: np.ndarray, codes: np.ndarray, log_weights: np.ndarray | np.floating) -> np.ndarray:
        """The log-likelihood of every row."""
        logs, _ = _normalized(self.logs(table, np.concatenate([codes, self.outside]), log_weights))
        return logs[: len(codes)] - np.log1p(-np.minimum(np.exp(logs[len(codes) :]), _MOST_EMPTY)).sum()

    def value_and_gradient(
        self, theta: np.ndarray, codes: np.ndarray, weights: np.ndarray, points: np.ndarray
    ) -> tuple[float, np.ndarray]:
        """Σ weight · log-likelihood of the rows, and its gradient."""
        logits, kept = self.net.forward(theta, points)
        table = self.form.table(logits)
        codes = np.concatenate([codes, self.outside])
        logs, shares = _normalized(self.logs(table, codes, -np.log(table.dtype.type(points.shape[1]))))
        value = weights @ logs[: len(weights)]
        if len(self.outside):  # log p(row) − log(1 − p(empty))
            empty = np.minimum(np.exp(logs[-1:]), _MOST_EMPTY)
            value -= weights.sum() * np.log1p(-empty[0])
            weights = np.concatenate([weights, weights.sum() * empty / (1 - empty)])
        shares *= weights[:, None].astype(shares.dtype)
        adjoint = self.form.gradient(table, self._counts(table, codes, shares))
        return float(value), self.net.backward(theta, kept, adjoint)


def _normalized(logs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The logarithm of the sum of every row, and the shares of the terms in it (in the memory of `logs`)."""
    largest = logs.max(axis=1, keepdims=True)
    shares = np.exp(np.subtract(logs, largest, out=logs), out=logs)
    sums = shares.sum(axis=1, keepdims=True)
    shares /= sums
    return (largest + np.log(sums))[:, 0].astype(float), shares


def sobol_points(count: int, latent: int) -> np.ndarray:
    """Quasi-random points of the cube (points × latent)."""
    return qmc.Sobol(latent, rng=latent).random_base2((count - 1).bit_length())[:count]


def gaussian(uniform: np.ndarray, shift: np.ndarray | float = 0.0) -> np.ndarray:
    """The points of a standard Gaussian (latent × points) for points of the cube, shifted modulo 1."""
    return ndtri(np.clip((uniform + shift) % 1, 1e-6, 1 - 1e-6)).T


def improved_weights(mixture: TiedMixture, table: np.ndarray, rows: Rows) -> np.ndarray:
    """The weights of the components of a table after a step of EM from equal weights. (More of them overfit.)"""
    taken = np.zeros(table.shape[1])
    for some in slices(len(rows.packed), table.shape[1]):
        logs = mixture.logs(table, unpack(rows.packed[some], rows.n), table.dtype.type(0))
        taken += rows.counts[some] @ _normalized(logs)[1]
    for outside in mixture.logs(table, mixture.outside, table.dtype.type(0)):  # shares of what is not empty
        taken /= 1 - np.minimum(np.exp(outside), _MOST_EMPTY)
    return taken / taken.sum()


class TiedBatches(RowBatches):
    """The objective of `MiniBatches`: the log-likelihood of a mini-batch, with other points for each."""

    def __init__(self, mixture: TiedMixture, rows: Rows, held_out: Rows, components: int, batch: int):
        super().__init__(rows, batch, self._of, self._validate, times=-(-_MINI_BATCHES * batch // rows.epoch))
        self._mixture, self._held_out = mixture, held_out
        self._points = sobol_points(components, mixture.latent)

    def _of(self, codes: np.ndarray, rng: np.random.Generator, theta: np.ndarray) -> tuple[float, np.ndarray]:
        points = gaussian(self._points, rng.random(self._mixture.latent)).astype(_PRECISION)
        single, weights = theta.astype(_PRECISION), np.ones(len(codes))
        value, gradient = self._mixture.value_and_gradient(single, codes, weights, points)
        return value, gradient.astype(float)

    def _validate(self, theta: np.ndarray) -> float:
        """The mean log-likelihood of the validation data."""
        counts = self._held_out.counts
        return float(counts @ self.scores(theta, len(self._points)) / counts.sum())

    def scores(self, theta: np.ndarray, components: int) -> np.ndarray:
        """The log-likelihood of every distinct row of the validation data, with this many components."""
        points, rows = gaussian(sobol_points(components, self._mixture.latent)), self._held_out
        table = self._mixture.table(theta.astype(_PRECISION), points.astype(_PRECISION))
        log_weight = _PRECISION(-np.log(components))
        parts = (unpack(rows.packed[some], rows.n) for some in slices(len(rows.packed), components))
        return np.concatenate([self._mixture.scores(table, codes, log_weight) for codes in parts])
