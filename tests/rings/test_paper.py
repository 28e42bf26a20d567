"""The paper's running example: Figure 1's table, from Equation 3 as it is printed and from the expanded Equation 2."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import pgcc
from pgcc.methods import METHODS
from pgcc.rings.fourier import multiply

COMPACT = "(0.1*(z1 + 1)*(6*z2 + 1) - 0.4*z1*z2)*(0.8*z3 + 0.2)"
EXPANDED = "0.16*z1*z2*z3 + 0.04*z1*z2 + 0.08*z1*z3 + 0.02*z1 + 0.48*z2*z3 + 0.12*z2 + 0.08*z3 + 0.02"  # Equation 2
TABLE = {
    (0, 0, 0): 0.02, (0, 0, 1): 0.08, (0, 1, 0): 0.12, (0, 1, 1): 0.48,
    (1, 0, 0): 0.02, (1, 0, 1): 0.08, (1, 1, 0): 0.04, (1, 1, 1): 0.16,
}  # fmt: skip
QUERIES = list(itertools.product([0, 1, -1], repeat=3))


def table_probability(query: tuple[int, ...]) -> float:
    agrees = [all(q in (-1, x) for q, x in zip(query, row, strict=True)) for row in TABLE]
    return sum(p for p, yes in zip(TABLE.values(), agrees, strict=True) if yes)


@pytest.mark.parametrize("text", [COMPACT, EXPANDED])
@pytest.mark.parametrize("method", ["auto", *METHODS])
def test_all_27_queries_equal_the_table(text: str, method: str) -> None:
    model = pgcc.compile(pgcc.parse(text), method=method)
    expected = [table_probability(query) for query in QUERIES]
    np.testing.assert_allclose(model.prob(np.array(QUERIES)), expected, rtol=0, atol=1e-15)
    for query, p in zip(QUERIES, expected, strict=True):
        named = {v: q for v, q in zip(model.variables, query, strict=True) if q >= 0}
        assert model.prob(named) == pytest.approx(p, rel=0, abs=1e-15)
        assert float(model.prob(named, exact=True)) == pytest.approx(p, rel=0, abs=1e-15)


def test_both_texts_are_one_polynomial() -> None:
    import sympy

    assert sympy.expand(pgcc.parse(COMPACT).to_sympy() - pgcc.parse(EXPANDED).to_sympy()) == 0


def test_the_paper_counts_edges() -> None:
    # Sum(0.6·z2, 0.1·1) and the like: weights are on edges, so that each occurrence of a child is one edge.
    a, b = pgcc.variables("a b")
    assert (a * b).edges == 2
    assert (a + b).edges == 2


def test_the_bound_of_a_transform():
    rng = np.random.default_rng(0)
    for n in (5, 300, 3000):
        a, b = rng.random(n), rng.random(2 * n) ** 8
        product_, off = multiply(a, b)
        exact = np.convolve(a, b)
        assert np.linalg.norm(product_ - exact) <= off < 1e-10 * a.sum() * b.sum()


def test_transforms_of_small_numbers_are_off_by_something():
    """Squares of 1e-170 underflow: a 2-norm by way of them was 0, and so was the bound."""
    a, b = np.random.default_rng(0).random((2, 40)) * 1e-170
    b /= 1e-170
    product_, off = multiply(a, b)
    assert 0.0 < np.linalg.norm((product_ - np.convolve(a, b)) * 1e200) <= off * 1e200
