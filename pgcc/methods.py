"""The methods by which values are computed, as `method=` and ``--method`` name them.

The rungs of `pgcc.compiler` that have a method's name are what it runs. (This module is apart from those, because the
command line lists the methods before anything else is imported.)
"""

from __future__ import annotations

from pgcc.errors import PgccError

# A is the set of variables that are in, and t marks them: see `pgcc.compiler`.
METHODS = {
    "direct": "one number per node of the homogenized circuit (float64; scaled numbers if out of range)",
    "top": "the top coefficients of polynomials in t, by direct products",
    "bottom": "the bottom |A| + 1 coefficients of polynomials in t, by direct products",
    "fft": "the paper's polynomials in t, by FFT products: accurate relative to the largest coefficient only",
    "ball": "ball arithmetic with as many bits as it takes, then exact rationals",
}


def check_method(method: str) -> str:
    """The name of a method, or "auto"; an error for any other.

    >>> check_method("top")
    'top'
    """
    if method != "auto" and method not in METHODS:
        raise PgccError(f"unknown method {method!r}: choose 'auto' or one of {', '.join(map(repr, METHODS))}")
    return method
