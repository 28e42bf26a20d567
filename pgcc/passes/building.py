"""Sums and products without zeros and ones, for passes that build many of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pgcc.ir.node import ONE, ZERO, Node, product, weighted_sum
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
