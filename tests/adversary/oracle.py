"""Exact answers: the coefficients of all 2ⁿ monomials as rationals, and sums over them.

A circuit is evaluated at all corners of {0, 1}ⁿ, where z² = z, so that every multiaffine polynomial is read off by
Möbius inversion, however it is written. Only the nodes of the circuit are used, nothing of the code under test.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Any

import flint
import numpy as np
from flint import fmpq, fmpq_mat, fmpq_poly

from pgcc.ir.circuit import Circuit
from pgcc.ir.node import Node, Op

BITS = 4000  # of balls that stand for logarithms


def rational(x: Any) -> fmpq:
    """A number as the rational that it is."""
    if isinstance(x, fmpq):
        return x
    exact = Fraction(x)
    return fmpq(exact.numerator, exact.denominator)


def ball(x: fmpq) -> flint.arb:
    """A rational as a ball of `BITS` bits."""
    with flint.ctx.workprec(BITS):
        return flint.arb(x)


def log(x: fmpq) -> flint.arb:
    with flint.ctx.workprec(BITS):
        return flint.arb(x).log()


class Table:
    """A distribution, or any multiaffine polynomial, by its coefficients.

    Parameters
    ----------
    names : the variables, in order
    coefficients : object array of shape (2,)·n; index 1 along an axis where the variable is in
    """

    def __init__(self, names: Sequence[str], coefficients: np.ndarray):
        self.names, self.coefficients = tuple(names), coefficients

    @classmethod
    def of(cls, circuit: Circuit) -> Table:
        n = len(circuit.variables)
        corners = list(product((0, 1), repeat=n))
        at = [fmpq(v) for v in (0, 1)]
        columns = {name: np.array([at[c[i]] for c in corners], object) for i, name in enumerate(circuit.variables)}
        values = _evaluate(circuit, columns, len(corners)).reshape((2,) * n)
        return cls(circuit.variables, _inverted(values))

    @classmethod
    def by_sets(cls, names: Sequence[str], weight: Any) -> Table:
        """weight(indices) of every set of variables."""
        n = len(names)
        sets = [[i for i in range(n) if c[i]] for c in product((0, 1), repeat=n)]
        found = np.empty(len(sets), object)
        found[:] = [rational(weight(s)) for s in sets]
        return cls(names, found.reshape((2,) * n))

    def complement(self) -> Table:
        return Table(self.names, np.flip(self.coefficients))

    def scaled(self, factor: Any) -> Table:
        return Table(self.names, self.coefficients * rational(factor))

    def plus(self, other: Table) -> Table:
        order = [other.names.index(name) for name in self.names]
        return Table(self.names, self.coefficients + other.coefficients.transpose(order))

    @cached_property
    def sums(self) -> np.ndarray:
        """(3,)·n: index 2 along an axis where the variable is summed out."""
        found = self.coefficients
        for axis in range(found.ndim):
            found = np.concatenate([found, found.sum(axis=axis, keepdims=True)], axis=axis)
        return found

    @cached_property
    def total(self) -> fmpq:
        return self.sums[(2,) * len(self.names)] if self.names else self.coefficients[()]

    @cached_property
    def is_distribution(self) -> bool:
        return self.total > 0 and all(x >= 0 for x in self.coefficients.ravel())

    def raw(self, codes: Sequence[int]) -> fmpq:
        """The coefficient of evidence: 1 in, 0 out, −1 summed out."""
        return self.sums[tuple(2 if c < 0 else int(c) for c in codes)]

    def prob(self, codes: Sequence[int]) -> fmpq:
        return self.raw(codes) / self.total

    def given(self, codes: Sequence[int], *more: tuple[int, int]) -> fmpq:
        """Pr(variable i is v for all (i, v) | codes)"""
        asked = list(codes)
        for i, v in more:
            if asked[i] >= 0 and asked[i] != v:
                return fmpq(0)
            asked[i] = v
        return self.raw(asked) / self.raw(codes)

    def listed(self, codes: Sequence[int]) -> list[tuple[tuple[int, ...], fmpq]]:
        """Every complete assignment that agrees, with its raw coefficient."""
        choices = [(0, 1) if c < 0 else (int(c),) for c in codes]
        return [(s, self.coefficients[s]) for s in product(*choices)]

    def counts(self, codes: Sequence[int], over: Sequence[int]) -> list[fmpq]:
        """Pr(|S ∩ over| = k | codes)"""
        found = [fmpq(0)] * (len(over) + 1)
        for s, p in self.listed(codes):
            found[sum(s[i] for i in over)] += p
        base = self.raw(codes)
        return [x / base for x in found]


class ByPoints(Table):
    """Of circuits with too many variables for a table: the coefficient of t^|A| in g(z_A = t, z_B = 0, z_U = 1).

    The polynomial is multiaffine, so that its degree in t is |A| at most, and its top coefficient is a difference
    quotient of its values at t = 0, …, |A|. What it is made of is trusted to be a distribution.
    """

    is_distribution = True  # type: ignore[assignment]

    def __init__(self, circuit: Circuit):
        self.circuit, self.names = circuit, tuple(circuit.variables)
        self._known: dict[tuple[int, ...], fmpq] = {}

    @cached_property
    def total(self) -> fmpq:  # type: ignore[override]
        return self.raw([-1] * len(self.names))

    def raw(self, codes: Sequence[int]) -> fmpq:
        key = tuple(int(c) for c in codes)
        if key not in self._known:
            self._known[key] = self._coefficient(key, fmpq(1))
        return self._known[key]

    def _coefficient(self, codes: Sequence[int], s: fmpq, over: Sequence[int] = ()) -> fmpq:
        """Where the unobserved variables of `over` are s instead of 1."""
        k = sum(c == 1 for c in codes)
        t, one = np.empty(k + 1, object), np.empty(k + 1, object)
        t[:], one[:] = [fmpq(j) for j in range(k + 1)], [fmpq(1)] * (k + 1)
        values = {1: t, 0: one * fmpq(0), -1: one}
        columns = {name: values[c] for name, c in zip(self.names, codes, strict=True)}
        for i in over:
            if codes[i] < 0:
                columns[self.names[i]] = one * s
        found = _evaluate(self.circuit, columns, k + 1)
        signed = sum(((-1) ** (k - j) * math.comb(k, j) * found[j] for j in range(k + 1)), fmpq(0))
        return signed / math.factorial(k)

    def counts(self, codes: Sequence[int], over: Sequence[int]) -> list[fmpq]:
        free, inside = [i for i in over if codes[i] < 0], sum(codes[i] == 1 for i in over)
        points = [fmpq(s) for s in range(len(free) + 1)]
        values = [[self._coefficient(codes, s, free)] for s in points]
        powers = fmpq_mat([[s**j for j in range(len(points))] for s in points])
        solved = powers.solve(fmpq_mat(values))
        base = self.raw(codes)
        found = [fmpq(0)] * (len(over) + 1)
        for j in range(len(points)):
            found[inside + j] = solved[j, 0] / base
        return found


class Independent(Table):
    """Of Π (a_i·z_i + b_i), with any number of variables."""

    is_distribution = True  # type: ignore[assignment]

    def __init__(self, names: Sequence[str], factors: Sequence[tuple[Any, Any]]):
        self.names, self.factors = tuple(names), [(rational(a), rational(b)) for a, b in factors]

    @cached_property
    def total(self) -> fmpq:  # type: ignore[override]
        return self.raw([-1] * len(self.names))

    def raw(self, codes: Sequence[int]) -> fmpq:
        chosen = [a if c == 1 else b if c == 0 else a + b for (a, b), c in zip(self.factors, codes, strict=True)]
        while len(chosen) > 1:  # in pairs, so that numbers grow late
            chosen = [x * y for x, y in zip(chosen[::2], [*chosen[1::2], fmpq(1)], strict=False)]
        return chosen[0]

    def counts(self, codes: Sequence[int], over: Sequence[int]) -> list[fmpq]:
        counted, parts = set(over), []
        for i, ((a, b), c) in enumerate(zip(self.factors, codes, strict=True)):
            inside, out = (a if c else fmpq(0)), (b if c != 1 else fmpq(0))
            parts.append(fmpq_poly([out, inside]) if i in counted else fmpq_poly([out + inside]))
        while len(parts) > 1:
            parts = [x * y for x, y in zip(parts[::2], [*parts[1::2], fmpq_poly([1])], strict=False)]
        base = self.raw(codes)
        return [parts[0][k] / base for k in range(len(over) + 1)]


def _inverted(values: np.ndarray) -> np.ndarray:
    """Coefficients from values at the corners, which are sums over subsets."""
    for axis in range(values.ndim):
        low, high = np.take(values, 0, axis), np.take(values, 1, axis)
        values = np.stack([low, high - low], axis)
    return values


def _evaluate(circuit: Circuit, columns: dict[str, np.ndarray], rows: int) -> np.ndarray:
    """The polynomial at several points at once."""
    one = np.empty(rows, object)
    one[:] = [fmpq(1)] * rows
    at: dict[Node, np.ndarray] = {}
    for node in circuit.order:
        at[node] = _value(node, at, columns, one)
    return at[circuit.root]


def _value(node: Node, at: dict[Node, np.ndarray], columns: dict[str, np.ndarray], one: np.ndarray) -> np.ndarray:
    match node.op:
        case Op.CONST:
            return one * rational(node.value)
        case Op.VAR:
            return one if node.is_complement else columns[node.name]
        case Op.SUM:
            value = one * fmpq(0)
            for weight, child in zip(node.weights, node.children, strict=True):
                value = value + at[child] * rational(weight)
            return value
        case Op.PRODUCT:
            value = one
            for child in node.children:
                value = value * at[child]
            return value
        case Op.DET:
            f, y = [at[c] for c in node.inside], [at[c] for c in node.outside]
            value = one * fmpq(0)
            for i in range(len(one)):
                value[i] = _determinant(node, [x[i] for x in f], [x[i] for x in y])
            return value
    raise AssertionError(f"an operation that the oracle does not know: {node.op}")


def _determinant(node: Node, f: list[fmpq], y: list[fmpq]) -> fmpq:
    """det [[M0, U·diag(f)], [−Vᵀ, diag(y)]]; of a sized one the coefficient of s^size, by interpolation."""
    m0, u, v = ([[rational(x) for x in row] for row in m.exact()] for m in node.matrices)
    if node.size is None:
        return _bordered(m0, u, v, f, y)
    degree = sum(node.counted)
    points = [fmpq(s) for s in range(degree + 1)]
    values = [_bordered(m0, u, v, [x * s if c else x for x, c in zip(f, node.counted, strict=True)], y) for s in points]
    powers = fmpq_mat([[s**k for k in range(degree + 1)] for s in points])
    return powers.solve(fmpq_mat([[x] for x in values]))[node.size, 0]


def _bordered(m0: list, u: list, v: list, f: list[fmpq], y: list[fmpq]) -> fmpq:
    r, k = len(m0), len(f)
    if r + k == 0:
        return fmpq(1)
    top = [m0[i] + [u[i][j] * f[j] for j in range(k)] for i in range(r)]
    low = [[-v[i][j] for i in range(r)] + [y[j] if i == j else fmpq(0) for i in range(k)] for j in range(k)]
    return fmpq_mat(top + low).det()


def minor(matrix: Sequence[Sequence[Any]], rows: Sequence[int]) -> fmpq:
    """A principal minor of a matrix of numbers."""
    if not len(rows):
        return fmpq(1)
    return fmpq_mat([[rational(matrix[i][j]) for j in rows] for i in rows]).det()


# -- derivatives ---------------------------------------------------------------------------------------------------


def weight_derivatives(circuit: Circuit, target: Node, codes: Sequence[int]) -> list[fmpq]:
    """∂/∂w of the coefficient of t^|A| of g(z_A = t, z_B = 0, z_U = 1), for every weight w of a sum.

    That is what a probability means while a weight changes, where the polynomial is then no longer multiaffine. By dual
    numbers at as many t as the formal degree asks for.
    """
    points = [fmpq(t) for t in range(circuit.facts.degree + 1)]
    one = np.empty(len(points), object)
    one[:] = [fmpq(1)] * len(points)
    t = np.empty(len(points), object)
    t[:] = points
    values = {1: t, 0: one * fmpq(0), -1: one}
    columns = {name: values[int(c)] for name, c in zip(circuit.variables, codes, strict=True)}
    at: dict[Node, np.ndarray] = {}
    for node in circuit.order:
        at[node] = _value(node, at, columns, one)
    powers = fmpq_mat([[x**k for k in range(len(points))] for x in points])
    wanted = sum(c == 1 for c in codes)
    found = []
    for place in range(len(target.children)):
        slope: dict[Node, np.ndarray] = {}
        for node in circuit.order:
            slope[node] = _slope(node, at, slope, one)
            if node is target:
                slope[node] = slope[node] + at[node.children[place]]
        coefficients = powers.solve(fmpq_mat([[x] for x in slope[circuit.root]]))
        found.append(coefficients[wanted, 0] if wanted < len(points) else fmpq(0))
    return found


def _slope(node: Node, at: dict[Node, np.ndarray], slope: dict[Node, np.ndarray], one: np.ndarray) -> np.ndarray:
    value = one * fmpq(0)
    match node.op:
        case Op.SUM:
            for weight, child in zip(node.weights, node.children, strict=True):
                value = value + slope[child] * rational(weight)
        case Op.PRODUCT:
            for i, child in enumerate(node.children):
                term = slope[child]
                for j, other in enumerate(node.children):
                    term = term if i == j else term * at[other]
                value = value + term
        case Op.DET:  # affine in every child
            k = len(node.inside)
            for i in range(len(one)):
                here = [at[c][i] for c in node.children]
                for j, child in enumerate(node.children):
                    if slope[child][i]:
                        ends = [[*here[:j], fmpq(x), *here[j + 1 :]] for x in (0, 1)]
                        low, high = (_determinant(node, end[:k], end[k:]) for end in ends)
                        value[i] += slope[child][i] * (high - low)
    return value
