"""Error bounds of computed values."""

from __future__ import annotations

import math

from pgcc.backend.kernels.policy import kernel
from pgcc.ir.numbers import UNIT

_SMALL, _LARGE = 2.0**-500, 2.0**500


@kernel
def certify(value, magnitude, gamma, floor, bound):
    """Write relative error bounds for computed values, given computed magnitudes.

    The true value is within γ·M + floor of the computed one, where M, the true magnitude, is at most the computed one
    over 1 − γ (plus what underflow hid); and relative to the *true* value, e/(|v| − e) for an absolute error e.
    The factor 1.0001 pays for the roundings of this very formula.
    """
    for i in range(len(value)):
        v, m = value[i], magnitude[i]
        if v == 0.0 and m == 0.0 and floor == 0.0:
            bound[i] = 0.0
            continue
        error = 1.0001 * (gamma * (m + floor) / (1.0 - gamma) + floor)
        rest = abs(v) - error
        bound[i] = error / rest if rest > 0.0 and abs(v) < math.inf else math.inf


@kernel
def divide(mantissa, exponent, bound, by_mantissa, by_exponent, by_bound):
    """Divide values in place by one positive value; the first that is certainly negative, or −1."""
    negative = -1
    by, by_binary = math.frexp(by_mantissa)
    plain = _SMALL < by_mantissa < _LARGE
    for i in range(len(mantissa)):
        if mantissa[i] == 0.0 and bound[i] == 0.0:
            continue  # an exact zero stays one
        if mantissa[i] < 0.0 and bound[i] < 1.0 and negative < 0:
            negative = i
        if plain and (_SMALL < abs(mantissa[i]) < _LARGE):
            mantissa[i] /= by_mantissa
            exponent[i] -= by_exponent
        else:  # the quotient might leave the range of doubles
            m, binary = math.frexp(mantissa[i])
            mantissa[i] = m / by
            exponent[i] += binary - by_binary - by_exponent
        bound[i] = (bound[i] + by_bound + 2.0 * UNIT) / max(1.0 - by_bound, 0.5)
    return negative


@kernel
def all_within(bound, rtol):
    """Whether every bound is at most `rtol`."""
    for b in bound:  # noqa: SIM110 - no generators in Numba
        if not b <= rtol:
            return False
    return True
