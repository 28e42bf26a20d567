"""Determinants of a count: a Poisson-binomial distribution, with bounds.

With N the matrix where everything free is 1 (bordered by what is observed in) and G = V_Tᵀ·N⁻¹·U_T on the free items
of T, the determinant is det N · det(I + (t − 1)·G) = det N · Π (1 − λ_i + λ_i·t) over the eigenvalues of G, the kernel
given the evidence. Where G is symmetric, these are found to within some δ (see `counting_spectrum`), so that λ is not
farther from max(λ − δ, 0) than max(λ, 0) + 2δ is, and 1 − λ likewise. Then the same holds for every coefficient of the
product: it is a polynomial in these without negative coefficients.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from flint import arb, arb_mat

from pgcc.determinants.bases import as_arb, improved, inverse_in_doubles
from pgcc.determinants.pencil import as_ball
from pgcc.determinants.spectrum import BITS, Spectrum, find_spectrum
from pgcc.ir.circuit import Circuit
from pgcc.ir.node import Node, Op
from pgcc.ir.numbers import UNIT, Number
from pgcc.program.determinant import DetStructure
from pgcc.program.lower import affine_leaf
from pgcc.rings.kernels.counting import linear_factors
from pgcc.rings.kernels.scaled import RADIX
from pgcc.rings.precision import precision
from pgcc.rings.values import Values

# What an entry of N⁻¹ may be off by.
_ERROR = 2.0**-150

Rows = list[list[arb]]
Evaluator = Callable[[np.ndarray, float], Values]  # Pr(row) for rows of evidence, to a relative error


class Enclosed(NamedTuple):
    """A polynomial between two: mantissas and exponents (of 2^256) of each."""

    low: tuple[np.ndarray, np.ndarray]
    high: tuple[np.ndarray, np.ndarray]


class CountedDeterminants:
    """All determinants of a homogenised circuit without negative weights, in the order of its nodes."""

    def __init__(self, each: list[_CountedDeterminant]):
        self.each = each

    @staticmethod
    def of(circuit: Circuit, compile: Callable[[Circuit], Evaluator]) -> CountedDeterminants | None:
        """None if one of them is not of variables, or not symmetric, or if there are negative weights."""
        each: list[_CountedDeterminant] = []
        for node in circuit.order:
            if (node.op is Op.SUM and min(node.weights, default=0) < 0) or (node.op is Op.CONST and node.value < 0):
                return None
            if node.op is Op.DET:
                one = _read(node, circuit, compile)
                if one is None:
                    return None
                each.append(one)
        return CountedDeterminants(each)

    def enclose(self, codes: np.ndarray, counted: np.ndarray, rtol: float) -> list[Enclosed] | None:
        """Their polynomials for one row; None if one of them cannot be enclosed."""
        found = [one.enclose(codes, counted, rtol) for one in self.each]
        return None if None in found else found  # type: ignore[return-value]


def _read(node: Node, circuit: Circuit, compile: Callable[[Circuit], Evaluator]) -> _CountedDeterminant | None:
    """A determinant whose children are φ_i·z_i, with complements ȳ_i."""
    structure = DetStructure.of(node)
    if node.size is not None or not structure.in_range or not structure.symmetric:
        return None
    column = {name: i for i, name in enumerate(circuit.variables)}
    columns: list[int] = []
    phi: list[Number] = []
    for f, y in zip(node.inside, node.outside, strict=True):
        inside, outside = affine_leaf(f), affine_leaf(y)
        if inside is None or outside is None or inside[0] is None or outside != (inside[0], 1, 0) or inside[1]:
            return None
        columns.append(column[inside[0]])
        phi.append(inside[2])
    if any(x <= 0 for x in phi):
        return None
    evaluate = None if circuit.root is node else compile(Circuit(node, circuit.variables))
    return _CountedDeterminant(structure, np.array(columns, int), phi, evaluate)


@dataclass(eq=False)
class _CountedDeterminant:
    """One determinant of φ_i·z_i. evaluate : Pr(evidence) in it alone, where it is not the root."""

    structure: DetStructure
    columns: np.ndarray
    phi: list[Number]
    evaluate: Evaluator | None

    def enclose(self, codes: np.ndarray, counted: np.ndarray, rtol: float) -> Enclosed | None:
        """Its polynomial for one row; None where there is no telling."""
        seen = codes[self.columns]
        free = (seen < 0) & counted[self.columns]
        size = int(free.sum()) + 1
        mantissa, exponent, bound = self._total(codes, rtol)
        if not bound < 0.1 or mantissa < 0.0:  # what is negative may cancel with other terms
            return None
        if mantissa == 0.0:
            nothing = np.zeros(size), np.zeros(size, np.int64)
            return Enclosed(nothing, nothing) if self.structure.nonnegative else None
        spectrum = self._spectrum(seen, free)
        if spectrum is None:
            return None
        low, high = _products(*spectrum)
        own = bound + 4.0 * size * UNIT
        return Enclosed(
            _scaled(low, mantissa * (1.0 - own), exponent, size), _scaled(high, mantissa * (1.0 + own), exponent, size)
        )

    def _total(self, codes: np.ndarray, rtol: float) -> tuple[float, int, float]:
        """Pr(evidence) in this determinant; 1 where that is a factor of everything."""
        if self.evaluate is None:
            return 0.5, 1, 0.0
        own = np.full((1, len(codes)), -1, np.int8)  # what else is observed is no variable of this determinant
        own[0, self.columns] = codes[self.columns]
        values = self.evaluate(own, rtol)
        return float(values.mantissa[0]), int(values.exponent[0]), float(values.bound[0])

    def _spectrum(self, seen: np.ndarray, free: np.ndarray) -> Spectrum | None:
        """The eigenvalues of the kernel given the evidence; of those that are 0 only as many as are not known to be."""
        if not free.any():
            return Spectrum(np.zeros(0), np.zeros(0), 0.0)
        with precision(BITS):
            kernel = self._kernel(seen, free)
            found = None if kernel is None else find_spectrum(*kernel)
        if found is None or not found.are_probabilities:
            return None
        spare = len(found.value) - (self.structure.rank - int((seen == 1).sum()))  # c_S = 0 where S is larger than N
        if spare > 0 and self.structure.nonnegative:  # so many are 0, and none is below
            return Spectrum(found.value[spare:], found.rest[spare:], found.off)
        return found

    def _kernel(self, seen: np.ndarray, free: np.ndarray) -> tuple[arb_mat, float] | None:
        """√σφ_i·(V_Tᵀ·N⁻¹·U_T)_ij·√σφ_j, and what its norm is off by; with V for U where u_i = σ_i·v_i."""
        v, u, factors, root = self._balls
        among, ins, ours = (np.flatnonzero(x).tolist() for x in (seen < 0, seen == 1, free))
        r, size = self.structure.rank, self.structure.rank + len(ins)
        top = as_arb(self.structure.matrices[0]) + _columns(factors, among, r) * _columns(v, among, r).transpose()
        rows = [[*row, *(factors[i][c] for c in ins)] for i, row in enumerate(top.tolist())]
        rows += [[-v[i][c] for i in range(r)] + [arb(0)] * len(ins) for c in ins]
        N = arb_mat(size, size, [x for row in rows for x in row])
        start = inverse_in_doubles(N, size)
        if start is None:
            return None
        inverse, error = improved(N, start, _ERROR)
        left, right = (
            arb_mat(size, len(ours), [m[i][c] * root[c] if i < r else 0 for i in range(size) for c in ours])
            for m in (v, u)
        )
        if self.structure.ratio is not None and 2 * r < len(ours):  # the same eigenvalues, but for those that are 0
            fewer = _cholesky((left * left.transpose()).tolist()[:r], r)
            if fewer is not None:
                left = right = arb_mat(size, r, [x for row in fewer for x in row] + [0] * (len(ins) * r))
        sizes = [sum(float(x.abs_upper()) for x in m.entries()) for m in (left, right)]
        return left.transpose() * inverse * right, error * sizes[0] * sizes[1] * 1.01

    @cached_property
    def _balls(self) -> tuple[Rows, Rows, Rows, list[arb]]:
        """V, U (or V, if it is V·diag(σ)), U·diag(φ), row by row, and √(σ_i·φ_i)."""
        phi = [as_ball(x) for x in self.phi]
        u, v = ([[as_ball(x) for x in row] for row in m.numbers()] for m in self.structure.matrices[1:])
        factors = [[x * p for x, p in zip(row, phi, strict=True)] for row in u]
        root = [(p * as_ball(s)).sqrt() for p, s in zip(phi, self.structure.exact_ratio, strict=True)]
        return v, u if self.structure.ratio is None else v, factors, root


def _columns(rows: Rows, which: list[int], r: int) -> arb_mat:
    return arb_mat(r, len(which), [row[c] for row in rows for c in which])


def _cholesky(M: Rows, r: int) -> Rows | None:
    """L with L·Lᵀ = M, lower triangular; None where M is not certainly definite."""
    L = [[arb(0)] * r for _ in range(r)]
    for i in range(r):
        for j in range(i + 1):
            rest = M[i][j] - sum([L[i][k] * L[j][k] for k in range(j)], start=arb(0))
            if i > j:
                L[i][j] = rest / L[j][j]
            elif rest > 0:
                L[i][i] = rest.sqrt()
            else:
                return None
    return L


def _products(value: np.ndarray, rest: np.ndarray, off: float) -> list[tuple[np.ndarray, np.ndarray]]:
    """Π (1 − λ + λ·t), the least and the largest."""
    off_value, off_rest = (off + 2.0 * UNIT * np.abs(x) for x in (value, rest))
    return [
        linear_factors(np.maximum(value - off_value, 0.0), np.maximum(rest - off_rest, 0.0)),
        linear_factors(np.maximum(value, 0.0) + 2.0 * off_value, np.maximum(rest, 0.0) + 2.0 * off_rest),
    ]


def _scaled(
    polynomial: tuple[np.ndarray, np.ndarray], mantissa: float, exponent: int, size: int
) -> tuple[np.ndarray, np.ndarray]:
    """Times mantissa·2^exponent, with zeros up to `size` coefficients."""
    steps, rest = divmod(exponent + RADIX // 2, RADIX)
    m, e = np.zeros(size), np.zeros(size, np.int64)
    count = len(polynomial[0])
    m[:count] = polynomial[0] * np.ldexp(mantissa, rest - RADIX // 2)
    e[:count] = polynomial[1] + steps
    return m, e
