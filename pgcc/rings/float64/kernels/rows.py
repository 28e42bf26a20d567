"""Many rows in float64: runs the interpreter block by block, and certifies the results."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from pgcc.certify.kernels.bounds import error_line
from pgcc.kernels.policy import inlined_kernel, kernel
from pgcc.kernels.simd import add_up, div, fetch, if_less, load, minus, mul, muladd, splat, store
from pgcc.rings.float64.kernels.interpreter import copy_roots, run_block, run_row
from pgcc.rings.float64.kernels.packed_evidence import STEP, Rows, are_codes, read_block

_LEAST_NORMAL = 2.0**-1022
# For values between these, neither the bound nor the quotient by a total of 1 leaves the range of normal numbers.
_LOW, _HIGH = 2.0**-960, 2.0**960


class Answer(NamedTuple):
    """How answers are computed from values, and the certificate of the values.

    Attributes
    ----------
    gamma, floor : float
        The error of a value is at most gamma times its magnitude, plus floor (see `Certificate`).
    rtol : float
        The relative error that an answer may have.
    total : float
        Values are divided by it.
    left_from, left_to : float
        Values between these two are left to the caller, whatever their bounds.
    """

    gamma: float
    floor: float
    rtol: float
    total: float
    left_from: float = math.inf
    left_to: float = math.inf


@kernel
def run_rows(program, evidence, lanes, block, roots, out):
    """out[r, row] = value of slot roots[r], padded to whole blocks.

    program : FloatProgram. evidence : int8, rows × variables: 1, 0, or −1 for unobserved. lanes : rows per block, a
    multiple of 32, or 1. block : Block.
    """
    rows = Rows(evidence.reshape(-1).view(np.uint8), evidence.shape[1])
    for number in range(out.shape[1] // lanes):
        read_block(program, rows, number * lanes, lanes, block)
        if lanes == 1:
            run_row(program, 0, len(program.op), block)
        else:
            run_block(program, 0, len(program.op), lanes, block)
        copy_roots(block.work, lanes, roots, out, number)


@kernel
def write_certified(program, evidence, lanes, block, roots, answer, numbers):
    """Compute the values of all rows, and answers from those that are certified; return whether all rows are.

    Evidence need not have been checked: in a block with a code that is not 1, 0 or −1, no row is certified.
    """
    rows = Rows(evidence.reshape(-1).view(np.uint8), evidence.shape[1])
    flat, variables = rows
    certain, count = True, len(numbers)
    for first in range(0, count, lanes):
        here = min(lanes, count - first)
        if not are_codes(flat, first * variables, (first + here) * variables):
            numbers[first : first + here] = math.nan
            certain = False
            continue
        padded = 1 if lanes == 1 else -(-here // STEP) * STEP  # the last block may be smaller
        read_block(program, rows, first, padded, block)
        fetch(numbers, first, first + here, True)
        fetch(flat, (first + lanes) * variables, min(first + 2 * lanes, count) * variables, False)
        if lanes == 1:
            run_row(program, 0, len(program.op), block)
        else:
            run_block(program, 0, len(program.op), padded, block)
        certain &= certify_block(block.work, roots[0] * padded, roots[-1] * padded, here, answer, numbers, first)
    return certain


@inlined_kernel
def certify_block(work, value, magnitude, count, answer, numbers, first):
    """numbers[first + i] = v / total if the relative error of v is at most `rtol`, otherwise NaN.

    v = work[value + i] is a value and work[magnitude + i] its magnitude, for i < count; both arrays go on to a multiple
    of 8, and the last values may be overwritten. Returns whether there is no NaN. The bound is that of
    `relative_bound`, compared with `rtol` without a division; besides, certified values are positive, not at the ends
    of the range, and not between `left_from` and `left_to`.
    """
    gamma, floor, rtol, total, left_from, left_to = answer
    slope, offset = error_line(gamma, floor)
    low, high = _LOW * max(1.0, total), _HIGH * min(1.0, total)
    # a certified v is above error / rtol, and so above `low`, and a normal number: subnormal ones are very slow
    offset = max(offset, low * rtol, 2.0 * _LEAST_NORMAL)
    doubt, whole = splat(0.0), count - count % 8
    for i in range(0, count, 8):
        v, m = load(work, value + i), load(work, magnitude + i)
        error = muladd(splat(slope), m, splat(offset))
        x = v if total == 1.0 else div(v, splat(total))
        x = if_less(v, splat(high), x, splat(math.nan))
        x = if_less(v, splat(left_from), x, if_less(splat(left_to), v, x, splat(math.nan)))
        x = if_less(error, mul(splat(rtol), minus(v, error)), x, splat(math.nan))
        doubt = muladd(x, splat(0.0), doubt)
        if i < whole:
            store(numbers, first + i, x)
        else:
            store(work, value + i, x)
    for i in range(whole, count):
        numbers[first + i] = work[value + i]
    return add_up(doubt) == 0.0
