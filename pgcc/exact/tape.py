"""A circuit as a tape: its nodes in order, with numbers in a ring; and the one walk over it."""

from __future__ import annotations

import math
import operator
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import Any, assert_never

from flint import arb, fmpq

from pgcc.exact.balls import fraction
from pgcc.exact.bounded import bits, determinant_bits
from pgcc.exact.pencil import BALLS, RATIONALS, Determinant, Layout, Ring
from pgcc.ir.node import Node, Op

# A node of a circuit: operation, children, data with numbers in a ring, and the children that no later node needs.
Entry = tuple[Op, tuple[int, ...], Any, list[int]]
Tape = list[Entry]


class Layouts(dict[Node, Layout]):
    """The layouts of determinants, each made when it is first asked for."""

    def __missing__(self, node: Node) -> Layout:
        found = self[node] = Layout(node)
        return found


def make_tape(order: Sequence[Node], ring: Ring, layouts: Layouts, known: Mapping[Node, Any] | None = None) -> Tape:
    """The nodes of a circuit, children first, with numbers in the ring.

    known : values, in the ring, of nodes whose children are left out.
    """
    known = known or {}
    place = {node: i for i, node in enumerate(order)}
    links = [() if node in known else tuple([place[child] for child in node.children]) for node in order]
    data = [known[node] if node in known else _lifted(node, ring, layouts) for node in order]
    ops = [Op.CONST if node in known else node.op for node in order]
    return list(zip(ops, links, data, _dead_after(links), strict=True))


def _lifted(node: Node, ring: Ring, layouts: Layouts) -> Any:
    """The data of a node, with numbers in the ring."""
    match node.op:
        case Op.SUM:
            return list(map(ring.lift, node.weights))
        case Op.CONST:
            return ring.lift(node.value)
        case Op.DET:
            return Determinant(layouts[node], ring)
        case Op.VAR | Op.PRODUCT:
            return node.data
    assert_never(node.op)


def _dead_after(links: Sequence[tuple[int, ...]]) -> list[list[int]]:
    """For every node, the children that no later node needs."""
    last_use = [0] * len(links)
    for i, children in enumerate(links):
        for child in children:
            last_use[child] = i
    dead: list[list[int]] = [[] for _ in links]
    for child, i in enumerate(last_use[:-1]):  # the last node is nobody's child
        dead[i].append(child)
    return dead


def run_tape(tape: Tape, literals: Mapping[tuple[str, bool], Any], most_bits: int | None = None) -> Any:
    """The value of a circuit, given those of z (False) and ȳ (True) of every variable.

    most_bits : raise `TooLongError` when a rational becomes longer.
    """
    add: Any = sum
    multiply: Any = math.prod
    if most_bits is not None:
        add, multiply = partial(_fold, operator.add, most_bits), partial(_fold, operator.mul, most_bits)
    at: list[Any] = []
    for op, children, data, dead in tape:
        match op:
            case Op.CONST:
                at.append(data)
            case Op.VAR:
                at.append(literals[data])
            case Op.SUM:
                at.append(add([w * at[c] for w, c in zip(data, children, strict=True)], start=0))
            case Op.PRODUCT:
                at.append(multiply([at[c] for c in children], start=1))
            case Op.DET:
                k = len(children) // 2
                at.append(data.at([at[c] for c in children[:k]], [at[c] for c in children[k:]]))
            case _:
                assert_never(op)
        for c in dead:  # free the memory: numbers may be long
            at[c] = None
    return at[-1]


# -- rationals that are not too long -------------------------------------------------------------------------------


class TooLongError(ArithmeticError):
    """A rational has more bits than it may have."""


def _fold(step: Callable[[Any, Any], Any], most_bits: int, numbers: Iterable[Any], start: int) -> Any:
    """A sum or product of rationals, no step of which makes a long one; start : 0 or 1."""
    found = fmpq(start)
    for x in numbers:
        if found == start:
            found = x
        elif x != start:
            found = step(found, x)
            if 2 * found.height_bits() > most_bits and _bits(found) > most_bits:  # height_bits is quick
                raise TooLongError
    return found


def _bits(x: fmpq) -> int:
    """Of numerator and denominator together."""
    return x.p.bit_length() + x.q.bit_length()


def _bounded_rationals(most_bits: int) -> Ring:
    """The rationals, without determinants that could be longer."""

    def expect_short(matrix: Any) -> None:
        if determinant_bits(map(_bits, row) for row in matrix.tolist()) > most_bits:
            raise TooLongError

    def determinant(matrix: Any) -> Any:
        expect_short(matrix)
        return RATIONALS.det(matrix)

    def coefficient(P: Any, Q: Any, wanted: int, degree: int) -> Any:
        expect_short(P + Q * fmpq(degree))
        return RATIONALS.coefficient(P, Q, wanted, degree)

    return RATIONALS._replace(det=determinant, coefficient=coefficient)


# -- totals --------------------------------------------------------------------------------------------------------


def total_in_balls(order: Sequence[Node], layouts: Layouts, known: Mapping[Node, arb]) -> arb:
    """The value of the last node where every variable is 1, in the working precision."""
    return arb(run_tape(make_tape(order, BALLS, layouts, known), _all(arb(1))))


def rational_total(order: Sequence[Node], most_bits: int, known: Mapping[Node, fmpq] | None = None) -> Fraction | None:
    """The value of the last node where every variable is 1; None if rationals of more bits may be needed."""
    tape = make_tape(order, _bounded_rationals(most_bits), Layouts(), known)
    try:
        return fraction(run_tape(tape, _all(fmpq(1)), most_bits))
    except TooLongError:
        return None


def _all(value: Any) -> Mapping[tuple[str, bool], Any]:
    """Every variable, and its complement, has this value."""
    return defaultdict(lambda: value)


# -- lengths -------------------------------------------------------------------------------------------------------


def bits_of_value(order: Sequence[Node], layouts: Layouts) -> int:
    """A rough bound on the bits of the exact value of a circuit where variables are 0 or 1: those of factors add up."""
    at: dict[Node, int] = {}
    for node in order:
        below = [at[child] for child in node.children]
        match node.op:
            case Op.CONST:
                at[node] = bits(node.value)
            case Op.VAR:
                at[node] = 1
            case Op.SUM:
                at[node] = max((bits(w) + b for w, b in zip(node.weights, below, strict=True)), default=1) + 8
            case Op.PRODUCT:
                at[node] = sum(below)
            case Op.DET:
                n = node.matrices[0].shape[0] + len(node.inside)
                at[node] = sum(below) + n * (max(map(bits, layouts[node].numbers()), default=1) + 8)
            case _:
                assert_never(node.op)
    return at[order[-1]]
