"""Circuits that are PSDDs → `.psdd` and `.vtree`.

The vtree is found, not given: in a smooth circuit whose products split their variables in one way, every node's
variables are a node of it. (Products of more than two factors are nested to the right.) A sum is multiplied out to
elements w·prime·sub, and over one variable to p·x + (1 − p)·x̄. Weights are divided by the totals of the nodes, so that
those of every decision add up to 1: the polynomial stays the same if its total is 1. Elements have to exclude one
another, by their primes or, as in files that learners write, by their subs.

Weights and totals are decimal numbers of 40 digits, whose range has no end that matters: what a file has is logarithms,
so that 1e-400, which is 0 as a double, is a weight like any other.
"""

from __future__ import annotations

import math
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from itertools import combinations
from typing import BinaryIO

from pgcc.collector import collector_paused
from pgcc.errors import FormatError
from pgcc.exact.pencil import RATIONALS
from pgcc.exact.tape import Layouts, make_tape, run_tape
from pgcc.formats.logic import over_literals
from pgcc.frontend.common_support import CommonSupport, is_deterministic
from pgcc.ir.circuit import Circuit
from pgcc.ir.node import Node, Op
from pgcc.ir.numbers import Number
from pgcc.ir.printer import brief_text, describe
from pgcc.ir.scopes import members

# TOLERANCE: the weights of a decision are written unchanged, not divided by their sum, if that is so close to 1 (files
# have as few as six digits) and none of them is above 1, which a file cannot have: the same polynomial is read again.
# ROUNDING: over one variable, a file has only p, so that the other weight must be 1 − p up to rounding.
# ROUNDINGS: a total that is so close to 1 counts as 1.
TOLERANCE, ROUNDING, ROUNDINGS = Decimal("5e-4"), Decimal("4e-16"), Decimal("1e-12")
# Logarithms of weights that are read are not below it.
LEAST_LOG = -2000.0
# Doubles above it have all their digits.
_LEAST_NORMAL = 2.0**-1022
_DIGITS = Context(prec=40, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])
# Elements of all decisions together, where sums of sums are multiplied out.
MOST_ELEMENTS = 1 << 22

Parts = tuple[int, ...]  # the nodes of a conjunction, by position, in the order of the vtree
Element = tuple[Decimal, Parts]
ONE = Decimal(1)


def write(circuit: Circuit, file: BinaryIO) -> dict[str, bytes]:
    """Write a circuit as a PSDD.

    Returns
    -------
    dict
        The contents of its `.vtree` file.

    Raises
    ------
    FormatError
        If the circuit is no PSDD; the reason is named.
    """
    with collector_paused(), localcontext(_DIGITS):
        full = over_literals(circuit, "a PSDD")
        if not full.variables:
            raise FormatError("a PSDD has at least one variable, and this circuit has none")
        if not full.facts.monotone:
            raise FormatError("a PSDD has no negative weights, and this circuit has some: .pgc and .npz keep them")
        writer = _Writer(full)
        writer.write_root()
        file.write("\n".join([f"psdd {len(writer.lines)}", *writer.lines, ""]).encode("ascii"))
        return {".vtree": writer.vtree.text().encode("ascii")}


class _Vtree:
    """The vtree that the products of a smooth circuit follow; its nodes are the scopes of the circuit.

    Attributes
    ----------
    split : dict
        How a scope is split, by the scopes of the factors of its products, from left to right.
    """

    def __init__(self, circuit: Circuit):
        self.circuit = circuit
        self.of = circuit.scopes.of
        self.split: dict[int, tuple[int, ...]] = {}
        owner: dict[int, Node] = {}
        for i, (node, below) in enumerate(zip(circuit.order, circuit._links, strict=True)):
            parts = tuple(self.of[c] for c in below if self.of[c])  # scope 0 is that of constants
            if node.op is not Op.PRODUCT or len(parts) < 2:
                continue
            known = self.split.setdefault(self.of[i], parts)
            if sorted(known) != sorted(parts):
                raise FormatError(
                    f"the products of a PSDD follow one vtree, and {describe(node)} splits its variables unlike "
                    f"{describe(owner[self.of[i]])}"
                )
            owner.setdefault(self.of[i], node)
        self.number: dict[tuple[int, ...], int] = {}  # of every node, by the scopes that stand below it
        self.lines: list[str] = []
        self._add((self.of[-1],))

    def _add(self, root: tuple[int, ...]) -> None:
        """Number the nodes, children first; a node of several scopes is their conjunction, nested to the right."""
        stack = [(root, False)]
        while stack:
            scopes, ready = stack.pop()
            sides = self.sides(scopes)
            if sides is None:
                self._line(scopes, f"L {len(self.lines)} {self.variable(scopes[0])}")
            elif ready:
                left, right = (self.number[side] for side in sides)
                self._line(scopes, f"I {len(self.lines)} {left} {right}")
            else:
                stack += [(scopes, True), (sides[1], False), (sides[0], False)]

    def _line(self, scopes: tuple[int, ...], line: str) -> None:
        self.number[scopes] = len(self.lines)
        self.lines.append(line)

    def sides(self, scopes: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
        """Left and right of a node; None for a variable."""
        if len(scopes) > 1:
            return scopes[:1], scopes[1:]
        parts = self.split.get(scopes[0])
        return None if parts is None else (parts[:1], parts[1:])

    def variable(self, scope: int) -> str:
        """The number of the only variable of a scope."""
        scopes = self.circuit.scopes
        return scopes.names[next(members(scopes.distinct[scope]))].removeprefix("x")

    def text(self) -> str:
        """The `.vtree` file."""
        return "\n".join([f"vtree {len(self.lines)}", *self.lines, ""])


class _Writer:
    """The lines of a PSDD, one for every (vtree node, conjunction) that is needed."""

    def __init__(self, circuit: Circuit):
        self.circuit, self.order, self._links = circuit, circuit.order, circuit._links
        self.vtree = _Vtree(circuit)
        self.of = circuit.scopes.of
        self.total = self._totals()
        self.support, self.is_deterministic = CommonSupport(circuit), is_deterministic(circuit)
        self.lines: list[str] = []
        self.ids: dict[Parts, int] = {}
        self.made = 0
        self._elements: dict[int, list[Element]] = {}

    def _totals(self) -> list[Decimal]:
        """The value of every node where nothing is observed, taken for 1 where it is nearly 1."""
        total: list[Decimal] = []
        largest: list[Decimal] = []  # the largest weight of an element
        for i, (node, below) in enumerate(zip(self.order, self._links, strict=True)):
            value = top = ONE
            match node.op:
                case Op.CONST:
                    value = _decimal(node.value)
                case Op.VAR:
                    pass
                case Op.SUM:
                    terms = [_decimal(w) * total[c] for w, c in zip(node.weights, below, strict=True)]
                    value = sum(terms, Decimal(0))
                    top = max((x * largest[c] for x, c in zip(terms, below, strict=True)), default=Decimal(0))
                case Op.PRODUCT:
                    value = math.prod((total[c] for c in below), start=ONE)
                    there = self._factors(i)
                    top = largest[there[0]] if len(there) == 1 else ONE
                case _:
                    raise FormatError(f"a PSDD has no {node!r}")
            as_it_is = node.op is Op.SUM and self.of[i] in self.vtree.split and top <= 1 + ROUNDING
            nearly = TOLERANCE if as_it_is else ROUNDING  # the factors of a product have totals of their own
            total.append(ONE if abs(value - 1) <= nearly else value)
            largest.append(top / total[i] if node.op is Op.SUM and value else top)
        if abs(total[-1] - 1) > ROUNDINGS:
            raise FormatError(
                f"a PSDD is normalized, and the total of this circuit is {_few_digits(total[-1])}: circuit.normalize()"
            )
        return total

    def write_root(self) -> None:
        """The lines of all nodes that the root needs, children first; iterative, since circuits may be deep."""
        stack: list[tuple[Parts, bool]] = [((len(self.order) - 1,), False)]
        while stack:
            parts, ready = stack.pop()
            if parts in self.ids:
                continue
            sides = self.vtree.sides(tuple(self.of[p] for p in parts))
            if sides is None:
                self._add(parts, self._leaf(parts[0]))
                continue
            elements = [(w, p[:1], p[1:]) for w, p in self._decision(parts)]
            if ready:
                self._add(parts, self._decision_line(parts, elements))
            else:
                stack.append((parts, True))
                stack += [(side, False) for _, prime, sub in elements for side in (sub, prime) if side not in self.ids]

    def _add(self, parts: Parts, words: tuple[str, str]) -> None:
        kind, rest = words
        place = self.vtree.number[tuple(self.of[p] for p in parts)]
        self.ids[parts] = len(self.lines)
        self.lines.append(f"{kind} {len(self.lines)} {place} {rest}")

    def _decision(self, parts: Parts) -> list[Element]:
        """The elements of a conjunction: of several nodes one, and of one node those of its sum."""
        return [(ONE, parts)] if len(parts) > 1 else self.elements(parts[0])

    def elements(self, position: int) -> list[Element]:
        """A node over several variables as Σ w·Π parts, its sums of sums multiplied out; total 1."""
        stack = [position]
        while stack:
            at = stack[-1]
            waiting = [c for c in self._inner(at) if c not in self._elements]
            if waiting:
                stack += waiting
            else:
                stack.pop()
                if at not in self._elements:
                    self._elements[at] = self._multiplied(at)
        return self._elements[position]

    def _inner(self, at: int) -> list[int]:
        """The children over the same variables, whose elements are its own."""
        node = self.order[at]
        if node.op is Op.SUM:
            return [c for w, c in zip(node.weights, self._links[at], strict=True) if w]
        there = self._factors(at)
        return there if len(there) == 1 else []

    def _factors(self, at: int) -> list[int]:
        """The factors of a product that are no constants."""
        return [c for c in self._links[at] if self.of[c]]

    def _multiplied(self, at: int) -> list[Element]:
        """Elements with weights that add up to 1, as if every node below it had the total 1."""
        node = self.order[at]
        if node.op is Op.PRODUCT:
            there = self._factors(at)
            if len(there) == 1:
                return self._elements[there[0]]
            place = {scope: i for i, scope in enumerate(self.vtree.split[self.of[at]])}
            return [(ONE, tuple(sorted(there, key=lambda c: place[self.of[c]])))]
        found: list[Element] = []
        for w, c in zip(node.weights, self._links[at], strict=True):
            share = _decimal(w) * self.total[c]
            found += [(share / self.total[at] * v, parts) for v, parts in (self._elements[c] if share else [])]
        self.made += len(found)
        if self.made > MOST_ELEMENTS:
            raise FormatError(
                f"the PSDD would have more than {MOST_ELEMENTS:,} elements: its sums of sums are too many"
            )
        return found

    def _decision_line(self, parts: Parts, elements: list[tuple[Decimal, Parts, Parts]]) -> tuple[str, str]:
        self._check_exclusive(parts, [prime + sub for _, prime, sub in elements])
        words = [f"{self.ids[prime]} {self.ids[sub]} {_log(w)}" for w, prime, sub in elements]
        return "D", f"{len(elements)} {' '.join(words)}"

    def _check_exclusive(self, parts: Parts, elements: list[Parts]) -> None:
        for us, vs in combinations(elements, 2) if not self.is_deterministic else ():
            meeting = self.support.products_meet(us, vs)
            if meeting is not False:
                doubt = "can both be positive" if meeting else "were not shown to exclude one another"
                first, second = (" · ".join(brief_text(self.order[c], depth=1) for c in cs) for cs in (us, vs))
                raise FormatError(
                    f"the elements of a decision exclude one another in a PSDD, and {first} and {second} in "
                    f"{describe(self.order[parts[0]])} {doubt}"
                )

    def _leaf(self, position: int) -> tuple[str, str]:
        """A node over one variable: a literal, or p·x + (1 − p)·x̄."""
        inside, outside = self._pair(position)
        variable = self.vtree.variable(self.of[position])
        if not outside or not inside:
            return "L", variable if inside else f"-{variable}"
        if outside > inside:
            return "T", f"{variable} {_log(inside / (inside + outside))}"
        rest = float(outside / (inside + outside))
        if rest < _LEAST_NORMAL:  # log(1 − rest) is −rest
            raise FormatError(
                "a PSDD has log(p) of a probability p, which is 0 as a double if p is nearly 1, and in "
                f"{describe(self.order[position])} x{variable} is 0 with a probability of about "
                f"{_few_digits(outside / (inside + outside))}"
            )
        return "T", f"{variable} {math.log1p(-rest)!r}"

    def _pair(self, position: int) -> tuple[Decimal, Decimal]:
        """The coefficients of x and x̄ of a node over one variable."""
        tape = make_tape(Circuit(self.order[position]).order, RATIONALS._replace(lift=_decimal), Layouts())
        name = f"x{self.vtree.variable(self.of[position])}"
        inside, outside = (run_tape(tape, {(name, False): x, (name, True): 1 - x}) for x in (ONE, Decimal(0)))
        return inside, outside


def _decimal(number: Number) -> Decimal:
    if type(number) is float:
        return Decimal(number)
    above, below = number.as_integer_ratio()
    return Decimal(above) / below


def _log(weight: Decimal) -> str:
    """The logarithm of a weight; that of 1 is 0."""
    if weight == 1:
        return "0"
    near = float(weight)
    log = math.log(near) if near >= _LEAST_NORMAL else float(weight.ln())
    if log < LEAST_LOG:
        raise FormatError(
            f"a PSDD has logarithms of weights down to {LEAST_LOG:g}, and this circuit has a weight of about "
            f"{_few_digits(weight)}"
        )
    return repr(min(0.0, log))


def _few_digits(number: Decimal) -> str:
    """A few digits of a number of any size."""
    return f"{+number.normalize(Context(prec=6, Emin=MIN_EMIN, Emax=MAX_EMAX)):g}".replace("E", "e")
