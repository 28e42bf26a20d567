"""What is special about the matrices of a determinant: symmetry, Laplacians, coefficients that cannot be negative.

Everything here is read off the numbers M0, U, V of  det(M0 + Σ f_i·u_i·v_iᵀ), and decides which forms of it are right.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from pgcc.ir.matrix import Matrix
from pgcc.ir.node import Node
from pgcc.ir.numbers import UNIT

_NORMAL, _ORDINARY = 2.0**-960, 2.0**-400
# Numbers in matrices that are still compared as rationals.
_MOST_EXACT = 1 << 16


@dataclass(frozen=True, eq=False)
class Laplacian:
    """diag(kill) + Σ f_e·u_e·v_eᵀ of a graph: edge e from `tail` to `head` (node r is the ground) with `weight`."""

    tail: np.ndarray
    head: np.ndarray
    weight: np.ndarray
    kill: np.ndarray
    directed: bool


@dataclass(frozen=True, eq=False)
class DetStructure:
    """One determinant's matrices, and what is special about them."""

    matrices: tuple[Matrix, Matrix, Matrix]
    size: int | None = None
    counted: tuple[bool, ...] | None = None  # what the size counts; None: all children

    @staticmethod
    def of(node: Node) -> DetStructure:
        """That of a Det."""
        return DetStructure(node.matrices, node.size, node.counted)

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
        """Whether doubles hold every entry without loss of range.

        What a tiny entry of a kernel loses does not count beside the diagonal entries of its row and column, which is
        what errors are relative to.
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
        diagonals = zip(*([m.numbers()[i][i] for i in range(self.rank)] for m in self.matrices[::2]), strict=True)
        return all(Fraction(a) + Fraction(b) == 1 for a, b in diagonals)

    @cached_property
    def ratio(self) -> np.ndarray | None:
        """s with u_i = s_i·v_i, s_i > 0, where there is one and U is not I; 1 for a column of zeros."""
        _, u, v = self.floats
        if self.identity_u:
            return None
        if not u.size:
            return np.ones(self.children)
        top = np.abs(v).argmax(axis=0), np.arange(self.children)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where((u[top] == 0.0) & (v[top] == 0.0), 1.0, u[top] / v[top])
        if not (np.isfinite(ratio).all() and (ratio > 0).all() and np.array_equal(u, v * ratio)):
            return None
        return ratio if self._is_exact_ratio(ratio) else None

    def _is_exact_ratio(self, ratio: np.ndarray) -> bool:
        """Whether U = V·diag(s) holds without rounding, for s that does with it."""
        if all(self.doubles[1:]) and not _products_round(self.floats[2], ratio).any():
            return True
        if self.rank * self.children > _MOST_EXACT:
            return False
        u, v = (m.exact() for m in self.matrices[1:])
        pairs = [next(((a, b) for a, b in zip(*column, strict=True) if b), (1, 1)) for column in _columns(u, v)]
        return all(
            a * q == b * p
            for row_u, row_v in zip(u, v, strict=True)
            for a, b, (p, q) in zip(row_u, row_v, pairs, strict=True)
        )

    @cached_property
    def exact_ratio(self) -> list[Fraction]:
        """The same s, exactly; 1 where there is none."""
        if self.ratio is None:
            return [Fraction(1)] * self.children
        u, v = (m.numbers() for m in self.matrices[1:])
        top = np.abs(self.floats[2]).argmax(axis=0).tolist() if self.rank else []
        pairs = ((u[row][i], v[row][i]) for i, row in enumerate(top))
        return [Fraction(a) / Fraction(b) if b else Fraction(1) for a, b in pairs] or [Fraction(1)] * self.children

    @cached_property
    def symmetric(self) -> bool:
        """Whether Vᵀ·N⁻¹·U is symmetric at every base N, up to the factors s_i of its columns."""
        m0, _, v = self.floats
        if not np.array_equal(m0, m0.T):
            return False
        if self.identity_u and np.array_equal(v, v.T):
            return self.identity_m0 or self.is_marginal_kernel
        return self.ratio is not None

    @cached_property
    def laplacian(self) -> Laplacian | None:
        """The graph, where M0 = diag(κ ≥ 0) and every u_i·v_iᵀ is w ≥ 0 times the Laplacian of an edge."""
        m0, u, v = self.floats
        r, k = u.shape
        if r == 0 or k == 0 or not self.doubles[2] or (np.diag(m0) < 0).any() or not _is_diagonal(m0):
            return None
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
        """The entries of U in the columns of these edges: those of an edge add up to 0."""
        return [[row[i] for i in np.flatnonzero(edges).tolist()] for row in self.matrices[1].exact()]

    @cached_property
    def nonnegative(self) -> bool:
        """Whether no coefficient of it, as a polynomial in its children and their complements, is negative: proved."""
        if self.laplacian is not None:
            return True
        m0, _, v = self.floats
        if self.ratio is not None:
            return bool((np.diag(m0) >= 0).all()) if _is_diagonal(m0) else _surely_definite(m0)
        if self.identity_u and self.identity_m0:
            return _surely_definite(v + v.T)
        if self.is_marginal_kernel and np.array_equal(v, v.T):
            return _surely_definite(v) and _surely_definite(m0)
        return False


def _columns(u: list[list[Fraction]], v: list[list[Fraction]]) -> list[tuple[tuple[Fraction, ...], ...]]:
    return list(zip(zip(*u, strict=True), zip(*v, strict=True), strict=True))


def _products_round(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Where the product of two doubles is not a double (Dekker's exact product)."""
    split = 2.0**27 + 1.0
    with np.errstate(over="ignore", invalid="ignore"):
        high_a, high_b = split * a - (split * a - a), split * b - (split * b - b)
        low_a, low_b = a - high_a, b - high_b
        product = a * b
        lost = ((high_a * high_b - product) + high_a * low_b + low_a * high_b) + low_a * low_b
    return ~(lost == 0.0)  # NaN where the splitting overflows


def _is_diagonal(matrix: np.ndarray) -> bool:
    return np.count_nonzero(matrix) == np.count_nonzero(np.diag(matrix))


def _all_equal(a: list, b: list) -> bool:
    return all(x == y for x, y in zip(a, b, strict=True))


def _zeros(matrix: Matrix, rounded: np.ndarray) -> np.ndarray:
    """Which entries are 0 themselves, not only as doubles."""
    if matrix.is_float:
        return rounded == 0.0
    return np.array([[x == 0 for x in row] for row in matrix.numbers()], bool).reshape(rounded.shape)


def _surely_definite(matrix: np.ndarray) -> bool:
    """Whether a symmetric matrix is positive definite by more than rounding could make it."""
    if not len(matrix):
        return True
    if not np.array_equal(matrix, matrix.T) or not np.isfinite(matrix).all():
        return False
    scale = np.sqrt(np.abs(np.diag(matrix)))
    if (scale == 0.0).any():
        return False
    values = np.linalg.eigvalsh(matrix / scale / scale[:, None])
    return bool(values[0] > 8 * len(matrix) ** 2 * UNIT)
