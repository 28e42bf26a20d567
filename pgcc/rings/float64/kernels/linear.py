"""The fast loop: a program over float64, a block of rows at a time, accumulators in registers."""

from __future__ import annotations

import numpy as np

from pgcc.kernels.policy import bare_kernel, kernel
from pgcc.kernels.simd import (
    WORD,
    choose,
    load,
    mul,
    muladd,
    no_codes,
    peek,
    quotient,
    splat,
    store,
    transpose,
)
from pgcc.program.program import LEAF, QUOTIENT, TIMES

STEP = 32  # rows whose accumulators are in registers together; a block is a multiple of it


@kernel
def store4(work, at, a, b, c, d):
    """Write 32 doubles."""
    store(work, at, a)
    store(work, at + 8, b)
    store(work, at + 16, c)
    store(work, at + 24, d)


@kernel
def run_linear(
    op, target, start, args, first_weight, weights, leaf_variable, leaf_table, codes, lanes, work, roots, out
):
    """out[r, row] = value of slot roots[r].

    codes : uint8, blocks × (variables · lanes): 0, 1 or 255 for observed 0, observed 1, free, variable by variable.
    lanes : rows per block, a multiple of 32. work : float64, slots · lanes.
    """
    for block in range(codes.shape[0]):
        run_block(
            op, target, start, args, first_weight, weights, leaf_variable, leaf_table,
            0, len(op), codes[block], lanes, work,
        )  # fmt: skip
        copy_roots(work, lanes, roots, out, block)


@kernel
def copy_roots(work, lanes, roots, out, block):
    """out[r, row] = value of slot roots[r], for the rows of a block."""
    for r in range(len(roots)):
        here = out[r]
        for lane in range(0, lanes, 8):
            store(here, block * lanes + lane, load(work, roots[r] * lanes + lane))


@kernel
def run_block(op, target, start, args, first_weight, weights, leaf_variable, leaf_table, begin, end, row, lanes, work):
    """Instructions begin … end − 1, none of them a determinant, for one block of rows; row: its codes."""
    for i in range(begin, end):
        kind, first, last, at = op[i], start[i], start[i + 1], target[i] * lanes
        if kind == TIMES and last - first == 2:  # most products
            x, y = args[first] * lanes, args[first + 1] * lanes
            for lane in range(0, lanes, STEP):
                a = mul(load(work, x + lane), load(work, y + lane))
                b = mul(load(work, x + lane + 8), load(work, y + lane + 8))
                c = mul(load(work, x + lane + 16), load(work, y + lane + 16))
                d = mul(load(work, x + lane + 24), load(work, y + lane + 24))
                store4(work, at + lane, a, b, c, d)
        elif kind == TIMES:
            for lane in range(0, lanes, STEP):
                a = splat(1.0)
                b, c, d = a, a, a
                for j in range(first, last):
                    x = peek(args, j) * lanes + lane
                    a, b = mul(a, load(work, x)), mul(b, load(work, x + 8))
                    c, d = mul(c, load(work, x + 16)), mul(d, load(work, x + 24))
                store4(work, at + lane, a, b, c, d)
        elif kind == LEAF:
            leaf = args[first]
            zero, one, free = leaf_table[leaf, 0], leaf_table[leaf, 1], leaf_table[leaf, 2]
            if leaf_variable[leaf] < 0:
                for lane in range(0, lanes, STEP):
                    a = splat(free)
                    store4(work, at + lane, a, a, a, a)
            else:
                v = leaf_variable[leaf] * lanes
                for lane in range(0, lanes, STEP):
                    x = v + lane
                    a, b = choose(row, x, zero, one, free), choose(row, x + 8, zero, one, free)
                    c, d = choose(row, x + 16, zero, one, free), choose(row, x + 24, zero, one, free)
                    store4(work, at + lane, a, b, c, d)
        elif kind == QUOTIENT:
            x, y = args[first] * lanes, args[first + 1] * lanes
            w = splat(weights[first_weight[i]])
            for lane in range(0, lanes, 8):
                store(work, at + lane, mul(w, quotient(load(work, x + lane), load(work, y + lane))))
        else:
            pairs = first + 2 * (first_weight[i + 1] - first_weight[i]) - (last - first)  # terms w·x, then w·x·y
            for lane in range(0, lanes, STEP):
                a = splat(0.0)
                b, c, d = a, a, a
                k = first_weight[i]
                for j in range(first, pairs):
                    w, x = splat(peek(weights, k)), peek(args, j) * lanes + lane
                    a = muladd(w, load(work, x), a)
                    b = muladd(w, load(work, x + 8), b)
                    c = muladd(w, load(work, x + 16), c)
                    d = muladd(w, load(work, x + 24), d)
                    k += 1
                for j in range(pairs, last, 2):
                    w = splat(peek(weights, k))
                    x, y = peek(args, j) * lanes + lane, peek(args, j + 1) * lanes + lane
                    a = muladd(w, mul(load(work, x), load(work, y)), a)
                    b = muladd(w, mul(load(work, x + 8), load(work, y + 8)), b)
                    c = muladd(w, mul(load(work, x + 16), load(work, y + 16)), c)
                    d = muladd(w, mul(load(work, x + 24), load(work, y + 24)), d)
                    k += 1
                store4(work, at + lane, a, b, c, d)


@bare_kernel
def are_codes(evidence, first, last):
    """Whether bytes first … last − 1 are 1, 0 or 255."""
    wrong, whole = np.uint64(0), last - (last - first) % WORD
    for i in range(first, whole, WORD):
        wrong |= no_codes(evidence, i)
    for i in range(whole, last):
        wrong |= np.uint64(evidence[i] != 0 and evidence[i] != 1 and evidence[i] != 255)
    return wrong == 0


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


@kernel
def pack_codes(evidence, variables, first, lanes, codes):
    """Rows `first`… of evidence (flat uint8: 1, 0, 255) into blocks, variable by variable; the last row repeats.

    evidence : rows · variables. codes : blocks × (variables · lanes).
    """
    for block in range(codes.shape[0]):
        pack_block(evidence, variables, first + block * lanes, 0, lanes, codes[block])
