"""Circuits as networkx graphs: there and back without any change."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from any_circuits import any_circuits
from how_many import some
from hypothesis import given, settings

import pgcc
from pgcc import pc
from pgcc.errors import CircuitError
from pgcc.ir.circuit import Circuit

SOME = {
    "sums": "0.3*a*b + 0.25*a + 1/3",
    "squares": "(a + b)**3 - a*a*b",
    "det": "det([[1, 0], [0, 1]], [[1, 0], [0, 1]], [[1, 2], [2, 5]], [a, b], size=1)",
    "constant": "0.5",
}


@given(any_circuits())
@settings(max_examples=some(150), deadline=None)
def test_every_circuit_there_and_back(circuit):
    assert Circuit.from_networkx(circuit.to_networkx()) == circuit


@pytest.mark.parametrize("text", SOME.values(), ids=SOME)
def test_some_circuits(text):
    g = pgcc.parse(text)
    graph = g.to_networkx()
    assert nx.is_directed_acyclic_graph(graph)
    assert Circuit.from_networkx(graph) == g
    assert Circuit.from_networkx(nx.relabel_nodes(graph, lambda i: f"node {i}")) == g


def test_models_and_matrices():
    kernel = np.array([[1.0, 0.5], [0.5, 2.0]])
    process = pgcc.dpp(L=kernel)
    graph = process.to_networkx()
    (top,) = [data for _, data in graph.nodes(data=True) if data["kind"] == "det"]
    np.testing.assert_array_equal(top["V"], kernel)
    assert len(graph) == 3  # the complements are 1, and not drawn
    top["V"][0, 0] = 3.0  # a graph is one's own
    assert process.root.matrices[2].floats()[0, 0] == 1.0
    tree = pgcc.spanning_tree([("a", "b", 2), ("b", "c", 3), ("a", "c", 1)])
    whole = pgcc.mixture([0.5, 0.5], [process, tree]) * pgcc.parse("x9/2 + 1/2")
    assert Circuit.from_networkx(whole.to_networkx()) == whole


def test_generating_and_probabilistic_graphs_are_told_apart():
    """What a term does not mention is out in the one, and has either value in the other."""
    p = 0.5 * pc.pos("a") * pc.pos("b") + 0.5 * pc.neg("a")
    graph = p.to_networkx()
    with pytest.raises(CircuitError, match=r"of a probabilistic circuit, not of a generating one: pgcc\.pc\.PC"):
        Circuit.from_networkx(graph)
    with pytest.raises(CircuitError, match=r"of a generating circuit, not of a probabilistic one: pgcc\.Circuit"):
        pc.PC.from_networkx(p.to_pgc().to_networkx())
    del graph.graph["meaning"]  # who says nothing is taken at his word
    assert Circuit.from_networkx(graph).root is p.root
    assert pc.PC.from_networkx(p.to_networkx()) == p


def damaged(**attributes):
    graph = pgcc.dpp(L=[[1.0, 0.5], [0.5, 2.0]]).to_networkx()
    graph.nodes[max(graph)].update(attributes)
    return graph


def copied():
    graph = nx.DiGraph([(0, 1), (0, 2)])
    nx.set_node_attributes(graph, {0: "copy", 1: "constant", 2: "constant"}, "kind")
    nx.set_node_attributes(graph, 1, "value")
    return graph


def complemented():
    graph = damaged()
    graph.add_node("y", kind="constant", value=2)
    graph.add_edge(max(i for i in graph if i != "y"), "y", outside=5)
    return graph


MISTAKES = {
    "matrix": (damaged(U=np.eye(3)), "a determinant with 2 children needs M0 of shape r×r"),
    "size": (damaged(size=7), "the size of a determinant of 2 children"),
    "copies": (copied(), "node 0 is a copy of 2 nodes"),
    "complement": (complemented(), "the complement 'y' is of child 5 of 2"),
    "no matrix": (nx.DiGraph(), "the graph has no nodes"),
}


@pytest.mark.parametrize("what", MISTAKES)
def test_mistakes(what):
    graph, message = MISTAKES[what]
    with pytest.raises(CircuitError, match=message):
        Circuit.from_networkx(graph)
