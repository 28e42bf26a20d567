"""A program with determinants over float64, a block of rows at a time: stretches of the fast loop in between."""

from __future__ import annotations

import math

import numpy as np

from pgcc.determinants.kernels.forms import determinant_rows
from pgcc.determinants.kernels.observed import PADDING
from pgcc.ir.numbers import UNIT
from pgcc.kernels.policy import bare_kernel, kernel
from pgcc.program.program import DET
from pgcc.rings.float64.kernels.condensed import join_block
from pgcc.rings.float64.kernels.condensed import run_block as run_condensed_block
from pgcc.rings.float64.kernels.linear import copy_roots, run_block

_RANGE = 1000
_POWERS = 2.0 ** np.arange(-_RANGE, _RANGE + 1)
LEAST, MOST = 2.0**-600, 2.0**600  # what is written of a determinant is between them, or 0, or NaN


@kernel
def run_staged(
    op, target, start, args, first_weight, weights, leaf_variable, leaf_table,
    plan, data, ints, bases, shift, degree, wanted, evidence, variables, first_row, begin, end, head, rooms, codes,
    lanes, work, roots, out, hopeless,
):  # fmt: skip
    """`run_linear` for programs with determinants, on the rows of `evidence` (flat) from `first_row` on.

    The head, a condensed program with its tables, is run first, then instructions begin … end − 1. If there are leaves
    among those, there is one block of rows, and `codes` are those of its variables. A determinant d comes out divided
    by 2^shift[d], and is NaN where it is out of range, or where float64 does not tell it, whatever the range:
    hopeless[row]. Returns whether the bases at which everything is free would have been smaller somewhere, but are not
    there.
    """
    missed = False
    # op, target, start, args, first_weight, weights; then those of tables
    h0, h1, h2, h3, h4, h5, joint, tables, pairs, wide = head
    mantissa, exponent, error, off = np.empty(lanes), np.empty(lanes, np.int64), np.zeros(lanes), np.zeros(lanes)
    for block in range(len(hopeless) // lanes):
        at_row = (first_row + block * lanes) * variables
        # the last row repeats to the end of the block; its determinants need not
        rows = lanes if variables == 0 else max(1, min(lanes, (len(evidence) - PADDING - at_row) // variables))
        doubt = hopeless[block * lanes : (block + 1) * lanes]
        doubt[:] = False
        if len(h0):
            some = evidence[: len(evidence) - PADDING]
            join_block(pairs, wide, some, variables, first_row + block * lanes, lanes, rooms)
            run_condensed_block(h0, h1, h2, h3, h4, h5, joint, tables, wide, rooms, lanes, work)
        i = begin
        while i < end:
            if op[i] < DET:
                first = i
                while i < end and op[i] < DET:
                    i += 1
                run_block(
                    op, target, start, args, first_weight, weights, leaf_variable, leaf_table,
                    first, i, codes, lanes, work,
                )  # fmt: skip
                continue
            d, first, k = np.int64(args[start[i]]), start[i] + 1, (start[i + 1] - start[i] - 1) // 2
            at, is_value = target[i] * lanes, op[i] == DET
            if k > 0 or is_value:
                missed |= determinant_rows(
                    plan, data, ints, bases, d, args[first : first + k], args[first + k : first + 2 * k],
                    work, lanes, evidence, at_row, rows, wanted, mantissa, exponent, error,
                )  # fmt: skip
                _write_values(mantissa, exponent, error, rows, lanes, shift[d], work, at, doubt)
            else:
                for lane in range(lanes):
                    work[at + lane] = work[args[first] * lanes + lane]
            if is_value:
                off[:] = error  # for its DETMAG, which follows
            else:  # children off by γ change it by degree·γ; its own error counts in units of roundings
                for lane in range(lanes):
                    size = abs(work[at + lane])
                    units = degree[d] + (off[lane] + (error[lane] if k > 0 else 0.0)) / UNIT
                    work[at + lane] = 0.0 if size == 0.0 else size * units
                    doubt[lane] |= degree[d] == math.inf
            i += 1
        copy_roots(work, lanes, roots, out, block)
    return missed


@bare_kernel
def _write_values(mantissa, exponent, error, rows, lanes, shift, work, at, doubt):
    """work[at + row] = mantissa · 2^(exponent − shift), or NaN where that is out of range or not known at all."""
    binary, power = exponent[0], _power_of_two(exponent[0] - shift)
    for row in range(rows):
        if exponent[row] != binary:
            binary, power = exponent[row], _power_of_two(exponent[row] - shift)
        value, zero = mantissa[row] * power, mantissa[row] == 0.0
        unknown = not error[row] < 0.1
        doubt[row] |= unknown
        work[at + row] = (
            0.0 if zero and not unknown else value if not unknown and LEAST < abs(value) < MOST else math.nan
        )
    for row in range(rows, lanes):
        doubt[row], work[at + row] = True, math.nan


@bare_kernel
def _power_of_two(exponent):
    """2^exponent, or NaN where that is out of range."""
    return _POWERS[exponent + _RANGE] if abs(exponent) <= _RANGE else math.nan  # `ldexp` takes ten times as long


@bare_kernel
def in_range(mantissa, exponent):
    """mantissa · 2^exponent, or NaN where that is out of range."""
    if mantissa == 0.0:
        return 0.0
    value = mantissa * _power_of_two(exponent)
    return value if LEAST < abs(value) < MOST else math.nan
