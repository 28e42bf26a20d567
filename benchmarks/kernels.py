"""Small Numba kernels that find out what the machine allows; the vectors are those of pgcc's own kernel."""

from __future__ import annotations

from numba import njit

from pgcc.kernels.simd import add_up, load, mul, muladd, splat, store


@njit(nogil=True, error_model="numpy")
def multiply_adds(data, rounds):
    """Sixteen independent accumulators in registers, 128 multiply-adds a round, nothing loaded."""
    x, y = load(data, 0), load(data, 8)
    a, b, c, d, e, f, g, h = x, x, x, x, x, x, x, x
    i, j, k, l, m, n, o, p = y, y, y, y, y, y, y, y  # noqa: E741
    for _ in range(rounds):
        a, b, c, d = muladd(x, y, a), muladd(x, y, b), muladd(x, y, c), muladd(x, y, d)
        e, f, g, h = muladd(x, y, e), muladd(x, y, f), muladd(x, y, g), muladd(x, y, h)
        i, j, k, l = muladd(x, y, i), muladd(x, y, j), muladd(x, y, k), muladd(x, y, l)  # noqa: E741
        m, n, o, p = muladd(x, y, m), muladd(x, y, n), muladd(x, y, o), muladd(x, y, p)
    for at, value in enumerate((a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p)):
        store(data, 16 + 8 * at, value)


@njit(nogil=True, error_model="numpy")
def read(data, rounds):
    """Read everything `rounds` times, one multiply-add per eight numbers; sums do not wait for one another."""
    one = splat(1.0)
    a, b, c, d, e, f, g, h = one, one, one, one, one, one, one, one
    for _ in range(rounds):
        for i in range(0, len(data), 64):
            a, b = muladd(one, load(data, i), a), muladd(one, load(data, i + 8), b)
            c, d = muladd(one, load(data, i + 16), c), muladd(one, load(data, i + 24), d)
            e, f = muladd(one, load(data, i + 32), e), muladd(one, load(data, i + 40), f)
            g, h = muladd(one, load(data, i + 48), g), muladd(one, load(data, i + 56), h)
    return _sum_of((a, b, c, d, e, f, g, h))


@njit(nogil=True, error_model="numpy")
def dot_products(data, rounds):
    """w·x·y over pairs that lie in the nearest cache: the inner loop of a circuit without its indices."""
    w = splat(0.5)
    a, b, c, d, e, f, g, h = w, w, w, w, w, w, w, w
    for _ in range(rounds):
        for i in range(0, len(data), 128):
            a = muladd(w, mul(load(data, i), load(data, i + 64)), a)
            b = muladd(w, mul(load(data, i + 8), load(data, i + 72)), b)
            c = muladd(w, mul(load(data, i + 16), load(data, i + 80)), c)
            d = muladd(w, mul(load(data, i + 24), load(data, i + 88)), d)
            e = muladd(w, mul(load(data, i + 32), load(data, i + 96)), e)
            f = muladd(w, mul(load(data, i + 40), load(data, i + 104)), f)
            g = muladd(w, mul(load(data, i + 48), load(data, i + 112)), g)
            h = muladd(w, mul(load(data, i + 56), load(data, i + 120)), h)
    return _sum_of((a, b, c, d, e, f, g, h))


@njit(nogil=True, error_model="numpy")
def _sum_of(vectors):
    total = 0.0
    for vector in vectors:
        total += add_up(vector)
    return total
