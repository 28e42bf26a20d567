"""The terms that expressions are made of: a number, or a number times a node.

Python's operators and the front ends for text and SymPy add and multiply terms here, so that they build the same nodes.
Numbers that are combined are computed at once, exactly: `3*z/4` becomes z with the weight 3/4, and `0.1*(z + 1)` an
edge of a sum, not a product with a constant. A float stays a float: with other numbers it is combined only if the
result is a double, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pgcc.ir.node import Node, const, product, weighted_sum
from pgcc.ir.numbers import Number, add, mul, nearest_float

# (coefficient, node): their product; without a node, the number itself.
Term = tuple[Number, Node | None]
# What an operation of exact numbers does, and may refuse to do if they are too long.
Arithmetic = Callable[[Number, Number], Number]


def node_of(term: Term) -> Node:
    """The node that computes a term."""
    coefficient, node = term
    if node is None:
        return const(coefficient)
    if type(coefficient) is int and coefficient == 1:
        return node
    return weighted_sum((coefficient,), (node,))


def sealed(term: Term) -> Term:
    """The same value, closed as by parentheses, so that its weight no longer combines with weights outside."""
    return term if term[1] is None else (1, node_of(term))


def negated(term: Term) -> Term:
    """−term; a float stays a float, because a change of sign is exact."""
    return -term[0], term[1]


def added(terms: Sequence[Term], plus: Arithmetic = add) -> Term:
    """Σ terms, with the numbers among them added up, in the position of the first.

    >>> added([(1, None), (2, const(5)), (3, None)])
    (1, Sum(2 children))
    """
    if len(terms) == 1:
        return terms[0]
    weights: list[Number] = []
    nodes: list[Node] = []
    total: Number | None = None
    place = 0
    for coefficient, node in terms:
        if node is not None:
            weights.append(coefficient)
            nodes.append(node)
        elif total is None:
            total, place = coefficient, len(nodes)
        elif (both := _combined(total, coefficient, plus)) is not None:
            total = both
        elif nodes:
            weights.append(1)
            nodes.append(const(coefficient))
        else:
            total = plus(total, coefficient)
    if not nodes:
        return (0 if total is None else total), None
    if total:
        weights.insert(place, 1)
        nodes.insert(place, const(total))
    if len(nodes) == 1:
        return weights[0], nodes[0]
    return 1, weighted_sum(weights, nodes)


def multiplied(terms: Sequence[Term], times: Arithmetic = mul) -> Term:
    """Π terms, with the numbers among them multiplied into one weight.

    >>> multiplied([(2, const(5)), (3, None)])
    (6, Const(5))
    """
    if len(terms) == 1:
        return terms[0]
    weight: Number = 1
    nodes: list[Node] = []
    for coefficient, node in terms:
        if type(coefficient) is not int or coefficient != 1:
            both = _combined(weight, coefficient, times)
            if both is None and nodes:
                nodes, both = [node_of((weight, _product(nodes)))], coefficient
            weight = times(weight, coefficient) if both is None else both
        if node is not None:
            nodes.append(node)
    return weight, _product(nodes) if nodes else None


def _product(nodes: Sequence[Node]) -> Node:
    return nodes[0] if len(nodes) == 1 else product(nodes)


def _combined(a: Number, b: Number, operation: Arithmetic) -> Number | None:
    """The result of an operation; None if one of the numbers is a float, and the result is not."""
    exact = operation(a, b)
    if float not in (type(a), type(b)):
        return exact
    near = nearest_float(exact)
    return near if near == exact else None
