"""HiddenTree: hidden variables along a Chow–Liu tree, whose tables are tied by a small net, or free."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any

import numpy as np

from pgcc.builders import parents_first
from pgcc.cluster import Crew
from pgcc.ir.blocks import Blocks
from pgcc.learn.common.checkpoint import Shapes, State
from pgcc.learn.common.estimator import Estimator, check_choice, check_positive, check_whole
from pgcc.learn.common.net import Net, tanh
from pgcc.learn.common.optimizers import Adam, Function, MiniBatches
from pgcc.learn.common.training import Run, RunPlan, Trainer
from pgcc.learn.regions.layer_training import PRECISION, LayerEM, LayerLikelihood
from pgcc.learn.regions.layers import Layers
from pgcc.learn.tables.data_split import DataSplit
from pgcc.learn.tables.packed_rows import Rows
from pgcc.learn.trees.tree_estimators import ChowLiu

PARAMETERS = ("tied", "free")
# The net of tied tables: random Fourier features of a point, their frequency, and the units of its two hidden layers.
_FEATURES, _FREQUENCY, _UNITS = 32, 3.0, 128
# The decay of the moving average of its parameters, per mini-batch.
_EMA = 0.99


@dataclass(eq=False, repr=False)
class HiddenTree(Estimator):
    """docs"""

    n_states: int = 32
    parameters: str = "tied"
    _: KW_ONLY
    max_iter: int = 100
    n_iter_no_change: int = 10
    learning_rate: float = 0.01
    batch_size: int = 256
    smoothing: float = 1.0
    binarize: float | None = None
    random_state: Any = 0
    verbose: bool | None = None

    def _plans(self, data: DataSplit, seed: int, workers: Crew) -> list[RunPlan]:
        """One run, of Adam or of EM."""
        epochs, patience = check_whole("max_iter", self.max_iter), check_whole("n_iter_no_change", self.n_iter_no_change)
        batch = check_whole("batch_size", self.batch_size)
        rate = check_positive("learning_rate", self.learning_rate)
        smoothing = check_positive("smoothing", self.smoothing, zero=True)
        layers = self._layers(data)
        likelihood = LayerLikelihood(layers, data, batch)
        if check_choice("parameters", self.parameters, PARAMETERS) == "free":
            start = np.random.default_rng(seed).random(layers.size) * len(data.rows)
            make_em = partial(LayerEM, likelihood, start, smoothing, 20, seed)
            return [RunPlan(make_em, epochs, patience, *LayerEM.shapes(layers))]
        tied = self._tied(data, layers)

        def make_adam(state: State | None) -> MiniBatches:
            adam = Adam(tied.start(np.random.default_rng(seed)), ema_decay=_EMA)
            if state is not None:
                adam.restore(state)
            return MiniBatches(TiedBatches(likelihood, tied), adam, rate, 0.05, epochs, seed)

        return [RunPlan(make_adam, epochs, patience, {"theta": (float, tied.size)}, Adam.shapes(tied.size))]

    def _layers(self, data: DataSplit) -> Layers:
        parents = rooted_at_centroid(ChowLiu().fit(data).trees_.parents[0])
        return tree_layers(Blocks.of(data.rows.names), parents, check_whole("n_states", self.n_states, most=1 << 12))

    def _tied(self, data: DataSplit, layers: Layers) -> TiedTables:
        return TiedTables(layers, self.n_states, column_means(data.rows))

    def _finish(self, runs: Sequence[Run], data: DataSplit) -> None:
        layers, learned = self._layers(data), self._keep_history(runs[0])
        if self.parameters == "tied":
            numbers = self._tied(data, layers).numbers(learned["theta"])[0]
        else:
            numbers = layers.normalized(learned["counts"], self.smoothing)
        self.circuit_ = layers.circuit(layers.normalized(numbers), data.rows.names)


def rooted_at_centroid(parents: np.ndarray) -> np.ndarray:
    """The same tree with its root where no branch has more than half of the nodes, so that branches are small.

    >>> rooted_at_centroid(np.array([-1, 0, 1, 2, 3])).tolist()
    [1, 2, -1, 2, 3]
    """
    size = np.ones(len(parents), int)
    for v in reversed(parents_first(parents.tolist())):
        if parents[v] >= 0:
            size[parents[v]] += size[v]
    heavy = np.flatnonzero(2 * size >= len(parents))
    rooted, v, above = parents.copy(), int(heavy[np.argmin(size[heavy])]), -1
    while v >= 0:  # turn the edges from here to the old root
        rooted[v], above, v = above, v, int(parents[v])
    return rooted


def tree_layers(blocks: Blocks, parents: np.ndarray, states: int) -> Layers:
    """A hidden variable for each variable, along the edges of a tree.

    The tables of the variables come first, then those of the edges, and that of the root last.
    """
    layers = Layers(blocks)
    factors = [[layers.sum(layers.indicator(v), states)] for v in range(len(parents))]
    for v in reversed(parents_first(parents.tolist())):
        message = layers.sum(layers.product(factors[v]), states if parents[v] >= 0 else 1)
        if parents[v] >= 0:
            factors[parents[v]].append(message)
    return layers


def column_means(rows: Rows) -> np.ndarray:
    """How often each column is 1, among the rows in which it is known; not too close to 0 and 1."""
    ones, known = np.zeros(rows.n), np.zeros(rows.n)
    for block in rows.blocks():
        ones += block.counts @ (block.codes == 1)
        known += block.counts @ (block.codes >= 0)
    return np.clip(ones / np.maximum(known, 1), 0.01, 0.99)


class TiedTables:
    """The tables of a hidden tree as outputs of two small nets at points of an interval, one for each state.

    The logits of an edge's table are outputs at pairs of points; those of a variable and of the root, at points.

    Parameters
    ----------
    layers : Layers
        From `tree_layers`.
    states : int
        The number of points.
    means : array
        How often each column is 1.
    """

    def __init__(self, layers: Layers, states: int, means: np.ndarray):
        self.layers, self.states, self._means = layers, states, means
        blocks = layers.blocks
        self._edges = len(blocks.first) - 1
        widths = blocks.states[blocks.first]
        self._starts = np.cumsum(widths) - widths  # the first state of every variable
        self._shown = self._places(blocks, widths)
        self._rows = int(widths.sum())
        rng, z = np.random.default_rng(states), np.linspace(-1, 1, states)
        pairs = np.stack(np.meshgrid(z, z, indexing="ij")).reshape(2, -1)
        self._points = [_features(points, rng) for points in (z[None], pairs)]
        self._nets = [
            Net([2 * _FEATURES, _UNITS, _UNITS, outputs], tanh) for outputs in (len(means) + 1, max(self._edges, 1))
        ]
        self.size = sum(net.size for net in self._nets)

    def _places(self, blocks: Blocks, widths: np.ndarray) -> np.ndarray:
        """The state that each column shows: the second of a column alone, whose first has the logit 0."""
        inside = np.arange(len(blocks.block)) - blocks.first[blocks.block]
        return self._starts[blocks.block] + inside + (blocks.size == 1)

    def start(self, rng: np.random.Generator) -> np.ndarray:
        """Random parameters, with which variables are about as frequent as in the data."""
        thetas = [net.start(rng) for net in self._nets]
        for net, theta in zip(self._nets, thetas, strict=True):
            net.layers(theta)[-1][0][...] *= 12**0.5
            net.layers(theta)[-1][1][...] = 0
        alone = self.layers.blocks.size == 1
        logits = np.log(self._means) - np.where(alone, np.log1p(-self._means), 0)
        self._nets[0].layers(thetas[0])[-1][1][:-1, 0] = logits
        return np.concatenate(thetas)

    def numbers(self, theta: np.ndarray) -> tuple[np.ndarray, Any]:
        """All tables in the precision of θ, and what `gradient` needs."""
        h, parts = self.states, np.split(theta, [self._nets[0].size])
        (single, kept), (pairs, kept_pairs) = (
            net.forward(part, points.astype(theta.dtype))
            for net, part, points in zip(self._nets, parts, self._points, strict=True)
        )
        variables = np.zeros((self._rows, h), theta.dtype)
        variables[self._shown] = single[:-1]
        tables = [
            _softmax_of_groups(variables, self._starts),
            _softmax(pairs[: self._edges].reshape(-1, h, h), 1),
            _softmax(single[-1], 0),
        ]
        numbers = np.concatenate([table.reshape(-1) for table in tables])
        return np.maximum(numbers, np.finfo(numbers.dtype).tiny, out=numbers), (parts, kept, kept_pairs)

    def gradient(self, numbers: np.ndarray, counts: np.ndarray, kept: Any) -> np.ndarray:
        """The gradient by θ, from expected counts: by a logit it is count − probability · Σ counts of the column."""
        parts, kept_single, kept_pairs = kept
        h, n = self.states, self._rows * self.states
        (p_v, p_e, p_r), (c_v, c_e, c_r) = (
            (of[:n].reshape(-1, h), of[n:-h].reshape(-1, h, h), of[-h:]) for of in (numbers, counts)
        )
        by_group = np.add.reduceat(c_v, self._starts, axis=0)
        widths = np.diff([*self._starts, self._rows])
        variables = c_v - p_v * np.repeat(by_group, widths, axis=0)
        single = np.concatenate([variables[self._shown], (c_r - p_r * c_r.sum())[None]])
        pairs = (c_e - p_e * c_e.sum(axis=1, keepdims=True)).reshape(-1, h * h)
        if not self._edges:
            pairs = np.zeros((1, h * h), numbers.dtype)
        return np.concatenate(
            [
                net.backward(part, of, adjoint)
                for net, part, of, adjoint in zip(
                    self._nets, parts, (kept_single, kept_pairs), (single, pairs), strict=True
                )
            ]
        )


def _features(points: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Random Fourier features of points."""
    angles = _FREQUENCY * rng.normal(size=(_FEATURES, len(points))) @ points
    return np.concatenate([np.sin(angles), np.cos(angles)])


def _softmax(logits: np.ndarray, axis: int) -> np.ndarray:
    shares = np.exp(logits - logits.max(axis=axis, keepdims=True))
    shares /= shares.sum(axis=axis, keepdims=True)
    return shares


def _softmax_of_groups(logits: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """The softmax of groups of rows."""
    widths = np.diff([*starts, len(logits)])
    shares = np.exp(logits - np.repeat(np.maximum.reduceat(logits, starts, axis=0), widths, axis=0))
    return shares / np.repeat(np.add.reduceat(shares, starts, axis=0), widths, axis=0)


class TiedBatches:
    """The objective of `MiniBatches`."""

    def __init__(self, likelihood: LayerLikelihood, tied: TiedTables):
        self._likelihood, self._tied = likelihood, tied
        self.rows, self.batch = likelihood.rows, likelihood.batch
        self.length = -(-self.rows // self.batch) * self.batch

    def batches(self, rng: np.random.Generator) -> Iterator[tuple[int, Function]]:
        """All rows once, in random order; see `Objective`."""
        for drawn in self._likelihood.drawn(rng):
            yield len(drawn), partial(self._value_and_gradient, drawn)

    def _value_and_gradient(self, drawn: np.ndarray, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Σ log p(row), and the gradient of the mean."""
        numbers, kept = self._tied.numbers(theta.astype(PRECISION))
        weights = np.full(len(drawn), 1 / len(drawn))
        value, counts = self._likelihood.expected(numbers, self._likelihood.data.rows.codes(drawn), weights)
        return value * len(drawn), self._tied.gradient(numbers, counts.astype(PRECISION), kept).astype(float)

    def validate(self, theta: np.ndarray) -> float:
        """The mean log-likelihood of the validation data."""
        return self._likelihood.mean(self._tied.numbers(theta.astype(PRECISION))[0], self._likelihood.data.held_out)
