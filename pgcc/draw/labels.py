"""The labels of nodes and edges, and the shapes and colours of operations, in all pictures."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, assert_never

from pgcc.ir.node import ONE, Node, Op, iter_edges
from pgcc.ir.numbers import Number
from pgcc.ir.spelling import display_text


class Look(NamedTuple):
    """How an operation is drawn: its colour, whether it is a circle (or else a box) and has an outline, and its shape
    in Graphviz."""

    fill: str
    is_round: bool
    is_outlined: bool
    dot_shape: str


LOOKS = {
    Op.CONST: Look("#f2f2f2", False, False, "plaintext"),
    Op.VAR: Look("#ffffff", False, True, "box"),
    Op.SUM: Look("#d9e8f8", True, True, "circle"),
    Op.PRODUCT: Look("#fbe6cf", True, True, "circle"),
    Op.DET: Look("#e2f1dd", False, True, "hexagon"),
}


def node_label(node: Node, number: Callable[[Number], str] = display_text) -> str:
    """The label of a node.

    >>> from pgcc.ir.node import var
    >>> node_label(var("z1")), node_label(var("z1", complement=True)), node_label(ONE)
    ('z1', '~z1', '1')
    """
    match node.op:
        case Op.CONST:
            return number(node.value)
        case Op.VAR:
            return ("~" if node.is_complement else "") + node.name
        case Op.SUM:
            return "+"
        case Op.PRODUCT:
            return "×"
        case Op.DET:
            size = "" if node.size is None else f", size {node.size}"
            size += "" if all(node.counted) else f" of {sum(node.counted)}"
            return f"det {node.matrices[0].shape[0]}×{len(node.inside)}{size}"
    assert_never(node.op)


def labelled_edges(node: Node, number: Callable[[Number], str] = display_text) -> Iterator[tuple[Node, str]]:
    """(child, label): the weights of a sum that are not 1; the place of a determinant's child, f1 f2 …, and of its
    complement, y1 y2 …, which is not drawn where it is 1."""
    if node.op is Op.SUM:
        for weight, child in iter_edges(node):
            yield child, "" if type(weight) is int and weight == 1 else number(weight)
    elif node.op is Op.DET:
        for i, (inside, outside) in enumerate(zip(node.inside, node.outside, strict=True), 1):
            yield inside, f"f{i}"
            if outside is not ONE:
                yield outside, f"y{i}"
    elif node.op is Op.PRODUCT or node.op is Op.VAR or node.op is Op.CONST:
        for child in node.children:
            yield child, ""
    else:
        assert_never(node.op)


def shortened(text: str, most: int) -> str:
    """A text of at most this many characters: the beginning of a longer one."""
    return text if len(text) <= most else text[: most - 1] + "…"
