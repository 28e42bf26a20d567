"""Proofs by the way a circuit is built: rules that go from the children of a node to the node.

Nonnegative: no coefficient of the node's polynomial is negative. The same walk keeps track of polynomials without
positive coefficients, so that −1·(−z) is no obstacle. The prover proposes steps, and finds witnesses for them; whether
a step holds is said by the rules of the checker (`proof.steps`), which are the only ones. A node that no rule proves,
and that has few terms, is multiplied out, exactly; large parts of it that are proved themselves are taken for
variables.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

from pgcc.ir.circuit import Circuit
from pgcc.ir.node import Node, Op
from pgcc.ir.printer import describe
from pgcc.locks import cached_property
from pgcc.validity.proof import Proof
from pgcc.validity.proof.determinants import (
    are_parallel,
    is_laplacian,
    kernel_of,
    marginal_kernel_of,
    plus_transpose,
)
from pgcc.validity.proof.exact_arithmetic import exact_rows
from pgcc.validity.proof.steps import Step, Terms, Walk, polynomial_of
from pgcc.validity.semidefinite import Rows, find_witness

_MANY = 300  # nodes: in circuits with more, only the root may be evaluated at 0
# 1: no coefficient is negative; −1: none is positive; 0: all are 0; None: not proven.
Sign = int | None
SIGNS = (1, 0, -1)  # the likely one first


class Witnesses:
    """Witnesses that determinants have nonnegative coefficients in their children: one search for equal matrices."""

    def __init__(self, walk: Walk) -> None:
        self._known: dict[tuple[str, Any], list[Any]] = {}
        self._walk = walk

    def of(self, name: str, node: Node) -> list[Any]:
        """[the witness for the checker] if the rule with this name holds, else []."""
        key = name, node.matrices
        if key not in self._known:
            self._known[key] = DETERMINANTS[name](*map(exact_rows, node.matrices))
            if self._known[key]:  # the search has verified it as the checker does
                self._walk.matrices.add(key)
        return self._known[key]


class Rule(NamedTuple):
    """Why the coefficients of a node all have one sign.

    Attributes
    ----------
    name : str
        As the checker knows it (`proof.RULES`).
    law : str
        The fact of mathematics behind it.
    """

    name: str
    law: str


# -- the rules -------------------------------------------------------------------------------------------------------


def _tree_witness(m0: Rows, u: Rows, v: Rows) -> list[Any]:
    return [None] if is_laplacian(m0, u, v) else []


def _gram_witness(m0: Rows, u: Rows, v: Rows) -> list[Any]:
    return find_witness(m0) if are_parallel(u, v) else []


def _kernel_witness(m0: Rows, u: Rows, v: Rows) -> list[Any]:
    L = kernel_of(m0, u, v)
    return find_witness(plus_transpose(L)) if L is not None else []


def _marginal_kernel_witness(m0: Rows, u: Rows, v: Rows) -> list[Any]:
    K = marginal_kernel_of(m0, u, v)
    return [[x, y] for x in find_witness(m0) for y in find_witness(K)] if K is not None else []


DETERMINANTS: dict[str, Callable[[Rows, Rows, Rows], list[Any]]] = {
    "matrix-tree theorem": _tree_witness,
    "Gram determinant": _gram_witness,
    "positive semidefinite kernel": _kernel_witness,
    "marginal kernel": _marginal_kernel_witness,
}


# The rules to try, by operation. Of those for determinants one is needed, with a witness for the matrices.
RULES: dict[Op, tuple[Rule, ...]] = {
    Op.CONST: (Rule("number", "a number is its own coefficient"),),
    Op.VAR: (Rule("variable", "the coefficient of a variable is 1"),),
    Op.SUM: (Rule("weighted sum", "coefficients add up: nonnegative weights of nonnegative terms"),),
    Op.PRODUCT: (Rule("product", "coefficients of a product are sums of products of coefficients"),),
    Op.DET: (
        Rule("matrix-tree theorem", "the coefficients of a Laplacian's determinant are weights of trees"),
        Rule("Gram determinant", "det(M0 + Σ f_i·s_i·v_i·v_iᵀ), M0 ⪰ 0: mixed discriminants are nonnegative"),
        Rule("positive semidefinite kernel", "the coefficients of det(D + diag(f)·L) are principal minors of L, and "
             "L + Lᵀ ⪰ 0"),
        Rule("marginal kernel", "det(I − K + diag(f)·K) with 0 ⪯ K ⪯ I is a determinantal point process"),
    ),
}  # fmt: skip
# These look at more than the children: see `_Expansion`, and `passes.sizes` for what writes parts of determinants so.
EXPANSION = Rule("multiplied out", "its coefficients, computed exactly, in variables and parts that are proved")
LESS = Rule("less a constant", "g − c, where c is at most g(0): no coefficient but that of the empty set changes")
EXTRACTION = Rule(
    "part of a determinant", "Σ_j w_j·D(s_j) = Σ_d (Σ_j w_j·s_j^d)·[s^d] D, and D(s) has nonnegative coefficients"
)


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
    steps : list of tuples
        The proof as plain data: (position in the circuit's order, rule, sign, witness), for `proof.verify`.
    """

    circuit: Circuit
    rules: list[Rule | None]
    proved: bool
    steps: list[Step] = field(repr=False)

    SHOWN = 60

    @property
    def proof(self) -> Proof:
        """The proof as the checker takes it."""
        return Proof("nonnegative", True, "steps", self.circuit, {"steps": self.steps})

    @cached_property
    def gaps(self) -> list[Node]:
        """The nodes that no rule proves although all their children are proved."""
        known = [rule is not None for rule in self.rules]
        return [
            node
            for i, node in enumerate(self.circuit.order)
            if not known[i] and all(known[c] for c in self.circuit._links[i])
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
    walk = Walk(circuit)
    rules: list[Rule | None] = []
    steps: list[Step] = []
    witnesses = Witnesses(walk)
    expansions = [_Expansion(walk, steps, most) for most in (_Expansion.MOST_TERMS, 8)]
    for i in range(len(circuit.order)):
        proposed = _proposed(walk, i, witnesses)
        found = next((one for one in proposed if walk.takes(i, one[0].name, *one[1:])), None)
        if found is None:
            found = next(((EXPANSION, s, e.most_kept) for e in expansions if (s := e.sign(i)) is not None), None)
        if found is not None:
            rule, walk.signs[i], witness = found
            steps.append((i, rule.name, walk.signs[i], witness))
        rules.append(None if found is None else found[0])
    proved = walk.signs.get(len(rules) - 1) in (0, 1)
    return Certificate(circuit, rules, proved, _without_unused_terms(circuit, steps))


def _proposed(walk: Walk, i: int, witnesses: Witnesses) -> Iterator[tuple[Rule, int, Any]]:
    """(rule, sign, witness) of the steps that may show the sign of node i; the checker's rules decide."""
    node = walk.circuit.order[i]
    for rule in RULES[node.op]:
        if node.op is not Op.DET:
            yield from ((rule, sign, None) for sign in SIGNS)
        elif None not in walk.below(i):
            yield from ((rule, 1, witness) for witness in witnesses.of(rule.name, node))
    if node.op is Op.SUM and Op.CONST in [c.op for w, c in zip(node.weights, node.children, strict=True) if w < 0]:
        yield from ((LESS, 1, bits) for bits in (128, 0) if i < _MANY or i == len(walk.circuit.order) - 1)
    if node.op is Op.SUM and len(node.children) > 1 and node.children[0].op is Op.DET:
        data = next(([name, w] for name in DETERMINANTS for w in witnesses.of(name, node.children[0])), None)
        yield from ((EXTRACTION, sign, data) for sign in SIGNS if data is not None)


def _without_unused_terms(circuit: Circuit, steps: list[Step]) -> list[Step]:
    """The steps without polynomials that were multiplied out in vain."""
    kept: list[Step] = []
    wanted: set[tuple[Any, int]] = set()
    for step in reversed(steps):
        i, rule, _, space = step
        if rule == EXPANSION.name:
            wanted.add((space, i))
        elif rule in ("terms", "part"):
            if (space, i) not in wanted:
                continue
            wanted.remove((space, i))
            if rule == "terms":
                wanted.update((space, c) for c in circuit._links[i])
        kept.append(step)
    return kept[::-1]


# -- multiplying out -------------------------------------------------------------------------------------------------


class _Expansion:
    """The polynomials of nodes with few terms, squares and all; within an allowance of work.

    A node that is proved nonnegative and has more terms than `most_kept`, or a determinant, is a variable of its own.
    """

    MOST_TERMS, ALLOWANCE, MOST_BITS = 128, 300_000, 4096

    def __init__(self, walk: Walk, steps: list[Step], most_kept: int):
        self.circuit, self.signs, self.steps = walk.circuit, walk.signs, steps
        self.most_kept, self.left = most_kept, self.ALLOWANCE
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
        """The terms of a node; None if it has too many, or a node below it has.

        There is no recursion, so that depth does not matter.
        """
        stack = [root]
        while stack and self.left > 0:
            i = stack[-1]
            waiting = [] if i in self.known else [c for c in self.circuit._links[i] if c not in self.known]
            if waiting and not any(self.known.get(c, 0) is None for c in self.circuit._links[i]):
                stack.extend(waiting)
                self.left -= len(waiting)
                continue
            stack.pop()
            if i not in self.known:
                self.known[i] = self._kept(i, self._combine(self.circuit.order[i], self.circuit._links[i]))
        return self.known.get(root)

    def _kept(self, i: int, terms: Terms | None) -> Terms | None:
        if self.signs.get(i) == 1 and (terms is None or len(terms) > self.most_kept):
            self.steps.append((i, "part", None, self.most_kept))
            return {frozenset({(i, 1)}): Fraction(1)}
        if terms is not None:
            self.steps.append((i, "terms", None, self.most_kept))
        return terms

    def _combine(self, node: Node, links: Sequence[int]) -> Terms | None:
        below = [terms for c in links if (terms := self.known.get(c)) is not None]
        if len(below) < len(links) or node.op not in (Op.CONST, Op.VAR, Op.SUM, Op.PRODUCT):
            return None  # a determinant, or an operation without a rule: not multiplied out, so that it proves nothing
        terms = polynomial_of(node, below, self._may)
        return terms if terms is not None and self._may(terms, 0) else None

    def _may(self, terms: Terms, more: int) -> bool:
        """Whether these terms are few and short enough to go on, by this many more products."""
        self.left -= more
        return (
            self.left > 0
            and len(terms) <= self.MOST_TERMS
            and not any(_long(x, self.MOST_BITS) for x in terms.values())
        )


def _long(x: Fraction, bits: int) -> bool:
    return x.numerator.bit_length() + x.denominator.bit_length() > bits
