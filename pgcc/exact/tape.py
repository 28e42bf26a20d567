"""A circuit as a tape: its nodes in order, with numbers in a ring; and the one walk over it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, assert_never

from pgcc.exact.bounded import bits
from pgcc.exact.pencil import Determinant, Layout, Ring
from pgcc.ir.node import Node, Op

# A node of a circuit: operation, children, data with numbers in a ring, and the children that no later node needs.
Entry = tuple[Op, tuple[int, ...], Any, list[int]]
Tape = list[Entry]


class Layouts(dict[Node, Layout]):
    """The layouts of determinants, each made when it is first asked for."""

    def __missing__(self, node: Node) -> Layout:
        found = self[node] = Layout(node)
        return found


def make_tape(order: Sequence[Node], ring: Ring, layouts: Layouts) -> Tape:
    """The nodes of a circuit, children first, with numbers in the ring."""
    place = {node: i for i, node in enumerate(order)}
    links = [tuple([place[child] for child in node.children]) for node in order]
    last_use: dict[int, int] = {}
    for i, children in enumerate(links):
        last_use.update(dict.fromkeys(children, i))
    tape: Tape = []
    for i, (node, children) in enumerate(zip(order, links, strict=True)):
        data = node.data
        if node.op is Op.CONST:
            data = ring.lift(node.value)
        elif node.op is Op.SUM:
            data = [ring.lift(w) for w in node.weights]
        elif node.op is Op.DET:
            data = Determinant(layouts[node], ring)
        tape.append((node.op, children, data, [c for c in dict.fromkeys(children) if last_use[c] == i]))
    return tape


def run_tape(tape: Tape, literals: Mapping[tuple[str, bool], Any]) -> Any:
    """The value of a circuit, given those of z (False) and ȳ (True) of every variable."""
    at: list[Any] = []
    for op, children, data, dead in tape:
        match op:
            case Op.CONST:
                at.append(data)
            case Op.VAR:
                at.append(literals[data])
            case Op.SUM:
                at.append(sum([w * at[c] for w, c in zip(data, children, strict=True)], start=0))
            case Op.PRODUCT:
                at.append(math.prod([at[c] for c in children], start=1))
            case Op.DET:
                k = len(children) // 2
                at.append(data.at([at[c] for c in children[:k]], [at[c] for c in children[k:]]))
            case _:
                assert_never(op)
        for c in dead:  # free the memory: numbers may be long
            at[c] = None
    return at[-1]


def bits_of_value(order: Sequence[Node], layouts: Layouts) -> int:
    """A rough bound on the bits of the exact value of a circuit where variables are 0 or 1: those of factors add up."""
    at: dict[Node, int] = {}
    for node in order:
        below = [at[child] for child in node.children]
        match node.op:
            case Op.CONST:
                at[node] = bits(node.value)
            case Op.VAR:
                at[node] = 1
            case Op.SUM:
                at[node] = max((bits(w) + b for w, b in zip(node.weights, below, strict=True)), default=1) + 8
            case Op.PRODUCT:
                at[node] = sum(below)
            case Op.DET:
                n = node.matrices[0].shape[0] + len(node.inside)
                at[node] = sum(below) + n * (max(map(bits, layouts[node].numbers()), default=1) + 8)
            case _:
                assert_never(node.op)
    return at[order[-1]]
