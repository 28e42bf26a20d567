"""Counts in balls and rationals: the circuit is evaluated over flint's polynomials, in t or in ε.

For the distribution of a count, z_i is t for the unobserved variables in T. In a circuit that is not homogenized, z_i
is t^(d + 1) for the variables observed in (the set A), where d is the largest degree that the variables in T can add.
Then the wanted coefficients are those of t^(|A|·(d + 1)) and the powers after it.

For the moments of a count N, z_i is 1 + ε, and only the first coefficients are kept: those of ε^k are E[C(N, k)], times
Pr(row), because E[t^N] at t = 1 + ε is E[Σ_k C(N, k)·ε^k]. This is linear in the circuit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from flint import arb, arb_poly, fmpq, fmpq_poly

from pgcc.errors import PrecisionError
from pgcc.exact.balls import fraction
from pgcc.exact.precision import FIRST_BITS, ZERO_BITS, ball_parts, doubled, flint_lock, fraction_parts, precision
from pgcc.exact.tape import Tape
from pgcc.exact.truncated import Truncated, expand
from pgcc.rings.counts import Counts
from pgcc.rings.exact_values import MOST_BITS, MOST_EXACT_BITS, Exact
from pgcc.rings.values import Values

# Rationals with fewer bits are computed as soon as a ball is uncertain: mostly, its value is 0.
_FEW_EXACT_BITS = 1 << 18
# The coefficients from which the first four moments follow.
_MOMENTS = 5


class CountingExact:
    """The evaluator of counts in balls and rationals."""

    def __init__(self, exact: Exact):
        self.exact = exact

    def evaluate(self, evidence: np.ndarray, rtol: float, counted: np.ndarray, atol: float | None) -> Counts:
        """The coefficients for int8 rows of evidence (1, 0, −1), each to `rtol`.

        counted : for every variable, whether it is in T. (An allowed absolute error saves nothing here.)
        """
        return Counts.by_row(evidence, counted, lambda codes: (self.coefficients(codes, counted, rtol), True))

    def coefficients(self, codes: np.ndarray, counted: np.ndarray, rtol: float) -> Values:
        """The coefficients of t^0, …, t^f for one row, with f its unobserved variables in T, each to `rtol`."""
        row, mask = codes.tolist(), counted.tolist()
        size = int((counted & (codes < 0)).sum()) + 1
        values = Values.empty(size)
        for bits in doubled(FIRST_BITS + size, MOST_BITS):
            with precision(bits):
                found = self._polynomial(self.exact.balls(bits), row, mask, size, arb, arb_poly)
                parts = [ball_parts(x) for x in found]
            for k, (mantissa, exponent, bound) in enumerate(parts):
                if bound < values.bound[k]:
                    values.mantissa[k], values.exponent[k], values.bound[k] = mantissa, exponent, bound
            if not len(values.uncertain(rtol)):
                return values
            if self.exact.exact_bits * size <= (_FEW_EXACT_BITS if bits < ZERO_BITS else MOST_EXACT_BITS):
                return self._fractions(row, mask, size)
        raise PrecisionError(
            f"a coefficient of the distribution of a count is still uncertain with {MOST_BITS} bits",
            advice="atol=1e-12 asks for absolute accuracy instead",
        )

    def _fractions(self, row: list[int], mask: list[bool], size: int) -> Values:
        with flint_lock:
            found = self._polynomial(self.exact.rationals, row, mask, size, fmpq, fmpq_poly)
        values = Values.empty(size)
        for k, x in enumerate(map(fmpq, found)):
            values.mantissa[k], values.exponent[k], values.bound[k] = fraction_parts(fraction(x))
        return values

    def moments(self, codes: np.ndarray, times: np.ndarray, rtol: float) -> tuple[float, float, float, float]:
        """Mean, variance, skewness and kurtosis of Σ_i times_i·X_i for one row: all digits that cancel are computed.

        To `rtol`, but for the skewness, which is off by at most rtol·√kurtosis. The last two are NaN without variance.
        """
        observed = int(times[codes == 1].sum())

        def read(expansions: list[list[Any]]) -> tuple[float, float, float, float] | None:
            mean, variance, third, fourth = map(arb, _central(expansions[0]))
            if variance == 0:
                return float(mean + observed), 0.0, math.nan, math.nan
            kurtosis = fourth / variance**2
            skewness = third / (variance * variance.sqrt())
            bounds = [ball_parts(x)[2] for x in (mean + observed, variance, kurtosis)]
            if max(bounds) <= rtol and skewness.rad() <= rtol * kurtosis.sqrt():
                return float(mean + observed), float(variance), float(skewness), float(kurtosis)
            return None

        return self._expanded(codes, [times], read)

    def covariance(self, codes: np.ndarray, one: np.ndarray, other: np.ndarray, rtol: float) -> float:
        """Cov(Σ_i one_i·X_i, Σ_i other_i·X_i) for one row, off by at most `rtol` times both standard deviations.

        By polarisation: 2·Cov(M, N) = Var(M + N) − Var(M) − Var(N).
        """

        def read(expansions: list[list[Any]]) -> float | None:
            both, first, second = (arb(_central(c)[1]) for c in expansions)
            found = (both - first - second) / 2
            return float(found) if found.is_exact() or found.rad() <= rtol * (first * second).sqrt() else None

        return self._expanded(codes, [one + other, one, other], read)

    def _expanded(
        self, codes: np.ndarray, counts: Sequence[np.ndarray], read: Callable[[list[list[Any]]], Any | None]
    ) -> Any:
        """What `read` finds in the first coefficients, in ε, of some counts N = Σ_i times_i·X_i, for one row.

        counts : for every count, how many times each variable counts; those that are observed do not. read : returns
        None for balls that are not accurate enough; more accurate ones are computed then, or rationals in the end.
        """
        row, exact = codes.tolist(), self.exact
        several = [np.where(codes < 0, times, 0).tolist() for times in counts]

        def expand(tape: Tape, number: Any, poly: Any) -> Any | None:
            return read([self._polynomial(tape, row, t, _MOMENTS, number, poly, origin=1) for t in several])

        for bits in doubled(FIRST_BITS, MOST_BITS):
            with precision(bits):
                if bits > ZERO_BITS and exact.exact_bits * _MOMENTS <= MOST_EXACT_BITS:
                    found = expand(exact.rationals, fmpq, fmpq_poly)
                else:
                    found = expand(exact.balls(bits), arb, arb_poly)
            if found is not None:
                return found
        raise PrecisionError(
            f"a moment of a count is still uncertain with {MOST_BITS} bits", advice="rtol=1e-6 accepts a larger error"
        )

    def _polynomial(
        self, tape: Tape, codes: list[int], times: Sequence[int], size: int, number: Any, poly: Any, origin: int = 0
    ) -> list[Any]:
        """The first `size` coefficients, in a ring with these classes of numbers and of polynomials.

        times : how many times each variable counts. origin : 0 for coefficients of powers of t, 1 for those of ε.
        """
        exact = self.exact
        if exact.homogeneous:
            first, stride = 0, 0
        else:
            degree = sum(count for count, code in zip(times, codes, strict=True) if code < 0)
            stride = 1 + (degree if exact.degree is None else max(degree, exact.degree * max(times)))
            first = sum(code == 1 for code in codes) * stride
        length = first + size
        zero, one = number(0), number(1)
        t, inside = Truncated(poly([origin, 1]), length), one
        if stride:
            inside = Truncated(poly([0] * stride + [1]), length)
        literals: dict[tuple[str, bool], Any] = {}
        for name, code, count in zip(exact.circuit.variables, codes, times, strict=True):
            literals[name, False] = inside if code == 1 else zero if code == 0 else math.prod([t] * count, start=one)
            literals[name, True] = zero if code == 1 and exact.homogeneous else one
        found = expand(tape, literals, length, poly)[first:]
        return found + [zero] * (size - len(found))


def _central(c: Sequence[Any]) -> tuple[Any, Any, Any, Any]:
    """The mean and the central moments of a count, given the coefficients E[C(N, k)] · c_0 of ε^k.

    >>> _central([1.0, 1.0, 0.25, 0.0, 0.0])  # of two fair coins
    (1.0, 0.5, 0.0, 0.5)
    """
    first, second, third, fourth = (factor * x / c[0] for factor, x in zip((1, 2, 6, 24), c[1:], strict=True))
    # E[N^k] from the factorial moments E[N·(N − 1)·…·(N − k + 1)]
    a, b = first, second + first
    d, e = third + 3 * second + first, fourth + 6 * third + 7 * second + first
    return a, b - a**2, d - 3 * a * b + 2 * a**3, e - 4 * a * d + 6 * a**2 * b - 3 * a**4
