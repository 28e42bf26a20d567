"""Random sets from determinantal point processes.

By eigenvectors (Hough, Krishnapur, Peres & Virág 2006): with K = Σ λ_j·q_j·q_jᵀ, take q_j with probability λ_j, and
then as many items as vectors, one after another: item i with probability proportional to the square of what is left of
row i of these vectors when its projection onto the rows of the items taken before is removed. A set of fixed size takes
a fixed number of vectors.

By elimination (Poulson 2019), for kernels that are not symmetric: item i is in with probability K_ii; then the others'
kernel is the Schur complement of K_ii, or of K_ii − 1 if it is out. The same where a fixed number of some items is in:
these are drawn first, by the eigenvectors of their own part of K, and then the others.
"""

from __future__ import annotations

import numpy as np

from pgcc.kernels.policy import kernel
from pgcc.kernels.random import uniform
from pgcc.kernels.simd import LANES, larger, load, mul, muladd, peek, splat, store

# Columns of the plan of a determinant: the kind; its children; those that are free (of a tree: nodes); the place in
# `ints` of what is known of all children, and of the free ones' numbers; the place in `reals` of the numbers of the
# kind; of eigenvectors: the size (−1: any), the number of vectors, and how many of the free ones they draw.
KIND, CHILDREN, FREE, FIXED, ITEMS, REALS, SIZE, RANK, DRAWN, PLAN_COLUMNS = range(10)
VECTORS, ELIMINATION, WALKS = range(3)


@kernel
def pick_spectral(numbers, size, rank, items, state, picked):
    """numbers: λ, then the vectors, each padded to whole lanes, then for a fixed size the `count_distribution`.

    Returns how many numbers these are.
    """
    stride = padded(len(items))
    chosen, after = np.empty(rank, np.int64), rank + rank * stride
    if size < 0:
        k = _choose_any(numbers[:rank], state, chosen)
    else:
        table = numbers[after : after + (rank + 1) * (size + 1)].reshape((rank + 1, size + 1))
        k = _choose_some(numbers[:rank], table, state, chosen)
        after += (rank + 1) * (size + 1)
    for j in range(k):
        chosen[j] = rank + chosen[j] * stride  # where the vector is
    pick_elementary(numbers, chosen[:k], items, state, picked)
    return after


@kernel
def padded(n):
    """n, up to whole lanes."""
    return -(-n // LANES) * LANES


@kernel
def _choose_any(values, state, chosen):
    k = 0
    for j in range(len(values)):
        if uniform(state) < values[j]:
            chosen[k] = j
            k += 1
    return k


@kernel
def _choose_some(values, table, state, chosen):
    """A fixed number of vectors, Pr(J) ∝ Π_J λ · Π_{not J} (1 − λ): from the last to the first."""
    left, k = table.shape[1] - 1, 0
    for j in range(len(values), 0, -1):
        if left > 0 and uniform(state) * table[j, left] < values[j - 1] * table[j - 1, left - 1]:
            chosen[k] = j - 1
            k += 1
            left -= 1
    return k


@kernel
def count_distribution(values, size):
    """table[j, i] = Pr(i of the first j are chosen), each with its own probability, for i ≤ size."""
    table = np.zeros((len(values) + 1, size + 1))
    table[0, 0] = 1.0
    for j in range(len(values)):
        x = values[j]
        for i in range(size + 1):
            table[j + 1, i] = (1.0 - x) * table[j, i] + (x * table[j, i - 1] if i > 0 else 0.0)
    return table


@kernel
def pick_elementary(numbers, places, items, state, picked):
    """As many items as vectors, which are orthonormal and start at these places of `numbers`."""
    k, n = len(places), padded(len(items))
    width = padded(k)
    squares = np.zeros(n)  # of what is left of every row
    parts = np.zeros(k * n)  # the components of all rows in an orthonormal basis of the rows taken so far,
    basis = np.zeros(k * width)  # which is this
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
    """A place with probability proportional to its weight; `total` is what they add up to but for rounding."""
    u, last = uniform(state) * total, 0
    for first in range(0, len(weights), LANES):
        w = weights[first : first + LANES]
        some = ((w[0] + w[1]) + (w[2] + w[3])) + ((w[4] + w[5]) + (w[6] + w[7]))
        if some > 0.0:
            last = first
            if u < some:
                break
            u -= some
    for i in range(last, last + LANES):
        if weights[i] > 0.0:
            last = i
            u -= weights[i]
            if u < 0.0:
                break
    return last


@kernel
def _normalize(a):
    square = 0.0
    for x in a:
        square += x * x
    factor = 1.0 / np.sqrt(square) if square > 0.0 else 0.0
    for j in range(len(a)):
        a[j] *= factor


@kernel
def _add_rows(rows, places, factors, count, out):
    """out += Σ_j factors[j] · (the numbers at places[j]), in registers."""
    n, i = len(out), 0
    while i + 4 * LANES <= n:
        x, y, z, w = load(out, i), load(out, i + LANES), load(out, i + 2 * LANES), load(out, i + 3 * LANES)
        for j in range(count):
            c, place = splat(peek(factors, j)), peek(places, j) + i
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
            x = muladd(splat(peek(factors, j)), load(rows, peek(places, j) + i), x)
        store(out, i, x)
        i += LANES


@kernel
def _add_squares(part, place, squares, sign):
    """squares + sign · part², but not below 0."""
    zero, factor = splat(0.0), splat(sign)
    for i in range(0, len(squares), LANES):
        x = load(part, place + i)
        store(squares, i, larger(muladd(mul(x, factor), x, load(squares, i)), zero))


@kernel
def eliminate(K, items, known, state, picked):
    """The items one after another; of so many of the first it is known whether they are picked."""
    K = K.copy()
    n = len(K)
    for i in range(n):
        taken = picked[items[i]] == 1 if i < known else uniform(state) < K[i, i]
        picked[items[i]] = taken
        pivot = K[i, i] if taken else K[i, i] - 1.0
        top = K[i]
        for j in range(i + 1, n):
            factor = K[j, i] / pivot
            if factor != 0.0:
                row = K[j]
                for c in range(i + 1, n):
                    row[c] -= factor * top[c]
