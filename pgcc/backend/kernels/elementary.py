"""exp and log of vectors of eight doubles: Numba has none (no SVML), and calls those of numbers eight times."""

from __future__ import annotations

import math

from pgcc.backend.kernels.policy import bare_kernel
from pgcc.backend.kernels.simd import (
    binary_exponent,
    div,
    larger,
    mul,
    muladd,
    nearest,
    plus,
    smaller,
    splat,
    sub,
    times_power,
    zero_below,
)

_PER_TWO = 1.0 / math.log(2.0)
# log 2 in two parts: the first has zeros at its end, so that its multiples by exponents are exact.
_LOG_TWO, _REST = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_LEAST, _MOST = -708.0, 709.0


@bare_kernel
def log_eight(x):
    """log x = e·log 2 + 2·artanh s, with x = m·2^e, √½ ≤ m < √2 and s = (m − 1)/(m + 1), by its series.

    x is positive and normal. NaN stays NaN. Relative error about 1e-15.
    """
    e = binary_exponent(x)
    m = times_power(x, mul(e, splat(-1.0)))
    s = div(sub(m, splat(1.0)), plus(m, splat(1.0)))
    square = mul(s, s)
    series = splat(2.0 / 23.0)
    for odd in (21.0, 19.0, 17.0, 15.0, 13.0, 11.0, 9.0, 7.0, 5.0, 3.0):
        series = muladd(series, square, splat(2.0 / odd))
    small = muladd(mul(series, square), s, muladd(e, splat(_REST), muladd(x, splat(0.0), mul(s, splat(2.0)))))
    return muladd(e, splat(_LOG_TWO), small)


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
