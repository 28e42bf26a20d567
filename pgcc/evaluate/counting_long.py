"""Long distributions of a count, to an absolute error: 4–12× faster than `counting` for 2,000–20,000 steps of an HMM.

(12–75× for as many independent variables.) A monotone program runs over polynomials without their negligible tails
(`kernels.counting_long`): if n variables are not too dependent, the distribution of their count has about √n
coefficients that are not negligible. Products are balanced; two long polynomials are multiplied by FFT.

The error of a product by FFT is in `pgcc.rings.fourier`. Errors in the 2-norm are relative to the coefficients' sum.
Since ‖ã·b̃ − a·b‖₂ ≤ ‖ã − a‖₂·Σb̃ + Σa·‖b̃ − b‖₂ (Young), the relative errors of a and b add up, but for a factor
Σb̃ / Σb, which is at most 1 + √n·‖b̃ − b‖₂/Σb for n coefficients. No value has more coefficients than the root, so all
such factors together are at most exp(√n · losses of the root), which is next to 1, or the result is not used.
"""

from __future__ import annotations

import math

import numpy as np

from pgcc.certify import budget
from pgcc.certify.certificate import rounding_bound
from pgcc.errors import PrecisionError
from pgcc.evaluate.direct import Scaled
from pgcc.evaluate.kernels.counting_long import Evidence, LongValues, Pieces, fold_product, put, run_long
from pgcc.kernels.walk import instructions_of
from pgcc.program.program import ARITHMETIC, TIMES
from pgcc.rings.counts import Counts
from pgcc.rings.fourier import multiply
from pgcc.rings.kernels.counting import plan_polynomials
from pgcc.rings.kernels.scaled import RADIX, Constants
from pgcc.rings.values import Values

_MOST_COEFFICIENTS = 1 << 28
_LEAST_EXPONENT = -(2**42)  # of 0, as an exponent of 2^256
# The largest error that is accepted, so that products of errors are at most 1 % of it.
_FIRST_ORDER = 0.001
_NO_DETS = np.ones(0, np.int64)


def find_long(scaled: Scaled) -> LongCounts | None:
    """The evaluator of long counts; None unless the program is monotone, and so without determinants."""
    return None if scaled.program.signed else LongCounts(scaled)


class LongCounts:
    """The evaluator of long counts, to an absolute error, of a monotone program without determinants."""

    def __init__(self, scaled: Scaled):
        self.scaled = scaled

    def evaluate(self, evidence: np.ndarray, rtol: float, counted: np.ndarray, atol: float | None) -> Counts:
        """The coefficients, divided by their sum, for int8 rows of evidence (1, 0, −1).

        counted : for every variable, whether it is in T. Rows whose errors exceed `atol` are unknown.
        """
        assert atol is not None

        def count(codes: np.ndarray) -> tuple[Values, bool] | None:
            found, off = LongCounting(self.scaled, codes, counted, atol).run()
            if not off <= atol:
                return None
            bound = np.where(found > 2.0 * off, 2.0 * off / np.maximum(found, off), np.inf)
            return Values(found, np.zeros(len(found), np.int64), bound), True

        return Counts.by_row(evidence, counted, count)


class LongCounting:
    """The distribution of a count for one row of evidence, in a monotone program without determinants."""

    def __init__(self, scaled: Scaled, codes: np.ndarray, counted: np.ndarray, atol: float):
        program = self.program = scaled.program.expect(*ARITHMETIC)
        constants = scaled.constants
        weights, weight_exponents, leaf_variable, table, table_exponents = constants
        binary = [np.maximum(e, _LEAST_EXPONENT) * RADIX for e in (weight_exponents, table_exponents)]
        self.weights, self.weight_exponents = weights, binary[0]
        lengths, capacity = np.empty(program.instructions, np.int64), np.empty(program.slots, np.int64)
        count = np.zeros(program.slots)
        plan_polynomials(instructions_of(program), constants, _NO_DETS, codes, counted, lengths, capacity, count)
        if capacity.sum() > _MOST_COEFFICIENTS:
            raise PrecisionError(
                f"the distribution of a count of {int(counted.sum())} variables takes {int(capacity.sum()):,} "
                "coefficients at a time: count fewer variables"
            )
        self.size = int((counted & (codes < 0)).sum()) + 1
        slots = program.slots
        # tails are cut off at most once for every instruction, and once for every product in it
        self.cut = budget.of_cuts(atol, program.instructions + program.operations)
        self.offset = np.concatenate([[0], np.cumsum(capacity)])
        self.pool = np.zeros(int(self.offset[-1]))
        self.lows, self.lengths, self.exponents = (np.zeros(slots, np.int64) for _ in range(3))
        self.rounds, self.losses = np.zeros(slots), np.zeros(slots)
        factors = int(np.diff(program.start).max(initial=1))
        longest = int(capacity.max(initial=1)) + factors
        starts, sizes = np.zeros(factors + 1, np.int64), np.zeros(factors + 1, np.int64)
        self.memory = Pieces(starts, sizes, np.zeros(longest + 2 * factors), np.zeros(longest))
        self.constants = Constants(weights, binary[0], leaf_variable, table, binary[1])
        self.evidence = Evidence(codes, counted)

    @property
    def _values(self) -> LongValues:
        return LongValues(self.offset, self.pool, self.lows, self.lengths, self.exponents, self.rounds, self.losses)

    def run(self) -> tuple[np.ndarray, float]:
        """The coefficients divided by their sum, and a bound on the absolute error of each."""
        at, end = 0, self.program.instructions
        while at < end:
            code = instructions_of(self.program)
            at = run_long(code, self.constants, self.evidence, at, self.cut, self._values, self.memory)
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
        gamma, lost = rounding_bound(float(self.rounds[root]) + 64.0), float(self.losses[root])
        top = float(result.max())
        # the error of the sum is at most √n times that in the 2-norm, where n includes coefficients that were cut off
        in_sum = lost * math.sqrt(self.size)
        if not gamma + in_sum <= _FIRST_ORDER:
            return result, math.inf
        return result, 1.01 * (2.0 * gamma * top + lost + top * in_sum)

    def _instruction(self, i: int) -> None:
        """Run an instruction that multiplies two long polynomials."""
        program = self.program
        first, last, target = int(program.start[i]), int(program.start[i + 1]), int(program.target[i])
        if program.op[i] == TIMES:
            factors = program.args[first:last]
            count, low, exponent, rounded, lost = fold_product(factors, self.cut, self._values, self.memory)
            starts, sizes, buffer, _ = self.memory
            parts = [buffer[s : s + n].copy() for s, n in zip(starts[:count], sizes[:count], strict=True)]
            product, binary, more = _balanced_product(parts)
            self._put(product, low, exponent + binary, rounded, lost + more, target)
            return
        terms: list[tuple[np.ndarray, int, int]] = []
        lost = rounded = 0.0
        weight, (values, pairs) = int(program.first_weight[i]), program.terms(i)
        for k, x in enumerate(values.tolist(), weight):
            exponent = int(self.weight_exponents[k] + self.exponents[x])
            terms.append((self.weights[k] * self._polynomial(x), int(self.lows[x]), exponent))
            lost, rounded = max(lost, float(self.losses[x])), max(rounded, float(self.rounds[x]) + 4.0)
        for k, (x, y) in enumerate(pairs.tolist(), weight + len(values)):
            product, more = _product(self._polynomial(x), self._polynomial(y))
            exponent = int(self.weight_exponents[k] + self.exponents[x] + self.exponents[y])
            terms.append((self.weights[k] * product, int(self.lows[x] + self.lows[y]), exponent))
            lost = max(lost, (1.0 + self.losses[x]) * (1.0 + self.losses[y]) - 1.0 + more)
            rounded = max(rounded, self.rounds[x] + self.rounds[y] + 8.0)
        self._put(*_added(terms), rounded + len(terms), lost, target)

    def _polynomial(self, slot: int) -> np.ndarray:
        return self.pool[self.offset[slot] : self.offset[slot] + self.lengths[slot]]

    def _put(self, c: np.ndarray, low: int, exponent: int, rounded: float, lost: float, slot: int) -> None:
        put(c, low, exponent, float(rounded), float(lost), self.cut, slot, self._values)


def _product(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, float]:
    """a·b, without negative coefficients, and a bound on its error in the 2-norm, relative to Σa·Σb."""
    product, off = multiply(a, b)
    size = float(a.sum()) * float(b.sum())
    return np.maximum(product, 0.0), 1.01 * off / size if size else 0.0


def _balanced_product(parts: list[np.ndarray]) -> tuple[np.ndarray, int, float]:
    """The product of all, neighbours first, as a polynomial and an exponent of 2; and a bound on its error."""
    exponent, lost = 0, 0.0
    while len(parts) > 1:
        products = []
        for a, b in zip(parts[::2], parts[1::2], strict=False):
            product, off = _product(a, b)
            binary = math.frexp(float(product.sum()))[1]
            products.append(np.ldexp(product, -binary))
            exponent, lost = exponent + binary, lost + off
        parts = products + parts[2 * len(products) :]
    return parts[0], exponent, lost


def _added(terms: list[tuple[np.ndarray, int, int]]) -> tuple[np.ndarray, int, int]:
    """Σ 2^exponent · t^low · c"""
    top = max(exponent for _, _, exponent in terms)
    low, high = min(low for _, low, _ in terms), max(low + len(c) for c, low, _ in terms)
    total = np.zeros(high - low)
    for c, start, exponent in terms:
        total[start - low : start - low + len(c)] += c * math.ldexp(1.0, max(exponent - top, -2000))
    return total, low, top
