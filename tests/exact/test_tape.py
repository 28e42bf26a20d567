"""The one evaluator in balls and rationals, against the interpreter; and numbers of bounded length."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from flint import arb, fmpq
from how_many import some
from hypothesis import given, settings
from hypothesis import strategies as st

import pgcc
from pgcc.exact.balls import ball, fraction, rational
from pgcc.exact.pencil import BALLS, RATIONALS, interpolated
from pgcc.exact.precision import doubled, precision
from pgcc.exact.tape import Layouts, bits_of_value, make_tape, rational_total, run_tape, total_in_balls
from pgcc.ir.circuit import Circuit
from pgcc.ir.interpret import evaluate
from pgcc.ir.node import const, product, var, weighted_sum
from pgcc.testing import random_circuit, random_det

LONG = 1 << 20


def some_circuit(seed: int) -> Circuit:
    rng = np.random.default_rng(seed)
    return random_det(rng, 4) if seed % 2 else random_circuit(rng, 4, 12)


def true_total(circuit: Circuit) -> Fraction:
    return evaluate(circuit, dict.fromkeys(circuit.variables, Fraction(1)))


@settings(max_examples=some(60))
@given(st.integers(0, 10**6))
def test_totals_are_those_of_the_interpreter(seed):
    circuit = some_circuit(seed)
    true = true_total(circuit)
    assert rational_total(circuit.order, LONG) == true
    with precision(1 << 10):
        narrow = ball(true)
    for bits in (53, 128):
        with precision(bits):
            assert total_in_balls(circuit.order, Layouts(), {}).contains(narrow)


@settings(max_examples=some(60))
@given(st.integers(0, 10**6), st.data())
def test_known_values_stand_for_their_nodes(seed, data):
    """What is below a known node need not be there."""
    circuit = some_circuit(seed)
    node = data.draw(st.sampled_from(circuit.order))
    value = rational(true_total(Circuit(node)))
    order = [one for one in circuit.order if one in above(circuit.root, node)]
    assert rational_total(order, LONG, {node: value}) == true_total(circuit)


def above(root, known) -> set:
    """The nodes that are reached from the root without passing through the known one, which is among them."""
    found, todo = set(), [root]
    while todo:
        node = todo.pop()
        if node not in found:
            found.add(node)
            todo.extend(() if node is known else node.children)
    return found


@settings(max_examples=some(60))
@given(st.integers(0, 10**6))
def test_lengths_are_bounded(seed):
    circuit = some_circuit(seed)
    true = true_total(circuit)
    assert true.numerator.bit_length() <= bits_of_value(circuit.order, Layouts()) + 64
    short = rational_total(circuit.order, 8)
    assert short is None or short == true


def test_a_rational_that_becomes_long_is_given_up():
    x, y = var("x"), var("y")
    tower = const(3)
    for _ in range(40):  # 3^(2^40)
        tower = product([tower, tower])
    assert rational_total(Circuit(tower).order, 4096) is None
    harmonic = Circuit(weighted_sum([Fraction(1, k) for k in range(1, 20_000)], [x] * 19_999))
    assert rational_total(harmonic.order, 4096) is None
    long = Fraction(10**2000, 3)
    assert rational_total(Circuit(product([const(long), x, y])).order, 4096) == long  # no step makes it longer
    assert rational_total(pgcc.dpp(L=(np.eye(60) + 1e-7).tolist()).order, 4096) is None  # Hadamard's bound


def test_values_that_are_needed_no_more_are_freed_and_no_others():
    """Nodes with several parents, and one that is a child twice."""
    x, y = var("x"), var("y")
    shared = weighted_sum([2, 3], [x, y])
    root = weighted_sum([1, 1, 1], [product([shared, shared]), shared, product([x, shared])])
    tape = make_tape(Circuit(root).order, RATIONALS, Layouts())
    freed = [c for *_, dead in tape for c in dead]
    assert sorted(freed) == list(range(len(tape) - 1))
    assert run_tape(tape, {("x", False): fmpq(2), ("y", False): fmpq(1)}) == 7 * 7 + 7 + 2 * 7


@given(st.lists(st.fractions(), min_size=1, max_size=6))
def test_interpolation(coefficients):
    values = [sum(rational(c) * fmpq(t) ** k for k, c in enumerate(coefficients)) for t in range(len(coefficients))]
    found = interpolated(values)
    assert [fraction(fmpq(found[k])) for k in range(len(coefficients))] == coefficients


@pytest.mark.parametrize("ring", [BALLS, RATIONALS])
def test_numbers_of_rings(ring):
    with precision(64):
        assert ring.lift(0.1) == ring.lift(Fraction(0.1))
        assert ring.lift(7) == 7
        third = ring.lift(Fraction(1, 3)) * 3
        assert third.contains(1) if isinstance(third, arb) else third == 1


def test_precisions():
    assert list(doubled(100, 799)) == [100, 200, 400]
    assert list(doubled(8, 4)) == []
