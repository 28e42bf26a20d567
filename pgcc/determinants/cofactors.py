"""Derivatives of determinants by cofactors, for gradients; also where the matrix is singular.

With the cofactor matrix C of W (the transposed adjugate), d det W = Σ C_ij·dW_ij. Where W is well conditioned,
C = det(W)·W⁻ᵀ. Elsewhere C = det(Q)·det(R)·Q̄·diag(Π_{j≠i} σ_j)·R̄ from the singular value decomposition
W = Q·diag(σ)·R, which involves no division. Before that, W is equilibrated, because singular values are accurate only
relative to the largest one. Numbers may be complex. `evaluate/differentiation` and `differentiation_at_points` call it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

Matrices = tuple[np.ndarray, np.ndarray, np.ndarray]  # M0, U, V
# The largest condition number at which cofactors come from the inverse.
_WELL_CONDITIONED = 1e6
# An exponent of 2 beyond all doubles.
_HUGE_EXPONENT = 2.0**12


@dataclass
class Derivatives:
    """The value and the derivatives of a determinant for a batch of rows, all to be multiplied by 2^exponent[row].

    by_inside, by_outside : rows × k, by f and by y. by_matrices : (rows × r × r, rows × r × k, rows × r × k), by the
    entries of M0, U and V.
    """

    value: np.ndarray
    by_inside: np.ndarray
    by_outside: np.ndarray
    by_matrices: Matrices
    exponent: np.ndarray


def cofactors(W: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(value, cofactors, exponent) of a batch of square matrices: det W = value·2^exponent, and C likewise.

    Examples
    --------
    >>> value, C, exponent = cofactors(np.array([[[1.0, 2.0], [2.0, 4.0]]]))
    >>> (C[0] * 2.0 ** exponent[0]).round(12) + 0.0
    array([[ 4., -2.],
           [-2.,  1.]])
    """
    if W.shape[1] == 0:
        return np.ones(len(W), W.dtype), np.zeros_like(W), np.zeros(len(W), np.int64)
    value, C, exponent, rest = _by_inverse(W)
    if len(rest):
        rows, columns, balanced = _equilibrated(W[rest])
        value[rest], C[rest], exponent[rest], singular = _by_inverse(balanced)
        value[rest[singular]], C[rest[singular]], exponent[rest[singular]] = _by_singular_values(balanced[singular])
        # det W = 2^(Σ r + Σ c) · det W'; the cofactor (i, j) has no factors 2^r_i and 2^c_j
        exponent[rest] += rows.sum(axis=1) + columns.sum(axis=1)
        C[rest] = _times_power(C[rest], -rows[:, :, None] - columns[:, None, :])
    return value, C, exponent


def _equilibrated(W: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(r, c, W') with W = diag(2^r)·W'·diag(2^c), the largest entry of every row and column of W' about 1 (or 0).

    First r_i + c_j is fitted to log₂|W_ij| over all nonzero entries, by least squares: scaling by the largest entries
    alone does not recognize that [[I, I], [−D·A·D, 0]] is as well conditioned as [[I, I], [−A, 0]].
    """
    with np.errstate(divide="ignore"):
        logs = np.log2(np.abs(W))
    nonzero = np.isfinite(logs)
    r, c = np.zeros((len(W), W.shape[1], 1)), np.zeros((len(W), 1, W.shape[1]))
    for _ in range(20):
        r += _mean(logs - r - c, nonzero, 2)
        c += _mean(logs - r - c, nonzero, 1)
    for _ in range(10):
        left = logs - r - c
        r += np.maximum(left.max(axis=2, keepdims=True), -_HUGE_EXPONENT) / 2 * nonzero.any(axis=2, keepdims=True)
        c += np.maximum(left.max(axis=1, keepdims=True), -_HUGE_EXPONENT) / 2 * nonzero.any(axis=1, keepdims=True)
    rows, columns = np.rint(r).astype(np.int32), np.rint(c).astype(np.int32)
    return rows[:, :, 0], columns[:, 0, :], _times_power(W, -rows - columns)


def _times_power(numbers: np.ndarray, exponents: np.ndarray) -> np.ndarray:
    """numbers · 2^exponents"""
    with np.errstate(over="ignore", under="ignore"):
        if np.iscomplexobj(numbers):
            return np.ldexp(numbers.real, exponents) + 1j * np.ldexp(numbers.imag, exponents)
        return np.ldexp(numbers, exponents)


def _mean(numbers: np.ndarray, nonzero: np.ndarray, axis: int) -> np.ndarray:
    """The mean over the nonzero entries of the matrix; 0 if there are none."""
    total = np.where(nonzero, numbers, 0.0).sum(axis=axis, keepdims=True)
    return total / np.maximum(nonzero.sum(axis=axis, keepdims=True), 1)


def _by_inverse(W: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """(value, cofactors, exponent) of the well-conditioned matrices of a batch, and the indices of the others."""
    batch, n = W.shape[:2]
    value, C, exponent = np.zeros(batch, W.dtype), np.zeros_like(W), np.zeros(batch, np.int64)
    sign, log = np.linalg.slogdet(W)
    regular = (sign != 0.0) & np.isfinite(log)
    inverse = np.linalg.inv(np.where(regular[:, None, None], W, np.eye(n)))
    with np.errstate(invalid="ignore", over="ignore"):
        condition = np.linalg.norm(W, axis=(1, 2)) * np.linalg.norm(inverse, axis=(1, 2))
    regular &= condition < _WELL_CONDITIONED * n
    exponent[regular] = np.floor(log[regular] / np.log(2.0)).astype(np.int64)
    value[regular] = sign[regular] * np.exp(log[regular] - exponent[regular] * np.log(2.0))
    C[regular] = value[regular, None, None] * inverse[regular].transpose(0, 2, 1)
    return value, C, exponent, np.flatnonzero(~regular)


def _by_singular_values(W: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(value, cofactors, exponent) of matrices that may be singular."""
    Q, sigma, R = np.linalg.svd(W)
    sign = np.linalg.det(Q) * np.linalg.det(R)
    sign /= np.abs(sign)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log2(sigma)
        zeros = np.isneginf(logs)
        known = np.where(zeros, 0.0, logs)
        others = known.sum(axis=1)[:, None] - known  # log Π_{j≠i} σ_j, where none of them is 0
        has_other_zero = zeros.sum(axis=1)[:, None] - zeros > 0
        others = np.where(has_other_zero, -np.inf, others)
        top = others.max(axis=1)
        exponent = np.where(np.isfinite(top), np.floor(top), 0.0)
        products = np.exp2(others - exponent[:, None])
        value = sign * np.where(zeros.any(axis=1), 0.0, np.exp2(np.minimum(known.sum(axis=1) - exponent, 1000.0)))
    C = sign[:, None, None] * np.einsum("bij,bj,bjk->bik", Q.conj(), products, R.conj())
    return value, C, exponent.astype(np.int64)


def determinant_derivatives(matrices: Matrices, f: np.ndarray, y: np.ndarray) -> Derivatives:
    """det [[M0, U·diag(f)], [−Vᵀ, diag(y)]] and its derivatives, for rows of f and y (rows × k); y is real.

    A child with y ≠ 0 is eliminated, which adds (f/y)·u·vᵀ to M0 and makes y a factor. Children with y = 0, which are
    surely in, are kept as a border.
    """
    rows, k = f.shape
    m0, u, v = matrices
    r = len(m0)
    result = Derivatives(
        np.zeros(rows, f.dtype),
        np.zeros((rows, k), f.dtype),
        np.zeros((rows, k), f.dtype),
        (np.zeros((rows, r, r), f.dtype), np.zeros((rows, r, k), f.dtype), np.zeros((rows, r, k), f.dtype)),
        np.zeros(rows, np.int64),
    )
    kept = y == 0.0
    for of, count in _by_count(kept):
        _with_kept(m0, u, v, f[of], y[of], kept[of], count, of, result)
    return result


def determinant_logs(matrices: Matrices, f: np.ndarray, y: np.ndarray) -> np.ndarray:
    """log₂|det [[M0, U·diag(f)], [−Vᵀ, diag(y)]]| by slogdet: an estimate of its size."""
    m0, u, v = matrices
    kept = y == 0.0
    result = np.log2(np.abs(np.where(kept, 1.0, y))).sum(axis=1)
    for of, count in _by_count(kept):
        W = _bordered(m0, u, v, f[of], _ratios(f[of], y[of], kept[of]), _kept_first(kept[of], count))
        result[of] += np.linalg.slogdet(W)[1] / np.log(2.0)
    return result


def _by_count(kept: np.ndarray) -> Iterator[tuple[np.ndarray, int]]:
    """The rows with the same number of kept children, and this number."""
    counts = kept.sum(axis=1)
    for count in np.unique(counts).tolist():
        yield np.flatnonzero(counts == count), count


def _ratios(f: np.ndarray, y: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """f/y of the children that are eliminated, and 0 for the kept ones."""
    return np.divide(f, y, out=np.zeros_like(f), where=~kept)


def _kept_first(kept: np.ndarray, count: int) -> np.ndarray:
    """The `count` kept children of every row, in order."""
    return np.argsort(~kept, axis=1, kind="stable")[:, :count]


def _bordered(
    m0: np.ndarray, u: np.ndarray, v: np.ndarray, f: np.ndarray, ratio: np.ndarray, inside: np.ndarray
) -> np.ndarray:
    """[[M0 + Σ (f/y)·u·vᵀ, U·diag(f)], [−Vᵀ, 0]], bordered by the children `inside`."""
    r, (rows, count) = len(m0), inside.shape
    W = np.zeros((rows, r + count, r + count), f.dtype)
    W[:, :r, :r] = m0 + (u * ratio[:, None, :]) @ v.T
    W[:, :r, r:] = (u.T[inside] * np.take_along_axis(f, inside, 1)[:, :, None]).transpose(0, 2, 1)
    W[:, r:, :r] = -v.T[inside]
    return W


def _with_kept(
    m0: np.ndarray, u: np.ndarray, v: np.ndarray, f: np.ndarray, y: np.ndarray, kept: np.ndarray, count: int,
    of: np.ndarray, result: Derivatives,
) -> None:  # fmt: skip
    """Write the derivatives of the rows `of` of a batch, in each of which `count` children are kept, to `result`."""
    r, rows = len(m0), len(f)
    ratio, inside, at = _ratios(f, y, kept), _kept_first(kept, count), np.arange(rows)[:, None]
    u_in, f_in = u.T[inside], f[at, inside]
    value, C, exponent = cofactors(_bordered(m0, u, v, f, ratio, inside))
    # Π y of the eliminated children, as a number near 1 and a power of two
    logs = np.log2(np.abs(np.where(kept, 1.0, y))).sum(axis=1)
    binary = np.floor(logs)
    product = np.exp2(logs - binary) * np.where((y < 0.0).sum(axis=1) % 2, -1.0, 1.0)
    exponent = exponent + binary.astype(np.int64)
    value, C = value * product, C * product[:, None, None]
    core, border = C[:, :r, :r], C[:, :r, r:]
    Cv, Cu = np.einsum("bac,ci->bai", core, v), np.einsum("bca,ci->bai", core, u)
    by_f = np.einsum("ai,bai->bi", u, Cv) / np.where(kept, 1.0, y)
    by_y = np.divide(value[:, None] - f * by_f, y, out=np.zeros_like(f), where=~kept)
    by_f[at, inside] = np.einsum("bia,bai->bi", u_in, border)
    by_y[at, inside] = np.einsum("bii->bi", C[:, r:, r:])
    by_u, by_v = ratio[:, None, :] * Cv, ratio[:, None, :] * Cu
    by_u[at, :, inside] = (border * f_in[:, None, :]).transpose(0, 2, 1)
    by_v[at, :, inside] = -C[:, r:, :r]
    result.value[of], result.by_inside[of], result.by_outside[of], result.exponent[of] = value, by_f, by_y, exponent
    for whole, part in zip(result.by_matrices, (core, by_u, by_v), strict=True):
        whole[of] = part
