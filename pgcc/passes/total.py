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
import operator
from collections.abc import Mapping, Sequence
from fractions import Fraction
from weakref import WeakKeyDictionary

from flint import arb

from pgcc.collector import collector_paused
from pgcc.errors import PrecisionError, SemanticsError
from pgcc.exact.balls import ball, rational
from pgcc.exact.bounded import LARGEST
from pgcc.exact.precision import FIRST_BITS, ZERO_BITS, ball_parts, doubled, precision
from pgcc.exact.tape import Layouts, rational_total, total_in_balls
from pgcc.ir.circuit import Circuit
from pgcc.ir.facts import is_exact
from pgcc.ir.flat import Flat
from pgcc.ir.node import Node, Op, postorder
from pgcc.ir.numbers import UNIT, Number, as_number, frexp, ldexp, nearest_float
from pgcc.ir.spelling import display_text
from pgcc.passes.simplify import LARGE

TOLERANCE = 1e-9  # how far the total of floats may be from 1
ACCURACY = 1e-12  # the relative error of a total that is no exact number
# The last working precision that is tried, in bits, and how many correct bits are enough.
_MOST_BITS, _ENOUGH = 1 << 13, 64
# A total that may be 0 is computed in fractions, if no determinant has more rows or columns.
_MOST_EXACT = 40
_LEAST, _MOST = 2.0**-400, 2.0**400  # products of two doubles between these are in range
_SIMPLE = {Op.CONST, Op.VAR, Op.SUM, Op.PRODUCT}  # what doubles are enough for
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
    if "root" not in circuit.__dict__ and circuit.edges > LARGE:  # no nodes have been made of large arrays
        value = in_doubles(circuit._flat, 1.0)
        if value is not None:
            return value
    root = circuit.root
    found = _known.get(root)
    if found is None:
        with collector_paused():
            found = _known[root] = _find(root)
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
    return as_number(ratio) if float not in (type(weight), type(value)) else ldexp(*frexp(ratio))


def in_doubles(flat: Flat, z: float) -> float | None:
    """The value of a circuit of floats without negative numbers, where all variables are z, to `ACCURACY`; or None.

    None : it is of another kind, a number leaves the middle of the range of doubles, or there are too many roundings.

    >>> import pgcc
    >>> in_doubles(pgcc.Circuit(pgcc.parse("a").root)._flat, 0.5)
    0.5
    """
    first, start, child, ops = flat.first_weight.tolist(), flat.start.tolist(), flat.child.tolist(), flat.op.tolist()
    weights = flat.doubles.tolist()
    if not ((flat.doubles > 0.0) & (flat.doubles < _MOST)).all() or set(ops) - _SIMPLE:
        return None
    value: list[float] = []
    rounds: list[int] = []  # roundings of each value, relative to it: all terms are positive
    is_sum, is_product, is_variable = map(int, (Op.SUM, Op.PRODUCT, Op.VAR))
    for i, op in enumerate(ops):
        below = child[start[i] : start[i + 1]]
        values = [value[c] for c in below]
        if op == is_sum:
            number = math.fsum(map(operator.mul, weights[first[i] : first[i + 1]], values))
            more, is_zero = 3 + max([rounds[c] for c in below], default=0), not any(values)
        elif op == is_product:
            number = math.prod(values)
            more, is_zero = sum([rounds[c] for c in below], len(below)), 0.0 in values
            if not is_zero and max(values, default=1.0) > 1.0 and math.prod([min(x, 1.0) for x in values]) < _LEAST:
                return None  # it may be smaller on the way than it is in the end
        elif op == is_variable:
            number = 1.0 if flat.data[i][1] else z
            more, is_zero = 0, not number
        else:
            number = nearest_float(flat.data[i])
            more, is_zero = 1, not flat.data[i]
        if not (number == 0.0 if is_zero else _LEAST < number < _MOST):
            return None
        value.append(number)
        rounds.append(more)
    return value[-1] if 1.01 * UNIT * rounds[-1] <= ACCURACY else None


def _find(root: Node) -> Number | arb:
    order, known = _down_to_known(root)
    exact = _exactly(order, known) if all(node in known or is_exact(node) for node in order) else None
    return _in_balls(order, known) if exact is None else exact


def _down_to_known(root: Node, rounded: bool = True) -> tuple[list[Node], dict[Node, Number | arb]]:
    """The nodes, children first, down to those whose totals are known: only exactly, unless `rounded`."""
    known: dict[Node, Number | arb] = {}

    def below(node: Node) -> tuple[Node, ...]:
        found = _known.get(node)
        if found is None or (isinstance(found, arb) and not rounded):
            return node.children
        known[node] = found
        return ()

    return postorder(root, below), known


def _exactly(order: Sequence[Node], known: Mapping[Node, Number | arb]) -> Number | None:
    """The total of the last node as an exact number; None if it becomes enormous, or a known one is rounded."""
    rationals = {node: rational(x) for node, x in known.items() if not isinstance(x, arb)}
    found = rational_total(order, LARGEST, rationals) if len(rationals) == len(known) else None
    return None if found is None else as_number(found)


def _in_balls(order: Sequence[Node], known: Mapping[Node, Number | arb]) -> arb:
    """The total as a ball with 64 correct bits, or with fewer if the most bits of working precision do not give them.

    A total that may be 0 is computed in fractions, where that is possible: a ball does not prove that a number is 0.
    """
    layouts = Layouts()
    for bits in doubled(FIRST_BITS, _MOST_BITS):
        with precision(bits):
            balls = {node: x if isinstance(x, arb) else ball(x) for node, x in known.items()}
            found = total_in_balls(order, layouts, balls)
        if found.is_exact() or found.rel_accuracy_bits() >= _ENOUGH:
            return found
        order, known = _down_to_known(order[-1], rounded=False)
        if bits == ZERO_BITS and found.contains(0):
            if not all(map(_is_small, order)):
                return found  # more bits of a large determinant take too long
            exact = _exactly(order, known)
            if exact is not None:
                with precision(_MOST_BITS):
                    return ball(exact)
    return found


def _is_small(node: Node) -> bool:
    """Whether it is no large determinant."""
    return node.op is not Op.DET or max(node.matrices[1].shape) <= _MOST_EXACT


def _rounded(value: arb) -> Number:
    """The nearest number of a float's bits, if the ball is small enough."""
    mantissa, exponent, bound = ball_parts(value)
    if abs(exponent) > _MOST_DIGITS * math.log2(10):
        raise PrecisionError(f"its total g(1), about 2**{exponent}, has more than {_MOST_DIGITS:,} digits")
    if bound > ACCURACY:
        raise PrecisionError(
            f"its total g(1) = {value.str(4)} cannot be computed to a relative error of 1e-12 "
            f"with up to {_MOST_BITS:,} bits"
        )
    return ldexp(mantissa, exponent)
