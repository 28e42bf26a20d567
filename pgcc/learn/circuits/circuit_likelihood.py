"""The mean log-likelihood of data as a function of a circuit's weights and matrices."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

import numpy as np

from pgcc.cluster import Crew
from pgcc.determinants.cofactors import Matrices
from pgcc.evaluate.differentiation import Gradients
from pgcc.ir.circuit import Circuit
from pgcc.learn.common.checkpoint import State
from pgcc.learn.tables.packed_rows import Block, Rows
from pgcc.program.program import SUM
from pgcc.queries.gradient import GradientFunction
from pgcc.trainable.trainable_parameters import TrainableParameters, with_weights_only

Numbers = tuple[np.ndarray, list[Matrices]]  # all weights and matrices of a program


class CircuitLikelihood:
    """The mean log-likelihood of data as a function of θ; a crew of workers computes the sums over rows.

    Parameters
    ----------
    circuit : Circuit
    rows : Rows
        The training data.
    held_out : Rows or None
        The validation data.
    workers : Crew
    free : bool
        Whether to learn also matrices for which no parametrization guarantees a distribution.
    """

    def __init__(self, circuit: Circuit, rows: Rows, held_out: Rows | None, workers: Crew, free: bool = False):
        self.circuit = with_weights_only(circuit)
        self._functions = _Functions(self.circuit)
        self.function = self._functions.here
        self.parameters = TrainableParameters(self.function.parametrized, free)
        self.rows, self.held_out = rows, held_out
        self._total, self._sent = workers.total, workers.send(self._functions)
        self._blocks = workers.keep(_decode, rows.blocks())
        self._held_out = None if held_out is None else workers.keep(_decode, held_out.blocks())

    @property
    def has_em(self) -> bool:
        """Whether EM applies: no determinant, no negative weight, and all terms of a sum have the same total."""
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
        """The mean log-likelihood of all rows, and its gradient; −inf if a row has probability 0, or θ diverged."""
        shared = self._blocks, self._sent
        return self._by_theta(theta, lambda numbers: self._total(_gradient_of, *shared, numbers, self.rows.total))

    def of(self, theta: np.ndarray, codes: np.ndarray, row_weights: np.ndarray) -> tuple[float, np.ndarray]:
        """Σ weight · log p(row) of a mini-batch, and its gradient."""
        block = _Decoded(codes, row_weights)
        return self._by_theta(theta, lambda numbers: _gradient_of(block, self._functions, numbers, 1))

    def _by_theta(self, theta: np.ndarray, evaluate: Callable[[Numbers], Gradients]) -> tuple[float, np.ndarray]:
        numbers = self.parameters.numbers(theta)
        if _finite(numbers):
            found = evaluate(numbers)
            value = float(found.logs.sum())
            if math.isfinite(value):
                return value, self.parameters.gradient(theta, found.weights, found.matrices)
        return -math.inf, np.zeros_like(theta)

    def validate(self, theta: np.ndarray) -> float | None:
        """The mean log-likelihood of the validation data, if there are any."""
        if self.held_out is None or self._held_out is None:
            return None
        numbers = self.parameters.numbers(theta)
        if not _finite(numbers):
            return -math.inf
        return float(self._total(_log_likelihood, self._held_out, self._sent, numbers)) / self.held_out.total

    def scores(self, learned: State) -> np.ndarray:
        """The log-likelihood of every distinct row of the validation data."""
        assert self.held_out is not None
        function = self._functions.at(self.parameters.numbers(learned["theta"]))
        return np.concatenate([function.logs(block.codes) for block in self.held_out.blocks()])

    def expected_counts(self, weights: np.ndarray) -> tuple[float, np.ndarray]:
        """The E-step: the mean log-likelihood, and the expected number of rows that choose each term of a sum."""
        numbers = weights, self.parameters.matrices
        found = self._total(_expected_counts, self._blocks, self._sent, numbers)
        total = self._functions.at(numbers).unnormalized(np.full((1, self.rows.n), -1, np.int8))
        return float(found.logs.sum()) / self.rows.total - float(total.logs[0]), weights * found.weights


def _finite(numbers: Numbers) -> bool:
    """Whether no number overflowed: LAPACK takes no others."""
    weights, matrices = numbers
    return all(bool(np.isfinite(part).all()) for part in (weights, *chain.from_iterable(matrices)))


# -- the contribution of a block of rows ---------------------------------------------------------------------


class _Functions(threading.local):
    """The log-likelihood of a circuit with its gradient, one for every thread, because evaluation sets its numbers."""

    def __init__(self, circuit: Circuit):
        self.circuit, self.here = circuit, GradientFunction(circuit)

    def __reduce__(self) -> tuple:
        return _Functions, (self.circuit,)

    def at(self, numbers: Numbers) -> GradientFunction:
        """The function with these weights and matrices."""
        self.here.differentiator.update(*numbers)
        return self.here


class _Decoded(NamedTuple):
    codes: np.ndarray
    counts: np.ndarray


def _decode(block: Block) -> _Decoded:
    return _Decoded(block.codes, np.ascontiguousarray(block.counts))


def _sum_of(found: Gradients, row_weights: np.ndarray) -> Gradients:
    """The gradients, with Σ weight · log F(row) in place of the logarithms; those of all blocks are added up."""
    return replace(found, logs=np.array([row_weights @ found.logs]))


def _gradient_of(block: _Decoded, functions: _Functions, numbers: Numbers, rows: float) -> Gradients:
    row_weights = block.counts / rows
    return _sum_of(functions.at(numbers).evaluate(block.codes, row_weights), row_weights)


def _expected_counts(block: _Decoded, functions: _Functions, numbers: Numbers) -> Gradients:
    return _sum_of(functions.at(numbers).unnormalized(block.codes, block.counts), block.counts)


def _log_likelihood(block: _Decoded, functions: _Functions, numbers: Numbers) -> float:
    return float(block.counts @ functions.at(numbers).logs(block.codes))
