"""Rules for nodes: a step of a proof says that a node has a sign, or is stable, because those below it have.

A rule is a function in the table `RULES`; a step by another rule is an error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from pgcc.errors import ProofError
from pgcc.ir.circuit import Circuit
from pgcc.ir.node import Node, Op
from pgcc.validity.proof.determinants import DET_RULES, is_symmetric, kernel_of
from pgcc.validity.proof.exact_arithmetic import exact_rows, is_image, is_short, total, unknown

_MOST_BITS = 1 << 10  # of a value that a rule computes

Step = tuple[int, str, int | None, Any]  # position of a node, rule, sign, witness
Monomial = frozenset[tuple[str | int, int]]  # (variable, or position of a part that is proved; power)
Terms = dict[Monomial, Fraction]


def _holds(rule: str, node: Node, witness: Any) -> bool:
    m0, u, v = map(exact_rows, node.matrices)
    return DET_RULES[rule](m0, u, v, witness)


@dataclass
class Walk:
    """What the steps have shown so far, by position in the circuit's order.

    signs: 1 for no negative coefficient, −1 for no positive one, 0 for neither. terms: polynomials in variables and in
    parts without negative coefficients. stable: no zeros where all variables have positive imaginary parts, or 0.
    """

    circuit: Circuit
    signs: dict[int, int] = field(default_factory=dict)
    terms: dict[tuple[Any, int], Terms] = field(default_factory=dict)
    stable: set[int] = field(default_factory=set)
    matrices: set[tuple[str, Any]] = field(default_factory=set)

    def below(self, i: int) -> list[int | None]:
        return [self.signs.get(c) for c in self.circuit._links[i]]

    def has_rule(self, node: Node, rule: str, witness: Any) -> bool:
        """Whether a determinant has nonnegative coefficients in its children, by one of `DET_RULES`."""
        key = rule, node.matrices
        if key not in self.matrices and _holds(rule, node, witness):
            self.matrices.add(key)
        return key in self.matrices

    def takes(self, i: int, rule: str, sign: int | None, witness: Any) -> bool:
        """Whether a step follows from those before it; if so, it is one of them from now on."""
        op, holds = RULES[rule]
        node = self.circuit.order[i]
        if (op is not None and node.op is not op) or not holds(self, i, node, sign, witness):
            return False
        if sign is not None:
            self.signs[i] = sign
        return True


def follow(circuit: Circuit, steps: Iterable[Step]) -> Walk:
    """All steps of a proof, in order."""
    walk = Walk(circuit)
    for number, (i, rule, sign, witness) in enumerate(steps):
        if rule not in RULES or type(i) is not int or i < 0 or type(sign) not in (int, type(None)):
            raise ProofError(f"step {number}: {rule!r} is no rule, {i!r} no position or {sign!r} no sign")
        if not walk.takes(i, rule, sign, witness):
            node = circuit.order[i]
            raise ProofError(f"step {number}: {rule!r} does not show that node {i}, {node!r}, has the sign {sign}")
    return walk


def _sign(x: Any) -> int:
    return (x > 0) - (x < 0)


def _number(walk: Walk, i: int, node: Node, sign: Any, _: Any) -> bool:
    """A number is its own coefficient."""
    return sign == _sign(node.value)


def _variable(walk: Walk, i: int, node: Node, sign: Any, _: Any) -> bool:
    """The coefficient of a variable is 1."""
    return sign == 1


def _weighted_sum(walk: Walk, i: int, node: Node, sign: Any, _: Any) -> bool:
    """Coefficients add up: the sign of every term w·f, which is that of w times that of f, is this one or 0."""
    terms = [(_sign(w), s) for w, s in zip(node.weights, walk.below(i), strict=True) if w]
    return sign in (-1, 0, 1) and all(s is not None and w * s in (0, sign) for w, s in terms)


def _less_a_constant(walk: Walk, i: int, node: Node, sign: Any, bits: Any) -> bool:
    """Only constants are negative, and so not more than the coefficient without variables is too small. That is the
    value at 0: a ball of so many bits, or for 0 bits a rational."""
    terms = zip(node.weights, node.children, walk.below(i), strict=True)
    if sign != 1 or type(bits) is not int or not 0 <= bits <= _MOST_BITS:
        return False
    if not all(c.op is Op.CONST or (w >= 0 and s in (0, 1)) for w, c, s in terms):
        return False
    circuit = Circuit(node)
    return (bits > 0 or is_short(circuit)) and bool(total(circuit, bits, at=0) >= 0)


def _product(walk: Walk, i: int, node: Node, sign: Any, _: Any) -> bool:
    """Coefficients of a product are sums of products of coefficients; a factor of 0 makes it 0."""
    below = walk.below(i)
    if sign == 0:
        return 0 in below
    return None not in below and sign == math.prod(below)  # type: ignore[arg-type]


def _det_by(rule: str) -> Callable[[Walk, int, Node, Any, Any], bool]:
    """A determinant without negative coefficients in its children, of children without negative coefficients."""

    def holds(walk: Walk, i: int, node: Node, sign: Any, witness: Any) -> bool:
        return sign == 1 and all(s in (0, 1) for s in walk.below(i)) and walk.has_rule(node, rule, witness)

    return holds


def _part(walk: Walk, i: int, node: Node, sign: Any, space: Any) -> bool:
    """A node without negative coefficients is taken for a variable."""
    walk.terms[space, i] = {frozenset({(i, 1)}): Fraction(1)}
    return sign is None and walk.signs.get(i) in (0, 1)


def _terms(walk: Walk, i: int, node: Node, sign: Any, space: Any) -> bool:
    """A node is multiplied out, from the terms of its children."""
    found = polynomial_of(node, [walk.terms[space, c] for c in walk.circuit._links[i]])
    if found is not None:
        walk.terms[space, i] = found
    return sign is None and found is not None


def polynomial_of(
    node: Node, below: Sequence[Terms], may: Callable[[Terms, int], bool] = lambda found, more: True
) -> Terms | None:
    """The terms of a node, from those of its children; None of a determinant.

    may : whether to go on with what was found so far, by this many more products of terms; if not, it is None, too.
    """
    found: Terms = {}
    match node.op:
        case Op.CONST:
            found = {frozenset(): Fraction(node.value)}
        case Op.VAR:
            found = {frozenset() if node.is_complement else frozenset({(node.name, 1)}): Fraction(1)}
        case Op.SUM:
            for w, terms in zip(node.weights, below, strict=True):
                if not may(found, len(terms)):
                    return None
                for m, x in terms.items():
                    found[m] = found.get(m, Fraction(0)) + Fraction(w) * x
        case Op.PRODUCT:
            found = {frozenset(): Fraction(1)}
            for terms in below:
                if not may(found, len(found) * len(terms)):
                    return None
                found = times(found, terms)
        case Op.DET:
            return None
        case _:
            unknown(node)
    return {m: x for m, x in found.items() if x}


def times(a: Terms, b: Terms) -> Terms:
    """The product of two polynomials, squares and all."""
    out: Terms = {}
    for m, x in a.items():
        for n, y in b.items():
            powers = dict(m)
            for name, power in n:
                powers[name] = powers.get(name, 0) + power
            both = frozenset(powers.items())
            out[both] = out.get(both, Fraction(0)) + x * y
    return out


def _multiplied_out(walk: Walk, i: int, node: Node, sign: Any, space: Any) -> bool:
    """All coefficients have the sign."""
    return sign in (-1, 0, 1) and {_sign(x) for x in walk.terms[space, i].values()} <= {sign}


def _part_of_determinant(walk: Walk, i: int, node: Node, sign: Any, witness: Any) -> bool:
    """Σ_j w_j·D(s_j) = Σ_d (Σ_j w_j·s_j^d)·[s^d] D at s_j = 1, 2, 3, …, where every child of D(s) is Σ_m s^m·f_m.

    The f_m have no negative coefficients, nor has D as a polynomial in its children.
    """
    order, links = walk.circuit.order, walk.circuit._links
    dets = [order[c] for c in links[i]]
    if any(d.op is not Op.DET or d.data != dets[0].data for d in dets):
        return False
    points, half = range(1, len(dets) + 1), len(dets[0].inside)
    degrees = [_degree_in_s(walk, [links[c][p] for c in links[i]], points) for p in range(2 * half)]
    if None in degrees or not walk.has_rule(dets[0], *witness):
        return False
    most = sum(max(degrees[p] or 0, degrees[half + p] or 0) for p in range(half))
    sums = (sum(Fraction(w) * s**d for w, s in zip(node.weights, points, strict=True)) for d in range(most + 1))
    return sign in (-1, 0, 1) and {_sign(x) for x in sums} <= {0, sign}


def _degree_in_s(walk: Walk, at_points: Sequence[int], points: Sequence[int]) -> int | None:
    """The largest m where these nodes are Σ_m s^m·f_m at the points, with f_m that have no negative coefficients."""
    if len(set(at_points)) == 1:
        return 0 if walk.signs.get(at_points[0]) in (0, 1) else None
    forms = []
    for c in at_points:
        node, form = walk.circuit.order[c], dict[int, Fraction]()
        edges = zip(node.weights, walk.circuit._links[c], strict=True) if node.op is Op.SUM else [(1, c)]
        for w, part in edges:
            form[part] = form.get(part, Fraction(0)) + Fraction(w)  # a child may occur twice
        forms.append(form)
    most = 0
    for part in {part for form in forms for part in form}:
        weights = [form.get(part, Fraction(0)) for form in forms]
        if weights[0] <= 0 or walk.signs.get(part) not in (0, 1):
            return None
        power = int(weights[1] / weights[0]).bit_length() - 1  # s = 2 is the second point
        if power < 0 or any(w != weights[0] * s**power for w, s in zip(weights, points, strict=True)):
            return None
        most = max(most, power)
    return most


def _stable_number(walk: Walk, i: int, node: Node, sign: Any, _: Any) -> bool:
    """A nonnegative number has no zeros, or is 0."""
    return _stable(walk, i, sign, node.value >= 0)


def _stable_variable(walk: Walk, i: int, node: Node, sign: Any, _: Any) -> bool:
    """z is not 0 where its imaginary part is positive."""
    return _stable(walk, i, sign, True)


def _linear_form(walk: Walk, i: int, node: Node, sign: Any, _: Any) -> bool:
    """Σ w_i·z_i + c with w, c ≥ 0 maps the upper half-plane to itself, or is a number."""
    return _stable(walk, i, sign, is_form(node))


def _multiple(walk: Walk, i: int, node: Node, sign: Any, _: Any) -> bool:
    """c·g with c > 0 is stable if g is."""
    terms = [(w, c) for w, c in zip(node.weights, walk.circuit._links[i], strict=True) if w]
    return _stable(walk, i, sign, len(terms) == 1 and terms[0][0] > 0 and terms[0][1] in walk.stable)


def _stable_product(walk: Walk, i: int, node: Node, sign: Any, _: Any) -> bool:
    """A product of stable polynomials is stable."""
    return _stable(walk, i, sign, walk.stable.issuperset(walk.circuit._links[i]))


def _symmetric_determinant(walk: Walk, i: int, node: Node, sign: Any, witness: Any) -> bool:
    """Linear forms in det(M0 + Σ f_i·A_i) with symmetric A_i ⪰ 0; if it has a size, all children count."""
    rule, data = witness
    forms = has_forms(node)
    symmetric = rule in ("Gram determinant", "marginal kernel")
    if rule == "positive semidefinite kernel":
        L = kernel_of(*map(exact_rows, node.matrices))
        symmetric = L is not None and is_symmetric(L)
    return _stable(walk, i, sign, forms and all(node.counted) and symmetric and walk.has_rule(node, rule, data))


def _image(walk: Walk, i: int, node: Node, sign: Any, witness: Any) -> bool:
    """What is made of a stable h without negative coefficients: its part of degree k, or any a·(part of degree k) +
    b·(part of degree k + 1) with a, b ≥ 0 (h(z/y)·yⁿ is stable, and so are its derivatives by y, and those of what
    y ↦ 1/y makes of them); and what z ↦ 1/z, times all variables, makes of that."""
    other, steps, parts, swapped = witness
    h = Circuit(other.root, other.variables)  # cached attributes cannot be trusted
    if any(rule == "image of a stable polynomial" for _, rule, _, _ in steps):
        return False  # one is enough; many could nest without end
    if parts is not None:
        least = min((k for k, _ in parts), default=0)
        consecutive = all(type(k) is int and k == least + i >= 0 for i, (k, _) in enumerate(parts))
        if not consecutive or len(parts) > 2 or any(w < 0 for _, w in parts):
            return False
    stable = len(h.order) - 1 in follow(h, steps).stable
    return _stable(walk, i, sign, stable and is_image(Circuit(node), h, parts, swapped))


def has_forms(node: Node) -> bool:
    """Whether a determinant has nonnegative linear forms in place of f, and nonnegative numbers (as ȳ is) of y."""
    numbers = ((y.op is Op.VAR and y.is_complement) or (y.op is Op.CONST and y.value >= 0) for y in node.outside)
    return all(map(is_form, node.inside)) and all(numbers)


def is_form(node: Node) -> bool:
    """Whether it is Σ w_i·z_i + c with nonnegative numbers."""
    match node.op:
        case Op.CONST:
            return bool(node.value >= 0)
        case Op.VAR:
            return True
        case Op.SUM:
            return min(node.weights, default=0) >= 0 and all(not c.children and is_form(c) for c in node.children)
        case Op.PRODUCT | Op.DET:
            return False
        case _:
            return unknown(node)


def _stable(walk: Walk, i: int, sign: Any, holds: bool) -> bool:
    if holds:
        walk.stable.add(i)
    return holds and sign is None


# The operation that a rule is about (None: any), and whether a step by it holds.
RULES: dict[str, tuple[Op | None, Callable[[Walk, int, Node, Any, Any], bool]]] = {
    "number": (Op.CONST, _number),
    "variable": (Op.VAR, _variable),
    "weighted sum": (Op.SUM, _weighted_sum),
    "less a constant": (Op.SUM, _less_a_constant),
    "product": (Op.PRODUCT, _product),
    **{name: (Op.DET, _det_by(name)) for name in DET_RULES},
    "part of a determinant": (Op.SUM, _part_of_determinant),
    "part": (None, _part),
    "terms": (None, _terms),
    "multiplied out": (None, _multiplied_out),
    "stable number": (Op.CONST, _stable_number),
    "stable variable": (Op.VAR, _stable_variable),
    "linear form": (Op.SUM, _linear_form),
    "multiple": (Op.SUM, _multiple),
    "stable product": (Op.PRODUCT, _stable_product),
    "symmetric determinant": (Op.DET, _symmetric_determinant),
    "image of a stable polynomial": (None, _image),
}
