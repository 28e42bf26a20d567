"""The distribution of |S ∩ T|, how many of some variables are in, given evidence."""

from __future__ import annotations

from numbers import Real

import numpy as np

from pgcc.certify import budget
from pgcc.compiler import COUNTS, climb
from pgcc.data.evidence import Evidence
from pgcc.errors import PrecisionError, brief
from pgcc.kernels.policy import tier
from pgcc.queries.distribution import Distribution

# The smallest absolute error that can be asked for, and the largest.
LEAST_ATOL, _MOST_ATOL = 1e-15, 1e-2


def cardinality(
    distribution: Distribution, given: Evidence, columns: np.ndarray, atol: float | None = None
) -> np.ndarray:
    """rows × (|T| + 1): Pr(|S ∩ T| = k | evidence), each to `rtol`, or all to an absolute error of `atol`.

    columns : of the variables of T. Several states of one variable count once at most.
    """
    if atol is not None and not (isinstance(atol, Real) and LEAST_ATOL <= atol <= _MOST_ATOL):
        raise PrecisionError(f"atol={brief(atol)} is not between {LEAST_ATOL} and {_MOST_ATOL}", argument="atol")
    # Before any counting: a value takes far less time than a polynomial, and errors name the first row, as elsewhere.
    distribution.possible(given)
    counted = np.zeros(len(distribution.variables), bool)
    counted[columns] = True
    compiled, rtol = distribution.compiled, budget.of_quotient(distribution.rtol)
    result = np.empty((given.rows, len(columns) + 1))

    def answer(rows: slice) -> None:
        codes = given.chunk(rows)
        # values are polynomials, whose products take as many multiplications as they have coefficients
        free = int((counted & (codes < 0)).sum(axis=1).max(initial=0))
        with tier(compiled.work * len(codes) * (1 + free // 2)):
            found, _ = climb(COUNTS[compiled.decomposable], compiled, codes, rtol, counted, atol)
        for row in np.flatnonzero(((found.mantissa < 0.0) & (found.bound < 1.0)).any(axis=1))[:1].tolist():
            raise distribution.no_distribution(given, rows.start + row)
        result[rows] = _normalized(found.mantissa, found.exponent)

    distribution.for_chunks(given.rows, answer)
    return result[:, : most_in(distribution, columns) + 1]


def most_in(distribution: Distribution, columns: np.ndarray) -> int:
    """How many of these columns can be in: one of each variable with states."""
    domains = distribution.circuit.domains
    return len(columns) if domains is None else len({domains.shown[0][column] for column in columns.tolist()})


def _normalized(mantissa: np.ndarray, exponent: np.ndarray) -> np.ndarray:
    """Rows of m·2^e divided by their sums: terms without sign, so that the sum is as accurate as they are.

    Quotients are rounded to subnormal numbers once, at the end.
    """
    top = np.where(mantissa == 0.0, -(2**62), exponent).max(axis=1, keepdims=True)
    shift = np.clip(exponent - top, -5000, 0).astype(np.int32)
    fractions, binary = np.frexp(np.maximum(mantissa, 0.0))
    total, of_total = np.frexp(np.ldexp(fractions, binary + shift).sum(axis=1, keepdims=True))
    return np.ldexp(fractions / total, binary + shift - of_total)
