"""Operations on vectors of eight doubles, in numpy: their specification, and what interpreted kernels run on.

For Numba each of them is a few instructions: `pgcc.kernels.llvm` says which, and documents those on arrays.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from pgcc.kernels.policy import before_compiling

Vector = np.ndarray

LANES = 8  # doubles of a vector
WORD = 64  # bytes that become the bits of one number


def load(array: np.ndarray, index: int) -> Vector:
    return array[index : index + LANES].copy()


def store(array: np.ndarray, index: int, value: Vector) -> None:
    array[index : index + LANES] = value


def fetch(array: np.ndarray, first: int, last: int, writing: bool) -> None:
    """A hint to the processor, without a meaning."""


def splat(scalar: float) -> Vector:
    return np.full(LANES, float(scalar))


def mul(a: Vector, b: Vector) -> Vector:
    return a * b


def muladd(a: Vector, b: Vector, c: Vector) -> Vector:
    return a * b + c


def plus(a: Vector, b: Vector) -> Vector:
    return a + b


def minus(a: Vector, b: Vector) -> Vector:
    return a - b


def div(a: Vector, b: Vector) -> Vector:
    return a / b


# Products whose rounding error is a double, too.
_TINY, _HUGE = 2.0**-900, 2.0**900


def fused(a: Vector, b: Vector, c: Vector) -> Vector:
    return np.array([_fused(x, y, z) for x, y, z in zip(a.tolist(), b.tolist(), c.tolist(), strict=True)])


def _fused(x: float, y: float, z: float) -> float:
    """x·y + z with one rounding: in range, x·y is a sum of two doubles (Dekker), and `fsum` rounds once."""
    product = x * y
    if x == 0.0 or y == 0.0:
        return product + z
    if _TINY < abs(product) < _HUGE and abs(x) < _HUGE and abs(y) < _HUGE and abs(z) < _HUGE:
        (a, b), (c, d) = _halves(x), _halves(y)
        return math.fsum((product, ((a * c - product) + a * d + b * c) + b * d, z)) or product + z  # the sign of a zero
    if not (math.isfinite(x) and math.isfinite(y) and math.isfinite(z)):
        return x * y + z
    exact = Fraction(x) * Fraction(y) + Fraction(z)
    try:
        return float(exact) if exact else x * y + z  # the sign of a zero
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def _halves(x: float) -> tuple[float, float]:
    """x as a sum of two doubles of at most 26 bits (Veltkamp)."""
    shifted = 134217729.0 * x
    high = shifted - (shifted - x)
    return high, x - high


def add_up(a: Vector) -> float:
    while len(a) > 1:
        a = a[::2] + a[1::2]
    return float(a[0])


def gather(array: np.ndarray, start: int, index: np.ndarray, i: int, more: np.ndarray, j: int) -> Vector:
    return array[start + index[i : i + LANES] + more[j : j + LANES]]


def entries(tables: np.ndarray, start: int, codes: np.ndarray, index: int) -> Vector:
    return tables[start + codes[index : index + LANES].astype(np.int64)]


def equal_bytes(array: np.ndarray, index: int, value: int) -> np.uint64:
    return _bits(array[index : index + WORD] == value)


def _bits(found: np.ndarray) -> np.uint64:
    return np.packbits(found, bitorder="little").view(np.uint64)[0]


def lowest_bit(bits: np.uint64) -> int:
    return (int(bits) & -int(bits)).bit_length() - 1


def count_bits(bits: np.uint64) -> int:
    return int(bits).bit_count()


def if_less(a: Vector, b: Vector, yes: Vector, no: Vector) -> Vector:
    return np.where(a < b, yes, no)


def smaller(a: Vector, b: Vector) -> Vector:
    return np.where(a < b, a, b)


def larger(a: Vector, b: Vector) -> Vector:
    return np.where(a > b, a, b)


def magnitude(a: Vector) -> Vector:
    return np.abs(a)


def root(a: Vector) -> Vector:
    return np.sqrt(a)


def nearest(a: Vector) -> Vector:
    return np.rint(a)


def choose(codes: np.ndarray, index: int, zero: float, one: float, free: float) -> Vector:
    code = codes[index : index + LANES]
    return np.where(code == 0, zero, np.where(code == 1, one, free))


def lookup(tables: np.ndarray, at: int, codes: np.ndarray, index: int) -> Vector:
    return tables[at + (codes[index : index + LANES].astype(np.int64) & 15)]


def transpose(source: np.ndarray, at: int, stride: int, result: np.ndarray, to: int, step: int) -> None:
    for j in range(LANES):
        first = at + j
        result[to + j * step : to + j * step + LANES] = source[first : first + (LANES - 1) * stride + 1 : stride]


@before_compiling
def _tell_numba() -> None:
    from pgcc.kernels import llvm  # noqa: F401 - it defines the operations above
