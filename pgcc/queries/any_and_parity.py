"""The probabilities that at least one, or an odd number, of some variables is in, given evidence.

Both are computed as sums of nonnegative terms, and never as 1 − p with p near 1.
"""

from __future__ import annotations

import numpy as np

from pgcc.certify import budget
from pgcc.data.evidence import Evidence
from pgcc.queries.cardinality import LEAST_ATOL, cardinality, most_in
from pgcc.queries.distribution import Distribution

# A sum of probabilities that is at least this is accurate enough if each has a small absolute error.
_LARGE = 0.01


def any_of(distribution: Distribution, given: Evidence, columns: np.ndarray) -> np.ndarray:
    """Pr(S ∩ T ≠ ∅ | evidence) for every row.

    This is 1 − Pr(none) if Pr(none) is at most ½, and otherwise Σ_i Pr(the i-th of T is the first that is in).
    """
    result = 1.0 - _none_of(distribution, given, columns)
    for row in np.flatnonzero(result < 0.5).tolist():
        codes = given.chunk(slice(row, row + 1))
        free = columns[codes[0, columns] < 0]  # none of T is observed in
        result[row] = sum(
            distribution.ratios(_first_is(codes, free, range(some.start, some.stop)), given, row).sum()
            for some in distribution.portions(len(free))
        )
    return result


def _none_of(distribution: Distribution, given: Evidence, columns: np.ndarray) -> np.ndarray:
    """Pr(S ∩ T = ∅ | evidence) for every row."""
    codes = given.chunk(slice(None))
    joint = codes.copy()
    joint[:, columns] = np.where(codes[:, columns] < 0, 0, codes[:, columns])
    against = (codes[:, columns] == 1).any(axis=1)
    values = distribution.values(np.concatenate([codes, joint]), budget.of_quotient(distribution.rtol))
    shares = distribution.shares(values[len(codes) :], values[: len(codes)], given, np.arange(len(codes)))
    return np.where(against, 0.0, shares)


def _first_is(codes: np.ndarray, free: np.ndarray, which: range) -> np.ndarray:
    """The row of codes, and for every i in `which` the row in which the i-th of `free` is the first that is in."""
    joint = np.repeat(codes, 1 + len(which), axis=0)
    for row, i in enumerate(which, 1):
        joint[row, free[:i]] = 0
        joint[row, free[i]] = 1
    return joint


def parity(distribution: Distribution, given: Evidence, columns: np.ndarray) -> np.ndarray:
    """Pr(|S ∩ T| is odd | evidence) for every row."""
    return _sum_over(distribution, given, columns, np.arange(most_in(distribution, columns) + 1) % 2 == 1)


def _sum_over(distribution: Distribution, given: Evidence, columns: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Pr(|S ∩ T| is one of these sizes | evidence).

    Tails that are too small to matter in a large sum need not be accurate to all digits.
    """
    atol = budget.of_summands(distribution.rtol, _LARGE, int(sizes.sum()))
    if atol < LEAST_ATOL:
        return cardinality(distribution, given, columns)[:, sizes].sum(axis=1)
    result = cardinality(distribution, given, columns, atol)[:, sizes].sum(axis=1)
    small = np.flatnonzero(result < _LARGE)
    if len(small):
        rows = Evidence.of_codes(given.columns, given.chunk(slice(None))[small])
        result[small] = cardinality(distribution, rows, columns)[:, sizes].sum(axis=1)
    return result
