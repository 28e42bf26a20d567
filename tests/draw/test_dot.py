"""DOT text of circuits, for Graphviz."""

from pgcc.draw.dot import dot_text
from pgcc.ir.circuit import Circuit
from pgcc.ir.node import ONE, det, var


def test_dot():
    x = Circuit(var('say "hi" \\'))
    a = Circuit(var("a"))
    text = dot_text(0.5 * x * a + a)
    assert text.startswith("digraph")
    assert text.rstrip().endswith("}")
    assert r'label="say \"hi\" \\"' in text
    assert 'label="0.5"' in text
    circuit = Circuit(det([[1]], [[2, 1]], [[1, 1]], [var("a"), var("b")], [var("c"), ONE]))
    text = dot_text(circuit)
    edges = [line for line in text.splitlines() if "->" in line]
    assert len(edges) == 3  # a complement of 1 is not drawn
    assert text.count("shape=plaintext") == 0
    assert sum('"y1"' in edge for edge in edges) == 1
