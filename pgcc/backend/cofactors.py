"""Derivatives of determinants, right where the matrix is singular.

With C the cofactors of W, d det W = Σ C_ij·dW_ij. Where W is well conditioned, C = det(W)·W⁻ᵀ; elsewhere it is put
together from singular values, C = det(Q)·det(R)·Q·diag(Π_{j≠i} σ_j)·Rᵀ of W = Q·diag(σ)·Rᵀ, which divides by nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

Matrices = tuple[np.ndarray, np.ndarray, np.ndarray]  # M0, U, V
# Inverses of matrices with larger condition numbers lose too many digits.
_WELL_CONDITIONED = 1e6


@dataclass
class Derivatives:
    """Of a determinant, for a batch of rows: every number times 2^exponent[row].

    by_inside, by_outside : rows × k. by_matrices : (rows × r × r, rows × r × k, rows × r × k), for M0, U and V.
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
    batch, n = W.shape[:2]
    if n == 0:
        return np.ones(batch), np.zeros((batch, 0, 0)), np.zeros(batch, np.int64)
    value, C, exponent = np.zeros(batch), np.zeros(W.shape), np.zeros(batch, np.int64)
    sign, log = np.linalg.slogdet(W)
    regular = (sign != 0.0) & np.isfinite(log)
    inverse = np.linalg.inv(np.where(regular[:, None, None], W, np.eye(n)))
    with np.errstate(invalid="ignore", over="ignore"):
        condition = np.linalg.norm(W, axis=(1, 2)) * np.linalg.norm(inverse, axis=(1, 2))
    regular &= condition < _WELL_CONDITIONED * n
    exponent[regular] = np.floor(log[regular] / np.log(2.0)).astype(np.int64)
    value[regular] = sign[regular] * np.exp(log[regular] - exponent[regular] * np.log(2.0))
    C[regular] = value[regular, None, None] * inverse[regular].transpose(0, 2, 1)
    rest = np.flatnonzero(~regular)
    if len(rest):
        value[rest], C[rest], exponent[rest] = _by_singular_values(W[rest])
    return value, C, exponent


def _by_singular_values(W: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same for matrices that may be singular."""
    Q, sigma, R = np.linalg.svd(W)
    sign = np.linalg.det(Q) * np.linalg.det(R)
    sign = np.where(sign < 0.0, -1.0, 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log2(sigma)
        zeros = np.isneginf(logs)
        known = np.where(zeros, 0.0, logs)
        others = known.sum(axis=1)[:, None] - known  # log Π_{j≠i} σ_j, where none of them is 0
        hidden = zeros.sum(axis=1)[:, None] - zeros > 0
        others = np.where(hidden, -np.inf, others)
        top = others.max(axis=1)
        exponent = np.where(np.isfinite(top), np.floor(top), 0.0)
        products = np.exp2(others - exponent[:, None])
        value = sign * np.where(zeros.any(axis=1), 0.0, np.exp2(np.minimum(known.sum(axis=1) - exponent, 1000.0)))
    C = sign[:, None, None] * np.einsum("bij,bj,bjk->bik", Q, products, R)
    return value, C, exponent.astype(np.int64)


def determinant_derivatives(matrices: Matrices, f: np.ndarray, y: np.ndarray) -> Derivatives:
    """det [[M0, U·diag(f)], [−Vᵀ, diag(y)]] and its derivatives, for rows of f and y (rows × k).

    A child with y ≠ 0 is eliminated: M0 + Σ (f/y)·u·vᵀ, times y. Those with y = 0, which are surely in, stay.
    """
    rows, k = f.shape
    m0, u, v = matrices
    r = len(m0)
    result = Derivatives(
        np.zeros(rows),
        np.zeros((rows, k)),
        np.zeros((rows, k)),
        (np.zeros((rows, r, r)), np.zeros((rows, r, k)), np.zeros((rows, r, k))),
        np.zeros(rows, np.int64),
    )
    kept = y == 0.0
    for count in np.unique(kept.sum(axis=1)).tolist():
        of = np.flatnonzero(kept.sum(axis=1) == count)
        _with_kept(m0, u, v, f[of], y[of], kept[of], count, of, result)
    return result


def _with_kept(
    m0: np.ndarray, u: np.ndarray, v: np.ndarray, f: np.ndarray, y: np.ndarray, kept: np.ndarray, count: int,
    of: np.ndarray, result: Derivatives,
) -> None:  # fmt: skip
    """The rows `of` of a batch, in each of which `count` children are kept."""
    r, rows = len(m0), len(f)
    ratio = np.divide(f, y, out=np.zeros_like(f), where=~kept)
    inside = np.argsort(~kept, axis=1, kind="stable")[:, :count]  # the kept children of every row
    at = np.arange(rows)[:, None]
    W = np.zeros((rows, r + count, r + count))
    W[:, :r, :r] = m0 + np.einsum("ai,bi,ci->bac", u, ratio, v)
    u_in, v_in, f_in = u.T[inside], v.T[inside], f[at, inside]
    W[:, :r, r:] = (u_in * f_in[:, :, None]).transpose(0, 2, 1)
    W[:, r:, :r] = -v_in
    value, C, exponent = cofactors(W)
    # Π y of the eliminated children, as a number near 1 and a power of two
    logs = np.log2(np.abs(np.where(kept, 1.0, y))).sum(axis=1)
    binary = np.floor(logs)
    product = np.exp2(logs - binary) * np.where((y < 0.0).sum(axis=1) % 2, -1.0, 1.0)
    exponent = exponent + binary.astype(np.int64)
    value, C = value * product, C * product[:, None, None]
    core, border = C[:, :r, :r], C[:, :r, r:]
    Cv, Cu = np.einsum("bac,ci->bai", core, v), np.einsum("bca,ci->bai", core, u)
    by_f = np.einsum("ai,bai->bi", u, Cv) / np.where(kept, 1.0, y)
    by_y = np.divide(value[:, None] - f * by_f, y, out=np.zeros_like(y), where=~kept)
    by_f[at, inside] = np.einsum("bia,bai->bi", u_in, border)
    by_y[at, inside] = np.einsum("bii->bi", C[:, r:, r:])
    by_u, by_v = ratio[:, None, :] * Cv, ratio[:, None, :] * Cu
    by_u[at, :, inside] = (border * f_in[:, None, :]).transpose(0, 2, 1)
    by_v[at, :, inside] = -C[:, r:, :r]
    result.value[of], result.by_inside[of], result.by_outside[of], result.exponent[of] = value, by_f, by_y, exponent
    for whole, part in zip(result.by_matrices, (core, by_u, by_v), strict=True):
        whole[of] = part
