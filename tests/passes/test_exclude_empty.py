"""The empty set taken away, against all coefficients of the polynomial."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from how_many import some
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import pgcc
from pgcc.errors import CircuitError
from pgcc.learn.common.mixing import mixture_of_trees
from pgcc.passes.total import in_doubles, total
from pgcc.testing import brute_force, circuits
from pgcc.validity.provenance import prove_nonnegative
from pgcc.validity.standing import BY_KERNELS, LESS_A_CONSTANT

NOTHING: frozenset[str] = frozenset()


@settings(max_examples=some(60), deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(st.booleans().flatmap(lambda floats: circuits(4, dets=True, floats=floats, negative=False, max_size=6)))
def test_only_the_constant_changes(circuit):
    joint = brute_force(circuit)
    empty, whole = joint.get(NOTHING, Fraction(0)), sum(joint.values())
    assume(all(x >= 0 for x in joint.values()) and Fraction(1023, 1024) * whole > empty)
    found = brute_force(circuit.exclude_empty())
    if not empty:
        assert found == joint
        return
    others = {s: x / (whole - empty) for s, x in joint.items() if s and x}
    if circuit.facts.exact:
        assert {s: x for s, x in found.items() if x} == others
    else:
        assert all(abs(found[s] - x) <= x / 10**7 for s, x in others.items())
        assert 0 <= found.get(NOTHING, 0) <= empty / (whole - empty) / 2**35


def mixed(components: int, n: int, seed: int = 0) -> tuple[pgcc.Circuit, np.ndarray]:
    rng = np.random.default_rng(seed)
    probs, names = 1 / (1 + np.exp(-rng.normal(-1.5, 1, (components, n, 1)))), [f"x{i}" for i in range(n)]
    return mixture_of_trees(np.full(components, 1 / components), [-1] * n, probs, names), probs[..., 0]


def test_every_question_about_a_mixture():
    circuit, probs = mixed(40, 8)
    model = pgcc.compile(circuit.exclude_empty())
    assert model.standing.certain
    X = np.array(list(itertools.product([0, 1], repeat=8)))
    joint = np.where(X[:, None] == 1, probs, 1 - probs).prod(axis=2).mean(axis=1)
    given_some = np.where(X.any(axis=1), joint, 0.0) / (1 - joint[0])
    np.testing.assert_allclose(model.prob(X)[1:], given_some[1:], rtol=1e-9)
    assert 0 <= model.prob(X[0]) < 1e-10
    np.testing.assert_allclose(model.marginals(), given_some @ X, rtol=1e-9)
    np.testing.assert_allclose(model.cardinality()[1:], np.bincount(X.sum(axis=1), given_some)[1:], rtol=1e-9)
    some_out = (X[:, :5] == 0).all(axis=1)
    assert model.marginals({f"x{i}": 0 for i in range(5)})["x7"] == pytest.approx(
        given_some[some_out] @ X[some_out, 7] / given_some[some_out].sum(), rel=1e-9
    )
    mode = model.mode()
    assert mode.logprob == pytest.approx(np.log(given_some.max()), rel=1e-9)
    assert mode.condition is None
    drawn = model.sample(2000, rng=0)
    assert drawn.any(axis=1).all()
    assert abs(drawn.mean(axis=0) - given_some @ X).max() < 5 * 0.5 / 2000**0.5
    assert pgcc.check(model.circuit).ok


def test_large_circuits_are_proved_while_they_are_compiled():
    circuit, _ = mixed(300, 20)
    less = circuit.exclude_empty()
    assert less.edges == circuit.edges + 1
    assert pgcc.compile(less).standing.certain
    assert pgcc.compile(pgcc.Circuit(less.root, less.variables)).standing.certain
    too_much = circuit - pgcc.compile(circuit).prob([0] * 20) * (1 + 1e-9)
    assert not prove_nonnegative(too_much.simplify()).proved


def test_complete_rows_have_no_error_more_than_without_the_constant():
    circuit, _ = mixed(300, 20)
    model = pgcc.compile(circuit.exclude_empty())
    X = np.eye(20, dtype=np.int8)
    bound = model.prob(X, bound=True)[1]
    assert (bound < 1e-11).all()
    assert "exact" not in model._compiled.seconds


def test_nothing_to_take_away():
    circuit = pgcc.parse("a/2 + b/2")
    assert circuit.exclude_empty() == circuit
    weather = pgcc.pc.categorical("w", {"sun": "1/2", "rain": "1/4", "snow": "1/4"}).to_pgc()
    assert weather.exclude_empty() == weather


@pytest.mark.parametrize("text", ["1", "1/1000*a + 999999/1000", "0.5*a + 1e9"])
def test_nothing_is_left(text):
    with pytest.raises(CircuitError, match="nothing left"):
        pgcc.parse(text).exclude_empty()


@settings(max_examples=some(60), deadline=None)
@given(circuits(max_variables=4, max_size=8, floats=True, negative=False), st.sampled_from([0.0, 1.0]))
def test_values_in_doubles(circuit, z):
    """To 1e-12 of the exact value, or none."""
    found = in_doubles(circuit._flat, z)
    exact = sum(x for s, x in brute_force(circuit).items() if z or not s)
    assert found is None or abs(Fraction(found) - exact) <= exact / 10**12


def test_totals_of_arrays_take_doubles():
    circuit, _ = mixed(300, 20)
    assert total(circuit) == pytest.approx(total(pgcc.Circuit(circuit.root)), rel=1e-12)


@pytest.mark.parametrize(
    "given", [{}, {"x0": 1}, {"x0": 0, "x1": 0}, {f"x{i}": 0 for i in range(7)}, {"x2": {0: 0.3, 1: 0.9}}]
)
def test_samples_are_those_of_what_is_left(given):
    circuit, probs = mixed(30, 8)
    model = pgcc.compile(circuit.exclude_empty())
    X = np.array(list(itertools.product([0, 1], repeat=8)))
    weights = np.where(X[:, None] == 1, probs, 1 - probs).prod(axis=2).mean(axis=1) * X.any(axis=1)
    for name, seen in given.items():
        column = X[:, int(name[1:])]
        weights *= np.where(column == 1, seen[1], seen[0]) if isinstance(seen, dict) else column == seen
    drawn = model.sample(3000, given, rng=0)
    assert drawn.any(axis=1).all()
    assert abs(drawn.mean(axis=0) - weights @ X / weights.sum()).max() < 5 * 0.5 / 3000**0.5
    assert (model.sample(100, given, rng=0, threads=2) == drawn[:100]).all()


def test_determinants():
    """A DPP without the empty set, and without a constant."""
    process = pgcc.dpp(L=[[2.0, 1.0], [1.0, 0.5 + 1]])
    assert pgcc.compile(process.exclude_empty()).standing == LESS_A_CONSTANT
    assert pgcc.compile(process.exclude_empty()).prob("x1=1, x2=1") == pytest.approx(2 / 5.5, rel=1e-9)
    assert pgcc.compile(pgcc.mixture([0.5, 0.5], [process, pgcc.parse("x1")])).standing == BY_KERNELS
    drawn = pgcc.compile(process.exclude_empty()).sample(500, rng=0)
    assert drawn.any(axis=1).all()


def test_conditioning_on_more():
    circuit = mixed(20, 5)[0]
    model = pgcc.compile(circuit.exclude_empty())
    given_out = model.condition({"x0": 0, "x1": 0})
    assert given_out.marginals()["x4"] == pytest.approx(model.marginals({"x0": 0, "x1": 0})["x4"], rel=1e-9)
    assert given_out.sample(100, rng=0).any(axis=1).all()
    once = circuit.exclude_empty()
    again = once.exclude_empty()
    assert pgcc.compile(again).prob([1] * 5) == pytest.approx(pgcc.compile(once).prob([1] * 5), rel=1e-9)
    full = pgcc.compile(circuit.complement().exclude_empty().complement())
    weights = np.array([pgcc.compile(circuit).prob([1] * 5), full.prob([1] * 5)])
    assert weights[1] < 1e-9 * weights[0]
    assert full.prob([0] * 5) == pytest.approx(pgcc.compile(circuit).prob([0] * 5) / (1 - weights[0]), rel=1e-9)
