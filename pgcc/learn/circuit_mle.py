"""Maximum likelihood for any circuit, through its own reverse pass."""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np

from pgcc.backend.cofactors import Matrices
from pgcc.backend.gradient import Gradients
from pgcc.cluster import Crew, crew
from pgcc.errors import PgccError
from pgcc.ir.circuit import Circuit
from pgcc.learn.base import Estimator, check_positive, check_whole
from pgcc.learn.data import read_rows
from pgcc.learn.descent import Adam, lbfgs
from pgcc.learn.parameters import Parameters, with_weights_only
from pgcc.learn.rows import Block, Rows, batches, distinct_rows
from pgcc.lowering.program import SUM
from pgcc.queries.gradient import GradientFunction

OPTIMIZERS = ("auto", "adam", "lbfgs", "em")
_NONE = np.zeros(0)


class CircuitMLE(Estimator):
    """The numbers of a circuit, learned from data; its structure stays.

    Weights of sums stay on their simplex and kernels of DPPs stay positive: what is learned is a distribution, as the
    circuit is. See `pgcc.learn.parameters` for what is trainable.

    Parameters
    ----------
    circuit : Circuit
        Decomposable; training starts from its numbers. Columns of data are its variables, in their order.
    optimizer : str
        "em" (for circuits without negative weights or determinants, whose sums choose between distributions: every
        epoch is an improvement), "lbfgs" (all rows at a time), "adam" (mini-batches); "auto" takes EM where it can, and
        L-BFGS elsewhere.
    epochs : int
        Passes over the data, at most.
    patience : int
        Stop after as many epochs without a better likelihood of the validation data.
    smoothing : float
        For EM: rows added to every sum, spread like its first weights.
    rate, decay, batch
        For Adam: the learning rate, weight decay, and rows per step.
    seed : int
    verbose : bool
        Tell of every epoch, on standard error.

    Attributes
    ----------
    circuit_ : Circuit
    history_ : dict of lists
        Mean log-likelihoods of training and validation data after every epoch, and seconds.
    best_epoch_ : int
        The epoch whose numbers were kept.

    Examples
    --------
    >>> import numpy as np
    >>> import pgcc
    >>> from pgcc.learn import CircuitMLE
    >>> X = np.array([[1, 1], [1, 1], [0, 0], [1, 0]])
    >>> model = CircuitMLE(pgcc.parse("0.5*(0.4*a + 0.6)*b + 0.5*(0.5*a + 0.5)"), smoothing=0).fit(X)
    >>> round(model.model_.prob({"b": 1}), 6), round(model.model_.conditional({"a": 1}, given={"b": 1}), 6)
    (0.5, 1.0)
    """

    def __init__(
        self,
        circuit: Circuit,
        optimizer: str = "auto",
        *,
        epochs: int = 100,
        patience: int = 10,
        smoothing: float = 0.1,
        rate: float = 0.01,
        decay: float = 0.0,
        batch: int = 128,
        seed: int = 0,
        verbose: bool = False,
    ):
        self.circuit = circuit
        self.optimizer = optimizer
        self.epochs = epochs
        self.patience = patience
        self.smoothing = smoothing
        self.rate = rate
        self.decay = decay
        self.batch = batch
        self.seed = seed
        self.verbose = verbose

    def fit(self, X: Any, validation: Any = None, *, cluster: Any = None) -> Self:
        """Learn the numbers of the circuit from rows of 0, 1 and −1 or NaN for what is missing, which is summed out.

        For the forms of data see `Estimator.fit`. With the address of a Dask cluster, its workers share the blocks of
        rows of every epoch of EM and every step of L-BFGS, and of the validation data.
        """
        if not isinstance(self.circuit, Circuit):
            raise PgccError(f"circuit={self.circuit!r}: CircuitMLE learns the numbers of a Circuit")
        seed, patience = check_whole("seed", self.seed, 0), check_whole("patience", self.patience)
        names = list(self.circuit.variables)
        rows = read_rows(X, names)
        held_out = rows if validation is None else read_rows(validation, names, "the validation data")
        self.feature_names_in_ = names
        with crew(cluster) as workers:
            self._climb(_Likelihood(self.circuit, rows, held_out, workers), seed, patience, validation is not None)
        return self

    def _climb(self, likelihood: _Likelihood, seed: int, patience: int, validated: bool) -> None:
        history: dict[str, list[float]] = {"train": [], "validation": [], "seconds": []}
        best, self.best_epoch_, began = likelihood.parameters.start, -1, time.perf_counter()
        for epoch, (train, theta) in enumerate(self._epochs(likelihood, seed)):
            score = likelihood.validate(theta) if validated else train
            if self.best_epoch_ < 0 or score > history["validation"][self.best_epoch_]:
                best, self.best_epoch_ = theta.copy(), epoch
            seconds = time.perf_counter() - began
            for name, value in (("train", train), ("validation", score), ("seconds", seconds)):
                history[name].append(value)
            if self.verbose:
                told = f"epoch {epoch + 1}: train {train:.6f}, validation {score:.6f}, {seconds:.1f} s"
                print(told, file=sys.stderr, flush=True)
            if epoch - self.best_epoch_ >= patience:
                break
        self.history_ = history
        self.circuit_ = likelihood.parameters.circuit(likelihood.circuit, best)

    def _epochs(self, likelihood: _Likelihood, seed: int) -> Iterator[tuple[float, np.ndarray]]:
        """Mean log-likelihood of the training data and θ after every epoch."""
        epochs = check_whole("epochs", self.epochs)
        match _choose(self.optimizer, likelihood):
            case "em":
                return likelihood.em(epochs, check_positive("smoothing", self.smoothing, zero=True))
            case "lbfgs":
                return lbfgs(likelihood.mean, likelihood.parameters.start, epochs, tolerance=1e-9)
        rate, decay = check_positive("rate", self.rate), check_positive("decay", self.decay, zero=True)
        adam = Adam(likelihood.parameters.start, rate, decay)
        return likelihood.adam(adam, epochs, check_whole("batch", self.batch), seed)


def _choose(optimizer: str, likelihood: _Likelihood) -> str:
    if optimizer not in OPTIMIZERS:
        raise PgccError(f"optimizer={optimizer!r}: choose one of {', '.join(map(repr, OPTIMIZERS))}")
    if optimizer == "auto":
        return "em" if likelihood.has_em else "lbfgs"
    if optimizer == "em" and not likelihood.has_em:
        raise PgccError(
            "EM needs a circuit without negative weights and determinants, in which all terms of a sum have the same "
            "total: 'lbfgs' and 'adam' take any"
        )
    return optimizer


class _Likelihood:
    """The mean log-likelihood of data as a function of θ; sums over all rows are the work of a crew."""

    def __init__(self, circuit: Circuit, rows: Rows, held_out: Rows, workers: Crew):
        self.circuit = with_weights_only(circuit)
        functions = _Functions(self.circuit)
        self.function = functions.here
        self.parameters = Parameters(self.function.parametrized)
        self.rows, self.held_out = rows, held_out
        self._total, self._sent = workers.total, workers.send(functions)
        self._blocks, self._held_out = (workers.keep(_decode, part.blocks()) for part in (rows, held_out))

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
        numbers = self.parameters.numbers(theta)
        found = self._total(_gradient_of, self._blocks, self._sent, numbers, len(self.rows))
        return self._at(theta, found.value, found.gradients)

    def _of(self, theta: np.ndarray, rows: np.ndarray, share: np.ndarray) -> tuple[float, np.ndarray]:
        """Of a few rows."""
        self.function.differentiator.update(*self.parameters.numbers(theta))
        found = self.function.evaluate(rows, share)
        return self._at(theta, float(share @ found.logs), found)

    def _at(self, theta: np.ndarray, value: float, found: Gradients) -> tuple[float, np.ndarray]:
        if not math.isfinite(value):
            return -math.inf, np.zeros_like(theta)
        return value, self.parameters.gradient(theta, found.weights, found.matrices)

    def validate(self, theta: np.ndarray) -> float:
        """Of the rows held out."""
        numbers = self.parameters.numbers(theta)
        return float(self._total(_log_likelihood, self._held_out, self._sent, numbers)) / len(self.held_out)

    def adam(self, adam: Adam, epochs: int, batch: int, seed: int) -> Iterator[tuple[float, np.ndarray]]:
        """Epochs of mini-batches in random order; the rate falls along a half cosine."""
        steps = epochs * -(-len(self.rows) // batch)
        for epoch in range(epochs):
            total = 0.0
            for drawn in batches(len(self.rows), batch, np.random.default_rng([seed, epoch])):
                rows, where = distinct_rows(self.rows.codes(drawn))
                value, gradient = self._of(adam.theta, rows, np.bincount(where) / len(drawn))
                if value == -math.inf:
                    raise PgccError("a row of the data has probability 0: it cannot be learned from this circuit")
                total += value * len(drawn)
                adam.ascend(gradient, 0.5 * (1 + math.cos(math.pi * adam.steps / steps)))
            yield total / len(self.rows), adam.theta

    def em(self, epochs: int, smoothing: float) -> Iterator[tuple[float, np.ndarray]]:
        """Every weight becomes its share of the expected number of rows that went its way."""
        parameters, theta = self.parameters, self.parameters.start
        first, _ = parameters.numbers(theta)
        weights = first.copy()
        for _ in range(epochs):
            numbers = weights, parameters.matrices
            found = self._total(_expected_counts, self._blocks, self._sent, numbers)
            if not math.isfinite(found.value):
                raise PgccError("a row of the data has probability 0: it cannot be learned from this circuit")
            self.function.differentiator.update(*numbers)
            total = self.function.differentiator.evaluate(np.full((1, self.rows.n), -1, np.int8), np.zeros(1))
            yield found.value / len(self.rows) - float(total.logs[0]), theta
            counts = weights * found.gradients.weights
            weights = weights.copy()
            for one in parameters.sums:
                went = counts[one.which] + smoothing * first[one.which] / one.total
                if went.sum() > 0.0:
                    weights[one.which] = np.maximum(one.total * went / went.sum(), 1e-300)
            theta = np.concatenate([one.start(weights) for one in parameters.sums])


# -- what a block of rows adds to a sum over all of them ----------------------------------------------------


class _Functions(threading.local):
    """The function of a circuit, one for every thread: it has the numbers in it at which it is evaluated."""

    def __init__(self, circuit: Circuit):
        self.circuit, self.here = circuit, GradientFunction(circuit)

    def __reduce__(self) -> tuple:
        return _Functions, (self.circuit,)

    def at(self, numbers: tuple[np.ndarray, list[Matrices]]) -> GradientFunction:
        """The function with these weights and matrices."""
        self.here.differentiator.update(*numbers)
        return self.here


class _Decoded(NamedTuple):
    codes: np.ndarray
    counts: np.ndarray


def _decode(block: Block) -> _Decoded:
    return _Decoded(block.codes, np.ascontiguousarray(block.counts))


class _Sum(NamedTuple):
    """Σ share · log F(row), and its gradients."""

    value: float
    gradients: Gradients

    def __add__(self, other: _Sum) -> _Sum:  # type: ignore[override]
        return _Sum(self.value + other.value, self.gradients + other.gradients)


def _gradient_of(block: _Decoded, functions: _Functions, numbers: Any, rows: int) -> _Sum:
    share = block.counts / rows
    found = functions.at(numbers).evaluate(block.codes, share)
    return _Sum(float(share @ found.logs), replace(found, logs=_NONE))


def _expected_counts(block: _Decoded, functions: _Functions, numbers: Any) -> _Sum:
    found = functions.at(numbers).differentiator.evaluate(block.codes, block.counts)
    return _Sum(float(block.counts @ found.logs), replace(found, logs=_NONE))


def _log_likelihood(block: _Decoded, functions: _Functions, numbers: Any) -> float:
    return float(block.counts @ functions.at(numbers).logs(block.codes))
