"""Proofs by the way a circuit is built: rules that go from the children of a node to the node.

Nonnegative: no coefficient of the node's polynomial is negative. The same walk keeps track of polynomials without
positive coefficients, so that −1·(−z) is no obstacle. Rules are data: a name, the law that makes it right, and what
it needs. A node that no rule proves, and that has few terms, is multiplied out, exactly; large parts of it that are
proved themselves are taken for variables.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

from pgcc.ir.circuit import Circuit
from pgcc.ir.node import Node, Op
from pgcc.ir.structure import describe
from pgcc.lowering.determinant import DetStructure
from pgcc.queries.definite import Rows, is_semidefinite
from pgcc.queries.extraction import Sign, sign_of_combination

Signs = Sequence[Sign]


class Rule(NamedTuple):
    """Why the coefficients of a node all have one sign.

    Attributes
    ----------
    name : str
    law : str
        The fact of mathematics behind it.
    sign : callable
        From the node and the signs of its children to its own, None where the rule does not apply.
    """

    name: str
    law: str
    sign: Callable[[Node, Signs], Sign]


# -- the rules -------------------------------------------------------------------------------------------------------


def _of_number(node: Node, _: Signs) -> Sign:
    return (node.value > 0) - (node.value < 0)


def _of_variable(node: Node, _: Signs) -> Sign:
    return 1


def _of_sum(node: Node, below: Signs) -> Sign:
    found = 0
    for weight, sign in zip(node.weights, below, strict=True):
        if not weight or sign == 0:
            continue
        if sign is None:
            return None
        term = sign if weight > 0 else -sign
        if found == -term:
            return None
        found = term
    return found


def _of_product(node: Node, below: Signs) -> Sign:
    found = 1
    for sign in below:
        if sign == 0:
            return 0
        if sign is None:
            return None
        found *= sign
    return found


def _of_det(holds: Callable[[DetStructure], bool]) -> Callable[[Node, Signs], Sign]:
    """A determinant whose coefficients as a polynomial in its children are nonnegative, of children that are."""

    def sign(node: Node, below: Signs) -> Sign:
        nonnegative = all(s in (0, 1) for s in below)
        return 1 if nonnegative and holds(DetStructure.of(node)) else None

    return sign


def is_tree(s: DetStructure) -> bool:
    """The Laplacian of a graph with nonnegative weights, maybe directed."""
    return s.in_range and s.laplacian is not None


def is_gram(s: DetStructure) -> bool:
    """M0 is positive semidefinite and u_i = s_i·v_i with s_i > 0."""
    return s.ratio is not None and is_semidefinite(s.matrices[0].numbers())


def is_kernel(s: DetStructure) -> bool:
    """M0 = diag(d ≥ 0), the columns of U are unit vectors, and L + Lᵀ is positive semidefinite (see `_kernel`)."""
    L = _kernel(s)
    return L is not None and is_semidefinite(L if _is_symmetric(L) else _plus_transpose(L))


def is_symmetric_kernel(s: DetStructure) -> bool:
    """The same, and L is symmetric."""
    L = _kernel(s)
    return L is not None and _is_symmetric(L) and is_semidefinite(L)


def is_marginal_kernel(s: DetStructure) -> bool:
    """M0 = I − K, the columns of U are unit vectors, V has their columns of K; K and I − K are semidefinite."""
    units = _units(s)
    if units is None:
        return False
    m0, v = (s.matrices[k].numbers() for k in (0, 2))
    if not _is_symmetric(m0) or not all(_is_column(m0, v, j, unit) for j, unit in enumerate(units)):
        return False
    K = [[(i == j) - Fraction(x) for j, x in enumerate(row)] for i, row in enumerate(m0)]
    return is_semidefinite(m0) and is_semidefinite(K)


def _is_column(m0: Rows, v: Rows, j: int, unit: int) -> bool:
    """Whether column j of V is column `unit` of I − M0."""
    for i, row in enumerate(v):
        x, y = row[j], m0[unit][i]
        if (Fraction(x) + Fraction(y) != 1) if i == unit else x != -y:
            return False
    return True


def _units(s: DetStructure) -> list[int] | None:
    """Which unit vectors the columns of U are, if they are different ones."""
    if s.identity_u:
        return list(range(s.rank))
    u = s.floats[1]
    if not s.doubles[1] or not s.children or not ((u != 0.0).sum(axis=0) == 1).all() or (u.max(axis=0) != 1.0).any():
        return None
    units = u.argmax(axis=0).tolist()
    return units if len(set(units)) == len(units) else None


def _kernel(s: DetStructure) -> Rows | None:
    """L where the coefficients are its principal minors times entries of M0 = diag(d ≥ 0): the rows of V at the units.

    (A row of M0 + Σ f_i·e_i·v_iᵀ is f_i·v_iᵀ where i is in, and d_i·e_iᵀ where it is not.)
    """
    units = _units(s)
    if units is None or not (s.identity_m0 or _is_diagonal(s.matrices[0].numbers())):
        return None
    v = s.matrices[2].numbers()
    return [v[i] for i in units]


def _is_diagonal(rows: Rows) -> bool:
    return all(x >= 0 if i == j else not x for i, row in enumerate(rows) for j, x in enumerate(row))


def _is_symmetric(rows: Rows) -> bool:
    return all(rows[i][j] == rows[j][i] for i in range(len(rows)) for j in range(i))


def _plus_transpose(rows: Rows) -> Rows:
    return [[Fraction(x) + Fraction(rows[j][i]) for j, x in enumerate(row)] for i, row in enumerate(rows)]


RULES: dict[Op, tuple[Rule, ...]] = {
    Op.CONST: (Rule("number", "a number is its own coefficient", _of_number),),
    Op.VAR: (Rule("variable", "the coefficient of a variable is 1", _of_variable),),
    Op.SUM: (
        Rule("weighted sum", "coefficients add up: nonnegative weights of nonnegative terms", _of_sum),
    ),
    Op.PRODUCT: (
        Rule("product", "coefficients of a product are sums of products of coefficients", _of_product),
    ),
    Op.DET: (
        Rule("matrix-tree theorem", "the coefficients of a Laplacian's determinant are weights of trees",
             _of_det(is_tree)),
        Rule("Gram determinant", "det(M0 + Σ f_i·s_i·v_i·v_iᵀ), M0 ⪰ 0: mixed discriminants are nonnegative",
             _of_det(is_gram)),
        Rule("positive semidefinite kernel", "the coefficients of det(D + diag(f)·L) are principal minors of L, and "
             "L + Lᵀ ⪰ 0", _of_det(is_kernel)),
        Rule("marginal kernel", "det(I − K + diag(f)·K) with 0 ⪯ K ⪯ I is a determinantal point process",
             _of_det(is_marginal_kernel)),
    ),
}  # fmt: skip


def _by_expansion(node: Node, below: Signs) -> Sign:
    raise NotImplementedError  # it looks at more than the children: see `_Expansion`, and `extraction`


EXPANSION = Rule(
    "multiplied out", "its coefficients, computed exactly, in variables and parts that are proved", _by_expansion
)


EXTRACTION = Rule(
    "part of a determinant", "Σ_j w_j·D(s_j) = Σ_d (Σ_j w_j·s_j^d)·[s^d] D, and D(s) has nonnegative coefficients",
    _by_expansion,
)  # fmt: skip


# -- the walk --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Certificate:
    """A proof, node by node; `print` shows it.

    Attributes
    ----------
    circuit : Circuit
        The circuit that the proof is about: as given, or simplified.
    rules : list of Rule or None
        For every node of the circuit's order the rule that proves it, None where none does.
    proved : bool
        Whether the root is proved to have no negative coefficient.
    """

    circuit: Circuit
    rules: list[Rule | None]
    proved: bool

    SHOWN = 60

    @cached_property
    def gaps(self) -> list[Node]:
        """The nodes that no rule proves although all their children are proved."""
        known = [rule is not None for rule in self.rules]
        return [
            node
            for i, node in enumerate(self.circuit.order)
            if not known[i] and all(known[c] for c in self.circuit.links[i])
        ]

    def __str__(self) -> str:
        used = Counter(rule for rule in self.rules if rule is not None)
        lines = [f"{rule.name} ({count:,}): {rule.law}" for rule, count in used.items()]
        lines += [f"no rule: {describe(node)}" for node in self.gaps[:10]]
        steps = list(zip(self.rules, self.circuit.order, strict=True))
        lines += [f"{i}: {describe(node)}: {rule.name if rule else 'no rule'}"
                  for i, (rule, node) in enumerate(steps[: self.SHOWN])]  # fmt: skip
        if len(steps) > self.SHOWN:
            lines.append(f"… and {len(steps) - self.SHOWN:,} nodes more, by the rules above")
        return "\n".join(lines)


def prove_nonnegative(circuit: Circuit) -> Certificate:
    """One walk from the leaves to the root.

    Examples
    --------
    >>> import pgcc
    >>> certificate = prove_nonnegative(pgcc.parse("(0.5*a + 0.5) * (b - 0.2*b)"))
    >>> certificate.proved
    True
    """
    signs: list[Sign] = []
    rules: list[Rule | None] = []
    expansions = [_Expansion(circuit, signs, most) for most in (_Expansion.MOST_TERMS, 8)]
    for i, (node, children) in enumerate(zip(circuit.order, circuit.links, strict=True)):
        sign, rule = _apply(node, [signs[c] for c in children])
        if sign is None and (sign := sign_of_combination(circuit, i, signs, _det_sign)) is not None:
            rule = EXTRACTION
        if sign is None:
            sign = next((s for e in expansions if (s := e.sign(i)) is not None), None)
            rule = None if sign is None else EXPANSION
        signs.append(sign)
        rules.append(rule)
    return Certificate(circuit, rules, signs[-1] in (0, 1))


def _det_sign(node: Node, below: Signs) -> Sign:
    return _apply(node, below)[0]


def _apply(node: Node, below: Signs) -> tuple[Sign, Rule | None]:
    for rule in RULES[node.op]:
        sign = rule.sign(node, below)
        if sign is not None:
            return sign, rule
    return None, None


# -- multiplying out -------------------------------------------------------------------------------------------------

Monomial = tuple[tuple[str, int], ...]  # (variable, power), by name
Terms = dict[Monomial, Fraction]


class _Expansion:
    """The polynomials of nodes with few terms, squares and all; within an allowance of work.

    A node that is proved nonnegative and has more terms than `most_kept`, or a determinant, is a variable of its own.
    """

    MOST_TERMS, ALLOWANCE, MOST_BITS = 128, 300_000, 4096

    def __init__(self, circuit: Circuit, signs: Signs, most_kept: int):
        self.circuit, self.signs, self.most_kept, self.left = circuit, signs, most_kept, self.ALLOWANCE
        self.known: dict[int, Terms | None] = {}

    def sign(self, position: int) -> Sign:
        """The common sign of a node's coefficients; None if they have none, or were not computed."""
        terms = self._terms(position)
        self.known.pop(position, None)  # once it is proved, it may be a variable
        if terms is None:
            return None
        found = {1 if x > 0 else -1 for x in terms.values()}
        return None if len(found) > 1 else found.pop() if found else 0

    def _terms(self, root: int) -> Terms | None:
        """Iterative, so that depth does not matter; what is below a node that is too large is not looked at again."""
        stack = [root]
        while stack and self.left > 0:
            i = stack[-1]
            waiting = [] if i in self.known else [c for c in self.circuit.links[i] if c not in self.known]
            if waiting and not any(self.known.get(c, 0) is None for c in self.circuit.links[i]):
                stack.extend(waiting)
                self.left -= len(waiting)
                continue
            stack.pop()
            if i not in self.known:
                self.known[i] = self._kept(i, self._combine(self.circuit.order[i], self.circuit.links[i]))
        return self.known.get(root)

    def _kept(self, i: int, terms: Terms | None) -> Terms | None:
        proved = i < len(self.signs) and self.signs[i] == 1
        if proved and (terms is None or len(terms) > self.most_kept):
            return {((f"#{i}", 1),): Fraction(1)}
        return terms

    def _combine(self, node: Node, links: Sequence[int]) -> Terms | None:
        below = [self.known.get(c) for c in links]
        match node.op:
            case Op.CONST:
                return {(): Fraction(node.value)} if node.value else {}
            case Op.VAR:
                return {() if node.is_complement else ((node.name, 1),): Fraction(1)}
            case Op.DET:
                return None
        total: Terms = {} if node.op is Op.SUM else {(): Fraction(1)}
        for k, terms in enumerate(below):
            if terms is None:
                return None
            if node.op is Op.SUM:
                _add(total, terms, Fraction(node.weights[k]))
                self.left -= len(terms)
            else:
                self.left -= len(total) * len(terms)
                total = _multiply(total, terms) if self.left > 0 else {}
            if len(total) > self.MOST_TERMS or self.left <= 0 or any(_long(x, self.MOST_BITS) for x in total.values()):
                return None
        return {m: x for m, x in total.items() if x}


def _long(x: Fraction, bits: int) -> bool:
    return x.numerator.bit_length() + x.denominator.bit_length() > bits


def _add(total: Terms, terms: Terms, weight: Fraction) -> None:
    for monomial, x in terms.items():
        total[monomial] = total.get(monomial, Fraction(0)) + weight * x


def _multiply(a: Terms, b: Terms) -> Terms:
    out: Terms = {}
    for m, x in a.items():
        for n, y in b.items():
            both = _times(m, n)
            out[both] = out.get(both, Fraction(0)) + x * y
    return out


def _times(m: Monomial, n: Monomial) -> Monomial:
    powers = dict(m)
    for name, power in n:
        powers[name] = powers.get(name, 0) + power
    return tuple(sorted(powers.items()))


# -- strongly Rayleigh -----------------------------------------------------------------------------------------------


class Stability(NamedTuple):
    """Why a polynomial with nonnegative coefficients has no zero where all variables have positive imaginary parts."""

    name: str
    law: str
    holds: Callable[[Node, Sequence[bool]], bool]


def _is_form(node: Node) -> bool:
    """Σ w_i·z_i + c with nonnegative numbers."""
    match node.op:
        case Op.CONST:
            return node.value >= 0
        case Op.VAR:
            return True
        case Op.SUM:
            return min(node.weights, default=0) >= 0 and all(not c.children and _is_form(c) for c in node.children)
    return False


def _is_multiple(node: Node, below: Sequence[bool]) -> bool:
    terms = [(w, stable) for w, stable in zip(node.weights, below, strict=True) if w]
    return len(terms) == 1 and terms[0][0] > 0 and terms[0][1]


def _is_stable_det(node: Node, below: Sequence[bool]) -> bool:
    plain = all(map(_is_form, node.inside)) and all(y.op is Op.CONST and y.value >= 0 for y in node.outside)
    plain = plain and all(node.counted)  # (a + u)·(b + v) is stable, its part a·v + b·u of degree 1 in a, b is not
    s = DetStructure.of(node)
    return plain and (
        is_gram(s) or is_symmetric_kernel(s) or is_marginal_kernel(s)
    )  # fmt: skip


STABLE: dict[Op, tuple[Stability, ...]] = {
    Op.CONST: (Stability("number", "a nonnegative number has no zeros, or is 0", lambda n, _: n.value >= 0),),
    Op.VAR: (Stability("variable", "a variable is stable", lambda n, _: True),),
    Op.SUM: (
        Stability("linear form", "Σ w_i·z_i + c with w, c ≥ 0 maps the upper half-plane to itself",
                  lambda n, _: _is_form(n)),
        Stability("multiple", "c·g with c ≥ 0 is stable if g is", _is_multiple),
    ),
    Op.PRODUCT: (Stability("product", "a product of stable polynomials is stable", lambda n, below: all(below)),),
    Op.DET: (
        Stability("symmetric determinant", "det(M0 + Σ f_i·A_i) with A_i ⪰ 0 is stable in f, and so are its "
                  "homogeneous parts (Borcea, Brändén, Liggett 2009); f_i are linear forms", _is_stable_det),
    ),
}  # fmt: skip


def is_strongly_rayleigh(circuit: Circuit) -> bool:
    """Whether stability follows from the way the circuit is built. (It is to be multiaffine, too.)

    >>> import pgcc
    >>> is_strongly_rayleigh(pgcc.dpp(L=[[2, 1], [1, 2]])), is_strongly_rayleigh(pgcc.parse("0.5*a*b + 0.5"))
    (True, False)
    """
    stable: list[bool] = []
    for node, children in zip(circuit.order, circuit.links, strict=True):
        below = [stable[c] for c in children]
        stable.append(any(rule.holds(node, below) for rule in STABLE[node.op]))
    return stable[-1]
