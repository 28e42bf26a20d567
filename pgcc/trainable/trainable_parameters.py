"""The weights and matrices of a circuit as one vector θ of unconstrained parameters.

The weights of a sum without negative weights are w = t·softmax(θ), where t is their sum: they stay on their simplex.
`trainable_matrices` parametrizes the matrices of determinants. Whatever θ is, the circuit is a distribution (except
with `free_matrices`). All other numbers are constants: the weights of sums with a negative weight, and weights 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pgcc.determinants.cofactors import Matrices
from pgcc.errors import PgccError
from pgcc.ir.circuit import Circuit
from pgcc.ir.node import ONE, Node, Op, det, rebuild, weighted_sum
from pgcc.ir.numbers import Number, mul
from pgcc.program.parameters import Parametrized
from pgcc.trainable.trainable_matrices import parametrization_of


@dataclass(frozen=True)
class Simplex:
    """The positive weights of a sum: their positions among the weights of the program, and their total."""

    which: np.ndarray
    total: float

    def start(self, weights: np.ndarray) -> np.ndarray:
        """The logits θ of the given weights."""
        return np.log(weights[self.which])

    def numbers(self, theta: np.ndarray) -> np.ndarray:
        """The weights for θ."""
        share = np.exp(theta - theta.max())
        return self.total * share / share.sum()

    def gradient(self, theta: np.ndarray, grad: np.ndarray) -> np.ndarray:
        """The gradient with respect to θ, from that with respect to the weights."""
        w = self.numbers(theta)
        return w * (grad - (w @ grad) / self.total)


class TrainableParameters:
    """All trainable numbers of a circuit, concatenated to a vector θ.

    Parameters
    ----------
    parametrized : Parametrized
        The program of the circuit, after `with_weights_only`.
    free : bool
        Whether to learn also determinants for which no parametrization guarantees a distribution.
    """

    def __init__(self, parametrized: Parametrized, free: bool = False):
        program = parametrized.program
        self.parametrized, self.weights = parametrized, program.weights.copy()
        self.matrices: list[Matrices] = [structure.floats for structure in program.structures]
        self.sums = [simplex for node, first in parametrized.sums if (simplex := self._simplex(node, first))]
        parametrizations = {i: parametrization_of(structure, free) for i, structure in enumerate(program.structures)}
        self.dets = {i: param for i, param in parametrizations.items() if param is not None}
        if not self.sums and not self.dets:
            hint = "; free_matrices=True lets go of its matrices" if parametrizations else ""
            raise PgccError(
                f"the circuit has nothing to learn: no sum of several positive weights, no kernel, no graph{hint}"
            )
        starts = [
            *(simplex.start(self.weights) for simplex in self.sums),
            *(param.start() for param in self.dets.values()),
        ]
        self.ends = np.cumsum([len(start) for start in starts])
        self.start = np.concatenate(starts)

    def _simplex(self, node: Node, first: int) -> Simplex | None:
        weights = self.weights[first : first + len(node.weights)]
        which = first + np.flatnonzero(weights > 0.0)
        if len(which) < 2 or (weights < 0.0).any():
            return None
        return Simplex(which, float(weights.sum()))

    def _split(self, theta: np.ndarray) -> tuple[list[np.ndarray], dict[int, np.ndarray]]:
        """The part of θ of every sum, and of every determinant, by its index."""
        parts = np.split(theta, self.ends[:-1])
        return parts[: len(self.sums)], dict(zip(self.dets, parts[len(self.sums) :], strict=True))

    def numbers(self, theta: np.ndarray) -> tuple[np.ndarray, list[Matrices]]:
        """All weights and matrices of the program for θ."""
        weights, matrices = self.weights.copy(), list(self.matrices)
        of_sums, of_dets = self._split(theta)
        for simplex, part in zip(self.sums, of_sums, strict=True):
            weights[simplex.which] = simplex.numbers(part)
        for i, param in self.dets.items():
            matrices[i] = param.matrices(of_dets[i])
        return weights, matrices

    def gradient(self, theta: np.ndarray, by_weights: np.ndarray, by_matrices: list[Matrices]) -> np.ndarray:
        """The gradient with respect to θ, from those with respect to weights and matrices."""
        of_sums, of_dets = self._split(theta)
        grads = [
            simplex.gradient(part, by_weights[simplex.which]) for simplex, part in zip(self.sums, of_sums, strict=True)
        ]
        grads += [param.gradient(of_dets[i], by_matrices[i]) for i, param in self.dets.items()]
        return np.concatenate(grads)

    def circuit(self, circuit: Circuit, theta: np.ndarray) -> Circuit:
        """The circuit with the numbers for θ; all other numbers stay exactly as they are."""
        of_sums, of_dets = self._split(theta)
        numbers: list[Any] = list(self.parametrized.program.numbers)
        for simplex, part in zip(self.sums, of_sums, strict=True):
            for place, weight in zip(simplex.which.tolist(), simplex.numbers(part).tolist(), strict=True):
                numbers[place] = weight
        weights = {node: numbers[first : first + len(node.weights)] for node, first in self.parametrized.sums}
        matrices = {self.parametrized.dets[i]: param.exact(of_dets[i]) for i, param in self.dets.items()}
        return with_numbers(circuit, weights, matrices)


def with_numbers(
    circuit: Circuit, weights: Mapping[Node, Sequence[Number]], matrices: Mapping[Node, tuple[Any, Any, Any]]
) -> Circuit:
    """The circuit with other weights of some sums, and other matrices (M0, U, V) of some determinants."""
    new: list[Node] = []
    for node, below in zip(circuit.order, circuit._links, strict=True):
        children, k = [new[c] for c in below], len(below) // 2
        if node in weights:
            new.append(weighted_sum(weights[node], children))
        elif node in matrices:
            new.append(det(*matrices[node], children[:k], children[k:], node.size, node.counted))
        else:
            new.append(rebuild(node, children))
    return Circuit(new[-1], circuit.variables)


def with_weights_only(circuit: Circuit) -> Circuit:
    """The same polynomial with w·c in sums, for constants c, written as (w·c)·1, so that it is a weight to learn.

    Examples
    --------
    >>> import pgcc
    >>> with_weights_only(pgcc.parse("0.3*a + 0.7")).root.weights
    (Fraction(3, 10), Fraction(7, 10))
    """
    return Circuit(nodes_with_weights_only(circuit)[-1], circuit.variables)


def nodes_with_weights_only(circuit: Circuit) -> list[Node]:
    """For every node of the circuit, in its order, the node of `with_weights_only`."""
    new: list[Node] = []
    for node, below in zip(circuit.order, circuit._links, strict=True):
        children = [new[c] for c in below]
        if node.op is Op.SUM:
            weights: list[Any] = list(node.weights)
            for i, child in enumerate(children):
                if child.op is Op.CONST and child is not ONE:
                    weights[i], children[i] = mul(weights[i], child.value), ONE
            new.append(weighted_sum(weights, children))
        else:
            new.append(rebuild(node, children))
    return new
