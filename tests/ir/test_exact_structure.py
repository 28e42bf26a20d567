"""What is decided of a determinant's matrices is decided from exact numbers, and balls keep their radius (issue 14)."""

from __future__ import annotations

import warnings
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from flint import fmpq, fmpq_mat

import pgcc
from pgcc.exact.balls import is_definite
from pgcc.ir.circuit import Circuit
from pgcc.ir.matrix import Matrix
from pgcc.ir.node import det, var
from pgcc.linalg import surely_definite
from pgcc.passes.homogenize import homogenize
from pgcc.passes.total import total
from pgcc.program.det_structure import DetStructure
from pgcc.program.lower import lower
from pgcc.program.reverse import reverse

I2 = [[1, 0], [0, 1]]
TINY = Fraction(1, 10**400)


def structure(m0, u, v):
    return DetStructure((Matrix(m0), Matrix(u), Matrix(v)))


def exact_determinant(rows):
    n = len(rows)
    entries = [fmpq(x.numerator, x.denominator) for row in rows for x in map(Fraction, row)]
    value = fmpq_mat(n, n, entries).det()
    return Fraction(int(value.p), int(value.q))


def assert_truthful(model, evidence):
    """The value is within its bound of the exact one, and the bound is one."""
    value, bound = model.prob(evidence, bound=True)
    exact = model.prob(evidence, exact=True)
    assert bound < 1e-9
    assert abs(Fraction(value) - exact) <= Fraction(bound) * abs(exact)


def every_evidence(names):
    return [
        {name: x for name, x in zip(names, values, strict=True) if x is not None}
        for values in product((0, 1, None), repeat=len(names))
    ]


# -- item 13: structure ---------------------------------------------------------------------------------------


def test_symmetric_only_as_doubles():
    a = 1 - Fraction(1, 10**12)
    b = a + Fraction(3, 10**17)
    assert float(a) == float(b)
    assert not structure(I2, I2, [[1, a], [b, 1]]).symmetric
    assert structure(I2, I2, [[1, a], [a, 1]]).symmetric
    assert not structure([[1, a], [b, 1]], I2, I2).symmetric
    model = pgcc.compile(pgcc.determinant(I2, I2, [[1, a], [b, 1]], ["x", "y"]))
    for evidence in every_evidence(["x", "y"]):
        assert_truthful(model, evidence)


def test_integers_beyond_doubles():
    big = 2**60
    assert not structure(I2, I2, [[big, big - 1], [big - 2, big]]).symmetric


def test_marginal_kernel_only_as_doubles():
    third = Fraction(1, 3)
    K = [[Fraction(1, 2), third], [third, Fraction(1, 2)]]
    m0 = [[Fraction(1, 2), -third], [-third, Fraction(1, 2)]]
    assert structure(m0, I2, K).is_marginal_kernel
    off = -third - Fraction(1, 10**20)
    assert not structure([[Fraction(1, 2), off], [off, Fraction(1, 2)]], I2, K).is_marginal_kernel
    model = pgcc.compile(
        pgcc.determinant([[Fraction(1, 2), off], [off, Fraction(1, 2)]], I2, K, ["x", "y"]), normalize=False
    )
    assert model.prob({}, exact=True) != 1


@pytest.mark.parametrize("sign", [1, -1])
def test_ratios_whose_sign_underflows(sign):
    found = structure([[0]], [[sign * TINY]], [[TINY]])
    assert found.exact_ratio == [1]
    assert (found.ratio is not None) == (sign > 0)
    assert found.nonnegative == (sign > 0)


def test_check_does_not_prove_what_underflows():
    g = pgcc.determinant([[0]], [[-TINY]], [[TINY]], ["z"]) * 10**800 + 2  # 2 − z
    assert not pgcc.check(g).ok


def test_ratio_of_products_that_underflow():
    u, v = np.array([[1e-200], [0.0]]), np.array([[1.0], [1e-200]])  # u would be (1e-200, 1e-400)
    assert structure(np.eye(2), u, v).ratio is None


def test_exact_ratio_where_the_largest_entry_underflows():
    found = structure(I2, [[0, 1], [2 * TINY, 0]], [[0, 1], [TINY, 0]])
    assert found.ratio is None or found.exact_ratio == [2, 1]


def test_laplacians_of_exact_numbers():
    edge = [[1, 0], [-1, 1]]
    assert structure([[0, 0], [0, 0]], edge, edge).laplacian is not None
    assert structure([[-TINY, 0], [0, 0]], edge, edge).laplacian is None
    assert structure([[0, TINY], [TINY, 0]], edge, edge).laplacian is None
    assert structure([[0, 0], [0, 0]], [[1, TINY], [-1, 1]], edge).laplacian is None
    assert not structure([[-TINY, 0], [0, 1]], edge, edge).nonnegative


def test_a_child_that_is_a_variable_only_as_doubles():
    edge = [[1, 0], [-1, 1]]
    z, w = pgcc.variables("z w")
    g = pgcc.determinant([[0, 0], [0, 0]], edge, edge, [z + TINY, w])
    model = pgcc.compile(g * (2 * 10**400), normalize=False)
    assert model.prob({"z": 0}, bound=True)[0] == 2
    plain = pgcc.compile(g, normalize=False)
    assert plain.logprob({"z": 0}) == pytest.approx(-400 * np.log(10), rel=1e-12)


# -- item 4: the radius of balls --------------------------------------------------------------------------------


@pytest.mark.parametrize("bits", [100, 150, 190, 250])
def test_kernels_whose_columns_cancel(bits):
    rng = np.random.default_rng(bits)
    big, n = Fraction(2) ** bits, 4
    U, V = [], []
    for _ in range(2):
        a, b, c = ([Fraction(int(x), 999983) for x in rng.integers(1, 10**6, n)] for _ in range(3))
        U += [[big * x for x in a], [big * x - y for x, y in zip(a, b, strict=True)]]
        V += [c, [-x for x in c]]
    identity = [[int(i == j) for j in range(4)] for i in range(4)]
    model = pgcc.compile(pgcc.determinant(identity, U, V, list("abcd")), normalize=False)
    for evidence in every_evidence("abcd")[::4]:
        assert_truthful(model, evidence)


# -- diagonals that cancel ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("weight", [1, Fraction(1, 3), 0.3])
@pytest.mark.parametrize("symmetric", [True, False])
def test_diagonals_that_cancel(weight, symmetric):
    """1 + f·G_ii is 1e-10, and G_ii is no double."""
    a, b = Fraction(-9999999999, 10**10) / Fraction(weight), Fraction(1, 3)
    kernel = [[a, b], [b if symmetric else Fraction(-1, 7), a]]
    x, y = pgcc.variables("x y")
    model = pgcc.compile(pgcc.determinant(I2, I2, kernel, [x * weight, y * weight]), normalize=False)
    for evidence in every_evidence(["x", "y"]):
        assert_truthful(model, evidence)


@pytest.mark.parametrize("size", [0, 1, 2])
def test_diagonals_that_cancel_in_a_sized_determinant(size):
    a, b = Fraction(-9999999999, 10**10), Fraction(1, 3)
    children = [var(name) for name in "xyz"]
    identity = [[int(i == j) for j in range(3)] for i in range(3)]
    kernel = [[a, b, b], [b, 2, b], [b, b, 3]]
    node = det(identity, identity, kernel, children, size=size, counted=(False, True, True))
    model = pgcc.compile(Circuit(node, list("xyz")), normalize=False)
    for evidence in every_evidence("xyz"):
        assert_truthful(model, evidence)


# -- item 12: complements ---------------------------------------------------------------------------------------


def complements():
    L = [[2, 1, 0], [1, 3, Fraction(1, 2)], [0, Fraction(1, 2), 1]]
    d = pgcc.dpp(L=L, names=list("abc"))
    yield d.complement()
    yield d.complement(["b"])
    yield pgcc.mixture([Fraction(1, 3), Fraction(2, 3)], [d.complement(), d])
    yield pgcc.dpp(K=[[Fraction(1, 2)] * 2] * 2, names=["a", "b"]).complement()


@pytest.mark.parametrize("g", list(complements()))
def test_marginals_of_complements(g):
    model = pgcc.compile(g)
    names = model.variables
    single = [float(model.prob({name: 1}, exact=True)) for name in names]
    assert model.marginals() == pytest.approx(np.array(single), rel=1e-12)
    assert model.expected_count() == pytest.approx(sum(single), rel=1e-12)
    pairs = model.pairwise()
    for i, j in combinations(range(len(names)), 2):
        exact = float(model.prob({names[i]: 1, names[j]: 1}, exact=True))
        assert pairs[i, j] == pytest.approx(exact, rel=1e-12, abs=1e-300)
    best = max(
        float(model.prob(dict(zip(names, x, strict=True)), exact=True)) for x in product((0, 1), repeat=len(names))
    )
    assert np.exp(model.mode().logprob) == pytest.approx(best, rel=1e-9)


def test_derivatives_by_complements_are_refused():
    with pytest.raises(ValueError, match="complements"):
        reverse(lower(homogenize(pgcc.dpp(L=[[2, 1], [1, 3]]).complement())))


# -- item 14: totals --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [8, 32, 52, 70])
def test_totals_of_wilkinsons_kind(n):
    """Pivots grow by 2ⁿ in elimination with partial pivoting."""
    A = np.eye(n) - np.tril(np.ones((n, n)), -1)
    A[:, -1] = 1.0
    A *= np.random.default_rng(n).uniform(0.9, 1.1, (n, n))
    exact = exact_determinant(A.tolist())
    g = Circuit(det(A, np.zeros((n, 1)), np.zeros((n, 1)), [var("x")]), ["x"])
    assert abs(Fraction(total(g)) - exact) <= Fraction(1, 10**12) * abs(exact)


def test_totals_of_ill_conditioned_kernels():
    """Near duplicates: what training of dense data makes. More than 40 rows, a condition of 1e14."""
    rng = np.random.default_rng(0)
    n = 60
    B = rng.normal(size=(n, n))
    B[1::2] = B[::2] + 1e-7 * rng.normal(size=(n // 2, n))
    L = 1e5 * B @ B.T
    L = (L + L.T) / 2
    rows = [[Fraction(x) + (i == j) for j, x in enumerate(row)] for i, row in enumerate(L.tolist())]
    exact = exact_determinant(rows)
    found = total(pgcc.dpp(L=L, rank="full"))
    assert abs(Fraction(found) - exact) <= Fraction(1, 10**12) * abs(exact)
    mixed = pgcc.compile(pgcc.mixture([0.5, 0.5], [pgcc.dpp(L=L, rank="full"), pgcc.parse("x1")]))
    assert mixed.prob({}) == pytest.approx(1, rel=1e-11)


def test_totals_that_are_zero():
    singular = np.array([[0.1, 0.2], [0.1, 0.2]])
    assert total(Circuit(det(singular, np.zeros((2, 1)), np.zeros((2, 1)), [var("x")]), ["x"])) == 0


def test_totals_of_sized_floats():
    rng = np.random.default_rng(5)
    n, size = 50, 3
    B = rng.normal(size=(n, n))
    L = B @ B.T / n
    L = (L + L.T) / 2
    node = det(np.eye(n), np.eye(n), L.T, [var(f"x{i}") for i in range(n)], size=size, counted=(True,) * n)
    eigenvalues = np.linalg.eigvalsh(L)
    expected = np.poly(-eigenvalues)[size]
    assert total(Circuit(node)) == pytest.approx(expected, rel=1e-9)


# -- item 16: sampling -------------------------------------------------------------------------------------------


def test_samples_of_children_that_are_never_in():
    g = pgcc.determinant([[1, 1], [0, 1]], [[0], [0]], [[1], [0]], ["b"])
    assert not pgcc.compile(g).sample(5, rng=0).any()


# -- item 9: kernels that look of lower rank -----------------------------------------------------------------------


@pytest.fixture(name="features")
def _features():
    return np.random.default_rng(0).normal(size=(30, 6))


def test_a_kernel_that_is_a_dpp_is_kept(features):
    L = features @ features.T + 1e-12 * np.eye(30)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = pgcc.compile(pgcc.dpp(L=L))
    rows = [[Fraction(x) for x in row[:7]] for row in L[:7].tolist()]
    whole = [[Fraction(x) + (i == j) for j, x in enumerate(row)] for i, row in enumerate(L.tolist())]
    exact = exact_determinant(rows) / exact_determinant(whole)
    observed = (np.arange(30) < 7).astype(int)
    assert abs(Fraction(model.prob(observed)) - exact) <= Fraction(1, 10**9) * exact
    assert model.explain().notes == ()


def test_a_kernel_that_is_none_but_for_rounding_is_replaced_loudly(features):
    L = features @ features.T
    with pytest.warns(UserWarning, match=r"L of 30 items has rank 6 .* 24 eigenvalues are taken for 0.*rank 'full'"):
        g = pgcc.dpp(L=L)
    assert g.root.matrices[0].shape == (6, 6)
    for same in (g, pgcc.mixture([0.5, 0.5], [g, pgcc.parse("x1")])):
        (note,) = pgcc.compile(same).explain().notes
        assert "rank 6" in note
        assert note in str(pgcc.compile(same).explain())


def test_rank_decides(features):
    L = features @ features.T
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        low, full, less = (pgcc.dpp(L=L, rank=rank) for rank in (6, "full", 2))
        Q = np.linalg.qr(features)[0]
        K = Q @ Q.T
        K = (K + K.T) / 2
        projection = pgcc.dpp(K=K, rank=6)
        kept = pgcc.dpp(K=K, rank="full")
    assert [g.root.matrices[0].shape[0] for g in (low, full, less, projection, kept)] == [6, 30, 2, 6, 30]
    assert np.array_equal(full.root.matrices[2].floats(), L)
    with pytest.warns(UserWarning, match="eigenvalue 0 24 times and 1 6 times"):
        pgcc.dpp(K=K)


@pytest.mark.parametrize("rank", [-1, 31, 2.5, True, "low"])
def test_ranks_that_are_none(features, rank):
    with pytest.raises(pgcc.CircuitError, match="rank="):
        pgcc.dpp(L=features @ features.T, rank=rank)


def test_ranks_of_factors_and_of_nonsymmetric_kernels(features):
    with pytest.raises(pgcc.CircuitError, match="columns"):
        pgcc.dpp(factor=features, rank=6)
    with pytest.raises(pgcc.CircuitError, match="symmetric"):
        pgcc.dpp(L=features @ features.T, rank=6, symmetric=False)


def test_means_are_taken_loudly():
    L = np.array([[1.0, 0.5], [0.5 + 1e-15, 1.0]])
    with pytest.warns(UserWarning, match="means"):
        g = pgcc.dpp(L=L)
    assert "means" in pgcc.compile(g).explain().notes[0]


def test_exact_numbers_are_never_averaged():
    with pytest.raises(pgcc.CircuitError, match="exact numbers that differ by 1e-20"):
        pgcc.dpp(L=[[1, Fraction(1, 2)], [Fraction(1, 2) + Fraction(1, 10**20), 1]])


# -- definite matrices --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [2, 5, 20])
def test_surely_definite_never_is_wrong(n):
    """Matrices with a least eigenvalue around the roundings, against exact leading minors."""
    rng = np.random.default_rng(n)
    proved = 0
    for exponent in range(-17, -10):
        for _ in range(10):
            B = rng.normal(size=(n, n - 1))
            A = B @ B.T + rng.normal() * 10.0**exponent * np.eye(n)
            A = (A + A.T) / 2
            rows = [[Fraction(x) for x in row] for row in A.tolist()]
            definite = all(exact_determinant([row[:k] for row in rows[:k]]) > 0 for k in range(1, n + 1))
            for test in (surely_definite, lambda a: is_definite(a.tolist())):
                if test(A):
                    proved += 1
                    assert definite
    assert proved > 20


def test_computed_entries_may_be_off():
    A = np.array([[1.0, 0.9], [0.9, 1.0]])
    assert surely_definite(A, np.full((2, 2), 0.04))
    assert not surely_definite(A, np.full((2, 2), 0.06))
