"""Posteriors Pr(X_i = 1 | row) for every variable of every row, from reverse passes or from quotients of values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pgcc.certify.kernels.bounds import posteriors
from pgcc.rings.values import ByRow, Values

# The relative error of a quotient of doubles.
_ROUNDING = 2.0**-50


def literals(variables: int, outs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The column and the code of each entry of an answer: all columns in, then `outs` out.

    >>> [part.tolist() for part in literals(3, np.array([1]))]
    [[0, 1, 2, 1], [1, 1, 1, 0]]
    """
    return np.append(np.arange(variables), outs), np.repeat(np.array([1, 0], np.int8), [variables, len(outs)])


@dataclass
class Posteriors(ByRow):
    """Pr(X_i = 1 | row), rows × variables; which of these numbers are certain; the rows with probability 0.

    If a certain number is below 0 or above 1, the polynomial is no distribution.
    """

    numbers: np.ndarray
    certain: np.ndarray
    impossible: np.ndarray

    @staticmethod
    def empty(rows: int, variables: int) -> Posteriors:
        """Arrays to be filled."""
        shape = rows, variables
        return Posteriors(np.empty(shape), np.empty(shape, bool), np.empty(rows, bool))

    def unknown(self, rows: int) -> Posteriors:
        """As many posteriors of the same variables, none of which is certain."""
        shape = rows, self.numbers.shape[1]
        return Posteriors(np.zeros(shape), np.zeros(shape, bool), np.zeros(rows, bool))

    @staticmethod
    def of_observed(evidence: np.ndarray) -> Posteriors:
        """Posteriors that are all unknown, but for those of observed variables, which are certain."""
        return Posteriors(evidence.astype(float), evidence >= 0, np.zeros(len(evidence), bool))

    def uncertain(self, rtol: float) -> np.ndarray:
        """The rows with a number that is not certain to the `rtol` that they were computed for."""
        return np.flatnonzero(~self.certain.all(axis=1))


def read_posteriors(
    read: np.ndarray, evidence: np.ndarray, signed: bool, gamma: float, floor: np.ndarray, rtol: float, to: Posteriors
) -> None:
    """Posteriors from the results of a reverse pass (see `reverse`): quotients joint / root, and which are certain.

    read : results × rows (or more). gamma : a bound on the errors by rounding, relative to magnitudes. floor : a bound
    on the errors by underflow, for every row.
    """
    n = evidence.shape[1]
    values, sizes = (read[: n + 1], read[n + 1 :]) if signed else (read, read)
    posteriors(values, sizes, evidence, gamma, floor, rtol, to.numbers, to.certain, to.impossible)
    np.minimum(to.numbers, 1.0, out=to.numbers, where=to.numbers <= 1.0 + 4.0 * rtol)


def shares(part: Values, whole: Values) -> np.ndarray:
    """The probabilities part / whole, where `part` has the evidence of `whole` and more: at most 1.

    A quotient that is certainly above 1 is returned as it is. NaN where a value is negative, or the whole is 0.
    """
    mantissa = np.broadcast_to(whole.mantissa, part.mantissa.shape)
    wrong = (part.mantissa < 0.0) | (mantissa <= 0.0)
    divisor = Values(np.where(wrong, 1.0, mantissa), whole.exponent, whole.bound)
    found = part.over(divisor)
    found = np.where(found > 1.0 + 2.0 * (part.bound + whole.bound) + _ROUNDING, found, np.minimum(found, 1.0))
    return np.where(wrong, np.nan, found)
