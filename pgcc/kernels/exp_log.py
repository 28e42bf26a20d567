"""The exponential and logarithm of the C library, in every tier.

Numba calls these. numpy, where kernels are interpreted, has functions of its own, which differ in the last bit.
"""

from __future__ import annotations

import math

from pgcc.kernels.policy import inlined_kernel

_MOST_EXPONENT = 709.782712893384  # exp of more is inf


@inlined_kernel
def exp(x):
    """The exponential; inf above the range of doubles."""
    return math.inf if x > _MOST_EXPONENT else math.exp(x)


@inlined_kernel
def log(x):
    """The natural logarithm; −inf of 0, and NaN below."""
    if x > 0.0:
        return math.log(x)
    return -math.inf if x == 0.0 else math.nan
