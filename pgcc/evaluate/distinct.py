"""The distinct rows of a table, so that equal rows are evaluated only once."""

from __future__ import annotations

import numpy as np

from pgcc.evaluate.kernels.distinct import number_equal


def number_rows(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where each distinct row occurs first, in order of appearance; and for every row, the number of its distinct row.

    >>> first, number = number_rows(np.array([[1, 0], [0, 1], [1, 0]], np.int8))
    >>> first.tolist(), number.tolist()
    ([0, 1], [0, 1, 0])
    """
    rows = len(table)
    given = np.ascontiguousarray(table).reshape(rows, -1)
    width = given.shape[1] * given.itemsize
    padded = np.zeros((rows, max(8, -(-width // 8) * 8)), np.uint8)
    padded[:, :width] = given.view(np.uint8)
    slots = np.full(1 << (2 * rows).bit_length(), -1)
    first, number = np.empty(rows, np.int64), np.empty(rows, np.int64)
    count = number_equal(padded.view(np.uint64), slots, first, number)
    return first[:count].copy(), number
