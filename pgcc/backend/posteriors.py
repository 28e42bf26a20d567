"""What a reverse pass says of every variable of every row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pgcc.backend.kernels.bounds import posteriors


@dataclass
class Posteriors:
    """Pr(X_i = 1 | row), rows × variables; which of them are certain; the rows whose evidence has probability 0."""

    numbers: np.ndarray
    certain: np.ndarray
    impossible: np.ndarray


def read_posteriors(
    read: np.ndarray, evidence: np.ndarray, signed: bool, gamma: float, floor: np.ndarray, rtol: float
) -> Posteriors:
    """Quotients joint / root of what a reversed program computes (see `readings`), with what the bounds say of both.

    read : readings × rows. gamma : what rounding comes to, relative to magnitudes. floor : what underflow comes to, in
    every row.
    """
    n = evidence.shape[1]
    values, sizes = (read[[*range(n), -2]], read[[*range(n, 2 * n), -1]]) if signed else (read, read)
    found = Posteriors(np.empty(evidence.shape), np.empty(evidence.shape, bool), np.empty(len(evidence), bool))
    posteriors(values, sizes, evidence, gamma, floor, rtol, found.numbers, found.certain, found.impossible)
    return found
