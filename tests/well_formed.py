"""Invariants of circuits, as a table of rules. The tests verify them between passes."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from pgcc.errors import CircuitError
from pgcc.ir.circuit import Circuit
from pgcc.ir.matrix import Matrix
from pgcc.ir.node import Node, Op, is_size

Rule = tuple[str, Callable[[Node], bool]]


def _canonical(value: object) -> bool:
    if type(value) is float:
        return math.isfinite(value)
    return type(value) is int or (type(value) is Fraction and value.denominator != 1)


# One line per operation and law: the message when it fails, and the test.
RULES: dict[Op, list[Rule]] = {
    Op.CONST: [
        ("a Const has no children", lambda n: not n.children),
        ("a Const holds a canonical number", lambda n: _canonical(n.data)),
    ],
    Op.VAR: [
        ("a Var has no children", lambda n: not n.children),
        ("a Var holds a name and whether it is a complement", lambda n: [type(x) for x in n.data] == [str, bool]),
    ],
    Op.SUM: [
        ("a Sum has one weight per child", lambda n: len(n.data) == len(n.children)),
        ("the weights of a Sum are canonical numbers", lambda n: all(map(_canonical, n.data))),
    ],
    Op.PRODUCT: [("a Product holds nothing but children", lambda n: n.data is None)],
    Op.DET: [
        (
            "a Det holds three matrices, a size and what it counts",
            lambda n: [type(m) for m in n.data[:-2]] == [Matrix] * 3,
        ),
        ("the shapes of a Det fit its children", lambda n: _shapes_fit(n)),
        ("the counted children of a Det are some of its children", lambda n: len(n.counted) == len(n.inside)),
        ("the size of a Det fits its children", lambda n: n.size is None or is_size(n.size, sum(n.counted))),
    ],
}


def _shapes_fit(node: Node) -> bool:
    m0, u, v = node.matrices
    r, k = m0.shape[0], len(node.inside)
    return len(node.children) == 2 * k and m0.shape == (r, r) and u.shape == v.shape == (r, k)


def verify(circuit: Circuit) -> Circuit:
    """The circuit itself, or a `CircuitError` that says which law fails at which node."""
    seen: set[Node] = set()
    for node in circuit.order:
        for law, holds in RULES[node.op]:
            if not holds(node):
                raise CircuitError(f"broken circuit: {law}, but {node!r} does not")
        if not seen.issuperset(node.children):
            raise CircuitError(f"broken circuit: a child of {node!r} comes after it")
        if node.op is Op.VAR and node.name not in circuit.variables:
            raise CircuitError(f"broken circuit: {node.name!r} is not among its variables")
        seen.add(node)
    return circuit
