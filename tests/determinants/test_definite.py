"""Inverses and determinants by products of slices, against flint at hundreds of bits."""

from fractions import Fraction

import numpy as np
import pytest
from flint import arb, arb_mat, ctx
from how_many import some
from hypothesis import given, settings
from hypothesis import strategies as st

import pgcc
from pgcc.determinants import forms
from pgcc.determinants.bases import base_by_inverse, find_base
from pgcc.determinants.kernels.exact_sums import add_exactly
from pgcc.determinants.large_definite import IdentityPlus
from pgcc.determinants.slices import Sum, cut
from pgcc.ir.matrix import Matrix
from pgcc.program.det_structure import DetStructure


def kernel(n: int, rank: int, spread: float, seed: int) -> np.ndarray:
    """A positive semidefinite matrix whose items are of unequal weight."""
    rng = np.random.default_rng(seed)
    B = rng.normal(size=(n, rank)) * np.exp(spread * rng.normal(size=n))[:, None]
    L = B @ B.T
    return (L + L.T) / 2


CASES = {
    "plain": kernel(40, 80, 0.0, 1),
    "low rank": kernel(40, 5, 0.0, 2),
    "unequal": kernel(40, 40, 4.0, 3),
    "huge": kernel(12, 24, 0.0, 4) * 1e30,
    "tiny": kernel(12, 24, 0.0, 5) * 1e-30,
    "near duplicates": np.ones((9, 9)) + 1e-13 * kernel(9, 9, 0.0, 6),
    "one of its own size": np.array([[1e250, 1.0], [1.0, 1.0]]),
    "zero": np.zeros((3, 3)),
    "one item": np.array([[0.7]]),
}


@pytest.mark.parametrize("name", CASES)
def test_against_flint(name):
    A, n = CASES[name], len(CASES[name])
    whole = IdentityPlus(A)
    mantissa, exponent, off = whole.determinant()
    inverse = whole.inverse(2.0**-125)
    assert off < 1e-12
    assert inverse.error < 2.0**-100
    with ctx.workprec(700):
        N = arb_mat(n, n, [arb(x) for x in A.ravel().tolist()]) + arb_mat(n, n, 1)
        ratio = arb(mantissa) * arb(2) ** exponent / N.det()
        assert abs(ratio - 1) <= off
        X = N.inv()
        for i in range(n):
            assert abs(inverse.diagonal[i] - X[i, i]) <= inverse.error
            for j in range(n):
                distance = abs(arb(inverse.high[i, j]) + arb(inverse.low[i, j]) - X[i, j])
                assert distance <= arb(inverse.error) + abs(X[i, j]) * arb(2) ** -102


@pytest.mark.parametrize(
    "A",
    [
        np.array([[0.0, 3.0], [3.0, 0.0]]),  # indefinite
        np.array([[-1.0, 0.0], [0.0, 1.0]]),  # singular
        np.array([[np.inf, 0.0], [0.0, 1.0]]),
        np.array([[0.0, 1.0 - 1e-16], [1.0 - 1e-16, 0.0]]),  # nearly singular
    ],
)
def test_what_is_not_certainly_definite(A):
    whole = IdentityPlus(A)
    assert whole.determinant() is None
    assert whole.inverse(1e-30) is None
    assert whole.diagonal() is None


@settings(max_examples=some(30), deadline=None)
@given(st.integers(1, 60), st.integers(0, 10**6))
def test_products_of_slices_are_exact(n, seed):
    rng = np.random.default_rng(seed)
    left, right = (rng.normal(size=(n, n)) * 10.0 ** rng.integers(-9, 9, (n, n)) for _ in range(2))
    rows, columns = list(cut(left, 1, 3)), list(cut(right, 0, 3))
    np.testing.assert_array_equal(sum(part for part, _ in rows) + rows[-1][1], left)
    i, j = rng.integers(0, n, 2)
    for (a, _), (b, _) in zip(rows, columns, strict=True):
        exactly = sum(Fraction(x) * Fraction(y) for x, y in zip(a[i].tolist(), b[:, j].tolist(), strict=True))
        assert Fraction(float((a @ b)[i, j])) == exactly


@settings(max_examples=some(50), deadline=None)
@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=12), st.integers(1, 3))
def test_sums_lose_what_they_say(terms, count):
    parts, lost = np.zeros((count, 1)), 0.0
    for x in terms:
        lost += add_exactly(parts, np.array([x]))
    exactly = sum(map(Fraction, terms))
    assert abs(sum(map(Fraction, parts[:, 0])) - exactly) <= Fraction(lost) * Fraction(10, 9)
    assert count == 1 or abs(parts[1, 0]) <= 2.0**-52 * abs(parts[0, 0])


def test_norms_are_those_of_the_sum():
    some = Sum(np.array([[[1.0, -2.0], [3.0, 0.0]], [[0.0, -0.5], [0.25, 0.0]]]), 0.125)
    assert some.norm() >= 3.75
    np.testing.assert_array_equal(some.low, [[0.0, -0.5], [0.25, 0.0]])


@pytest.mark.parametrize("name", ["plain", "low rank", "unequal"])
def test_the_base_is_that_of_balls(name):
    structure = DetStructure((Matrix(np.eye(40)), Matrix(np.eye(40)), Matrix(CASES[name])))
    found = base_by_inverse(structure, IdentityPlus(structure.floats[2]), -1)
    expected = find_base(structure, np.ones(structure.children))
    assert_same_base(found, expected)
    both = np.isfinite(found.gap_low) & np.isfinite(expected.gap_low)
    assert both.any()
    assert (np.abs(found.gap_low - expected.gap_low)[both] <= 2.0**-104 * expected.gap[both]).all()


@pytest.mark.parametrize("name", ["plain", "low rank"])
def test_the_base_of_a_marginal_kernel_is_that_of_balls(name):
    structure = DetStructure.of(pgcc.dpp(K=marginals(CASES[name]), rank="full").root)
    assert structure.is_marginal_kernel
    found = base_by_inverse(structure, IdentityPlus(-structure.floats[2]), 1)
    assert_same_base(found, find_base(structure, np.zeros(structure.children)))


def marginals(L: np.ndarray) -> np.ndarray:
    """K = I − (I + L)⁻¹, far enough from 1."""
    K = 0.99 * (np.eye(len(L)) - np.linalg.inv(np.eye(len(L)) + L))
    return (K + K.T) / 2


def assert_same_base(found, expected):
    np.testing.assert_array_equal(found.kernel, expected.kernel)
    np.testing.assert_array_equal(found.scale, expected.scale)
    np.testing.assert_array_equal(found.gap, expected.gap)
    np.testing.assert_allclose(found.low, expected.low, rtol=2.0**-48, atol=2.0**-120)


@pytest.mark.parametrize("form", ["L", "K"])
def test_answers_of_a_large_kernel_are_the_same(monkeypatch, form):
    L = CASES["unequal"] if form == "L" else marginals(CASES["unequal"])
    rows = np.random.default_rng(0).integers(-1, 2, (40, 40)).astype(np.int8)
    rows[:, 10:] = np.where(rows[:, 10:] == 1, -1, rows[:, 10:])
    before = pgcc.compile(pgcc.dpp(**{form: L}, rank="full"))
    monkeypatch.setattr(forms, "_LARGE_KERNEL", 1)
    after = pgcc.compile(pgcc.dpp(**{form: L}, rank="full"))
    np.testing.assert_allclose(after.logprob(rows), before.logprob(rows), rtol=1e-9)
    np.testing.assert_allclose(after.marginals(rows[:5]), before.marginals(rows[:5]), rtol=1e-9)


def test_factors_that_are_far_off():
    """Whatever W is, what is known of its eigenvalues is enough for a bound."""
    A = kernel(12, 24, 0.0, 8) / 24
    whole = IdentityPlus(A)
    W = np.round(np.tril(np.linalg.inv(np.linalg.cholesky(np.diag(whole.ones) + whole.A))) * 2.0**15) / 2.0**15
    whole.__dict__["_factors"] = np.diag(W), Sum.of(W.T @ W, 2)
    mantissa, exponent, off = whole.determinant()
    assert 1e-15 < off < 1e-6
    with ctx.workprec(200):
        N = arb_mat(12, 12, [arb(x) for x in A.ravel().tolist()]) + arb_mat(12, 12, 1)
        distance = abs(arb(mantissa) * arb(2) ** exponent / N.det() - 1)
        assert 1e-15 < distance <= off


def test_only_kernels_by_l_are_written_down_beyond_the_limit(monkeypatch):
    """Others would take multiple precision: a factor of 1,500 items was ten times as slow to ask."""
    monkeypatch.setattr(forms, "_MOST_CHILDREN", 5)
    monkeypatch.setattr(forms, "_LARGE_KERNEL", 6)
    one, L, B = Matrix(np.eye(40)), Matrix(CASES["plain"]), Matrix(np.random.default_rng(0).normal(size=(3, 40)))
    ensemble = forms.FloatDeterminant(DetStructure((one, one, L)), np.ones(40))
    assert ensemble.free is not None
    assert ensemble.out is not None
    by_factor = forms.FloatDeterminant(DetStructure((Matrix(np.eye(3)), B, B)), np.ones(40))
    assert by_factor.out is None
    assert not by_factor.find_free_base()
