"""How the children of a determinant that are in are drawn: which sampler its matrices allow, and its tables.

Of det(M0 + U·diag(f/y)·Vᵀ) the set T has the probability c_T · Π_T f · Π_{not T} y, up to a factor. Given the values f
and y of the children, a child with y = 0 is surely in, one with f = 0 is surely out, and the others are free, with the
odds φ = f/y. What a sampler prepares is off by less than `TOLERANCE` in total variation, or it says that it cannot.
"""

from __future__ import annotations

from functools import cached_property
from itertools import compress

import numpy as np

from pgcc.determinants.kernels.laplacian import Graph
from pgcc.determinants.kernels.sampling_sets import ELIMINATION, WALKS
from pgcc.determinants.kernels.sampling_trees import Arcs, arcs_of, count_steps
from pgcc.determinants.tables import TOLERANCE, SetSampler, Tables
from pgcc.determinants.vectors import Eigenvectors
from pgcc.ir.interruptible import eigh, eigvalsh
from pgcc.ir.matrix import Matrix
from pgcc.ir.numbers import UNIT
from pgcc.kernels.policy import tier
from pgcc.program.determinant import DetStructure, Laplacian

# An eigenvalue is semidefinite if it is not below this, relative to the largest: what it lacks is rounding.
_NOISE = 1e-12
# What the entries of a kernel may be off by that is to be judged at all.
_KNOWN = 1e-10
# Random walks: trees that are tried first; the most steps that each may take, so that the rounding of an arc's
# probability does not matter; so few that no other is sought; how many multiply-adds of that one a step costs; and
# how many steps a probability costs, besides its own multiply-adds.
_TREES, _MOST_STEPS, _FEW_STEPS, _STEP, _ASKED = 3, 3_000_000, 10_000, 50, 1_000
# Steps to a tree that may be interpreted; longer walks are compiled, however small the graph is.
_INTERPRETED_STEPS = 1_000
_SMALLEST = -1000  # binary exponents of weights beside the largest, near 1


def find_set_sampler(structure: DetStructure) -> SetSampler | None:
    """The sampler that a determinant's matrices allow; None unless its coefficients are known not to be negative."""
    if not structure.in_range:
        return None
    _, u, v = structure.floats
    possible: np.ndarray = np.logical_and(u.any(axis=0), v.any(axis=0))
    if not possible.all():
        some = find_set_sampler(_with_columns(structure, possible))
        return None if some is None else Some(some, possible)
    if structure.laplacian is not None and structure.size is None:
        return Walks(structure, structure.laplacian)
    return _eigenvectors(structure) if structure.symmetric else _by_marginals(structure)


def _by_marginals(structure: DetStructure) -> SetSampler | None:
    """The sampler for any matrices, by their marginal kernel K = Vᵀ·N⁻¹·U, N = M0 + U·Vᵀ, where all odds are 1.

    Enough for its being one: K is symmetric, with eigenvalues between 0 and 1; or K + Kᵀ − 2·Kᵀ·K is positive
    semidefinite, which with L = K·(I − K)⁻¹ is the same of L + Lᵀ.
    """
    m0, u, v = structure.floats
    if not np.linalg.slogdet(m0 + u @ v.T)[0] > 0.0:
        return None
    K, off = _marginal_kernel(m0, u, v)
    noise = max(_NOISE, off)
    if off <= _KNOWN and (np.abs(K - K.T) <= 4 * off).all():
        return _from_marginal_kernel(K / 2 + K.T / 2, structure, off / UNIT)
    if structure.size is None and (
        structure.nonnegative or (off <= _KNOWN and eigvalsh(K + K.T - 2 * K.T @ K).min(initial=0.0) >= -noise)
    ):
        return Elimination(structure)
    return None


def _marginal_kernel(m0: np.ndarray, u: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, float]:
    """K = Vᵀ·N⁻¹·U, N = M0 + U·Vᵀ, and what its entries are off by: r roundings of the products, and those of N itself.

    An N off by E makes N⁻¹ off by N⁻¹·E·N⁻¹, which is far more than its entries are rounded by where N is nearly
    singular. |N⁻¹|·|N|·|N⁻¹| adds up absolute values, and four times it was more than E did in all of many trials.
    """
    inverse = np.linalg.inv(m0 + u @ v.T)
    left, right = np.abs(v.T) @ np.abs(inverse), np.abs(inverse) @ np.abs(u)
    sizes = np.abs(m0) + np.abs(u) @ np.abs(v.T)
    products, through = (left @ np.abs(u)).max(initial=0.0), (left @ sizes @ right).max(initial=0.0)
    return v.T @ inverse @ u, float(np.max([len(m0) * products, 4.0 * through, 1.0])) * UNIT


def _with_columns(structure: DetStructure, kept: np.ndarray) -> DetStructure:
    """The same determinant without the other children."""
    m0, *others = structure.matrices
    u, v = (
        Matrix(m.floats()[:, kept]) if m.is_float else Matrix([list(compress(row, kept)) for row in m.numbers()])
        for m in others
    )
    counted = None if structure.counted is None else tuple(compress(structure.counted, kept))
    return DetStructure((m0, u, v), structure.size, counted)


class Some(SetSampler):
    """The sampler of those children that are not multiplied by 0: the others are never in."""

    def __init__(self, some: SetSampler, possible: np.ndarray):
        self.some, self.possible, self.name = some, possible, some.name

    def prepare(self, phi: np.ndarray, inside: np.ndarray) -> Tables | None:
        if (inside & ~self.possible).any():
            return None
        tables = self.some.prepare(phi[self.possible], inside[self.possible])
        return None if tables is None else tables.among(np.flatnonzero(self.possible), inside)


# -- symmetric kernels: eigenvectors -------------------------------------------------------------------------


def _eigenvectors(structure: DetStructure) -> Eigenvectors | None:
    """det(M0 + Bᵀ·diag(φ)·B) with M0 positive semidefinite, from any of the symmetric forms."""
    m0, _, v = structure.floats
    if structure.ratio is not None:
        if not structure.nonnegative and not _is_positive(eigvalsh(m0)):
            return None
        return Eigenvectors(m0, v.T * np.sqrt(structure.ratio)[:, None], structure)
    if structure.identity_m0:
        spread = np.sqrt(np.maximum(np.diag(v), 0.0))
        scale = np.where(spread > 0.0, spread, 1.0)
        values, Q = eigh(v / scale / scale[:, None])  # items of very different sizes lose no accuracy
        if not _is_positive(values):
            return None
        B = scale[:, None] * Q * np.sqrt(np.maximum(values, 0.0))
        return Eigenvectors(np.eye(len(B)), B, structure, rows_off=1.0)
    return _from_marginal_kernel(v, structure, 1.0)


def _from_marginal_kernel(K: np.ndarray, structure: DetStructure, off: float) -> Eigenvectors | None:
    """Of a symmetric K whose eigenvalues are off by so many roundings."""
    values, Q = eigh(K)
    if not _is_positive(values) or values.max(initial=0.0) > 1.0 + _NOISE:
        return None
    values = np.clip(values, 0.0, 1.0)
    return Eigenvectors(np.diag(1.0 - values), Q * np.sqrt(values), structure, off)


def _is_positive(values: np.ndarray) -> bool:
    """Whether sorted eigenvalues are those of a semidefinite matrix, but for rounding."""
    return not len(values) or bool(values[0] >= -_NOISE * max(values[-1], 0.0))


# -- kernels that are not symmetric: elimination -------------------------------------------------------------


class Elimination(SetSampler):
    """K = diag(φ)·Vᵀ·(M0 + U·diag(φ)·Vᵀ)⁻¹·U, one item after another."""

    name = "elimination"

    def __init__(self, structure: DetStructure):
        self.m0, self.u, self.v = structure.floats

    def prepare(self, phi: np.ndarray, inside: np.ndarray) -> Tables | None:
        odds = np.where(inside, 1.0, phi)  # that of an item which is in does not matter
        items, given = np.flatnonzero(~inside & (phi > 0.0)), np.flatnonzero(inside)
        try:
            K, error = _marginal_kernel(self.m0, self.u, self.v * odds)
            kernel = K[np.ix_(items, items)]
            if len(given):
                block = np.linalg.inv(K[np.ix_(given, given)])
                before, after = K[np.ix_(items, given)], K[np.ix_(given, items)]
                error *= (1.0 + np.abs(before @ block).sum(axis=1).max(initial=0.0)) * (
                    1.0 + np.abs(block @ after).sum(axis=0).max(initial=0.0)
                )
                kernel = kernel - before @ block @ after
        except np.linalg.LinAlgError:
            return None
        if not error * max(1, len(items)) <= TOLERANCE:
            return None
        return Tables(ELIMINATION, inside, len(items), items, kernel.ravel())


# -- spanning trees: random walks ----------------------------------------------------------------------------


class Walks(SetSampler):
    """Wilson's algorithm; as any other kernel where weights of very different sizes keep the walks in a few nodes.

    Whether they do is tried beforehand, with walks that are not used: to give up in the middle would be biased.
    """

    name = "random walks"

    def __init__(self, structure: DetStructure, graph: Laplacian):
        self.structure, self.graph = structure, graph

    @cached_property
    def _otherwise(self) -> SetSampler | None:
        return _eigenvectors(self.structure) if self.structure.symmetric else Elimination(self.structure)

    def prepare(self, phi: np.ndarray, inside: np.ndarray) -> Tables | None:
        walks, steps = self._walks(phi, inside)
        r, k = len(self.graph.kill), len(phi)
        if walks is not None and steps <= max(_FEW_STEPS, r * r * k // _STEP):
            return walks
        tables = self._otherwise.prepare(phi, inside) if self._otherwise else None
        # one variable after another, two probabilities each, is slower than all but very long walks
        return tables or (walks if steps <= 2 * k * (_ASKED + r**3 // _STEP) else None)

    def _walks(self, phi: np.ndarray, inside: np.ndarray) -> tuple[Tables | None, int]:
        """The arcs out of every node, and the steps to a tree; None if there are none, or too many."""
        graph, r, k = self.graph, len(self.graph.kill), len(phi)
        scaled = _near_one(phi, graph.weight, graph.kill)
        if scaled is None:
            return None, 0
        weight, kill = np.where(inside, 1.0, scaled[0]), scaled[1]
        start, heads, edges = (np.zeros(size, np.int64) for size in (r + 2, 2 * k + r, 2 * k + r))
        cumulative = np.zeros(2 * k + r)
        weighted = Graph(graph.directed, graph.tail, graph.head, weight, kill)
        nodes = arcs_of(weighted, inside, Arcs(start, heads, edges, cumulative))
        if nodes < 0:
            return None, 0
        arcs = int(start[nodes])
        flat = np.concatenate([start[: nodes + 1], heads[:arcs], edges[:arcs]])
        steps = count_steps(flat, nodes, cumulative, k, _TREES, _INTERPRETED_STEPS)
        if steps < 0:
            with tier(_TREES * _MOST_STEPS):
                steps = count_steps(flat, nodes, cumulative, k, _TREES, _MOST_STEPS)
        if steps < 0:
            return None, 0
        each = steps // _TREES
        return Tables(WALKS, inside, nodes, flat, cumulative[:arcs].copy(), steps=each), each


def _near_one(phi: np.ndarray, weight: np.ndarray, kill: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """φ·weight and the rates, times the power of two that brings the largest near 1; None where digits would be lost.

    Only the quotients of weights matter to a walk.
    """
    odds, of_odds = np.frexp(phi)
    factor, of_factor = np.frexp(weight)
    rate, of_rate = np.frexp(kill)
    numbers = np.concatenate([odds * factor, rate])
    exponents = np.concatenate([of_odds + of_factor, of_rate])
    there = numbers > 0.0
    top = int(exponents[there].max(initial=0))
    if (exponents[there] - top < _SMALLEST).any():
        return None
    scaled = np.ldexp(numbers, np.where(there, exponents - top, 0))
    return scaled[: len(phi)], scaled[len(phi) :]
