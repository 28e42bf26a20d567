"""Products of matrices of doubles without rounding errors, at the speed of BLAS: Ozaki's scheme.

A matrix is cut into slices of β bits. The products of entries of two slices are integers (times a power of 2 for every
row and column), n of which add up to less than 2^53, so BLAS multiplies slices without any rounding, in whatever order
it adds. Products are added up as sums of several doubles per entry. `large_definite` and `elementary`, which use it,
say how much faster than ball arithmetic that is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from pgcc.determinants.kernels.exact_sums import add_exactly
from pgcc.ir.numbers import UNIT

# Norms of nonnegative numbers are multiplied by this, which is more than their roundings for up to `MOST_ROWS` rows.
UP = 1.0 + 2.0**-30
MOST_ROWS = 1 << 20
# A bound on the underflow in one entry of a product.
TINY = 2.0**-900


class Sum(NamedTuple):
    """A matrix: the sum of its parts, large ones first, with an error of at most `error` in every entry."""

    parts: np.ndarray
    error: float

    @staticmethod
    def of(first: np.ndarray, count: int) -> Sum:
        """A matrix of doubles, with room for this many parts."""
        return Sum(np.stack([first, *np.zeros((count - 1, *first.shape))]), 0.0)

    @property
    def high(self) -> np.ndarray:
        """The part that is the matrix to the precision of doubles."""
        return self.parts[0]

    @property
    def low(self) -> np.ndarray:
        """The other parts, rounded."""
        return self.parts[1:].sum(axis=0)

    def copy(self) -> Sum:
        """A copy in memory of its own."""
        return Sum(self.parts.copy(), self.error)

    def plus(self, term: np.ndarray, error: float = 0.0) -> Sum:
        """The sum with one more term, in the same memory; `error` is that of the entries of the term."""
        lost = add_exactly(self.parts.reshape(len(self.parts), -1), term.reshape(-1))
        return Sum(self.parts, (self.error + lost + error) * UP)

    def norm(self) -> float:
        """At least the largest row sum of absolute values."""
        return (sum(map(row_sum, self.parts)) + self.parts.shape[1] * self.error) * UP


def cut(matrix: np.ndarray, axis: int, count: int = 8) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Slices of a matrix from the highest bits on, each with the rest of the matrix after it.

    With axis 1, the products of the slices with slices along axis 0 of another matrix are exact.
    """
    bits = (53 - math.ceil(math.log2(len(matrix)))) // 2
    exponent = np.frexp(np.abs(matrix).max(axis=axis, keepdims=True))[1]
    rest = matrix
    for i in range(1, count + 1):
        anchor = np.ldexp(1.5, 52 + exponent - bits * i)  # doubles near it are multiples of 2^(exponent − bits·i)
        part = (rest + anchor) - anchor
        rest = rest - part
        yield part, rest


def minus_product(R: Sum, A: np.ndarray, slices: Sequence[np.ndarray], loss: float) -> Sum:
    """R − A·X, in the memory of R, for an X in slices along axis 0; the rounding error of an entry is at most `loss`.

    A is cut until the rest of it may be multiplied in doubles.
    """
    X = -sum(slices, np.zeros_like(slices[0]))
    size = largest(X)
    for part, rest in cut(A, 1):
        for one in slices:
            R = R.plus(-(part @ one))
        lost = rounding(len(A)) * row_sum(rest) * size
        if lost <= loss:
            break
    return R.plus(rest @ X, lost * UP + TINY)


def largest(matrix: np.ndarray) -> float:
    """The largest absolute value of an entry."""
    return float(np.abs(matrix).max(initial=0.0))


def row_sum(matrix: np.ndarray) -> float:
    """The largest sum of absolute values of a row."""
    return float(np.abs(matrix).sum(axis=1).max(initial=0.0)) * UP


def rounding(n: int) -> float:
    """γ_n: a bound on the rounding error of a sum of n products, relative to the sum of their absolute values."""
    return n * UNIT / (1.0 - n * UNIT) * UP
