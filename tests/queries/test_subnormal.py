"""Answers below 2^-1022, where doubles have fewer digits: a number that is right to `rtol`, rounded once.

The oracle is in rationals, from closed forms.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from how_many import some
from hypothesis import given, settings
from hypothesis import strategies as st

import pgcc

F = Fraction
HALF_A_STEP = F(1, 2**1075)
TINY = st.builds(lambda m, e: F(m, 2**e), st.integers(2**30, 2**31), st.integers(1040, 1104))
CHANCES = st.one_of(st.fractions(F(1, 9), F(8, 9), max_denominator=99), st.integers(1, 600).map(lambda k: F(1, 3**k)))


def assert_rounded_once(found: float, exact: F) -> None:
    assert abs(F(found) - exact) <= F(1, 10**9) * exact + HALF_A_STEP * (1 + F(1, 2**40))


def pair(p: F, q: F, other: F) -> tuple[pgcc.Model, dict[tuple[int, int], F]]:
    """A mixture of two coins each, in which `a` is nearly impossible, and its table."""
    a, b = pgcc.variables("a b")
    parts = [(F(2, 7), p, q), (F(5, 7), p / 3, other)]
    circuit = pgcc.mixture([w for w, _, _ in parts], [(x * a + (1 - x)) * (y * b + (1 - y)) for _, x, y in parts])
    table = {(i, j): sum((w * (x if i else 1 - x) * (y if j else 1 - y) for w, x, y in parts), F(0))
             for i in (0, 1) for j in (0, 1)}  # fmt: skip
    return pgcc.compile(circuit), table


@settings(max_examples=some(60), deadline=None)
@given(TINY, CHANCES, CHANCES)
def test_answers_below_the_normal_numbers(p, q, other):
    model, table = pair(p, q, other)
    for b in (None, 0, 1):
        given_b = {} if b is None else {"b": b}
        values = (0, 1) if b is None else (b,)
        joint, base = (sum(table[i, j] for i in which for j in values) for which in ((1,), (0, 1)))
        assert_rounded_once(model.prob({"a": 1, **given_b}), joint)
        assert_rounded_once(model.conditional({"a": 1}, given=given_b), joint / base)
        assert_rounded_once(model.marginals(given_b)["a"], joint / base)
        assert_rounded_once(model.cardinality(given_b, over=["a"])[1], joint / base)
        assert_rounded_once(model.any_of(given_b, over=["a"]), joint / base)


@pytest.mark.parametrize("bits", [1023, 1030, 1050, 1074])
def test_many_coins(bits):
    """All of 64 coins: the last entry of their count, and a table of rows."""
    p = F(2, 3) / 2 ** (bits // 64)
    first = p / 2 ** (bits % 64)
    coins = pgcc.variables([f"x{i}" for i in range(64)])
    model = pgcc.compile(pgcc.product([(x * z + (1 - x)) for x, z in zip([first] + [p] * 63, coins, strict=True)]))
    exact = first * p**63
    assert_rounded_once(model.cardinality()[-1], exact)
    for found in model.prob(np.ones((3, 64), int)):
        assert_rounded_once(found, exact)
