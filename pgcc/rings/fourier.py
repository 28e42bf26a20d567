"""Products of polynomials by fast Fourier transforms, with bounds on their errors.

A transform of M = 2^k points in passes of radix 2 has a relative error of at most log2(M)·η in the 2-norm, with η = μ +
4.01·(√2 + μ)·u and u = 2⁻⁵³, if the error of the twiddle factors is at most μ (Higham, Accuracy and Stability of
Numerical Algorithms, theorem 24.2). A pass of radix 4 or 8 rounds no more than the two or three passes in its place. A
twiddle factor of pocketfft is the product of two numbers from tables. The two parts of each number have errors of at
most u, which makes √2·u, and the product adds √5·u: μ ≤ 6·u. So η ≤ 12·u; `_PASS` is more than that.

Let F be the transform without a scaling factor: ‖F(a)‖₂ = √M·‖a‖₂, and no entry of F(a) is above Σ|a|. So relative
errors ε in the transforms of a and b cause an error of at most ε·(‖a‖₂·Σ|b| + ‖b‖₂·Σ|a|) of a·b in the 2-norm. The
products of the entries (√5·u each) and the transform back (ε) cause errors relative to ‖a·b‖₂, which is at most the
smaller of these two terms. For ‖a‖₂ we use √(max|a|·Σ|a|), which is no smaller, and cannot underflow by squaring.
"""

from __future__ import annotations

import math

import numpy as np

from pgcc.ir.numbers import UNIT

# Errors in units of u: of a pass of a transform; and of the factor 1/M, products of entries, and this formula together.
_PASS, _BESIDE = 16.0, 8.0


def multiply(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, float]:
    """a·b, and a bound on its error in the 2-norm, and so on that of every coefficient.

    The bound does not cover underflow: nothing is promised for numbers below 2⁻¹⁰⁰⁰.

    >>> product, off = multiply(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    >>> bool(np.abs(product - [3.0, 10.0, 8.0]).max() <= off < 1e-12)
    True
    """
    size = len(a) + len(b) - 1
    points = 1 << (size - 1).bit_length()
    product = np.fft.irfft(np.fft.rfft(a, points) * np.fft.rfft(b, points), points)[:size]
    sums = [float(np.abs(x).sum()) for x in (a, b)]
    norms = [math.sqrt(float(np.abs(x).max())) * math.sqrt(total) for x, total in zip((a, b), sums, strict=True)]
    first, second = norms[0] * sums[1], norms[1] * sums[0]
    epsilon = UNIT * (_PASS * math.log2(points) + _BESIDE)
    return product, 1.01 * epsilon * (first + second + min(first, second))
