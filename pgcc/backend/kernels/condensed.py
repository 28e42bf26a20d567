"""The fast loop: a condensed program (see `pgcc.lowering.condense`) over float64, a block of rows at a time."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from pgcc.backend.kernels.elementary import log_eight
from pgcc.backend.kernels.linear import STEP, copy_roots, store4
from pgcc.backend.kernels.policy import bare_kernel, kernel
from pgcc.backend.kernels.simd import (
    add_planes,
    add_up,
    div,
    entries,
    if_less,
    join_codes,
    load,
    lookup,
    minus,
    mul,
    muladd,
    peek,
    plus,
    quotient,
    splat,
    store,
    transpose,
)  # fmt: skip
from pgcc.backend.kernels.simd import magnitude as size_of
from pgcc.lowering.condense import ENTRIES, MOST_VARIABLES
from pgcc.lowering.program import LEAF, LOOKUP, QUOTIENT, TIMES

_LEAST, _LEAST_NORMAL = 2.0**-1074, 2.0**-1022
# Between them, neither the bound nor the quotient by a total of 1 leaves the range of normal numbers.
_LOW, _HIGH = 2.0**-960, 2.0**960


class WideTables(NamedTuple):
    """What kernels read of wide tables.

    Attributes
    ----------
    tables : float64 array
        One after another.
    start, scope : int64 arrays
        Where each starts, and the number of its scope.
    scopes : int32 array, scopes × `MOST_VARIABLES`
        The variables of each, then −1.
    numbers : uint16 array, sizes × 4^`MOST_VARIABLES`
        `state_numbers` of 3 variables, 4, …
    """

    tables: np.ndarray
    start: np.ndarray
    scope: np.ndarray
    scopes: np.ndarray
    numbers: np.ndarray


@kernel
def run_condensed(
    op, target, start, args, first_weight, weights, joint, tables, pairs, wide, evidence, variables, lanes, room, work,
    roots, out,
):  # fmt: skip
    """out[r, row] = value of slot roots[r], padded to whole blocks.

    wide : WideTables. evidence : flat uint8, rows · variables: 1, 0 or 255 for free. lanes : rows per block, a multiple
    of 32. room : uint8, (variables + 2 · pairs) · lanes, and uint16, scopes · lanes, for the codes of a block. work :
    float64, slots · lanes.
    """
    for block in range(out.shape[1] // lanes):
        join_block(pairs, wide, evidence, variables, block * lanes, lanes, room)
        run_block(op, target, start, args, first_weight, weights, joint, tables, wide, room, lanes, work)
        copy_roots(work, lanes, roots, out, block)


@kernel
def settle_condensed(
    op, target, start, args, first_weight, weights, joint, tables, pairs, wide, evidence, variables, lanes, room, work,
    roots, gamma, floor, rtol, total, logs, numbers,
):  # fmt: skip
    """`settle` what `run_condensed` computes, block by block; whether everything is settled."""
    settled, rows = True, len(numbers)
    value, magnitude = roots[0] * lanes, roots[-1] * lanes
    for first in range(0, rows, lanes):
        join_block(pairs, wide, evidence, variables, first, lanes, room)
        run_block(op, target, start, args, first_weight, weights, joint, tables, wide, room, lanes, work)
        count = min(lanes, rows - first)
        settled &= settle(
            work[value : value + count], work[magnitude : magnitude + count], gamma, floor, rtol, total, logs,
            numbers[first : first + count],
        )  # fmt: skip
    return settled


@bare_kernel
def join_block(pairs, wide, evidence, variables, first, lanes, rooms):
    """The codes of a block of rows: joint ones of pairs, at the start of the first room; states in the second."""
    room, state = rooms
    codes = 2 * len(pairs) * lanes
    pack_block(evidence, variables, first, lanes, room[codes:])
    number_states(wide, room[codes:], lanes, state)
    for p in range(len(pairs)):
        x, y = codes + pairs[p, 0] * lanes, codes + pairs[p, 1] * lanes
        for lane in range(0, lanes, STEP):
            join_codes(room, x + lane, y + lane, room, 2 * (p * lanes + lane))


@bare_kernel
def number_states(wide, codes, lanes, state):
    """state[s·lanes + row] = number of the state of the variables of scope s; codes: of the variables, packed."""
    for s in range(len(wide.scopes)):
        k = 0
        while k < MOST_VARIABLES and wide.scopes[s, k] >= 0:
            k += 1
        here, numbers = state[s * lanes : (s + 1) * lanes], wide.numbers[k - 3]
        here[:] = 0
        for i in range(k):
            column = wide.scopes[s, i] * lanes
            for lane in range(0, lanes, STEP):
                add_planes(codes, column + lane, i, k + i, here, lane)
        for lane in range(lanes):
            here[lane] = numbers[here[lane]]


@bare_kernel
def pack_block(evidence, variables, first, lanes, packed):
    """packed[v·lanes + k] = code of variable v in row first + k; the last row repeats."""
    rows = len(evidence) // max(1, variables)
    if variables >= 8 and first + lanes <= rows:
        for v in range(0, variables, 8):
            v = min(v, variables - 8)  # the last eight may overlap those before
            for lane in range(0, lanes, 8):
                transpose(evidence, (first + lane) * variables + v, variables, packed, v * lanes + lane, lanes)
    else:
        for v in range(variables):
            for lane in range(lanes):
                packed[v * lanes + lane] = evidence[min(first + lane, rows - 1) * variables + v]


@bare_kernel
def run_block(op, target, start, args, first_weight, weights, joint, tables, wide, rooms, lanes, work):
    """All instructions, for one block of rows; rooms: what `join_block` wrote."""
    codes, state = rooms
    for i in range(len(op)):
        kind, first, last, at = op[i], peek(start, i), peek(start, i + 1), peek(target, i) * lanes
        if kind == LEAF:
            column, table = peek(joint, peek(args, first)) * lanes, peek(args, first) * ENTRIES
            low, high = load(tables, table), load(tables, table + 8)
            for lane in range(0, lanes, STEP):
                x = 2 * (column + lane)
                a, b = lookup(tables, table, low, high, codes, x, 0), lookup(tables, table, low, high, codes, x, 1)
                c, d = lookup(tables, table, low, high, codes, x, 2), lookup(tables, table, low, high, codes, x, 3)
                store4(work, at + lane, a, b, c, d)
        elif kind == LOOKUP:
            t = peek(args, first)
            table, column = peek(wide.start, t), peek(wide.scope, t) * lanes
            for lane in range(0, lanes, 8):
                store(work, at + lane, entries(wide.tables, table, state, column + lane))
        elif kind == TIMES:
            for lane in range(0, lanes, STEP):
                x = peek(args, first) * lanes + lane
                a, b, c, d = load(work, x), load(work, x + 8), load(work, x + 16), load(work, x + 24)
                for j in range(first + 1, last):
                    x = peek(args, j) * lanes + lane
                    a, b = mul(a, load(work, x)), mul(b, load(work, x + 8))
                    c, d = mul(c, load(work, x + 16)), mul(d, load(work, x + 24))
                store4(work, at + lane, a, b, c, d)
        elif kind == QUOTIENT:
            x, y, w = peek(args, first) * lanes, peek(args, first + 1) * lanes, splat(peek(weights, first_weight[i]))
            for lane in range(0, lanes, 8):
                store(work, at + lane, mul(w, quotient(load(work, x + lane), load(work, y + lane))))
        else:
            first_k = peek(first_weight, i)
            alone = 2 * (peek(first_weight, i + 1) - first_k) - (last - first)  # terms w·x; the others are w·x·y
            for lane in range(0, lanes, STEP):
                a = splat(0.0)
                b, c, d = a, a, a
                k = first_k
                for j in range(first, first + alone):
                    w, x = splat(peek(weights, k)), peek(args, j) * lanes + lane
                    a = muladd(w, load(work, x), a)
                    b = muladd(w, load(work, x + 8), b)
                    c = muladd(w, load(work, x + 16), c)
                    d = muladd(w, load(work, x + 24), d)
                    k += 1
                for j in range(first + alone, last, 2):
                    w = splat(peek(weights, k))
                    x, y = peek(args, j) * lanes + lane, peek(args, j + 1) * lanes + lane
                    a = muladd(w, mul(load(work, x), load(work, y)), a)
                    b = muladd(w, mul(load(work, x + 8), load(work, y + 8)), b)
                    c = muladd(w, mul(load(work, x + 16), load(work, y + 16)), c)
                    d = muladd(w, mul(load(work, x + 24), load(work, y + 24)), d)
                    k += 1
                store4(work, at + lane, a, b, c, d)


@kernel
def settle(value, magnitude, gamma, floor, rtol, total, logs, numbers):
    """numbers[row] = value / total, or its logarithm, of rows whose relative error is certainly at most `rtol`.

    What is not settled becomes NaN; returns whether nothing does. The bound is that of `relative_bound`, and only what
    is positive and not at the ends of the range is settled; but an exact zero is.
    """
    whole = len(value) - len(value) % 8
    factor = 1.0001 * gamma / (1.0 - gamma)
    # a normal number, if it is any: arithmetic with others takes a hundred times as long
    offset = 0.0 if floor == 0.0 else max(factor * floor + 1.0001 * floor, 2.0 * _LEAST_NORMAL)
    doubt = splat(0.0)
    for i in range(0, whole, 8):
        x = _settled(load(value, i), load(magnitude, i), factor, offset, rtol, total)
        doubt = muladd(x, splat(0.0), doubt)
        store(numbers, i, log_eight(x) if logs else x)
    if whole < len(value):
        rest = np.empty((3, 8))
        for i in range(whole, whole + 8):  # the last one repeats
            rest[0, i - whole], rest[1, i - whole] = value[min(i, len(value) - 1)], magnitude[min(i, len(value) - 1)]
        x = _settled(load(rest[0], 0), load(rest[1], 0), factor, offset, rtol, total)
        doubt = muladd(x, splat(0.0), doubt)
        store(rest[2], 0, log_eight(x) if logs else x)
        for i in range(whole, len(value)):
            numbers[i] = rest[2, i - whole]
    return add_up(doubt) == 0.0


@bare_kernel
def _settled(v, m, factor, offset, rtol, total):
    """v / total, or NaN; `offset` is 0 only if nothing can underflow."""
    nothing, low, high = splat(math.nan), splat(_LOW * max(1.0, total)), splat(_HIGH * min(1.0, total))
    x = v if total == 1.0 else div(v, splat(total))
    error = muladd(splat(factor), m, splat(offset))
    x = if_less(error, mul(splat(rtol), minus(v, error)), x, nothing)
    x = if_less(low, v, if_less(v, high, x, nothing), nothing)
    if offset == 0.0:
        x = if_less(plus(size_of(v), m), splat(_LEAST), splat(0.0), x)
    return x
