"""Specialize to evidence: conditioning and marginalizing as rewritings of the circuit.

    Pr(A in, B out, rest)  =  coefficient of t^|A| in g(z_A = t, z_B = 0, z_rest)
    Pr(rest)               =  g(z_names = 1, z_rest)

The coefficient is a circuit over the rest. Let d(u) be the formal t-degree of a node: 1 for a variable in A, else 0
for a leaf; max over a sum; Σ over a product. The coefficient of t^d(u), the *leading* one, is found in one walk:
a sum keeps the children c with d(c) = d(u), a product multiplies. In a decomposable circuit d(root) ≤ |A|, and
nothing more is needed. Otherwise lower coefficients are asked for, from the root down, each computed once: at most
|A| + 1 per node, never 2^|A|.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from itertools import accumulate
from typing import Any, assert_never

from pgcc.collector import collector_paused
from pgcc.errors import EvidenceError
from pgcc.exact.bounded import interpolation_weights
from pgcc.ir.circuit import Circuit
from pgcc.ir.node import ONE, ZERO, Node, Op, const, iter_edges, postorder, rebuild
from pgcc.ir.operands import check_known
from pgcc.ir.scopes import Scopes, size
from pgcc.passes.building import product_of, sum_of
from pgcc.passes.pipeline import simplify
from pgcc.passes.recursion import resolve
from pgcc.passes.simplify import fold


def condition(circuit: Circuit, observed: Mapping[str, int]) -> Circuit:
    """`Circuit.observe`, of variables that are 1 or 0.

    For every further evidence e', Pr(e') by the new circuit is Pr(evidence, e') by the old one, exactly. How the
    polynomial is written does not matter; it must be multiaffine, and so must be the children of determinants.
    """
    ins = {name for name, value in observed.items() if value == 1}
    outs = observed.keys() - ins
    rest = [name for name in circuit.variables if name not in observed]
    if not observed:
        return simplify(circuit)
    with collector_paused():
        without = fold(_substitute(circuit, dict.fromkeys(outs, ZERO))) if outs else circuit
        return simplify(Circuit(_Coefficients(without, ins).of_root(), rest))


def marginalize(circuit: Circuit, names: Iterable[str]) -> Circuit:
    """`Circuit.marginalize`, of any circuit: z = 1 for the variables that are named."""
    gone = dict.fromkeys([names] if isinstance(names, str) else names, ONE)
    check_known(circuit, gone, "sum out", EvidenceError)
    rest = [name for name in circuit.variables if name not in gone]
    with collector_paused():
        return simplify(Circuit(_substitute(circuit, gone).root, rest))


def _substitute(circuit: Circuit, leaves: Mapping[str, Node]) -> Circuit:
    """The circuit with variables replaced; a complement ȳ of one of them is 1, as in every generating polynomial."""

    def leaf(node: Node) -> Node:
        return node if node.name not in leaves else ONE if node.is_complement else leaves[node.name]

    return Circuit(circuit.rewrite(leaf), circuit.variables)


# -- coefficients of t ---------------------------------------------------------------------------------------


class _Coefficients:
    """Coefficients of g(z_A = t), as circuits over the other variables."""

    def __init__(self, circuit: Circuit, ins: set[str]):
        self.circuit, self.ins = circuit, ins
        self.among: dict[Node, int] = {}  # |A ∩ scope|
        self.disjoint: set[Node] = set()  # products and dets whose children (or pairs) share no variable of A
        self.degree: dict[Node, int] = {}
        self.leading: dict[Node, Node] = {}  # the coefficient of t^degree
        self.lower: dict[tuple, Node] = {}  # coefficients that were asked for
        self._partial: dict[Node, list[int]] = {}
        scopes = Scopes(circuit.flat, only=ins)  # within A
        for node, scope, disjoint in zip(circuit.order, scopes.of, scopes.disjoint, strict=True):
            self.among[node] = size(scopes.distinct[scope])
            if disjoint:
                self.disjoint.add(node)
        for node in circuit.order:
            self.degree[node], self.leading[node] = self._lead(node)

    def of_root(self) -> Node:
        """The coefficient of t^|A|."""
        root = self.circuit.root
        if self.among[root] < len(self.ins):
            return ZERO  # a variable of A does not occur
        return self._answer(("top", root))

    # -- leading coefficients, bottom up

    def _lead(self, node: Node) -> tuple[int, Node]:
        degree, leading, children = self.degree, self.leading, node.children
        match node.op:
            case Op.CONST:
                return 0, node
            case Op.VAR if node.name not in self.ins:
                return 0, node
            case Op.VAR:
                return (0 if node.is_complement else 1), ONE
            case Op.SUM:
                d = max(map(degree.__getitem__, children), default=0)
                if not d:
                    return 0, rebuild(node, [leading[c] for c in children])
                return d, sum_of((w, leading[c]) for w, c in iter_edges(node) if degree[c] == d)
            case Op.PRODUCT:
                return sum(map(degree.__getitem__, children)), product_of([leading[c] for c in children])
            case Op.DET:
                return self._lead_det(node)
        assert_never(node.op)

    def _lead_det(self, node: Node) -> tuple[int, Node]:
        """Σ_T c_T Π_{i∈T} f_i Π_{i∉T} y_i is affine in the pairs (f_i, y_i): each pair leads with its own degree.

        f_i and y_i are multiaffine, so that their true degrees are at most |A ∩ scope|. A size is kept: the
        leading coefficient is the same sum over fewer T.
        """
        degrees = [self._det_child_degree(c) for c in node.children]
        pairs = list(map(max, degrees[: len(degrees) // 2], degrees[len(degrees) // 2 :])) * 2
        if not any(pairs):
            return 0, rebuild(node, [self.leading[c] for c in node.children])
        if any(degrees[i] < self.degree[c] for i, c in enumerate(node.children)):
            wanted = [("top", c) if degrees[i] == pairs[i] else None for i, c in enumerate(node.children)]
            children = [self._answer(w) if w else ZERO for w in wanted]
        else:
            children = [self.leading[c] if degrees[i] == pairs[i] else ZERO for i, c in enumerate(node.children)]
        return sum(pairs) // 2, rebuild(node, children)

    def _det_child_degree(self, child: Node) -> int:
        return min(self.degree[child], self.among[child])

    # -- other coefficients, as they are asked for

    def _answer(self, question: tuple) -> Node:
        """Answer ("top", node), ("of", node, k), … and the questions that this asks in turn."""
        return resolve(question, self.lower.get, self._work, self.lower)

    def _work(self, question: tuple) -> _Work:
        kind, node, *numbers = question
        works: dict[str, Callable[..., _Work]] = {"top": self._top, "of": self._of, "prefix": self._prefix}
        return works[kind](node, *numbers)

    def _top(self, node: Node) -> _Work:
        """The coefficient of t^|A ∩ scope| of a node that is multiaffine.

        If a product of factors without common variables is multiaffine, so is each factor (or the product is 0).
        """
        if node.op is Op.PRODUCT and node in self.disjoint and self.degree[node] > self.among[node]:
            factors = []
            for child in node.children:
                factors.append((yield "top", child))
            return product_of(factors)
        if node.op is Op.SUM and len(node.children) == 1:
            return sum_of([(node.weights[0], (yield "top", node.children[0]))])
        return (yield "of", node, self.among[node])

    def _of(self, node: Node, k: int) -> _Work:
        """The coefficient of t^k."""
        degree = self.degree[node]
        if k > degree:
            return ZERO
        if k == degree:
            return self.leading[node]
        match node.op:
            case Op.SUM:
                terms = []
                for weight, child in iter_edges(node):
                    terms.append((weight, (yield "of", child, k)))
                return sum_of(terms)
            case Op.PRODUCT:
                return (yield "prefix", node, len(node.children), k)
            case Op.DET:
                return self._interpolate(node, k)
            case Op.VAR | Op.CONST:  # a variable of A has no constant term
                return ZERO
        assert_never(node.op)

    def _prefix(self, node: Node, j: int, k: int) -> _Work:
        """The coefficient of t^k in the product of the first j children: a convolution with the last of them."""
        if j == 0:
            return ONE if k == 0 else ZERO
        child, before = node.children[j - 1], self._degrees_before(node)[j - 1]
        terms = []
        for i in range(max(0, k - before), min(k, self.degree[child]) + 1):
            factor = yield "of", child, i
            if factor is not ZERO:
                terms.append((1, product_of([(yield "prefix", node, j - 1, k - i), factor])))
        return sum_of(terms)

    def _degrees_before(self, node: Node) -> list[int]:
        if node not in self._partial:
            self._partial[node] = list(accumulate((self.degree[c] for c in node.children), initial=0))
        return self._partial[node]

    def _interpolate(self, node: Node, k: int) -> Node:
        """The coefficient of t^k as a combination of values at degree + 1 points."""
        points = range(-(self.degree[node] // 2), self.degree[node] - self.degree[node] // 2 + 1)
        weights = interpolation_weights(points, k)
        return sum_of((w, self._at(node, t)) for w, t in zip(weights, points, strict=True))

    def _at(self, root: Node, t: int) -> Node:
        """The node at z_A = t."""
        value: dict[Node, Node] = {}
        for node in postorder(root):
            if node.op is Op.VAR and node.name in self.ins:
                value[node] = ONE if node.is_complement else const(t)
            else:
                value[node] = rebuild(node, [value[c] for c in node.children])
        return value[root]


_Work = Generator[tuple, Any, Node]
