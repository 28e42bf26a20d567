"""Pr(X_i = 1 | evidence) for every variable."""

from __future__ import annotations

import numpy as np

from pgcc.certify import budget
from pgcc.data.evidence import Evidence
from pgcc.evaluate.marginals import find_marginals
from pgcc.queries.distribution import Distribution

# Queries that are asked together.
_QUERIES = 1 << 13


def marginals(distribution: Distribution, given: Evidence) -> np.ndarray:
    """rows × variables: the posterior of every variable; 1 and 0 for what is observed."""
    result = np.empty((given.rows, len(distribution.variables)))
    reverse = distribution.compiled.once(find_marginals)

    def answer(rows: slice) -> None:
        codes = given.chunk(rows)
        if reverse is None:
            wanted, result[rows] = codes < 0, codes
        else:
            found = reverse.evaluate(codes, distribution.rtol)
            for row in np.flatnonzero(found.impossible)[:1].tolist():
                raise distribution.impossible(given, rows.start + row)
            wanted, result[rows] = ~found.certain, found.numbers
        step = max(1, _QUERIES // max(1, codes.shape[1]))
        asked = np.arange(len(codes)) if reverse is None else np.flatnonzero(wanted.any(axis=1))
        for first in range(0, len(asked), step):
            some = asked[first : first + step]
            row, variable = np.nonzero(wanted[some])
            posterior = one_by_one(distribution, given, rows.start + some, codes[some], row, variable)
            result[rows.start + some[row], variable] = posterior
        for row in np.flatnonzero((result[rows] > 1.0 + 4 * distribution.rtol).any(axis=1))[:1].tolist():
            raise distribution.above_one(given, rows.start + row, float(result[rows.start + row].max()))
        np.minimum(result[rows], 1.0, out=result[rows])

    distribution.for_chunks(given.rows, answer)
    return result


def one_by_one(
    distribution: Distribution,
    given: Evidence,
    rows: np.ndarray,
    codes: np.ndarray,
    row: np.ndarray,
    variable: np.ndarray,
) -> np.ndarray:
    """Pr(X_variable[j] = 1 | codes[row[j]]) by one query each, right for every circuit; rows : where codes are from.

    Where determinants have as many rows as variables are observed, n of them cost less than one inverse of all.
    """
    base = distribution.values(codes, budget.of_quotient(distribution.rtol))
    for impossible in np.flatnonzero(base.mantissa == 0.0)[:1].tolist():  # also where nothing is asked
        raise distribution.impossible(given, int(rows[impossible]))
    result = np.empty(len(row))
    for some in distribution.portions(len(row)):
        queries = codes[row[some]]
        asked = np.arange(len(queries)), variable[some]
        contradicted = queries[asked] == 0
        queries[asked] = np.where(contradicted, 0, 1)
        values = distribution.values(queries, budget.of_quotient(distribution.rtol))
        shares = distribution.shares(values, base[row[some]], given, rows[row[some]])
        result[some] = np.where(contradicted, 0.0, shares)
    return result
