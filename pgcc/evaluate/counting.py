"""How many of some variables are in: Σ_k Pr(evidence, |S ∩ T| = k)·t^k, every coefficient with a bound.

In the homogenised circuit z_i becomes t·z_i for the free variables of T, and every value a polynomial in t. These run
in scaled float64 with a bound for each coefficient (see `kernels.counting`; determinants: see `counting_det`). The
coefficients that this cannot promise are computed in balls or as fractions (`counting_exact`).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pgcc.certify import budget
from pgcc.determinants.counting import CountedDeterminants, Enclosed, Evaluator
from pgcc.errors import PrecisionError
from pgcc.evaluate.counting_exact import CountingExact
from pgcc.evaluate.counting_long import LongCounting
from pgcc.ir.circuit import Circuit
from pgcc.program.program import LOWERED
from pgcc.rings.balls import Exact
from pgcc.rings.direct import Scaled
from pgcc.rings.kernels.counting import Dets, plan_polynomials, run_polynomials
from pgcc.rings.kernels.scaled import RADIX
from pgcc.rings.kernels.walk import instructions_of
from pgcc.rings.values import Values, rounding_bound

# Coefficients that are kept at a time.
_MOST_COEFFICIENTS = 1 << 28
# With an absolute error allowed, more variables than this are counted without the negligible ends of distributions.
_LONG = 1024
_NO_DETS = (np.ones(0, np.int64), np.zeros(0, np.int64), np.zeros(0), np.zeros(0, np.int64))

Polynomial = tuple[np.ndarray, np.ndarray]  # mantissas, exponents of 2^256


class Counting:
    """The polynomials in t of one circuit.

    Parameters
    ----------
    exact : Exact
        Balls and rationals.
    scaled : Scaled, optional
        The scaled numbers of a decomposable circuit.
    dets : CountedDeterminants, optional
        The determinants of it, if they can all be counted.
    """

    def __init__(self, exact: Exact, scaled: Scaled | None = None, dets: CountedDeterminants | None = None):
        self.exact, self.scaled, self.dets = CountingExact(exact), scaled, dets
        if scaled is not None:
            scaled.program.expect(*LOWERED)

    def coefficients(self, evidence: np.ndarray, counted: np.ndarray, rtol: float, atol: float | None = None) -> Values:
        """The coefficients of t^0, …, t^|T| for int8 rows of evidence, one row after another, each to `rtol`.

        counted : for every variable, whether it is in T. atol : an error that is small enough too, relative to the sum
        of the row's coefficients.
        """
        size = int(counted.sum()) + 1
        values = Values.empty(len(evidence) * size)
        values.bound[:] = 0.0  # what is not written is exactly 0
        for row, codes in enumerate(evidence):
            found = self._row(codes, counted, rtol, atol)
            first = row * size + int((counted & (codes == 1)).sum())  # what is observed in counts
            values.put(slice(first, first + len(found.bound)), found)
        return values

    def _row(self, codes: np.ndarray, counted: np.ndarray, rtol: float, atol: float | None) -> Values:
        scaled = self.scaled
        long_count = atol is not None and (counted & (codes < 0)).sum() > _LONG
        if long_count and scaled is not None and not scaled.program.signed:
            assert atol is not None
            long, off = LongCounting(scaled, codes, counted, atol).run()
            if off <= atol:
                bound = np.where(long > 2.0 * off, 2.0 * off / np.maximum(long, off), np.inf)
                return Values(long, np.zeros(len(long), np.int64), bound)
        found = self._in_float64(codes, counted, rtol)
        if found is not None:
            values = _certified(*found)
            if (values.bound <= rtol).all() or (atol is not None and _total_error(*found) <= 0.5 * atol):
                return values
        return self.exact.coefficients(codes, counted, rtol)

    # -- float64 --------------------------------------------------------------------------------------

    def _in_float64(self, codes: np.ndarray, counted: np.ndarray, rtol: float) -> tuple[Polynomial, Polynomial] | None:
        """The coefficients, and what they can be off by; None if there is no way."""
        if self.scaled is None:
            return None
        if not self.scaled.program.has_det:
            (value, magnitude), gamma = self._run(self.scaled, codes, counted, _NO_DETS)
            return value, (magnitude[0] * (gamma / (1.0 - gamma)), magnitude[1])
        if self.dets is None:
            return None
        enclosed = self.dets.enclose(codes, counted, budget.of_enclosure(rtol))
        return None if enclosed is None else self._between(self.scaled, codes, counted, enclosed)

    def _between(
        self, scaled: Scaled, codes: np.ndarray, counted: np.ndarray, dets: list[Enclosed]
    ) -> tuple[Polynomial, Polynomial]:
        """What lies between the results with the least and with the largest polynomials of the determinants."""
        lengths = np.array([len(one.low[0]) for one in dets], np.int64)
        starts = np.cumsum([0, *lengths])[:-1].astype(np.int64)
        ends = [[one.low for one in dets], [one.high for one in dets]]
        runs = [
            self._run(
                scaled, codes, counted, (lengths, starts, *(np.concatenate(part) for part in zip(*end, strict=True)))
            )
            for end in ends
        ]
        (low, _), gamma = runs[0]
        (high, _), _ = runs[1]
        below = np.ldexp(low[0], _steps(low[1] - high[1]))
        value = (0.5 * (high[0] + below), high[1])
        # the true one is within (high − low) of low, whatever its sign; and all of these are rounded
        error = 1.5 * np.maximum(high[0] - below, 0.0) + 5.0 * gamma / (1.0 - gamma) * high[0]
        return value, (error, high[1])

    def _run(
        self, scaled: Scaled, codes: np.ndarray, counted: np.ndarray, dets: tuple[np.ndarray, ...]
    ) -> tuple[list[Polynomial], float]:
        """The polynomials of value and magnitude, and the relative error to which they are computed."""
        program = scaled.program
        code, constants = instructions_of(program), scaled.constants
        lengths, room = np.empty(program.instructions, np.int64), np.empty(program.slots, np.int64)
        count = np.zeros(program.slots)
        plan_polynomials(code, constants, dets[0], codes, counted, lengths, room, count)
        if room.sum() > _MOST_COEFFICIENTS:
            raise PrecisionError(
                f"the distribution of a count of {int(counted.sum())} variables to a relative error takes "
                f"{int(room.sum()):,} coefficients at a time: with atol=1e-10 the small ones are left away"
            )
        roots = np.array([program.value, program.magnitude])
        out_m, out_e = np.zeros((2, room[roots].max())), np.zeros((2, room[roots].max()), np.int64)
        run_polynomials(code, constants, Dets(*dets), codes, lengths, room, roots, out_m, out_e)
        # a slot may have held longer polynomials than that of the root
        size = int((counted & (codes < 0)).sum()) + 1
        pair = [(out_m[r, :size], out_e[r, :size]) for r in range(2)]
        return pair, rounding_bound(float(count[roots].max()))


def find_counting(
    exact: Exact, scaled: Scaled, homogenized: Circuit, compile: Callable[[Circuit], Evaluator]
) -> Counting:
    """That of a decomposable circuit; compile : what evaluates a part of it."""
    dets = CountedDeterminants.of(homogenized, compile) if scaled.program.has_det else None
    return Counting(exact, scaled, dets)


def _steps(gap: np.ndarray) -> np.ndarray:
    """So many times 2^256, as an exponent of two that `ldexp` takes: past four of them nothing is left, or too much."""
    return (np.clip(gap, -8, 8) * RADIX).astype(np.int32)


def _certified(value: Polynomial, error: Polynomial) -> Values:
    """Values with bounds on their relative errors."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        ratio = 1.0001 * np.ldexp(error[0] / np.abs(value[0]), _steps(error[1] - value[1]))
        bound = np.where(ratio < 1.0, ratio / (1.0 - ratio), np.inf)
    bound[(value[0] == 0.0) & (error[0] == 0.0)] = 0.0
    mantissa, binary = np.frexp(value[0])
    return Values(mantissa, np.where(mantissa == 0.0, 0, value[1] * RADIX + binary), bound)


def _total_error(value: Polynomial, error: Polynomial) -> float:
    """The sum of the errors over the sum of the values."""
    top = np.max(np.where(value[0] == 0.0, -(2**40), value[1]), initial=-(2**40))
    with np.errstate(over="ignore"):  # an error may be far larger
        total, off = (float(np.ldexp(x[0], _steps(x[1] - top)).sum()) for x in (value, error))
    return off / (total - off) if off < total else np.inf
