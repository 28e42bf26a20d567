"""A program modulo a prime p below 2⁵⁰, for identity tests on exact coefficients.

A residue is a whole number from 0 to p − 1, held in a double; eight of them are computed at a time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pgcc.kernels.policy import kernel
from pgcc.kernels.simd import LANES, fused, if_less, load, minus, mul, nearest, plus, splat, store
from pgcc.kernels.walk import Operations, number_system, walk
from pgcc.program.program import DET, DETMAG

MOST_BITS = 50  # the bits of a prime: see `mul_mod`


@kernel
def add_mod(a, b, prime):
    """a + b mod p"""
    c = plus(a, b)
    return if_less(c, splat(prime), c, minus(c, splat(prime)))


@kernel
def sub_mod(a, b, prime):
    """a − b mod p"""
    c = minus(a, b)
    return if_less(c, splat(0.0), plus(c, splat(prime)), c)


@kernel
def mul_mod(a, b, prime):
    """a · b mod p, exact for p < 2⁵⁰.

    a·b = high + low, both doubles, with |low| ≤ 2⁴⁶ (half a unit in the last place of a number below 2¹⁰⁰). The
    quotient is computed with three roundings, each off by a factor of 1 ± 2⁻⁵³ at most: as a·b/p < 2⁵⁰, by less than
    0.38 in all, and by 0.5 more when it becomes a whole number q. So |a·b − q·p| < 0.88·p, and |high − q·p| is below
    0.88·p + 2⁴⁶ < 2⁵⁰: whole numbers that doubles hold, computed without rounding. The first is the remainder; where it
    is negative, p is added.
    """
    high = mul(a, b)
    low = fused(a, b, minus(splat(0.0), high))
    q = nearest(mul(high, splat(1.0 / prime)))
    rest = plus(fused(minus(splat(0.0), q), splat(prime), high), low)
    return if_less(rest, splat(0.0), plus(rest, splat(prime)), rest)


@kernel
def inverse_mod(a, prime):
    """a^(p − 2) = 1 / a mod p"""
    result, power, exponent = splat(1.0), a, np.int64(prime) - 2
    while exponent:
        if exponent & 1:
            result = mul_mod(result, power, prime)
        power = mul_mod(power, power, prime)
        exponent >>= 1
    return result


@kernel
def divide_mod(above, below, prime):
    """above / below mod p, in place of `above`: flat arrays of a multiple of eight residues."""
    for i in range(0, len(above), LANES):
        store(above, i, mul_mod(load(above, i), inverse_mod(load(below, i), prime), prime))


@kernel
def _determinant_mod(shape, data, f, y, prime, scale, matrix):
    """The bordered determinant by elimination mod p, in all eight lanes.

    `scale` is a row and `matrix` holds the rows, of a length that is a multiple of eight.
    """
    r, k = shape[0], shape[1]
    n, width = r + k, (r + k + LANES - 1) // LANES * LANES
    matrix[: n * width] = 0.0
    scale[:width] = 1.0
    for j in range(k):
        scale[r + j] = f[j]
    for i in range(r):
        for j in range(r):
            matrix[i * width + j] = data[i * r + j]
        for j in range(k):
            matrix[i * width + r + j] = data[r * r + i * k + j]
            v = data[r * r + r * k + i * k + j]
            matrix[(r + j) * width + i] = prime - v if v else v
        for j in range(0, width, LANES):
            store(matrix, i * width + j, mul_mod(load(matrix, i * width + j), load(scale, j), prime))
    for j in range(k):
        matrix[(r + j) * width + r + j] = y[j]
    value = splat(1.0)
    for c in range(n):
        pivot = c
        while pivot < n and matrix[pivot * width + c] == 0.0:
            pivot += 1
        if pivot == n:
            return splat(0.0)
        if pivot != c:
            value = sub_mod(splat(0.0), value, prime)
            for j in range(width):
                a, b = c * width + j, pivot * width + j
                matrix[a], matrix[b] = matrix[b], matrix[a]
        corner = splat(matrix[c * width + c])
        value = mul_mod(value, corner, prime)
        inverse = inverse_mod(corner, prime)
        for i in range(c + 1, n):
            if matrix[i * width + c]:
                factor = mul_mod(splat(matrix[i * width + c]), inverse, prime)
                for j in range(c // LANES * LANES, width, LANES):
                    less = mul_mod(factor, load(matrix, c * width + j), prime)
                    store(matrix, i * width + j, sub_mod(load(matrix, i * width + j), less, prime))
    return value


class Modular(NamedTuple):
    """The number system: residues of every slot at some points, a multiple of eight.

    weights, leaf_table (a, b) and det_data are residues. width : the number of points. points : variables · width.
    work : slots · width. one, scale, matrix : memory for determinants.
    """

    prime: float
    width: int
    weights: np.ndarray
    leaf_variable: np.ndarray
    leaf_table: np.ndarray
    det_shape: np.ndarray
    det_start: np.ndarray
    det_data: np.ndarray
    points: np.ndarray
    work: np.ndarray
    one: np.ndarray
    scale: np.ndarray
    matrix: np.ndarray


def _leaf(system, i, at, number):
    v, n, prime = np.int64(system.leaf_variable[number]), system.width, system.prime
    for q in range(0, n, LANES):
        x = splat(system.leaf_table[number, 0])
        if v >= 0:
            more = mul_mod(splat(system.leaf_table[number, 1]), load(system.points, v * n + q), prime)
            x = add_mod(x, more, prime)
        store(system.work, at * n + q, x)


def _one(system, i, at):
    system.work[at * system.width : (at + 1) * system.width] = 1.0


def _times(system, at, x):
    work, n, prime = system.work, system.width, system.prime
    for q in range(0, n, LANES):
        store(work, at * n + q, mul_mod(load(work, at * n + q), load(work, x * n + q), prime))


def _zero(system, i, at):
    system.work[at * system.width : (at + 1) * system.width] = 0.0


def _add(system, at, k, x):
    work, n, prime, w = system.work, system.width, system.prime, splat(system.weights[k])
    for q in range(0, n, LANES):
        term = mul_mod(w, load(work, x * n + q), prime)
        store(work, at * n + q, add_mod(load(work, at * n + q), term, prime))


def _add_product(system, at, k, x, y):
    work, n, prime, w = system.work, system.width, system.prime, splat(system.weights[k])
    for q in range(0, n, LANES):
        term = mul_mod(w, mul_mod(load(work, x * n + q), load(work, y * n + q), prime), prime)
        store(work, at * n + q, add_mod(load(work, at * n + q), term, prime))


def _determinant(system, i, at, op, args):
    """DETMAG writes 0: it is no polynomial."""
    work, n, d, k = system.work, system.width, args[0], (len(args) - 1) // 2
    if op == DET:
        f, y = np.empty(k), np.empty(k)
        data = system.det_data[system.det_start[d] :]
        for q in range(n):
            for j in range(k):
                f[j], y[j] = work[args[1 + j] * n + q], work[args[1 + k + j] * n + q]
            found = _determinant_mod(system.det_shape[d], data, f, y, system.prime, system.scale, system.matrix)
            store(system.one, 0, found)
            work[at * n + q] = system.one[0]
    elif op == DETMAG:
        work[at * n : (at + 1) * n] = 0.0
    else:
        raise ValueError("an instruction has no value modulo a prime")


number_system(Modular, Operations(_leaf, _one, _times, _zero, _add, _add_product, determinant=_determinant))


@kernel
def run_modular(code, weights, leaf_variable, leaf_table, dets, prime, values, work):
    """work[slot, q] = value mod p of every slot at point q, where variable v is values[v, q].

    code : Instructions. dets : det_shape, det_start, det_data (see `Modular`). There is a multiple of eight points.
    """
    det_shape, det_start, det_data = dets
    n = 1
    for d in range(len(det_shape)):
        n = max(n, det_shape[d, 0] + det_shape[d, 1])
    width = (n + LANES - 1) // LANES * LANES
    system = Modular(
        prime, values.shape[1], weights, leaf_variable, leaf_table, det_shape, det_start, det_data,
        values.reshape(-1), work.reshape(-1), np.empty(LANES), np.empty(width), np.empty(n * width),
    )  # fmt: skip
    walk(code, system, 0, len(code.op))
