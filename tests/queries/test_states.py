"""Variables with states in every question, against the table of all assignments, in exact rationals."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from how_many import some
from state_tables import KINDS, StateTable, cases

import pgcc

MANY = some(6)
RTOL = 1e-9
by_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)


def close(found, expected, atol=1e-300):
    expected = float(expected)
    assert found == pytest.approx(expected, rel=3 * RTOL, abs=atol), (found, expected)


def log(q):
    return math.log(q.numerator) - math.log(q.denominator) if q else -math.inf


def by_name(table, number):
    """A number for each plain variable and a dict for every other, from a function of variable and label."""
    return {
        name: number(name, 1) if domain.is_plain else {s: number(name, s) for s in domain.states}
        for name, domain in table.domains.items()
    }


def same(found, expected, atol=1e-300, rel=3 * RTOL):
    assert list(found) == list(expected)
    for name, numbers in expected.items():
        if isinstance(numbers, dict):
            assert [*map(repr, found[name])] == [*map(repr, numbers)]
            assert found[name] == pytest.approx({s: float(x) for s, x in numbers.items()}, rel=rel, abs=atol)
        else:
            assert found[name] == pytest.approx(float(numbers), rel=rel, abs=atol)


@by_kind
def test_probabilities(kind):
    for rng, circuit, table in cases(kind, MANY):
        model, raw = pgcc.compile(circuit), pgcc.compile(circuit, normalize=False)
        assert model.states == {name: domain.states for name, domain in table.domains.items()}
        for event in [table.event(rng, "lsm", d) for d in (0, 0.3, 0.6, 1)]:
            exact = table.prob(event)
            assert model.prob(event, exact=True) == exact
            assert raw.prob(event, exact=True) == exact * table.total
            found, bound = model.prob(event, bound=True)
            if exact == 0 or 1e-300 < exact < 1e300:
                close(found, exact)
                assert abs(Fraction(found) - exact) <= Fraction(bound) * exact
            assert model.logprob(event) == pytest.approx(log(exact), rel=1e-9, abs=1e-12)


@by_kind
def test_conditionals(kind):
    for rng, circuit, table in cases(kind, MANY, seed=1):
        model = pgcc.compile(circuit)
        for given in table.evidences(rng, 4, "lsm"):
            left, query = table.weigh(given), table.event(rng, "ls")
            close(model.conditional(query, given=given), left.prob(query))
            part = model.condition(given)
            for event in StateTable.of(part.circuit).evidences(rng, 2):
                close(part.prob(event), left.prob(event))


@by_kind
def test_marginals_and_log_odds(kind):
    for rng, circuit, table in cases(kind, MANY, seed=2):
        model = pgcc.compile(circuit)
        for given in table.evidences(rng, 4, "lsm"):
            left = table.weigh(given)
            same(model.marginals(given), by_name(table, left.marginal))

            def odds(name, label, left=left):
                p = left.marginal(name, label)
                return math.inf if p == 1 else -math.inf if not p else log(p / (1 - p))

            found = model.log_odds(given)
            expected = by_name(table, odds)
            for name, domain in table.domains.items():
                if len(domain.states) > 1:
                    same({0: found[name]}, {0: expected[name]}, atol=1e-12)


@by_kind
def test_pairs(kind):
    for rng, circuit, table in cases(kind, MANY, seed=3):
        model = pgcc.compile(circuit)
        axis = [(n, s) for n, d in table.domains.items() for s in d.states if not (d.is_plain and s == 0)]
        axis = [(n, s) for n, s in axis if len(table.domains[n].states) > 1]
        for given in table.evidences(rng, 3, "lsm"):
            left = table.weigh(given)
            joint = np.array(
                [
                    [
                        left.weigh({n: {s}}).prob({m: {r}}) * left.prob({n: {s}}) if left.prob({n: {s}}) else 0
                        for m, r in axis
                    ]
                    for n, s in axis
                ],
                float,
            ).reshape(len(axis), len(axis))
            np.testing.assert_allclose(model.pairwise(given), joint, rtol=3 * RTOL, atol=1e-300)
            framed = model.pairwise(given, names=True)
            names = [n if table.domains[n].is_plain else f"{n}={s}" for n, s in axis]
            assert list(framed.columns) == list(framed.index) == names
            p = np.diag(joint)
            np.testing.assert_allclose(model.covariance(given), joint - np.outer(p, p), rtol=1e-7, atol=1e-11)


@by_kind
def test_counts(kind):
    for rng, circuit, table in cases(kind, MANY, seed=4):
        model, over = pgcc.compile(circuit), {}
        for name, domain in table.domains.items():
            shown = [s for s, c in zip(domain.states, domain.columns, strict=True) if c]
            chosen = {s for s in shown if rng.random() < 0.6}
            if chosen and rng.random() < 0.8:
                over[name] = chosen if len(chosen) > 1 or rng.random() < 0.5 else chosen.pop()
        for given in table.evidences(rng, 3, "lsm"):
            left = table.weigh(given)
            counts = left.counts(over)
            found = np.zeros(len(table.domains) + 20)
            pmf = model.cardinality(given, over=over)
            found[: len(pmf)] = pmf
            np.testing.assert_allclose(found[: len(counts)], np.array(counts, float), rtol=3 * RTOL, atol=1e-300)
            assert not found[len(counts) :].any()
            close(model.any_of(given, over=over), 1 - counts[0])
            close(model.parity(given, over=over), sum(counts[1::2]))
            mean = sum(k * p for k, p in enumerate(counts))
            close(model.expected_count(given, over=over), mean)
            close(
                model.moments(given, over=over).variance, sum((k - mean) ** 2 * p for k, p in enumerate(counts)), 1e-12
            )
            size = int(rng.integers(len(counts)))
            if over and counts[size]:
                sized = left.of_size(over, size)
                if not any(isinstance(v, dict) for v in given.values()):
                    same(model.marginals(given, over=over, size=size), by_name(table, sized.marginal))
                    event = table.event(rng, "ls")
                    everything = table.of_size(over, size)
                    close(model.prob(event, over=over, size=size), everything.prob(event))
                    part = model.condition(given, over=over, size=size)
                    known = {n: v for n, v in sized.event(rng, "l").items() if n in part.states}
                    close(
                        part.prob({n: v for n, v in known.items() if v in part.states[n]}),
                        sized.prob({n: v for n, v in known.items() if v in part.states[n]}),
                    )


@by_kind
def test_information(kind):
    for rng, circuit, table in cases(kind, MANY, seed=5):
        model = pgcc.compile(circuit)
        for given in table.evidences(rng, 3, "lsm"):
            left = table.weigh(given)
            p = [w / left.total for w in left.weights.values() if w]
            assert model.entropy(given) == pytest.approx(-sum(float(x) * log(x) for x in p), rel=1e-8, abs=1e-11)
            names = [n for n, d in table.domains.items()]
            if len(names) > 1:
                a, b = names[:1], names[1:]
                joint = {}
                for labels, w in left.weights.items():
                    joint[labels[0], labels[1:]] = joint.get((labels[0], labels[1:]), 0) + w / left.total
                of_a, of_b = {}, {}
                for (x, y), q in joint.items():
                    of_a[x], of_b[y] = of_a.get(x, 0) + q, of_b.get(y, 0) + q
                mutual = sum(float(q) * log(q / of_a[x] / of_b[y]) for (x, y), q in joint.items() if q)
                assert model.mutual_information(a, b, given) == pytest.approx(mutual, rel=1e-7, abs=1e-11)
        tilted = circuit.tilt({c: Fraction(int(rng.integers(1, 9)), 4) for c in circuit.variables})
        other = StateTable.of(tilted)
        ratio = {a: (w / table.total, other.weights[a] / other.total) for a, w in table.weights.items() if w}
        divergence = sum(float(x) * log(x / y) for x, y in ratio.values())
        assert model.kl(pgcc.compile(tilted)) == pytest.approx(divergence, rel=1e-7, abs=1e-10)


@by_kind
def test_modes(kind):
    for rng, circuit, table in cases(kind, MANY, seed=6):
        model = pgcc.compile(circuit)
        for given in table.evidences(rng, 3, "lsm"):
            left = table.weigh(given)
            listed = sorted((w / table.total for w in left.weights.values() if w), reverse=True)
            mode, top = model.mode(given), model.top(4, given)
            assert mode.logprob == pytest.approx(log(listed[0]), rel=1e-8, abs=1e-8)
            assert [one.logprob for one in top] == pytest.approx([*map(log, listed[:4])], rel=1e-8, abs=1e-8)
            seen = set()
            for one in [mode, *top]:
                labels = tuple(one.assignment[name] for name in table.names)
                assert log(left.weights[labels] / table.total) == pytest.approx(one.logprob, rel=1e-8, abs=1e-8)
                seen.add(labels)
            assert len(seen) >= len(top)


@by_kind
def test_the_most_probable_states_of_some_variables(kind):
    for rng, circuit, table in cases(kind, MANY, seed=8):
        model, chosen = pgcc.compile(circuit), [n for n in table.names if rng.random() < 0.6]
        if not chosen:
            continue
        for given in table.evidences(rng, 3, "lsm"):
            parts = {}
            for labels, w in table.weigh(given).weights.items():
                part = tuple(labels[table.names.index(n)] for n in chosen)
                parts[part] = parts.get(part, Fraction(0)) + w / table.total
            found = model.mode(given, over=chosen)
            best = tuple(found.assignment[n] for n in chosen)
            assert found.logprob == pytest.approx(log(max(parts.values())), rel=1e-8, abs=1e-8)
            assert log(parts[best]) == pytest.approx(found.logprob, rel=1e-8, abs=1e-8)


@by_kind
def test_samples(kind):
    for rng, circuit, table in cases(kind, 2, seed=7):
        model = pgcc.compile(circuit)
        for given in table.evidences(rng, 3, "lsm"):
            left, drawn = table.weigh(given), model.sample(2000, given, rng=1)
            assert drawn.dtype == object or drawn.shape[1] == 0
            count = {}
            for row in drawn.tolist():
                count[tuple(row)] = count.get(tuple(row), 0) + 1
            statistic, cells, rare = 0.0, 0, [0, 0.0]
            for labels, w in left.weights.items():
                expected = 2000 * float(w / left.total)
                seen = count.pop(labels, 0)
                assert w or not seen
                if expected < 5:
                    rare = [rare[0] + seen, rare[1] + expected]
                else:
                    statistic, cells = statistic + (seen - expected) ** 2 / expected, cells + 1
            assert not count
            if rare[1] > 0.5:
                statistic, cells = statistic + (rare[0] - rare[1]) ** 2 / rare[1], cells + 1
            assert statistic < cells + 6 * math.sqrt(2 * max(cells, 1)) + 8


def test_logarithms_near_zero_know_that_one_state_is_in():
    """Odds of nearly even states, and logarithms near 0, are computed from exact values of columns: they were not."""
    even = pgcc.pc.categorical("w", {"a": "0.5", "b": Fraction(1, 2) - Fraction(1, 10**12), "c": Fraction(1, 10**12)})
    model = pgcc.compile((even * pgcc.pc.bernoulli("x", "0.3")).to_pgc())
    assert model.log_odds()["w"]["a"] == 0.0
    assert model.log_odds({"x": 1})["w"]["b"] == pytest.approx(-4e-12, rel=1e-9)
    assert model.logprob({"w": {"a", "b"}}) == pytest.approx(-1e-12, rel=1e-9)
    assert model.logprob({"w": {"a": 1, "b": 1, "c": 0.5}}) == pytest.approx(-0.5e-12, rel=1e-9)
    codes = np.array([[0, 1]])
    assert model.logprob(codes)[0] == pytest.approx(math.log(0.15))
