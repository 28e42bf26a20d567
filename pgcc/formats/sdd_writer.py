"""Logic circuits → `.sdd` and `.vtree`.

A circuit whose coefficients are 0 and 1 is a Boolean function. It is compiled bottom-up to the SDD of that function, by
conjunction and negation (Darwiche, IJCAI 2011). In a decision {(prime, sub)}, the primes exclude one another, one of
them is true under every assignment, and no two subs are equal (*compressed*); a decision that equals one of its nodes
is replaced by it (*trimmed*). For a given vtree, such an SDD is unique.

The vtree is found, not given: the factors of every product stand on different sides of it, the first one on the left.
Circuits whose products disagree about that are refused, because their SDD may be exponentially larger.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from functools import reduce
from itertools import product
from operator import or_
from typing import Any, BinaryIO

from pgcc.collector import collector_paused
from pgcc.errors import FormatError
from pgcc.formats.logic import need_variables, over_literals, refuse_weights, signed_number
from pgcc.ir.circuit import Circuit
from pgcc.ir.names import some
from pgcc.ir.node import Node, Op
from pgcc.ir.printer import describe
from pgcc.passes.recursion import resolve

# Elements of all decisions together.
MOST_ELEMENTS = 1 << 21

Scope = int  # a set of variables as bits: bit i − 1 for x_i
Factors = tuple[Scope, ...]  # the variables of the factors of a product
Element = tuple[int, int]  # prime and sub


def write(circuit: Circuit, file: BinaryIO) -> dict[str, bytes]:
    """Write a logic circuit as an SDD.

    Returns
    -------
    dict
        The contents of its `.vtree` file.

    Raises
    ------
    FormatError
        If the circuit has weights, coefficients above 1, or products that follow no vtree.
    """
    with collector_paused():
        full = over_literals(circuit, "an SDD")
        need_variables(full, "an SDD")
        refuse_weights(full, "an SDD")
        vtree = _Vtree(len(full.variables), _products(full))
        diagram = _Diagram(vtree)
        file.write(diagram.text(_compile(full, diagram)).encode("ascii"))
        return {".vtree": vtree.text().encode("ascii")}


# -- the vtree -------------------------------------------------------------------------------------------------


def _products(circuit: Circuit) -> list[Factors]:
    """The distinct products, parents first, without factors that are always true: x + x̄, and products of these."""
    scopes: list[Scope] = []
    found: list[Factors] = []
    for node, below in zip(circuit.order, circuit.links, strict=True):
        factors = tuple(scopes[c] for c in below if scopes[c])
        if node.op is Op.PRODUCT and len(factors) > 1:
            found.append(factors)
        own = 1 << (abs(signed_number(node)) - 1) if node.op is Op.VAR else 0
        scopes.append(0 if _is_either_value(node) else reduce(or_, factors, own))
    return list(dict.fromkeys(reversed(found)))


def _is_either_value(node: Node) -> bool:
    """Whether a node is x + x̄."""
    numbers = [signed_number(child) for child in node.children if child.op is Op.VAR]
    return node.op is Op.SUM and all(node.weights) and len(numbers) == len(node.children) == 2 and not sum(numbers)


class _Vtree:
    """A vtree that separates the factors of all products; nodes are numbered from left to right, as in libsdd.

    It is built from the root down (Aho, Sagiv, Szymanski and Ullman, 1981). Two variables of a node stay on one side if
    some product has both in one factor, and other variables of the node in another factor. Of the sets of variables
    that are held together in this way, one is the left side, and the others are the right side.
    """

    def __init__(self, count: int, products: list[Factors]):
        self.leaf: dict[int, int] = {}  # the node of every variable
        self.parent: dict[int, int] = {}
        self.depth: dict[int, int] = {}  # parents before children
        stack = [((1 << count) - 1, products, 0, -1)]
        while stack:
            scope, known, leaves_before, parent = stack.pop()
            if scope.bit_count() == 1:
                at = self.leaf[scope.bit_length()] = 2 * leaves_before
            else:
                inside = _restrict(known, scope)
                left = _left_side(scope, inside)
                middle = leaves_before + left.bit_count()
                at = 2 * middle - 1
                stack += [(scope & ~left, inside, middle, at), (left, inside, leaves_before, at)]
            self.parent[at], self.depth[at] = parent, self.depth.get(parent, -1) + 1

    def meet(self, a: int, b: int) -> int:
        """The lowest node above two nodes."""
        while a != b:
            if self.depth[a] < self.depth[b]:
                a, b = b, a
            a = self.parent[a]
        return a

    def text(self) -> str:
        """The `.vtree` file, children before parents."""
        variable = {at: name for name, at in self.leaf.items()}
        below: dict[int, list[int]] = {at: [] for at in self.depth}
        for at in self.depth:  # left before right
            below.setdefault(self.parent[at], []).append(at)
        lines = [
            f"L {at} {variable[at]}" if at in variable else f"I {at} {below[at][0]} {below[at][1]}"
            for at in reversed(self.depth)
        ]
        return "\n".join([f"vtree {len(lines)}", *lines, ""])


def _restrict(products: Iterable[Factors], scope: Scope) -> list[Factors]:
    """The products restricted to some variables, as far as these belong to different factors."""
    parts = (tuple(factor & scope for factor in factors if factor & scope) for factors in products)
    return [factors for factors in dict.fromkeys(parts) if len(factors) > 1]


def _left_side(scope: Scope, products: list[Factors]) -> Scope:
    """The variables on the left of a vtree node: those that are held together with the first factor of a product."""
    variables = [i for i in range(scope.bit_length()) if scope >> i & 1]
    groups = [1 << i for i in variables]
    for factor in sorted({one for factors in products for one in factors}, key=int.bit_count, reverse=True):
        held = [group for group in groups if group & factor]
        if len(held) > 1:
            groups = [*(group for group in groups if not group & factor), reduce(or_, held)]
    if len(groups) == 1:
        names = some([f"x{i + 1}" for i in variables])
        raise FormatError(
            f"the products of an SDD follow one vtree, and those of this circuit divide {names} in ways that exclude "
            "one another: .nnf, .pgc and .npz keep it"
        )
    first = products[0][0] if products else groups[0]
    return next(group for group in groups if group & first)


# -- the diagram -----------------------------------------------------------------------------------------------

FALSE, TRUE = 0, 1


class _Diagram:
    """The nodes of SDDs of one vtree, by number; equal functions have the same node, and node ^ 1 is the negation."""

    def __init__(self, vtree: _Vtree):
        self.vtree = vtree
        self.at = [-1, -1]  # the vtree node of every node
        for variable in sorted(vtree.leaf):
            self.at += [vtree.leaf[variable]] * 2
        self.elements: list[tuple[Element, ...]] = [()] * len(self.at)  # none of constants and literals
        self._decisions: dict[tuple[int, tuple[Element, ...]], int] = {}
        self._conjunctions: dict[Element, int] = {}
        self._size = 0

    @staticmethod
    def literal(number: int) -> int:
        """The node of x_i for i, and of its complement for −i."""
        return 2 * number if number > 0 else 1 - 2 * number

    def disjoin(self, f: int, g: int) -> int:
        """f or g"""
        return self.conjoin(f ^ 1, g ^ 1) ^ 1

    def conjoin(self, f: int, g: int) -> int:
        """f and g"""
        return resolve((f, g), self._known, self._conjoin, self._conjunctions)

    def _known(self, pair: Element) -> int | None:
        f, g = pair
        if f == g or g == TRUE:
            return f
        if f == TRUE:
            return g
        if f == g ^ 1 or FALSE in (f, g):
            return FALSE
        return self._conjunctions.get(pair, self._conjunctions.get((g, f)))

    def _conjoin(self, pair: Element) -> Generator[Element, Any, int]:
        """Σ pᵢ·sᵢ · Σ qⱼ·tⱼ = Σ (pᵢ·qⱼ)·(sᵢ·tⱼ), with one prime for every sub; yields the conjunctions it needs."""
        f, g = pair
        at = self.vtree.meet(self.at[f], self.at[g])
        primes: dict[int, int] = {}  # by their subs
        for (p, s), (q, t) in product(self._elements_at(f, at), self._elements_at(g, at)):
            prime = yield p, q
            if prime == FALSE:
                continue
            sub = yield s, t
            primes[sub] = (yield prime ^ 1, primes[sub] ^ 1) ^ 1 if sub in primes else prime
        return self._decision(at, primes)

    def _elements_at(self, node: int, at: int) -> tuple[Element, ...]:
        """A node as a decision at a vtree node that is its own or above it."""
        if self.at[node] == at:
            return self.elements[node]
        return ((node, TRUE), (node ^ 1, FALSE)) if self.at[node] < at else ((TRUE, node),)

    def _decision(self, at: int, primes: dict[int, int]) -> int:
        """The decision with these primes, by their subs; trimmed."""
        if len(primes) == 1:
            return next(iter(primes))
        if primes.keys() == {TRUE, FALSE}:
            return primes[TRUE]
        elements = tuple(sorted((prime, sub) for sub, prime in primes.items()))
        found = self._decisions.get((at, elements))
        if found is None:
            found = len(self.at)
            negated = tuple((prime, sub ^ 1) for prime, sub in elements)
            self._decisions[at, elements], self._decisions[at, negated] = found, found ^ 1
            self.elements += [elements, negated]
            self.at += [at, at]
            self._size += len(elements)
            if self._size > MOST_ELEMENTS:
                raise FormatError(f"the SDD of this circuit takes more than {MOST_ELEMENTS:,} elements: .nnf keeps it")
        return found

    def text(self, root: int) -> str:
        """The `.sdd` file: the nodes that the root needs, children first."""
        ids: dict[int, int] = {}
        lines: list[str] = []
        stack = [(root, False)]
        while stack:
            node, ready = stack.pop()
            if node in ids:
                continue
            below = [one for element in self.elements[node] for one in element]
            if below and not ready:
                stack += [(node, True), *((one, False) for one in below)]
                continue
            ids[node] = len(lines)
            if node in (FALSE, TRUE):
                lines.append(f"{'FT'[node]} {ids[node]}")
            elif below:
                lines.append(" ".join(map(str, ["D", ids[node], self.at[node], len(below) // 2, *map(ids.get, below)])))
            else:
                lines.append(f"L {ids[node]} {self.at[node]} {-(node // 2) if node % 2 else node // 2}")
        return "\n".join([f"sdd {len(lines)}", *lines, ""])


def _compile(circuit: Circuit, diagram: _Diagram) -> int:
    """The node of the function that a circuit is."""
    made: list[int] = []
    for node, below in zip(circuit.order, circuit.links, strict=True):
        children = [made[c] for c in below]
        match node.op:
            case Op.CONST:
                made.append(TRUE if node.value else FALSE)
            case Op.VAR:
                made.append(diagram.literal(signed_number(node)))
            case Op.PRODUCT:
                made.append(reduce(diagram.conjoin, children, TRUE))
            case Op.SUM:
                value = FALSE
                for term in (child for weight, child in zip(node.weights, children, strict=True) if weight):
                    if diagram.conjoin(value, term) != FALSE:
                        raise FormatError(
                            f"the terms of a sum exclude one another in an SDD, and two of {describe(node)} can be "
                            "true together"
                        )
                    value = diagram.disjoin(value, term)
                made.append(value)
            case _:
                raise FormatError(f"an SDD has no {node!r}")
    return made[-1]
