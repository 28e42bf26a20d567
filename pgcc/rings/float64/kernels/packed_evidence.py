"""Rows of evidence, packed as the interpreter reads them: a block of rows at a time, variable by variable.

The code of a variable is 0 or 1 where it is observed, and 255 where it is not. The joint code of two variables with the
codes x and y is 4·(x & 3) + (y & 3).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pgcc.kernels.policy import bare_kernel
from pgcc.kernels.simd import transpose
from pgcc.program.program import MOST_VARIABLES

STEP = 32  # the number of rows in a block is a multiple of it


class Rows(NamedTuple):
    """Rows of evidence.

    Attributes
    ----------
    codes : uint8 array
        The codes of all rows, one row after another.
    variables : int
        The number of codes in a row.
    """

    codes: np.ndarray
    variables: int


@bare_kernel
def are_codes(evidence, first, last):
    """Whether bytes first … last − 1 are 1, 0 or 255."""
    wrong, codes = np.uint8(0), evidence[first:last]
    for i in range(len(codes)):
        wrong |= np.uint8(codes[i] > 1) & np.uint8(codes[i] < 255)
    return wrong == 0


@bare_kernel
def read_block(program, rows, first, lanes, block):
    """Write the codes of a block of rows, from row `first` on; a last block that is not full repeats the last row.

    program : FloatProgram. rows : Rows. block : Block.
    """
    pack_block(rows, first, lanes, block.columns)
    _join_pairs(program.pairs.variables, rows.variables, lanes, block.columns)
    _number_states(program.wide, lanes, block)


@bare_kernel
def pack_block(rows, first, lanes, packed):
    """packed[v·lanes + k] = code of variable v in row first + k; past the end, that of the last row.

    Codes are transposed in squares of 8 × 8 bytes, if there are enough bytes to read and columns to write. A row with
    fewer than eight variables is read on into the next row; so `packed` has eight columns at least (see `new_block`).
    """
    evidence, variables = rows
    count = len(evidence) // max(1, variables)
    there = (first + lanes - 1) * variables + max(8, variables) <= len(evidence)
    if variables > 0 and lanes > 1 and there and len(packed) >= 8 * lanes:
        for v in range(0, variables, 8):
            v = max(0, min(v, variables - 8))  # the last square may overlap the one before
            for lane in range(0, lanes, 8):
                transpose(evidence, (first + lane) * variables + v, variables, packed, v * lanes + lane, lanes)
    else:
        for v in range(variables):
            for lane in range(lanes):
                packed[v * lanes + lane] = evidence[min(first + lane, count - 1) * variables + v]


@bare_kernel
def _join_pairs(pairs, variables, lanes, columns):
    """The joint codes of pairs of variables, after their own codes."""
    for p in range(len(pairs)):
        x, y, to = pairs[p, 0] * lanes, pairs[p, 1] * lanes, (variables + p) * lanes
        first, second, here = columns[x : x + lanes], columns[y : y + lanes], columns[to : to + lanes]
        for lane in range(lanes):
            here[lane] = (first[lane] & np.uint8(3)) * np.uint8(4) + (second[lane] & np.uint8(3))


@bare_kernel
def _number_states(wide, lanes, block):
    """state[s·lanes + row] = number of the state of the variables of scope s."""
    for s in range(len(wide.scopes)):
        k = 0
        while k < MOST_VARIABLES and wide.scopes[s, k] >= 0:
            k += 1
        here, numbers = block.state[s * lanes : (s + 1) * lanes], wide.numbers[k - 3]
        here[:] = 0
        for i in range(k):
            column = wide.scopes[s, i] * lanes
            low, high, codes = np.uint16(1 << i), np.uint16(1 << (k + i)), block.columns[column : column + lanes]
            for lane in range(lanes):
                here[lane] += (low if codes[lane] & 1 else 0) + (high if codes[lane] & 2 else 0)
        for lane in range(lanes):
            here[lane] = numbers[here[lane]]
