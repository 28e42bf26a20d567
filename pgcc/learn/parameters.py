"""The numbers of a circuit as one vector of free parameters.

    weights of a sum, none negative      w = t·softmax(θ), t their sum: they stay on their simplex
    a DPP by a symmetric kernel L        L = B·Bᵀ, θ = B
    a DPP by a nonsymmetric kernel L     L = B·Bᵀ + C − Cᵀ, θ = (B, C)
    a DPP by a factor B of its kernel    θ = B

Whatever θ is, the circuit is a distribution. Other numbers stay as they are: those of sums with negative weights, of
kernels K, of trees, and weights that are 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pgcc.backend.cofactors import Matrices
from pgcc.errors import PgccError
from pgcc.ir.circuit import Circuit
from pgcc.ir.node import ONE, Node, Op, det, rebuild, weighted_sum
from pgcc.ir.numbers import mul
from pgcc.lowering.determinant import DetStructure
from pgcc.lowering.parameters import Parametrized


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


@dataclass(frozen=True)
class Kernel:
    """A determinant det(I + diag(f)·L), of which `which` it is; with a skew-symmetric part or without."""

    which: int
    n: int
    skew: bool

    def start(self, matrices: Matrices) -> np.ndarray:
        """θ of a kernel: B from its symmetric part, and half of the skew-symmetric one."""
        L = matrices[2].T
        values, Q = np.linalg.eigh((L + L.T) / 2)
        B = Q * np.sqrt(np.maximum(values, 0.0)) @ Q.T
        return np.concatenate([B.ravel(), (L / 2).ravel()]) if self.skew else B.ravel()

    def matrices(self, theta: np.ndarray) -> Matrices:
        """M0, U and V of θ."""
        B, C = self._parts(theta)
        return np.eye(self.n), np.eye(self.n), (B @ B.T + C - C.T).T

    def gradient(self, theta: np.ndarray, slopes: Matrices) -> np.ndarray:
        """By θ, from that by V = Lᵀ."""
        B, _ = self._parts(theta)
        G = slopes[2].T
        by_b = (G + G.T) @ B
        return np.concatenate([by_b.ravel(), (G - G.T).ravel()]) if self.skew else by_b.ravel()

    def _parts(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        B = theta[: self.n**2].reshape(self.n, self.n)
        return B, theta[self.n**2 :].reshape(self.n, self.n) if self.skew else np.zeros((self.n, self.n))


@dataclass(frozen=True)
class Factor:
    """A determinant det(I + Bᵀ·diag(f)·B) with B of n × r, of which `which` it is."""

    which: int
    n: int
    rank: int

    def start(self, matrices: Matrices) -> np.ndarray:
        """θ = B."""
        return matrices[1].T.ravel()

    def matrices(self, theta: np.ndarray) -> Matrices:
        """M0 = I, U = V = Bᵀ."""
        B = theta.reshape(self.n, self.rank)
        return np.eye(self.rank), B.T, B.T

    def gradient(self, theta: np.ndarray, slopes: Matrices) -> np.ndarray:
        """By B, which stands in both."""
        return (slopes[1] + slopes[2]).T.ravel()


class Parameters:
    """All trainable numbers of a circuit, one after another in a vector.

    Parameters
    ----------
    parametrized : Parametrized
        The circuit's program (of `with_weights_only`).
    """

    def __init__(self, parametrized: Parametrized):
        program = parametrized.program
        self.parametrized, self.weights = parametrized, program.weights.copy()
        self.matrices: list[Matrices] = [structure.floats for structure in program.structures]
        self.sums = [simplex for node, first in parametrized.sums if (simplex := self._simplex(node, first))]
        self.dets = [found for i, s in enumerate(program.structures) if (found := _kernel(i, s)) is not None]
        if not self.sums and not self.dets:
            raise PgccError("the circuit has nothing to learn: no sum of several positive weights, no kernel of a DPP")
        starts = [one.start(self.weights) for one in self.sums]
        starts += [one.start(self.matrices[one.which]) for one in self.dets]
        self.ends = np.cumsum([len(start) for start in starts])
        self.start = np.concatenate(starts)

    def _simplex(self, node: Node, first: int) -> Simplex | None:
        weights = self.weights[first : first + len(node.weights)]
        which = first + np.flatnonzero(weights > 0.0)
        if len(which) < 2 or (weights < 0.0).any():
            return None
        return Simplex(which, float(weights.sum()))

    def split(self, theta: np.ndarray) -> list[np.ndarray]:
        """θ of every sum, then of every determinant."""
        return np.split(theta, self.ends[:-1])

    def numbers(self, theta: np.ndarray) -> tuple[np.ndarray, list[Matrices]]:
        """All weights and matrices of the program."""
        weights, matrices, parts = self.weights.copy(), list(self.matrices), self.split(theta)
        for one, part in zip(self.sums, parts, strict=False):
            weights[one.which] = one.numbers(part)
        for det_, part in zip(self.dets, parts[len(self.sums) :], strict=True):
            matrices[det_.which] = det_.matrices(part)
        return weights, matrices

    def gradient(self, theta: np.ndarray, by_weights: np.ndarray, by_matrices: list[Matrices]) -> np.ndarray:
        """By θ, from those by weights and matrices."""
        parts = self.split(theta)
        slopes = [one.gradient(part, by_weights[one.which]) for one, part in zip(self.sums, parts, strict=False)]
        for det_, part in zip(self.dets, parts[len(self.sums) :], strict=True):
            slopes.append(det_.gradient(part, by_matrices[det_.which]))
        return np.concatenate(slopes)

    def circuit(self, circuit: Circuit, theta: np.ndarray) -> Circuit:
        """The circuit with the numbers of θ."""
        weights, matrices = self.numbers(theta)
        at = dict(self.parametrized.sums)
        which = {node: i for i, node in enumerate(self.parametrized.dets)}
        new: list[Node] = []
        for node, below in zip(circuit.order, circuit.links, strict=True):
            children = [new[c] for c in below]
            if node.op is Op.SUM:
                new.append(weighted_sum(weights[at[node] :][: len(children)].tolist(), children))
            elif node.op is Op.DET:
                k = len(children) // 2
                new.append(det(*matrices[which[node]], children[:k], children[k:]))
            else:
                new.append(rebuild(node, children))
        return Circuit(new[-1], circuit.variables)


def _kernel(which: int, structure: DetStructure) -> Kernel | Factor | None:
    """What can be learned of a determinant."""
    _, u, v = structure.floats
    if structure.size is not None or not structure.identity_m0:
        return None
    if structure.identity_u:
        symmetric = np.array_equal(v, v.T)
        definite = np.linalg.eigvalsh((v + v.T) / 2)[0] >= -1e-9 * max(1.0, np.abs(v).max()) if len(v) else False
        return Kernel(which, len(v), not symmetric) if definite else None
    return Factor(which, u.shape[1], u.shape[0]) if np.array_equal(u, v) else None


def with_weights_only(circuit: Circuit) -> Circuit:
    """The same polynomial with w·c·1 as (w·c)·1: what stands in a sum is a weight, and can be learned.

    Examples
    --------
    >>> import pgcc
    >>> with_weights_only(pgcc.parse("0.3*a + 0.7")).root.weights
    (Fraction(3, 10), Fraction(7, 10))
    """
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
    return Circuit(new[-1], circuit.variables)
