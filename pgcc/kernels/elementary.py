"""The logarithm of vectors of eight doubles: Numba has none (no SVML), and calls that of numbers eight times."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext

import numpy as np

from pgcc.kernels.policy import bare_kernel
from pgcc.kernels.simd import (
    binary_exponent,
    binary_fraction,
    by_fraction,
    fused,
    if_less,
    minus,
    mul,
    muladd,
    plus,
    splat,
)

# log 2 in two parts: the first has zeros at its end, so that its multiples by exponents are exact.
_LOG_TWO, _REST = 6.93147180369123816490e-01, 1.90821492927058770002e-10


def _tables_for_log() -> np.ndarray:
    """For sixteen steps of m (see `by_fraction`) c near 1 / m, then −log c in two parts.

    c is so short that m·c − 1 is exact near m = 1. The first part of −log c is a multiple of 2^−42: its sums with
    multiples of _LOG_TWO are exact.
    """
    c = [Decimal(k) / 128 for k in (179, 172, 165, 159, 153, 147, 142, 136, 132, 128, 122, 115, 109, 103, 98, 94)]
    with localcontext(prec=36):
        logs = [-x.ln() for x in c]
        high = [round(x * 2**42) for x in logs]
        rest = [x - y / Decimal(2**42) for x, y in zip(logs, high, strict=True)]
    return np.array([*c, *(x / 2**42 for x in high), *rest], float)


_LOGS = _tables_for_log()


@bare_kernel
def log_eight(x):
    """Natural logarithms of normal numbers and 0, off by less than one unit in the last place; NaN of NaN.

    With x = 2^k · m and c from a table, near 1 / m: log x = k·log 2 − log c + log(1 + r), where r = m·c − 1. Around
    x = 1, c is 1.
    """
    k, c = binary_exponent(x), by_fraction(_LOGS, 0, x)
    r = fused(binary_fraction(x), c, splat(-1.0))
    high = muladd(k, splat(_LOG_TWO), by_fraction(_LOGS, 16, x))  # exact
    low = muladd(k, splat(_REST), by_fraction(_LOGS, 32, x))
    total = plus(high, r)
    low = plus(low, plus(minus(high, total), r))
    z = mul(r, r)
    odd, even = splat(0.11132878740498663), splat(-0.10019954010061335)
    for a in (0.1428569692801948, 0.20000000005125118, 0.33333333333332926):
        odd = muladd(odd, z, splat(a))
    for a in (-0.12499984088413099, -0.1666666667136481, -0.24999999999999625, -0.5):
        even = muladd(even, z, splat(a))
    result = plus(total, muladd(z, muladd(r, odd, even), low))
    return if_less(splat(0.0), x, result, minus(x, splat(math.inf)))
