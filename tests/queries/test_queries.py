"""Every question of a model against all 2ⁿ probabilities, for every family of circuits."""

import math
from fractions import Fraction

import numpy as np
import pytest
from families import FAMILIES, cases
from how_many import some
from hypothesis import given, settings
from hypothesis import strategies as st

import pgcc
from pgcc.errors import EvidenceError, PgccError, SemanticsError
from pgcc.testing import circuits

TIGHT = 1e-10


def close(found, expected):
    """Relative accuracy, and zeros that are zeros."""
    expected = np.array([float(x) for x in np.ravel(expected)]).reshape(np.shape(expected))
    np.testing.assert_allclose(found, expected, rtol=TIGHT, atol=0)


def indicator(*names):
    return lambda s: int(all(name in s for name in names))


@pytest.mark.parametrize("family", FAMILIES)
def test_marginals(family):
    for circuit, table, evidence in cases(family):
        model = pgcc.compile(circuit)
        if table.prob(evidence) == 0:
            with pytest.raises(SemanticsError, match="probability 0"):
                model.marginals(evidence, names=False)
            continue
        close(
            model.marginals(evidence, names=False), [table.expectation(evidence, indicator(v)) for v in table.variables]
        )


@pytest.mark.parametrize("family", FAMILIES)
def test_conditional_and_condition(family):
    for circuit, table, evidence in cases(family, seed=1):
        model, names = pgcc.compile(circuit), list(evidence)
        query = {name: evidence[name] for name in names[::2]}
        known = {name: evidence[name] for name in names[1::2]}
        if table.prob(known) == 0:
            with pytest.raises(SemanticsError, match="probability 0"):
                model.conditional(query, given=known)
            with pytest.raises(SemanticsError, match="probability 0"):
                model.condition(known)
            continue
        expected = table.prob(query | known) / table.prob(known)
        close(model.conditional(query, given=known), expected)
        close(model.condition(known).prob(query), expected)


@pytest.mark.parametrize("family", FAMILIES)
def test_pairwise(family):
    for circuit, table, evidence in cases(family, seed=2):
        if table.prob(evidence) == 0:
            continue
        joint = [[table.expectation(evidence, indicator(a, b)) for b in table.variables] for a in table.variables]
        model = pgcc.compile(circuit)
        close(model.pairwise(evidence), joint)
        single = [joint[i][i] for i in range(len(joint))]
        apart = [[p * q for p in single] for q in single]
        expected = np.array(joint, dtype=object) - np.array(apart, dtype=object) if joint else np.zeros((0, 0))
        np.testing.assert_allclose(model.covariance(evidence), expected.astype(float), atol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_mode(family):
    for circuit, table, evidence in cases(family, seed=3):
        if table.prob(evidence) == 0:
            continue
        found = pgcc.compile(circuit).mode(evidence)
        assert found.exact
        assert evidence.items() <= found.assignment.items()
        inside = frozenset(name for name, value in found.assignment.items() if value)
        assert float(table.p[inside]) == pytest.approx(float(max(table.given(evidence).values())), rel=1e-7)
        assert found.logprob == pytest.approx(math.log(table.p[inside]), abs=1e-9)


@pytest.mark.parametrize("family", FAMILIES)
def test_entropy_and_log_odds(family):
    for circuit, table, evidence in cases(family, seed=4):
        if table.prob(evidence) == 0:
            continue
        model, whole = pgcc.compile(circuit), table.prob(evidence)
        parts = [float(p / whole) for p in table.given(evidence).values() if p > 0]
        assert model.entropy(evidence) == pytest.approx(-sum(p * math.log(p) for p in parts), rel=1e-10, abs=1e-12)
        odds = model.log_odds(evidence, names=False)
        for i, name in enumerate(table.variables):
            p = table.expectation(evidence, indicator(name))
            expected = math.inf if p == 1 else -math.inf if p == 0 else math.log(p / (1 - p))
            assert odds[i] == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("family", FAMILIES)
def test_mutual_information_and_divergence(family):
    for circuit, table, evidence in cases(family, seed=5, many=10):
        if table.prob(evidence) == 0:
            continue
        model, free = pgcc.compile(circuit), [v for v in table.variables if v not in evidence]
        if len(free) >= 2:
            a, b = free[:2]
            expected = 0.0
            for x in (0, 1):
                for y in (0, 1):
                    p, q, r = (
                        table.prob(evidence | seen) / table.prob(evidence) for seen in ({a: x, b: y}, {a: x}, {b: y})
                    )
                    expected += float(p) * math.log(p / (q * r)) if p else 0.0
            assert model.mutual_information(a, b, evidence) == pytest.approx(expected, rel=1e-9, abs=1e-14)
        uniform = pgcc.compile(uniform_over(table.variables))
        if table.variables:
            expected = len(free) * math.log(2) - model.entropy(evidence)
            assert model.kl(uniform, evidence) == pytest.approx(expected, rel=1e-9, abs=1e-12)
            assert model.kl(model, evidence) == pytest.approx(0.0, abs=1e-15)


def uniform_over(names):
    a, *rest = pgcc.variables(list(names))
    whole = (a + 1) / 2
    for other in rest:
        whole = whole * ((other + 1) / 2)
    return whole


@settings(max_examples=some(60), deadline=None)
@given(circuits(max_variables=5, negative=False), st.data())
def test_marginals_average_over_conditioning(circuit, data):
    """Pr(i) = Pr(i | j)·Pr(j) + Pr(i | not j)·Pr(not j), in one batch of evidence."""
    model = pgcc.compile(circuit)
    if not model.variables:
        return
    j = data.draw(st.integers(0, len(model.variables) - 1))
    p = model.marginals()[j]
    total = np.zeros(len(model.variables))
    for value, share in ((1, p), (0, 1 - p)):
        if model.prob({model.variables[j]: value}) > 0:
            total += share * model.marginals({model.variables[j]: value}, names=False)
    np.testing.assert_allclose(total, model.marginals(), rtol=1e-9, atol=1e-12)


def test_covariance_of_a_dpp():
    """−K_ij² for a symmetric kernel."""
    rng = np.random.default_rng(0)
    B = rng.standard_normal((12, 12))
    K = np.linalg.solve(np.eye(12) + B @ B.T, B @ B.T)
    found = pgcc.compile(pgcc.dpp(L=B @ B.T)).covariance()
    off = ~np.eye(12, dtype=bool)
    np.testing.assert_allclose(found[off], -(K**2)[off], atol=1e-14)


@pytest.mark.slow
def test_tables_of_evidence_give_what_single_ones_do():
    for family in FAMILIES:
        for circuit, table, _ in cases(family, many=3, seed=6):
            model = pgcc.compile(circuit)
            rows = [{v: x} for v in table.variables for x in (0, 1) if table.prob({v: x}) > 0]
            if not rows:
                continue
            for ask in (model.marginals, model.pairwise, model.log_odds):
                np.testing.assert_allclose(ask(rows, names=False), [ask(row, names=False) for row in rows], rtol=1e-12)
            np.testing.assert_allclose(
                model.marginals(rows, names=False, threads=2), model.marginals(rows, names=False), rtol=0
            )
            assert [m.logprob for m in model.mode(rows)] == [model.mode(row).logprob for row in rows]
            assert model.entropy(rows) == [model.entropy(row) for row in rows]


@pytest.mark.slow
def test_marginals_far_below_the_range_of_floats():
    """A chain whose evidence has probability 1e-2500, and one variable's posterior of 1e-400."""
    n = 5000
    chain = pgcc.builders.hmm([0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], [0.1, 0.7], length=n)
    model = pgcc.compile(chain)
    rows = np.ones(n, int)
    rows[[7, 4000]] = -1
    assert model.logprob(rows) < -2000
    found = model.marginals(rows)
    for at in (7, 4000):
        alone = rows.copy()
        alone[at] = 1
        assert found[at] == pytest.approx(math.exp(model.logprob(alone) - model.logprob(rows)), rel=1e-9)
    tiny = pgcc.compile(pgcc.parse("1e-200*a*b + 1e-250*a + b + 1"))
    np.testing.assert_allclose(tiny.marginals({"b": 1}, names=False), [1e-200, 1.0], rtol=1e-12)
    np.testing.assert_allclose(tiny.log_odds({"b": 0}, names=False)[0], -250 * math.log(10), rtol=1e-12)


def test_marginals_of_signed_circuits_that_cancel():
    model = pgcc.compile(pgcc.parse("(z + 1000000)**2 - z**2 - 1999999*z - 999999999999"))
    assert model.marginals()[0] == 0.5
    nearly = pgcc.compile(pgcc.parse("(a + 1e12)*(b + 1e12) - 1e12*a - 1e12*b - 999999999999999999999999"))  # ab + 1
    np.testing.assert_allclose(nearly.marginals({"b": 1}, names=False), [1.0, 1.0], rtol=1e-12)
    np.testing.assert_allclose(nearly.marginals({"b": 0}, names=False), [0.0, 0.0], atol=0)


def test_a_polynomial_that_is_no_distribution():
    model = pgcc.compile(pgcc.parse("2*a - 1"), validate=False)
    with pytest.raises(SemanticsError, match="negative"):
        model.marginals()
    with pytest.raises(SemanticsError, match="negative"):
        pgcc.compile(pgcc.parse("(3*a - 1)*(b + c - b*c)/2"), validate=False).marginals()


def test_bad_questions():
    model = pgcc.compile(pgcc.parse("0.4*a*b + 0.3*a + 0.3"))
    with pytest.raises(EvidenceError, match="unknown variable 'c'"):
        model.marginals({"c": 1}, names=False)
    with pytest.raises(EvidenceError, match="3 queries do not fit 2"):
        model.conditional(np.ones((3, 2), int), given=np.ones((2, 2), int))
    with pytest.raises(EvidenceError, match="one piece"):
        model.condition(np.ones((2, 2), int))
    with pytest.raises(PgccError, match="different variables"):
        model.kl(pgcc.compile(pgcc.parse("0.5*z + 0.5")))
    with pytest.raises(PgccError, match="not with str"):
        model.kl("z")
    with pytest.raises(EvidenceError, match="different"):
        model.mutual_information("a", "a")
    with pytest.raises(EvidenceError, match="unknown variable 'q'"):
        model.mutual_information("a", "q")
    with pytest.raises(PgccError, match="at least 2"):
        pgcc.compile(pgcc.builders.hmm([1], [[1]], [0.5], length=20)).entropy(samples=1)
    assert model.conditional({"a": 1, "b": 0}, given={"b": 1}) == 0.0
    np.testing.assert_allclose(model.conditional({"a": 1}, given=[[-1, 0], [-1, 1]]), [0.5, 1.0])


DETERMINISTIC = [
    "3*a*b + 2*a + 4*b + 1/2",
    "(0.3*a + 0.7)*(0.1*b*c + 0.9)",
    "0.3*a + 0.7*(0.5*b + 0.5)*~a",
    "5*(1/10*weather=sun*a + 2/10*weather=rain + 7/10*weather=snow*~a)*(1e-200*b + 3)",
    "1e-320*a*b + 1e-310*c",
]


@pytest.mark.parametrize("text", DETERMINISTIC)
def test_entropies_of_deterministic_circuits(text, monkeypatch):
    """By one reverse pass, the same as by listing all assignments."""
    declared = "weather in {sun, rain, snow}\n" if "weather" in text else ""
    model = pgcc.compile(pgcc.parse(declared + text))
    some = [{}, {"a": 1}, {"b": 0}, {"b": {0: 0.2, 1: 0.7}}]
    listed = [model.entropy(evidence) for evidence in some]
    monkeypatch.setattr("pgcc.queries.information.MOST_LISTED", 0)
    for evidence, expected in zip(some, listed, strict=True):
        found = model.entropy(evidence)
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-12 if found.exact else 5 * found.standard_error)
        assert found.exact or expected < 1e-6


def test_estimates_are_within_their_standard_errors():
    """40 independent variables: the entropy is known. It is estimated if they are written in two ways, mixed."""
    p = [Fraction(x).limit_denominator(1000) for x in np.linspace(0.05, 0.95, 40)]
    factors = [pgcc.parse(f"{x}*v{i} + {1 - x}") for i, x in enumerate(p)]
    (a, b), (c, d) = ((x, 1 - x) for x in p[:2])
    pair = pgcc.parse(f"{a * c}*v0*v1 + {a * d}*v0 + {b * c}*v1 + {b * d}")
    circuit = pgcc.mixture(["1/2", "1/2"], [pgcc.product(factors), pgcc.product([pair, *factors[2:]])])
    model = pgcc.compile(circuit)
    found = model.entropy(rng=0)
    q = model.marginals()
    expected = float(-(q * np.log(q) + (1 - q) * np.log1p(-q)).sum())
    assert not found.exact
    assert abs(found - expected) < 5 * found.standard_error < 0.5
    deterministic = pgcc.compile(pgcc.product(factors)).entropy()
    assert deterministic.exact
    assert deterministic == pytest.approx(expected, rel=1e-9)
    other = pgcc.compile(pgcc.product([pgcc.parse(f"(v{i} + 1)/2") for i in range(40)]))
    divergence = model.kl(other, rng=1)
    assert abs(divergence - (40 * math.log(2) - expected)) < 5 * divergence.standard_error
    assert "±" in repr(divergence)
    assert math.isinf(other.kl(pgcc.compile(pgcc.product([pgcc.parse(f"v{i}") for i in range(40)]))))


def test_mode_of_many_variables_states_its_gap():
    rng = np.random.default_rng(0)
    B = rng.standard_normal((60, 60)) / 4
    model = pgcc.compile(pgcc.dpp(L=B @ B.T))
    found = model.mode(time_limit=0.3)
    assert not found.exact
    assert found.gap > 0
    assert found.logprob == pytest.approx(model.logprob(found.assignment), abs=1e-9)
    assert "within" in repr(found)
    # no single change is better
    row = np.array(list(found.assignment.values()))
    flips = np.repeat(row[None], 60, axis=0)
    flips[np.arange(60), np.arange(60)] ^= 1
    assert model.logprob(flips).max() <= found.logprob + 1e-7
