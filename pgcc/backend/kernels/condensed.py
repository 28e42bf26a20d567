"""The fast loop: a condensed program (see `pgcc.lowering.condense`) over float64, a block of rows at a time."""

from __future__ import annotations

import math

from pgcc.backend.kernels.bounds import LARGE, SMALL
from pgcc.backend.kernels.elementary import log_eight
from pgcc.backend.kernels.linear import STEP, copy_roots, store4
from pgcc.backend.kernels.policy import bare_kernel, inlined_kernel, kernel
from pgcc.backend.kernels.simd import (
    WORD,
    add_up,
    div,
    if_less,
    join_permuted,
    load,
    lookup,
    minus,
    mul,
    muladd,
    peek,
    permutes_bytes,
    plus,
    poke,
    quotient,
    splat,
    store,
    store_pieces,
    transpose,
)  # fmt: skip
from pgcc.backend.kernels.simd import magnitude as size_of
from pgcc.lowering.condense import ENTRIES
from pgcc.lowering.program import LEAF, QUOTIENT, TIMES

_LEAST = 2.0**-1074


@kernel
def run_condensed(
    op, target, start, args, first_weight, weights, joint, tables, pairs, order, evidence, variables, lanes, codes,
    room, work, roots, out,
):  # fmt: skip
    """out[r, row] = value of slot roots[r], padded to whole blocks.

    evidence : flat uint8, rows · variables: 1, 0 or 255 for free. lanes : rows per block, a multiple of 32. codes
    and room : for `join_block`. work : float64, slots · lanes.
    """
    for block in range(out.shape[1] // lanes):
        join_block(pairs, order, evidence, variables, block * lanes, lanes, codes, room)
        run_block(op, target, start, args, first_weight, weights, joint, tables, codes, lanes, work)
        copy_roots(work, lanes, roots, out, block)


@kernel
def settle_condensed(
    op, target, start, args, first_weight, weights, joint, tables, pairs, order, evidence, variables, lanes, codes,
    room, work, roots, gamma, floor, rtol, total, logs, numbers,
):  # fmt: skip
    """`settle` what `run_condensed` computes, block by block; whether everything is settled."""
    settled, rows = True, len(numbers)
    for first in range(0, rows, lanes):
        count = min(lanes, rows - first)
        here = -(-count // STEP) * STEP  # the last block may be smaller
        join_block(pairs, order, evidence, variables, first, here, codes, room)
        run_block(op, target, start, args, first_weight, weights, joint, tables, codes, here, work)
        value, magnitude = roots[0] * here, roots[-1] * here
        settled &= settle(work, value, magnitude, count, gamma, floor, rtol, total, logs, numbers, first)
    return settled


@bare_kernel
def join_block(pairs, order, evidence, variables, first, lanes, codes, room):
    """The joint codes of every pair of variables for a block of rows; the last row repeats.

    Byte p of the word codes[g·lanes + k] is 4·x + y for pair 8·g + p in row first + k. order : as `order_of_bytes` in
    `pgcc.backend.loop` makes it.
    """
    whole = _permutable(order, evidence, variables, first, lanes)
    if whole:
        _permute(order, evidence, variables, first, whole, lanes, codes)
    if whole < lanes:
        join_plainly(pairs, evidence, variables, first, whole, lanes, codes, room)


@bare_kernel
def _permutable(order, evidence, variables, first, lanes):
    """How many rows of a block, a multiple of 8, can be joined by permutations that read nothing past the evidence."""
    if not permutes_bytes() or len(order) == 0:
        return 0
    last = (len(evidence) - WORD) // variables  # the last row that 64 bytes start at
    return max(0, min(lanes, len(evidence) // variables - first, last + 8 - first)) // 8 * 8


@bare_kernel
def _permute(order, evidence, variables, first, whole, lanes, codes):
    """`join_block` of its first `whole` rows, 64 codes at a time."""
    groups, rows = order.shape[2], order.shape[3]
    last = max(0, rows * variables - WORD)  # where the last 64 bytes of so many rows are
    for unit in range(len(order)):
        for lane in range(0, whole, rows):
            at, to = (first + lane) * variables, unit * groups * lanes + lane
            joint = join_permuted(evidence, at, at + last, order, 2 * WORD * unit)
            if groups == 1:
                store_pieces(codes, to, lanes, joint, 1)
            elif groups == 2:
                store_pieces(codes, to, lanes, joint, 2)
            elif groups == 4:
                store_pieces(codes, to, lanes, joint, 4)
            else:
                store_pieces(codes, to, lanes, joint, 8)


@bare_kernel
def join_plainly(pairs, evidence, variables, first, begin, lanes, codes, room):
    """`join_block` for its rows from `begin` on, a multiple of 8, on any machine.

    room : uint8, (variables + 8 · groups of 8 pairs) · lanes. Columns of codes, then columns of joint codes.
    """
    pack_block(evidence, variables, first, begin, lanes, room)
    for p in range(len(pairs)):
        x, y, to = pairs[p, 0] * lanes, pairs[p, 1] * lanes, (variables + p) * lanes
        for lane in range(begin, lanes):
            room[to + lane] = (room[x + lane] & 3) << 2 | (room[y + lane] & 3)
    for p in range(0, len(pairs), 8):
        for lane in range(begin, lanes, 8):
            transpose(room, (variables + p) * lanes + lane, lanes, codes, p // 8 * lanes + lane, 1)


@bare_kernel
def pack_block(evidence, variables, first, begin, lanes, packed):
    """packed[v·lanes + k] = code of variable v in row first + k, for k from `begin` on; the last row repeats."""
    rows = len(evidence) // max(1, variables)
    if variables >= 8 and first + lanes <= rows:
        for v in range(0, variables, 8):
            v = min(v, variables - 8)  # the last eight may overlap those before
            for lane in range(begin, lanes, 8):
                transpose(evidence, (first + lane) * variables + v, variables, packed, v * lanes + lane, lanes)
    else:
        for v in range(variables):
            for lane in range(begin, lanes):
                packed[v * lanes + lane] = evidence[min(first + lane, rows - 1) * variables + v]


@bare_kernel
def run_block(op, target, start, args, first_weight, weights, joint, tables, codes, lanes, work):
    """All instructions, for one block of rows; codes: its joint codes."""
    for i in range(len(op)):
        kind, first, last, at = op[i], peek(start, i), peek(start, i + 1), peek(target, i) * lanes
        if kind == LEAF:
            pair, table = peek(joint, peek(args, first)), peek(args, first) * ENTRIES
            column, byte = pair // 8 * lanes, pair % 8
            for lane in range(0, lanes, STEP):
                x = column + lane
                a, b = lookup(tables, table, codes, x, byte), lookup(tables, table, codes, x + 8, byte)
                c, d = lookup(tables, table, codes, x + 16, byte), lookup(tables, table, codes, x + 24, byte)
                store4(work, at + lane, a, b, c, d)
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


@inlined_kernel
def settle(work, value, magnitude, count, gamma, floor, rtol, total, logs, numbers, first):
    """numbers[first + i] = v / total, or its logarithm, of values whose relative error is certainly at most `rtol`.

    v = work[value + i], its magnitude is work[magnitude + i], for i < count; both go on to a multiple of 8, and values
    are written over. What is not settled becomes NaN; returns whether nothing does. The bound is that of
    `relative_bound`, and only what is positive and far from the ends of the range is settled; but an exact zero is.
    """
    factor = 1.0001 * gamma / (1.0 - gamma)
    offset = max(factor * floor + 1.0001 * floor, SMALL * rtol)  # as v > error / rtol, it is above SMALL
    doubt, whole = splat(0.0), count - count % 8
    for i in range(0, count, 8):
        x = _settled(load(work, value + i), load(work, magnitude + i), factor, offset, floor == 0.0, rtol, total)
        doubt = muladd(x, splat(0.0), doubt)
        store(work, value + i, x)
    if logs:
        for i in range(0, whole, 8):
            store(numbers, first + i, log_eight(load(work, value + i)))
        if whole < count:
            store(work, value + whole, log_eight(load(work, value + whole)))
    else:
        for i in range(0, whole, 8):
            store(numbers, first + i, load(work, value + i))
    for i in range(whole, count):
        poke(numbers, first + i, peek(work, value + i))
    return add_up(doubt) == 0.0


@inlined_kernel
def _settled(v, m, factor, offset, exact, rtol, total):
    """v / total, or NaN; `exact` if nothing can underflow."""
    nothing = splat(math.nan)
    x = v if total == 1.0 else div(v, splat(total))
    error = muladd(splat(factor), m, splat(offset))
    x = if_less(error, mul(splat(rtol), minus(v, error)), if_less(v, splat(LARGE), x, nothing), nothing)
    if exact:
        x = if_less(plus(size_of(v), m), splat(_LEAST), splat(0.0), x)
    return x
