"""Determinants with a size: the sum of the terms with k counted children, as in k-DPPs.

`forms` calls `sized_sum`. It eliminates the children whose presence is decided, and takes an elementary symmetric
polynomial of the eigenvalues of the Schur complement. With d_i = f_i − y_i·φ_i, and the kernel G at a base φ where the
counted children are 0, let

    E   the uncounted children with d_i ≠ 0, and the counted ones that must be in (d_i = f_i); those with d_i > 0 come
        first, so that elimination finds pivots of known signs
    W   |d|^½·G_EE·|d|^½; for d_i > 0, y_i is added on its diagonal; for d_i < 0, the diagonal has −(1/φ_i − G_ii) in
        the place of G_ii, and f_i/φ_i is subtracted
    C   the counted children that may be in
    Z   the same matrix as W, but over E and C; S its Schur complement with respect to W.

Then the terms with k counted children add up to

    D_base · |det W| · e_j(eigenvalues of S),     j = k − the number of counted children that must be in.

S is brought to tridiagonal form T = L·D·Lᵀ by Householder reflections. Then e_j is the sum over the j-matchings of a
path whose edges have the weights D_1, D_1·L_1², D_2, D_2·L_2², …, which are positive, so that nothing cancels.

Conditioning. A symmetric error E of S changes e_j by at most ‖E‖·‖∂e_j/∂S‖ ≤ ‖E‖·√(m − j + 1)·e_{j−1} (Frobenius norms:
the eigenvalues of the derivative are the e_{j−1} of the other eigenvalues, and add up to (m − j + 1)·e_{j−1}).

Backward error of W and S. The error of an entry, relative to the square roots of the diagonal entries of |L||D||Lᵀ| in
its row and in its column, is at most a + 12 roundings: 1 of the kernel, 3 of each of the two weights (|d| has 1, its
scale 2, the quotient 1; the root halves their sum and adds 1), 2 products, 1 sum on a diagonal, and a + 2 of
elimination (a multiplier, a product, a sums).

Backward error of `tridiagonal`. A reflection works on the row x, |x| = σ, of a matrix [[S₁, x], [xᵀ, ·]] with ℓ
entries. Sums are computed in chunks of 16; with c = ℓ/16, a sum of products has 16 + c roundings. In units of u:

    σ         has the error σ·(9 + c/2): half of 16 + c from its square, and the root.
    v         = x ± σ·e differs in one entry by σ·(11 + c/2) from the vector whose reflection maps x onto e. The
              reflection by v is orthogonal, but the image of x is wrong by 2√2 times that. Together with the error of
              σ, which becomes the off-diagonal entry, this is σ·(41 + 2c); it occurs twice in a symmetric matrix:
              σ·(58 + 2.8c) in norm.
    square    has the relative error 13 + c/2 as |v|²: both have the same σ and the same sum, but for one σ.
    p         = 2·S₁·v/square has errors of 2·‖S₁‖/|v| times 17 + c from the sums, and of |p| times 13 + c/2 from
              square, 30 + 1.5c from its projection onto v, which is subtracted, and 2 from that product and the
              difference.
    S₁ − v·pᵀ − p·vᵀ has twice |v| times the error of p; and of every entry 2·(|v·pᵀ| + |p·vᵀ|) and itself.

Together this is (69 + 4c)·‖S₁‖ + (94 + 4c)·|v|·|p| + (58 + 2.8c)·σ; terms of second order in u are within 1 % of it.
"""

from __future__ import annotations

import math

import numpy as np

from pgcc.determinants.kernels.filling import guarded_sum
from pgcc.determinants.kernels.schur import eliminate_row
from pgcc.ir.numbers import UNIT
from pgcc.kernels.policy import bare_kernel, kernel, separate_kernel

_SMALL, _LARGE = 2.0**-500, 2.0**500
_NEGLIGIBLE = 2.0**-900  # rows with smaller squared norms are taken for 0, beside a diagonal near 1
_SHIFTS = 4  # shifts of the diagonal to try: the largest is 8 times the error bound of T, which is mostly pessimistic
_CHUNK = 16  # terms per partial sum, so that every term goes through fewer additions


@separate_kernel
def sized_sum(kernel_matrix, scale, gap, phi, f, y, size, counted):
    """(mantissa, binary exponent, relative error) of the sum without the factor D_base; an error of inf if unknown.

    kernel_matrix, scale, gap : see `Base`. phi : the base, 0 for counted children. counted : 1 for these.
    """
    d = f - y * phi
    index, positive, a, m, j = _list_rows(f, y, d, size, counted)
    if j < 0 or j > m:
        return 0.0, 0, 0.0
    if j == 0:
        m = 0
    q = a + m
    matrix = _fill(kernel_matrix, (scale, gap, phi), (f, y, d), index[:q], positive, a)
    value, binary = _eliminate(matrix, positive, a)
    if value == 0.0:
        return 0.0, 0, math.inf
    # entries have errors of at most (12 + a)·u·scales_i·scales_j, which reach S through the rows of (−Z_CE·W⁻¹, I)
    grown = _through_inverse(matrix, a, q, _entry_scales(matrix, a, q))
    off = 0.0
    for p in range(a):  # Σ_E (|L⁻¹|·scales)² / |pivot| bounds their effect on det W
        off += grown[p] * grown[p] / abs(matrix[p, p])
    off *= 1.1 * (12.0 + a) * UNIT
    if not off < 0.1:
        return 0.0, 0, math.inf
    if j == 0:
        return value, binary, off + 2.0 * a * UNIT
    spread = 0.0
    for p in range(a, q):
        spread += grown[p] * grown[p]
    e, power, relative = _symmetric_polynomial(matrix, a, j, 1.1 * (12.0 + a) * UNIT * spread)
    if relative == math.inf:
        return 0.0, 0, math.inf
    value, more = math.frexp(value * e)
    return value, binary + more + power, off + 1.1 * relative + (6.0 * m + 4.0 * q) * UNIT


@kernel
def _list_rows(f, y, d, size, counted):
    """The children of E, those with d > 0 first, and then those of C.

    Returns (these children, how many of E have d > 0, how many are in E, how many in C, j); j is −1 if a child is
    impossible.
    """
    k = len(f)
    index, j, a, m = np.empty(k, np.int64), size, 0, 0
    for i in range(k):
        if y[i] == 0.0 and f[i] == 0.0:
            return index, 0, 0, 0, -1
        if d[i] > 0.0 and (y[i] == 0.0 or not counted[i]):
            index[a] = i
            a += 1
            j -= counted[i]
    positive = a
    for i in range(k):
        if d[i] < 0.0:
            index[a] = i
            a += 1
    for i in range(k):
        if d[i] > 0.0 and y[i] != 0.0 and counted[i]:
            index[a + m] = i
            m += 1
    return index, positive, a, m, j


@kernel
def _fill(kernel_matrix, base, values, index, positive, a):
    """Z over the children of `index`. base : scale, gap and φ of all children. values : f, y and d of them."""
    scale, gap, phi = base
    f, y, d = values
    q = len(index)
    matrix, weight = np.empty((q, q)), np.empty(q)
    for p in range(q):
        weight[p] = np.sqrt(abs(d[index[p]]) / scale[index[p]])
        for c in range(p + 1):
            matrix[p, c] = matrix[c, p] = weight[p] * kernel_matrix[index[p], index[c]] * weight[c]
    for p in range(positive):
        if y[index[p]] != 0.0:
            matrix[p, p] = guarded_sum(matrix[p, p], y[index[p]])
    for p in range(positive, a):
        i = index[p]
        matrix[p, p] = -(weight[p] * weight[p] * gap[i] + f[i] / phi[i])
    return matrix


@bare_kernel
def _eliminate(matrix, positive, a):
    """Eliminate E: |det W| as (mantissa, binary exponent), 0 if a pivot has the wrong sign or is out of range."""
    value, binary = 1.0, 0
    for p in range(a):
        pivot = matrix[p, p]
        if not _SMALL < (pivot if p < positive else -pivot) < _LARGE:
            return 0.0, 0
        value, more = math.frexp(value * abs(pivot))
        binary += more
        eliminate_row(matrix, p, pivot)
    return value, binary


@kernel
def _symmetric_polynomial(matrix, a, j, error):
    """(mantissa, binary exponent, relative error) of e_j of the eigenvalues of S; an error of inf if unknown.

    S are the rows and columns of the matrix from a on, with an error of norm `error`.
    """
    q = len(matrix)
    m, mean = q - a, _mean_diagonal(matrix, a, q)
    if not _SMALL < mean < _LARGE:
        return 0.0, 0, math.inf
    exponent = math.frexp(mean)[1]
    scale = 2.0**exponent
    S = np.empty((m, m))
    for p in range(m):
        for c in range(p + 1):  # the lower triangle alone: the two triangles have different rounding errors
            S[p, c] = S[c, p] = matrix[a + p, a + c] / scale
    diagonal, off_diagonal, more = tridiagonal(S)
    error = error / scale + more
    path, shift = _path_weights(diagonal, off_diagonal, error)
    if shift < 0.0:
        return 0.0, 0, math.inf
    e, before = _matchings(path, m, j)
    if not (_SMALL < e < _LARGE and before < _LARGE):
        return 0.0, 0, math.inf
    # the computed L and D are those of a T with errors of 3 roundings in every entry
    total = 0.0
    for p in range(m):
        total += diagonal[p] + 2.0 * abs(off_diagonal[p]) + shift
    error += 3.0 * UNIT * total
    relative = (np.sqrt(m - j + 1.0) * error + (m - j + 1.0) * shift) * before / e
    return e, j * int(exponent), relative if relative < 0.01 else math.inf


@kernel
def _entry_scales(matrix, a, q):
    """√ of the diagonal of |L|·|D|·|Lᵀ|; for rows that are not eliminated, D is that of the Schur complement."""
    scales = np.empty(q)
    for p in range(q):
        total = abs(matrix[p, p])
        for c in range(min(p, a)):
            total += matrix[p, c] * matrix[p, c] * abs(matrix[c, c])
        scales[p] = np.sqrt(total)
    return scales


@kernel
def _through_inverse(matrix, a, q, scales):
    """|L⁻¹|·scales for the rows of E, and scales + |Z_CE·W⁻¹|·scales for those of C; L is below the diagonal."""
    grown = np.empty(q)
    for p in range(a):
        total = scales[p]
        for c in range(p):
            total += abs(matrix[p, c]) * grown[c]
        grown[p] = total
    row = np.empty(a)
    for p in range(a, q):
        total = scales[p]
        for c in range(a - 1, -1, -1):  # solve row·L = (the multipliers of row p)
            row[c] = matrix[p, c]
            for b in range(c + 1, a):
                row[c] -= row[b] * matrix[b, c]
            total += abs(row[c]) * scales[c]
        grown[p] = total
    return grown


@kernel
def tridiagonal(S):
    """Diagonal and off-diagonal of a tridiagonal matrix orthogonally similar to S, and a bound on its error in norm.

    off_diagonal[0] = 0. S, whose diagonal is near 1, is overwritten.
    """
    m = len(S)
    diagonal, off_diagonal = np.zeros(m), np.zeros(m)
    v, p, part = np.empty(m), np.empty(m), np.empty(m)
    whole, error = 0.0, 0.0
    for i in range(m):
        whole += _dot(S[i], S[i], m)
    left = whole  # ‖S₁‖²
    for last in range(m - 1, 1, -1):  # make row `last` zero left of its neighbour
        row = S[last]
        diagonal[last] = row[last]
        square = _dot(row, row, last)
        left -= row[last] * row[last] + 2.0 * square
        if square < _NEGLIGIBLE:
            continue
        norm, pivot = np.sqrt(square), row[last - 1]
        off_diagonal[last] = -norm if pivot > 0.0 else norm
        for c in range(last):
            v[c] = row[c]
        v[last - 1] -= off_diagonal[last]
        square = 2.0 * norm * (norm + abs(pivot))  # |v|²
        p[:last] = 0.0
        for first in range(0, last, _CHUNK):
            part[:last] = 0.0
            for c in range(first, min(first + _CHUNK, last)):
                x = v[c] * 2.0 / square
                for i in range(last):
                    part[i] += x * S[c, i]
            for i in range(last):
                p[i] += part[i]
        dot, size, chunks = _dot(p, v, last) / square, np.sqrt(_dot(p, p, last) * square), last / _CHUNK
        error += (69.0 + 4.0 * chunks) * np.sqrt(max(left, 0.0) + 1e-8 * whole)  # `left` is a difference that cancels
        error += (94.0 + 4.0 * chunks) * size + (58.0 + 2.8 * chunks) * norm
        for c in range(last):
            p[c] -= dot * v[c]
        for i in range(last):
            x, z = v[i], p[i]
            for c in range(last):
                S[i, c] -= x * p[c] + z * v[c]
    if m > 1:
        diagonal[1], off_diagonal[1] = S[1, 1], S[1, 0]
    diagonal[0] = S[0, 0]
    return diagonal, off_diagonal, 1.01 * UNIT * error


@kernel
def _dot(a, b, count):
    """Σ a·b, in chunks: at most 16 + count/16 roundings per term."""
    total = 0.0
    for first in range(0, count, _CHUNK):
        part = 0.0
        for i in range(first, min(first + _CHUNK, count)):
            part += a[i] * b[i]
        total += part
    return total


@kernel
def _mean_diagonal(matrix, first, last):
    """The mean absolute value of some diagonal entries."""
    total = 0.0
    for i in range(first, last):
        total += abs(matrix[i, i])
    return total / (last - first)


@kernel
def _path_weights(diagonal, off_diagonal, error):
    """D_1, D_1·L_1², D_2, … of T + shift·I, and the smallest shift tried that makes them positive; −1 if none does."""
    m = len(diagonal)
    path = np.zeros(2 * m - 1)
    shift = 0.0
    for _ in range(_SHIFTS + 2):
        fine = True
        pivot = diagonal[0] + shift
        for p in range(m):
            if p > 0:
                pivot = diagonal[p] + shift - path[2 * p - 1]
            if not pivot > 0.0:
                fine = False
                break
            path[2 * p] = pivot
            if p + 1 < m:
                path[2 * p + 1] = off_diagonal[p + 1] * off_diagonal[p + 1] / pivot
        if fine:
            return path, shift
        shift = error / 8.0 ** (_SHIFTS - 1) if shift == 0.0 else 8.0 * shift
    return path, -1.0


@kernel
def _matchings(path, m, j):
    """The sums over the j-matchings and over the (j − 1)-matchings of a path of the products of their edge weights."""
    older, newer, next_ = np.zeros(j + 1), np.zeros(j + 1), np.zeros(j + 1)
    older[0] = newer[0] = 1.0
    for t in range(len(path)):
        # edge t is left out, or it is taken together with a matching of the edges up to t − 2
        next_[0] = 1.0
        for i in range(1, j + 1):
            next_[i] = newer[i] + path[t] * older[i - 1]
        older, newer, next_ = newer, next_, older
    return newer[j], newer[j - 1]
