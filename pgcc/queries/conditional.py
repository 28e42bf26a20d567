"""Pr(query | given): quotients of two probabilities."""

from __future__ import annotations

import numpy as np

from pgcc.certify import budget
from pgcc.data.evidence import Evidence
from pgcc.errors import EvidenceError
from pgcc.evaluate.soft import SoftRows
from pgcc.queries.distribution import Distribution


def conditional(distribution: Distribution, given: Evidence, query: Evidence) -> np.ndarray:
    """Pr(query row | given row); if one of the two is a single piece, it is paired with every row of the other."""
    if query.rows != given.rows and not (query.single or given.single):
        raise EvidenceError(f"{query.rows} queries do not fit {given.rows} rows of evidence: give as many, or one")
    asked, known = np.broadcast_arrays(query.chunk(slice(None)), given.codes(slice(None)))
    clash = (asked >= 0) & (known >= 0) & (asked != known)
    both = np.where(known >= 0, known, asked).astype(np.int8)
    soft = None if given.soft is None else np.broadcast_to(given.soft, (*both.shape, 2))
    base = distribution.values(given.asked(slice(None)), budget.of_quotient(distribution.rtol))
    joint = distribution.values(both if soft is None else SoftRows(both, soft), budget.of_quotient(distribution.rtol))
    result = distribution.shares(joint, base, given, np.arange(len(both)) % max(1, given.rows))
    result[clash.any(axis=1)] = 0.0  # what is asked contradicts what is known
    return result
