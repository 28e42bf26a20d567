"""Determinants in balls and rationals: the determinant, or a coefficient, of a small matrix pencil P + s·Q.

At numbers f_i and y_i, a Det is det [[M0, U·diag(f)], [−Vᵀ, diag(y)]]. If it has a size, counted children are s·f_i,
and one coefficient of the polynomial in s is wanted. Before anything is computed, the pencil is made small by exact
rules:

    absent      f_i = 0: the factor y_i, and the determinant without i
    unit row    row i of M0 is e_iᵀ, and no remaining child has an entry in row i of U, so that it is row i of the whole
                matrix: the determinant without row and column i. The same for columns, with V
    inner       y_i = 1: f_i·u_i·v_iᵀ is added to M0, and i needs no border (Schur complement)
    surely in   y_i = 0: i is in every set, so that it counts towards the size and needs no s. If u_i = c·e_j, its
                column has one entry, and expansion by it puts f_i·c·v_iᵀ in the place of row j
    border      any other i has a row and a column of its own

A DPP with an L-ensemble kernel (M0 = U = I) has as many rows as items that are in or free, and no border.

If a determinant is asked for repeatedly, with most children and complements equal to 1, a base is cheaper: with
N = M0 + U·Vᵀ, G = Vᵀ·N⁻¹·U and d = f − y, it is det N · det(diag(y) + G·diag(d)) over the other children. The rings of
balls and rationals (`rings/exact_values`, by `exact/tape`) and exact counts (`evaluate/counting_exact`) call this.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from flint import acb, acb_mat, arb, arb_mat, fmpq, fmpq_mat, fmpq_poly

from pgcc.exact.ball_coefficients import ball_coefficient
from pgcc.exact.balls import ball, ball_determinant, flat, rational
from pgcc.ir.matrix import Matrix
from pgcc.ir.node import Node
from pgcc.ir.numbers import Number
from pgcc.locks import cached_property

Sparse = list[tuple[int, Any]]  # the indices and values of the nonzero entries of a vector
Term = tuple[Any, Sparse, Sparse]  # f·u·vᵀ

# A base is computed for a determinant with at least this many rows, after this many queries, up to this many children.
_WORTH, _PATIENCE, _MOST_CHILDREN = 40, 4, 600


# -- number systems -----------------------------------------------------------------------------------------------


class Ring(NamedTuple):
    """A number system of flint.

    Attributes
    ----------
    lift : function
        A number of a circuit as a number of the ring.
    matrix : function
        A matrix from its shape and its entries.
    det : function
        The determinant of a matrix.
    coefficient : function
        A coefficient of det(P + s·Q), given the power of s that is wanted and the degree.
    """

    lift: Callable[[Number], Any]
    matrix: Callable[[int, int, list[Any]], Any]
    det: Callable[[Any], Any]
    coefficient: Callable[[Any, Any, int, int], Any]


def _matrix_of_balls(rows: int, columns: int, entries: list[Any]) -> Any:
    is_complex = any(isinstance(x, acb) for x in entries)
    return (acb_mat if is_complex else arb_mat)(rows, columns, entries)


def _rational_coefficient(P: Any, Q: Any, wanted: int, degree: int) -> Any:
    if _is_identity(P):  # det(x·1 + Q) = Σ_j (the coefficient of s^j)·x^(n − j)
        return (Q * fmpq(-1)).charpoly()[P.nrows() - wanted]
    return interpolated([(P + Q * fmpq(s)).det() for s in range(degree + 1)])[wanted]


def _is_identity(matrix: fmpq_mat) -> bool:
    n = matrix.nrows()
    return matrix == fmpq_mat(n, n, [int(i == j) for i in range(n) for j in range(n)])


def interpolated(values: Sequence[Any]) -> fmpq_poly:
    """The polynomial with these rational values at 0, 1, 2, …: Newton interpolation."""
    differences = list(values)
    n = len(values)
    for level in range(1, n):
        for i in range(n - 1, level - 1, -1):
            differences[i] = (differences[i] - differences[i - 1]) / fmpq(level)
    found = fmpq_poly([0])
    for i in range(n - 1, -1, -1):
        found = found * fmpq_poly([-i, 1]) + differences[i]
    return found


BALLS = Ring(ball, _matrix_of_balls, ball_determinant, ball_coefficient)
RATIONALS = Ring(rational, fmpq_mat, fmpq_mat.det, _rational_coefficient)


# -- determinants -------------------------------------------------------------------------------------------------


class Layout:
    """The sparsity pattern of a Det, which depends neither on the ring nor on the precision."""

    def __init__(self, node: Node):
        m0, u, v = node.matrices
        self.size, self.counted = node.size, node.counted
        self.m0, self.u, self.v = m0.numbers(), _columns(u), _columns(v)
        self.unit_rows = _unit_rows(self.m0)
        self.unit_columns = _unit_rows(zip(*self.m0, strict=True))
        self.empty_rows = {i for i, row in enumerate(self.m0) if not any(row)}

    def numbers(self) -> set[Number]:
        """The distinct nonzero entries."""
        vectors = [*self.u, *self.v]
        return {x for row in self.m0 for x in row if x} | {x for vector in vectors for _, x in vector}


def _columns(matrix: Matrix) -> list[Sparse]:
    columns: list[Sparse] = [[] for _ in range(matrix.shape[1])]
    for i, j, x in _entries_not_zero(matrix):
        columns[j].append((i, x))
    return columns


def _entries_not_zero(matrix: Matrix) -> Iterable[tuple[int, int, Number]]:
    if not matrix.is_float:
        return ((i, j, x) for i, row in enumerate(matrix.numbers()) for j, x in enumerate(row) if x)
    array = matrix.floats()
    rows, columns = np.nonzero(array)
    return zip(rows.tolist(), columns.tolist(), array[rows, columns].tolist(), strict=True)


def _unit_rows(rows: Iterable[Sequence[Number]]) -> set[int]:
    """The indices i of rows that are e_iᵀ."""
    return {i for i, row in enumerate(rows) if row[i] == 1 and sum(map(bool, row)) == 1}


class Determinant:
    """A Det whose numbers are in a ring."""

    def __init__(self, layout: Layout, ring: Ring):
        self.layout, self.ring, self.asked = layout, ring, 0
        lifted = {x: ring.lift(x) for x in (0, 1, *layout.numbers())}  # every distinct number is lifted once
        self.zero, self.one = lifted[0], lifted[1]
        self.m0 = [[lifted[x] for x in row] for row in layout.m0]
        self.u, self.v = ([[(i, lifted[x]) for i, x in column] for column in m] for m in (layout.u, layout.v))

    def at(self, f: list[Any], y: list[Any]) -> Any:
        """Its value if the children and their complements are these numbers."""
        absent = [i for i in range(len(f)) if f[i] == 0]
        kept = [i for i in range(len(f)) if not f[i] == 0]  # noqa: SIM201 - of a ball, != means "certainly different"
        surely_in = [i for i in kept if y[i] == 0]
        factor = math.prod([y[i] for i in absent], start=self.one)
        rows = self.rows_left(kept)
        changed = [i for i in range(len(f)) if not (f[i] == 1 and y[i] == 1)]
        if self._prefers_base(len(changed), len(rows)) and all(isinstance(f[i], arb) for i in changed):
            base = self._base
            if base is not None:
                return base.at(changed, f, y)
        size, counted = self.layout.size, self.layout.counted
        may_count = sum(counted[i] for i in kept) - sum(counted[i] for i in surely_in)
        degree = min(may_count, len(rows) - len(surely_in))  # in s: c_T = 0 where T is larger than the matrix
        wanted = 0 if size is None else size - sum(counted[i] for i in surely_in)
        rank_missing = sum(row in self.layout.empty_rows for row in rows)  # which the children have to make up for
        if factor == 0 or not 0 <= wanted <= degree or rank_missing > len(kept):
            return self.zero
        pencil = Pencil(self, rows, kept, f, y)
        if pencil.is_singular:
            return self.zero
        if size is None:
            return factor * self.ring.det(pencil.at_one())
        return factor * self.ring.coefficient(*pencil.matrices(), wanted, degree)

    def _prefers_base(self, changed: int, rows: int) -> bool:
        """Whether to use the base where everything is 1; to compute it costs as much as about ten determinants."""
        if self.ring is not BALLS or self.layout.size is not None or rows < _WORTH or 2 * changed > rows:
            return False
        self.asked += 1
        return self.asked > _PATIENCE and len(self.u) <= _MOST_CHILDREN

    @cached_property
    def _base(self) -> _Base | None:
        """The base where every child and complement is 1; None if the determinant may be 0 there."""
        r, k, ones = len(self.m0), len(self.u), [self.one] * len(self.u)
        N = Pencil(self, list(range(r)), list(range(k)), ones, ones).at_one()
        U, V = (_dense(columns, r, self.zero) for columns in (self.u, self.v))
        try:
            return _Base(self.ring.det(N), V.transpose() * N.solve(U))
        except ZeroDivisionError:
            return None

    def rows_left(self, kept: list[int]) -> list[int]:
        """The rows of M0 without unit rows and columns, given the children that are not absent."""
        layout = self.layout
        gone: set[int] = set()
        for unit, columns in ((layout.unit_rows, layout.u), (layout.unit_columns, layout.v)):
            gone |= unit.difference(i for c in kept for i, _ in columns[c]) if unit else unit
        return [i for i in range(len(layout.m0)) if i not in gone]


class _Base(NamedTuple):
    """The value of a determinant where everything is 1, and G = Vᵀ·N⁻¹·U there."""

    total: Any
    G: Any

    def at(self, changed: list[int], f: list[Any], y: list[Any]) -> Any:
        """The determinant if only the changed children have other values: det N · det(diag(y) + G·diag(f − y))."""
        G, d = self.G, {j: f[j] - y[j] for j in changed}
        entries = [G[i, j] * d[j] + (y[j] if i == j else 0) for i in changed for j in changed]
        return self.total * arb_mat(len(changed), len(changed), entries).det()


def _dense(columns: list[Sparse], r: int, zero: Any) -> arb_mat:
    rows = [[zero] * len(columns) for _ in range(r)]
    for j, column in enumerate(columns):
        for i, x in column:
            rows[i][j] = x
    return arb_mat(r, len(columns), flat(rows))


class Pencil:
    """The matrices P and Q of det(P + s·Q), over the rows and the children that are left."""

    def __init__(self, det: Determinant, rows: list[int], kept: list[int], f: list[Any], y: list[Any]):
        self.det, self.rows, self.f, self.y = det, rows, f, y
        self.place = {row: p for p, row in enumerate(rows)}
        self.surely_in = [c for c in kept if y[c] == 0]
        self.others = [c for c in kept if not y[c] == 0]  # noqa: SIM201
        self.replaced: dict[int, Term] = {}  # the rows that are replaced by a child that is surely in, by position
        border = []
        for c in self.surely_in:
            left = self._left(c)
            if len(left) == 1:
                self.replaced[left[0][0]] = f[c], left, self._right(c)
            else:
                border.append(c)
        self.is_singular = not all(self._left(c) for c in border)  # a column of 0s
        border += [c for c in self.others if not y[c] == 1]  # noqa: SIM201
        self.border = {c: b for b, c in enumerate(border, len(rows))}

    def _left(self, c: int) -> Sparse:
        """u_c on the rows that are left and not replaced."""
        place, replaced = self.place, self.replaced
        return [(place[i], x) for i, x in self.det.u[c] if i in place and place[i] not in replaced]

    def _right(self, c: int) -> Sparse:
        """v_c on the rows that are left."""
        place = self.place
        return [(place[i], x) for i, x in self.det.v[c] if i in place]

    def at_one(self) -> Any:
        """P + Q"""
        return self._plus_terms(self._entries(), self.others)

    def matrices(self) -> tuple[Any, Any]:
        """P and Q"""
        P, counted = self._entries(), self.det.layout.counted
        n = len(P)
        with_s, without = [c for c in self.others if counted[c]], [c for c in self.others if not counted[c]]
        return self._plus_terms(P, without), self._plus_terms([[self.det.zero] * n for _ in range(n)], with_s)

    def _entries(self) -> list[list[Any]]:
        """P without the children that may be in: M0, the border, and the children that are surely in."""
        n = len(self.rows) + len(self.border)
        P = [[self.det.zero] * n for _ in range(n)]
        for p, row in enumerate(self.rows):
            if p not in self.replaced:
                source = self.det.m0[row]
                P[p][: len(self.rows)] = [source[i] for i in self.rows]
        for c, b in self.border.items():
            P[b][b] = self.y[c]
            for q, x in self._right(c):
                P[b][q] = -x
        bordered_in = [self._term(c) for c in self.surely_in if c in self.border]
        _add([*self.replaced.values(), *bordered_in], P)
        return P

    def _term(self, c: int) -> Term:
        right = [(self.border[c], self.det.one)] if c in self.border else self._right(c)
        return self.f[c], self._left(c), right

    def _plus_terms(self, to: list[list[Any]], children: list[int]) -> Any:
        """to + Σ f·u·vᵀ: term by term if U and V are sparse, otherwise by a product of matrices."""
        terms = [self._term(c) for c in children]
        ring, zero, n, k = self.det.ring, self.det.zero, len(to), len(terms)
        if sum(len(left) * len(right) for _, left, right in terms) <= 2 * n * k:
            _add(terms, to)
            return ring.matrix(n, n, flat(to))
        U, V = [[zero] * k for _ in range(n)], [[zero] * n for _ in range(k)]
        for j, (f, left, right) in enumerate(terms):
            for p, x in left:
                U[p][j] = f * x
            for q, x in right:
                V[j][q] = x
        return ring.matrix(n, n, flat(to)) + ring.matrix(n, k, flat(U)) * ring.matrix(k, n, flat(V))


def _add(terms: Iterable[Term], to: list[list[Any]]) -> None:
    """to += Σ f·u·vᵀ"""
    for f, left, right in terms:
        for p, x in left:
            row, fx = to[p], f * x
            for q, z in right:
                row[q] += fx * z
