"""The distribution of a count, over scaled numbers: Σ_k Pr(evidence, |S ∩ T| = k)·t^k, with bounds.

In the homogenized circuit, z_i becomes t·z_i for the unobserved variables in T, and every value a polynomial in t with
scaled numbers as coefficients (`rings.kernels.counting`; for determinants, `determinants.poisson_binomial`).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pgcc.certify import budget
from pgcc.certify.certificate import rounding_bound
from pgcc.determinants.poisson_binomial import CountedDeterminants, Enclosed, Evaluator
from pgcc.errors import PrecisionError
from pgcc.evaluate.direct import Scaled
from pgcc.ir.circuit import Circuit
from pgcc.kernels.walk import instructions_of
from pgcc.program.program import LOWERED
from pgcc.rings.counts import Counts
from pgcc.rings.kernels.counting import Dets, plan_polynomials, run_polynomials
from pgcc.rings.kernels.scaled import RADIX
from pgcc.rings.values import Values

# The most coefficients in memory at a time.
_MOST_COEFFICIENTS = 1 << 28
_NO_DETS = (np.ones(0, np.int64), np.zeros(0, np.int64), np.zeros(0), np.zeros(0, np.int64))

Polynomial = tuple[np.ndarray, np.ndarray]  # mantissas, exponents of 2^256


class Counting:
    """The evaluator of counts of a decomposable circuit, over scaled numbers.

    Parameters
    ----------
    scaled : Scaled
        The evaluator over scaled numbers, with the program.
    dets : CountedDeterminants or None
        The determinants of the circuit; None if there are none, or counts are not possible for all of them.
    """

    def __init__(self, scaled: Scaled, dets: CountedDeterminants | None):
        self.scaled, self.dets = scaled, dets
        scaled.program.expect(*LOWERED)

    def evaluate(self, evidence: np.ndarray, rtol: float, counted: np.ndarray, atol: float | None) -> Counts:
        """The coefficients for int8 rows of evidence (1, 0, −1).

        counted : for every variable, whether it is in T. atol : the allowed absolute error, relative to the sum of the
        row's coefficients; None if only relative errors are allowed.
        """

        def count(codes: np.ndarray) -> tuple[Values, bool] | None:
            if self.scaled.program.has_det:
                found, lost = self._by_enclosures(codes, counted, rtol), 0.0
            else:
                found, lost = self._directly(codes, counted, atol)
            if found is None:
                return None
            return _certified(*found, lost), atol is not None and _error(*found, lost) <= budget.of_counts(atol)

        return Counts.by_row(evidence, counted, count)

    def _directly(
        self, codes: np.ndarray, counted: np.ndarray, atol: float | None
    ) -> tuple[tuple[Polynomial, Polynomial], float]:
        """The coefficients of one row, bounds on their errors, and the share of their sum that was cut off."""
        (value, magnitude), gamma, lost = self._run(codes, counted, _NO_DETS, atol)
        return (value, (magnitude[0] * (gamma / (1.0 - gamma)), magnitude[1])), lost

    def _by_enclosures(
        self, codes: np.ndarray, counted: np.ndarray, rtol: float
    ) -> tuple[Polynomial, Polynomial] | None:
        """The coefficients of one row, and bounds on their errors; None if a determinant's are unknown."""
        enclosed = None if self.dets is None else self.dets.enclose(codes, counted, budget.of_enclosure(rtol))
        return None if enclosed is None else self._between(codes, counted, enclosed)

    def _between(self, codes: np.ndarray, counted: np.ndarray, dets: list[Enclosed]) -> tuple[Polynomial, Polynomial]:
        """The coefficients of one row, between those with the lower and with the upper bounds of the determinants."""
        lengths = np.array([len(one.low[0]) for one in dets], np.int64)
        starts = np.cumsum([0, *lengths])[:-1].astype(np.int64)
        ends = [[one.low for one in dets], [one.high for one in dets]]
        runs = [
            self._run(codes, counted, (lengths, starts, *(np.concatenate(part) for part in zip(*end, strict=True))))
            for end in ends
        ]
        (low, _), gamma, _ = runs[0]
        (high, _), _, _ = runs[1]
        below = np.ldexp(low[0], _steps(low[1] - high[1]))
        value = (0.5 * (high[0] + below), high[1])
        # the true value is between low and high, both of which have rounding errors
        error = 1.5 * np.maximum(high[0] - below, 0.0) + 5.0 * gamma / (1.0 - gamma) * high[0]
        return value, (error, high[1])

    def _run(
        self, codes: np.ndarray, counted: np.ndarray, dets: tuple[np.ndarray, ...], atol: float | None = None
    ) -> tuple[list[Polynomial], float, float]:
        """The polynomials of value and magnitude, a bound on their relative rounding errors, and the share cut off."""
        program = self.scaled.program
        common = instructions_of(program), self.scaled.constants
        lengths, most = np.empty(program.instructions, np.int64), np.empty(program.slots, np.int64)
        rounds, all_cuts = np.zeros(program.slots), np.zeros(program.slots, np.int64)  # see `Sizes` of the kernels
        plan_polynomials(*common, dets[0], codes, counted, lengths, most, rounds, all_cuts)
        if most.sum() > _MOST_COEFFICIENTS:
            raise PrecisionError(
                f"the distribution of a count of {int(counted.sum())} variables takes {int(most.sum()):,} coefficients "
                "at a time: count fewer variables, or ask for its moments"
            )
        roots = np.array([program.value, program.magnitude])
        out_m, out_e = np.zeros((2, most[roots].max())), np.zeros((2, most[roots].max()), np.int64)
        # the shares that factors lose add up only if no term is negative
        cuts = int(all_cuts[program.value])
        cut = 0.0 if atol is None or program.signed else budget.of_cuts(atol, cuts)
        run_polynomials(*common, Dets(*dets), codes, lengths, most, cut, roots, out_m, out_e)
        # the slot of the root may have held longer polynomials before
        size = int((counted & (codes < 0)).sum()) + 1
        pair = [(out_m[r, :size], out_e[r, :size]) for r in range(2)]
        return pair, rounding_bound(float(rounds[roots].max())), 2.0 * cuts * cut


def find_counting(scaled: Scaled, homogenized: Circuit, compile: Callable[[Circuit], Evaluator]) -> Counting:
    """The evaluator of counts of a decomposable circuit; compile : makes the evaluator of a part of it."""
    program = scaled.float64.program
    return Counting(scaled, CountedDeterminants.of(program, homogenized, compile) if program.has_det else None)


def _steps(gap: np.ndarray) -> np.ndarray:
    """A difference of exponents of 2^256 as an exponent of 2 for `ldexp`; clipped where that gives 0 or inf anyway."""
    return (np.clip(gap, -8, 8) * RADIX).astype(np.int32)


def _certified(value: Polynomial, error: Polynomial, lost: float) -> Values:
    """Coefficients as values, given bounds on their absolute errors; unknown if some of their sum is lost."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        ratio = 1.0001 * np.ldexp(error[0] / np.abs(value[0]), _steps(error[1] - value[1]))
        bound = np.where((ratio < 1.0) & (lost == 0.0), ratio / (1.0 - ratio), np.inf)
    bound[(value[0] == 0.0) & (error[0] == 0.0) & (lost == 0.0)] = 0.0
    mantissa, binary = np.frexp(value[0])
    return Values(mantissa, np.where(mantissa == 0.0, 0, value[1] * RADIX + binary), bound)


def _error(value: Polynomial, error: Polynomial, lost: float) -> float:
    """A bound on the error of each coefficient divided by their sum, given how much of the true sum is lost.

    With errors e_k, which sum up to E, a true sum T, and |d_k| ≤ e_k + lost·T: the quotient is off by at most
    |d_k|/T + p_k·|Σ d|/T, where p_k is the quotient, and T is at least the sum that was computed less E.
    """
    top = np.max(np.where(value[0] == 0.0, -(2**40), value[1]), initial=-(2**40))
    with np.errstate(over="ignore", invalid="ignore"):  # an error may be far larger than a value
        values, errors = (np.ldexp(x[0], _steps(x[1] - top)) for x in (value, error))
        total, off = float(values.sum()), float(errors.sum())
        if not off < total:
            return np.inf
        least = total - off
        return 1.001 * float(errors.max() / least + lost + np.abs(values).max() / total * (off / least + lost))
