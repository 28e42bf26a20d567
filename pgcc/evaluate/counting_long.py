"""Long distributions of a count, to an absolute error: 4–16× faster than `counting` for 2,000–20,000 steps of an HMM.

(29–400× for as many independent variables.) A monotone program runs over polynomials without their negligible tails
(`rings.kernels.counting_long`): if n variables are not too dependent, the distribution of their count has about √n
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
from pgcc.evaluate.counting import plan_counts
from pgcc.evaluate.direct import Scaled
from pgcc.kernels.walk import instructions_of
from pgcc.program.program import ARITHMETIC, TIMES
from pgcc.rings.counts import Counts
from pgcc.rings.fourier import multiply
from pgcc.rings.kernels.counting_long import (
    SHORT,
    LongPolynomials,
    Pieces,
    add_term,
    product_errors,
    run_long_polynomials,
    write,
    write_sum,
)
from pgcc.rings.kernels.scaled import RADIX, Constants
from pgcc.rings.values import Values

_LEAST_EXPONENT = -(2**42)  # of 0, as an exponent of 2^256
# The largest error that is accepted, so that products of errors are at most 1 % of it.
_FIRST_ORDER = 0.001


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
        plan = plan_counts(scaled, codes, counted)
        plan.check("count fewer variables")
        self.size = plan.free + 1
        # tails are cut off at most once for every instruction, and once for every product in it
        cut = budget.of_cuts(atol, program.instructions + program.operations)
        offset = np.concatenate([[0], np.cumsum(plan.most)])
        lows, lengths, exponents = np.zeros((3, program.slots), np.int64)
        rounds, losses = np.zeros((2, program.slots))
        factors, longest = int(np.diff(program.start).max(initial=1)), int(plan.most.max(initial=1))
        starts, sizes = np.zeros((2, factors + 1), np.int64)
        room = longest + 3 * factors
        # fmt: off
        self.system = LongPolynomials(
            _binary_exponents(scaled.constants), codes, counted, cut, offset, np.zeros(int(offset[-1])),
            lows, lengths, exponents, rounds, losses,
            pieces=Pieces(np.zeros(1, np.int64), starts, sizes, np.zeros(room), np.zeros(room)),
            unfinished_sum=np.zeros(longest), terms=np.zeros(1), waiting=np.zeros(1, np.int64), one=np.ones(1),
        )
        # fmt: on

    def run(self) -> tuple[np.ndarray, float]:
        """The coefficients divided by their sum, and a bound on the absolute error of each."""
        code, at, end = instructions_of(self.program), 0, self.program.instructions
        while at < end:
            at = run_long_polynomials(code, self.system, at)
            if at < end:
                self._finish(at)
                at += 1
        system, root, result = self.system, self.program.value, np.zeros(self.size)
        low, length = system.lows[root], system.lengths[root]
        result[low : low + length] = self._coefficients(root)
        total = result.sum()
        if not total > 0.0:
            return result, math.inf
        result /= total
        gamma, lost = rounding_bound(float(system.rounds[root]) + 64.0), float(system.losses[root])
        top = float(result.max())
        # the error of the sum is at most √n times that in the 2-norm, where n includes coefficients that were cut off
        in_sum = lost * math.sqrt(self.size)
        if not gamma + in_sum <= _FIRST_ORDER:
            return result, math.inf
        return result, 1.01 * (2.0 * gamma * top + lost + top * in_sum)

    def _finish(self, i: int) -> None:
        """Multiply the long polynomials for which instruction i waits, by fast Fourier transforms, and complete it."""
        system, at = self.system, int(self.program.target[i])
        if self.program.op[i] == TIMES:
            filled, starts, sizes, buffer, _ = system.pieces
            pieces = [buffer[starts[p] : starts[p] + sizes[p]] for p in range(filled[0])]
            product, exponent, lost = _balanced_product(pieces)
            system.exponents[at] += exponent
            system.losses[at] += lost
            write(system, at, product)
        else:
            values, pairs = self.program.terms(i)
            for k, (x, y) in enumerate(pairs.tolist(), int(self.program.first_weight[i]) + len(values)):
                if min(system.lengths[x], system.lengths[y]) > SHORT:
                    self._add_long_product(at, k, x, y)
            write_sum(system, at)
        system.waiting[0] = 0

    def _add_long_product(self, at: int, k: int, x: int, y: int) -> None:
        """Add weight number k times slots x and y to the unfinished sum."""
        system = self.system
        product, more = _product(self._coefficients(x), self._coefficients(y))
        power = int(system.lows[x] + system.lows[y]), int(system.exponents[x] + system.exponents[y])
        rounded, lost = product_errors(system, x, y)
        add_term(system, at, k, power, (system.one, product), (rounded + 4.0, lost + more))

    def _coefficients(self, slot: int) -> np.ndarray:
        first = self.system.offset[slot]
        return self.system.pool[first : first + self.system.lengths[slot]]


def _binary_exponents(constants: Constants) -> Constants:
    """The same numbers with exponents of 2, not of 2^256."""
    exponents = constants.weight_exponents, constants.leaf_exponents
    weights, leaves = [np.maximum(e, _LEAST_EXPONENT) * RADIX for e in exponents]
    return constants._replace(weight_exponents=weights, leaf_exponents=leaves)


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
