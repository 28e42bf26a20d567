"""Pr(X_i = 1, X_j = 1 | evidence) for every pair, and what follows from it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pgcc.certify import budget
from pgcc.data.evidence import Evidence
from pgcc.queries.distribution import Distribution
from pgcc.queries.marginals import marginals
from pgcc.rings.posteriors import literals


def pairwise(distribution: Distribution, given: Evidence) -> np.ndarray:
    """rows × n × n: the joint probabilities, with the marginals on the diagonal."""
    distribution = replace(distribution, rtol=budget.of_product(distribution.rtol))
    single = marginals(distribution, given)
    compiled = distribution.compiled
    of_one_row = _by_marginals if compiled.decomposable and compiled.reverse is not None else _by_pairs
    joint = np.empty((*single.shape, single.shape[1]))
    for row in range(given.rows):
        joint[row] = of_one_row(distribution, given, row, single[row])
    return joint


def _by_marginals(distribution: Distribution, given: Evidence, row: int, single: np.ndarray) -> np.ndarray:
    """Pr(i) · Pr(j | i): one reverse pass for every i."""
    joint = np.zeros((len(single), len(single)))
    likely = np.flatnonzero(single > 0.0)
    column, code = literals(len(distribution.variables), distribution.outs)
    codes = np.repeat(given.chunk(slice(row, row + 1)), len(likely), axis=0)
    codes[np.arange(len(likely)), column[likely]] = code[likely]
    joint[likely] = single[likely, None] * marginals(distribution, Evidence.of_codes(distribution.variables, codes))
    upper = np.triu(joint)
    return upper + np.triu(joint, 1).T


def _by_pairs(distribution: Distribution, given: Evidence, row: int, single: np.ndarray) -> np.ndarray:
    """One query for every pair of variables that are not observed."""
    codes = given.chunk(slice(row, row + 1))[0]
    column, code = literals(len(distribution.variables), distribution.outs)
    joint = np.outer(single, single)  # right where one of them is certain
    free = np.flatnonzero(codes[column] < 0)
    i, j = (free[index] for index in np.triu_indices(len(free), 1))
    joint[i, j] = joint[j, i] = 0.0
    apart = column[i] != column[j]  # the others are in and out
    i, j = i[apart], j[apart]
    for some in distribution.portions(len(i)):
        rows = np.repeat(codes[None], len(i[some]) + 1, axis=0)
        both = 1 + np.arange(len(i[some]))
        rows[both, column[i[some]]], rows[both, column[j[some]]] = code[i[some]], code[j[some]]
        joint[i[some], j[some]] = joint[j[some], i[some]] = distribution.ratios(rows, given, row)
    np.fill_diagonal(joint, single)
    return joint


def covariance(distribution: Distribution, given: Evidence) -> np.ndarray:
    """rows × n × n: Pr(i, j) − Pr(i)·Pr(j); p·(1 − p) on the diagonal."""
    joint = pairwise(distribution, given)
    single = np.diagonal(joint, axis1=-2, axis2=-1)
    return joint - single[..., :, None] * single[..., None, :]
