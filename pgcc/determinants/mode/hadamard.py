"""Hadamard's inequality: an upper bound on the largest coefficient of a positive semidefinite L.

It is applied to the Schur complement L / A of the items A that are in: det L_S ≤ det L_A · Π_{i in S, not in A}
(L / A)_ii. It is better than the bound of `relaxation` if items hardly depend on each other. (L / A)_ii is the minimum
of (e_i − w)ᵀ·L·(e_i − w) over w on A, so its value at *any* w is an upper bound.
"""

from __future__ import annotations

import numpy as np

from pgcc.determinants.mode.region import Region
from pgcc.ir.numbers import UNIT


class Hadamard:
    """Hadamard's inequality for a positive semidefinite L, given the items that are in.

    Parameters
    ----------
    L : float64 array, n × n
        The kernel, with an error of at most off·√(L_ii·L_jj) in every entry, in addition to rounding.
    off : float
    weight, shift
        As in `Relaxation`.
    """

    def __init__(self, L: np.ndarray, off: float, weight: np.ndarray, shift: float = 0.0):
        self.L, self.weight, self.shift = L, weight, shift
        self.spread = np.sqrt(np.maximum(np.diag(L), 0.0)) * (1.0 + off + 4.0 * UNIT)
        self.error = off + 4.0 * (len(L) + 8) * UNIT

    def bound(self, region: Region) -> float:
        """An upper bound on the logarithm of every set of the region."""
        gains = self._gains(region.codes == 1)
        found = None if gains is None else region.best(gains)
        if gains is None:
            return np.inf
        slack = 4.0 * len(gains) * UNIT * float(np.abs(gains[np.isfinite(gains)]).sum() + 1.0)
        return -np.inf if found is None else found[0] + slack + self.shift

    def _gains(self, inside: np.ndarray) -> np.ndarray | None:
        """log (L / A)_ii + weight for items not in A; for an item in A, with only the items of A before it for A."""
        L, items, others = self.L, np.flatnonzero(inside), np.flatnonzero(~inside)
        block = L[np.ix_(items, items)]
        try:
            factor = np.linalg.cholesky(block)
            own = np.tril(np.linalg.inv(factor)) * np.diag(factor)[:, None]  # rows e_i − w, w on items before i
            across = np.linalg.solve(block, L[np.ix_(items, others)])  # w
        except np.linalg.LinAlgError:
            return None
        upper, spread = np.empty(len(L)), self.spread
        size = np.abs(own) @ spread[items]
        upper[items] = ((own @ block) * own).sum(axis=1) + self.error * size**2
        size = np.abs(across).T @ spread[items] + spread[others]
        upper[others] = (
            np.diag(L)[others]
            - 2.0 * (across * L[np.ix_(items, others)]).sum(axis=0)
            + (across * (block @ across)).sum(axis=0)
            + self.error * size**2
        )
        if not np.isfinite(upper).all():
            return None
        with np.errstate(divide="ignore"):
            return np.log(np.maximum(upper, 0.0)) + self.weight
