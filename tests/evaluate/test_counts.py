"""At least one, none, all, parity; moments; models given a size."""

import inspect
import math
from fractions import Fraction

import numpy as np
import pytest
from families import FAMILIES, cases
from how_many import some
from hypothesis import given, settings
from hypothesis import strategies as st

import pgcc
from pgcc.errors import CircuitError, EvidenceError, SemanticsError
from pgcc.queries.moments import moments_of
from pgcc.testing import kernels, random_circuit

TIGHT = 1e-10


def close(found, expected, rtol=TIGHT):
    assert found == pytest.approx(float(expected), rel=rtol, abs=0), (found, float(expected))


def chosen(circuit, i):
    rng = np.random.default_rng(i)
    return [name for name in circuit.variables if rng.random() < 0.7]


@pytest.mark.parametrize("family", FAMILIES)
def test_against_all_sets(family):
    for i, (circuit, table, seen) in enumerate(cases(family, seed=21)):
        model, over = pgcc.compile(circuit), chosen(circuit, i)
        if table.prob(seen) == 0:
            with pytest.raises(SemanticsError, match="probability 0"):
                model.parity(seen, over=over)
            with pytest.raises(SemanticsError, match="probability 0"):
                model.any_of(seen, over=over)
            with pytest.raises(SemanticsError, match="probability 0"):
                model.conditional(dict.fromkeys(over, 0), seen)
            continue

        def chance(event, table=table, seen=seen, over=over):
            return table.expectation(seen, lambda s: int(event(len(s & set(over)))))

        close(model.any_of(seen, over=over), chance(lambda k: k > 0))
        close(model.conditional(dict.fromkeys(over, 0), seen), chance(lambda k: k == 0))
        close(
            model.conditional(dict.fromkeys(over, 1), seen),
            table.expectation(seen, lambda s, over=over: int(s >= set(over))),
        )
        close(model.parity(seen, over=over), chance(lambda k: k % 2))
        for k in {0, len(over) // 2, len(over)}:
            close(model.cardinality(seen, over=over)[k], chance(lambda j, k=k: j == k))
        close(model.expected_count(seen, over=over), table.expectation(seen, lambda s, over=over: len(s & set(over))))


@pytest.mark.parametrize("family", FAMILIES)
def test_moments(family):
    for i, (circuit, table, seen) in enumerate(cases(family, many=10, seed=22)):
        over = chosen(circuit, i)
        if table.prob(seen) == 0:
            continue

        def expected(function, table=table, seen=seen, over=over):
            return table.expectation(seen, lambda s: function(len(s & set(over))))

        found = pgcc.compile(circuit).moments(seen, over=over)
        mean = expected(lambda k: k)
        second, third, fourth = (expected(lambda k, p=p, m=mean: (k - m) ** p) for p in (2, 3, 4))
        close(found.mean, mean)
        assert found.variance == pytest.approx(float(second), rel=1e-9, abs=0)
        if second:
            spread = float(second) ** 0.5
            assert found.skewness == pytest.approx(float(third) / spread**3, rel=1e-8, abs=1e-8)
            assert found.kurtosis == pytest.approx(float(fourth) / spread**4, rel=1e-8)
        else:
            assert math.isnan(found.skewness)
            assert math.isnan(found.kurtosis)


@pytest.mark.parametrize("family", FAMILIES)
def test_given_a_size(family):
    for i, (circuit, table, _) in enumerate(cases(family, many=6, seed=23)):
        over, model = chosen(circuit, i), pgcc.compile(circuit)
        for low, high in {(len(over) // 2, len(over) // 2), (1 if over else 0, len(over)), (0, len(over) // 2)}:
            sets = {s: p for s, p in table.p.items() if low <= len(s & set(over)) <= high}
            size = low if low == high else (low, high)
            total = sum(sets.values())
            if total == 0:
                with pytest.raises(SemanticsError, match="is possible"):
                    model.condition(size=size, over=over)
                continue
            part = model.condition(size=size, over=over)
            for name in circuit.variables:
                close(part.prob({name: 1}), sum(p for s, p in sets.items() if name in s) / total)


def test_tiny_probabilities_keep_their_digits():
    names = [f"z{i}" for i in range(6)]
    model = pgcc.compile(pgcc.product([pgcc.parse(f"1e-20*{z} + 1") for z in names]))
    p = Fraction(1, 10**20) / (1 + Fraction(1, 10**20))
    close(model.any_of(over=names), 1 - (1 - p) ** 6)
    close(model.parity(over=names), (1 - (1 - 2 * p) ** 6) / 2)
    close(model.cardinality(over=names)[2], 15 * p**2 * (1 - p) ** 4)
    moments = model.moments()
    close(moments.mean, 6 * p)
    close(moments.variance, 6 * p * (1 - p))
    assert model.any_of(over=[]) == 0.0
    assert model.parity(over=[]) == 0.0


def test_a_dpp_that_hardly_ever_has_an_item():
    L = 1e-22 * np.array([[2.0, 1.0, 0.5], [1.0, 2.0, 1.0], [0.5, 1.0, 3.0]])
    model = pgcc.compile(pgcc.dpp(L=L))
    close(model.any_of(), 7e-22)
    close(model.parity(), 7e-22)
    close(model.cardinality()[2], 1e-44 * (3 + 5.75 + 5))


def test_a_count_that_hardly_ever_varies():
    """A thousand variables that are in, but for 1e-20."""
    p = Fraction(1, 10**20)
    model = pgcc.compile(pgcc.product([pgcc.parse(f"z{i} + 1e-20") for i in range(1000)]))
    q = p / (1 + p)
    moments = model.moments()
    close(moments.mean, 1000)
    close(moments.variance, 1000 * q * (1 - q))
    close(moments.skewness, -1 / math.sqrt(1000 * float(q)), 1e-8)


def test_tables_of_evidence():
    model = pgcc.compile(random_circuit(3, 5, negative=False))
    rows = np.array([[1, -1, -1, -1, -1], [-1, 1, -1, -1, -1], [-1, -1, -1, -1, -1]])
    names = ["z2", "z3", "z5"]
    np.testing.assert_allclose(model.parity(rows, over=names), [model.parity(r, over=names) for r in rows], rtol=1e-12)
    np.testing.assert_allclose(model.any_of(rows, over=names), [model.any_of(r, over=names) for r in rows], rtol=1e-12)
    np.testing.assert_allclose(
        model.any_of(rows, over=names) + model.conditional(dict.fromkeys(names, 0), rows), 1, rtol=1e-12
    )
    np.testing.assert_allclose(
        np.array(model.moments(rows, over=names)).T, [model.moments(r, over=names) for r in rows], rtol=1e-9
    )
    np.testing.assert_allclose(model.expected_count(rows, over=names), model.moments(rows, over=names).mean, rtol=1e-9)


@settings(max_examples=some(25), deadline=None)
@given(kernels("psd", max_items=5), st.data())
def test_a_k_dpp_is_a_dpp_given_its_size(L, data):
    circuit = pgcc.dpp(L=np.array(L, dtype=object).tolist())
    model = pgcc.compile(circuit)
    pmf = model.cardinality()
    k = data.draw(st.sampled_from(np.flatnonzero(pmf > 0).tolist()))
    given_k, sized = model.condition(size=k), pgcc.compile(circuit.observe(size=k))
    np.testing.assert_allclose(given_k.marginals(), sized.marginals(), rtol=1e-9)
    rows = np.eye(len(L), dtype=int)
    joint = [model.cardinality(row)[k] * model.prob(row) for row in rows if model.prob(row) > 0]
    expected = [given_k.prob(row) * pmf[k] for row in rows if model.prob(row) > 0]
    np.testing.assert_allclose(joint, expected, rtol=1e-9, atol=1e-300)


def test_marginals_given_a_size():
    model = pgcc.compile(pgcc.parse("(a + 1)*(2*b + 1)*(3*c + 1)"))
    np.testing.assert_allclose(model.marginals(size=1), [1 / 6, 2 / 6, 3 / 6])
    np.testing.assert_allclose(model.marginals({"c": 0}, size=1, over=["a", "b"], names=False), [1 / 3, 2 / 3, 0])


def test_what_is_refused():
    model = pgcc.compile(random_circuit(0, 4, negative=False))
    for size in (-1, 5, 1.5, True, "2", (3, 1), (1, 2, 3), (0, True), "all", (0, 9)):
        with pytest.raises(CircuitError):
            model.condition(size=size)
    with pytest.raises(EvidenceError, match="nobody"):
        model.any_of(over=["nobody"])
    with pytest.raises(SemanticsError, match="size 2"):
        pgcc.compile(pgcc.parse("a/2 + b/2")).condition(size=2)


def test_moments_of_a_binomial():
    pmf = np.array([[math.comb(10, k) * 0.3**k * 0.7 ** (10 - k) for k in range(11)]])
    found = moments_of(pmf)
    np.testing.assert_allclose(found.mean, 3)
    np.testing.assert_allclose(found.variance, 2.1)
    np.testing.assert_allclose(found.skewness, 0.4 / math.sqrt(2.1))
    np.testing.assert_allclose(found.kurtosis, 3 + (1 - 6 * 0.21) / 2.1)


# -- evidence comes first ---------------------------------------------------------------------------


@pytest.mark.parametrize("question", ["cardinality", "any_of", "expected_count", "parity", "moments"])
def test_evidence_comes_first(question):
    """`cardinality({"b": 0})` took the evidence for names, and answered another question."""
    model = pgcc.compile(pgcc.parse("0.4*a*b + 0.3*a + 0.3*c"))
    ask = getattr(model, question)
    given = model.condition({"b": 0})
    np.testing.assert_allclose(ask({"b": 0}, over=["a", "c"]), getattr(given, question)(), rtol=1e-9)
    assert next(iter(inspect.signature(ask).parameters)) == "evidence"
    for names in (["a"], "a", "a, b", ("a", "c"), iter("ab"), {"a", "b"}):
        with pytest.raises(EvidenceError, match=r"not evidence|no evidence|looks like"):
            ask(names)
    with pytest.raises(EvidenceError, match="is evidence, but names"):
        ask(over={"b": 0})
