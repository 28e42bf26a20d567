"""Balls of flint: its working precision, and determinants."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from flint import arb, ctx

# flint's precision is one number for the whole process.
flint_lock = threading.RLock()
# Balls are eliminated in blocks of so many rows: the first of them, and what is left.
_BLOCK = 100
_HEAD, _TAIL = slice(_BLOCK), slice(_BLOCK, None)


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """So many bits, for one thread at a time."""
    with flint_lock, ctx.workprec(bits):
        yield


def ball_determinant(matrix: Any) -> Any:
    """By blocks, on which flint is three times as fast; as a whole where that costs half of the bits."""
    if matrix.nrows() <= _BLOCK:
        return matrix.det()
    try:
        value = _by_blocks(matrix)
    except ZeroDivisionError:  # a block is singular, the matrix may not be
        return matrix.det()
    return value if value.rel_accuracy_bits() >= ctx.prec // 2 else matrix.det()


def _by_blocks(matrix: Any) -> Any:
    """det [[A, B], [C, D]] = det A · det(D − C·A⁻¹·B)"""
    kind, value = type(matrix), arb(1)
    while matrix.nrows() > _BLOCK:
        rows, n = matrix.tolist(), matrix.nrows() - _BLOCK
        top, low = rows[:_BLOCK], rows[_BLOCK:]
        A, B = (kind(_BLOCK, m, _flat([row[part] for row in top])) for m, part in ((_BLOCK, _HEAD), (n, _TAIL)))
        C, D = (kind(n, m, _flat([row[part] for row in low])) for m, part in ((_BLOCK, _HEAD), (n, _TAIL)))
        value = A.det() * value
        matrix = D - C * A.solve(B)
    return matrix.det() * value


def _flat(rows: list[list[Any]]) -> list[Any]:
    return [x for row in rows for x in row]
