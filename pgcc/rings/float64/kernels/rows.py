"""Many rows in float64: blocks of rows through the interpreter, and which of the results are certain enough."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from pgcc.kernels.elementary import log_eight
from pgcc.kernels.policy import inlined_kernel, kernel
from pgcc.kernels.simd import add_up, div, fetch, if_less, load, minus, mul, muladd, peek, poke, splat, store
from pgcc.rings.float64.kernels.evidence import STEP, Rows, are_codes, read_block
from pgcc.rings.float64.kernels.interpreter import copy_roots, run_block

_LEAST_NORMAL = 2.0**-1022
# Between them, neither the bound nor the quotient by a total of 1 leaves the range of normal numbers.
_LOW, _HIGH = 2.0**-960, 2.0**960


class Answer(NamedTuple):
    """What is wanted of values, and what is known of their errors.

    Attributes
    ----------
    gamma, floor : float
        A value is off by at most γ times its magnitude, and a floor (see `Certificate`).
    rtol : float
        The relative error that is good enough.
    total : float
        What values are divided by.
    logs : bool
        Whether logarithms are wanted.
    left_from, left_to : float
        Values from the one to the other are left to the caller, whatever their bounds.
    """

    gamma: float
    floor: float
    rtol: float
    total: float
    logs: bool
    left_from: float = math.inf
    left_to: float = math.inf


@kernel
def run_rows(program, evidence, lanes, block, roots, out):
    """out[r, row] = value of slot roots[r], padded to whole blocks.

    program : FloatProgram. evidence : int8, rows × variables: 1, 0 or −1 for free. lanes : rows per block, a multiple
    of 32. block : Block.
    """
    rows = Rows(evidence.reshape(-1).view(np.uint8), evidence.shape[1])
    for number in range(out.shape[1] // lanes):
        read_block(program, rows, number * lanes, lanes, block)
        run_block(program, 0, len(program.op), lanes, block)
        copy_roots(block.work, lanes, roots, out, number)


@kernel
def write_certified(program, evidence, lanes, block, roots, answer, numbers):
    """`certify_block` for what `run_rows` computes, block by block; whether everything is certain enough.

    Evidence need not have been checked: in a block in which anything is not 1, 0 or −1 nothing is certain.
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
        padded = -(-here // STEP) * STEP  # the last block may be smaller
        read_block(program, rows, first, padded, block)
        fetch(numbers, first, first + here, True)
        fetch(flat, (first + lanes) * variables, min(first + 2 * lanes, count) * variables, False)
        run_block(program, 0, len(program.op), padded, block)
        certain &= certify_block(block.work, roots[0] * padded, roots[-1] * padded, here, answer, numbers, first)
    return certain


@inlined_kernel
def certify_block(work, value, magnitude, count, answer, numbers, first):
    """numbers[first + i] = v / total, or its logarithm, of values whose relative error is certainly at most `rtol`.

    v = work[value + i], its magnitude is work[magnitude + i], for i < count; both go on to a multiple of 8, with
    rows that repeat, and values are written over. The others become NaN; returns whether there are none. The bound is
    that of `relative_bound`, and only values that are positive, not at the ends of the range, and not between
    `left_from` and `left_to` can be certain.
    """
    gamma, floor, rtol, total, logs, left_from, left_to = answer
    factor = 1.0001 * gamma / (1.0 - gamma)
    low, high = _LOW * max(1.0, total), _HIGH * min(1.0, total)
    # v is above error / rtol, and so above `low`; and it is a normal number: others take a hundred times as long
    offset = max(factor * floor + 1.0001 * floor, low * rtol, 2.0 * _LEAST_NORMAL)
    doubt, whole = splat(0.0), count - count % 8
    for i in range(0, count, 8):
        v, m = load(work, value + i), load(work, magnitude + i)
        error = muladd(splat(factor), m, splat(offset))
        x = v if total == 1.0 else div(v, splat(total))
        x = if_less(v, splat(high), x, splat(math.nan))
        x = if_less(v, splat(left_from), x, if_less(splat(left_to), v, x, splat(math.nan)))
        x = if_less(error, mul(splat(rtol), minus(v, error)), x, splat(math.nan))
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
