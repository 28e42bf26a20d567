"""The rules of simplification: one table, `RULES`, each rule with its law.

A rule rewrites one node whose children are already simple. A node may turn out to be a number times another node; then
the number is *handed up* to the parents, and sums take it into their weights.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from pgcc.exact.bounded import constant_determinant, plus, times
from pgcc.ir.flat_builder import FlatBuilder
from pgcc.ir.matrix import Matrix
from pgcc.ir.node import Op, det_data
from pgcc.ir.numbers import Number


class Draft:
    """factor · op(factors_i · children_i) while the rules work on it; no `factors` means that all are 1.

    Children are nodes of `build`. Of a determinant, `matrices` are M0, U and V.
    """

    __slots__ = ("build", "children", "counted", "factor", "factors", "matrices", "op", "size", "weights")

    def __init__(self, build: FlatBuilder, op: Op, data: Any, factors: Sequence[Number], children: list[int]):
        self.build, self.op = build, op
        self.factor: Number = 1
        self.factors, self.children = factors, children
        self.weights: list[Number] = list(data) if op is Op.SUM else []
        if op is Op.DET:
            *self.matrices, self.size, counted = data
            self.counted: Sequence[bool] = (True,) * (len(children) // 2) if counted is None else counted

    def become(self, factor: Number, child: int) -> None:
        """Replace the draft by factor · child."""
        self.factor, self.op, self.children = factor, Op.VAR, [child]

    def finish(self) -> int:
        """The rewritten node, without its factor."""
        if self.op is Op.SUM:
            return self.build.weighted_sum(self.weights, self.children)
        if self.op is Op.PRODUCT:
            return self.build.product(self.children)
        if self.op is Op.VAR:  # `become`
            return self.children[0]
        raise AssertionError(f"no rule has finished operation {self.op!r}")


class Rewriting(NamedTuple):
    """A law, and the rewriting."""

    name: str
    law: str
    apply: Callable[[Draft], None]


def scaled(build: FlatBuilder, factor: Number, node: int) -> int:
    """factor · node, as a node."""
    if node == build.one:
        return build.const(factor)
    if node == build.zero or (type(factor) is not Fraction and factor == 1):
        return node
    return build.weighted_sum((factor,), (node,))


def take_into_weights(draft: Draft) -> None:
    for i, factor in enumerate(draft.factors):
        weight = times(draft.weights[i], factor)
        if weight is None:
            draft.children[i] = scaled(draft.build, factor, draft.children[i])
        else:
            draft.weights[i] = weight


def drop_zero_terms(draft: Draft) -> None:
    zero = draft.build.zero
    if not all(draft.weights) or zero in draft.children:
        kept = [i for i, c in enumerate(draft.children) if draft.weights[i] and c != zero]
        draft.weights = [draft.weights[i] for i in kept]
        draft.children = [draft.children[i] for i in kept]


def merge_equal_terms(draft: Draft) -> None:
    if len(set(draft.children)) == len(draft.children):
        return
    weights: list[Number] = []
    children: list[int] = []
    first: dict[int, int] = {}
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
        draft.become(1, draft.build.zero)
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
    if draft.build.zero in draft.children:
        draft.become(1, draft.build.zero)


def drop_ones(draft: Draft) -> None:
    one = draft.build.one
    if one in draft.children:
        draft.children = [c for c in draft.children if c != one]


def collapse_product(draft: Draft) -> None:
    if len(draft.children) < 2:
        draft.become(draft.factor, draft.children[0] if draft.children else draft.build.one)


def keep_factors(draft: Draft) -> None:
    if draft.factors:
        pairs = zip(draft.factors, draft.children, strict=True)
        draft.children = [scaled(draft.build, factor, child) for factor, child in pairs]


def sizes_possible(zero: Sequence[bool], counted: Sequence[bool]) -> tuple[int, int]:
    """The least and the largest |T ∩ counted| of the terms that are not 0: y_i = 0 says "in", f_i = 0 says "out".

    zero : which of f_1..f_k, y_1..y_k are 0.
    """
    k = len(counted)
    surely_in = sum(bool(y) and c for y, c in zip(zero[k:], counted, strict=True))
    return surely_in, sum(not f and c for f, c in zip(zero[:k], counted, strict=True))


def decide_size(draft: Draft) -> None:
    if draft.size is None:
        return
    k, zero = len(draft.children) // 2, draft.build.zero
    inside, outside, counted = draft.children[:k], draft.children[k:], draft.counted
    least, largest = sizes_possible([c == zero for c in draft.children], counted)
    if not least <= draft.size <= min(largest, draft.matrices[0].shape[0]):
        draft.become(1, zero)
    elif draft.size == least:
        pairs = zip(inside, outside, counted, strict=True)
        draft.children = [zero if c and y != zero else f for f, y, c in pairs] + outside
        draft.size = None
    elif draft.size == largest:
        pairs = zip(inside, outside, counted, strict=True)
        draft.children = inside + [zero if c and f != zero else y for f, y, c in pairs]
        draft.size = None


def delete_absent(draft: Draft) -> None:
    k, build = len(draft.children) // 2, draft.build
    absent = [i for i in range(k) if draft.children[i] == build.zero]
    kept = [i for i in range(k) if draft.children[i] != build.zero]
    m0, u, v = draft.matrices
    inside, outside = [draft.children[i] for i in kept], [draft.children[k + i] for i in kept]
    if absent:
        u, v = _columns(u, kept), _columns(v, kept)
    counted = None if draft.size is None else [draft.counted[i] for i in kept]
    data = det_data(m0, u, v, len(kept), len(kept), draft.size, counted)
    value = constant_determinant(data[0]) if not kept else None
    smaller = build.add(Op.DET, (*inside, *outside), data) if value is None else build.const(value)
    if value == 0 or not absent:
        draft.become(1, smaller)
        return
    # y_i·…·det: a product like any other
    factors = [draft.children[k + i] for i in absent if draft.children[k + i] != build.one]
    draft.become(1, build.product((*factors, smaller)) if factors else smaller)


def _columns(matrix: Matrix, kept: Sequence[int]) -> Matrix:
    if matrix.is_float:
        return Matrix(matrix.floats()[:, list(kept)], note=matrix.note)
    return Matrix([[row[j] for j in kept] for row in matrix.numbers()], shape=(0, len(kept)), note=matrix.note)


RULES: dict[Op, tuple[Rewriting, ...]] = {
    Op.CONST: (),
    Op.VAR: (),
    Op.SUM: (
        Rewriting("take factors into the weights", "w·(v·c) = (w·v)·c", take_into_weights),
        Rewriting("drop zeros", "a + 0·c = a + w·0 = a", drop_zero_terms),
        Rewriting("merge equal children", "w·c + v·c = (w + v)·c", merge_equal_terms),
        Rewriting("collapse a sum", "Σ of nothing = 0, of w·c alone = w·c", collapse_sum),
    ),
    Op.PRODUCT: (
        Rewriting("hand factors up", "(v·a)·b = v·(a·b)", hand_up_factors),
        Rewriting("annihilate", "0·a = 0", annihilate),
        Rewriting("drop ones", "1·a = a", drop_ones),
        Rewriting("collapse a product", "Π of nothing = 1, of a alone = a", collapse_product),
    ),
    Op.DET: (
        Rewriting("keep factors", "w·c is one child", keep_factors),
        Rewriting(
            "decide the size",
            "of size k: c_T = 0 where |T| > r; of the children that count, if k have y_i = 0 the others are out "
            "(f_i = 0), if only k have f_i ≠ 0 they are in (y_i = 0), and then the size says nothing more",
            decide_size,
        ),
        Rewriting(
            "delete what is absent",
            "f_i = 0: det = y_i·(det without i); without children it is the number det M0",
            delete_absent,
        ),
    ),
}

APPLY = {op: tuple(rule.apply for rule in rules) for op, rules in RULES.items()}
