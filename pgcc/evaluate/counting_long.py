"""Long distributions of a count, to an absolute error: divide and conquer, with fast Fourier transforms.

A monotone program runs over polynomials without their negligible ends (`kernels.counting_long`): of a count of n
variables that are not too dependent some √n coefficients are left, so that an instruction costs that much. Products of
two polynomials that are both long are taken by FFT.

The error. For a and b with Σ|a_k| ≤ 1, Σ|b_k| ≤ 1 and transforms that are off by ε in the 2-norm, relatively, a·b by
FFT is off by ε·(‖a‖₂ + 2·‖b‖₂) there, and so no coefficient by more. ε = 7·log2(M)·2⁻⁵³ for M points is what transforms
of radix 2 with accurate twiddle factors keep (Higham, Accuracy and Stability, §24.1); pocketfft's are not worse.
"""

from __future__ import annotations

import math

import numpy as np

from pgcc.errors import PrecisionError
from pgcc.evaluate.kernels.counting_long import fold_product, put, run_long
from pgcc.ir.numbers import UNIT
from pgcc.program.program import MORE, SUM, TIMES
from pgcc.rings.direct import Scaled
from pgcc.rings.kernels.counting import plan_polynomials
from pgcc.rings.kernels.scaled import RADIX
from pgcc.rings.values import rounding_bound

_MOST_COEFFICIENTS = 1 << 28
_NO_DETS = np.ones(0, np.int64)


class LongCounting:
    """The distribution of a count for one row of evidence, in a monotone program without determinants."""

    def __init__(self, scaled: Scaled, codes: np.ndarray, counted: np.ndarray, atol: float):
        program = self.program = scaled.program
        op, target, start, args, first_weight, _, leaf_variable, _ = program.arrays
        weights, weight_exponents, table, table_exponents = scaled.constants
        most = -(2**50)  # 0 has no exponent
        binary = [np.maximum(e * RADIX, most) for e in (weight_exponents, table_exponents)]
        self.weights, self.weight_exponents = weights, binary[0]
        lengths, room = np.empty(program.instructions, np.int64), np.empty(program.slots, np.int64)
        plan_polynomials(
            op, target, start, args, leaf_variable, table, _NO_DETS, codes, counted,
            lengths, room, np.zeros(program.slots),
        )  # fmt: skip
        if room.sum() > _MOST_COEFFICIENTS:
            raise PrecisionError(
                f"the distribution of a count of {int(counted.sum())} variables takes {int(room.sum()):,} coefficients "
                "at a time: count fewer variables"
            )
        self.size = int((counted & (codes < 0)).sum()) + 1
        slots = program.slots
        # so many times something can be cut off below the root: once at most for everything that is computed
        self.cut = atol / (16.0 * (program.instructions + program.operations))
        self.offset = np.concatenate([[0], np.cumsum(room)])
        self.pool = np.zeros(int(self.offset[-1]))
        self.lows, self.lengths, self.exponents = (np.zeros(slots, np.int64) for _ in range(3))
        self.rounds, self.losses = np.zeros(slots), np.zeros(slots)
        factors = int(np.diff(start).max(initial=1))
        longest = int(room.max(initial=1)) + factors
        self.pieces = np.zeros(factors + 1, np.int64), np.zeros(factors + 1, np.int64)
        self.buffer, self.scratch = np.zeros(longest + 2 * factors), np.zeros(longest)
        self.constants = (
            op, target, start, args, first_weight, weights, leaf_variable, table, *binary, codes, counted
        )  # fmt: skip

    @property
    def _values(self) -> tuple[np.ndarray, ...]:
        return self.offset, self.pool, self.lows, self.lengths, self.exponents, self.rounds, self.losses

    def run(self) -> tuple[np.ndarray, float]:
        """The coefficients divided by their sum, and an absolute error that none of them exceeds."""
        at, end = 0, self.program.instructions
        while at < end:
            at = run_long(*self.constants, at, self.cut, *self._values, *self.pieces, self.buffer, self.scratch)
            if at < end:
                self._instruction(at)
                at += 1
        root, result = self.program.value, np.zeros(self.size)
        low, length, first = self.lows[root], self.lengths[root], self.offset[root]
        result[low : low + length] = self.pool[first : first + length]
        total = result.sum()
        if not total > 0.0:
            return result, math.inf
        result /= total
        gamma, top = rounding_bound(float(self.rounds[root]) + 64.0), float(result.max())
        # the sum is off by √length times what the 2-norm is, at most
        lost = float(self.losses[root]) * (1.0 + top * math.sqrt(length))
        return result, 1.01 * (2.0 * gamma * top + lost)

    def _instruction(self, i: int) -> None:
        """One with a product of two long polynomials."""
        program = self.program
        first, last, target = int(program.start[i]), int(program.start[i + 1]), int(program.target[i])
        if program.op[i] == TIMES:
            count, low, exponent, rounded, lost = fold_product(
                program.args[first:last], self.cut, *self._values, *self.pieces, self.buffer, self.scratch
            )
            starts, sizes = self.pieces
            parts = [self.buffer[s : s + n].copy() for s, n in zip(starts[:count], sizes[:count], strict=True)]
            product, more = _balanced_product(parts)
            self._put(product, low, exponent, rounded, lost + more, target)
            return
        terms: list[tuple[np.ndarray, int, int]] = []
        lost = rounded = 0.0
        if program.op[i] == MORE:
            terms.append((self._polynomial(target), int(self.lows[target]), int(self.exponents[target])))
            lost, rounded = float(self.losses[target]), float(self.rounds[target])
        stride = 1 if program.op[i] == SUM else 2
        for k, j in enumerate(range(first, last, stride), int(program.first_weight[i])):
            x, y = program.args[j], program.args[j + 1]
            product, more = multiply(self._polynomial(x), self._polynomial(y))
            exponent = int(self.weight_exponents[k] + self.exponents[x] + self.exponents[y])
            terms.append((self.weights[k] * product, int(self.lows[x] + self.lows[y]), exponent))
            lost = max(lost, (1.0 + self.losses[x]) * (1.0 + self.losses[y]) - 1.0 + more)
            rounded = max(rounded, self.rounds[x] + self.rounds[y] + 8.0)
        self._put(*_added(terms), rounded + len(terms), lost, target)

    def _polynomial(self, slot: int) -> np.ndarray:
        return self.pool[self.offset[slot] : self.offset[slot] + self.lengths[slot]]

    def _put(self, c: np.ndarray, low: int, exponent: int, rounded: float, lost: float, slot: int) -> None:
        offset, pool, *rest = self._values
        put(c, low, exponent, float(rounded), float(lost), self.cut, slot, offset, pool, *rest)


def multiply(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, float]:
    """a·b, and what it is off by in the 2-norm, relative to Σa·Σb; without negative coefficients."""
    size = len(a) + len(b) - 1
    points = 1 << (size - 1).bit_length()
    product = np.fft.irfft(np.fft.rfft(a, points) * np.fft.rfft(b, points), points)[:size]
    epsilon = 7.0 * UNIT * math.log2(points) + 4.0 * UNIT
    norms = [float(np.linalg.norm(x)) / float(x.sum()) for x in (a, b)]
    return np.maximum(product, 0.0), 1.01 * epsilon * (max(norms) * 2.0 + min(norms))


def _balanced_product(parts: list[np.ndarray]) -> tuple[np.ndarray, float]:
    """The product of all, neighbours first, and what it is off by."""
    lost = 0.0
    while len(parts) > 1:
        pairs = [multiply(a, b) for a, b in zip(parts[::2], parts[1::2], strict=False)]
        lost += sum(off for _, off in pairs)
        parts = [product for product, _ in pairs] + parts[2 * len(pairs) :]
    return parts[0], 1.01 * lost


def _added(terms: list[tuple[np.ndarray, int, int]]) -> tuple[np.ndarray, int, int]:
    """Σ 2^exponent · t^low · c"""
    top = max(exponent for _, _, exponent in terms)
    low, high = min(low for _, low, _ in terms), max(low + len(c) for c, low, _ in terms)
    total = np.zeros(high - low)
    for c, start, exponent in terms:
        total[start - low : start - low + len(c)] += c * math.ldexp(1.0, max(exponent - top, -2000))
    return total, low, top
