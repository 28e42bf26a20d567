"""Random sets of children of a determinant: the sampler that its matrices allow, and the tables for its kernel.

In det(M0 + U·diag(f/y)·Vᵀ), the set T has the probability c_T · Π_T f · Π_{not T} y, up to normalization. Given the
values f and y of the children, a child with y = 0 is surely in, one with f = 0 is surely out, and the others are free,
with the odds φ = f/y. Symmetric kernels are sampled by eigenvectors (`vectors`), spanning trees by random walks, and
all others by elimination; the algorithms are in `kernels/sampling_sets` and `kernels/sampling_trees`. `prepare` returns
tables whose distribution is within `TOLERANCE` in total variation, or None. `evaluate/top_down` calls this.
"""

from __future__ import annotations

from itertools import compress

import numpy as np

from pgcc.determinants.kernels.picking import ELIMINATION, WALKS
from pgcc.determinants.kernels.sampling_trees import Arcs, arcs_of, count_steps
from pgcc.determinants.sampling_tables import TOLERANCE, SetSampler, Tables
from pgcc.determinants.vectors import Eigenvectors
from pgcc.ir.matrix import Matrix
from pgcc.ir.numbers import UNIT
from pgcc.kernels.policy import tier
from pgcc.linalg import eigh, eigvalsh
from pgcc.locks import cached_property
from pgcc.program.det_structure import DetStructure, Laplacian

# Eigenvalues down to minus this, relative to the largest, are taken for rounded zeros.
_NOISE = 1e-12
# The largest error of a kernel's entries with which its eigenvalues are tested at all.
_KNOWN = 1e-10
# Random walks: the number of trees drawn as a trial; the most steps to a tree, so that the rounding errors of the arcs'
# probabilities do not matter; the steps up to which no other sampler is considered; the cost of a step in
# multiply-adds; and the cost of computing a probability, besides its multiply-adds, in steps.
_TREES, _MOST_STEPS, _FEW_STEPS, _STEP, _ASKED = 3, 3_000_000, 10_000, 50, 1_000
# The most steps of a trial that are interpreted; longer walks are compiled, however small the graph is.
_INTERPRETED_STEPS = 1_000
_SMALLEST = -1000  # the smallest binary exponent of a weight, where the largest is near 0


def find_set_sampler(structure: DetStructure) -> SetSampler | None:
    """The sampler that a determinant's matrices allow; None unless its coefficients are known not to be negative."""
    if not structure.in_range:
        return None
    _, u, v = structure.floats
    possible: np.ndarray = np.logical_and(u.any(axis=0), v.any(axis=0))
    if not possible.all():
        some = find_set_sampler(_with_columns(structure, possible))
        return None if some is None else OnPossibleChildren(some, possible)
    if structure.laplacian is not None and structure.size is None:
        return Walks(structure, structure.laplacian)
    return _symmetric_sampler(structure) if structure.symmetric else _asymmetric_sampler(structure)


def _asymmetric_sampler(structure: DetStructure) -> SetSampler | None:
    """The sampler for any matrices, by their marginal kernel K = Vᵀ·N⁻¹·U, N = M0 + U·Vᵀ, where all odds are 1.

    Sufficient conditions for K to be a marginal kernel: K is symmetric, with eigenvalues between 0 and 1; or
    K + Kᵀ − 2·Kᵀ·K is positive semidefinite, which is equivalent to L + Lᵀ being so, for L = K·(I − K)⁻¹.
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
    """K = Vᵀ·N⁻¹·U, N = M0 + U·Vᵀ, and an estimate of the errors of its entries.

    The products contribute r roundings. A backward error E of N changes N⁻¹ by N⁻¹·E·N⁻¹, which is far more than the
    rounding of its entries where N is nearly singular; it is estimated by 4·|N⁻¹|·|N|·|N⁻¹| roundings, which exceeded
    the actual errors in all of many trials.
    """
    inverse = np.linalg.inv(m0 + u @ v.T)
    left, right = np.abs(v.T) @ np.abs(inverse), np.abs(inverse) @ np.abs(u)
    sizes = np.abs(m0) + np.abs(u) @ np.abs(v.T)
    products, through = (left @ np.abs(u)).max(initial=0.0), (left @ sizes @ right).max(initial=0.0)
    return v.T @ inverse @ u, float(np.max([len(m0) * products, 4.0 * through, 1.0])) * UNIT


def _with_columns(structure: DetStructure, kept: np.ndarray) -> DetStructure:
    """The determinant with only the `kept` children."""
    m0, *others = structure.matrices
    u, v = (
        Matrix(m.floats()[:, kept]) if m.is_float else Matrix([list(compress(row, kept)) for row in m.numbers()])
        for m in others
    )
    counted = None if structure.counted is None else tuple(compress(structure.counted, kept))
    return DetStructure((m0, u, v), structure.size, counted)


class OnPossibleChildren(SetSampler):
    """A sampler of the possible children; the others, whose column of U or V is 0, are never in."""

    def __init__(self, some: SetSampler, possible: np.ndarray):
        self.some, self.possible, self.name = some, possible, some.name

    def prepare(self, phi: np.ndarray, inside: np.ndarray) -> Tables | None:
        if (inside & ~self.possible).any():
            return None
        tables = self.some.prepare(phi[self.possible], inside[self.possible])
        return None if tables is None else tables.among(np.flatnonzero(self.possible), inside)


# -- symmetric kernels: eigenvectors -------------------------------------------------------------------------


def _symmetric_sampler(structure: DetStructure) -> Eigenvectors | None:
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
    """The sampler for a symmetric K, whose eigenvalues have errors of `off` roundings; None if they leave [0, 1]."""
    values, Q = eigh(K)
    if not _is_positive(values) or values.max(initial=0.0) > 1.0 + _NOISE:
        return None
    values = np.clip(values, 0.0, 1.0)
    return Eigenvectors(np.diag(1.0 - values), Q * np.sqrt(values), structure, off)


def _is_positive(values: np.ndarray) -> bool:
    """Whether sorted eigenvalues are those of a positive semidefinite matrix, up to rounding."""
    return not len(values) or bool(values[0] >= -_NOISE * max(values[-1], 0.0))


# -- kernels that are not symmetric: elimination -------------------------------------------------------------


class Elimination(SetSampler):
    """Elimination in K = diag(φ)·Vᵀ·(M0 + U·diag(φ)·Vᵀ)⁻¹·U, one item after another."""

    name = "elimination"

    def __init__(self, structure: DetStructure):
        self.m0, self.u, self.v = structure.floats

    def prepare(self, phi: np.ndarray, inside: np.ndarray) -> Tables | None:
        odds = np.where(inside, 1.0, phi)  # the odds of an item that is surely in do not matter
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
    """Wilson's algorithm, or another sampler where weights of very different sizes trap the walks among a few nodes.

    This is decided in advance, by trial walks that are not used: to abandon long walks would bias the samples.
    """

    name = "random walks"

    def __init__(self, structure: DetStructure, graph: Laplacian):
        self.structure, self.graph = structure, graph

    @cached_property
    def _otherwise(self) -> SetSampler | None:
        """The sampler to use if random walks are too long."""
        return _symmetric_sampler(self.structure) if self.structure.symmetric else Elimination(self.structure)

    def prepare(self, phi: np.ndarray, inside: np.ndarray) -> Tables | None:
        walks, steps = self._walks(phi, inside)
        r, k = len(self.graph.kill), len(phi)
        if walks is not None and steps <= max(_FEW_STEPS, r * r * k // _STEP):
            return walks
        tables = self._otherwise.prepare(phi, inside) if self._otherwise else None
        # without tables, every variable is drawn by two probabilities, which is slower than all but very long walks
        return tables or (walks if steps <= 2 * k * (_ASKED + r**3 // _STEP) else None)

    def _walks(self, phi: np.ndarray, inside: np.ndarray) -> tuple[Tables | None, int]:
        """The tables of the arcs out of every node, and the steps to a tree; None if there is no tree, or too many."""
        graph, r, k = self.graph, len(self.graph.kill), len(phi)
        scaled = _near_one(phi, graph.weight, graph.kill)
        if scaled is None:
            return None, 0
        weight, kill = np.where(inside, 1.0, scaled[0]), scaled[1]
        start, heads, edges = (np.zeros(size, np.int64) for size in (r + 2, 2 * k + r, 2 * k + r))
        cumulative = np.zeros(2 * k + r)
        nodes = arcs_of(graph._replace(weight=weight, kill=kill), inside, Arcs(start, heads, edges, cumulative))
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
    """φ·weight and the killing rates, times the power of two that brings the largest near 1; None if others underflow.

    A walk depends only on the quotients of weights.
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
