"""The fast loop: a condensed program (see `pgcc.program.condense`) over float64, a block of rows at a time."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from pgcc.kernels.bundle import bundled
from pgcc.kernels.elementary import log_eight
from pgcc.kernels.policy import bare_kernel, inlined_kernel, kernel
from pgcc.kernels.simd import (
    WORD,
    add_planes,
    add_up,
    div,
    entries,
    fetch,
    if_less,
    join_permuted,
    load,
    lookup,
    minus,
    mul,
    muladd,
    peek,
    permutes_bytes,
    poke,
    quotient,
    splat,
    store,
    store_pieces,
    transpose,
)  # fmt: skip
from pgcc.program.condense import ENTRIES, MOST_VARIABLES
from pgcc.program.program import LEAF, LOOKUP, QUOTIENT, TIMES
from pgcc.rings.float64.kernels.linear import STEP, are_codes, copy_roots, pack_block, store4
from pgcc.rings.float64.kernels.sums import add_products, add_values, multiply

_LEAST_NORMAL = 2.0**-1022
# Between them, neither the bound nor the quotient by a total of 1 leaves the range of normal numbers.
_LOW, _HIGH = 2.0**-960, 2.0**960


class Pairs(NamedTuple):
    """What kernels read of the pairs of variables that have joint codes.

    Attributes
    ----------
    variables : int32 array, pairs × 2
    order : uint8 array, units × 2 × 64
        The bytes of the two variables of every pair, for a unit of 8, 4, 2 or 1 rows (`rows_of_unit`) and as many
        groups of eight pairs as make 64 codes: groups × rows × 8. Bytes are numbered through the first 64 of the rows,
        and then through their last 64. There are no units if a row has more than 128 bytes.
    """

    variables: np.ndarray
    order: np.ndarray


class Codes(NamedTuple):
    """Where the codes of a block of rows are written.

    Attributes
    ----------
    joint : uint64 array, (groups of eight pairs + 7) · lanes
        Byte p of the word at g·lanes + row is 4·x + y for the variables x and y of pair 8·g + p.
    state : uint16 array, scopes · lanes
        The number of the state of each scope.
    columns : uint8 array, (variables + 8 · groups) · lanes
        Variable by variable, then pair by pair, where they are needed in between.
    """

    joint: np.ndarray
    state: np.ndarray
    columns: np.ndarray


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
    op, target, start, args, first_weight, weights, joint, tables, pairs, wide, evidence, lanes, codes, work, roots, out
):
    """out[r, row] = value of slot roots[r], padded to whole blocks.

    pairs : Pairs. wide : WideTables. evidence : int8, rows × variables: 1, 0 or −1 for free. lanes : rows per block, a
    multiple of 32. codes : Codes. work : float64, slots · lanes.
    """
    flat, variables = evidence.reshape(-1).view(np.uint8), evidence.shape[1]
    for block in range(out.shape[1] // lanes):
        join_block(pairs, wide, flat, variables, block * lanes, lanes, codes)
        run_block(op, target, start, args, first_weight, weights, joint, tables, wide, codes, lanes, work)
        copy_roots(work, lanes, roots, out, block)


@kernel
def settle_condensed(
    op, target, start, args, first_weight, weights, joint, tables, pairs, wide, evidence, lanes, codes, work, roots,
    gamma, floor, rtol, total, logs, numbers,
):  # fmt: skip
    """`settle` what `run_condensed` computes, block by block; whether everything is settled.

    Evidence need not have been checked: a block in which anything is not 1, 0 or −1 is not settled.
    """
    flat, variables = evidence.reshape(-1).view(np.uint8), evidence.shape[1]
    settled, rows = True, len(numbers)
    for first in range(0, rows, lanes):
        count = min(lanes, rows - first)
        if not are_codes(flat, first * variables, (first + count) * variables):
            numbers[first : first + count] = math.nan
            settled = False
            continue
        here = -(-count // STEP) * STEP  # the last block may be smaller
        join_block(pairs, wide, flat, variables, first, here, codes)
        fetch(numbers, first, first + count, True)
        fetch(flat, (first + lanes) * variables, min(first + 2 * lanes, rows) * variables, False)
        run_block(op, target, start, args, first_weight, weights, joint, tables, wide, codes, here, work)
        value, magnitude = roots[0] * here, roots[-1] * here
        settled &= settle(work, value, magnitude, count, gamma, floor, rtol, total, logs, numbers, first)
    return settled


# What `settle_bundled` takes the arrays of its bundles for.
PROGRAM_TYPES = "uint8 int32 int64 int32 int64 float64 int32 float64 int32 uint8 float64 int64 int64 int32 uint16 int64"
ROOM_TYPES = "uint64 uint16 uint8 float64"


@kernel
def settle_bundled(program, room, evidence, lanes, gamma, floor, rtol, total, logs, numbers):
    """`settle_condensed` with what does not depend on the rows in two bundles: arrays of `with_tables`, and room."""
    variables, order = bundled(program, 8, np.int32), bundled(program, 9, np.uint8)
    pairs = Pairs(variables.reshape((len(variables) // 2, 2)), order.reshape((len(order) // (2 * WORD), 2, WORD)))
    scopes, states = bundled(program, 13, np.int32), bundled(program, 14, np.uint16)
    sizes = MOST_VARIABLES - 2
    wide = WideTables(
        bundled(program, 10, np.float64), bundled(program, 11, np.int64), bundled(program, 12, np.int64),
        scopes.reshape((len(scopes) // MOST_VARIABLES, MOST_VARIABLES)), states.reshape((sizes, len(states) // sizes)),
    )  # fmt: skip
    return settle_condensed(
        bundled(program, 0, np.uint8), bundled(program, 1, np.int32), bundled(program, 2, np.int64),
        bundled(program, 3, np.int32), bundled(program, 4, np.int64), bundled(program, 5, np.float64),
        bundled(program, 6, np.int32), bundled(program, 7, np.float64), pairs, wide, evidence, lanes,
        Codes(bundled(room, 0, np.uint64), bundled(room, 1, np.uint16), bundled(room, 2, np.uint8)),
        bundled(room, 3, np.float64), bundled(program, 15, np.int64), gamma, floor, rtol, total, logs, numbers,
    )  # fmt: skip


@bare_kernel
def join_block(pairs, wide, evidence, variables, first, lanes, codes):
    """The codes of a block of rows of evidence (flat, uint8); the last row repeats."""
    whole = _permutable(pairs, evidence, variables, first, lanes)
    if whole:
        _permute(pairs, evidence, variables, first, whole, lanes, codes)
    begin = 0 if len(wide.scopes) else whole
    if begin < lanes:
        pack_block(evidence, variables, first, begin, lanes, codes.columns)
        number_states(wide, codes.columns, lanes, codes.state)
    if whole < lanes:
        join_columns(pairs, variables, whole, lanes, codes)


@inlined_kernel
def rows_of_unit(variables):
    """The most rows, a power of two, that are in two times 64 bytes."""
    rows = 8
    while rows > 1 and rows * variables > 2 * WORD:
        rows //= 2
    return rows


@bare_kernel
def _permutable(pairs, evidence, variables, first, lanes):
    """How many rows of a block, a multiple of 8, can be joined by permutations that read nothing past the evidence."""
    if not permutes_bytes() or len(pairs.order) == 0:
        return 0
    last = (len(evidence) - WORD) // variables  # the last row that 64 bytes start at
    return max(0, min(lanes, len(evidence) // variables - first, last + 8 - first)) // 8 * 8


@bare_kernel
def _permute(pairs, evidence, variables, first, whole, lanes, codes):
    """The joint codes of the first `whole` rows of a block, 64 at a time."""
    order, joint = pairs.order, codes.joint
    rows = rows_of_unit(variables)
    groups = 8 // rows
    last = max(0, rows * variables - WORD)  # where the last 64 bytes of so many rows are
    for unit in range(len(order)):
        for lane in range(0, whole, rows):
            at, to = (first + lane) * variables, unit * groups * lanes + lane
            found = join_permuted(evidence, at, at + last, order, 2 * WORD * unit)
            if groups == 1:
                store_pieces(joint, to, lanes, found, 1)
            elif groups == 2:
                store_pieces(joint, to, lanes, found, 2)
            elif groups == 4:
                store_pieces(joint, to, lanes, found, 4)
            else:
                store_pieces(joint, to, lanes, found, 8)


@bare_kernel
def join_columns(pairs, variables, begin, lanes, codes):
    """The joint codes of rows of a block from `begin` on, a multiple of 8: from columns of codes, on any machine."""
    columns, count = codes.columns, len(pairs.variables)
    for p in range(count):
        x, y, to = pairs.variables[p, 0] * lanes, pairs.variables[p, 1] * lanes, (variables + p) * lanes
        for lane in range(begin, lanes):
            columns[to + lane] = (columns[x + lane] & 3) << 2 | (columns[y + lane] & 3)
    for p in range(0, count, 8):
        for lane in range(begin, lanes, 8):
            transpose(columns, (variables + p) * lanes + lane, lanes, codes.joint, p // 8 * lanes + lane, 1)


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
def run_block(op, target, start, args, first_weight, weights, joint, tables, wide, codes, lanes, work):
    """All instructions, for one block of rows; codes: what `join_block` wrote."""
    for i in range(len(op)):
        kind, first, last, at = op[i], peek(start, i), peek(start, i + 1), peek(target, i) * lanes
        if kind == LEAF:
            pair, table, words = peek(joint, peek(args, first)), peek(args, first) * ENTRIES, codes.joint
            column, byte = pair // 8 * lanes, pair % 8
            for lane in range(0, lanes, STEP):
                x = column + lane
                a, b = lookup(tables, table, words, x, byte), lookup(tables, table, words, x + 8, byte)
                c, d = lookup(tables, table, words, x + 16, byte), lookup(tables, table, words, x + 24, byte)
                store4(work, at + lane, a, b, c, d)
        elif kind == LOOKUP:
            t = peek(args, first)
            table, column = peek(wide.start, t), peek(wide.scope, t) * lanes
            for lane in range(0, lanes, 8):
                store(work, at + lane, entries(wide.tables, table, codes.state, column + lane))
        elif kind == TIMES:
            multiply(args, first, last, lanes, work, at)
        elif kind == QUOTIENT:
            x, y, w = peek(args, first) * lanes, peek(args, first + 1) * lanes, splat(peek(weights, first_weight[i]))
            for lane in range(0, lanes, 8):
                store(work, at + lane, mul(w, quotient(load(work, x + lane), load(work, y + lane))))
        else:
            k, terms = peek(first_weight, i), peek(first_weight, i + 1) - peek(first_weight, i)
            alone = 2 * terms - (last - first)  # terms w·x; the others are w·x·y
            add_values(args, first, first + alone, weights, k, lanes, work, at, True)
            add_products(args, first + alone, last, weights, k + alone, lanes, work, at, alone == 0)


@inlined_kernel
def settle(work, value, magnitude, count, gamma, floor, rtol, total, logs, numbers, first):
    """numbers[first + i] = v / total, or its logarithm, of values whose relative error is certainly at most `rtol`.

    v = work[value + i], its magnitude is work[magnitude + i], for i < count; both go on to a multiple of 8, with
    rows that repeat, and values are written over. What is not settled becomes NaN; returns whether nothing does. The
    bound is that of `relative_bound`, and only what is positive and not at the ends of the range is settled.
    """
    factor = 1.0001 * gamma / (1.0 - gamma)
    low, high = _LOW * max(1.0, total), _HIGH * min(1.0, total)
    # v is above error / rtol, and so above `low`; and it is a normal number: others take a hundred times as long
    offset = max(factor * floor + 1.0001 * floor, low * rtol, 2.0 * _LEAST_NORMAL)
    doubt, whole = splat(0.0), count - count % 8
    for i in range(0, count, 8):
        x = _settled(load(work, value + i), load(work, magnitude + i), factor, offset, high, rtol, total)
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
def _settled(v, m, factor, offset, high, rtol, total):
    """v / total, or NaN."""
    nothing = splat(math.nan)
    x = v if total == 1.0 else div(v, splat(total))
    error = muladd(splat(factor), m, splat(offset))
    return if_less(error, mul(splat(rtol), minus(v, error)), if_less(v, splat(high), x, nothing), nothing)
