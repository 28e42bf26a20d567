"""Minors that are next to singular: bounds that hold, and answers in pairs of doubles where doubles lose the digits."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest
from how_many import some
from hypothesis import given, settings
from hypothesis import strategies as st

import pgcc
from pgcc.data.evidence import Evidence
from pgcc.determinants.kernels.pairs import eliminate_pairs
from pgcc.kernels.policy import kernel
from pgcc.kernels.simd import LANES
from pgcc.queries.probability import probabilities


def det(matrix: list[list[Fraction]]) -> Fraction:
    """By elimination with pivots, exactly."""
    rows, value = [list(row) for row in matrix], Fraction(1)
    for i in range(len(rows)):
        at = next((j for j in range(i, len(rows)) if rows[j][i]), None)
        if at is None:
            return Fraction(0)
        if at != i:
            rows[i], rows[at], value = rows[at], rows[i], -value
        value *= rows[i][i]
        for j in range(i + 1, len(rows)):
            factor = rows[j][i] / rows[i][i]
            rows[j] = [a - factor * b for a, b in zip(rows[j], rows[i], strict=True)]
    return value


def gram(B: np.ndarray) -> list[list[Fraction]]:
    """B·Bᵀ, exactly."""
    rows = [[Fraction(x) for x in row] for row in B.tolist()]
    return [[sum((x * y for x, y in zip(a, b, strict=True)), Fraction(0)) for b in rows] for a in rows]


def exact_probabilities(L: list[list[Fraction]], rows: np.ndarray) -> list[Fraction]:
    """Pr(A in, B out) of an L-ensemble: minors over all sets that agree, divided by all of them."""
    n = len(L)
    sets = list(product((0, 1), repeat=n))
    minors = [det([[L[i][j] for j in range(n) if s[j]] for i in range(n) if s[i]]) for s in sets]
    total = sum(minors)
    agree = [[all(code in (-1, x) for code, x in zip(row, s, strict=True)) for s in sets] for row in rows.tolist()]
    return [sum((m for m, a in zip(minors, each, strict=True) if a), Fraction(0)) / total for each in agree]


def assert_right(circuit: pgcc.Circuit, L: list[list[Fraction]], rows: np.ndarray) -> None:
    """Values within their bounds, and logarithms within 1e-9; exact zeros where they are."""
    model = pgcc.compile(circuit)
    values, bounds = model.prob(rows, bound=True)
    logs = model.logprob(rows)
    for value, bound, log, exact in zip(values, bounds, logs, exact_probabilities(L, rows), strict=True):
        if exact == 0:
            assert value == 0.0
            assert log == -math.inf
            continue
        assert log == pytest.approx(math.log(exact.numerator) - math.log(exact.denominator), rel=1e-12, abs=1e-9)
        if math.isfinite(bound):
            assert abs(Fraction(float(value)) - exact) <= Fraction(float(bound)) * exact


def all_rows(n: int) -> np.ndarray:
    """Every row of 1, 0 and −1."""
    return np.array(list(product((0, 1, -1), repeat=n)), np.int8)


def nearly_equal_rows(n: int, r: int, apart: float, seed: int = 0) -> np.ndarray:
    """A factor, of which the second half of the rows is the first one, almost."""
    rng = np.random.default_rng(seed)
    B = rng.standard_normal((n, r)) / math.sqrt(r)
    B[n - n // 2 :] = B[: n // 2] + apart * rng.standard_normal((n // 2, r)) / math.sqrt(r)
    return B


@pytest.mark.parametrize("apart", [0.0, 1e-14, 1e-11, 1e-8, 1e-6, 1e-3])
@pytest.mark.parametrize("scale", [1.0, 1e6, 1e-6, 1e75, 1e-75])
def test_minors_of_two_to_four_rows_of_a_factor(apart, scale):
    B = nearly_equal_rows(4, 4, apart) * scale
    assert_right(pgcc.dpp(factor=B), gram(B), all_rows(4))


@pytest.mark.parametrize("gap", [2.0**-52, 1e-12, 1e-7, 1e-3])
@pytest.mark.parametrize("scale", [1.0, 1e12, 1e-12, 1e150, 1e-150, 2.0**-1000])
def test_minors_of_two_and_three_rows_of_a_kernel(gap, scale):
    L = np.array([[1.0, 1.0 - gap, 0.25], [1.0 - gap, 1.0, 0.25], [0.25, 0.25, 0.5]]) * scale
    exact = [[Fraction(x) for x in row] for row in L.tolist()]  # floats of low rank would be rounded to it
    assert_right(pgcc.dpp(L=exact), exact, all_rows(3))


def test_entries_that_are_subnormal_or_zero():
    exact = [[Fraction(x) for x in row] for row in ([1.0, 1e-170, 0.0], [1e-170, 2.0**-1060, 0.0], [0.0] * 3)]
    assert_right(pgcc.dpp(L=exact), exact, all_rows(3))


@pytest.mark.parametrize("gap", [1e-9, 1e-4])
def test_marginal_kernels_next_to_the_ends_of_their_range(gap):
    K = np.array([[1.0 - gap, 0.0, 0.0], [0.0, 0.5, 0.5 - gap], [0.0, 0.5 - gap, 0.5]])
    model = pgcc.compile(pgcc.dpp(K=K))
    for row in all_rows(3):
        inside, outside = np.flatnonzero(row == 1).tolist(), np.flatnonzero(row == 0).tolist()
        seen = inside + outside
        entries = [[Fraction(x) for x in line] for line in K.tolist()]
        exact = det(
            [
                [entries[i][j] if i in inside else (i == j) - entries[i][j] for j in seen]
                for i in seen
            ]
        )  # fmt: skip
        value, bound = model.prob(row, bound=True)
        assert bound <= 1e-9
        assert abs(Fraction(value) - exact) <= Fraction(bound) * exact


@settings(max_examples=some(40), deadline=None)
@given(
    st.lists(st.lists(st.integers(-3, 3), min_size=3, max_size=3), min_size=2, max_size=2),
    st.lists(st.lists(st.integers(-3, 3), min_size=3, max_size=3), min_size=2, max_size=2),
    st.integers(8, 60),
)
def test_bounds_of_near_duplicates_never_lie(some, change, bits):
    B = np.array(some, float)
    B = np.concatenate([B, B + np.array(change, float) * 2.0**-bits])
    assert_right(pgcc.dpp(factor=B), gram(B), all_rows(4))


@pytest.mark.parametrize("apart", [1e-6, 1e-7])
def test_near_duplicates_need_no_balls(apart):
    B = nearly_equal_rows(12, 8, apart)
    rows = np.zeros((20, 12), np.int8)
    rng = np.random.default_rng(1)
    for i, row in enumerate(rows):
        pairs = rng.choice(6, 1 + i % 3, replace=False)
        row[pairs] = row[pairs + 6] = 1
        row[rng.integers(12)] |= 1
    marginals = np.where((rows == 0) & (rng.random(rows.shape) < 0.7), -1, rows).astype(np.int8)
    model = pgcc.compile(pgcc.dpp(factor=B))
    for asked in (rows, marginals):
        answers = probabilities(model._distribution(), Evidence(model.variables, asked), bounds=True)
        assert answers.used["ball"] == 0
        for row, value, bound in zip(asked, answers.numbers, answers.bounds, strict=True):
            exact = model.prob(row, exact=True)
            assert bound <= 1e-9
            assert abs(Fraction(float(value)) - exact) <= Fraction(float(bound)) * exact


@kernel
def _eliminate(matrix, low, q, column, column_low):
    eliminate_pairs(matrix, low, q, column, column_low)


def test_elimination_over_pairs_has_a_unit_of_rounding_of_its_own():
    """The pivots, against exact ones: off by less than (q + 8)·2⁻¹⁰⁰·‖X‖², which is 1e-20 where doubles lose it all."""
    q, rng = 5, np.random.default_rng(0)
    exact, triangle = [], [(i, j) for i in range(q) for j in range(i + 1)]
    matrix, low = np.empty(len(triangle) * LANES), np.empty(len(triangle) * LANES)
    for lane in range(LANES):
        G = gram(nearly_equal_rows(q, q, 10.0 ** -(lane / 2), seed=int(rng.integers(100))))
        high = [float(G[i][j]) for i, j in triangle]
        matrix[lane::LANES] = high
        low[lane::LANES] = [float(G[i][j] - Fraction(x)) for (i, j), x in zip(triangle, high, strict=True)]
        minors = [det([row[:size] for row in G[:size]]) for size in range(q + 1)]
        exact.append([b / a for a, b in pairwise(minors)])
    _eliminate(matrix, low, q, np.empty(q * LANES), np.empty(q * LANES))
    for i in range(q):
        at = i * (i + 3) // 2 * LANES
        for lane in range(LANES):
            pivot = Fraction(matrix[at + lane]) + Fraction(low[at + lane])
            smallest = min(float(x) for x in exact[lane])
            assert abs(pivot / exact[lane][i] - 1) <= 1e-28 / smallest
