"""Flat circuits built one node at a time are the circuits of the same nodes, in the same order."""

import random

from how_many import some
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import pgcc
from pgcc import pc
from pgcc.ir.circuit import Circuit, from_flat
from pgcc.ir.flat import Flat
from pgcc.ir.flat_builder import FlatBuilder, weighted_sum_of
from pgcc.ir.node import postorder
from pgcc.passes.homogenize import homogenize
from pgcc.testing import circuits

thorough = settings(max_examples=some(100), deadline=None)
anything = st.one_of(circuits(dets=True, multiaffine=False, floats=True, max_size=12), circuits(max_size=12))


def some_order(circuit, seed):
    """The nodes in an order in which children come before parents, not that of `postorder`."""
    rng, waiting, done, order = random.Random(seed), list(circuit.order), set(), []
    while waiting:
        ready = [node for node in waiting if done.issuperset(node.children)]
        order.append(rng.choice(ready))
        done.add(order[-1])
        waiting.remove(order[-1])
    return order


@thorough
@given(anything, st.integers(0, 99))
def test_a_built_circuit_is_that_of_its_nodes_in_postorder(circuit, seed):
    build, position = FlatBuilder(), {}
    for node in 2 * some_order(circuit, seed):  # equal nodes have one position
        position[node] = build.add(node.op, tuple(position[c] for c in node.children), node.data)
    assert len(build.op) == len(circuit.order)
    build.const(12345)  # what the root does not need is left out
    built = build.flat(position[circuit.root])
    assert built.equals(Flat.of(postorder(circuit.root)))
    assert list(built.nodes) == postorder(circuit.root)
    assert [build.nodes()[position[node]] for node in circuit.order] == circuit.order
    assert from_flat(built, circuit.variables) == circuit


def test_numbers_of_other_types_are_other_nodes():
    build = FlatBuilder()
    x = build.var("x")
    assert build.weighted_sum((1,), (x,)) != build.weighted_sum((1.0,), (x,))
    one, other = (build.flat(build.weighted_sum((weight,), (x,))) for weight in (1, 1.0))
    assert not one.equals(other)
    assert not build.flat(build.one).equals(build.flat(build.const(1.0)))


@thorough
@given(circuits(max_variables=4, max_size=10))
def test_positions_are_those_of_the_order(circuit):
    assume(circuit._overlap is None)
    for one in (circuit, homogenize(circuit), homogenize(Circuit(circuit.root, circuit.variables)).simplify()):
        assert one.edges == sum(len(node.children) for node in one.order)
        assert len(one.scopes.of) == len(one.order)
        assert list(one._flat.nodes) == one.order
        assert one._links == [tuple(one.order.index(c) for c in node.children) for node in one.order]


def coinciding():
    """A circuit two nodes of which become one when it is homogenized: a·b·c̄ is there, and made of a·b."""
    one, other = pgcc.parse("1/2*a*b + 1/2*c"), pgcc.parse("1/3*(a*b*~c) + 2/3*(c*~a*~b)")
    x, y = pgcc.variables("x y")
    return one * x / 2 + other * y / 2


def test_nodes_that_become_equal_are_one():
    homogenized = homogenize(coinciding())
    assert homogenized._flat.equals(Flat.of(postorder(homogenized.root)))


def test_evidence_on_a_circuit_with_nodes_that_become_equal():
    """It was an internal error: the scopes were those of one order, and the nodes those of another."""
    a, b, c, x, y = map(pc.pos, "abcxy")
    first = 0.5 * (a * b) + 0.5 * c
    second = 0.25 * (a * b * (c + pc.neg("c"))) + 0.75 * (c * pc.neg("a") * pc.neg("b"))
    smoothed = (0.5 * first * x + 0.5 * second * y).to_pgc()
    observed = smoothed.observe({"a": 1})
    assert pgcc.compile(observed, normalize=False).prob(exact=True) == pgcc.compile(
        Circuit(smoothed.root, smoothed.variables), normalize=False
    ).prob({"a": 1}, exact=True)


def test_what_parts_of_a_sum_share_is_there_once():
    ab, rest = "(0.25*a*b + 0.75)", "(0.5*c + 0.5)"
    parts = [pgcc.parse(text) for text in (f"{ab}*{rest}", f"0.5*{ab}*d + 0.5*{rest}", f"{ab}*{rest}")]
    mixed = from_flat(weighted_sum_of([part._flat for part in parts], [0.5, 0.25, 0.25]), "abcd")
    assert len(set(mixed.order)) == len(mixed.order)
    assert Flat.of(mixed.order).equals(mixed._flat)
    want = pgcc.mixture([0.5, 0.25, 0.25], parts)
    assert pgcc.compile(mixed).prob("a=1, d=0", exact=True) == pgcc.compile(want).prob("a=1, d=0", exact=True)
    assert pgcc.check(mixed).ok
