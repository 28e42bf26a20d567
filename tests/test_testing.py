"""The makers make what they promise."""

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st

import pgcc.testing as testing
from pgcc.errors import CircuitError
from pgcc.ir.circuit import Circuit
from pgcc.ir.interpret import evaluate, probability
from pgcc.ir.node import Op, const, product, var, weighted_sum
from pgcc.ir.verify import verify
from pgcc.testing import brute_force, circuits, evidence, random_circuit, random_det, random_evidence


def is_multiaffine(circuit, rng):
    """Second differences vanish: g(z+1) − 2·g(z) + g(z−1) = 0 in every variable, at a random point."""
    point = {name: Fraction(int(rng.integers(-50, 50)), 7) for name in circuit.variables}
    for name in circuit.variables:
        low, middle, high = (evaluate(circuit, {**point, name: point[name] + d}) for d in (-1, 0, 1))
        if high - 2 * middle + low:
            return False
    return True


def has_shared_inner_node(circuit):
    parents = Counter(c for node in circuit.order for c in node.children)
    return any(count > 1 and node.children for node, count in parents.items())


def has_a_square(circuit):
    products = [node.children for node in circuit.order if node.op is Op.PRODUCT]
    return any(len(set(children)) < len(children) for children in products)


def test_is_multiaffine_can_say_no():
    rng = np.random.default_rng(0)
    assert not is_multiaffine(Circuit(product((var("x"), var("x")))), rng)
    assert is_multiaffine(Circuit(product((var("x"), var("y")))), rng)


@pytest.mark.parametrize("decomposable", [True, False])
@pytest.mark.parametrize("negative", [True, False])
@pytest.mark.parametrize("exact", [True, False])
def test_random_circuit(decomposable, negative, exact):
    rng = np.random.default_rng(1)
    shared = unsmooth = signed = above = 0
    for _ in range(25):
        n = int(rng.integers(1, 7))
        g = verify(random_circuit(rng, n, 12, decomposable=decomposable, negative=negative, exact=exact))
        assert g.variables == tuple(f"z{i}" for i in range(1, n + 1))
        assert g.facts.decomposable == decomposable
        assert is_multiaffine(g, rng)
        assert g.facts.exact == exact
        if decomposable:
            assert g.facts.degree == n
            assert g.facts.monotone or negative
        if not negative and exact:
            coefficients = brute_force(g).values()
            assert min(coefficients) >= 0
            assert sum(coefficients) == 1
        shared += has_shared_inner_node(g)
        unsmooth += not g.facts.smooth
        signed += not g.facts.monotone
        above += g.facts.degree > n
    assert shared > 15
    assert unsmooth > 20
    assert signed > 15 or (not negative and decomposable)
    assert above > 10 or decomposable


def test_size_is_about_the_number_of_operations():
    for size in (10, 100, 1000):
        g = random_circuit(0, 20, size)
        inner = sum(bool(node.children) for node in g.order)
        assert size / 2 <= inner <= 2 * size + 60


def test_the_same_seed_gives_the_same_circuit():
    assert random_circuit(7, 5, 20) == random_circuit(np.random.default_rng(7), 5, 20)
    assert random_circuit(7, 5, 20) != random_circuit(8, 5, 20)
    assert random_det(7, 4) == random_det(7, 4)
    g = random_circuit(7, 5, 20)
    assert random_evidence(3, g) == random_evidence(3, g)


@pytest.mark.parametrize("kind", testing.DET_KINDS)
@pytest.mark.parametrize("decomposable", [True, False])
def test_random_det(kind, decomposable):
    rng = np.random.default_rng(2)
    exact, y = True, False
    for _ in range(6):
        g = verify(random_det(rng, 4, kind, decomposable=decomposable, exact=exact, complements=y, alone=True))
        assert g.root.op is Op.DET
        assert g.facts.decomposable == decomposable
        assert g.facts.exact == exact
        assert is_multiaffine(g, rng)
        m0, u, v = (np.array(m.exact()) for m in g.root.matrices)
        if kind in ("psd", "low rank"):
            assert (m0 == np.identity(len(m0), dtype=int)).all()
        if kind == "psd":
            assert (v == v.T).all()
        if kind == "kernel":
            assert (m0 + v.T == np.identity(len(m0), dtype=int)).all()
        if kind in ("low rank", "singular"):
            assert (u == v).all()
        if kind == "singular":
            assert not m0.any()
        exact, y = not exact, not y


def test_random_det_stands_in_other_circuits_and_has_complements():
    made = [random_det(seed, 4, complements=True) for seed in range(40)]
    assert {g.root.op for g in made} == {Op.DET, Op.SUM}
    dets = [node for g in made for node in g.order if node.op is Op.DET]
    assert any(y.op is not Op.CONST for node in dets for y in node.outside)
    plain = [random_det(seed, 4) for seed in range(20)]
    assert all(y is const(1) for g in plain for node in g.order if node.op is Op.DET for y in node.outside)


def test_random_evidence_is_partial():
    g = random_circuit(0, 12, 5)
    seen = [random_evidence(seed, g) for seed in range(40)]
    counts = Counter(e.get(name) for e in seen for name in g.variables)
    assert counts.keys() == {0, 1, None}
    assert min(counts.values()) > 100


@pytest.mark.parametrize("decomposable", [True, False])
def test_the_strategy_keeps_its_word(decomposable):
    @settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
    @given(circuits(max_variables=4, decomposable=decomposable, dets=True, negative=False))
    def test(g):
        assert g.facts.decomposable == decomposable
        assert len(g.variables) <= 4
        assert is_multiaffine(verify(g), np.random.default_rng(0))
        if decomposable and not g.facts.dets:
            assert g.facts.monotone

    test()


def test_the_strategy_reaches_everything():
    def reaches(strategy, wanted):
        quick = settings(max_examples=3000, database=None, deadline=None, phases=[Phase.generate])
        return wanted(find(strategy, wanted, settings=quick))

    assert reaches(circuits(dets=True), lambda g: g.facts.dets == 1)
    assert reaches(circuits(), lambda g: not g.facts.decomposable)
    assert reaches(circuits(), lambda g: g.facts.decomposable and has_shared_inner_node(g))
    assert reaches(circuits(floats=True), lambda g: not g.facts.exact)
    assert reaches(circuits(multiaffine=False), lambda g: weighted_sum((), ()) in g.order)
    assert reaches(circuits(multiaffine=False), has_a_square)


def test_the_strategy_without_dets_and_floats_has_none():
    @settings(max_examples=40, deadline=None)
    @given(st.one_of(circuits(), circuits(multiaffine=False)))
    def test(g):
        assert g.facts.dets == 0
        assert g.facts.exact

    test()


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_evidence_is_about_the_circuit(data):
    g = data.draw(circuits())
    e = data.draw(evidence(g))
    assert set(e) <= set(g.variables)
    assert set(e.values()) <= {0, 1}


@settings(max_examples=25, deadline=None)
@given(circuits(max_variables=4, dets=True, max_size=5))
def test_brute_force_is_the_probability_of_full_evidence(g):
    for subset, c in brute_force(g).items():
        assert type(c) is Fraction
        assert c == probability(g, {name: int(name in subset) for name in g.variables})


def test_brute_force_of_constants_unused_variables_and_too_many():
    assert brute_force(Circuit(const(3))) == {frozenset(): 3}
    g = Circuit(var("a"), ["a", "b"])
    assert brute_force(g) == {frozenset(): 0, frozenset("a"): 1, frozenset("b"): 0, frozenset("ab"): 0}
    with pytest.raises(CircuitError, match="2\\^17"):
        brute_force(random_circuit(0, 17, 1))
