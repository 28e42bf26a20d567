"""Soft evidence in every question, against sums over all sets, each weighed by the likelihoods of its values."""

import math
from fractions import Fraction

import numpy as np
import pytest
from families import FAMILIES, Table, cases
from hypothesis import given, settings
from hypothesis import strategies as st

import pgcc
from pgcc.errors import EvidenceError, PgccError, SemanticsError
from pgcc.testing import brute_force, circuits, random_circuit

TIGHT = 1e-10
LIKELIHOODS = [0.0, 0.25, 0.7, 1.0, 3.0, 1e-300, 1e300]


def close(found, expected):
    expected = np.array([float(x) for x in np.ravel(expected)]).reshape(np.shape(expected))
    np.testing.assert_allclose(found, expected, rtol=TIGHT, atol=0)


def likelihoods(rng, names, from_=LIKELIHOODS):
    """A likelihood of either value for about half of the variables, not both of them 0."""
    soft = {}
    for name in names:
        if rng.random() < 0.5:
            out, inside = rng.choice(from_, 2).tolist()
            soft[name] = {1: inside, 0: out if out or inside else 1.0}
    return soft


def weight(soft, s):
    return math.prod((Fraction(pair.get(int(name in s), 0)) for name, pair in soft.items()), start=Fraction(1))


class Soft(Table):
    """The table of all sets, weighed by likelihoods: not normalised."""

    def __init__(self, table, soft):
        self.variables = table.variables
        self.p = {s: p * weight(soft, s) for s, p in table.p.items()}


def soft_cases(family, seed=0, from_=LIKELIHOODS):
    """(circuit, weighed table, evidence with likelihoods, its hard part), most of them possible."""
    rng = np.random.default_rng(seed)
    for circuit, table, evidence in cases(family, seed=seed):
        hard = {name: value for name, value in evidence.items() if rng.random() < 0.5}
        soft = likelihoods(rng, [name for name in table.variables if name not in hard], from_)
        yield circuit, Soft(table, soft), hard | soft, hard


@pytest.mark.parametrize("family", FAMILIES)
def test_probabilities(family):
    for circuit, table, evidence, hard in soft_cases(family):
        model, expected = pgcc.compile(circuit), table.prob(hard)
        assert model.prob(evidence, exact=True) == expected
        found, bound = model.prob(evidence, bound=True)
        if expected == 0 or 1e-300 < expected < 1e300:
            close(found, expected)
            assert abs(Fraction(found) - expected) <= Fraction(bound) * expected
        if expected:
            log = math.log(expected.numerator) - math.log(expected.denominator)
            assert model.logprob(evidence) == pytest.approx(log, rel=1e-9, abs=1e-12)
        else:
            assert model.logprob(evidence) == -math.inf


@pytest.mark.parametrize("family", FAMILIES)
def test_marginals_and_conditionals(family):
    for circuit, table, evidence, hard in soft_cases(family, seed=1):
        model, names = pgcc.compile(circuit), list(table.variables)
        if table.prob(hard) == 0:
            with pytest.raises(SemanticsError, match="probability 0"):
                model.marginals(evidence)
            continue
        marginals = [table.expectation(hard, lambda s, v=v: int(v in s)) for v in names]
        close(list(model.marginals(evidence).values()), marginals)
        query = {names[0]: 1, names[-1]: 0} if len(names) > 1 else {names[0]: 1}
        agrees = [s for s in table.given(hard) if all((name in s) == bool(v) for name, v in query.items())]
        expected = sum((table.p[s] for s in agrees), Fraction(0)) / table.prob(hard)
        close(model.conditional(query, given=evidence), expected)
        odds = model.log_odds(evidence)
        for name, p in zip(names, marginals, strict=True):
            if 0 < p < 1:
                ratio = p / (1 - p)
                log = math.log(ratio.numerator) - math.log(ratio.denominator)
                assert odds[name] == pytest.approx(log, rel=1e-9, abs=1e-9)
            else:
                assert odds[name] == (math.inf if p else -math.inf)


@pytest.mark.parametrize("family", FAMILIES)
def test_all_other_questions(family):
    for circuit, table, evidence, hard in soft_cases(family, 2, [0.0, 0.25, 0.7, 1.0, 3.0]):
        if table.prob(hard) == 0:
            continue
        model, names = pgcc.compile(circuit), list(table.variables)
        sets = {s: p / table.prob(hard) for s, p in table.given(hard).items()}
        pmf = [sum((p for s, p in sets.items() if len(s) == k), Fraction(0)) for k in range(len(names) + 1)]
        close(model.cardinality(evidence), pmf)
        close(model.expected_count(evidence), sum(k * p for k, p in enumerate(pmf)))
        close(model.parity(evidence), sum(pmf[1::2], Fraction(0)))
        close(model.any_of(evidence), 1 - pmf[0])
        mean = sum(k * p for k, p in enumerate(pmf))
        variance = sum((k - mean) ** 2 * p for k, p in enumerate(pmf))
        assert model.moments(evidence).variance == pytest.approx(float(variance), rel=1e-9, abs=1e-12)
        pairs = [[sum((p for s, p in sets.items() if {a, b} <= s), Fraction(0)) for a in names] for b in names]
        close(model.pairwise(evidence), pairs)
        entropy = -sum(float(p) * math.log(p) for p in sets.values() if p)
        assert model.entropy(evidence) == pytest.approx(entropy, rel=1e-9, abs=1e-12)
        given_soft = model.condition(evidence)
        for s, p in ((s, p) for s, p in sets.items() if p):
            close(given_soft.prob({name: int(name in s) for name in given_soft.variables}), p)
        mode = model.mode(evidence)
        best = max(table.given(hard).values())
        assert mode.logprob == pytest.approx(math.log(best), rel=1e-8, abs=1e-8)
        assert table.p[frozenset(name for name, value in mode.assignment.items() if value)] == pytest.approx(best)
        listed = sorted((p for p in table.given(hard).values() if p), reverse=True)[:3]
        np.testing.assert_allclose(np.exp([one.logprob for one in model.top(3, evidence)]), np.float64(listed), 1e-7)
        k = next(k for k, p in enumerate(pmf) if p)
        if len(names) > 5:  # many terms of a determinant in fractions
            continue
        close(model.prob(evidence, size=k) * model.prob(exact=True, size=k), pmf_of(table, hard, k, circuit))


def pmf_of(table, hard, k, circuit):
    """Pr(evidence | size k)"""
    sizes = {s: c for s, c in brute_force(circuit).items() if len(s) == k}
    return sum((p for s, p in table.given(hard).items() if len(s) == k), Fraction(0)) / (
        sum(sizes.values()) / sum(brute_force(circuit).values())
    )


@settings(deadline=None, max_examples=60)
@given(circuits(max_variables=5, negative=False, floats=True), st.data())
def test_soft_evidence_is_a_mean_of_hard_evidence(circuit, data):
    """Pr of likelihoods (λ0, λ1) is λ0·Pr(out) + λ1·Pr(in), whatever else is known."""
    if brute_force(circuit) and sum(brute_force(circuit).values()) == 0:
        return
    model = pgcc.compile(circuit)
    likelihood = st.floats(1e-300, 1e300)
    soft = {name: {0: data.draw(likelihood), 1: data.draw(likelihood)} for name in circuit.variables[1:]}
    name = circuit.variables[0]
    out, inside = data.draw(likelihood), data.draw(likelihood)
    parts = [model.logprob({name: value} | soft) for value in (0, 1)]
    whole = model.logprob({name: {0: out, 1: inside}} | soft)
    assert whole == pytest.approx(
        np.logaddexp(parts[0] + math.log(out), parts[1] + math.log(inside)), rel=1e-8, abs=1e-8
    )


@pytest.mark.parametrize("family", FAMILIES)
def test_rows_of_a_table_are_answered_as_they_are_alone(family):
    rng = np.random.default_rng(3)
    circuit, table, _ = next(iter(cases(family, seed=3)))
    model = pgcc.compile(circuit)
    rows = [likelihoods(rng, table.variables, [0.25, 0.7, 1.0, 3.0]) for _ in range(4)] + [{}]
    rows.append(rows[-2])
    close(model.prob(rows), [model.prob(row) for row in rows])
    close([list(row.values()) for row in model.marginals(rows)], [list(model.marginals(row).values()) for row in rows])
    close(model.cardinality(rows), [model.cardinality(row) for row in rows])
    moments = model.moments(rows)
    close(moments.mean, [model.moments(row).mean for row in rows])
    assert [mode.assignment for mode in model.mode(rows)] == [model.mode(row).assignment for row in rows]
    close(
        model.conditional({table.variables[0]: 1}, given=rows),
        [row[table.variables[0]] for row in model.marginals(rows)],
    )


def test_samples_follow_the_posterior_and_rows_are_independent():
    model = pgcc.compile(pgcc.parse("(a + 1)*(b + 1)*(0.5*c + 1.5) + a*b*c"))
    evidence = {"a": {0: 1, 1: 3}, "c": {0: 0.2, 1: 0.6}}
    drawn = model.sample(20_000, evidence, rng=0)
    expected = model.condition(evidence)
    for row in np.ndindex(2, 2, 2):
        p = expected.prob(dict(zip("abc", row, strict=True)))
        share = (drawn == row).all(axis=1).mean()
        assert abs(share - p) < 5 * math.sqrt(p * (1 - p) / len(drawn))
    two = model.sample(50, [evidence, {"a": {0: 2, 1: 6}, "c": {0: 0.2, 1: 0.6}}], rng=0)  # the same posterior
    assert (two[0] == drawn[:50]).all()
    assert (two[0] != two[1]).any()


def test_logarithms_near_zero_keep_their_digits():
    circuit = pgcc.parse("1e-9*a*b + 0.5*a + 0.25*b + 0.25")
    table = Soft(Table(circuit.variables, brute_force(circuit)), soft := {"a": {0: 1.0, 1: 1.0 + 2.0**-40}})
    p = table.prob({})
    expected = float((p - 1) - (p - 1) ** 2 / 2)
    assert pgcc.compile(circuit).logprob(soft) == pytest.approx(expected, rel=1e-9)
    assert pgcc.compile(circuit).logprob({"a": {0: 1, 1: 1}}) == 0.0


def test_many_rows_compile_nothing():
    """Rows with likelihoods of their own run in the same program, with other leaves."""
    circuit = random_circuit(np.random.default_rng(0), n=12, negative=False)
    model, rng = pgcc.compile(circuit), np.random.default_rng(1)
    rows = [{name: {0: float(rng.random()), 1: float(rng.random())} for name in circuit.variables} for _ in range(50)]
    model.prob(rows), model.marginals(rows)
    assert "reweighted" not in model._compiled.seconds


@pytest.mark.parametrize("bad", [-0.1, math.nan, math.inf, "much", None, True, Fraction(1, 10**400), 10**400])
def test_bad_likelihoods_are_named(bad):
    model = pgcc.compile(pgcc.parse("0.5*rain + 0.5"))
    with pytest.raises(EvidenceError, match=r"likelihood of variable 'rain' \(row 1\) = 1 is"):
        model.prob([{}, {"rain": {1: bad, 0: 0.3}}])


def test_likelihoods_of_nothing_are_refused():
    model = pgcc.compile(pgcc.parse("0.5*rain + 0.5"))
    for nothing in ({}, {1: 0}, {0: 0.0, 1: 0.0}):
        with pytest.raises(EvidenceError, match="'rain': all likelihoods are 0"):
            model.marginals({"rain": nothing})
    with pytest.raises(EvidenceError, match="'rain'"):
        model.prob({"rain": {2: 0.5}})
    with pytest.raises(EvidenceError, match="not for"):
        model.prob({"rain": {None: 0.5}})


def test_where_soft_evidence_is_not_taken_it_is_refused():
    g = pgcc.parse("0.5*rain + 0.5")
    model, soft = pgcc.compile(g), {"rain": {1: 0.7, 0: 0.3}}
    refusing = [
        lambda: model.conditional(soft, given={}),
        lambda: model.kl(model, soft),
        lambda: model.grad(soft),
        lambda: pgcc.grad(g, soft),
        lambda: g.observe(soft),
        lambda: model.prob(soft, method="direct"),
    ]
    for ask in refusing:
        with pytest.raises(PgccError, match="soft evidence"):
            ask()
    assert model.condition(soft).kl(model) == pytest.approx(0.7 * math.log(1.4) + 0.3 * math.log(0.6))


def test_raw_polynomials():
    """Without normalisation: the value of the polynomial, weighed."""
    model = pgcc.compile(pgcc.parse("2*a - 3*b + 1"), normalize=False)
    soft = {"a": {1: 4.0, 0: 1.0}, "b": {0: 2.0, 1: 0.5}}
    assert model.prob(soft) == 2 * 4 * 2 - 3 * 0.5 * 1 + 1 * 2
    assert model.condition(soft).prob() == model.prob(soft)
    assert model.mode({"a": {1: 4.0, 0: 1.0}, "b": 0}).logprob == pytest.approx(math.log(8.0))
