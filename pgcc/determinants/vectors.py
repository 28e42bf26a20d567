"""Random sets from symmetric kernels by the spectral method: eigenvalues and eigenvectors, with error bounds.

`samplers` makes these; `pick_spectral` of `kernels/sampling_sets` draws with them.
"""

from __future__ import annotations

import numpy as np

from pgcc.determinants.kernels.picking import VECTORS
from pgcc.determinants.kernels.sampling_sets import count_distribution
from pgcc.determinants.sampling_tables import TOLERANCE, SetSampler, Tables
from pgcc.ir.numbers import UNIT
from pgcc.kernels.simd import LANES
from pgcc.linalg import eigh
from pgcc.program.det_structure import DetStructure

# Eigenvectors with smaller eigenvalues, which are the probabilities of choosing them, are left out.
_NEVER = 1e-15
# The roundings of an entry of a product, or of an eigenvalue.
_ROUNDINGS = 8
# The most attempts at scaling the odds so that a fixed size is typical.
_TILTS = 6


class Eigenvectors(SetSampler):
    """The spectral method for det(M0 + Bᵀ·diag(φ)·B).

    Let N = M0 + Bᵀ·diag(φ)·B. For any nonsingular T, replacing B by B·T and M0 by Tᵀ·M0·T changes no probability, so B
    can be whitened: N = I. Then the marginal kernel is K = X·Xᵀ, X = √φ·B, and its eigenvectors are X times those of
    XᵀX. Conditioning on the children A being in projects the rows of X onto the orthogonal complement of the rows of A.

    With a size, the counted items are drawn by the eigenvectors of their own block of K, and then the others given
    these.

    off : the error of M0, in roundings of 1. rows_off : the error of B·Bᵀ, in roundings of |b_i|·|b_j|.
    """

    name = "eigenvectors"

    def __init__(self, m0: np.ndarray, B: np.ndarray, structure: DetStructure, off: float = 0.0, rows_off: float = 0.0):
        self.m0, self.B, self.size, self.off, self.rows_off = m0, B, structure.size, off, rows_off
        self.counted = np.array(structure.counted or [True] * len(B), bool)

    def prepare(self, phi: np.ndarray, inside: np.ndarray) -> Tables | None:
        free = ~inside & (phi > 0.0)
        drawn, others, left = np.flatnonzero(free & self.counted), np.flatnonzero(free & ~self.counted), -1
        if self.size is not None:
            left = self.size - int((inside & self.counted).sum())
            if left == 0:  # all other counted items are out, and the size does not restrict the rest
                drawn, others, left = others, others[:0], -1
        items = np.concatenate([drawn, others])
        found = self._spectrum(items, len(drawn), phi[items], inside, left)
        if found is None:
            return None
        values, vectors, rows = found
        padding = -len(drawn) % LANES
        reals = [values, np.pad(vectors, ((0, 0), (0, padding))).ravel()]
        if left >= 0:
            table = count_distribution(values, left)
            if not table[-1, left] > 0.0:
                return None
            reals.append(table.ravel())
        if len(others):
            reals.append((rows @ rows.T).ravel())
        return Tables(VECTORS, inside, len(items), items, np.concatenate(reals), left, len(values), len(drawn))

    def _spectrum(
        self, items: np.ndarray, drawn: int, phi: np.ndarray, inside: np.ndarray, size: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        """Eigenvalues and eigenvectors (as rows) of the block of K of the first `drawn` items, and X for all items.

        With a size (−1: none), the odds of the items drawn are scaled to t·φ so that this size is typical, which does
        not change the distribution of sets of this size.
        """
        for _ in range(_TILTS):
            rows = self._rows(items, phi, inside)
            if rows is None:
                return None
            values, vectors = _eigenvectors(rows[:drawn])
            if size < 0:
                return values, vectors, rows
            if size > len(values):
                return None
            if size < len(values):
                factor = _tilt(values, size)
                if 0.1 <= factor <= 10.0:
                    return factor * values / (1.0 - values + factor * values), vectors, rows
            else:  # all eigenvectors, once their eigenvalues are large beside those that were left out
                factor = 1.0 / float(values.min())
                if factor <= 10.0:
                    return np.ones(size), vectors, rows
            phi = np.concatenate([phi[:drawn] * factor, phi[drawn:]])
        return None

    def _rows(self, items: np.ndarray, phi: np.ndarray, inside: np.ndarray) -> np.ndarray | None:
        """X such that X·Xᵀ is the marginal kernel of the items, given those that are in; None if inaccurate."""
        free, given = self.B[items] * np.sqrt(phi)[:, None], self.B[inside]
        lengths = np.linalg.norm(given, axis=1, keepdims=True)
        if not (lengths > 0.0).all():
            return None
        try:
            free, given, own, of_input = self._whitened(
                free, given / lengths
            )  # the lengths of given rows do not matter
        except np.linalg.LinAlgError:
            return None
        least = 1.0
        if len(given):
            _, sizes, onto = np.linalg.svd(given, full_matrices=False)
            least = sizes[-1] if len(sizes) == len(given) else 0.0
            for _ in range(2):  # orthogonalizing twice is enough
                free = free - (free @ onto.T) @ onto
        # Errors of X are divided by the smallest singular value of the rows that are in, errors of X·Xᵀ by its square.
        if not (own * least + of_input) * _ROUNDINGS * max(1, len(items)) * UNIT <= TOLERANCE * least * least:
            return None
        return free

    @np.errstate(over="ignore", invalid="ignore")
    def _whitened(self, free: np.ndarray, given: np.ndarray) -> tuple[np.ndarray, np.ndarray, float, float]:
        """Both times a T that makes N = I; the roundings of these products, and those due to errors of M0 and B."""
        m0, own = self.m0, 0.0
        of_input = self.rows_off * max(1.0, (free * free).sum(axis=1).max(initial=0.0))
        for turn in range(2):  # the second time corrects the rounding errors of the first
            N = m0 + free.T @ free + given.T @ given
            scale = 1.0 / np.sqrt(np.maximum(np.diag(N), 2.0**-1000))
            T = scale[:, None] * np.linalg.inv(np.linalg.cholesky(N * scale * scale[:, None])).T
            size = np.abs(T)
            own += (np.abs(free) @ size).max(initial=0.0) + (np.abs(given) @ size).max(initial=0.0)
            own += (size.T @ np.abs(m0) @ size).max(initial=0.0)
            if turn == 0:
                of_input += self.off * (size.T @ size).max(initial=0.0)
            free, given, m0 = free @ T, given @ T, T.T @ m0 @ T
        return free, given, own, of_input


def _eigenvectors(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues and eigenvectors (as rows) of X·Xᵀ, without those that would practically never be chosen."""
    if len(rows) <= rows.shape[1]:
        values, vectors = eigh(rows @ rows.T)
        vectors = vectors.T
    else:
        values, onto = eigh(rows.T @ rows)
        with np.errstate(divide="ignore", invalid="ignore"):
            vectors = (rows @ onto).T / np.sqrt(values)[:, None]
    kept = values > _NEVER
    return np.minimum(values[kept], 1.0), np.ascontiguousarray(vectors[kept])


def _tilt(values: np.ndarray, size: int) -> float:
    """The t for which Σ λ·t / (1 − λ + λ·t) = size, between 10^-30 and 10^30, by bisection."""
    low, high = -70.0, 70.0
    for _ in range(60):
        middle = (low + high) / 2
        t = np.exp(middle)
        with np.errstate(invalid="ignore"):
            total = np.where(values == 1.0, 1.0, values * t / (1.0 - values + values * t)).sum()
        low, high = (middle, high) if total < size else (low, middle)
    return float(np.exp((low + high) / 2))
