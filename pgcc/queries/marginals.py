"""Pr(X_i = 1 | evidence) for every variable."""

from __future__ import annotations

import numpy as np

from pgcc.compiler import MARGINALS, SOFT_MARGINALS, climb
from pgcc.data.evidence import Evidence
from pgcc.queries.distribution import Distribution
from pgcc.rings.posteriors import Posteriors


def marginals(distribution: Distribution, given: Evidence) -> np.ndarray:
    """rows × columns: Pr(in) of every column, then Pr(out) of `outs`; 1 or 0 for observed columns."""
    result = np.empty((given.rows, len(distribution.variables) + len(distribution.outs)))
    compiled, rtol = distribution.compiled, distribution.rtol
    ladder = (MARGINALS if given.soft is None else SOFT_MARGINALS)[compiled.decomposable]

    def answer(rows: slice) -> None:
        found, _ = climb(ladder, compiled, given.asked(rows), rtol)
        _refuse(distribution, given, rows.start, found)
        result[rows] = found.numbers

    distribution.for_chunks(given.rows, answer)
    return result


def _refuse(distribution: Distribution, given: Evidence, first: int, found: Posteriors) -> None:
    """Raise an error if evidence has probability 0, or if a number is not a probability."""
    for row in np.flatnonzero(found.impossible)[:1].tolist():
        raise distribution.impossible(given, first + row)
    if not (found.numbers <= 1.0).all():  # neither above 1 nor NaN; a certain one is not negative
        row, variable = np.argwhere(~(found.numbers <= 1.0))[0].tolist()
        raise distribution.no_distribution(given, first + row, float(found.numbers[row, variable]))
