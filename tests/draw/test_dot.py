"""DOT text of circuits, for Graphviz."""

import pgcc
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


def test_dot_of_a_part():
    circuit = pgcc.parse("a*b/2 + c/2")
    text = dot_text(circuit, most_nodes=2)
    assert 'label="the top 2 of 5 nodes and 4 edges";' in text
    assert [line.split()[0] for line in text.splitlines() if "shape=plaintext" in line] == ["n2", "n3"]
    assert {line.strip() for line in text.splitlines() if "style=dashed" in line} == {
        "n0 -> n2 [style=dashed];",
        "n1 -> n3 [style=dashed];",
    }
    text = dot_text(circuit, around="c", most_nodes=1)
    assert "n1 -> n0 [style=dashed];" in text  # its parent is left out
    assert dot_text(circuit, most_nodes=5) == dot_text(circuit)
