"""Properties of the matrices of a determinant: symmetry, Laplacians, coefficients that cannot be negative.

They are read off the matrices M0, U, V of  det(M0 + Σ f_i·u_i·v_iᵀ), and decide which ways of computing it are right.
They are properties of the exact numbers: two different matrices may have the same nearest doubles.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from pgcc.ir.matrix import Matrix
from pgcc.ir.node import Node
from pgcc.ir.numbers import UNIT
from pgcc.linalg import surely_definite
from pgcc.locks import cached_property

_NORMAL, _ORDINARY = 2.0**-960, 2.0**-400
# The most numbers in matrices that are compared as rationals.
_MOST_EXACT = 1 << 16
# If the product of two doubles is at least this, its rounding error is a double.
_SMALLEST_EXACT = 2.0**-900


class Laplacian(NamedTuple):
    """diag(kill) + Σ f_e·u_e·v_eᵀ of a graph whose edges are the children of a determinant.

    Attributes
    ----------
    tail, head : int64 arrays
        The ends of every edge; node r, the ground, has no row.
    weight : float64 array
        The weight of every edge.
    kill : float64 array
        κ, the killing rates: for every node but the ground, the weight of its edge to the ground.
    directed : bool
    """

    tail: np.ndarray
    head: np.ndarray
    weight: np.ndarray
    kill: np.ndarray
    directed: bool


@dataclass(frozen=True, eq=False)
class DetStructure:
    """The matrices of a determinant, and their properties."""

    matrices: tuple[Matrix, Matrix, Matrix]
    size: int | None = None
    counted: tuple[bool, ...] | None = None  # by child, whether it counts for the size; None if all do

    @staticmethod
    def of(node: Node) -> DetStructure:
        """The structure of a Det node, kept with the node, so that its properties are computed once."""
        found = _KNOWN.get(node)
        if found is None:
            found = _KNOWN[node] = DetStructure(node.matrices, node.size, node.counted)
        return found

    @property
    def rank(self) -> int:
        """The number of rows r of M0."""
        return self.matrices[0].shape[0]

    @property
    def children(self) -> int:
        """The number of children k."""
        return self.matrices[1].shape[1]

    @cached_property
    def floats(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """M0, U, V as doubles."""
        m0, u, v = self.matrices
        return m0.floats(), u.floats(), v.floats()

    @cached_property
    def doubles(self) -> tuple[bool, ...]:
        """Whether M0, U and V hold nothing but doubles."""
        pairs = zip(self.matrices, self.floats, strict=True)
        return tuple(m.is_float or all(map(_all_equal, m.numbers(), rounded.tolist())) for m, rounded in pairs)

    @cached_property
    def in_range(self) -> bool:
        """Whether no entry overflows or underflows when it is rounded to a double.

        A tiny entry of a kernel may underflow: errors are relative to the diagonal entries of its row and column.
        """
        for matrix, rounded in zip(self.matrices, self.floats, strict=True):
            size = np.abs(rounded)
            lost = (size < 2.0**-960) | ~np.isfinite(size)
            if self.identity_u:
                ordinary = (np.diag(size) > _ORDINARY) & (np.diag(size) < 1.0 / _ORDINARY)
                lost &= ~(ordinary & ordinary[:, None] & np.isfinite(size))
            if any(matrix.numbers()[i][j] != 0 for i, j in np.argwhere(lost & ~_zeros(matrix, rounded)).tolist()):
                return False
        return True

    @cached_property
    def identity_u(self) -> bool:
        """Whether U = I: the determinant of a kernel, det(M0 + diag(f)·Vᵀ)."""
        u = self.floats[1]
        return u.shape[0] == u.shape[1] and np.array_equal(u, np.eye(len(u))) and self.doubles[1]

    @cached_property
    def identity_m0(self) -> bool:
        """Whether M0 = I."""
        return np.array_equal(self.floats[0], np.eye(self.rank)) and self.doubles[0]

    @cached_property
    def is_marginal_kernel(self) -> bool:
        """Whether it is det(I − K + diag(f)·K): exactly the identity where everything is free (φ = 1)."""
        if not self.identity_u:
            return False
        m0, _, v = self.floats
        off = ~np.eye(self.rank, dtype=bool)
        if not np.array_equal(m0[off], -v.T[off]):
            return False
        if not (self.doubles[0] and self.doubles[2]):
            return self._adds_up_to_one()
        diagonals = zip(np.diag(m0).tolist(), np.diag(v).tolist(), strict=True)
        return all(Fraction(a) + Fraction(b) == 1 for a, b in diagonals)

    def _adds_up_to_one(self) -> bool:
        """Whether M0 + Vᵀ = I, in exact numbers."""
        m0, v = (self.matrices[i].numbers() for i in (0, 2))
        n = range(self.rank)
        off = all(m0[i][j] == -v[j][i] for i in n for j in n if i != j)
        return off and all(Fraction(m0[i][i]) + Fraction(v[i][i]) == 1 for i in n)

    @cached_property
    def ratio(self) -> np.ndarray | None:
        """s with u_i = s_i·v_i, s_i > 0, where there is one and U is not I; 1 for a column of zeros."""
        _, u, v = self.floats
        if self.identity_u:
            return None
        if not u.size:
            return np.ones(self.children)
        top = np.abs(v).argmax(axis=0), np.arange(self.children)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
            ratio = np.where((u[top] == 0.0) & (v[top] == 0.0), 1.0, u[top] / v[top])
            fits = np.isfinite(ratio).all() and (ratio > 0).all() and np.array_equal(u, v * ratio)
        return ratio if fits and self._is_exact_ratio(ratio) else None

    def _is_exact_ratio(self, ratio: np.ndarray) -> bool:
        """Whether U = V·diag(s) holds in exact numbers, for an s without zeros or negative numbers."""
        if all(self.doubles[1:]) and not _products_round(self.floats[2], ratio).any():
            return True
        if self.rank * self.children > _MOST_EXACT:
            return False
        s, (u, v) = self._column_ratios, (m.exact() for m in self.matrices[1:])
        columns = zip(s, zip(*u, strict=True), zip(*v, strict=True), strict=True)
        return all(x > 0 and all(a == x * b for a, b in zip(*pair, strict=True)) for x, *pair in columns)

    @property
    def _column_ratios(self) -> list[Fraction]:
        """u_i / v_i, exactly, by the first entry of v_i that is not 0; 1 for a column of zeros."""
        found = []
        for u, v in zip(*(zip(*m.numbers(), strict=True) for m in self.matrices[1:]), strict=True):
            row = next((row for row, x in enumerate(v) if x), None)
            found.append(Fraction(1) if row is None else Fraction(u[row]) / Fraction(v[row]))
        return found

    @cached_property
    def exact_ratio(self) -> list[Fraction]:
        """The same s, exactly; 1 where there is none."""
        return [Fraction(1)] * self.children if self.ratio is None or not self.rank else self._column_ratios

    @cached_property
    def symmetric(self) -> bool:
        """Whether Vᵀ·N⁻¹·U is symmetric at every base N, up to the factors s_i of its columns."""
        if not self._is_symmetric(0):
            return False
        if self.identity_u and self._is_symmetric(2):
            return self.identity_m0 or self.is_marginal_kernel
        return self.ratio is not None

    def _is_symmetric(self, which: int) -> bool:
        """Whether M0 or V (0 or 2) is a symmetric matrix, in exact numbers."""
        rounded = self.floats[which]
        if not np.array_equal(rounded, rounded.T) or self.doubles[which]:
            return bool(np.array_equal(rounded, rounded.T))
        rows = self.matrices[which].numbers()
        return all(x == rows[j][i] for i, row in enumerate(rows) for j, x in enumerate(row[:i]))

    @cached_property
    def laplacian(self) -> Laplacian | None:
        """The graph, where M0 = diag(κ ≥ 0) and every u_i·v_iᵀ is w ≥ 0 times the Laplacian of an edge."""
        m0, u, v = self.floats
        r, k = u.shape
        if r == 0 or k == 0 or not self.doubles[2] or not (self.diagonal_m0 and (np.diag(m0) >= 0).all()):
            return None
        if not (self.doubles[1] or np.array_equal(u == 0.0, _zeros(self.matrices[1], u))):
            return None  # an entry is 0 only as a double
        count_u, count_v = (np.count_nonzero(m, axis=0) for m in (u, v))
        if (count_v == 0).any() or (count_v > 2).any() or (count_u == 0).any() or (count_u > 2).any():
            return None
        columns = np.arange(k)
        directed = bool((count_u < count_v).any())
        if directed and (count_u > 1).any():
            return None
        tail = np.abs(u).argmax(axis=0)
        others = v.copy()
        others[tail, columns] = 0.0
        head = np.where(count_v == 2, np.abs(others).argmax(axis=0), r)
        alpha, beta = u[tail, columns], v[tail, columns]
        ends = (count_v == 2, head % r, columns)
        if (alpha * beta <= 0).any() or (v[ends[1], columns] != -beta)[ends[0]].any():
            return None
        if not directed and (count_u != count_v).any():
            return None
        if not directed and (u[ends[1], columns] != -alpha)[ends[0]].any():
            return None
        if not (alpha * beta > _NORMAL).all() or not np.isfinite(alpha * beta).all():
            return None
        if not (directed or self.doubles[1]) and any(map(sum, zip(*self._exact_ends(ends[0]), strict=True))):
            return None
        return Laplacian(tail.astype(np.int64), head.astype(np.int64), alpha * beta, np.diag(m0).copy(), directed)

    def _exact_ends(self, edges: np.ndarray) -> list[list[Fraction]]:
        """The entries of U in the columns of these edges, row by row. (Those of a column must add up to 0.)"""
        return [[row[i] for i in np.flatnonzero(edges).tolist()] for row in self.matrices[1].exact()]

    @cached_property
    def nonnegative(self) -> bool:
        """Whether no coefficient of it, as a polynomial in its children and their complements, is negative: proved."""
        if self.laplacian is not None:
            return True
        m0, _, v = self.floats
        if self.ratio is not None and self._is_symmetric(0):
            return (self.diagonal_m0 and bool((np.diag(m0) >= 0).all())) or surely_definite(m0)
        if self.identity_u and self.identity_m0:
            return surely_definite(v + v.T, 2.0 * UNIT * (np.abs(v) + np.abs(v.T)))
        if self.is_marginal_kernel and self._is_symmetric(2):
            return surely_definite(v) and surely_definite(m0)
        return False

    @cached_property
    def diagonal_m0(self) -> bool:
        """Whether M0 is 0 beside its diagonal, in exact numbers, and the sign of its diagonal that of its doubles."""
        zero = _zeros(self.matrices[0], self.floats[0])
        lost = (self.floats[0] == 0.0) & ~zero
        return bool((zero | np.eye(self.rank, dtype=bool)).all()) and not lost.any()


_KNOWN: WeakKeyDictionary[Node, DetStructure] = WeakKeyDictionary()


def _products_round(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Where the product of two doubles is not a double (Dekker's exact product), or so small that this cannot tell."""
    split = 2.0**27 + 1.0
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        high_a, high_b = split * a - (split * a - a), split * b - (split * b - b)
        low_a, low_b = a - high_a, b - high_b
        product = a * b
        lost = ((high_a * high_b - product) + high_a * low_b + low_a * high_b) + low_a * low_b
    small = (np.abs(product) < _SMALLEST_EXACT) & (a != 0.0) & (b != 0.0)
    return ~(lost == 0.0) | small  # NaN where the splitting overflows


def _all_equal(a: list, b: list) -> bool:
    return all(x == y for x, y in zip(a, b, strict=True))


def _zeros(matrix: Matrix, rounded: np.ndarray) -> np.ndarray:
    """Which entries are 0 themselves, not only as doubles."""
    if matrix.is_float:
        return rounded == 0.0
    return np.array([[x == 0 for x in row] for row in matrix.numbers()], bool).reshape(rounded.shape)
