"""Error bounds of computed values."""

from __future__ import annotations

import math

from pgcc.ir.numbers import UNIT
from pgcc.kernels.policy import inlined_kernel, kernel

# The quotient of two numbers between these is in the range of doubles.
SMALL, LARGE = 2.0**-500, 2.0**500
# The range of determinants that kernels write; outside of it they are NaN, or 0 if 0.
LEAST_DET, MOST_DET = 2.0**-600, 2.0**600
_LEAST = 2.0**-1072


@kernel
def absolute_error(m, gamma, floor):
    """A bound on the absolute error of a computed value, given its computed magnitude m: see `certify`.

    `_LEAST` covers the underflow of this formula itself.
    """
    return 1.0001 * (gamma * (m + floor) / (1.0 - gamma) + floor) + _LEAST


@inlined_kernel
def error_line(gamma, floor):
    """(slope, offset): the `absolute_error` for a magnitude m is slope·m + offset, but for `_LEAST`.

    (In exact arithmetic. The roundings of either form are covered by its factor 1.0001.)
    """
    slope = 1.0001 * gamma / (1.0 - gamma)
    return slope, slope * floor + 1.0001 * floor


@kernel
def absolute_errors(value, magnitude, gamma, floor, error):
    """error[i] = a bound on the absolute error of value[i]; inf where the value is not finite."""
    for i in range(len(value)):
        error[i] = absolute_error(magnitude[i], gamma, floor) if abs(value[i]) < math.inf else math.inf


@kernel
def relative_bound(v, m, gamma, floor):
    """A bound on the relative error of a computed value v, given its computed magnitude m: see `certify`."""
    if v == 0.0 and m == 0.0 and floor == 0.0:
        return 0.0
    error = absolute_error(m, gamma, floor)
    rest = abs(v) - error
    return error / rest if rest > 0.0 and abs(v) < math.inf else math.inf


@kernel
def certify(value, magnitude, gamma, floor, bound):
    """Write relative error bounds for computed values, given computed magnitudes.

    The absolute error e is at most γ·M + floor, where M is the true magnitude, which is at most (m + floor)/(1 − γ) for
    the computed magnitude m. Relative to the *true* value, it is at most e/(|v| − e). The factor 1.0001 covers the
    roundings of this formula itself.
    """
    for i in range(len(value)):
        bound[i] = relative_bound(value[i], magnitude[i], gamma, floor)


@kernel
def posteriors(read, sizes, evidence, gamma, floor, rtol, numbers, certain, impossible):
    """Posteriors from a reverse pass: numbers[row, i] = joint / root, and whether that is `certain` to `rtol`.

    read, sizes : joint probabilities, one per variable, and then the root, × rows; and their magnitudes. evidence :
    int8, rows × variables; the posterior of an observed variable is its value. floor : for every row, a bound on the
    errors by underflow. impossible : the rows whose root is certainly 0.
    """
    n = evidence.shape[1]
    for row in range(evidence.shape[0]):
        root = read[n, row]
        root_bound = relative_bound(root, sizes[n, row], gamma, floor[row])
        impossible[row] = root == 0.0 and root_bound == 0.0
        if root < 0.0:
            root_bound = math.inf  # not a distribution: a quotient of two negative values is no probability either
        for i in range(n):
            if evidence[row, i] >= 0:
                numbers[row, i], bound = evidence[row, i], root_bound
            else:
                x = read[i, row]
                numbers[row, i] = x / root
                bound = (relative_bound(x, sizes[i, row], gamma, floor[row]) + root_bound) * (1.0 + 1e-6) + 1e-15
                bound = bound / (1.0 - root_bound) if root_bound < 1.0 else math.inf
                if not numbers[row, i] >= 0.0:
                    bound = math.inf
            certain[row, i] = bound <= rtol or impossible[row]


@kernel
def smallest(work, lanes, least):
    """least[row] = the smallest nonzero absolute value in every row of a block; NaNs are ignored."""
    least[:] = math.inf
    for first in range(0, len(work), lanes):
        for row in range(len(least)):
            size = abs(work[first + row])
            if 0.0 < size < least[row]:
                least[row] = size


@kernel
def divide(mantissa, exponent, bound, by_mantissa, by_exponent, by_bound):
    """Divide values in place by one positive value; return the first that is certainly negative, or −1."""
    divisor_in_range = SMALL < by_mantissa < LARGE
    negative = -1
    more, times = by_bound + 2.0 * UNIT, (1.0 + 4.0 * UNIT) / max(1.0 - by_bound, 0.5)
    by, by_binary = math.frexp(by_mantissa)
    for i in range(len(mantissa)):
        if mantissa[i] == 0.0 and bound[i] == 0.0:
            continue  # an exact zero stays one
        if mantissa[i] < 0.0 and bound[i] < 1.0 and negative < 0:
            negative = i
        if divisor_in_range and (SMALL < abs(mantissa[i]) < LARGE):
            mantissa[i] /= by_mantissa
            exponent[i] -= by_exponent
        else:  # the quotient might leave the range of doubles
            m, binary = math.frexp(mantissa[i])
            mantissa[i] = m / by
            exponent[i] += binary - by_binary - by_exponent
        bound[i] = (bound[i] + more) * times
    return negative


@kernel
def all_within(bound, rtol):
    """Whether every bound is at most `rtol`."""
    for b in bound:  # noqa: SIM110 - no generators in Numba
        if not b <= rtol:
            return False
    return True
