"""Pr(X_i = 1 | evidence) for every variable."""

from __future__ import annotations

import numpy as np

from pgcc.queries.distribution import Distribution
from pgcc.queries.evidence import Evidence


def marginals(distribution: Distribution, given: Evidence) -> np.ndarray:
    """rows × variables: the posterior of every variable; 1 and 0 for what is observed."""
    result = np.empty((given.rows, len(distribution.variables)))
    reverse = distribution.compiled.marginals

    def answer(rows: slice) -> None:
        codes = given.chunk(rows)
        if reverse is None:
            wanted = np.ones(codes.shape, bool)
        else:
            found = reverse.evaluate(codes, distribution.rtol)
            for row in np.flatnonzero(found.impossible)[:1].tolist():
                raise distribution.impossible(given, rows.start + row)
            result[rows], wanted = found.numbers, ~found.certain
        for row in np.flatnonzero(wanted.any(axis=1)).tolist():
            result[rows.start + row, wanted[row]] = one_by_one(distribution, given, rows.start + row, wanted[row])

    distribution.for_chunks(given.rows, answer)
    return result


def one_by_one(distribution: Distribution, given: Evidence, row: int, wanted: np.ndarray) -> np.ndarray:
    """The same for the `wanted` variables of one row, by one query each: right for every circuit."""
    codes = given.chunk(slice(row, row + 1))[0]
    free = np.flatnonzero((codes < 0) & wanted)
    rows = np.repeat(codes[None], len(free) + 1, axis=0)
    rows[1 + np.arange(len(free)), free] = 1
    posterior = np.maximum(codes, 0).astype(np.float64)
    posterior[free] = distribution.ratios(rows, given, row)
    return posterior[wanted]
