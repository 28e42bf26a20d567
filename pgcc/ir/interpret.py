"""The specification: what a circuit means, as an interpreter over any commutative ring.

Everything else in pgcc is tested against these few lines, which deliberately share no code with it (not even for
determinants). With Fractions it is exact; with polynomials over Fractions it is the lemma of the paper:
Pr(A in, B out) = coefficient of t^|A| in g(z_A = t, z_B = 0, z_U = 1).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import reduce
from operator import add
from typing import Any, assert_never

from pgcc.ir.circuit import Circuit
from pgcc.ir.node import Node, Op

Ring = Any  # a type with + and *, into which `lift` maps the rationals


def evaluate(circuit: Circuit, values: Mapping[str, Ring], lift: Callable[[Fraction], Ring] = Fraction) -> Ring:
    """The polynomial at `values`, in the ring that `lift` maps the rationals into.

    >>> import pgcc
    >>> evaluate(pgcc.parse("0.1*x*y + 1"), {"x": Fraction(2), "y": Fraction(5)})
    Fraction(2, 1)
    """
    at: dict[Node, Ring] = {}
    for node in circuit.order:
        match node.op:
            case Op.CONST:
                at[node] = lift(Fraction(node.value))
            case Op.VAR:
                at[node] = lift(Fraction(1)) if node.is_complement else values[node.name]
            case Op.SUM:
                at[node] = lift(Fraction(0))
                for weight, child in zip(node.weights, node.children, strict=True):
                    at[node] = at[node] + lift(Fraction(weight)) * at[child]
            case Op.PRODUCT:
                at[node] = lift(Fraction(1))
                for child in node.children:
                    at[node] = at[node] * at[child]
            case Op.DET:
                at[node] = _det(node, [at[c] for c in node.inside], [at[c] for c in node.outside], lift)
            case _:
                assert_never(node.op)
    return at[circuit.root]


def _det(node: Node, f: list[Ring], y: list[Ring], lift: Callable[[Fraction], Ring]) -> Ring:
    """The determinant; of a sized one, the coefficient of s^size where f is s·f for the children that count."""
    if node.size is None:
        return determinant(bordered(node, f, y, lift), lift)
    zero, top = lift(Fraction(0)), node.size
    s_f = [Poly([zero, x] if counts else [x], top) for x, counts in zip(f, node.counted, strict=True)]
    y_0 = [Poly([x], top) for x in y]

    def lift_s(value: Fraction) -> Poly:
        return Poly([lift(value)], top)

    return determinant(bordered(node, s_f, y_0, lift_s), lift_s).coefficient(top, zero)


def bordered(node: Node, f: list[Ring], y: list[Ring], lift: Callable[[Fraction], Ring]) -> list[list[Ring]]:
    """[[M0, U·diag(f)], [−Vᵀ, diag(y)]]"""
    m0, u, v = (m.exact() for m in node.matrices)
    top = [[lift(x) for x in m0[i]] + [lift(u[i][j]) * f[j] for j in range(len(f))] for i in range(len(m0))]
    low = [
        [lift(-v[i][j]) for i in range(len(m0))] + [y[j] if i == j else lift(Fraction(0)) for i in range(len(f))]
        for j in range(len(f))
    ]
    return top + low


def determinant(matrix: list[list[Ring]], lift: Callable[[Fraction], Ring]) -> Ring:
    """A determinant without division (Bird 2011): n − 1 times F := μ(F)·A, then ±F[0][0].

    μ(F) keeps what is above the diagonal and puts −Σ_{k>i} F[k][k] at (i, i).
    """
    n = len(matrix)
    if n == 0:
        return lift(Fraction(1))
    minus, zero = lift(Fraction(-1)), lift(Fraction(0))
    f = matrix
    for _ in range(n - 1):
        tail = zero
        mu = [[zero] * n for _ in range(n)]
        for i in reversed(range(n)):
            mu[i] = [zero] * i + [minus * tail] + f[i][i + 1 :]
            tail = tail + f[i][i]
        f = [[_dot(mu[i], matrix, j, i, zero) for j in range(n)] for i in range(n)]
    return f[0][0] if n % 2 else minus * f[0][0]


def _dot(row: list[Ring], matrix: list[list[Ring]], column: int, start: int, zero: Ring) -> Ring:
    total = zero
    for k in range(start, len(row)):
        total = total + row[k] * matrix[k][column]
    return total


class Poly:
    """A polynomial over any ring, coefficient k at index k; powers above a `top`, if there is one, are dropped."""

    __slots__ = ("coefficients", "top")

    def __init__(self, coefficients: list[Ring], top: int | None = None):
        self.coefficients, self.top = coefficients if top is None else coefficients[: top + 1], top

    @staticmethod
    def lift(value: Fraction) -> Poly:
        return Poly([value])

    def __add__(self, other: Poly) -> Poly:
        a, b = self.coefficients, other.coefficients
        if len(a) < len(b):
            a, b = b, a
        return Poly([x + b[k] if k < len(b) else x for k, x in enumerate(a)], self.top)

    def __mul__(self, other: Poly) -> Poly:
        a, b = self.coefficients, other.coefficients
        count = len(a) + len(b) - 1 if a and b else 0
        if self.top is not None:
            count = min(count, self.top + 1)
        pairs = ([(i, k - i) for i in range(max(0, k - len(b) + 1), min(k + 1, len(a)))] for k in range(count))
        return Poly([reduce(add, [a[i] * b[j] for i, j in below]) for below in pairs], self.top)

    def coefficient(self, k: int, zero: Ring = Fraction(0)) -> Ring:
        return self.coefficients[k] if k < len(self.coefficients) else zero


def probability(circuit: Circuit, evidence: Mapping[str, int]) -> Fraction:
    """The coefficient that the paper's lemma reads off; not divided by the total g(1).

    >>> import pgcc
    >>> from pgcc.testing import oracle_probability
    >>> oracle_probability(pgcc.parse("0.4*a*b + 0.3*a + 0.3"), {"a": 1, "b": 0})
    Fraction(3, 10)
    """
    at = {1: Poly([Fraction(0), Fraction(1)]), 0: Poly([]), -1: Poly([Fraction(1)])}
    values = {name: at[evidence.get(name, -1)] for name in circuit.variables}
    observed = sum(value == 1 for value in evidence.values())
    return evaluate(circuit, values, Poly.lift).coefficient(observed)
