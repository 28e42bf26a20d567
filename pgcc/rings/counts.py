"""Σ_k Pr(row, |S ∩ T| = k)·t^k for every row of evidence: the coefficients, each with a bound on its relative error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pgcc.rings.values import ByRow, Values


@dataclass
class Counts(ByRow):
    """The coefficients of t^0, …, t^|T|: rows × (|T| + 1) values mantissa · 2^exponent, off by at most bound · |value|.

    Attributes
    ----------
    mantissa, exponent, bound : arrays
    accepted : bool array
        Rows that are within the allowed absolute error, whatever their bounds.
    """

    mantissa: np.ndarray
    exponent: np.ndarray
    bound: np.ndarray
    accepted: np.ndarray

    @staticmethod
    def by_row(
        evidence: np.ndarray, counted: np.ndarray, count: Callable[[np.ndarray], tuple[Values, bool] | None]
    ) -> Counts:
        """The coefficients of int8 rows of evidence, one row after another.

        count : a function that returns the coefficients of t^0, …, t^f of one row, with f the number of its unobserved
        variables in T, and whether they are accepted; or None if they are unknown. counted : for every variable,
        whether it is in T.
        """
        size = int(counted.sum()) + 1
        counts = Counts._unknown(len(evidence), size)
        for row, codes in enumerate(evidence):
            found = count(codes)
            if found is None:
                continue
            values, counts.accepted[row] = found
            first = int((counted & (codes == 1)).sum())  # variables observed in add to the count
            free = slice(first, first + len(values.bound))
            counts.bound[row] = 0.0  # the coefficients of all other powers are exactly 0
            counts.mantissa[row, free], counts.exponent[row, free] = values.mantissa, values.exponent
            counts.bound[row, free] = values.bound
        return counts

    @staticmethod
    def _unknown(rows: int, size: int) -> Counts:
        shape = rows, size
        return Counts(np.zeros(shape), np.zeros(shape, np.int64), np.full(shape, np.inf), np.zeros(rows, bool))

    def unknown(self, rows: int) -> Counts:
        """Unknown coefficients for `rows` rows."""
        return Counts._unknown(rows, self.mantissa.shape[1])

    def uncertain(self, rtol: float) -> np.ndarray:
        """The rows with a coefficient whose bound exceeds `rtol`, unless they are accepted."""
        return np.flatnonzero(~((self.bound <= rtol).all(axis=1) | self.accepted))
