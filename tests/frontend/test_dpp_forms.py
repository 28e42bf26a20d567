"""All 3^6 marginal queries of small DPPs, from L, from K and from a factor, to 1e-12 of exact brute force."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

import pgcc
from pgcc.ir.interpret import determinant

N = 6
QUERIES = np.array(list(itertools.product([0, 1, -1], repeat=N)), np.int8)
SUBSETS = [s for size in range(N + 1) for s in itertools.combinations(range(N), size)]


def probabilities(L: np.ndarray) -> dict[tuple[int, ...], Fraction]:
    """det L_S of every S, exactly, divided by their sum."""
    rows = [[Fraction(x) for x in row] for row in L.tolist()]
    minors = {s: determinant([[rows[i][j] for j in s] for i in s], Fraction) for s in SUBSETS}
    total = sum(minors.values())
    return {s: minor / total for s, minor in minors.items()}


def assert_equal_to(circuit: pgcc.Circuit, expected: dict[tuple[int, ...], Fraction], rel: float = 1e-12) -> None:
    values = pgcc.compile(circuit).prob(QUERIES)
    for value, query in zip(values.tolist(), QUERIES.tolist(), strict=True):
        exact = sum(p for s, p in expected.items() if all((i in s) == x for i, x in enumerate(query) if x >= 0))
        # 1e-30: sets that depend on each other by chance, in a kernel of doubles that was singular
        assert value == pytest.approx(float(exact), rel=rel, abs=1e-30), query


def marginal_kernel(L: np.ndarray) -> np.ndarray:
    """L·(I + L)⁻¹"""
    return np.linalg.solve((np.eye(N) + L).T, L.T.astype(float)).T


@pytest.mark.parametrize("rank", [6, 3, 1])
def test_from_l_from_k_and_from_a_factor(rank):
    B = np.random.default_rng(rank).integers(-3, 4, (N, rank))
    L = B @ B.T
    expected = probabilities(L)
    K = marginal_kernel(L)
    for circuit in (
        pgcc.dpp(L=L.astype(float)),
        pgcc.dpp(L=L.tolist()),
        pgcc.dpp(factor=B.astype(float)),
        pgcc.dpp(K=(K + K.T) / 2),
    ):
        assert_equal_to(circuit, expected)


def test_nonsymmetric():
    rng = np.random.default_rng(0)
    A, B = rng.integers(-2, 3, (N, N)), rng.integers(-1, 2, (N, N))
    L = 2 * np.eye(N, dtype=int) + (A - A.T) + B @ B.T
    expected = probabilities(L)
    assert_equal_to(pgcc.dpp(L=L.astype(float), symmetric=False), expected)
    assert_equal_to(pgcc.dpp(K=marginal_kernel(L), symmetric=False), expected)


def test_projection():
    """K = B·(BᵀB)⁻¹·Bᵀ: Pr(S) = det(B_S)² / det BᵀB for the sets of size 3, and 0 for all others."""
    B = np.random.default_rng(1).integers(-3, 4, (N, 3))
    K = B @ np.linalg.inv(B.T @ B) @ B.T
    squares = {
        s: determinant([[Fraction(x) for x in B[i].tolist()] for i in s], Fraction) ** 2 if len(s) == 3 else Fraction(0)
        for s in SUBSETS
    }
    total = sum(squares.values())
    assert_equal_to(pgcc.dpp(K=(K + K.T) / 2), {s: x / total for s, x in squares.items()})


@pytest.mark.parametrize("k", range(N + 1))
@pytest.mark.parametrize("rank", [6, 4])
def test_k_dpps_are_conditioned_dpps(k, rank):
    B = np.random.default_rng(rank).normal(size=(N, rank))
    circuit = pgcc.dpp(factor=B).observe(size=k)
    of_size_k = {s: p for s, p in probabilities(_exact_product(B)).items() if len(s) == k}
    total = sum(of_size_k.values())
    if total == 0:
        with pytest.raises(pgcc.SemanticsError, match="total"):
            pgcc.compile(circuit)
    else:
        assert_equal_to(circuit, {s: p / total for s, p in of_size_k.items()}, rel=1e-10)


def _exact_product(B: np.ndarray) -> np.ndarray:
    """B·Bᵀ in rationals."""
    rows = [[Fraction(x) for x in row] for row in B.tolist()]
    return np.array([[sum(a * b for a, b in zip(p, q, strict=True)) for q in rows] for p in rows], dtype=object)


@pytest.mark.parametrize("seed", range(40))
def test_k_dpps_tell_the_truth_about_hard_kernels(seed):
    """Near-duplicates, smooth kernels, and scales over forty orders of magnitude."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 8))
    B = rng.normal(size=(n, n))
    x = rng.random(n)
    scale = 10.0 ** rng.uniform(-10, 10, n)
    twins = B.copy()
    twins[-1] = B[0] + 1e-4 * rng.normal(size=n)
    smooth = np.exp(-((x[:, None] - x) ** 2) / 0.5) + 1e-9 * np.eye(n)
    L = [smooth, (B @ B.T) * scale * scale[:, None], twins @ twins.T, (B @ B.T) * 1e-90][seed % 4]
    model = pgcc.compile(pgcc.dpp(L=(L + L.T) / 2).observe(size=int(rng.integers(1, n + 1))))
    rows = rng.choice([0, 1, -1], size=(6, n), p=[0.25, 0.25, 0.5])
    for value, bound, exact in zip(*model.prob(rows, bound=True), model.prob(rows, exact=True), strict=True):
        assert bound <= 1e-9
        assert abs(Fraction(float(value)) - exact) <= Fraction(float(bound)) * exact
