"""The total of a circuit: g(1), which is 1 if it is a distribution.

Exact numbers give an exact total. With floats, or where fractions would become enormous, it is computed with 50 decimal
digits and any exponent, and a bound on its error is carried along. Determinants are factorised in float64, with an
estimate of the error by the inverse matrix; a small one for which that is above 1e-13 is computed in fractions. What
comes out has a relative error below 1e-12, or is a `PrecisionError`: a float, or beyond the range of floats m·2^e, as a
fraction (a DPP of 300 items that are mostly in has such a total). Totals of roots are remembered as long
as the nodes live, so that building a mixture of mixtures of mixtures walks over every part once.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from fractions import Fraction
from typing import NamedTuple, assert_never
from weakref import WeakKeyDictionary

import numpy as np

from pgcc.errors import PrecisionError, SemanticsError
from pgcc.ir.circuit import Circuit
from pgcc.ir.matrix import Matrix
from pgcc.ir.node import Node, Op, iter_edges
from pgcc.ir.numbers import Number, as_number
from pgcc.passes.condition import interpolation_weights
from pgcc.passes.simplify import constant_determinant, plus, times

TOLERANCE = 1e-9  # how far the total of floats may be from 1
ACCURACY = Decimal("1e-12")  # the relative error of a total that is no exact number
_DIGITS = Context(prec=50, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])
_ROUNDING = Decimal("1e-49")
_FACTORED = Decimal("1e-13")  # the relative error of a determinant in float64 that is good enough, by estimate
_MOST_DIGITS = 39_000  # of a total, as many as MAX_BITS make
_MOST_EXACT = 40  # rows and columns of a determinant of floats that is computed in fractions, where that is not so


class _Value(NamedTuple):
    """A number that is off by at most `error`."""

    number: Decimal
    error: Decimal


_known: WeakKeyDictionary[Node, Number | _Value] = WeakKeyDictionary()


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
        order = _unknown(root)
        found = _exactly(order)
        if found is None:
            found = _in_decimals(order)
        _known[root] = found
    return _rounded(found) if isinstance(found, _Value) else found


def is_one(value: Number) -> bool:
    """Whether a total is 1: an exact one exactly, a float to 1e-9.

    >>> is_one(1), is_one(1.0000000001), is_one(Fraction(10**12, 10**12 + 1))
    (True, True, False)
    """
    return abs(value - 1) <= TOLERANCE if type(value) is float else value == 1


def normalize(circuit: Circuit) -> Circuit:
    """The circuit divided by its total.

    Examples
    --------
    >>> import pgcc
    >>> print(normalize(pgcc.parse("3*a + 1")))
    1/4*(3*a + 1)
    """
    value = positive_total(circuit, "the circuit")
    return circuit if is_one(value) else circuit * quotient(1, value)


def positive_total(circuit: Circuit, what: str) -> Number:
    """The total, or a `SemanticsError` that says what cannot be a distribution."""
    try:
        value = total(circuit)
    except PrecisionError as error:
        raise PrecisionError(f"{what}: {error}") from None
    if value <= 0:
        raise SemanticsError(f"{what} has the total {value}, so it is no distribution, nor a multiple of one")
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


def _unknown(root: Node) -> list[Node]:
    """A postorder of the nodes down to those whose totals are known."""
    order: list[Node] = []
    seen = {root}
    path = [(root, iter(root.children))]
    while path:
        node, children = path[-1]
        for child in children:
            if child not in seen:
                seen.add(child)
                path.append((child, iter(() if child in _known else child.children)))
                break
        else:
            order.append(node)
            path.pop()
    return order


# -- exact numbers -------------------------------------------------------------------------------------------


def _exactly(order: Sequence[Node]) -> Number | None:
    """The total of the last node as an exact number; None if a float stands in the way, or it becomes enormous."""
    at: dict[Node, Number] = {}
    for node in order:
        value = _known[node] if node in _known else _exact_node(node, at)
        if value is None or isinstance(value, (float, _Value)):
            return None
        at[node] = value
    return at[order[-1]]


def _exact_node(node: Node, at: dict[Node, Number]) -> Number | None:
    value: Number | None
    match node.op:
        case Op.CONST:
            return node.value
        case Op.VAR:
            return 1
        case Op.SUM:
            value = 0
            for weight, child in iter_edges(node):
                term = times(weight, at[child]) if type(weight) is not float else None
                value = plus(value, term) if term is not None and value is not None else None
            return value
        case Op.PRODUCT:
            value = 1
            for child in node.children:
                value = times(value, at[child]) if value is not None else None
            return value
        case Op.DET:
            if not all(matrix.is_exact for matrix in node.matrices):
                return None
            return _exact_det(node, [Fraction(at[c]) for c in node.inside], [Fraction(at[c]) for c in node.outside])
    assert_never(node.op)


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


# -- decimals, with a bound ------------------------------------------------------------------------------------


def _in_decimals(order: Sequence[Node]) -> _Value:
    with localcontext(_DIGITS), np.errstate(all="ignore"):
        at: dict[Node, _Value] = {}
        for node in order:
            known = _known.get(node)
            if known is None:
                at[node] = _decimal_node(node, at)
            else:
                at[node] = known if isinstance(known, _Value) else _decimal(known)
        return at[order[-1]]


def _rounded(value: _Value) -> Number:
    """The nearest number of a float's bits, if the bound on the error is small enough."""
    number, error = value
    if not number:
        return 0.0
    if error > ACCURACY * abs(number):
        raise PrecisionError(f"its total g(1), about {number:.3e}, cannot be computed to a relative error of 1e-12")
    if abs(number.adjusted()) > _MOST_DIGITS:
        raise PrecisionError(f"its total g(1) = {number:.3e} has more than {_MOST_DIGITS:,} digits")
    return _float_like(Fraction(number))


def _decimal(value: Number) -> _Value:
    """The nearest decimal."""
    numerator, denominator = value.as_integer_ratio()
    number = Decimal(numerator) / denominator
    return _Value(number, Decimal(0) if denominator == 1 and abs(numerator) < 10**50 else abs(number) * _ROUNDING)


def _decimal_node(node: Node, at: dict[Node, _Value]) -> _Value:
    match node.op:
        case Op.CONST:
            return _decimal(node.value)
        case Op.VAR:
            return _Value(Decimal(1), Decimal(0))
        case Op.SUM:
            return _decimal_sum([_product(_decimal(w), at[c]) for w, c in iter_edges(node)])
        case Op.PRODUCT:
            value = _Value(Decimal(1), Decimal(0))
            for child in node.children:
                value = _product(value, at[child])
            return value
        case _:
            return _decimal_det(node, [at[c] for c in node.inside], [at[c] for c in node.outside])


def _product(a: _Value, b: _Value) -> _Value:
    number = a.number * b.number
    error = a.error * abs(b.number) + b.error * (abs(a.number) + a.error)
    return _Value(number, error + abs(number) * _ROUNDING)


def _decimal_sum(terms: list[_Value]) -> _Value:
    number = sum((term.number for term in terms), Decimal(0))
    size = sum((abs(term.number) for term in terms), Decimal(0))
    return _Value(number, sum((term.error for term in terms), Decimal(0)) + size * _ROUNDING * (len(terms) > 1))


def _decimal_det(node: Node, f: list[_Value], y: list[_Value]) -> _Value:
    by_floats = _float_det(node, f, y) if node.size is None else None
    if by_floats is not None and by_floats.error <= _FACTORED * abs(by_floats.number):
        return by_floats
    exact = None
    if max(node.matrices[1].shape) <= _MOST_EXACT:
        exact = _exact_det(node, [Fraction(x.number) for x in f], [Fraction(x.number) for x in y])
    if exact is not None:
        number, relative = _decimal(exact).number, _relative_error([*f, *y])
        error = _sensitivity(node, f, y) * relative if relative else Decimal(0)
        return _Value(number, error + abs(number) * _ROUNDING)
    if by_floats is None:
        raise PrecisionError("it has a determinant whose value can be had neither in float64 nor, by its size, exactly")
    return by_floats


def _relative_error(values: list[_Value]) -> Decimal:
    return max((v.error / abs(v.number) if v.number else v.error for v in values), default=Decimal(0))


def _sensitivity(node: Node, f: list[_Value], y: list[_Value]) -> Decimal:
    """How much a determinant without cancellation could be, times its rows: what relative errors of f, y can do."""
    rows = _float_rows(node, f, y)
    norms = [Decimal(float(x)) for x in np.linalg.norm(rows, axis=1)]
    bound = Decimal(1 + len(rows))
    for norm in norms:
        bound *= norm
    return bound


def _float_det(node: Node, f: list[_Value], y: list[_Value]) -> _Value | None:
    """By factorisation in float64, with an estimate of the error: |M⁻¹| against the rounding of the entries of M."""
    rows = _float_rows(node, f, y)
    if not len(rows):
        return _Value(Decimal(1), Decimal(0))
    scale = np.abs(rows).max(axis=1)
    if not np.isfinite(rows).all() or not scale.all():
        return None
    _, exponents = np.frexp(scale)
    scaled = np.ldexp(rows, -exponents[:, None])
    sign, logarithm = np.linalg.slogdet(scaled)
    if not sign:
        return None
    try:
        inverse = np.linalg.inv(scaled)
    except np.linalg.LinAlgError:
        return None
    sizes = np.ldexp(_float_rows(node, f, y, absolute=True), -exponents[:, None])
    eps = float(np.finfo(float).eps)
    entries = (eps + float(_relative_error([*f, *y]))) * float((np.abs(inverse).T * sizes).sum())
    relative = entries + 2 * eps * (1 + abs(float(logarithm)))
    if not np.isfinite(relative):
        return None
    number = Decimal(float(sign)) * Decimal(float(logarithm)).exp() * Decimal(2) ** int(exponents.sum())
    return _Value(number, abs(number) * Decimal(relative))


def _float_rows(node: Node, f: list[_Value], y: list[_Value], absolute: bool = False) -> np.ndarray:
    m0, u, v = (np.abs(m.floats()) if absolute else m.floats() for m in node.matrices)
    inside, outside = (np.array([float(x.number) for x in values]) for values in (f, y))
    if absolute:
        inside, outside = np.abs(inside), np.abs(outside)
    if (outside == 1).all():
        return m0 + (u * inside) @ v.T
    return np.block([[m0, u * inside], [v.T if absolute else -v.T, np.diag(outside)]])
