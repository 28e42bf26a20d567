"""The values that every number system returns: numbers of any range, each with a bound on its relative error."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from pgcc.certify.kernels.bounds import LARGE, SMALL, all_within, divide

_NONE = np.zeros(0, np.int64)


class ByRow:
    """Answers whose fields are arrays with a row for each row of evidence: a base class of dataclasses."""

    def __getitem__(self, rows: slice | np.ndarray) -> Self:
        return type(self)(*(array[rows] for array in vars(self).values()))

    def put(self, where: np.ndarray | slice, other: Self) -> None:
        """Overwrite the rows `where`."""
        for name, array in vars(self).items():
            array[where] = getattr(other, name)


@dataclass
class Values:
    """value = mantissa · 2^exponent, off by at most bound · |value|.

    Attributes
    ----------
    mantissa : float64 array
    exponent : int64 array
    bound : float64 array
        0 for an exact value (an exact zero among them), inf where nothing is known.
    lost : bool array, optional
        The rows whose bound is too large because of rounding, not because of the range of doubles: a wider range does
        not help them.
    """

    mantissa: np.ndarray
    exponent: np.ndarray
    bound: np.ndarray
    lost: np.ndarray | None = None

    @staticmethod
    def empty(rows: int) -> Values:
        """Arrays for `rows` values, all unknown."""
        return Values(np.zeros(rows), np.zeros(rows, np.int64), np.full(rows, np.inf))

    def unknown(self, rows: int) -> Values:
        """The same as `empty`: `compiler.climb` asks any kind of answer for unknown ones of its kind."""
        return Values.empty(rows)

    def __getitem__(self, rows: slice | np.ndarray) -> Values:
        lost = None if self.lost is None else self.lost[rows]
        return Values(self.mantissa[rows], self.exponent[rows], self.bound[rows], lost)

    def uncertain(self, rtol: float) -> np.ndarray:
        """The rows whose bound exceeds `rtol`."""
        if all_within(self.bound, rtol):  # for one row, twice as fast
            return _NONE
        return np.flatnonzero(~(self.bound <= rtol))

    def put(self, where: np.ndarray | slice, other: Values) -> None:
        """Overwrite the rows `where` (a mask or indices)."""
        self.mantissa[where], self.exponent[where], self.bound[where] = other.mantissa, other.exponent, other.bound

    def floats(self) -> np.ndarray:
        """The values as doubles; 0 or inf where they are out of range."""
        if not self.exponent.any():
            return self.mantissa
        with np.errstate(over="ignore", under="ignore"):
            return np.ldexp(self.mantissa, np.clip(self.exponent, -(2**30), 2**30).astype(np.int32))

    def float_bounds(self) -> np.ndarray:
        """Bounds on the relative errors of `floats()`: where a value is out of range, rounding it adds to them."""
        floats, bound = np.abs(self.floats()), self.bound.copy()
        with np.errstate(divide="ignore", invalid="ignore"):
            tiny = (floats < 2.0**-1022) & (self.mantissa != 0.0)
            bound[tiny] += np.where(floats > 0.0, 2.0**-1074 / floats, np.inf)[tiny]
        bound[np.isinf(floats)] = np.inf
        return bound

    def logs(self) -> np.ndarray:
        """Natural logarithms; −inf exactly where the value is 0, NaN where it is negative."""
        mantissa, exponent = self.mantissa, self.exponent
        if exponent.any():
            # The logarithms of mantissa and exponent must not cancel: a sum near 0 would have their rounding errors. So
            # scaled mantissas are brought between √½ and √2. Rows without an exponent stay as they are: their results
            # must not depend on other rows.
            scaled = exponent != 0
            fraction, binary = np.frexp(mantissa)
            small = np.abs(fraction) < math.sqrt(0.5)
            mantissa = np.where(scaled, np.where(small, 2.0 * fraction, fraction), mantissa)
            exponent = np.where(scaled, exponent + binary - small, 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.log(mantissa) + exponent * math.log(2.0)

    def divisor(self) -> float | None:
        """The only value as a double, if dividing ordinary numbers by it does not leave the range of doubles."""
        value = float(self.mantissa[0])
        return value if SMALL < value < LARGE and not self.exponent[0] else None

    def divide_by(self, total: Values) -> int:
        """Divide every value, in place, by a positive total; return the first row that is certainly negative, or −1."""
        return divide(self.mantissa, self.exponent, self.bound, total.mantissa[0], total.exponent[0], total.bound[0])

    def over(self, other: Values) -> np.ndarray:
        """The quotients by other values (one per row or one for all, none of them 0) as doubles; 0 on underflow."""
        mantissa, exponent = self._quotients(other)
        with np.errstate(over="ignore", under="ignore"):
            return np.ldexp(mantissa, np.clip(exponent, -(2**20), 2**20).astype(np.int32))

    def log_over(self, other: Values) -> np.ndarray:
        """The logarithms of the quotients: these do not lose digits by subtracting two large logarithms."""
        mantissa, exponent = self._quotients(other)
        with np.errstate(divide="ignore"):
            return np.where(mantissa == 0.0, -np.inf, np.log(mantissa) + exponent * np.log(2.0))

    def _quotients(self, other: Values) -> tuple[np.ndarray, np.ndarray]:
        """Mantissas between ½ and 2, and exponents."""
        (m, binary), (by, by_binary) = np.frexp(self.mantissa), np.frexp(other.mantissa)
        return m / by, self.exponent + binary - other.exponent - by_binary
