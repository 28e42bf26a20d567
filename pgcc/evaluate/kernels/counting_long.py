"""A monotone program over long polynomials in t without their negligible tails, to an absolute error.

A value is 2^exponent · Σ_k c_k·t^(low + k), with ½ ≤ Σ c_k < 1 and c_k ≥ 0. It has two kinds of errors: `rounded`, the
number of roundings of every coefficient, and `lost`, the error in the 2-norm by cutting off tails and by fast Fourier
transforms, relative to the sum of the coefficients. A product with a polynomial b multiplies the latter by Σ b, a sum
averages it.

The coefficients of a slot are in pool[offset[slot] : offset[slot + 1]].
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from pgcc.kernels.policy import kernel
from pgcc.program.program import LEAF, SUM, TIMES

# If two polynomials are both longer than this, they are multiplied by fast Fourier transforms.
SHORT = 2048
_NEVER = -(2**60)


class LongValues(NamedTuple):
    """The values of all slots: see the module."""

    offset: np.ndarray
    pool: np.ndarray
    lows: np.ndarray
    lengths: np.ndarray
    exponents: np.ndarray
    rounds: np.ndarray
    losses: np.ndarray


class Pieces(NamedTuple):
    """Memory for an unfinished product, in pieces: piece p is buffer[starts[p] : starts[p] + sizes[p]].

    scratch : memory for one polynomial.
    """

    starts: np.ndarray
    sizes: np.ndarray
    buffer: np.ndarray
    scratch: np.ndarray


class Evidence(NamedTuple):
    """A row of codes, and which variables are counted."""

    codes: np.ndarray
    counted: np.ndarray


@kernel
def ends(c, cut):
    """(first, last, Σ c): a polynomial without its two tails, each of which holds at most `cut` of its sum."""
    total, first, last = 0.0, 0, len(c)
    for x in c:
        total += x
    if not total > 0.0:
        return 0, 1, 0.0
    tail = c[0]
    while tail <= cut * total:
        first += 1
        tail += c[first]
    tail = c[last - 1]
    while tail <= cut * total:
        last -= 1
        tail += c[last - 1]
    return first, last, total


@kernel
def put(c, low, exponent, rounded, lost, cut, slot, values):
    """Write a polynomial to a slot, without its tails."""
    offset, pool, lows, lengths, exponents, rounds, losses = values
    first, last, total = ends(c, cut)
    binary = math.frexp(total)[1]
    at, scale = offset[slot], np.ldexp(1.0, int(-binary))
    for k in range(first, last):
        pool[at + k - first] = c[k] * scale
    lows[slot], lengths[slot], exponents[slot] = low + first, last - first, exponent + binary if total > 0.0 else _NEVER
    rounds[slot], losses[slot] = rounded, lost + (2.0 * cut if last - first < len(c) else 0.0)


@kernel
def add_convolution(acc, w, x, y):
    """acc += w·x·y, of polynomials that all start at t^0."""
    for i in range(len(x)):
        a = w * x[i]
        if a != 0.0:
            row = acc[i : i + len(y)]
            for j in range(len(y)):
                row[j] += a * y[j]


@kernel
def fold_product(factors, cut, values, memory):
    """Multiply the values in some slots, as far as that takes no product of two long polynomials.

    Returns the number of pieces that are left to be multiplied, and (Σ low, Σ exponent, rounded, lost) of the whole.
    Neighbours are multiplied while the last piece is at least as long as the one before it: a balanced tree.
    values : LongValues. memory : Pieces.
    """
    offset, pool, lows, lengths, exponents, rounds, losses = values
    starts, sizes, buffer, scratch = memory
    pieces, low, exponent, rounded, lost = 0, 0, 0, 0.0, 0.0
    for f in range(len(factors)):
        s = factors[f]
        low, exponent = low + lows[s], exponent + exponents[s]
        rounded, lost = rounded + rounds[s], lost + losses[s]
        start = starts[pieces - 1] + sizes[pieces - 1] if pieces else 0
        starts[pieces], sizes[pieces] = start, lengths[s]
        buffer[start : start + lengths[s]] = pool[offset[s] : offset[s] + lengths[s]]
        pieces += 1
        while pieces > 1 and (sizes[pieces - 1] >= sizes[pieces - 2] or f == len(factors) - 1):
            a, b = sizes[pieces - 2], sizes[pieces - 1]
            if min(a, b) > SHORT:
                break
            start = starts[pieces - 2]
            size = a + b - 1
            scratch[:size] = 0.0
            x, y = buffer[start : start + a], buffer[starts[pieces - 1] : starts[pieces - 1] + b]
            if a > b:
                x, y = y, x
            add_convolution(scratch[:size], 1.0, x, y)
            first, last, total = ends(scratch[:size], cut)
            binary = math.frexp(total)[1]
            low, exponent = low + first, exponent + binary
            lost += 2.0 * cut if last - first < size else 0.0
            scale = np.ldexp(1.0, int(-binary))
            for k in range(first, last):
                buffer[start + k - first] = scratch[k] * scale
            size = last - first
            rounded += min(a, b) + 2.0
            sizes[pieces - 2] = size
            pieces -= 1
    return pieces, low, exponent, rounded, lost


@kernel
def run_long(code, constants, evidence, begin, cut, values, memory):
    """Run instructions from `begin` on; return the first one that multiplies two long polynomials, which is not run.

    code : Instructions. constants : Constants, with exponents of 2 instead of 2^256. evidence : Evidence. values :
    LongValues. memory : Pieces.
    """
    op, target, start, args, first_weight = code
    weights, weight_exponents, leaf_variable, leaf_table, leaf_exponents = constants
    codes, counted = evidence
    offset, pool, lows, lengths, exponents, rounds, losses = values
    _, sizes, buffer, scratch = memory
    for i in range(begin, len(op)):
        kind, first, last, at = op[i], start[i], start[i + 1], target[i]
        if kind == LEAF:
            leaf = args[first]
            v = leaf_variable[leaf]
            if v >= 0 and counted[v] and codes[v] < 0 and leaf_table[leaf, 1] != 0.0:
                top = max(leaf_exponents[leaf, 0], leaf_exponents[leaf, 1])
                for k in range(2):
                    scratch[k] = np.ldexp(leaf_table[leaf, k], int(max(leaf_exponents[leaf, k] - top, -2000)))
                size = 2
            else:
                code = 2 if v < 0 or codes[v] < 0 else codes[v]
                scratch[0], top, size = leaf_table[leaf, code], leaf_exponents[leaf, code], 1
            put(scratch[:size], 0, top, 2.0, 0.0, cut, at, values)
            continue
        if kind == TIMES:
            pieces, low, exponent, rounded, lost = fold_product(args[first:last], cut, values, memory)
            if pieces > 1:
                return i
            size = 1
            if pieces:
                size = sizes[0]
            else:
                buffer[0] = 1.0
            put(buffer[:size], low, exponent, rounded, lost, cut, at, values)
            continue
        if kind != SUM:
            raise ValueError("an instruction that long polynomials do not know")
        low, high, top, lost, worst, terms = 2**60, 0, _NEVER, 0.0, 0.0, 0.0
        weight, end = first_weight[i], first_weight[i + 1]
        alone, j = 2 * (end - weight) - (last - first), first  # terms w·x; the others are w·x·y
        for k in range(weight, end):
            stride = 1 if k - weight < alone else 2
            x, y = args[j], args[j + stride - 1]
            j += stride
            p, q = weight_exponents[k] + exponents[x], lows[x]
            r, own, off, added = q + lengths[x], rounds[x] + 3.0, losses[x], 1
            if stride == 2:
                p, q, r = p + exponents[y], q + lows[y], r + lows[y] + lengths[y] - 1
                own, off = own + rounds[y] + 1.0, (1.0 + off) * (1.0 + losses[y]) - 1.0
                added = min(lengths[x], lengths[y])
                if added > SHORT:
                    return i
            low, high, top = min(low, q), max(high, r), max(top, p)
            lost, worst, terms = max(lost, off), max(worst, own), terms + added
        if high == 0:
            low, high = 0, 1
        acc = scratch[: high - low]
        acc[:] = 0.0
        j = first
        for k in range(weight, end):
            stride = 1 if k - weight < alone else 2
            x, y = args[j], args[j + stride - 1]
            j += stride
            a = pool[offset[x] : offset[x] + lengths[x]]
            p, q = weight_exponents[k] + exponents[x], lows[x] - low
            if stride == 2:
                p, q = p + exponents[y], q + lows[y]
            w = np.ldexp(weights[k], int(max(p - top, -2000)))
            if w == 0.0:
                continue
            if stride == 1:
                for t in range(len(a)):
                    acc[q + t] += w * a[t]
            else:
                b = pool[offset[y] : offset[y] + lengths[y]]
                if len(a) > len(b):
                    a, b = b, a
                add_convolution(acc[q : q + len(a) + len(b) - 1], w, a, b)
        put(acc, low, top, worst + terms, lost, cut, at, values)
    return len(op)
