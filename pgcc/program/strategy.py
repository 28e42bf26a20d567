"""Which way to evaluate, and why. Degree decides the work.

Per query, with A the variables observed 1: the formal degree D in t of the root against |A|.

    direct   decomposable circuits: homogenised, one number per node
    zero     D < |A|: the answer is 0 before anything is computed
    top      the D − |A| + 1 top coefficients (fewer where sub-circuits are known to be multiaffine)
    bottom   the |A| + 1 bottom coefficients
    fft      the paper's evaluation in R[t] with FFT products, for comparison
    ball     interval arithmetic with as many bits as it takes
"""

from __future__ import annotations

import numpy as np

from pgcc.errors import OLD_METHODS, PgccError

METHODS = {
    "direct": "one number per node of the homogenised circuit (float64, scaled numbers out of range)",
    "top": "the top coefficients of polynomials in t, direct products",
    "bottom": "the bottom |A| + 1 coefficients of polynomials in t, direct products",
    "fft": "the paper's polynomials in t with FFT products: accurate relative to the largest coefficient only",
    "ball": "ball arithmetic, then exact rationals",
}

# Where an absolute error is allowed, more variables are counted without the negligible tails of distributions.
LONG_COUNT = 1024


def choose(observed: np.ndarray, top_lengths: np.ndarray) -> np.ndarray:
    """The method per row of a circuit that is not decomposable.

    Parameters
    ----------
    observed : int array
        |A| per row.
    top_lengths : int array
        How many top coefficients each row needs; 0 where the degree is below |A|.

    Examples
    --------
    >>> choose(np.array([0, 5, 9]), np.array([1, 2, 30])).tolist()
    ['top', 'top', 'bottom']
    """
    return np.where(top_lengths <= observed + 1, "top", "bottom")


def check_method(method: str) -> str:
    """The name of a method, or "auto"; an error for any other."""
    if method in OLD_METHODS:
        raise PgccError(f"there is no method {method!r} any more: use {OLD_METHODS[method]}")
    if method != "auto" and method not in METHODS:
        raise PgccError(f"unknown method {method!r}: choose 'auto' or one of {', '.join(map(repr, METHODS))}")
    return method
