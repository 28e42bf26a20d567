"""The kernel G = Vᵀ·N⁻¹·U of a determinant at a base point N = M0 + U·diag(φ)·Vᵀ, every entry to the last bit.

N⁻¹ is found in doubles, refined by Newton's iteration X ← X + X·(I − N·X) in ball arithmetic, and certified by its
residual R = I − N·X: the error of an entry of X is at most the largest row sum of |X|, times the largest entry of |R|,
divided by 1 − ‖R‖. The bases of large L-ensembles and marginal kernels come from `large_definite`. `forms` calls this.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from flint import arb, arb_mat

from pgcc.determinants.large_definite import IdentityPlus
from pgcc.exact.balls import ball, ball_determinant, ball_matrix, floats, midpoints
from pgcc.exact.precision import ball_parts, precision
from pgcc.ir.numbers import UNIT
from pgcc.program.det_structure import DetStructure
from pgcc.progress import waiting

_BITS = 192
_STEPS = 3  # of Newton's iteration, at most
# The largest error of an entry of the scaled kernel before it is rounded to a double, or to a pair of doubles.
_ERROR, _ERROR_OF_PAIRS = 2.0**-100, 2.0**-122
# Scaling up a smaller diagonal entry would magnify the underflow of the other entries of its row.
_NORMAL = 2.0**-960


@dataclass(frozen=True, eq=False)
class Base:
    """The kernel G_ij = v_iᵀ·N⁻¹·u_j, scaled to c_i·G_ij·c_j with a diagonal near 1.

    Where u_i = σ_i·v_i for all i, the kernel is the symmetric v_iᵀ·N⁻¹·v_j, and σ_i becomes a factor of child i.

    Attributes
    ----------
    kernel : float64 array, k × k
    scale : float64 array
        c_i² / σ_i.
    gap : float64 array
        c_i²·(1/(σ_i·φ_i) − G_ii); NaN where it is not known to the last bit.
    low : float64 array, k × k, optional
        The rounding errors of the entries of a symmetric kernel, themselves rounded to doubles, if they are known.
    gap_low : float64 array
        The rounding error of the gap, or NaN.
    square : float64 array
        c_i².
    """

    kernel: np.ndarray
    scale: np.ndarray
    gap: np.ndarray
    low: np.ndarray | None
    gap_low: np.ndarray
    square: np.ndarray


class _Entries(NamedTuple):
    """The entries of a kernel G: doubles, bounds on their errors, and their low parts.

    Attributes
    ----------
    high : float64 array, k × k
    radii : float64 array, k × k, or float
    low : function
        Returns the low parts: G is high + low(), up to the radii.
    is_zero : function
        Whether an entry that is 0 as a double is 0.
    diagonal : sequence of arb
    """

    high: np.ndarray
    radii: np.ndarray | float
    low: Callable[[], np.ndarray]
    is_zero: Callable[[int, int], bool]
    diagonal: Sequence[arb]


@np.errstate(divide="ignore", over="ignore", invalid="ignore", under="ignore")
def find_base(structure: DetStructure, phi: np.ndarray) -> Base | None:
    """The base at these values of the children; None if N is singular, or too close to singular to tell."""
    if not structure.rank:
        return None
    is_identity = structure.identity_m0 if not phi.any() else structure.is_marginal_kernel and (phi == 1.0).all()
    left = np.abs(structure.floats[2]).sum(axis=0)
    with waiting(f"the kernel of a determinant of {len(phi):,} children"), precision(_BITS):
        if is_identity and structure.identity_u and structure.doubles[2]:  # G = Vᵀ
            return _base_of_entries(structure, _entries_of_doubles(structure.floats[2].T), phi, 0.0 * left, left)
        m0, u, v = _balls(structure)
        columns, right = (u, np.abs(structure.floats[1]).sum(axis=0)) if structure.ratio is None else (v, left)
        inverse, error = None, arb(0)
        if not is_identity:
            n = _at(structure, m0, u, v, phi)
            start = inverse_in_doubles(n)
            if start is None:
                return None
            inverse, error = refined_inverse(n, start, _ERROR_OF_PAIRS / _magnification(structure, start, left, right))
        right_factor = columns if inverse is None else inverse if structure.identity_u else inverse * columns
        g = v.transpose() if structure.identity_u and inverse is None else v.transpose() * right_factor
        share = float(error.sqrt()) * 1.0001  # of either side
        return _base_of_entries(structure, _entries_of_balls(g), phi, share * left, share * right)


@np.errstate(divide="ignore", over="ignore", invalid="ignore", under="ignore")
def base_by_inverse(structure: DetStructure, whole: IdentityPlus, sign: int) -> Base | None:
    """The base of a large symmetric determinant whose kernel is G = sign·(N⁻¹ − I), given N.

    So it is for det(I + diag(f)·L) where everything is free, with N = I + L: G = L·N⁻¹ = I − N⁻¹ (sign −1); and for
    det(I − K + diag(f)·K) where everything is 0, with N = I − K: G = K·N⁻¹ = N⁻¹ − I (sign 1).
    """
    about = whole.diagonal()
    if about is None:
        return None
    smallest = float((sign * (about - 1.0)).min())  # of the diagonal of G, to which errors are relative
    inverse = whole.inverse(_ERROR_OF_PAIRS * max(smallest, UNIT) / 4.0)
    if inverse is None:
        return None
    ones = np.ones(structure.children)
    with precision(_BITS):
        diagonal = [sign * (x - 1) for x in inverse.diagonal]
        high, low = sign * inverse.high, sign * inverse.low
        np.fill_diagonal(high, [float(x) for x in diagonal])
        np.fill_diagonal(low, [float(x - float(x)) for x in diagonal])
        entries = _Entries(high, 0.0, lambda: low, lambda i, j: False, diagonal)
        return _base_of_entries(structure, entries, 0.0 * ones if sign > 0 else ones, inverse.error * ones, ones)


def _entries_of_doubles(kernel: np.ndarray) -> _Entries:
    diagonal = [arb(x) for x in np.diag(kernel).tolist()]
    return _Entries(kernel, 0.0, lambda: np.zeros_like(kernel), lambda i, j: True, diagonal)


def _entries_of_balls(g: arb_mat) -> _Entries:
    k, balls, high = g.nrows(), g.entries(), floats(g)
    radii = np.array([float(x.rad()) for x in balls]).reshape(k, k)
    return _Entries(high, radii, lambda: _low_parts(g, high), lambda i, j: g[i, j] == 0, balls[:: k + 1])


def _magnification(structure: DetStructure, inverse: np.ndarray, left: np.ndarray, right: np.ndarray) -> float:
    """An estimate of the factor by which errors of N⁻¹ grow in the scaled kernel."""
    _, u, v = structure.floats
    diagonal = np.abs(((v.T @ inverse) * (u.T if structure.ratio is None else v.T)).sum(axis=1))
    scale = np.where(diagonal > 0.0, 1.0 / np.sqrt(diagonal), 0.0)
    return max(float((left * scale).max(initial=0.0) * (right * scale).max(initial=0.0)), 1.0)


def _base_of_entries(
    structure: DetStructure, entries: _Entries, phi: np.ndarray, left: np.ndarray, right: np.ndarray
) -> Base | None:
    """Scale the entries and round them to doubles, or pairs of doubles; None if they are inaccurate or out of range.

    The error of entry (i, j) is at most its radius plus left[i]·right[j].
    """
    k, ratio, high = len(phi), structure.exact_ratio, entries.high
    size = np.abs(np.diag(high))
    square = np.ldexp(1.0, (-2 * np.floor(np.frexp(np.where(size > 0, size, 1.0))[1] / 2)).astype(int))
    half = np.sqrt(square)
    scaling = half * half[:, None]
    error = (left * half).max(initial=0.0) * (right * half).max(initial=0.0)
    error += (entries.radii * scaling).max(initial=0.0)
    if not np.isfinite(high).all() or not error <= _ERROR or _loses_digits(entries, size):
        return None
    gap, gap_low = np.full(k, np.nan), np.full(k, np.nan)
    for i in range(k):
        if phi[i] > 0.0:
            distance = 1 / (ball(float(phi[i])) * ball(ratio[i])) - entries.diagonal[i]
            middle = float(distance.mid())
            off = float(distance.rad()) + left[i] * right[i]
            # beside a smaller gap, the errors of the other entries of the row would no longer be negligible
            if off <= 2.0**-56 * middle and middle * square[i] >= 2.0**56 * _ERROR:
                gap[i] = middle * square[i]
            if off <= 2.0**-108 * middle and middle * square[i] * _ERROR_OF_PAIRS >= error:
                gap_low[i] = float((distance - middle).mid()) * square[i]
    scale = square / np.array(ratio, float)
    kernel, low = high * scaling, None
    if structure.symmetric and error <= _ERROR_OF_PAIRS:
        low = entries.low() * scaling
    if not (np.isfinite(kernel).all() and np.isfinite(scale).all() and (scale > 0.0).all()):
        return None
    return Base(np.ascontiguousarray(kernel), scale, gap, low, gap_low, square)


def _low_parts(g: arb_mat, rounded: np.ndarray) -> np.ndarray:
    """The rounding errors of the entries of a symmetric matrix."""
    k, balls = len(rounded), g.entries()
    lower, low = np.tril_indices(k), np.zeros((k, k))
    where = (lower[0] * k + lower[1]).tolist()
    low[lower] = [float(balls[i] - x) for i, x in zip(where, rounded[lower].tolist(), strict=True)]
    low.T[lower] = low[lower]
    return low


def _loses_digits(entries: _Entries, size: np.ndarray) -> bool:
    """Whether underflow has taken digits from an entry in the row or column of a diagonal entry that is tiny or 0."""
    if (size >= _NORMAL).all():
        return False
    zero = size == 0.0
    beside = (entries.high == 0.0) & (zero | zero[:, None])
    tiny = bool(((size > 0.0) & (size < _NORMAL)).any())
    return tiny or not all(entries.is_zero(i, j) for i, j in np.argwhere(beside).tolist())


def determinant_at(structure: DetStructure, phi: np.ndarray) -> tuple[float, int, float]:
    """det(M0 + U·diag(φ)·Vᵀ) as mantissa, binary exponent and relative error, which is inf where it may be 0."""
    with precision(_BITS):
        n = _at(structure, *_balls(structure), phi)
        return ball_parts(ball_determinant(n) if structure.rank else arb(1))


def _at(structure: DetStructure, m0: arb_mat, u: arb_mat, v: arb_mat, phi: np.ndarray) -> arb_mat:
    """M0 + U·diag(φ)·Vᵀ"""
    if not phi.any():
        return m0
    if not (phi == 1.0).all():
        k, columns = len(phi), phi.tolist()
        v = arb_mat(v.nrows(), k, [x * columns[i % k] for i, x in enumerate(v.entries())])
    return m0 + (v.transpose() if structure.identity_u else u * v.transpose())


def _balls(structure: DetStructure) -> tuple[arb_mat, arb_mat, arb_mat]:
    """M0, U and V in balls."""
    one = arb_mat(structure.rank, structure.rank, 1)
    m0, u, v = structure.matrices
    top = one if structure.identity_m0 else ball_matrix(m0)
    return top, one if structure.identity_u else ball_matrix(u), ball_matrix(v)


def inverse_in_doubles(n: arb_mat) -> np.ndarray | None:
    """An approximate inverse; None if that is not finite."""
    try:
        inverse = np.linalg.inv(floats(n))
    except np.linalg.LinAlgError:
        return None
    return inverse if np.isfinite(inverse).all() else None


def refined_inverse(n: arb_mat, start: np.ndarray, enough: float) -> tuple[arb_mat, arb]:
    """X ≈ N⁻¹ by Newton's iteration, as exact numbers, and a bound on their errors: inf if N may be singular.

    The bound is a ball, not a double: that of an X of 1e-308 would underflow.
    """
    r = len(start)
    x, identity = arb_mat(r, r, [arb(value) for value in start.ravel().tolist()]), arb_mat(r, r, 1)
    for step in range(_STEPS + 1):
        residual = identity - n * x
        largest, norm = _sizes(residual, r)
        if norm >= 0.5:
            return x, arb("inf")
        error = (arb(_sizes(x, r)[1]) * largest / (1.0 - norm) * 1.001).abs_upper()
        if error <= enough or step == _STEPS:
            break
        x = midpoints(x + x * residual)
    return x, error


def _sizes(matrix: arb_mat, r: int) -> tuple[float, float]:
    """The largest entry and the largest row sum, in absolute value."""
    sizes = np.array([float(x.abs_upper()) for x in matrix.entries()]).reshape(r, r)
    return float(sizes.max(initial=0.0)) * 1.0001, float(sizes.sum(axis=1).max(initial=0.0)) * 1.0001
