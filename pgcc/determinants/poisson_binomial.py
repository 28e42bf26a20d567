"""The number of items in, for determinants: a Poisson-binomial distribution, with bounds.

`evaluate/counting` asks for the polynomial in t of a determinant in which t marks the counted items T. Let N be the
matrix where all free items are 1, bordered by the items observed 1, and G = V_Tᵀ·N⁻¹·U_T on the free items of T, which
is the marginal kernel given the evidence. Then the determinant is det N · det(I + (t − 1)·G) = det N · Π (1 − λ_i +
λ_i·t) over the eigenvalues of G. If G is symmetric, `spectrum` encloses them to within some δ. Every coefficient of the
product is a polynomial in λ_i and 1 − λ_i without negative coefficients, so lower and upper bounds on these give bounds
on it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from flint import arb, arb_mat

from pgcc.determinants.bases import inverse_in_doubles, refined_inverse
from pgcc.determinants.spectrum import BITS, Spectrum, find_spectrum
from pgcc.determinants.staged import leaves_of_variables
from pgcc.exact.balls import ball, ball_matrix
from pgcc.exact.precision import precision
from pgcc.ir.circuit import Circuit
from pgcc.ir.facts import is_monotone
from pgcc.ir.node import Node, Op
from pgcc.ir.numbers import UNIT, Number
from pgcc.locks import cached_property
from pgcc.program.det_structure import DetStructure
from pgcc.program.program import DetInstruction, Program
from pgcc.rings.kernels.counting import linear_factors
from pgcc.rings.kernels.scaled import RADIX
from pgcc.rings.values import Values

# The error to aim at in the entries of N⁻¹.
_ERROR = 2.0**-150

Rows = list[list[arb]]
Evaluator = Callable[[np.ndarray, float], Values]  # Pr(row) for rows of evidence, to a relative error


class Enclosed(NamedTuple):
    """Lower and upper bounds on the coefficients of a polynomial: mantissas and exponents (of 2^256) of each."""

    low: tuple[np.ndarray, np.ndarray]
    high: tuple[np.ndarray, np.ndarray]


class CountedDeterminants:
    """All determinants of a homogenized circuit without negative weights, in the order of its program's structures."""

    def __init__(self, each: list[_CountedDeterminant]):
        self.each = each

    @staticmethod
    def of(program: Program, circuit: Circuit, compile: Callable[[Circuit], Evaluator]) -> CountedDeterminants | None:
        """None if a determinant is not symmetric or has other children than variables, or if a weight is negative.

        circuit : what the program was lowered from.
        """
        if not all(node.op is Op.DET or is_monotone(node) for node in circuit.order):
            return None
        nodes = [node for node in circuit.order if node.op is Op.DET]
        each = [_read(det, node, program, circuit, compile) for det, node in zip(program.dets, nodes, strict=True)]
        return CountedDeterminants([one for one in each if one is not None]) if None not in each else None

    def enclose(self, codes: np.ndarray, counted: np.ndarray, rtol: float) -> list[Enclosed] | None:
        """Their polynomials for one row; None if one of them cannot be enclosed."""
        found = [one.enclose(codes, counted, rtol) for one in self.each]
        return None if None in found else found  # type: ignore[return-value]


def _read(
    det: DetInstruction, node: Node, program: Program, circuit: Circuit, compile: Callable[[Circuit], Evaluator]
) -> _CountedDeterminant | None:
    """The determinant of a node, if its children are φ_i·z_i with complements ȳ_i; None otherwise."""
    structure, leaves = program.structures[det.det], leaves_of_variables(program, det)
    if structure.size is not None or not structure.in_range or not structure.symmetric or leaves is None:
        return None
    phi = [program.leaf_numbers[leaf][1] for leaf in leaves.tolist()]
    evaluate = None if circuit.root is node else compile(Circuit(node, circuit.variables))
    return _CountedDeterminant(structure, program.leaf_variable[leaves].astype(int), phi, evaluate)


@dataclass(eq=False)
class _CountedDeterminant:
    """A determinant with children φ_i·z_i. evaluate : its value for rows of evidence, if it is not the root."""

    structure: DetStructure
    columns: np.ndarray
    phi: list[Number]
    evaluate: Evaluator | None

    def enclose(self, codes: np.ndarray, counted: np.ndarray, rtol: float) -> Enclosed | None:
        """Its polynomial for one row; None if it cannot be enclosed."""
        seen = codes[self.columns]
        free = (seen < 0) & counted[self.columns]
        size = int(free.sum()) + 1
        mantissa, exponent, bound = self._total(codes, rtol)
        if not bound < 0.1 or mantissa < 0.0:  # a negative value may cancel with other terms
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
        """The value of this determinant for a row; 1 if it is the root, where it is a factor of all counts alike."""
        if self.evaluate is None:
            return 0.5, 1, 0.0
        own = np.full((1, len(codes)), -1, np.int8)  # without the evidence on variables of other nodes
        own[0, self.columns] = codes[self.columns]
        values = self.evaluate(own, rtol)
        return float(values.mantissa[0]), int(values.exponent[0]), float(values.bound[0])

    def _spectrum(self, seen: np.ndarray, free: np.ndarray) -> Spectrum | None:
        """The eigenvalues of the kernel given the evidence, without some that are known to be 0."""
        if not free.any():
            return Spectrum(np.zeros(0), np.zeros(0), 0.0)
        with precision(BITS):
            kernel = self._kernel(seen, free)
            found = None if kernel is None else find_spectrum(*kernel)
        if found is None or not found.are_probabilities:
            return None
        spare = len(found.value) - (self.structure.rank - int((seen == 1).sum()))  # c_S = 0 if |S| exceeds the rank
        if spare > 0 and self.structure.nonnegative:  # at least `spare` eigenvalues are 0, and none is negative
            return Spectrum(found.value[spare:], found.rest[spare:], found.off)
        return found

    def _kernel(self, seen: np.ndarray, free: np.ndarray) -> tuple[arb_mat, float] | None:
        """√(σφ)_i·(V_Tᵀ·N⁻¹·U_T)_ij·√(σφ)_j, with V for U if u_i = σ_i·v_i, and a bound on the norm of its error."""
        v, u, factors, root = self._balls
        unobserved, given, items = (np.flatnonzero(x).tolist() for x in (seen < 0, seen == 1, free))
        r, size = self.structure.rank, self.structure.rank + len(given)
        added = _columns(factors, unobserved, r) * _columns(v, unobserved, r).transpose()
        top = ball_matrix(self.structure.matrices[0]) + added
        rows = [[*row, *(factors[i][c] for c in given)] for i, row in enumerate(top.tolist())]
        rows += [[-v[i][c] for i in range(r)] + [arb(0)] * len(given) for c in given]
        N = arb_mat(size, size, [x for row in rows for x in row])
        start = inverse_in_doubles(N)
        if start is None:
            return None
        inverse, error = refined_inverse(N, start, _ERROR)
        left, right = (
            arb_mat(size, len(items), [m[i][c] * root[c] if i < r else 0 for i in range(size) for c in items])
            for m in (v, u)
        )
        # a smaller matrix with the same nonzero eigenvalues
        if self.structure.ratio is not None and 2 * r < len(items):
            fewer = _cholesky((left * left.transpose()).tolist()[:r], r)
            if fewer is not None:
                left = right = arb_mat(size, r, [x for row in fewer for x in row] + [0] * (len(given) * r))
        sizes = [sum(float(x.abs_upper()) for x in m.entries()) for m in (left, right)]
        return left.transpose() * inverse * right, float(error * sizes[0] * sizes[1]) * 1.01

    @cached_property
    def _balls(self) -> tuple[Rows, Rows, Rows, list[arb]]:
        """V, U (or V, if U = V·diag(σ)), U·diag(φ), row by row, and √(σ_i·φ_i)."""
        phi = [ball(x) for x in self.phi]
        u, v = ([[ball(x) for x in row] for row in m.numbers()] for m in self.structure.matrices[1:])
        factors = [[x * p for x, p in zip(row, phi, strict=True)] for row in u]
        root = [(p * ball(s)).sqrt() for p, s in zip(phi, self.structure.exact_ratio, strict=True)]
        return v, u if self.structure.ratio is None else v, factors, root


def _columns(rows: Rows, which: list[int], r: int) -> arb_mat:
    """Some columns of a matrix with r rows."""
    return arb_mat(r, len(which), [row[c] for row in rows for c in which])


def _cholesky(M: Rows, r: int) -> Rows | None:
    """The Cholesky factor of M, in balls; None unless M is certainly positive definite."""
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
    """Lower and upper bounds on the coefficients of Π (1 − λ + λ·t)."""
    off_value, off_rest = (off + 2.0 * UNIT * np.abs(x) for x in (value, rest))
    return [
        linear_factors(np.maximum(value - off_value, 0.0), np.maximum(rest - off_rest, 0.0)),
        linear_factors(np.maximum(value, 0.0) + 2.0 * off_value, np.maximum(rest, 0.0) + 2.0 * off_rest),
    ]


def _scaled(
    polynomial: tuple[np.ndarray, np.ndarray], mantissa: float, exponent: int, size: int
) -> tuple[np.ndarray, np.ndarray]:
    """A polynomial times mantissa·2^exponent, padded with zeros to `size` coefficients."""
    steps, rest = divmod(exponent + RADIX // 2, RADIX)
    m, e = np.zeros(size), np.zeros(size, np.int64)
    count = len(polynomial[0])
    m[:count] = polynomial[0] * np.ldexp(mantissa, rest - RADIX // 2)
    e[:count] = polynomial[1] + steps
    return m, e
