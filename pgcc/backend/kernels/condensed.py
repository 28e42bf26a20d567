"""The fast loop: a condensed program (see `pgcc.lowering.condense`) over float64, a block of rows at a time."""

from __future__ import annotations

import math

from pgcc.backend.kernels.bounds import LARGE, SMALL
from pgcc.backend.kernels.linear import STEP, copy_roots, store4
from pgcc.backend.kernels.policy import bare_kernel, kernel
from pgcc.backend.kernels.simd import (
    join_codes,
    load,
    load_codes,
    lookup,
    mul,
    muladd,
    next_codes,
    peek,
    splat,
    store,
    transpose,
)
from pgcc.lowering.condense import ENTRIES
from pgcc.lowering.program import LEAF, TIMES

GROUP = 64  # rows whose joint codes are one vector of bytes; a block is a multiple of it


@kernel
def run_condensed(
    op, target, start, args, first_weight, weights, joint, tables, pairs, evidence, variables, lanes, room, work, roots,
    out,
):  # fmt: skip
    """out[r, row] = value of slot roots[r], padded to whole blocks.

    evidence : flat uint8, rows · variables: 1, 0 or 255 for free. lanes : rows per block, a multiple of 32. room :
    uint8, for the codes of a block and the joint codes of `stretch` rows for each pair, once more than there are.
    work : float64, slots · lanes.
    """
    codes, stretch = room[variables * lanes :], -(-lanes // GROUP) * GROUP
    for block in range(out.shape[1] // lanes):
        pack_block(evidence, variables, block * lanes, lanes, room)
        for p in range(len(pairs)):
            x, y = pairs[p, 0] * lanes, pairs[p, 1] * lanes
            for lane in range(0, lanes, GROUP):
                join_codes(room, x + lane, y + lane, codes, p * stretch + lane)
        _run_block(op, target, start, args, first_weight, weights, joint, tables, codes, stretch, lanes, work)
        copy_roots(work, lanes, roots, out, block)


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
def _run_block(op, target, start, args, first_weight, weights, joint, tables, codes, stretch, lanes, work):
    """All instructions, for one block of rows; codes: its joint codes."""
    for i in range(len(op)):
        kind, first, last, at = op[i], peek(start, i), peek(start, i + 1), peek(target, i) * lanes
        if kind == LEAF:
            table = peek(args, first)
            x = peek(joint, table) * stretch
            low, high = load(tables, table * ENTRIES), load(tables, table * ENTRIES + 8)
            for lane in range(0, lanes, GROUP):
                here = load_codes(codes, x + lane)
                for k in range(lane, min(lane + GROUP, lanes), 8):
                    store(work, at + k, lookup(low, high, here))
                    here = next_codes(here)
        elif kind == TIMES:
            for lane in range(0, lanes, STEP):
                x = peek(args, first) * lanes + lane
                a, b, c, d = load(work, x), load(work, x + 8), load(work, x + 16), load(work, x + 24)
                for j in range(first + 1, last):
                    x = peek(args, j) * lanes + lane
                    a, b = mul(a, load(work, x)), mul(b, load(work, x + 8))
                    c, d = mul(c, load(work, x + 16)), mul(d, load(work, x + 24))
                store4(work, at + lane, a, b, c, d)
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
def settle(value, magnitude, gamma, floor, rtol, total, numbers):
    """numbers[row] = value / total of the rows whose relative error is certainly at most `rtol`; how many are not.

    What is not settled becomes NaN. The bound is that of `relative_bound`, and only what is positive and far from the
    ends of the range is settled; but an exact zero is.
    """
    left = 0
    factor = 1.0001 * gamma / (1.0 - gamma)
    for i in range(len(value)):
        v = value[i]
        error = factor * (magnitude[i] + floor) + 1.0001 * floor
        good = (error <= rtol * (v - error)) & (v > SMALL) & (v < LARGE)
        good |= (v == 0.0) & (magnitude[i] == 0.0) & (floor == 0.0)
        numbers[i] = v / total if good else math.nan
        left += not good
    return left
