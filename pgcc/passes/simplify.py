"""Simplify: the same polynomial by a smaller circuit. The rules are a table, each with its law beside it.

Two walks, which the pipeline repeats until nothing changes:

- `flatten` opens sums in sums and products in products, where the inner one has no other parent.
- `fold` applies the rules of `RULES` to one node at a time, children first. A node may turn out to be a number times
  another node; then the number is *handed up* to the parents, and sums take it into their weights.

Nothing is ever copied, so a DAG never becomes larger. Numbers are computed exactly; where a number would become
enormous (`LARGEST` bits, as in 2**2**2**9), the rule is not applied. A node that no rule matches is kept as it is.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import chain
from operator import itemgetter
from typing import NamedTuple

from pgcc.ir.bulk import collector_paused
from pgcc.ir.circuit import Circuit
from pgcc.ir.matrix import Matrix
from pgcc.ir.node import ONE, ZERO, Node, Op, const, det, product, rebuild, weighted_sum
from pgcc.ir.numbers import Number, as_number

LARGEST = 4096  # bits of a number that simplification may make


# -- exact numbers that do not become enormous ---------------------------------------------------------------


def bits(x: Number) -> int:
    """Bits of numerator and denominator together."""
    numerator, denominator = x.as_integer_ratio()
    return numerator.bit_length() + denominator.bit_length()


def times(a: Number, b: Number) -> Number | None:
    """a · b, or None if it could become enormous."""
    if type(a) is not Fraction and a == 1:
        return b
    if type(b) is not Fraction and b == 1:
        return a
    (m, p), (n, q) = a.as_integer_ratio(), b.as_integer_ratio()
    return _ratio(m * n, p * q) if _fit(m, p, n, q) else None


def plus(a: Number, b: Number) -> Number | None:
    """a + b, or None if it could become enormous."""
    (m, p), (n, q) = a.as_integer_ratio(), b.as_integer_ratio()
    return _ratio(m * q + n * p, p * q) if _fit(m, p, n, q) else None


def _fit(m: int, p: int, n: int, q: int) -> bool:
    return m.bit_length() + p.bit_length() + n.bit_length() + q.bit_length() <= LARGEST


def _ratio(numerator: int, denominator: int) -> Number:
    return numerator if denominator == 1 else as_number(Fraction(numerator, denominator))


def constant_determinant(matrix: Matrix) -> Number | None:
    """det of a constant matrix, or None if it could become enormous (Hadamard's bound).

    Rows are scaled to integers; then Bareiss' elimination, in which every division is exact.
    """
    rows = matrix.exact()
    if sum(max(map(bits, row)) + len(row).bit_length() for row in rows) > LARGEST:
        return None
    scale = 1
    integers: list[list[int]] = []
    for row in rows:
        common = math.lcm(*(x.denominator for x in row))
        scale *= common
        integers.append([int(x * common) for x in row])
    return as_number(Fraction(_bareiss(integers), scale))


def _bareiss(a: list[list[int]]) -> int:
    sign, before = 1, 1
    for k in range(len(a)):
        pivot = next((i for i in range(k, len(a)) if a[i][k]), None)
        if pivot is None:
            return 0
        if pivot != k:
            a[k], a[pivot], sign = a[pivot], a[k], -sign
        for i in range(k + 1, len(a)):
            a[i] = [(a[k][k] * x - a[i][k] * y) // before for x, y in zip(a[i], a[k], strict=True)]
        before = a[k][k]
    return sign * before


# -- rules on one node ---------------------------------------------------------------------------------------


class Draft:
    """factor · op(factors_i · children_i) while the rules work on it; no `factors` means that all are 1."""

    __slots__ = ("children", "counted", "factor", "factors", "node", "op", "size", "weights")

    def __init__(self, node: Node, factors: Sequence[Number], children: list[Node]):
        self.node, self.op = node, node.op
        self.factor: Number = 1
        self.factors, self.children = factors, children
        self.weights: list[Number] = list(node.weights) if node.op is Op.SUM else []
        self.size: int | None = node.size if node.op is Op.DET else None
        self.counted: Sequence[bool] = node.counted if node.op is Op.DET else ()

    def become(self, factor: Number, child: Node) -> None:
        """It is factor · child."""
        self.factor, self.op, self.children = factor, Op.VAR, [child]

    def finish(self) -> Node:
        """The node, without its factor."""
        if self.op is Op.SUM:
            return weighted_sum(self.weights, self.children)
        if self.op is Op.PRODUCT:
            return product(self.children)
        if self.op is Op.VAR:  # `become`
            return self.children[0]
        raise AssertionError(f"no rule has finished {self.node!r}")


class Rule(NamedTuple):
    """A law, whether it changes a node whose children no rule has changed, and how."""

    name: str
    law: str
    matches: Callable[[Node], bool]
    apply: Callable[[Draft], None]


def never(node: Node) -> bool:
    """The rule only answers to changed children."""
    return False


def scaled(factor: Number, node: Node) -> Node:
    """factor · node, as a node."""
    if node is ONE:
        return const(factor)
    if node is ZERO or (type(factor) is not Fraction and factor == 1):
        return node
    return weighted_sum((factor,), (node,))


def take_into_weights(draft: Draft) -> None:
    for i, factor in enumerate(draft.factors):
        weight = times(draft.weights[i], factor)
        if weight is None:
            draft.children[i] = scaled(factor, draft.children[i])
        else:
            draft.weights[i] = weight


def drop_zero_terms(draft: Draft) -> None:
    if not all(draft.weights) or ZERO in draft.children:
        kept = [i for i, c in enumerate(draft.children) if draft.weights[i] and c is not ZERO]
        draft.weights = [draft.weights[i] for i in kept]
        draft.children = [draft.children[i] for i in kept]


def merge_equal_terms(draft: Draft) -> None:
    if len(set(draft.children)) == len(draft.children):
        return
    weights: list[Number] = []
    children: list[Node] = []
    first: dict[Node, int] = {}
    for weight, child in zip(draft.weights, draft.children, strict=True):
        place = first.setdefault(child, len(children))
        total = plus(weights[place], weight) if place < len(children) else None
        if total is None:
            weights.append(weight)
            children.append(child)
        else:
            weights[place] = total
    draft.weights, draft.children = weights, children
    drop_zero_terms(draft)


def collapse_sum(draft: Draft) -> None:
    if not draft.children:
        draft.become(1, ZERO)
    elif len(draft.children) == 1:
        draft.become(draft.weights[0], draft.children[0])


def hand_up_factors(draft: Draft) -> None:
    total: Number = 1
    for factor in draft.factors:
        more = times(total, factor)
        if more is None:  # all or none: a part of them could not be kept without growing
            keep_factors(draft)
            return
        total = more
    draft.factor = total


def annihilate(draft: Draft) -> None:
    if ZERO in draft.children:
        draft.become(1, ZERO)


def drop_ones(draft: Draft) -> None:
    if ONE in draft.children:
        draft.children = [c for c in draft.children if c is not ONE]


def collapse_product(draft: Draft) -> None:
    if len(draft.children) < 2:
        draft.become(draft.factor, draft.children[0] if draft.children else ONE)


def keep_factors(draft: Draft) -> None:
    if draft.factors:
        draft.children = list(map(scaled, draft.factors, draft.children))


def sizes_possible(inside: Sequence[Node], outside: Sequence[Node], counted: Sequence[bool]) -> tuple[int, int]:
    """The least and the largest |T ∩ counted| of a term that is not 0 at sight: y_i = 0 is in, f_i = 0 is out."""
    surely_in = sum(y is ZERO and c for y, c in zip(outside, counted, strict=True))
    return surely_in, sum(f is not ZERO and c for f, c in zip(inside, counted, strict=True))


def size_is_settled(node: Node) -> bool:
    if node.size is None:
        return False
    least, largest = sizes_possible(node.inside, node.outside, node.counted)
    return not least < node.size < largest or node.size > node.matrices[0].shape[0]


def settle_size(draft: Draft) -> None:
    if draft.size is None:
        return
    k = len(draft.children) // 2
    inside, outside, counted = draft.children[:k], draft.children[k:], draft.counted
    least, largest = sizes_possible(inside, outside, counted)
    if not least <= draft.size <= min(largest, draft.node.matrices[0].shape[0]):
        draft.become(1, ZERO)
    elif draft.size == least:
        pairs = zip(inside, outside, counted, strict=True)
        draft.children = [ZERO if c and y is not ZERO else f for f, y, c in pairs] + outside
        draft.size = None
    elif draft.size == largest:
        pairs = zip(inside, outside, counted, strict=True)
        draft.children = inside + [ZERO if c and f is not ZERO else y for f, y, c in pairs]
        draft.size = None


def delete_absent(draft: Draft) -> None:
    k = len(draft.children) // 2
    absent = [i for i in range(k) if draft.children[i] is ZERO]
    kept = [i for i in range(k) if draft.children[i] is not ZERO]
    m0, u, v = draft.node.matrices
    inside, outside = [draft.children[i] for i in kept], [draft.children[k + i] for i in kept]
    if absent:
        u, v = _columns(u, kept), _columns(v, kept)
    counted = None if draft.size is None else [draft.counted[i] for i in kept]
    smaller = det(m0, u, v, inside, outside, draft.size, counted)
    value = constant_determinant(smaller.matrices[0]) if not smaller.children else None
    if value is not None:
        smaller = const(value)
    if value == 0 or not absent:
        draft.become(1, smaller)
        return
    # y_i·…·det: a product like any other
    factors = [draft.children[k + i] for i in absent if draft.children[k + i] is not ONE]
    draft.become(1, product((*factors, smaller)) if factors else smaller)


def _columns(matrix: Matrix, kept: Sequence[int]) -> Matrix:
    if matrix.is_float:
        return Matrix(matrix.floats()[:, list(kept)], note=matrix.note)
    return Matrix([[row[j] for j in kept] for row in matrix.numbers()], shape=(0, len(kept)), note=matrix.note)


def repeats(node: Node) -> bool:
    return len(set(node.children)) < len(node.children)


RULES: dict[Op, tuple[Rule, ...]] = {
    Op.CONST: (),
    Op.VAR: (),
    Op.SUM: (
        Rule("take factors into the weights", "w·(v·c) = (w·v)·c", never, take_into_weights),
        Rule(
            "drop zeros", "a + 0·c = a + w·0 = a", lambda n: not all(n.weights) or ZERO in n.children, drop_zero_terms
        ),
        Rule("merge equal children", "w·c + v·c = (w + v)·c", repeats, merge_equal_terms),
        Rule("collapse a sum", "Σ of nothing = 0, of w·c alone = w·c", lambda n: len(n.children) < 2, collapse_sum),
    ),
    Op.PRODUCT: (
        Rule("hand factors up", "(v·a)·b = v·(a·b)", never, hand_up_factors),
        Rule("annihilate", "0·a = 0", lambda n: ZERO in n.children, annihilate),
        Rule("drop ones", "1·a = a", lambda n: ONE in n.children, drop_ones),
        Rule("collapse a product", "Π of nothing = 1, of a alone = a", lambda n: len(n.children) < 2, collapse_product),
    ),
    Op.DET: (
        Rule("keep factors", "w·c is one child", never, keep_factors),
        Rule(
            "settle the size",
            "of size k: c_T = 0 where |T| > r; of the children that count, if k have y_i = 0 the others are out "
            "(f_i = 0), if only k have f_i ≠ 0 they are in (y_i = 0), and then the size says nothing more",
            size_is_settled,
            settle_size,
        ),
        Rule(
            "delete what is absent",
            "f_i = 0: det = y_i·(det without i); without children it is the number det M0",
            lambda n: not n.children or ZERO in n.inside,
            delete_absent,
        ),
    ),
}

_MATCHES = {op: tuple(rule.matches for rule in rules if rule.matches is not never) for op, rules in RULES.items()}
_APPLY = {op: tuple(rule.apply for rule in rules) for op, rules in RULES.items()}


def any_rule_matches(node: Node) -> bool:
    """Whether some rule changes a node whose children no rule has changed."""
    for matches in _MATCHES[node.op]:  # noqa: SIM110 - a plain loop is twice as fast as any()
        if matches(node):
            return True
    return False


# -- fold ---------------------------------------------------------------------------------------------------


def fold(circuit: Circuit) -> Circuit:
    """Apply `RULES` everywhere, and make nodes that differ only in the order of their children one.

    Examples
    --------
    >>> import pgcc
    >>> print(fold(pgcc.parse("2*a*(3*b)*1 + 0*c + a*b - a*b*1")))
    6*a*b
    """
    with collector_paused():
        root = _Folding(circuit).run()
        return circuit if root is circuit.root else Circuit(root, circuit.variables)


class _Folding:
    def __init__(self, circuit: Circuit):
        self.circuit = circuit
        self.new: dict[Node, Node] = {}  # only of nodes that changed
        self.factor: dict[Node, Number] = {}  # node = factor · new; only where it is not 1
        self.stuck = cannot_hand_up(circuit)
        self.share = Sharing().representative

    def run(self) -> Node:
        changed, share = self.new.keys(), self.share
        for node in self.circuit.order:
            op = node.op
            if op is Op.VAR:
                continue
            if op is Op.CONST:
                self.constant(node)
            elif changed.isdisjoint(node.children) and not any_rule_matches(node):
                first = share(node)
                if first is not node:
                    self.new[node] = first
            else:
                self.rewrite(node)
        root = self.circuit.root
        return scaled(self.factor.get(root, 1), self.new.get(root, root))

    def constant(self, node: Node) -> None:
        """c = c·1"""
        if node.value == 0:
            if node is not ZERO:
                self.new[node] = ZERO
        elif node is not ONE:
            self.new[node] = ONE
            self.factor[node] = node.value

    def rewrite(self, node: Node) -> None:
        children, new, factor_of = node.children, self.new, self.factor
        changed = [new.get(c, c) for c in children]
        if factor_of.keys().isdisjoint(children):
            moved = _with_children(node, changed)
            if not any_rule_matches(moved):
                self.settle(node, 1, self.share(moved))
                return
            factors: Sequence[Number] = ()
        else:
            factors = [factor_of.get(c, 1) for c in children]
        draft = Draft(node, factors, changed)
        for apply in _APPLY[node.op]:
            apply(draft)
            if draft.op is not node.op:
                break
        self.settle(node, draft.factor, self.share(draft.finish()))

    def settle(self, node: Node, factor: Number, result: Node) -> None:
        """node = factor · result"""
        if type(factor) is Fraction or factor != 1:
            if node not in self.stuck or result is ONE:
                self.factor[node] = factor
            else:
                result = scaled(factor, result)
        if result is not node:
            self.new[node] = result


def _with_children(node: Node, children: Sequence[Node]) -> Node:
    """`rebuild` for children that are known to differ."""
    if node.op is Op.SUM:
        return weighted_sum(node.weights, children)
    return product(children) if node.op is Op.PRODUCT else rebuild(node, children)


def cannot_hand_up(circuit: Circuit) -> set[Node]:
    """Nodes that keep their factor, because some parent could not take it without growing.

    A sum takes a factor into its weights. A product takes it if it hands it up itself, or if it is the only parent
    (then it keeps the factor in the child's place). A determinant does not take it, and nothing is above the root.
    """
    uses = count_uses(circuit.order)
    stuck = {circuit.root}
    for node in reversed(circuit.order):
        if node.op is Op.DET:
            stuck.update(node.children)
        elif node.op is Op.PRODUCT and node in stuck:
            stuck.update(c for c in node.children if uses[c] > 1)
    return stuck


_FIRST = itemgetter(0)


class Sharing:
    """a + b = b + a and a·b = b·a: of the nodes that differ only in the order of their children, the first.

    The order of addresses is only used to compare sets, so that the outcome does not depend on it.
    """

    def __init__(self) -> None:
        self._products: dict[tuple[Node, ...], Node] = {}
        self._sums: dict[tuple[Node, ...], Node] = {}
        self._by_weights: dict[tuple[Node, ...], dict[tuple, Node]] = {}

    def representative(self, node: Node) -> Node:
        """The first node seen that is equal to this one."""
        if node.op is Op.PRODUCT:
            return self._products.setdefault(tuple(sorted(node.children, key=id)), node)
        if node.op is not Op.SUM:
            return node
        key = tuple(sorted(node.children, key=id))
        first = self._sums.setdefault(key, node)
        if first is node:
            return node
        group = self._by_weights.get(key)  # sums of the same children; only now weights are looked at
        if group is None:
            group = self._by_weights[key] = {_weights_by_child(first): first}
        return group.setdefault(_weights_by_child(node), node)


def _weights_by_child(node: Node) -> tuple[tuple[int, int], ...]:
    """The weights in the order of the children's addresses, as ratios (a Fraction is slow to hash)."""
    if len(node.children) == 1:
        return (node.weights[0].as_integer_ratio(),)
    edges = sorted(zip(map(id, node.children), node.weights, strict=True), key=_FIRST)
    return tuple([weight.as_integer_ratio() for _, weight in edges])


def count_uses(order: Iterable[Node]) -> Counter[Node]:
    """Number of edges into every node."""
    return Counter(chain.from_iterable(node.children for node in order))


# -- flatten ------------------------------------------------------------------------------------------------


def flatten(circuit: Circuit) -> Circuit:
    """Σ w·(Σ v·c) = Σ (w·v)·c and Π a·(Π b) = Π a·b, where the inner node has no other parent.

    Examples
    --------
    >>> import pgcc
    >>> flatten(pgcc.parse("a + (b + (c + d))")).size
    4
    """
    with collector_paused():
        inner, weights = _nested(circuit)
        if not inner:
            return circuit
        new: dict[Node, Node] = {}
        for node in circuit.order:
            if node in inner:
                continue
            if inner.isdisjoint(node.children):
                if not new.keys().isdisjoint(node.children):
                    new[node] = rebuild(node, [new.get(c, c) for c in node.children])
                continue
            edges = list(_open(node, inner, weights))
            children = [new.get(c, c) for _, c in edges]
            new[node] = weighted_sum([w for w, _ in edges], children) if node.op is Op.SUM else product(children)
        return Circuit(new[circuit.root], circuit.variables)


def _nested(circuit: Circuit) -> tuple[set[Node], dict[Node, list[Number]]]:
    """The nodes to open, and for sums their weights, multiplied by those above them."""
    uses = count_uses(circuit.order)
    single = {node for node, count in uses.items() if count == 1 and node.children}
    inner: set[Node] = set()
    weights: dict[Node, list[Number]] = {}
    lone: set[Node] = set()  # w·c in a product: `fold` hands the w up, which leaves the weights below as they are
    for node in reversed(circuit.order):  # parents first
        op = node.op
        if (op is not Op.SUM and op is not Op.PRODUCT) or single.isdisjoint(node.children) or node in lone:
            continue
        if op is Op.PRODUCT:
            own = [c for c in node.children if c in single]
            inner.update(c for c in own if c.op is op)
            lone.update(c for c in own if c.op is Op.SUM and len(c.children) == 1)
            continue
        for weight, child in zip(weights.get(node, node.weights), node.children, strict=True):
            if child.op is op and child in single:
                multiplied = [times(weight, v) for v in child.weights]
                if None not in multiplied:
                    inner.add(child)
                    weights[child] = multiplied  # type: ignore[assignment]
    return inner, weights


def _open(head: Node, inner: set[Node], weights: dict[Node, list[Number]]) -> Iterator[tuple[Number, Node]]:
    """The edges out of the nest below `head`, left to right; iterative, for nests a million deep."""
    stack = [_edges(head, weights)]
    while stack:
        for weight, child in stack[-1]:
            if child in inner:
                stack.append(_edges(child, weights))
                break
            yield weight, child
        else:
            stack.pop()


def _edges(node: Node, weights: dict[Node, list[Number]]) -> Iterator[tuple[Number, Node]]:
    own: Sequence[Number] = weights.get(node, node.weights) if node.op is Op.SUM else [1] * len(node.children)
    return zip(own, node.children, strict=True)
