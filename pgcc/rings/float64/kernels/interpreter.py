"""The float64 interpreter: runs a program, or the part of it between two determinants, for a block of rows.

It runs programs, their reverse passes, and their fast forms (`pgcc.program.condense`), which read tables of two or more
variables (PAIR, LOOKUP) where programs read leaves.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pgcc.kernels.policy import bare_kernel, kernel
from pgcc.kernels.simd import choose, entries, load, lookup, store
from pgcc.program.program import ENTRIES, LEAF, LOOKUP, PAIR, SUM, TIMES
from pgcc.rings.float64.kernels.packed_evidence import STEP
from pgcc.rings.float64.kernels.sums import add_products, add_values, fill, multiply


class Leaves(NamedTuple):
    """The operands of LEAF.

    Attributes
    ----------
    variable : int32 array
        The variable of each leaf; −1 for a constant.
    table : float64 array, leaves × 3
        The values of each leaf if its variable is observed 0, observed 1, unobserved.
    """

    variable: np.ndarray
    table: np.ndarray


class PairTables(NamedTuple):
    """The operands of PAIR: tables of two variables, looked up by their joint code.

    Attributes
    ----------
    variables : int32 array, joint codes × 2
        The two variables of every joint code.
    column : int32 array
        For each table, the column of `Block.columns` with its joint codes.
    tables : float64 array
        The tables, one after another, with `ENTRIES` entries each.
    """

    variables: np.ndarray
    column: np.ndarray
    tables: np.ndarray


class WideTables(NamedTuple):
    """The operands of LOOKUP: tables of up to seven variables, which make learned SimplePGCs 1.5–4× faster.

    (Random circuits of 10,000 edges or more gain 1.3–1.6×; nltcs, plants and jester nothing: they have few or none.) A
    table is looked up by the number of the state of its variables.

    Attributes
    ----------
    tables : float64 array
        The tables, one after another.
    start, scope : int64 arrays
        For each table, where it starts, and the number of its scope.
    scopes : int32 array, scopes × `MOST_VARIABLES`
        The variables of each scope, then −1.
    numbers : uint16 array, sizes × 4^`MOST_VARIABLES`
        `state_numbers` of 3 variables, 4, …
    """

    tables: np.ndarray
    start: np.ndarray
    scope: np.ndarray
    scopes: np.ndarray
    numbers: np.ndarray


class FloatProgram(NamedTuple):
    """A program or its fast form, as the interpreter reads it (see `Code`)."""

    op: np.ndarray
    target: np.ndarray
    start: np.ndarray
    args: np.ndarray
    first_weight: np.ndarray
    weights: np.ndarray
    leaves: Leaves
    pairs: PairTables
    wide: WideTables


class Block(NamedTuple):
    """Memory for a block of rows. `lanes` is the number of its rows.

    Attributes
    ----------
    columns : uint8 array, (variables + pairs) · lanes
        Codes, variable by variable; then joint codes, pair by pair.
    state : uint16 array, scopes · lanes
        The number of the state of each scope.
    work : float64 array, slots · lanes
        The values of all slots.
    """

    columns: np.ndarray
    state: np.ndarray
    work: np.ndarray


@kernel
def store4(work, at, a, b, c, d):
    """Write 32 doubles."""
    store(work, at, a)
    store(work, at + 8, b)
    store(work, at + 16, c)
    store(work, at + 24, d)


@bare_kernel
def run_row(program, begin, end, block):
    """The same for one row, without vectors: the same operations in the same order, and so the same bits.

    (Half the time of a block of 32 rows, and an eighth where that many values leave the cache: `benchmarks.networks`.)
    """
    args, weights, work = program.args, program.weights, block.work
    for i in range(begin, end):
        kind, first, last = program.op[i], program.start[i], program.start[i + 1]
        if kind == SUM:
            k, end_weight = program.first_weight[i], program.first_weight[i + 1]
            pairs = first + 2 * (end_weight - k) - (last - first)  # where the arguments of terms w·x·y begin
            value = 0.0
            for j in range(first, pairs):
                value = weights[k] * work[args[j]] + value
                k += 1
            for j in range(pairs, last, 2):
                value = weights[k] * (work[args[j]] * work[args[j + 1]]) + value
                k += 1
        elif kind == TIMES:
            value = work[args[first]] if first < last else 1.0
            for j in range(first + 1, last):
                value *= work[args[j]]
        elif kind == PAIR:
            t = args[first]
            value = program.pairs.tables[t * ENTRIES + (block.columns[program.pairs.column[t]] & 15)]
        elif kind == LOOKUP:
            t = args[first]
            value = program.wide.tables[program.wide.start[t] + block.state[program.wide.scope[t]]]
        elif kind == LEAF:
            leaf = args[first]
            variable = program.leaves.variable[leaf]
            value = program.leaves.table[leaf, 2 if variable < 0 else min(block.columns[variable], 2)]
        else:
            raise ValueError("an instruction that the float64 interpreter does not know")
        work[program.target[i]] = value


@bare_kernel
def copy_roots(work, lanes, roots, out, number):
    """out[r, row] = value of slot roots[r], for the rows of a block with this number."""
    for r in range(len(roots)):
        here = out[r]
        if lanes == 1:
            here[number] = work[roots[r]]
            continue
        for lane in range(0, lanes, 8):
            store(here, number * lanes + lane, load(work, roots[r] * lanes + lane))


@bare_kernel
def run_block(program, begin, end, lanes, block):
    """Run instructions begin … end − 1, none of them a determinant, for one block of rows.

    program : FloatProgram. block : Block, with its codes filled in.
    """
    args, weights, work = program.args, program.weights, block.work
    for i in range(begin, end):
        kind, at = program.op[i], program.target[i] * lanes
        first, last = program.start[i], program.start[i + 1]
        if kind == SUM:
            k, terms = program.first_weight[i], program.first_weight[i + 1] - program.first_weight[i]
            alone = 2 * terms - (last - first)  # terms w·x; the others are w·x·y
            if terms == 0:
                fill(work, at, lanes, 0.0)
            add_values(args, first, first + alone, weights, k, lanes, work, at, True)
            add_products(args, first + alone, last, weights, k + alone, lanes, work, at, alone == 0)
        elif kind == TIMES:
            multiply(args, first, last, lanes, work, at)
        elif kind == PAIR:
            t = args[first]
            table, column = t * ENTRIES, program.pairs.column[t] * lanes
            for lane in range(0, lanes, STEP):
                x, tables, codes = column + lane, program.pairs.tables, block.columns
                a, b = lookup(tables, table, codes, x), lookup(tables, table, codes, x + 8)
                c, d = lookup(tables, table, codes, x + 16), lookup(tables, table, codes, x + 24)
                store4(work, at + lane, a, b, c, d)
        elif kind == LOOKUP:
            t = args[first]
            table, column = program.wide.start[t], program.wide.scope[t] * lanes
            for lane in range(0, lanes, 8):
                store(work, at + lane, entries(program.wide.tables, table, block.state, column + lane))
        elif kind == LEAF:
            leaf = args[first]
            variable, table = program.leaves.variable[leaf] * lanes, program.leaves.table
            if variable < 0:
                fill(work, at, lanes, table[leaf, 2])
            else:
                for lane in range(0, lanes, 8):
                    value = choose(block.columns, variable + lane, table[leaf, 0], table[leaf, 1], table[leaf, 2])
                    store(work, at + lane, value)
        else:
            raise ValueError("an instruction that the float64 interpreter does not know")
