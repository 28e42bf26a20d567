"""Programs with determinants over float64, a block of rows at a time.

The float64 interpreter runs the instructions between determinants; `forms.determinant_rows` computes these.
`pgcc.determinants.staged` calls `run_staged`, and `pgcc.determinants.reverse_pass` calls `run_tail`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from pgcc.certify.kernels.bounds import LEAST_DET, MOST_DET
from pgcc.determinants.kernels.forms import determinant_rows
from pgcc.determinants.kernels.observed import PADDING
from pgcc.determinants.kernels.plan import Children, FloatLayout, Found
from pgcc.ir.numbers import UNIT
from pgcc.kernels.policy import bare_kernel, kernel, separate_kernel
from pgcc.program.program import DET, DETERMINANTS, DETMAG
from pgcc.rings.float64.kernels.interpreter import copy_roots, run_block
from pgcc.rings.float64.kernels.packed_evidence import Rows, read_block

_RANGE = 1000
_POWERS = 2.0 ** np.arange(-_RANGE, _RANGE + 1)


class Determinants(NamedTuple):
    """The determinants of a program, with their scaling and accuracy in it.

    Attributes
    ----------
    layout : FloatLayout
    shift : int64 array
        Determinant d is divided by 2^shift[d].
    degree : float64 array
        The factor by which the relative errors of its children are multiplied in a determinant; inf if unknown.
    wanted : float
        The relative error to aim at.
    waits : bool
        Whether to stop where a base FREE is missing that would be cheaper (see `determinant_rows`).
    """

    layout: FloatLayout
    shift: np.ndarray
    degree: np.ndarray
    wanted: float
    waits: bool = False


@kernel
def run_staged(head, tail, dets, rows, begin, lanes, block, results):
    """`run_rows` for a program with determinants, from block `begin` on: its head, in the fast form, then its tail.

    rows : Rows, followed by PADDING bytes. results : roots, out (see `run_rows`) and unknown (see `run_tail`). Returns
    how many blocks are done: if `dets` waits, it stops before a block for which a base is missing.
    """
    roots, out, unknown = results
    evidence = Rows(rows.codes[: len(rows.codes) - PADDING], rows.variables)
    for number in range(begin, len(unknown) // lanes):
        first = number * lanes
        if len(head.op):
            read_block(head, evidence, first, lanes, block)
            run_block(head, 0, len(head.op), lanes, block)
        if run_tail(tail, 0, len(tail.op), dets, rows, first, block, unknown[first : first + lanes]):
            return number
        copy_roots(block.work, lanes, roots, out, number)
    return len(unknown) // lanes


@separate_kernel
def run_tail(program, begin, end, dets, rows, first_row, block, unknown):
    """Instructions begin … end − 1, some of them determinants, for the block of rows from `first_row` on.

    program : FloatProgram. dets : Determinants. rows : Rows, followed by PADDING bytes. block : Block, with codes if
    there are leaves among the instructions. A determinant is NaN where it is out of range, and where float64 cannot
    compute it whatever the range; in the latter case unknown[row] is set. Returns whether it stopped to wait for a
    base.
    """
    lanes, op, start, args, work = len(unknown), program.op, program.start, program.args, block.work
    evidence, variables = rows
    layout, degree = dets.layout, dets.degree
    found = Found(np.empty(lanes), np.empty(lanes, np.int64), np.zeros(lanes))
    error, error_of_value = found.error, np.zeros(lanes)
    at_row = first_row * variables
    # the last row is repeated to the end of the block; its determinants are computed once
    here = lanes if variables == 0 else max(1, min(lanes, (len(evidence) - PADDING - at_row) // variables))
    unknown[:] = False
    i = begin
    while i < end:
        if op[i] not in DETERMINANTS:
            first = i
            while i < end and op[i] not in DETERMINANTS:
                i += 1
            run_block(program, first, i, lanes, block)
            continue
        if op[i] not in (DET, DETMAG):
            raise ValueError("an instruction that is not known between determinants")
        d, first, k = np.int64(args[start[i]]), start[i] + 1, (start[i + 1] - start[i] - 1) // 2
        at, is_value = program.target[i] * lanes, op[i] == DET
        if k > 0 or is_value:
            inside, outside = args[first : first + k], args[first + k : first + 2 * k]
            children = Children(inside, outside, work, lanes, evidence, at_row, here)
            if determinant_rows(layout, d, children, dets.wanted, dets.waits, found) and dets.waits:
                return True
            _write_values(found, here, dets.shift[d], work, at, unknown)
        else:
            for lane in range(lanes):
                work[at + lane] = work[args[first] * lanes + lane]
        if is_value:
            for lane in range(lanes):
                error_of_value[lane] = error[lane]  # for its DETMAG, which follows
        else:  # errors γ of children change it by degree·γ; its own error is counted in units of roundings
            for lane in range(lanes):
                size = abs(work[at + lane])
                units = degree[d] + (error_of_value[lane] + (error[lane] if k > 0 else 0.0)) / UNIT
                work[at + lane] = 0.0 if size == 0.0 else size * units
                unknown[lane] |= degree[d] == math.inf
        i += 1
    return False


@bare_kernel
def _write_values(found, rows, shift, work, at, unknown):
    """work[at + row] = mantissa · 2^(exponent − shift), or NaN where that is out of range or unknown."""
    mantissa, exponent, error = found
    binary, power = exponent[0], _power_of_two(exponent[0] - shift)
    for row in range(rows):
        if exponent[row] != binary:
            binary, power = exponent[row], _power_of_two(exponent[row] - shift)
        value, zero = mantissa[row] * power, mantissa[row] == 0.0
        known = error[row] < 0.1
        unknown[row] |= not known
        work[at + row] = 0.0 if zero and known else value if known and LEAST_DET < abs(value) < MOST_DET else math.nan
    for row in range(rows, len(unknown)):
        unknown[row], work[at + row] = True, math.nan


@bare_kernel
def _power_of_two(exponent):
    """2^exponent, or NaN where that is out of range; from a table, ten times as fast as `ldexp`."""
    return _POWERS[exponent + _RANGE] if abs(exponent) <= _RANGE else math.nan


@bare_kernel
def in_range(mantissa, exponent):
    """mantissa · 2^exponent, or NaN where that is out of range."""
    if mantissa == 0.0:
        return 0.0
    value = mantissa * _power_of_two(exponent)
    return value if LEAST_DET < abs(value) < MOST_DET else math.nan
