"""Conditioning and marginalizing, against the interpreter of the original circuit."""

import math
from fractions import Fraction
from itertools import product as cartesian

import numpy as np
import pytest
from how_many import some
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from well_formed import verify

from pgcc.collector import collector_paused
from pgcc.errors import EvidenceError
from pgcc.exact.bounded import interpolation_weights
from pgcc.ir.circuit import Circuit, variables
from pgcc.ir.interpret import evaluate, probability
from pgcc.ir.node import ONE, ZERO, Op, const, det, product, var, weighted_sum
from pgcc.passes.condition import condition, marginalize
from pgcc.testing import brute_force, circuits, evidence, polarize, random_circuit, random_det, random_evidence

thorough = settings(max_examples=some(150), deadline=None, suppress_health_check=[HealthCheck.too_slow])


def assert_conditioned(circuit, seen, further):
    """Pr(e') by the new circuit = Pr(e, e') by the old one."""
    conditioned = verify(condition(circuit, seen))
    assert conditioned.variables == tuple(v for v in circuit.variables if v not in seen)
    assert probability(conditioned, further) == probability(circuit, {**seen, **further})
    return conditioned


@pytest.mark.slow
@thorough
@given(circuits(max_variables=5, dets=True, max_size=8), st.data())
def test_conditioning_is_exact(circuit, data):
    seen = data.draw(evidence(circuit), label="seen")
    further = {k: v for k, v in data.draw(evidence(circuit), label="further").items() if k not in seen}
    assert_conditioned(circuit, seen, further)


@pytest.mark.parametrize("decomposable", [True, False])
@pytest.mark.parametrize("exact", [True, False])
def test_every_query_of_random_circuits(decomposable, exact):
    for seed in range(6):
        circuit = random_circuit(seed, 3, 8, decomposable=decomposable, exact=exact)
        every_query(circuit)


@pytest.mark.parametrize("decomposable", [True, False])
@pytest.mark.parametrize("complements", [True, False])
def test_every_query_of_determinants(decomposable, complements):
    for seed in range(6):
        every_query(random_det(seed, 3, decomposable=decomposable, complements=complements, exact=seed % 2 > 0))


def every_query(circuit):
    joint = brute_force(circuit)
    for values in cartesian([None, 0, 1], repeat=len(circuit.variables)):
        seen = {name: v for name, v in zip(circuit.variables, values, strict=True) if v is not None}
        after = brute_force(condition(circuit, seen))
        ins = frozenset(name for name, v in seen.items() if v)
        assert after == {rest: joint[rest | ins] for rest in after}
        assert len(after) == 2 ** (len(circuit.variables) - len(seen))


def test_determinants_where_lower_coefficients_are_needed():
    """d·(g + 1) − d·g = d, and d² − d² + d: the determinant meets variables of its own outside."""
    rng = np.random.default_rng(0)
    for seed in range(10):
        d = random_det(seed, 3, decomposable=seed % 2 > 0, alone=True)
        g = random_circuit(seed, 3, 4)
        for h in (d * (g + 1) - d * g, (d + g) ** 2 - d * d - 2 * (d * g) - g * g + d):
            seen = random_evidence(rng, h)
            further = {k: v for k, v in random_evidence(rng, h).items() if k not in seen}
            assert_conditioned(h, seen, further)


def test_a_sum_drops_children_of_lower_degree():
    x, y = variables("x y")
    g = Fraction(1, 2) * x * y + Fraction(1, 3) * x + Fraction(1, 6)
    assert condition(g, {"x": 1, "y": 1}).root is const(Fraction(1, 2))
    assert brute_force(condition(g, {"x": 1})) == {frozenset(): Fraction(1, 3), frozenset("y"): Fraction(1, 2)}
    assert condition(g, {"x": 0, "y": 1}).root is ZERO


def test_a_child_of_a_determinant_that_is_in_has_complement_zero():
    x, y = var("x"), var("y")
    L = [[2, 1], [1, 3]]
    d = Circuit(det([[1, 0], [0, 1]], [[1, 0], [0, 1]], L, [x, y]))
    root = condition(d, {"x": 1}).root
    assert root.op is Op.DET
    assert root.inside == (ONE, y)
    assert root.outside == (ZERO, ONE)
    assert probability(condition(d, {"x": 1}), {"y": 1}) == 5


def test_squares_that_cancel():
    z, w = variables("z w")
    g = (z + w) ** 2 - z**2 - w**2 + w  # 2zw + w
    assert brute_force(condition(g, {"z": 1})) == {frozenset(): 0, frozenset("w"): 2}
    assert brute_force(condition(g, {"z": 0})) == {frozenset(): 0, frozenset("w"): 1}
    assert condition(g, {"z": 1, "w": 1}).root is const(2)


def test_a_factor_that_is_not_multiaffine_next_to_one_that_is_zero():
    """(z² + z)·(x − x') with x' = x written otherwise: knowing the product tells nothing about z² + z."""
    z, x = variables("z x")
    nothing = x * (x + 1) - x * x - x
    square = z * z + z
    g = square * nothing + square - z * z
    assert condition(g, {"z": 1}).simplify() is not None
    assert_conditioned(g, {"z": 1}, {})
    assert probability(condition(g, {"z": 1}), {"x": 0}) == 1


def test_impossible_evidence_is_zero_over_the_rest():
    x, y, z = variables("x y z")
    g = Circuit((x + y).root, ["x", "y", "never"])
    for seen in ({"never": 1}, {"x": 1, "y": 1}, {"x": 0, "y": 0}):
        conditioned = condition(g, seen)
        assert conditioned.root is ZERO
        assert conditioned.variables == tuple(v for v in g.variables if v not in seen)
    assert condition(g, {"never": 0}).variables == ("x", "y")
    del z


def test_no_evidence_is_the_simplified_circuit():
    g = random_circuit(0, 4)
    assert condition(g, {}) == g.simplify()
    assert g.observe(dict.fromkeys(g.variables, -1)) == g.simplify()


def test_all_evidence_leaves_a_number():
    g = random_circuit(3, 4, 10, decomposable=False)
    for subset, c in brute_force(g).items():
        conditioned = condition(g, {name: int(name in subset) for name in g.variables})
        assert conditioned.variables == ()
        assert evaluate(conditioned, {}) == c


def test_conditioning_in_two_steps():
    for seed in range(10):
        g = random_circuit(seed, 5, 10, decomposable=seed % 2 > 0)
        at_once = condition(g, {"z1": 1, "z2": 0, "z4": 1})
        by_steps = condition(condition(condition(g, {"z4": 1}), {"z2": 0}), {"z1": 1})
        assert brute_force(at_once) == brute_force(by_steps)


def test_methods_of_the_circuit():
    g = random_circuit(0, 3)
    assert g.observe({"z1": 1}) == condition(g, {"z1": 1})
    assert g.marginalize(["z1"]) == marginalize(g, ["z1"])


# -- evidence ------------------------------------------------------------------------------------------------


def test_what_counts_as_evidence():
    g = Circuit(product([var(name) for name in "abcdefgh"]))
    given = {"a": True, "b": 0.0, "c": np.int64(1), "d": np.bool_(False), "e": None, "f": -1, "g": math.nan}
    assert g.observe({**given, "h": np.float32("nan")}) == condition(g, {"a": 1, "b": 0, "c": 1, "d": 0})


@pytest.mark.parametrize("value", [2, 0.5, "1", -2, [1], 1j, math.inf, np.array([0, 1])])
def test_bad_values_name_the_variable(value):
    with pytest.raises(EvidenceError, match="'rain'"):
        variables("rain")[0].observe({"rain": value})


@pytest.mark.parametrize("run", [lambda g: g.observe({"snow": 1}), lambda g: marginalize(g, ["rain", "snow"])])
def test_unknown_names_are_named(run):
    with pytest.raises(EvidenceError, match="'snow'"):
        run(variables("rain")[0])


# -- marginalizing -------------------------------------------------------------------------------------------


@pytest.mark.slow
@thorough
@given(circuits(max_variables=5, dets=True, max_size=8), st.data())
def test_marginalising_is_exact(circuit, data):
    names = data.draw(st.sets(st.sampled_from(circuit.variables)), label="names")
    further = {k: v for k, v in data.draw(evidence(circuit), label="further").items() if k not in names}
    marginal = verify(marginalize(circuit, names))
    assert marginal.variables == tuple(v for v in circuit.variables if v not in names)
    assert probability(marginal, further) == probability(circuit, further)


def test_marginalising_all_leaves_the_total():
    g = random_circuit(1, 5, negative=False)
    assert marginalize(g, g.variables).root is ONE
    assert marginalize(g, iter(g.variables)).variables == ()


def test_one_name_may_stand_alone():
    rain, sun = variables("rain sun")
    assert marginalize(rain * sun, "rain").root is sun.root


# -- size, counted -------------------------------------------------------------------------------------------


def test_a_decomposable_circuit_does_not_grow():
    for seed in range(20):
        g = random_circuit(seed, 12, 40)
        assert condition(g, random_evidence(seed, g)).edges <= g.edges


def polarized(n):
    """Π (p_i z_i + 1 − p_i) as a balanced tree of ((x + y)² − (x − y)²)/4"""
    level = [weighted_sum((Fraction(1, i + 2), Fraction(i + 1, i + 2)), (var(f"z{i}"), ONE)) for i in range(n)]
    while len(level) > 1:
        level = [polarize(level[i], level[i + 1]) for i in range(0, len(level), 2)]
    return Circuit(level[0])


def test_growth_is_polynomial():
    """With |A| observed variables at most |A| + 1 coefficients per node, each a convolution: not 2^|A|."""
    sizes = {}
    for n in (4, 8, 16, 32):
        g = polarized(n)
        conditioned = condition(g, {f"z{i}": 1 for i in range(0, n, 2)})
        sizes[n] = conditioned.edges
        if n == 8:
            further = {"z1": 1, "z3": 0}
            assert probability(conditioned, further) == probability(
                g, {**further, **dict.fromkeys(["z0", "z2", "z4", "z6"], 1)}
            )
    assert sizes[32] <= 5 * sizes[16]
    assert sizes[16] <= 5 * sizes[8]
    assert sizes[32] < 10_000


def test_deep_circuits_do_not_recurse():
    with collector_paused():
        node = var("a")
        for i in range(20_000):
            node = weighted_sum((1, 1), (product((node, var(f"z{i}"))), ONE))
        g = Circuit(node)
        assert condition(g, {"a": 1}).root is product([var(f"z{i}") for i in range(20_000)])
        square = product((var("a"), var("a")))
        node = square
        for _ in range(10_000):
            node = weighted_sum((1, 1), (node, var("b")))
        g = Circuit(weighted_sum((1, -1, 1), (node, square, var("a"))))
    assert brute_force(condition(g, {"a": 1})) == {frozenset(): 1, frozenset("b"): 0}
    assert brute_force(condition(g, {"a": 0})) == {frozenset(): 0, frozenset("b"): 10_000}


@given(st.integers(1, 7), st.data())
def test_interpolation_weights(m, data):
    points = range(-(m // 2), m - m // 2 + 1)
    coefficients = data.draw(st.lists(st.fractions(-5, 5, max_denominator=9), min_size=m + 1, max_size=m + 1))
    values = [sum(c * Fraction(p) ** k for k, c in enumerate(coefficients)) for p in points]
    for k, c in enumerate(coefficients):
        assert sum(w * v for w, v in zip(interpolation_weights(points, k), values, strict=True)) == c
