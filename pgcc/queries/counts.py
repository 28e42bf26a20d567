"""At least one, none, all, exactly k, an odd number of some variables: probabilities given evidence.

Every one is a sum of terms without sign, never 1 − p where p is near 1.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

import numpy as np

from pgcc.certify import budget
from pgcc.data.evidence import Evidence
from pgcc.errors import CircuitError
from pgcc.ir.circuit import Circuit
from pgcc.passes.sizes import between
from pgcc.queries.cardinality import LEAST_ATOL, cardinality
from pgcc.queries.distribution import Distribution

# A sum of probabilities that is at least this is accurate enough if each has a small absolute error.
_LARGE = 0.01


def none_of(distribution: Distribution, given: Evidence, columns: np.ndarray) -> np.ndarray:
    """Pr(S ∩ T = ∅ | evidence) for every row."""
    return _all_are(distribution, given, columns, 0)


def all_of(distribution: Distribution, given: Evidence, columns: np.ndarray) -> np.ndarray:
    """Pr(T ⊆ S | evidence) for every row."""
    return _all_are(distribution, given, columns, 1)


def _all_are(distribution: Distribution, given: Evidence, columns: np.ndarray, code: int) -> np.ndarray:
    """Pr(every variable of T is `code` | evidence)"""
    codes = given.chunk(slice(None))
    joint = codes.copy()
    joint[:, columns] = np.where(codes[:, columns] < 0, code, codes[:, columns])
    against = (codes[:, columns] == 1 - code).any(axis=1)
    values = distribution.values(np.concatenate([codes, joint]), budget.of_quotient(distribution.rtol))
    shares = distribution.shares(values[len(codes) :], values[: len(codes)], given, np.arange(len(codes)))
    return np.where(against, 0.0, shares)


def any_of(distribution: Distribution, given: Evidence, columns: np.ndarray) -> np.ndarray:
    """Pr(S ∩ T ≠ ∅ | evidence) for every row.

    = 1 − Pr(none) where that is at most ½, else Σ_i Pr(the i-th of T is the first that is in).
    """
    result = 1.0 - none_of(distribution, given, columns)
    for row in np.flatnonzero(result < 0.5).tolist():
        codes = given.chunk(slice(row, row + 1))
        free = columns[codes[0, columns] < 0]  # none of T is observed in
        result[row] = sum(
            distribution.ratios(_first_is(codes, free, range(some.start, some.stop)), given, row).sum()
            for some in distribution.portions(len(free))
        )
    return result


def _first_is(codes: np.ndarray, free: np.ndarray, which: range) -> np.ndarray:
    """The row of codes, and then for every i in `which`: it, and that the i-th of `free` is the first that is in."""
    joint = np.repeat(codes, 1 + len(which), axis=0)
    for row, i in enumerate(which, 1):
        joint[row, free[:i]] = 0
        joint[row, free[i]] = 1
    return joint


def exactly(distribution: Distribution, given: Evidence, columns: np.ndarray, k: int) -> np.ndarray:
    """Pr(|S ∩ T| = k | evidence) for every row."""
    size, n = _as_int(k), len(columns)
    if not 0 <= size <= n:
        raise CircuitError(f"k={k!r}: of {n} variables 0 to {n} can be in")
    return _sum_over(distribution, given, columns, np.arange(n + 1) == size)


def parity(distribution: Distribution, given: Evidence, columns: np.ndarray) -> np.ndarray:
    """Pr(|S ∩ T| is odd | evidence) for every row."""
    return _sum_over(distribution, given, columns, np.arange(len(columns) + 1) % 2 == 1)


def _sum_over(distribution: Distribution, given: Evidence, columns: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Pr(|S ∩ T| is one of these sizes | evidence)

    Tails that are too small to matter in a large sum need not be known to all their digits.
    """
    atol = budget.of_summands(distribution.rtol, _LARGE, int(sizes.sum()))
    if atol < LEAST_ATOL:
        return cardinality(distribution, given, columns)[:, sizes].sum(axis=1)
    result = cardinality(distribution, given, columns, atol)[:, sizes].sum(axis=1)
    small = np.flatnonzero(result < _LARGE)
    if len(small):
        rows = Evidence(given.variables, given.chunk(slice(None))[small])
        result[small] = cardinality(distribution, rows, columns)[:, sizes].sum(axis=1)
    return result


def size_circuit(circuit: Circuit, size: Any, over: Iterable[str] | None = None) -> Circuit:
    """The circuit of Pr(S, |S ∩ T| is `size`), or between the two sizes given; its total is the probability of that.

    Examples
    --------
    >>> import pgcc
    >>> print(size_circuit(pgcc.parse("0.4*a*b + 0.3*a + 0.1*b + 0.2"), (1, 2)).simplify())
    3/10*a + 1/10*b + 2/5*a*b
    """
    least, most = read_size(size)
    return between(circuit, least, most, over)


def read_size(size: Any) -> tuple[int, int]:
    """The least and the largest size: of an integer, or of a pair.

    >>> read_size(3), read_size((1, 4))
    ((3, 3), (1, 4))
    """
    pair = tuple(size) if isinstance(size, (tuple, list, np.ndarray)) else (size, size)
    if len(pair) != 2:
        raise CircuitError(f"size={size!r}: a number, or the least and the largest")
    least, most = map(_as_int, pair)
    if not 0 <= least <= most:
        raise CircuitError(f"size={size!r}: sizes are at least 0, and the first is not above the second")
    return least, most


def _as_int(k: Any) -> int:
    try:
        if not isinstance(k, bool):
            return operator.index(k)
    except TypeError:
        pass
    raise CircuitError(f"{k!r} is not a number of variables")
