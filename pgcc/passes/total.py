"""The total g(1) of any circuit, without compiling it: 1 if the circuit is a distribution.

Exact numbers give an exact total. With floats, or where fractions would become enormous, it is computed in ball
arithmetic, determinants too, with more and more bits until it is known well: however ill-conditioned a kernel is, its
floats are exact numbers, and so it has an exact total. What comes out has a relative error below 1e-12, or is a
`PrecisionError`: a float, or beyond the range of floats m·2^e, as a fraction (a DPP of 300 items that are mostly in has
such a total). Totals of roots are remembered as long as the nodes live, so that building a mixture of mixtures of
mixtures walks over every part once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import assert_never
from weakref import WeakKeyDictionary

from flint import arb, arb_mat

from pgcc.errors import PrecisionError, SemanticsError
from pgcc.exact.ball_coefficients import ball_coefficient
from pgcc.exact.balls import ball, ball_determinant, ball_matrix
from pgcc.exact.bounded import constant_determinant, interpolation_weights, plus, times
from pgcc.exact.precision import doubled, precision
from pgcc.ir.circuit import Circuit
from pgcc.ir.matrix import Matrix
from pgcc.ir.node import Node, Op, iter_edges
from pgcc.ir.numbers import Number, as_number
from pgcc.ir.spelling import display_text

TOLERANCE = 1e-9  # how far the total of floats may be from 1
ACCURACY = 1e-12  # the relative error of a total that is no exact number
# The working precision in bits: the first that is tried, the last, and how many correct bits are enough.
_FIRST_BITS, _MOST_BITS, _ENOUGH = 128, 1 << 13, 64
# From this many bits on, a total that may be 0 is computed in fractions, if no determinant has more rows or columns
# than the second number.
_ZERO_BITS, _MOST_EXACT = 1024, 40
_MOST_DIGITS = 39_000  # of a total, as many as MAX_BITS make

_known: WeakKeyDictionary[Node, Number | arb] = WeakKeyDictionary()


def total(circuit: Circuit) -> Number:
    """g(1): exact if the circuit's numbers are (and it does not become enormous), else rounded like a float.

    Raises
    ------
    PrecisionError
        If a relative error of 1e-12 cannot be promised.

    Examples
    --------
    >>> import pgcc
    >>> total(pgcc.parse("0.4*a*b + 0.3")), total(pgcc.dpp(L=[[2.0, 1.0], [1.0, 2.0]]))
    (Fraction(7, 10), 8.0)
    """
    root = circuit.root
    found = _known.get(root)
    if found is None:
        found = _exactly(_postorder(root))
        if found is None:
            found = _in_balls(root)
        _known[root] = found
    return _rounded(found) if isinstance(found, arb) else found


def is_one(value: Number) -> bool:
    """Whether a total is 1: an exact one exactly, a float to 1e-9.

    >>> is_one(1), is_one(1.0000000001), is_one(Fraction(10**12, 10**12 + 1))
    (True, True, False)
    """
    return abs(value - 1) <= TOLERANCE if type(value) is float else value == 1


def normalize(circuit: Circuit, what: str = "the circuit") -> Circuit:
    """`Circuit.normalize`; `what` is its name in messages."""
    value = positive_total(circuit, what)
    return circuit if is_one(value) else circuit * quotient(1, value)


def positive_total(circuit: Circuit, what: str) -> Number:
    """The total, or a `SemanticsError` that says what cannot be a distribution."""
    try:
        value = total(circuit)
    except PrecisionError as error:
        raise PrecisionError(f"{what}: {error}") from None
    if value <= 0:
        raise SemanticsError(
            f"{what} has the total {display_text(value)}, so it is no distribution, nor a multiple of one"
        )
    return value


def quotient(weight: Number, value: Number) -> Number:
    """weight / value: exact if both are, else rounded once."""
    ratio = Fraction(weight) / Fraction(value)
    return as_number(ratio) if float not in (type(weight), type(value)) else _float_like(ratio)


def _float_like(value: Fraction) -> Number:
    """The nearest float; beyond their range, the nearest number with as many bits.

    >>> _float_like(Fraction(1, 3)), _float_like(Fraction(3) ** -1000) * 2**1600
    (0.3333333333333333, Fraction(4622194136202043, 137438953472))
    """
    if not value or -1000 < (exponent := value.numerator.bit_length() - value.denominator.bit_length()) < 1000:
        return float(value)
    unit = Fraction(2) ** (exponent - 53)
    return as_number(round(value / unit) * unit)


def _postorder(root: Node, rounded: bool = True) -> list[Node]:
    """The nodes, children first, down to those whose totals are known: only exactly, unless `rounded`."""
    order: list[Node] = []
    seen = {root}
    path = [(root, iter(root.children))]
    while path:
        node, children = path[-1]
        for child in children:
            if child not in seen:
                seen.add(child)
                path.append((child, iter(() if _is_known(child, rounded) else child.children)))
                break
        else:
            order.append(node)
            path.pop()
    return order


def _is_known(node: Node, rounded: bool) -> bool:
    return node in _known and (rounded or not isinstance(_known[node], arb))


# -- exact numbers -------------------------------------------------------------------------------------------


def _exactly(order: Sequence[Node], floats: bool = False) -> Number | None:
    """The total of the last node as an exact number; None if it becomes enormous, or a float stands in the way.

    floats : these are the rationals that they stand for, and do not stand in the way.
    """
    at: dict[Node, Number] = {}
    for node in order:
        value = _known[node] if _is_known(node, not floats) else _exact_node(node, at, floats)
        if value is None or isinstance(value, arb):
            return None
        at[node] = value
    return at[order[-1]]


def _exact_node(node: Node, at: dict[Node, Number], floats: bool) -> Number | None:
    value: Number | None
    match node.op:
        case Op.CONST:
            return _exact_number(node.value, floats)
        case Op.VAR:
            return 1
        case Op.SUM:
            value = 0
            for weight, child in iter_edges(node):
                factor = _exact_number(weight, floats)
                term = times(factor, at[child]) if factor is not None else None
                value = plus(value, term) if term is not None and value is not None else None
            return value
        case Op.PRODUCT:
            value = 1
            for child in node.children:
                value = times(value, at[child]) if value is not None else None
            return value
        case Op.DET:
            if floats:
                if max(node.matrices[1].shape) > _MOST_EXACT:
                    return None
            elif not all(matrix.is_exact for matrix in node.matrices):
                return None
            return _exact_det(node, [Fraction(at[c]) for c in node.inside], [Fraction(at[c]) for c in node.outside])
    assert_never(node.op)


def _exact_number(value: Number, floats: bool) -> Number | None:
    """An exact number; a float as a rational, or None."""
    return value if type(value) is not float else as_number(Fraction(value)) if floats else None


def _exact_det(node: Node, f: list[Fraction], y: list[Fraction]) -> Number | None:
    """By elimination; of a sized one, the coefficient of s^size where f is s·f for what counts, by interpolation."""
    if node.size is None:
        return constant_determinant(Matrix(_rows(node, f, y)))
    points = range(1 + min(sum(node.counted), node.matrices[0].shape[0]))
    if node.size >= len(points):
        return 0
    found = Fraction(0)
    for weight, s in zip(interpolation_weights(points, node.size), points, strict=True):
        s_f = [s * x if counts else x for x, counts in zip(f, node.counted, strict=True)]
        value = constant_determinant(Matrix(_rows(node, s_f, y)))
        if value is None:
            return None
        found += weight * Fraction(value)
    return as_number(found)


def _rows(node: Node, f: list[Fraction], y: list[Fraction]) -> list[list[Fraction]]:
    """M0 + U·diag(f)·Vᵀ where all of y are 1, else [[M0, U·diag(f)], [−Vᵀ, diag(y)]]"""
    m0, u, v = (m.exact() for m in node.matrices)
    rows, k = range(len(m0)), range(len(f))
    if all(x == 1 for x in y):
        scaled = [[u[i][j] * f[j] for j in k] for i in rows]
        return [[m0[a][b] + sum(scaled[a][j] * v[b][j] for j in k if v[b][j]) for b in rows] for a in rows]
    top = [[*m0[i], *(u[i][j] * f[j] for j in k)] for i in rows]
    return top + [[*(-v[i][j] for i in rows), *(y[j] if i == j else Fraction(0) for i in k)] for j in k]


# -- balls -----------------------------------------------------------------------------------------------------


def _in_balls(root: Node) -> arb:
    """The total as a ball with 64 correct bits, or with fewer if the most bits of working precision do not give them.

    A total that may be 0 is computed in fractions, where that is possible: a ball does not prove that a number is 0.
    """
    for bits in doubled(_FIRST_BITS, _MOST_BITS):
        first = bits == _FIRST_BITS
        with precision(bits):
            found = _ball_total(_postorder(root, rounded=first), rounded=first)
        if found.is_exact() or found.rel_accuracy_bits() >= _ENOUGH:
            return found
        if bits >= _ZERO_BITS and found.contains(0):
            exact = _exactly(_postorder(root, rounded=False), floats=True)
            with precision(_MOST_BITS):
                return found if exact is None else ball(exact)
    return found


def _ball_total(order: Sequence[Node], rounded: bool) -> arb:
    """The total of the last node, to the working precision."""
    at: dict[Node, arb] = {}
    for node in order:
        if _is_known(node, rounded):
            known = _known[node]
            at[node] = known if isinstance(known, arb) else ball(known)
        else:
            at[node] = _ball_node(node, at)
    return at[order[-1]]


def _rounded(value: arb) -> Number:
    """The nearest number of a float's bits, if the ball is small enough."""
    if value.is_zero():
        return 0.0
    parts = (value.mid(), value.rad()) if value.is_finite() else (arb(0), arb(1))
    middle, radius = map(_dyadic, parts)
    if radius > Fraction(ACCURACY) * abs(middle):
        raise PrecisionError(
            f"its total g(1) = {value.str(4)} cannot be computed to a relative error of 1e-12 with {_MOST_BITS:,} bits"
        )
    return _float_like(middle)


def _dyadic(x: arb) -> Fraction:
    """A midpoint or a radius: m·2^e."""
    mantissa, exponent = (int(part) for part in x.man_exp())
    binary = exponent + mantissa.bit_length()
    if mantissa and abs(binary) > _MOST_DIGITS * math.log2(10):
        raise PrecisionError(f"its total g(1), about 2**{binary}, has more than {_MOST_DIGITS:,} digits")
    return mantissa * Fraction(2) ** exponent


def _ball_node(node: Node, at: dict[Node, arb]) -> arb:
    match node.op:
        case Op.CONST:
            return ball(node.value)
        case Op.VAR:
            return arb(1)
        case Op.SUM:
            return sum((ball(weight) * at[child] for weight, child in iter_edges(node)), arb(0))
        case Op.PRODUCT:
            value = arb(1)
            for child in node.children:
                value *= at[child]
            return value
        case Op.DET:
            return _ball_det(node, [at[c] for c in node.inside], [at[c] for c in node.outside])
    assert_never(node.op)


def _ball_det(node: Node, f: list[arb], y: list[arb]) -> arb:
    """Of a sized one, the coefficient of s^size where f is s·f for what counts."""
    m0, u, v = (ball_matrix(m) for m in node.matrices)
    if node.size is None:
        return ball_determinant(_ball_rows(m0, u, v, f, y))
    degree = min(sum(node.counted), m0.nrows())
    if node.size > degree:
        return arb(0)
    rest, counted = ([x if c == own else arb(0) for x, c in zip(f, node.counted, strict=True)] for own in (False, True))
    if all(x == 1 for x in y):
        Q = _ball_rows(m0 * 0, u, v, counted, y)
    else:
        Q = _ball_rows(m0 * 0, u, v * 0, counted, [arb(0)] * len(y))
    return arb(ball_coefficient(_ball_rows(m0, u, v, rest, y), Q, node.size, degree))


def _ball_rows(m0: arb_mat, u: arb_mat, v: arb_mat, f: list[arb], y: list[arb]) -> arb_mat:
    """M0 + U·diag(f)·Vᵀ where all of y are 1, else [[M0, U·diag(f)], [−Vᵀ, diag(y)]]"""
    r, k = u.nrows(), u.ncols()
    scaled = [x * f[i % k] for i, x in enumerate(u.entries())]
    if all(x == 1 for x in y):
        return m0 + arb_mat(r, k, scaled) * v.transpose()
    entries: list[arb] = []
    for i in range(r):
        entries += [m0[i, j] for j in range(r)] + scaled[i * k : (i + 1) * k]
    for j in range(k):
        entries += [-v[i, j] for i in range(r)] + [y[j] if i == j else arb(0) for i in range(k)]
    return arb_mat(r + k, r + k, entries)
