"""Sums and products without zeros and ones, for passes that build many of them; and the factors of a product."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

from pgcc.ir.node import ONE, ZERO, Node, Op, product, weighted_sum
from pgcc.ir.numbers import Number


def sum_of(terms: Iterable[tuple[Number, Node]]) -> Node:
    """Σ w·c

    >>> from pgcc.ir.node import var
    >>> sum_of([(0, var("a")), (1, var("b")), (2, ZERO)])
    Var(b)
    """
    kept = [(w, c) for w, c in terms if w and c is not ZERO]
    if len(kept) == 1 and kept[0][0] == 1:
        return kept[0][1]
    return weighted_sum([w for w, _ in kept], [c for _, c in kept]) if kept else ZERO


def product_of(factors: Sequence[Node]) -> Node:
    """Π c

    >>> from pgcc.ir.node import var
    >>> product_of([ONE, var("a")]), product_of([ZERO, var("a")])
    (Var(a), Const(0))
    """
    if ZERO in factors:
        return ZERO
    kept = [c for c in factors if c is not ONE]
    return product(kept) if len(kept) > 1 else kept[0] if kept else ONE


def factors_of(root: Node) -> tuple[Fraction, list[Node]]:
    """A number and nodes whose product a node is, with nested products and constant multiples flattened.

    >>> from pgcc.ir.node import var
    >>> factors_of(product_of([weighted_sum([3], [var("a")]), var("b")]))
    (Fraction(3, 1), [Var(a), Var(b)])
    """
    scale, found, stack = Fraction(1), [], [root]
    while stack:
        node = stack.pop()
        if node.op is Op.PRODUCT:
            stack += reversed(node.children)
        elif node.op is Op.SUM and len(node.children) == 1:
            scale *= Fraction(node.weights[0])
            stack += node.children
        elif node.op is Op.CONST:
            scale *= Fraction(node.value)
        else:
            found.append(node)
    return scale, found
