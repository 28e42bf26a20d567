"""exp and log of vectors of eight doubles: Numba has none (no SVML), and calls those of numbers eight times."""

from __future__ import annotations

import math

from pgcc.backend.kernels.policy import bare_kernel
from pgcc.backend.kernels.simd import (
    binary_exponent,
    binary_fraction,
    div,
    if_less,
    larger,
    minus,
    mul,
    muladd,
    nearest,
    plus,
    smaller,
    splat,
    times_power,
    zero_below,
)

_PER_TWO = 1.0 / math.log(2.0)
# log 2 in two parts: the first has zeros at its end, so that its multiples by exponents are exact.
_LOG_TWO, _REST = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_LEAST, _MOST = -708.0, 709.0


@bare_kernel
def log_eight(x):
    """Natural logarithms of normal numbers and 0, off by less than one unit in the last place; NaN of NaN.

    As in fdlibm: with x = 2^k · (1 + f) and s = f / (2 + f), log(1 + f) = 2·artanh(s) = f − f²/2 + s·(f²/2 + R(s²)).
    """
    k, f = binary_exponent(x), minus(binary_fraction(x), splat(1.0))
    s, half = div(f, plus(f, splat(2.0))), mul(mul(splat(0.5), f), f)
    z = mul(s, s)
    w = mul(z, z)
    even = mul(
        w, muladd(w, muladd(w, splat(0.15313837699209373), splat(0.22222198432149784)), splat(0.3999999999940942))
    )
    odd = muladd(w, muladd(w, splat(0.14798198605116586), splat(0.1818357216161805)), splat(0.2857142874366239))
    r = plus(mul(z, muladd(w, odd, splat(0.6666666666666735))), even)
    low = muladd(k, splat(_REST), mul(s, plus(half, r)))
    result = plus(muladd(k, splat(_LOG_TWO), splat(0.0)), minus(f, minus(half, low)))
    return if_less(splat(0.0), x, result, minus(x, splat(math.inf)))


@bare_kernel
def exp_eight(x):
    """exp x = 2^k · exp r, with k whole and |r| ≤ ½·log 2, by its series. 0 where x < −708; x is at most 709.

    NaN stays NaN. Relative error about 1e-15.
    """
    inside = smaller(splat(_MOST), larger(splat(_LEAST), x))
    k = nearest(mul(inside, splat(_PER_TWO)))
    r = muladd(k, splat(-_REST), muladd(k, splat(-_LOG_TWO), inside))
    series = splat(1.0 / 6227020800.0)
    for factorial in (479001600.0, 39916800.0, 3628800.0, 362880.0, 40320.0, 5040.0, 720.0, 120.0, 24.0, 6.0, 2.0, 1.0):
        series = muladd(series, r, splat(1.0 / factorial))
    power = times_power(splat(1.0), smaller(k, splat(1023.0)))
    return zero_below(x, splat(_LEAST), mul(muladd(series, r, splat(1.0)), power))
