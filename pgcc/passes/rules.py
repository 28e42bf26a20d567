"""The rules of simplification: one table, `RULES`, each rule with its law.

A rule rewrites one node whose children are already simple. A node may turn out to be a number times another node; then
the number is *handed up* to the parents, and sums take it into their weights.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from pgcc.ir.flat import Flat
from pgcc.ir.matrix import Matrix
from pgcc.ir.node import ONE, ZERO, Node, Op, const, det, product, weighted_sum
from pgcc.ir.numbers import Number
from pgcc.passes.exact import constant_determinant, plus, times


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
        """Replace the draft by factor · child."""
        self.factor, self.op, self.children = factor, Op.VAR, [child]

    def finish(self) -> Node:
        """The rewritten node, without its factor."""
        if self.op is Op.SUM:
            return weighted_sum(self.weights, self.children)
        if self.op is Op.PRODUCT:
            return product(self.children)
        if self.op is Op.VAR:  # `become`
            return self.children[0]
        raise AssertionError(f"no rule has finished {self.node!r}")


class Rule(NamedTuple):
    """A law; which nodes it changes, if no rule has changed their children (`matches`); and the rewriting (`apply`)."""

    name: str
    law: str
    matches: Callable[[Flat], np.ndarray]
    apply: Callable[[Draft], None]


def never(flat: Flat) -> np.ndarray:
    """For rules that apply only where a child has changed."""
    return np.zeros(len(flat.op), bool)


def is_constant(flat: Flat, number: int) -> np.ndarray:
    """Which nodes are the constant 0 or 1, given as an integer: the nodes `ZERO` and `ONE`."""
    found = np.zeros(len(flat.op), bool)
    found[[i for i, data in flat.data.items() if type(data) is int and data == number]] = True
    return found


def having(flat: Flat, children: np.ndarray) -> np.ndarray:
    """Which nodes have a child among these."""
    found = np.zeros(len(flat.op), bool)
    found[flat.parent[children[flat.child]]] = True
    return found


def has_zero_term(flat: Flat) -> np.ndarray:
    found = having(flat, is_constant(flat, 0))
    zero = [k for k, weight in enumerate(flat.weights) if not weight]
    found[np.searchsorted(flat.first_weight, zero, side="right") - 1] = True
    return found


def repeats(flat: Flat) -> np.ndarray:
    found = np.zeros(len(flat.op), bool)
    edges = np.sort(flat.parent * len(flat.op) + flat.child)
    found[edges[1:][edges[1:] == edges[:-1]] // len(flat.op)] = True
    return found


def few_children(flat: Flat) -> np.ndarray:
    return flat.lengths < 2


def any_determinant(matches: Callable[[Node], bool]) -> Callable[[Flat], np.ndarray]:
    """The same for a test of one determinant."""

    def found(flat: Flat) -> np.ndarray:
        marks = np.zeros(len(flat.op), bool)
        for i in np.flatnonzero(flat.op == Op.DET).tolist():
            marks[i] = matches(flat.nodes[i])
        return marks

    return found


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
    """The least and the largest |T ∩ counted| of the terms that are not 0: y_i = 0 says "in", f_i = 0 says "out"."""
    surely_in = sum(y is ZERO and c for y, c in zip(outside, counted, strict=True))
    return surely_in, sum(f is not ZERO and c for f, c in zip(inside, counted, strict=True))


def size_is_decided(node: Node) -> bool:
    if node.size is None:
        return False
    least, largest = sizes_possible(node.inside, node.outside, node.counted)
    return not least < node.size < largest or node.size > node.matrices[0].shape[0]


def decide_size(draft: Draft) -> None:
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


RULES: dict[Op, tuple[Rule, ...]] = {
    Op.CONST: (),
    Op.VAR: (),
    Op.SUM: (
        Rule("take factors into the weights", "w·(v·c) = (w·v)·c", never, take_into_weights),
        Rule("drop zeros", "a + 0·c = a + w·0 = a", has_zero_term, drop_zero_terms),
        Rule("merge equal children", "w·c + v·c = (w + v)·c", repeats, merge_equal_terms),
        Rule("collapse a sum", "Σ of nothing = 0, of w·c alone = w·c", few_children, collapse_sum),
    ),
    Op.PRODUCT: (
        Rule("hand factors up", "(v·a)·b = v·(a·b)", never, hand_up_factors),
        Rule("annihilate", "0·a = 0", lambda flat: having(flat, is_constant(flat, 0)), annihilate),
        Rule("drop ones", "1·a = a", lambda flat: having(flat, is_constant(flat, 1)), drop_ones),
        Rule("collapse a product", "Π of nothing = 1, of a alone = a", few_children, collapse_product),
    ),
    Op.DET: (
        Rule("keep factors", "w·c is one child", never, keep_factors),
        Rule(
            "decide the size",
            "of size k: c_T = 0 where |T| > r; of the children that count, if k have y_i = 0 the others are out "
            "(f_i = 0), if only k have f_i ≠ 0 they are in (y_i = 0), and then the size says nothing more",
            any_determinant(size_is_decided),
            decide_size,
        ),
        Rule(
            "delete what is absent",
            "f_i = 0: det = y_i·(det without i); without children it is the number det M0",
            any_determinant(lambda node: not node.children or ZERO in node.inside),
            delete_absent,
        ),
    ),
}

APPLY = {op: tuple(rule.apply for rule in rules) for op, rules in RULES.items()}


def find_matches(flat: Flat) -> np.ndarray:
    """Which nodes some rule changes, if none has changed their children."""
    found = np.zeros(len(flat.op), bool)
    for op, rules in RULES.items():
        of_kind = flat.op == op
        for rule in rules if of_kind.any() else ():
            if rule.matches is not never:
                found |= of_kind & rule.matches(flat)
    return found
