"""Running programs without determinants in float64: condensed, a block of rows at a time."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from pgcc.backend.kernels.condensed import run_condensed, settle_condensed
from pgcc.backend.kernels.linear import STEP, pack_codes, run_linear
from pgcc.backend.kernels.simd import WORD
from pgcc.lowering.condense import ENTRIES, Condensed, condense
from pgcc.lowering.program import Program

# Bytes of the first two caches.
_NEAREST, _NEXT = 48 << 10, 1 << 21
# Doubles of room that are kept for the next call.
_ROOM = 1 << 22
# What the row 4·i + j of a table says of its two variables.
_TABLE_ROWS = np.array([[(0, 1, -1, -1)[i], (0, 1, -1, -1)[j]] for i in range(4) for j in range(4)], np.int8)


class Loop:
    """Some values of a program that shares no slots, for many rows.

    Parameters
    ----------
    program : Program
    kept : slots
        The values that are wanted.
    lanes : int, optional
        Rows per block. The more, the less reading an instruction costs; but the slots should stay in the cache.
    """

    def __init__(self, program: Program, kept: Sequence[int], lanes: int | None = None):
        self.unscheduled, self.kept, self._lanes = program, kept, lanes
        self._rooms = threading.local()  # room for values, which the system would have to clear for every call

    def values(self, evidence: np.ndarray) -> np.ndarray:
        """The values for int8 rows of evidence (1, 0, −1): kept × rows, and perhaps some more columns."""
        *arguments, lanes, codes, room, work, kept = self._arguments(evidence)
        out = np.empty((len(kept), -(-len(evidence) // lanes) * lanes))
        run_condensed(*arguments, lanes, codes, room, work, kept, out)
        return out

    def settle(self, evidence: np.ndarray, *promise: Any) -> bool:
        """The first value of every row, where the last one as its magnitude certifies it (see the kernel `settle`)."""
        return settle_condensed(*self._arguments(evidence), *promise)

    def _arguments(self, evidence: np.ndarray) -> tuple[Any, ...]:
        """What kernels of condensed programs take."""
        program, pairs, variables = self.condensed.program, self.condensed.pairs, evidence.shape[1]
        lanes = min(self.lanes, -(-len(evidence) // STEP) * STEP)
        groups = -(-len(pairs) // 8)
        codes, columns = (groups + 7) * lanes, (variables + 8 * groups) * lanes // 8
        room = self._room(codes + columns + program.slots * lanes)
        return (
            *program.arrays[:-1], self._tables, pairs, self._order, evidence.reshape(-1).view(np.uint8), variables,
            lanes, room[:codes].view(np.uint64), room[len(room) - columns :].view(np.uint8), room[codes:],
            self.condensed.kept,
        )  # fmt: skip

    @cached_property
    def condensed(self) -> Condensed:
        """The program in the form for the loop."""
        return condense(self.unscheduled, self.kept)

    @cached_property
    def _order(self) -> np.ndarray:
        return order_of_bytes(self.condensed.pairs, self.unscheduled.n_variables)

    @cached_property
    def _tables(self) -> np.ndarray:
        tables, roots = self.condensed.tables, self.condensed.roots
        codes, out = np.empty((1, 2 * STEP), np.uint8), np.empty((len(roots), STEP))
        pack_codes(_TABLE_ROWS.reshape(-1).view(np.uint8), 2, 0, STEP, codes)
        run_linear(*tables.arrays, codes, STEP, aligned(tables.slots * STEP), roots, out)
        filled = aligned(len(roots) * ENTRIES)
        filled.reshape(-1, ENTRIES)[:] = out[:, :ENTRIES]
        return filled

    @cached_property
    def lanes(self) -> int:
        """Rows per block: up to 256 if they fit the nearest cache, up to 128 if they fit the next."""
        if self._lanes is not None:
            return self._lanes
        row = 8 * self.condensed.program.slots
        return STEP * max(1, min(8, _NEAREST // row // STEP), min(4, _NEXT // row // STEP))

    def _room(self, size: int) -> np.ndarray:
        """Room for doubles, the same for every call of a thread unless it is large."""
        if size > _ROOM:
            return aligned(size)
        room = getattr(self._rooms, "room", None)
        if room is None or len(room) < size:
            room = self._rooms.room = aligned(size)
        return room[:size]


def order_of_bytes(pairs: np.ndarray, variables: int) -> np.ndarray:
    """How `join_block` picks the codes of pairs out of rows of evidence; nothing if a row has more than 128 bytes.

    Returns
    -------
    uint8 array, units × 2 × groups × rows × 8
        The bytes of the two variables of every pair, for a unit of 8, 4, 2 or 1 rows and as many groups of eight pairs
        as make 64 codes. Bytes are numbered through the first 64 of the rows, and then through their last 64.
    """
    rows = next((rows for rows in (8, 4, 2, 1) if rows * variables <= 2 * WORD), 1)
    groups = 8 // rows
    if not 0 < variables <= 2 * WORD:
        pairs = pairs[:0]
    padded = np.zeros((-(-len(pairs) // (8 * groups)), groups, 8, 2), np.int64)
    padded.reshape(-1, 2)[: len(pairs)] = pairs
    byte = padded.transpose(0, 3, 1, 2)[:, :, :, None, :] + variables * np.arange(rows)[:, None]
    return np.where(byte < WORD, byte, byte - rows * variables + 2 * WORD).astype(np.uint8, order="C")


def aligned(size: int) -> np.ndarray:
    """Room for doubles that starts at a cache line: a vector that straddles two costs twice as much to load."""
    room = np.empty(size + 8)
    first = -(room.ctypes.data // 8) % 8
    return room[first : first + size]
