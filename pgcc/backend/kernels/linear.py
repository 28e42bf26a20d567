"""The fast loop: a program over float64, 32 rows at a time, accumulators in registers."""

from __future__ import annotations

import numpy as np

from pgcc.backend.kernels.policy import kernel
from pgcc.backend.kernels.simd import choose, load, mul, muladd, splat, store
from pgcc.lowering.program import DOT, LEAF, MORE, SUM

BLOCK = 32


@kernel
def run_linear(op, target, start, args, first_weight, weights, leaf_variable, leaf_table, codes, work, roots, out):
    """out[r, row] = value of slot roots[r].

    codes : uint8, blocks × (variables · 32): 0, 1 or 2 for observed 0, observed 1, free, variable by variable.
    work : float64, slots · 32.
    """
    for block in range(codes.shape[0]):
        row = codes[block]
        for i in range(len(op)):
            kind, first, last, at = op[i], start[i], start[i + 1], target[i] * BLOCK
            if kind in (DOT, MORE):
                if kind == MORE:
                    a, b, c, d = load(work, at), load(work, at + 8), load(work, at + 16), load(work, at + 24)
                else:
                    a = splat(0.0)
                    b, c, d = a, a, a
                k = first_weight[i]
                for j in range(first, last, 2):
                    w, x, y = splat(weights[k]), args[j] * BLOCK, args[j + 1] * BLOCK
                    a = muladd(w, mul(load(work, x), load(work, y)), a)
                    b = muladd(w, mul(load(work, x + 8), load(work, y + 8)), b)
                    c = muladd(w, mul(load(work, x + 16), load(work, y + 16)), c)
                    d = muladd(w, mul(load(work, x + 24), load(work, y + 24)), d)
                    k += 1
            elif kind == SUM:
                a = splat(0.0)
                b, c, d = a, a, a
                k = first_weight[i]
                for j in range(first, last):
                    w, x = splat(weights[k]), args[j] * BLOCK
                    a = muladd(w, load(work, x), a)
                    b = muladd(w, load(work, x + 8), b)
                    c = muladd(w, load(work, x + 16), c)
                    d = muladd(w, load(work, x + 24), d)
                    k += 1
            elif kind == LEAF:
                leaf = args[first]
                zero, one, free = leaf_table[leaf, 0], leaf_table[leaf, 1], leaf_table[leaf, 2]
                if leaf_variable[leaf] < 0:
                    a = splat(free)
                    b, c, d = a, a, a
                else:
                    x = leaf_variable[leaf] * BLOCK
                    a, b = choose(row, x, zero, one, free), choose(row, x + 8, zero, one, free)
                    c, d = choose(row, x + 16, zero, one, free), choose(row, x + 24, zero, one, free)
            else:  # TIMES
                a = splat(1.0)
                b, c, d = a, a, a
                for j in range(first, last):
                    x = args[j] * BLOCK
                    a, b = mul(a, load(work, x)), mul(b, load(work, x + 8))
                    c, d = mul(c, load(work, x + 16)), mul(d, load(work, x + 24))
            store(work, at, a)
            store(work, at + 8, b)
            store(work, at + 16, c)
            store(work, at + 24, d)
        for r in range(len(roots)):
            for lane in range(BLOCK):
                out[r, block * BLOCK + lane] = work[roots[r] * BLOCK + lane]


@kernel
def pack_codes(evidence, first, codes):
    """Rows `first`… of int8 evidence (1, 0, −1) into blocks, variable by variable; past the end the last repeats."""
    rows, variables = evidence.shape
    for block in range(codes.shape[0]):
        for lane in range(BLOCK):
            row = min(first + block * BLOCK + lane, rows - 1)
            for v in range(variables):
                code = evidence[row, v]
                codes[block, v * BLOCK + lane] = np.uint8(2) if code < 0 else np.uint8(code)
