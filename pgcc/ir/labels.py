"""What drawings and DOT text write on nodes and edges."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pgcc.ir.literals import display_text
from pgcc.ir.node import ONE, Node, Op, iter_edges
from pgcc.ir.numbers import Number


def node_label(node: Node, number: Callable[[Number], str] = display_text) -> str:
    """What a drawing writes on a node.

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
    size = "" if node.size is None else f", size {node.size}"
    size += "" if all(node.counted) else f" of {sum(node.counted)}"
    return f"det {node.matrices[0].shape[0]}×{len(node.inside)}{size}"


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
    else:
        for child in node.children:
            yield child, ""
