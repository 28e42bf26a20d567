"""The paper's own evaluation, for comparison: every node is a polynomial in t, every product is taken by numpy's FFT.

It evaluates any circuit in O(edges · n log n). An FFT product is accurate only relative to the *largest* coefficient: a
probability of 1e-20 beside one of 1 is lost in rounding errors. The bound on its error says so.
"""

from __future__ import annotations

from typing import assert_never

import numpy as np

from pgcc.errors import PrecisionError
from pgcc.ir.circuit import Circuit
from pgcc.ir.node import Node, Op
from pgcc.ir.numbers import UNIT, nearest_float
from pgcc.rings.fourier import multiply
from pgcc.rings.values import Values

# A generous bound on the error of an operation by underflow.
_TINY = 2.0**-1060
# Longer polynomials are refused.
_MOST_COEFFICIENTS = 1 << 22

# A polynomial (coefficients from t^0 up) and a bound on the absolute error of every coefficient.
Poly = tuple[np.ndarray, float]


def evaluate_literally(circuit: Circuit, evidence: np.ndarray) -> Values:
    """Values for int8 rows of evidence (1, 0, −1)."""
    if circuit.facts.degree > _MOST_COEFFICIENTS:
        raise PrecisionError(f"method 'fft' would need polynomials of degree {circuit.facts.degree}")
    values = Values.empty(len(evidence))
    for row, codes in enumerate(evidence):
        with np.errstate(all="ignore"):  # values that overflow have the bound inf
            coefficients, error = _polynomial(circuit, dict(zip(circuit.variables, codes.tolist(), strict=True)))
        wanted = int((codes == 1).sum())
        value = float(coefficients[wanted]) if wanted < len(coefficients) else 0.0
        values.mantissa[row] = value
        certain_zero = wanted >= len(coefficients)  # the formal degree is too low
        values.bound[row] = 0.0 if certain_zero else error / (abs(value) - error) if abs(value) > error else np.inf
    return values


def _polynomial(circuit: Circuit, codes: dict[str, int]) -> Poly:
    at: dict[Node, Poly] = {}
    for node in circuit.order:
        match node.op:
            case Op.CONST:
                value = nearest_float(node.value)
                at[node] = np.array([value]), UNIT * abs(value) + _TINY
            case Op.VAR:
                code = -1 if node.is_complement else codes[node.name]
                at[node] = np.array([0.0, 1.0] if code == 1 else [0.0 if code == 0 else 1.0]), 0.0
            case Op.SUM:
                at[node] = _sum([nearest_float(w) for w in node.weights], [at[c] for c in node.children])
            case Op.PRODUCT:
                result: Poly = np.ones(1), 0.0
                for child in node.children:
                    result = _product(result, at[child])
                at[node] = result
            case Op.DET:
                at[node] = _det(node, at)
            case _:
                assert_never(node.op)
    return at[circuit.root]


def _sum(weights: list[float], polynomials: list[Poly]) -> Poly:
    total = np.zeros(max((len(p) for p, _ in polynomials), default=1))
    error = size = biggest = 0.0
    for weight, (p, e) in zip(weights, polynomials, strict=True):
        total[: len(p)] += weight * p
        error += abs(weight) * e
        biggest += float(np.abs(p).max())
        size += abs(weight) * float(np.abs(p).max())
    # the last term: products that underflow, and weights that are subnormal themselves
    return total, error * (1 + (len(weights) + 8) * UNIT) + (len(weights) + 3) * (UNIT * size + _TINY) + _TINY * biggest


def _product(a: Poly, b: Poly) -> Poly:
    (p, ep), (q, eq) = a, b
    n = len(p) + len(q) - 1
    if min(len(p), len(q)) == 1:
        product, rounding = p * q, UNIT * float(np.abs(p).max() * np.abs(q).max())
    else:
        product, rounding = multiply(p, q)
    spread = ep * float(np.abs(q).sum()) + eq * float(np.abs(p).sum()) + ep * eq * n
    return product, (spread + rounding) * (1 + 64 * UNIT) + _TINY * n


def _det(node: Node, at: dict[Node, Poly]) -> Poly:
    """The determinant at roots of unity in t, transformed back; its error is unknown.

    A determinant of a given size is evaluated at roots of unity in s as well, to find its coefficient of s^size.
    """
    m0, u, v = (m.floats() for m in node.matrices)
    k, r = len(node.inside), len(m0)
    degree = sum(max(len(at[f][0]), len(at[y][0])) - 1 for f, y in zip(node.inside, node.outside, strict=True))
    n = degree + 1
    n_s = 1 if node.size is None else sum(node.counted) + 1
    s = np.exp(2j * np.pi * np.arange(n_s) / n_s)[:, None, None]
    matrix = np.zeros((n_s, n // 2 + 1, r + k, r + k), complex)
    matrix[..., :r, :r], matrix[..., r:, :r] = m0, -v.T
    for j, (f, y) in enumerate(zip(node.inside, node.outside, strict=True)):
        matrix[..., :r, r + j] = s ** node.counted[j] * u[:, j] * np.fft.rfft(at[f][0], n)[:, None]
        matrix[..., r + j, r + j] = np.fft.rfft(at[y][0], n)
    points = np.linalg.det(matrix) if r + k else np.ones((n_s, n // 2 + 1))
    return np.fft.irfft(np.fft.fft(points, axis=0)[node.size or 0] / n_s, n), np.inf
