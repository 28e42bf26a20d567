"""What once was wrong with counts and samples."""

import warnings
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
from families import Table

import pgcc
from pgcc.errors import EvidenceError, PgccError, PrecisionError, SemanticsError
from pgcc.ir.circuit import Circuit
from pgcc.ir.node import ONE, product, var, weighted_sum
from pgcc.testing import brute_force


def assert_counts(circuit, evidence):
    """The distribution of the count against the list of all sets."""
    pmf = [Fraction(0)] * (len(circuit.variables) + 1)
    for s, p in Table(circuit.variables, brute_force(circuit)).given(evidence).items():
        pmf[len(s)] += p
    found = pgcc.compile(circuit).cardinality(evidence=evidence)
    np.testing.assert_allclose(found, [float(p / sum(pmf)) for p in pmf], rtol=1e-9, atol=0)


def two_items(a, b):
    return pgcc.dpp(K=[[0.5, 0.25], [0.25, 0.5]], names=[a, b])


@pytest.mark.parametrize("evidence", [{"a": 1}, {"c": 1}, {"a": 1, "d": 0}, {"a": 1, "c": 1}])
def test_evidence_outside_of_a_determinant(evidence):
    """A determinant over some of the variables was counted as impossible if any other was in."""
    both = two_items("a", "b") * two_items("c", "d")
    assert_counts(both, evidence)
    assert_counts(pgcc.mixture([0.25, 0.75], [both, pgcc.parse("(a + 1)*(b + 2)*(c + 3)*(d + 4)/120")]), evidence)


@pytest.mark.parametrize("distance", [1e-7, 1e-12])
def test_determinants_that_cancel(distance):
    """The error of a sum of a positive and a negative determinant was taken for that of their difference."""
    n = 4
    B = np.random.default_rng(0).standard_normal((n, n)).round(3)
    M = np.eye(n + 1)
    M[0, 0] = -(1 - distance)
    moved = B.copy()
    moved[0, 0] -= distance / 10
    parts = []
    for m0, v in ((np.eye(n + 1), B), (M, moved)):
        wide = np.vstack([np.zeros((1, n)), v])
        parts.append(pgcc.determinant(m0, wide, wide, [f"x{i}" for i in range(n)]))
    assert_counts(parts[0] + parts[1], {})


@pytest.mark.parametrize(("L", "size"), [([1.1e-15, 0.9e-15, 0.9e-15], 1), ([1.0, 1.1e-15, 0.9e-15], 2)])
def test_sets_of_a_size_from_a_small_kernel(L, size):
    """As many vectors as items were above the smallest chance that counts: the others were never chosen."""
    model = pgcc.compile(pgcc.dpp(L=np.diag(L)).observe(size=size))
    np.testing.assert_allclose(model.sample(10_000, rng=0).mean(axis=0), model.marginals(), atol=0.02)


def test_no_items_of_a_kernel_that_nearly_always_has_some():
    model = pgcc.compile(pgcc.dpp(L=np.diag([1e20, 1.0, 1e20])).observe(size=0))
    assert not model.sample(5, rng=0).any()


def test_moments_of_what_hardly_ever_happens():
    """Powers of the variance left the range of doubles."""
    moments = pgcc.compile(pgcc.parse("1e-250*a + 1")).moments()
    assert moments == pytest.approx((1e-250, 1e-250, 1e125, 1e250), rel=1e-9, abs=0)


def test_any_of_many_in_parts(monkeypatch):
    """One row for each of many variables is too much at once."""
    n = 50
    leaves = [weighted_sum((1e-9, 1), (var(f"z{i}"), ONE)) for i in range(n)]
    model = pgcc.compile(Circuit(product(leaves), [f"z{i}" for i in range(n)]))
    monkeypatch.setattr("pgcc.queries.distribution._MOST_CODES", 7 * n)
    assert model.any_of() == pytest.approx(-np.expm1(-n * np.log1p(1e-9)), rel=1e-12, abs=0)


def test_walks_that_hardly_ever_leave_two_nodes():
    """Arborescences had no other sampler, and walks took minutes."""
    graph = nx.DiGraph()
    graph.add_weighted_edges_from([(0, 1, 1), (1, 2, 2), (0, 2, 1e-5), (2, 1, 1e5)])
    model = pgcc.compile(pgcc.arborescence(graph, root=0))
    for evidence in ({}, {"0->1": 0}):
        drawn = model.sample(5_000, evidence, rng=0).mean(axis=0)
        np.testing.assert_allclose(drawn, model.marginals(evidence, names=False), atol=0.03)


def test_an_error_that_is_far_larger_than_what_it_is_of():
    model = pgcc.compile(pgcc.parse("(1 + a)*(1 + b)*(1 + c) - 0.9999999999999999999*a*b*c"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert model.parity(evidence={"a": 1, "b": 1, "c": 1}) == 1


def test_more_than_all():
    """Of a polynomial that is no distribution, Pr(none) was 3/2 and came out as 1."""
    model = pgcc.compile(pgcc.parse("a*b - a - b + 3"), normalize=False)
    with pytest.raises(SemanticsError, match="negative coefficients"):
        model.conditional({"a": 0, "b": 0})


def test_what_is_refused():
    model = pgcc.compile(pgcc.parse("(a + 1)*(b + 1)/4"))
    with pytest.raises(EvidenceError, match="3 is not a sequence of names"):
        model.cardinality(over=3)
    with pytest.raises(EvidenceError, match="unknown variable"):
        model.any_of(over=[["a"]])
    with pytest.raises(PrecisionError, match="atol='x'"):
        model.cardinality(atol="x")
    with pytest.raises(PgccError, match="no seed"):
        model.sample(1, rng=np.array([1, 2]))
    np.testing.assert_array_equal(model.sample(9, rng=np.array(3)), model.sample(9, rng=3))


def test_long_counts_are_not_interpreted(monkeypatch):
    """A product of n polynomials takes n²/2 multiplications: of 1,000 variables, in Python, ten seconds."""
    from pgcc.kernels import policy
    from pgcc.queries import cardinality

    works, tier = [], policy.tier
    monkeypatch.setattr(cardinality, "tier", lambda work: works.append(work) or tier(work))
    model = pgcc.compile(pgcc.parse("*".join(f"(x{i} + 1)" for i in range(20))))
    assert model.cardinality()[1] == pytest.approx(20 / 2**20)
    model.cardinality({f"x{i}": 0 for i in range(18)})
    assert works[0] >= 20**2
    assert works[1] < works[0] / 4
