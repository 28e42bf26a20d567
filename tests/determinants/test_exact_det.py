"""Determinants in balls and rationals, against the interpreter, brute force and closed forms."""

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from flint import acb, arb, ctx, fmpq
from how_many import some
from hypothesis import given, settings
from hypothesis import strategies as st

from pgcc.exact.pencil import BALLS, RATIONALS, Determinant, Layout
from pgcc.ir.circuit import Circuit
from pgcc.ir.interpret import probability
from pgcc.ir.node import det, var
from pgcc.passes.homogenize import homogenize
from pgcc.rings.exact_values import Exact
from pgcc.testing import evidence, random_det


def determinant(rows):
    """By elimination, in Fractions."""
    a, value = [list(map(Fraction, row)) for row in rows], Fraction(1)
    for k in range(len(a)):
        pivot = next((i for i in range(k, len(a)) if a[i][k]), None)
        if pivot is None:
            return Fraction(0)
        if pivot != k:
            a[k], a[pivot], value = a[pivot], a[k], -value
        value *= a[k][k]
        for i in range(k + 1, len(a)):
            ratio = a[i][k] / a[k][k]
            a[i] = [x - ratio * y for x, y in zip(a[i], a[k], strict=True)]
    return value


def subsets(node):
    """The sets T of its children that a determinant keeps."""
    k = len(node.inside)
    every = (T for size in range(k + 1) for T in combinations(range(k), size))
    return [T for T in every if node.size in (None, sum(node.counted[i] for i in T))]


def by_subsets(node, f, y):
    """Σ_T c_T Π_{i∈T} f_i Π_{i∉T} y_i, with c_T = det [[M0, U_T], [−V_Tᵀ, 0]]: the definition."""
    m0, u, v = (m.exact() for m in node.matrices)
    r, k, total = range(len(m0)), len(f), Fraction(0)
    for T in subsets(node):
        rows = [[*m0[i], *(u[i][j] for j in T)] for i in r] + [[-v[i][j] for i in r] + [0] * len(T) for j in T]
        rest = math.prod(f[i] if i in T else y[i] for i in range(k))
        total += determinant(rows) * rest
    return total


def as_fraction(x):
    x = fmpq(x)
    return Fraction(int(x.p), int(x.q))


def as_fmpq(x):
    return fmpq(x.numerator, x.denominator)


values = st.sampled_from([0, 0, 1, 1, 1, -2, Fraction(3, 7)]).map(Fraction)


@pytest.mark.slow
@settings(max_examples=some(300), deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 6), st.data())
def test_every_reduction_is_an_identity(seed, n, data):
    """Whatever is 0 or 1 at the children, sized or not: the sum over all subsets."""
    node = random_det(seed, n, alone=True).root
    if data.draw(st.booleans()):  # transposed, so that columns of M0 and V have the structure
        m0, u, v = node.matrices
        node = det(zip(*m0.numbers(), strict=True), v, u, node.inside, node.outside, node.size, node.counted)
    k = len(node.inside)
    f, y = (data.draw(st.lists(values, min_size=k, max_size=k)) for _ in range(2))
    expected = by_subsets(node, f, y)
    exactly = Determinant(Layout(node), RATIONALS).at(list(map(as_fmpq, f)), list(map(as_fmpq, y)))
    assert as_fraction(exactly) == expected
    with ctx.workprec(200):
        ball = arb(Determinant(Layout(node), BALLS).at([arb(as_fmpq(x)) for x in f], [arb(as_fmpq(x)) for x in y]))
        assert ball.overlaps(arb(as_fmpq(expected)))
        assert expected == 0 or ball.rad() < 1e-30


@settings(max_examples=some(60), deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 5), st.data())
def test_complex_balls(seed, n, data):
    """At Gaussian integers, as a ring of pairs."""
    node = random_det(seed, n, alone=True).root
    k = len(node.inside)
    parts = data.draw(st.lists(st.integers(-2, 2), min_size=4 * k, max_size=4 * k))
    f = [complex(*parts[2 * i : 2 * i + 2]) for i in range(k)]
    y = [complex(*parts[2 * k + 2 * i : 2 * k + 2 * i + 2]) for i in range(k)]
    with ctx.workprec(200):
        got = acb(Determinant(Layout(node), BALLS).at(list(map(acb, f)), list(map(acb, y))))
    m0, u, v = (m.exact() for m in node.matrices)
    r, expected = range(len(m0)), acb(0)
    for T in subsets(node):
        rows = [[*m0[i], *(u[i][j] for j in T)] for i in r] + [[-v[i][j] for i in r] + [0] * len(T) for j in T]
        rest = math.prod([acb(f[i] if i in T else y[i]) for i in range(k)], start=acb(1))
        expected += acb(as_fmpq(determinant(rows))) * rest
    assert got.overlaps(expected)
    assert expected.overlaps(acb(0)) or abs(got - expected) < 1e-8  # where it is 0, a ball need not be small


@settings(max_examples=some(80), deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 5), st.booleans(), st.booleans(), st.data())
def test_queries(seed, n, decomposable, complements, data):
    circuit = random_det(seed, n, decomposable=decomposable, complements=complements)
    seen = data.draw(evidence(circuit))
    codes = [seen.get(name, -1) for name in circuit.variables]
    expected = probability(circuit, seen)
    homogeneous = circuit.facts.decomposable
    exact = Exact(homogenize(circuit), True) if homogeneous else Exact(circuit, False, circuit.facts.degree)
    assert exact.rational(codes) == expected
    values = exact.evaluate(np.array([codes], dtype=np.int8), 1e-12)
    assert math.isclose(math.ldexp(values.mantissa[0], int(values.exponent[0])), expected, rel_tol=1e-11)


def dpp(L, size=None):
    n = len(L)
    one = np.identity(n)
    return Circuit(det(one, one, np.asarray(L, dtype=float).T, [var(f"z{i}") for i in range(n)], size=size))


def spanning_trees(n, weights=None):
    """The complete graph: V reduced incidence vectors, U the same times the weights."""
    edges = list(combinations(range(n), 2))
    V = np.zeros((n - 1, len(edges)))
    for j, (a, b) in enumerate(edges):
        V[b - 1, j] = -1.0
        if a:
            V[a - 1, j] = 1.0
    U = V if weights is None else V * weights
    return Circuit(det(np.zeros((n - 1, n - 1)), U, V, [var(f"e{a}_{b}") for a, b in edges]))


def value_of(circuit, codes, bits=128):
    """The value, which has to be certain with so many bits."""
    exact = Exact(homogenize(circuit), homogeneous=True)
    mantissa, exponent, bound = exact.ball(codes, bits)
    assert bound < 1e-9
    return math.ldexp(mantissa, exponent)


def random_psd(n, seed=0):
    B = np.random.default_rng(seed).normal(size=(n, n)) / math.sqrt(n)
    return B @ B.T


def test_an_l_ensemble_has_the_rows_of_what_is_in_or_free():
    L = random_psd(9)
    node = homogenize(dpp(L)).root
    whole = Determinant(Layout(node), BALLS)
    kept = [0, 3, 4, 8]
    assert whole.rows_left(kept) == kept
    codes = [1, 0, 0, -1, 1, 0, 0, 0, 1]
    A = [0, 3, 4, 8]
    expected = np.linalg.det(np.diag([0, 1, 0, 0]) + L[np.ix_(A, A)])
    assert math.isclose(value_of(dpp(L), codes), expected, rel_tol=1e-11)


@pytest.mark.slow
def test_large_l_ensemble():
    n = 300
    L = random_psd(n)
    exact = Exact(homogenize(dpp(L)), homogeneous=True)
    rng = np.random.default_rng(1)
    for observed in (n, 20, 0):
        codes = np.where(np.arange(n) < observed, rng.random(n) < 0.5, -1).astype(int)
        A, kept = codes == 1, codes != 0
        M = L[np.ix_(kept, kept)] + np.diag(~A[kept])
        mantissa, exponent, bound = exact.ball(codes.tolist(), 128)
        assert bound < 1e-15
        assert math.isclose(math.log(mantissa) + exponent * math.log(2), np.linalg.slogdet(M)[1], rel_tol=1e-9)


def test_spanning_trees_of_a_complete_graph():
    """Cayley: n^(n−2); the trees with a given edge are 2·n^(n−3)."""
    n = 60
    circuit = spanning_trees(n)
    free = [-1] * len(circuit.variables)
    assert math.isclose(value_of(circuit, free), float(n ** (n - 2)), rel_tol=1e-12)
    assert math.isclose(value_of(circuit, [1, *free[1:]]), float(2 * n ** (n - 3)), rel_tol=1e-12)


@pytest.mark.parametrize("k", [0, 1, 7, 19, 20])
def test_k_dpp_is_an_elementary_symmetric_polynomial(k):
    n = 20
    L = random_psd(n, seed=3) * 10.0 ** np.random.default_rng(4).integers(-3, 4, size=1)
    expected = abs(np.poly(np.linalg.eigvalsh(L))[k])  # e_k(λ)
    assert math.isclose(value_of(dpp(L, size=k), [-1] * n), expected, rel_tol=1e-8)


def test_a_well_chosen_radius_saves_bits():
    """Coefficients from 1 to 1e-400: at radius 1 the small ones would drown."""
    n = 40
    children = [var(f"z{i}") for i in range(n)]
    singular = np.diag([0.0] + [1.0] * (n - 1))
    circuit = Circuit(det(singular, np.identity(n), np.diag([1e-10] * n), children, size=n - 1))
    mantissa, exponent, bound = Exact(homogenize(circuit), homogeneous=True).ball([-1] * n, 128)
    assert bound < 1e-15
    expected = math.log10(n - 1) - 10 * (n - 1)
    assert math.isclose(math.log10(mantissa) + exponent * math.log10(2), expected, rel_tol=1e-12)


def test_blocks_that_are_singular():
    """Elimination by blocks falls back on the whole matrix: here the first block is 0."""
    n = 130
    shifted = np.roll(np.identity(n), 1, axis=1) + 1e-3 * np.diag([0.0] * 110 + [1.0] * 20)
    circuit = Circuit(det(shifted, np.identity(n), np.identity(n), [var(f"z{i}") for i in range(n)]))
    assert value_of(circuit, [0] * n) == np.linalg.det(shifted)


def low_rank(size=None):
    B = np.random.default_rng(0).normal(size=(2, 5))
    return Circuit(det(np.identity(2), B, B, [var(f"z{i}") for i in range(5)], size=size))


@pytest.mark.parametrize(
    ("circuit", "codes"),
    [
        (low_rank(), [1, 1, 1, -1, -1]),  # more in than rows
        (low_rank(size=1), [1, 1, -1, -1, -1]),  # more in than the size
        (low_rank(size=2), [0, 0, 0, 0, -1]),  # fewer left than the size
        (low_rank(size=3), [-1] * 5),  # a size above the rank
        (spanning_trees(5), [0] * 7 + [-1] * 3),  # fewer edges than a tree has
    ],
)
def test_structural_zeros_are_found_at_once(circuit, codes):
    assert Exact(homogenize(circuit), homogeneous=True).ball(codes, 64) == (0.0, 0, 0.0)


def test_two_children_that_need_one_row():
    node = det([[1, 0], [0, 1]], [[1, 2], [0, 0]], [[1, 1], [1, 3]], [var("a"), var("b")], [var("c"), var("d")])
    assert Determinant(Layout(node), BALLS).at([arb(1)] * 2, [arb(0)] * 2) == 0
