"""Determinants of which only the terms with a given number of children are kept: k-DPPs.

With G the kernel at a base where the children that count are 0 and the others φ, let E be the others with d ≠ 0, where
d_i = f_i − y_i·φ_i, and those that count and must be in (d_i = f_i); W = |d|^½·G_EE·|d|^½ plus y_i, for d_i > 0, or
minus f_i/φ_i and with −(1/φ_i − G_ii) for G_ii, for d_i < 0, on its diagonal; C those that count and may be in, and S
the Schur complement of W in the same matrix over E and C. The terms with k counted children add up to

    D_base · |det W| · e_j(eigenvalues of S),     j = k − how many counted ones must be in.

Children with d_i > 0 come first, so that elimination finds pivots of known signs.

S is brought to tridiagonal form T = L·D·Lᵀ by reflections; e_j is then the sum over all j-matchings of a path whose
edges weigh D_1, D_1·L_1², D_2, D_2·L_2², …: positive numbers only.

The error. A symmetric error E of S changes e_j by at most ‖E‖·‖∂e_j/∂S‖ ≤ ‖E‖·√(m − j + 1)·e_{j−1} (Frobenius norms;
the derivative has the eigenvalues e_{j−1} of the others, which add up to (m − j + 1)·e_{j−1}).

Roundings of an entry of W or S, relative to √(|L||D||Lᵀ|) of its row times that of its column: 1 of the kernel, 3 of
each weight (|d| has 1, its scale 2, the quotient 1, of which the root halves the sum and adds 1), 2 products and the
sum on a diagonal; a + 2 of elimination (a multiplier, a product, a sums). That is a + 12 at most.

A reflection of `tridiagonal` works on the row x, |x| = σ, of a matrix [[S₁, x], [xᵀ, ·]] with ℓ entries. In units of u,
with c = ℓ/16 and sums in chunks of 16 (16 + c for a sum of products):
    σ is off by σ·(9 + c/2): half of 16 + c for its square, and the root.
    v = x ± σ·e is off by σ·(11 + c/2) in one entry from the vector that maps x onto e, so that the reflection by v, an
    orthogonal one, maps x elsewhere by 2√2 times that; with σ itself, which becomes the entry beside the diagonal, by
    σ·(41 + 2c), and so twice in a symmetric matrix: σ·(58 + 2.8c) in norm.
    square is off from |v|² by a factor of 13 + c/2: σ and what is added to it is the same in both, but for one σ.
    p = 2·S₁·v/square: of the sums 17 + c times 2·‖S₁‖/|v|, of square 13 + c/2 times |p|; what is subtracted from it,
    its projection onto v, 30 + 1.5c times |p|; that product and the difference, 2 times |p|.
    S₁ − v·pᵀ − p·vᵀ: twice |v| times what p is off by; of every entry 2·(|v·pᵀ| + |p·vᵀ|) and itself.
Together (69 + 4c)·‖S₁‖ + (94 + 4c)·|v|·|p| + (58 + 2.8c)·σ; second powers of u are within 1 % of it.
"""

from __future__ import annotations

import math

import numpy as np

from pgcc.determinants.kernels.filling import added
from pgcc.ir.numbers import UNIT
from pgcc.kernels.policy import kernel, separate_kernel

_SMALL, _LARGE = 2.0**-500, 2.0**500
_NOTHING = 2.0**-900  # squares of a row that is left away, beside a diagonal near 1
_SHIFTS = 4  # the largest shift is 8 times what T is off by; roundings are mostly far smaller
_CHUNK = 16  # terms that are added up by themselves, so that fewer roundings follow one another


@separate_kernel
def sized_sum(kernel_matrix, scale, gap, phi, f, y, size, counted):
    """(mantissa, binary exponent, relative error) without the factor D_base; an error of inf: not to be trusted.

    kernel_matrix, scale, gap : see `Base`. phi : the base, 0 for children that count. counted : 1 for these.
    """
    k = len(f)
    index, d, j, a, m = np.empty(k, np.int64), f - y * phi, size, 0, 0
    for i in range(k):
        if y[i] == 0.0 and f[i] == 0.0:
            return 0.0, 0, 0.0
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
    if j < 0 or j > m:
        return 0.0, 0, 0.0
    if j == 0:
        m = 0
    q = a + m
    matrix = np.empty((q, q))
    weight = np.empty(q)
    value, binary = 1.0, 0
    for p in range(q):
        weight[p] = np.sqrt(abs(d[index[p]]) / scale[index[p]])
        for c in range(p + 1):
            matrix[p, c] = matrix[c, p] = weight[p] * kernel_matrix[index[p], index[c]] * weight[c]
    for p in range(positive):
        if y[index[p]] != 0.0:
            matrix[p, p] = added(matrix[p, p], y[index[p]])
    for p in range(positive, a):
        i = index[p]
        matrix[p, p] = -(weight[p] * weight[p] * gap[i] + f[i] / phi[i])
    for p in range(a):
        pivot = matrix[p, p]
        if not _SMALL < (pivot if p < positive else -pivot) < _LARGE:
            return 0.0, 0, math.inf
        value, more = math.frexp(value * abs(pivot))
        binary += more
        for i in range(p + 1, q):
            factor = matrix[i, p] / pivot
            row, top = matrix[i], matrix[p]
            for c in range(p + 1, q):
                row[c] -= factor * top[c]
        for i in range(p + 1, q):
            matrix[i, p] /= pivot
    sizes = _sizes(matrix, a, q)
    # entries are off by at most (12 + a)·u·sizes_i·sizes_j; what they do to S goes through the rows of (−Z_CE·W⁻¹, I)
    grown = _through_inverse(matrix, a, q, sizes)
    off = 0.0
    for p in range(a):  # Σ_E (L⁻¹·sizes)² / pivot bounds what they do to det W
        off += grown[p] * grown[p] / abs(matrix[p, p])
    off *= 1.1 * (12.0 + a) * UNIT
    if not off < 0.1:
        return 0.0, 0, math.inf
    if j == 0:
        return value, binary, off + 2.0 * a * UNIT
    spread = 0.0
    for p in range(a, q):
        spread += grown[p] * grown[p]
    error = 1.1 * (12.0 + a) * UNIT * spread
    scaled = _mean_diagonal(matrix, a, q)
    if not _SMALL < scaled < _LARGE:
        return 0.0, 0, math.inf
    scaled = 2.0 ** math.frexp(scaled)[1]
    S = np.empty((m, m))
    for p in range(m):
        for c in range(p + 1):  # its two triangles are rounded in different ways
            S[p, c] = S[c, p] = matrix[a + p, a + c] / scaled
    diagonal, beside, more = tridiagonal(S)
    error = error / scaled + more
    path, shift = _positive_path(diagonal, beside, error)
    if shift < 0.0:
        return 0.0, 0, math.inf
    e, before = _matchings(path, m, j)
    if not (_SMALL < e < _LARGE and before < _LARGE):
        return 0.0, 0, math.inf
    # the factors L and D are those of a T off by 3 roundings of every entry
    total = 0.0
    for p in range(m):
        total += diagonal[p] + 2.0 * abs(beside[p]) + shift
    error += 3.0 * UNIT * total
    relative = (np.sqrt(m - j + 1.0) * error + (m - j + 1.0) * shift) * before / e
    if not relative < 0.01:
        return 0.0, 0, math.inf
    value, more = math.frexp(value * e)
    return value, binary + more + j * int(math.frexp(scaled)[1] - 1), off + 1.1 * relative + (6.0 * m + 4.0 * q) * UNIT


@kernel
def _sizes(matrix, a, q):
    """√ of the diagonal of |L|·|D|·|Lᵀ|, where what is left is in place of D for the rows that are not eliminated."""
    sizes = np.empty(q)
    for p in range(q):
        total = abs(matrix[p, p])
        for c in range(min(p, a)):
            total += matrix[p, c] * matrix[p, c] * abs(matrix[c, c])
        sizes[p] = np.sqrt(total)
    return sizes


@kernel
def _through_inverse(matrix, a, q, sizes):
    """|L⁻¹|·sizes for the rows of E, and sizes + |Z_CE·W⁻¹|·sizes for those of C; L is below the diagonal."""
    grown = np.empty(q)
    for p in range(a):
        total = sizes[p]
        for c in range(p):
            total += abs(matrix[p, c]) * grown[c]
        grown[p] = total
    row = np.empty(a)
    for p in range(a, q):
        total = sizes[p]
        for c in range(a - 1, -1, -1):  # row·L = the row of multipliers
            row[c] = matrix[p, c]
            for b in range(c + 1, a):
                row[c] -= row[b] * matrix[b, c]
            total += abs(row[c]) * sizes[c]
        grown[p] = total
    return grown


@kernel
def tridiagonal(S):
    """Diagonal, and what is beside it (beside[0] = 0), of a tridiagonal matrix orthogonally similar to S; S is lost.

    And how far it is from one that is, in norm. S has a diagonal near 1.
    """
    m = len(S)
    diagonal, beside = np.zeros(m), np.zeros(m)
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
        if square < _NOTHING:
            continue
        norm, pivot = np.sqrt(square), row[last - 1]
        beside[last] = -norm if pivot > 0.0 else norm
        for c in range(last):
            v[c] = row[c]
        v[last - 1] -= beside[last]
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
        error += (69.0 + 4.0 * chunks) * np.sqrt(max(left, 0.0) + 1e-8 * whole)  # `left` cancels
        error += (94.0 + 4.0 * chunks) * size + (58.0 + 2.8 * chunks) * norm
        for c in range(last):
            p[c] -= dot * v[c]
        for i in range(last):
            x, z = v[i], p[i]
            for c in range(last):
                S[i, c] -= x * p[c] + z * v[c]
    if m > 1:
        diagonal[1], beside[1] = S[1, 1], S[1, 0]
    diagonal[0] = S[0, 0]
    return diagonal, beside, 1.01 * UNIT * error


@kernel
def _dot(a, b, count):
    """Σ a·b, in chunks: of a term, at most 16 + count/16 roundings."""
    total = 0.0
    for first in range(0, count, _CHUNK):
        part = 0.0
        for i in range(first, min(first + _CHUNK, count)):
            part += a[i] * b[i]
        total += part
    return total


@kernel
def _mean_diagonal(matrix, first, last):
    total = 0.0
    for i in range(first, last):
        total += abs(matrix[i, i])
    return total / (last - first)


@kernel
def _positive_path(diagonal, beside, error):
    """D_1, D_1·L_1², D_2, … of T, and what had to be added to its diagonal to make them positive; −1: in vain."""
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
                path[2 * p + 1] = beside[p + 1] * beside[p + 1] / pivot
        if fine:
            return path, shift
        shift = error / 8.0 ** (_SHIFTS - 1) if shift == 0.0 else 8.0 * shift
    return path, -1.0


@kernel
def _matchings(path, m, j):
    """Σ over j-matchings of a path of edges, and over (j − 1)-matchings, of products of weights."""
    older, newer, next_ = np.zeros(j + 1), np.zeros(j + 1), np.zeros(j + 1)
    older[0] = newer[0] = 1.0
    for t in range(len(path)):
        # edge t is left away, or taken together with a matching of the edges up to t − 2
        next_[0] = 1.0
        for i in range(1, j + 1):
            next_[i] = newer[i] + path[t] * older[i - 1]
        older, newer, next_ = newer, next_, older
    return newer[j], newer[j - 1]
