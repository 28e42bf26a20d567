"""Products of polynomials by fast Fourier transforms, and what these are off by.

A transform of M = 2^k points in passes of radix 2 is off by log2(M)·η in the 2-norm, relatively, with η = μ + 4.01·(√2
+ μ)·u, u = 2⁻⁵³, where twiddle factors are off by μ (Higham, Accuracy and Stability of Numerical Algorithms, theorem
24.2). A pass of radix 4 or 8 rounds no more than the two or three that it stands for. pocketfft's twiddle factors are a
product of two numbers from tables: each has two parts that are off by u at most, which makes √2·u, and the product is
off by √5·u more: μ ≤ 6·u. So η ≤ 12·u; `_PASS` is more than that.

With F for transforms without a factor, ‖F(a)‖₂ = √M·‖a‖₂ and no entry of F(a) is above Σ|a|. So the transforms of a and
b, off by ε each, make ε·(‖a‖₂·Σ|b| + ‖b‖₂·Σ|a|) of a·b in the 2-norm, and the products of their entries (√5·u each)
and the transform back (ε) each act on ‖a·b‖₂, which is at most the lesser of the two. For ‖a‖₂ stands √(max|a|·Σ|a|),
which is no less and squares nothing.
"""

from __future__ import annotations

import math

import numpy as np

from pgcc.ir.numbers import UNIT

# Units in a pass of a transform, and beside all of them: the factor 1/M, products of entries, and this formula.
_PASS, _BESIDE = 16.0, 8.0


def multiply(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, float]:
    """a·b, and what it is off by in the 2-norm: no coefficient by more.

    Underflow is not counted: of numbers below 2⁻¹⁰⁰⁰ nothing is promised.

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
