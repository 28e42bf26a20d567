"""The weights and matrices of a circuit as one vector θ of unconstrained parameters.

Weights of a sum, none of which is negative, are w = t·softmax(θ) with t their sum: they stay on their simplex. How the
matrices of a determinant are read as parameters, see `pgcc.learn.matrices`. Whatever θ is, the circuit is a
distribution (but for matrices that are set free). Other numbers stay as they are: those of sums with negative weights,
and weights that are 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pgcc.determinants.cofactors import Matrices
from pgcc.errors import PgccError
from pgcc.ir.circuit import Circuit
from pgcc.ir.node import ONE, Node, Op, det, rebuild, weighted_sum
from pgcc.ir.numbers import mul
from pgcc.learn.matrices import kind_of
from pgcc.program.parameters import Parametrized


@dataclass(frozen=True)
class Simplex:
    """The positive weights of a sum: which ones of a program's, and what they add up to."""

    which: np.ndarray
    total: float

    def start(self, weights: np.ndarray) -> np.ndarray:
        """θ of these weights."""
        return np.log(weights[self.which])

    def numbers(self, theta: np.ndarray) -> np.ndarray:
        """The weights of θ."""
        share = np.exp(theta - theta.max())
        return self.total * share / share.sum()

    def gradient(self, theta: np.ndarray, slope: np.ndarray) -> np.ndarray:
        """By θ, from that by the weights."""
        w = self.numbers(theta)
        return w * (slope - (w @ slope) / self.total)


class Parameters:
    """All trainable numbers of a circuit, one after another in a vector.

    Parameters
    ----------
    parametrized : Parametrized
        The circuit's program (of `with_weights_only`).
    free : bool
        Whether determinants are learned that no parametrisation keeps a distribution.
    """

    def __init__(self, parametrized: Parametrized, free: bool = False):
        program = parametrized.program
        self.parametrized, self.weights = parametrized, program.weights.copy()
        self.matrices: list[Matrices] = [structure.floats for structure in program.structures]
        self.sums = [simplex for node, first in parametrized.sums if (simplex := self._simplex(node, first))]
        kinds = {i: kind_of(structure, free) for i, structure in enumerate(program.structures)}
        self.dets = {i: kind for i, kind in kinds.items() if kind is not None}
        if not self.sums and not self.dets:
            hint = "; free_matrices=True lets go of its matrices" if kinds else ""
            raise PgccError(
                f"the circuit has nothing to learn: no sum of several positive weights, no kernel, no graph{hint}"
            )
        starts = [*(one.start(self.weights) for one in self.sums), *(kind.start() for kind in self.dets.values())]
        self.ends = np.cumsum([len(start) for start in starts])
        self.start = np.concatenate(starts)

    def _simplex(self, node: Node, first: int) -> Simplex | None:
        weights = self.weights[first : first + len(node.weights)]
        which = first + np.flatnonzero(weights > 0.0)
        if len(which) < 2 or (weights < 0.0).any():
            return None
        return Simplex(which, float(weights.sum()))

    def _split(self, theta: np.ndarray) -> tuple[list[np.ndarray], dict[int, np.ndarray]]:
        """θ of every sum, and of every determinant by its number."""
        parts = np.split(theta, self.ends[:-1])
        return parts[: len(self.sums)], dict(zip(self.dets, parts[len(self.sums) :], strict=True))

    def numbers(self, theta: np.ndarray) -> tuple[np.ndarray, list[Matrices]]:
        """All weights and matrices of the program."""
        weights, matrices = self.weights.copy(), list(self.matrices)
        of_sums, of_dets = self._split(theta)
        for one, part in zip(self.sums, of_sums, strict=True):
            weights[one.which] = one.numbers(part)
        for i, kind in self.dets.items():
            matrices[i] = kind.matrices(of_dets[i])
        return weights, matrices

    def gradient(self, theta: np.ndarray, by_weights: np.ndarray, by_matrices: list[Matrices]) -> np.ndarray:
        """By θ, from those by weights and matrices."""
        of_sums, of_dets = self._split(theta)
        slopes = [one.gradient(part, by_weights[one.which]) for one, part in zip(self.sums, of_sums, strict=True)]
        slopes += [kind.gradient(of_dets[i], by_matrices[i]) for i, kind in self.dets.items()]
        return np.concatenate(slopes)

    def circuit(self, circuit: Circuit, theta: np.ndarray) -> Circuit:
        """The circuit with the numbers of θ; other numbers stay exactly as they are."""
        of_sums, of_dets = self._split(theta)
        numbers: list[Any] = list(self.parametrized.program.numbers)
        for one, part in zip(self.sums, of_sums, strict=True):
            for place, weight in zip(one.which.tolist(), one.numbers(part).tolist(), strict=True):
                numbers[place] = weight
        learned = {self.parametrized.dets[i]: kind.exact(of_dets[i]) for i, kind in self.dets.items()}
        at = dict(self.parametrized.sums)
        new: list[Node] = []
        for node, below in zip(circuit.order, circuit.links, strict=True):
            children = [new[c] for c in below]
            if node.op is Op.SUM:
                new.append(weighted_sum(numbers[at[node] :][: len(children)], children))
            elif node in learned:
                k = len(children) // 2
                new.append(det(*learned[node], children[:k], children[k:], node.size, node.counted))
            else:
                new.append(rebuild(node, children))
        return Circuit(new[-1], circuit.variables)


def with_weights_only(circuit: Circuit) -> Circuit:
    """The same polynomial with constants in sums as weights of 1, (w·c)·1 for w·c: so they can be learned.

    Examples
    --------
    >>> import pgcc
    >>> with_weights_only(pgcc.parse("0.3*a + 0.7")).root.weights
    (Fraction(3, 10), Fraction(7, 10))
    """
    return Circuit(nodes_with_weights_only(circuit)[-1], circuit.variables)


def nodes_with_weights_only(circuit: Circuit) -> list[Node]:
    """What every node of the circuit becomes in `with_weights_only`, in the circuit's order."""
    new: list[Node] = []
    for node, below in zip(circuit.order, circuit.links, strict=True):
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
