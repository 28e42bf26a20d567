"""Random sets from determinantal point processes with the marginal kernel K.

Spectral method (Hough, Krishnapur, Peres and Virág, 2006), for symmetric K = Σ λ_j·q_j·q_jᵀ: take eigenvector q_j with
probability λ_j, and then as many items as vectors, one after another. Item i is taken with probability proportional to
the squared norm of row i of these vectors, after its projection onto the rows of the items taken before is removed
(Gram–Schmidt). A set of fixed size takes a fixed number of vectors.

Elimination (Poulson, 2019), for any K: item i is in with probability K_ii. The kernel of the other items is then the
Schur complement of K_ii, or of K_ii − 1 if item i is out.

If a size counts only some of the items, these are drawn first, by the spectral method for their own block of K, and
then the others by elimination. `pgcc.determinants.samplers` prepares the numbers, `picking` draws.
"""

from __future__ import annotations

import numpy as np

from pgcc.determinants.kernels.schur import eliminate_row
from pgcc.kernels.policy import kernel
from pgcc.kernels.random import uniform
from pgcc.kernels.simd import LANES, larger, load, mul, muladd, splat, store


@kernel
def pick_spectral(numbers, size, rank, items, state, picked):
    """Draw a set by the spectral method.

    numbers : λ, then the eigenvectors, each padded to whole lanes, then, for a fixed size, the `count_distribution`.
    Returns how many of the numbers were read.
    """
    stride = padded(len(items))
    chosen, after = np.empty(rank, np.int64), rank + rank * stride
    if size < 0:
        k = _choose_any(numbers[:rank], state, chosen)
    else:
        table = numbers[after : after + (rank + 1) * (size + 1)].reshape((rank + 1, size + 1))
        k = _choose_count(numbers[:rank], table, state, chosen)
        after += (rank + 1) * (size + 1)
    for j in range(k):
        chosen[j] = rank + chosen[j] * stride  # the offset of the vector
    pick_elementary(numbers, chosen[:k], items, state, picked)
    return after


@kernel
def padded(n):
    """n, rounded up to whole lanes."""
    return -(-n // LANES) * LANES


@kernel
def _choose_any(values, state, chosen):
    """Eigenvectors, each with the probability λ of its own; returns their number."""
    k = 0
    for j in range(len(values)):
        if uniform(state) < values[j]:
            chosen[k] = j
            k += 1
    return k


@kernel
def _choose_count(values, table, state, chosen):
    """A fixed number of eigenvectors, Pr(J) ∝ Π_J λ · Π_{not J} (1 − λ), decided from the last to the first."""
    left, k = table.shape[1] - 1, 0
    for j in range(len(values), 0, -1):
        if left > 0 and uniform(state) * table[j, left] < values[j - 1] * table[j - 1, left - 1]:
            chosen[k] = j - 1
            k += 1
            left -= 1
    return k


@kernel
def count_distribution(values, size):
    """table[j, i] = Pr(i of the first j vectors are chosen), i ≤ size: Poisson-binomial distributions."""
    table = np.zeros((len(values) + 1, size + 1))
    table[0, 0] = 1.0
    for j in range(len(values)):
        x = values[j]
        for i in range(size + 1):
            table[j + 1, i] = (1.0 - x) * table[j, i] + (x * table[j, i - 1] if i > 0 else 0.0)
    return table


@kernel
def pick_elementary(numbers, places, items, state, picked):
    """Draw as many items as there are vectors; these are orthonormal and start at the given places of `numbers`."""
    k, n = len(places), padded(len(items))
    width = padded(k)
    squares = np.zeros(n)  # the squared norms of the rows, after projection
    basis = np.zeros(k * width)  # an orthonormal basis of the rows taken so far
    parts = np.zeros(k * n)  # the components of all rows in this basis
    starts, minus = np.arange(k) * width, np.empty(k)
    for place in places:
        _add_squares(numbers, place, squares, 1.0)
    for t in range(k):
        item = _draw(squares, k - t, state)
        picked[items[item]] = 1
        if t == k - 1:
            break
        a, part = basis[t * width : (t + 1) * width], parts[t * n : (t + 1) * n]
        for j in range(k):
            a[j] = numbers[places[j] + item]
        for s in range(t):
            minus[s] = -parts[s * n + item]
        _add_rows(basis, starts, minus, t, a)
        _normalize(a)
        _add_rows(numbers, places, a, k, part)
        _add_squares(part, 0, squares, -1.0)
        squares[item] = 0.0


@kernel
def _draw(weights, total, state):
    """An index with probability proportional to its weight; `total` is the sum of the weights, up to rounding."""
    u, last = uniform(state) * total, 0
    for first in range(0, len(weights), LANES):
        w = weights[first : first + LANES]
        chunk = ((w[0] + w[1]) + (w[2] + w[3])) + ((w[4] + w[5]) + (w[6] + w[7]))
        if chunk > 0.0:
            last = first
            if u < chunk:
                break
            u -= chunk
    for i in range(last, last + LANES):
        if weights[i] > 0.0:
            last = i
            u -= weights[i]
            if u < 0.0:
                break
    return last


@kernel
def _normalize(a):
    """Divide a vector by its norm, unless that is 0."""
    square = 0.0
    for x in a:
        square += x * x
    factor = 1.0 / np.sqrt(square) if square > 0.0 else 0.0
    for j in range(len(a)):
        a[j] *= factor


@kernel
def _add_rows(rows, places, factors, count, out):
    """out += Σ_j factors[j] · rows[places[j] : …], accumulated in registers."""
    n, i = len(out), 0
    while i + 4 * LANES <= n:
        x, y, z, w = load(out, i), load(out, i + LANES), load(out, i + 2 * LANES), load(out, i + 3 * LANES)
        for j in range(count):
            c, place = splat(factors[j]), places[j] + i
            x = muladd(c, load(rows, place), x)
            y = muladd(c, load(rows, place + LANES), y)
            z = muladd(c, load(rows, place + 2 * LANES), z)
            w = muladd(c, load(rows, place + 3 * LANES), w)
        store(out, i, x)
        store(out, i + LANES, y)
        store(out, i + 2 * LANES, z)
        store(out, i + 3 * LANES, w)
        i += 4 * LANES
    while i < n:
        x = load(out, i)
        for j in range(count):
            x = muladd(splat(factors[j]), load(rows, places[j] + i), x)
        store(out, i, x)
        i += LANES


@kernel
def _add_squares(part, place, squares, sign):
    """squares = max(squares + sign · part², 0)"""
    zero, factor = splat(0.0), splat(sign)
    for i in range(0, len(squares), LANES):
        x = load(part, place + i)
        store(squares, i, larger(muladd(mul(x, factor), x, load(squares, i)), zero))


@kernel
def pick_by_elimination(K, items, known, state, picked):
    """Decide the items one after another; whether the first `known` items are picked is already decided."""
    K = K.copy()
    for i in range(len(K)):
        taken = picked[items[i]] == 1 if i < known else uniform(state) < K[i, i]
        picked[items[i]] = taken
        eliminate_row(K, i, K[i, i] if taken else K[i, i] - 1.0)
