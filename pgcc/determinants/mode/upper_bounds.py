"""The upper bounds on the coefficients of a determinant that its matrices allow; `sets` calls `find_bounds`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pgcc.determinants.mode.hadamard import Hadamard
from pgcc.determinants.mode.relaxation import Relaxation, row_norms
from pgcc.ir.numbers import UNIT
from pgcc.program.det_structure import DetStructure

# The most items for which L = B·Bᵀ is computed.
_MOST_ITEMS = 4096


@dataclass(frozen=True)
class Bounds:
    """The bounds on the coefficients of a determinant that its matrices allow.

    Attributes
    ----------
    relaxation : Relaxation, optional
    hadamard : Hadamard, optional
    """

    relaxation: Relaxation | None = None
    hadamard: Hadamard | None = None


def find_bounds(structure: DetStructure, weight: np.ndarray) -> Bounds:
    """Bounds on the nonnegative coefficients of a determinant, times Π exp(weight)."""
    if not structure.in_range or not structure.rank or not structure.children:
        return Bounds()
    m0, _, v = structure.floats
    if structure.identity_u:
        rows = np.ascontiguousarray(v.T)
        off = 2.0 * UNIT * row_norms(rows)
        definite = structure.identity_m0 and structure.symmetric
        hadamard = Hadamard(rows, 2.0 * UNIT, weight) if definite and structure.nonnegative else None
        return Bounds(Relaxation(rows, m0, np.zeros_like(m0), off, weight), hadamard)
    if structure.ratio is None or not structure.symmetric:
        return Bounds()
    rows = v.T * np.sqrt(structure.ratio)[:, None]
    if structure.diagonal_m0 and (np.diag(m0) > 0.0).all() and len(rows) <= _MOST_ITEMS:
        return _of_factor(rows, np.diag(m0), weight)
    if structure.nonnegative:
        return Bounds(Relaxation(rows, None, m0, 8.0 * UNIT * row_norms(rows), weight))
    return Bounds()


def _of_factor(rows: np.ndarray, held: np.ndarray, weight: np.ndarray) -> Bounds:
    """Bounds on c_S = det M0 · det (B·Bᵀ)_S, B = rows·M0^-½, M0 = diag(held); rows have errors of a few roundings.

    Rows of B are multiplied by powers of two, for which their weights compensate, so that products with them neither
    underflow nor overflow.
    """
    B, exponents = _divided(rows, held)
    weight = weight + 2.0 * np.log(2.0) * exponents
    L, one = B @ B.T, np.eye(len(B))
    error = 2.0 * (B.shape[1] + 16) * UNIT
    norms = np.linalg.norm(B, axis=1)
    found = Relaxation(L, one, np.zeros_like(one), error * norms * float(np.linalg.norm(B)), weight)
    shift = float(np.log(held).sum()) + 4.0 * (len(held) + 1) * UNIT * float(np.abs(np.log(held)).sum() + 1.0)
    shift += 4.0 * UNIT * float(np.abs(exponents).sum() + np.abs(weight).sum())  # of the weights
    found.shift = shift
    return Bounds(found, Hadamard(L, 2.0 * error, weight, shift))


def _divided(rows: np.ndarray, held: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """B and e with 2^e_i·B_ik = rows_ik/√held_k, and the largest entry of every row of B near 1."""
    mantissa, exponent = np.frexp(rows)
    half = np.frexp(held)[1] // 2
    mantissa /= np.sqrt(np.ldexp(held, -2 * half))
    exponent -= half
    top = np.where(rows != 0.0, exponent, np.iinfo(exponent.dtype).min).max(
        axis=1, initial=np.iinfo(exponent.dtype).min
    )
    top = np.where((rows != 0.0).any(axis=1), top, 0)
    return np.ldexp(mantissa, np.maximum(exponent - top[:, None], -1100)), top
