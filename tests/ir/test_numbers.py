"""Numbers of any size as mantissas and exponents."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgcc.ir.numbers import frexp, ldexp
from pgcc.ir.scaled_numbers import ZERO_EXPONENT, split_doubles, split_number, split_numbers

HALF_UNIT = Fraction(1, 2**53)
NUMBERS = st.one_of(
    st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.fractions(),
    st.builds(lambda x, k: x * Fraction(2) ** k, st.fractions(), st.integers(-5000, 5000)),
)  # fmt: skip


@given(NUMBERS)
def test_frexp_is_that_of_floats_for_all_numbers(number):
    m, e = frexp(number)
    assert (m, e) == (0.0, 0) if not number else 0.5 <= abs(m) < 1
    assert abs(Fraction(m) * Fraction(2) ** e - Fraction(number)) <= HALF_UNIT * abs(Fraction(number))
    if type(number) is float:
        assert (m, e) == math.frexp(number)


@given(NUMBERS)
def test_ldexp_puts_it_together(number):
    m, e = frexp(number)
    found = ldexp(m, e)
    assert Fraction(found) == Fraction(m) * Fraction(2) ** e
    assert (type(found) is float) == (not m or -1000 < e < 1000)


@pytest.mark.parametrize("radix", [64, 256])
@given(numbers=st.lists(NUMBERS, max_size=5))
def test_scaled_numbers(radix, numbers):
    mantissas, exponents = split_numbers(numbers, radix)
    for number, m, e in zip(numbers, mantissas.tolist(), exponents.tolist(), strict=True):
        assert (m, e) == split_number(number, radix)
        assert (m, e) == (0.0, ZERO_EXPONENT) if not number else 2.0 ** (-radix // 2) <= abs(m) < 2.0 ** (radix // 2)
        if number:
            off = abs(Fraction(m) * Fraction(2) ** (radix * e) - Fraction(number))
            assert off <= HALF_UNIT * abs(Fraction(number))


@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(-(10**6), 10**6))
def test_doubles_times_powers_of_two(x, k):
    (m,), (e,) = split_doubles(np.array([x]), 256, k)
    if x:
        assert Fraction(m) * Fraction(2) ** (256 * int(e) - k) == Fraction(x)
    else:
        assert (m, e) == (0.0, ZERO_EXPONENT)
