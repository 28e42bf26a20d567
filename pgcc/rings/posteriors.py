"""What a reverse pass says of every variable of every row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pgcc.certify.kernels.bounds import posteriors


@dataclass
class Posteriors:
    """Pr(X_i = 1 | row), rows × variables; which of them are certain; the rows whose evidence has probability 0."""

    numbers: np.ndarray
    certain: np.ndarray
    impossible: np.ndarray

    @staticmethod
    def empty(rows: int, variables: int) -> Posteriors:
        """Room for so many."""
        shape = rows, variables
        return Posteriors(np.empty(shape), np.empty(shape, bool), np.empty(rows, bool))

    def __getitem__(self, rows: slice) -> Posteriors:
        return Posteriors(self.numbers[rows], self.certain[rows], self.impossible[rows])


def read_posteriors(
    read: np.ndarray, evidence: np.ndarray, signed: bool, gamma: float, floor: np.ndarray, rtol: float, to: Posteriors
) -> None:
    """Quotients joint / root of what a reversed program computes (see `reverse`), with what the bounds say of both.

    read : readings × rows (or more). gamma : what rounding comes to, relative to magnitudes. floor : what underflow
    comes to, in every row.
    """
    n = evidence.shape[1]
    values, sizes = (read[: n + 1], read[n + 1 :]) if signed else (read, read)
    posteriors(values, sizes, evidence, gamma, floor, rtol, to.numbers, to.certain, to.impossible)
