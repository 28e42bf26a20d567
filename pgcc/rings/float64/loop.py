"""Running programs without determinants in float64: condensed, a block of rows at a time."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from pgcc.certify.certificate import Certificate, Walk
from pgcc.kernels.bundle import Bundle
from pgcc.kernels.simd import WORD
from pgcc.program.condense import MOST_VARIABLES, Condensed, Tables, condense, state_numbers, states
from pgcc.program.program import Program
from pgcc.rings.float64.kernels.condensed import (
    PROGRAM_TYPES,
    ROOM_TYPES,
    Codes,
    Pairs,
    WideTables,
    rows_of_unit,
    run_condensed,
    settle_bundled,
)
from pgcc.rings.float64.kernels.linear import STEP, pack_codes, run_linear

# Bytes of values with which 256 rows at a time are fastest, or 128: a few times the nearest cache, and the next one.
_NEAR, _NEXT = 1 << 17, 1 << 21
# Doubles of room for values that are kept for the next call.
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
    signed : bool
        Whether the second half of them are the magnitudes of the first; otherwise, all are their own.
    lanes : int, optional
        Rows per block. The more, the less reading an instruction costs; but the slots should stay in the cache.
    """

    def __init__(self, program: Program, kept: Sequence[int], signed: bool, lanes: int | None = None):
        self.unscheduled, self.kept, self._signed, self._lanes = program, kept, signed, lanes
        self._rooms = threading.local()  # room for a block, which the system would have to clear for every call

    def values(self, evidence: np.ndarray) -> np.ndarray:
        """The values for int8 rows of evidence (1, 0, −1): kept × rows, and perhaps some more columns."""
        lanes = min(self.lanes, -(-len(evidence) // STEP) * STEP)
        room, kept = self._room(lanes), self.condensed.kept
        out = np.empty((len(kept), -(-len(evidence) // lanes) * lanes))
        run_condensed(*self._tables, evidence, lanes, room.codes, room.work, kept, out)
        return out

    def settle(self, evidence: np.ndarray, *promise: Any) -> bool:
        """The first value of every row, where the last one as its magnitude certifies it (see the kernel `settle`)."""
        lanes = min(self.lanes, -(-len(evidence) // STEP) * STEP)
        program, room = self._bundle, self._room(lanes).bundle  # held here: a large room is nobody else's
        return settle_bundled(program.addresses, room.addresses, evidence, lanes, *promise)

    @cached_property
    def condensed(self) -> Condensed:
        """The program in the form for the loop."""
        return condense(self.unscheduled, self.kept)

    @cached_property
    def certificate(self) -> Certificate:
        """Of the first half of what is kept, with the second half for magnitudes (see `signed`)."""
        kept = self.condensed.kept
        half = len(kept) // 2 if self._signed else 0
        walk = Walk(self.condensed.slots).run_condensed(self.condensed)
        return walk.certificate(kept[: half or None], kept[half:])

    @cached_property
    def _tables(self) -> tuple[Any, ...]:
        return with_tables(self.condensed, self.unscheduled.n_variables)

    @cached_property
    def lanes(self) -> int:
        """Rows per block: up to 256 if their values stay near, up to 128 if they fit the next cache."""
        if self._lanes is not None:
            return self._lanes
        row = 8 * self.condensed.slots
        return STEP * max(1, min(8, _NEAR // row // STEP), min(4, _NEXT // row // STEP))

    @cached_property
    def _bundle(self) -> Bundle:
        *arrays, pairs, wide = self._tables
        return Bundle(PROGRAM_TYPES, *arrays, *pairs, *wide, self.condensed.kept)

    def _room(self, lanes: int) -> _Room:
        """Room for the codes and the values of a block, the same for every call of a thread unless it is large."""
        room: _Room | None = getattr(self._rooms, "room", None)
        if room is None or room.lanes != lanes:
            size = self.condensed.slots * lanes
            room = _Room(lanes, room_for_codes(self.condensed, self.unscheduled.n_variables, lanes), aligned(size))
            if size <= _ROOM:
                self._rooms.room = room
        return room


class _Room:
    """Room for a block."""

    def __init__(self, lanes: int, codes: Codes, work: np.ndarray):
        self.lanes, self.codes, self.work = lanes, codes, work
        self.bundle = Bundle(ROOM_TYPES, *codes, work)


def with_tables(condensed: Condensed, variables: int) -> tuple[Any, ...]:
    """What kernels take of a condensed program: its arrays, its tables, the pairs of variables, the wide tables.

    variables : of a row of evidence.
    """
    tables = _filled(condensed.tables, _TABLE_ROWS)
    wide = [_filled(one, states(one.variables)) for one in condensed.wide]
    sizes = [3**one.variables for one in condensed.wide for _ in one.roots]
    numbers = np.zeros((MOST_VARIABLES - 2, 4**MOST_VARIABLES if wide else 0), np.uint16)
    for k in {one.variables for one in condensed.wide}:
        numbers[k - 3, : 4**k] = state_numbers(k)
    return (
        condensed.op, condensed.target, condensed.start, condensed.args, condensed.first_weight, condensed.weights,
        condensed.joint, tables,
        Pairs(condensed.pairs, order_of_bytes(condensed.pairs, variables)),
        WideTables(
            np.concatenate([np.zeros(0), *wide]), np.cumsum([0, *sizes])[:-1], condensed.wide_scope.astype(np.int64),
            condensed.scopes, numbers,
        ),
    )  # fmt: skip


def order_of_bytes(pairs: np.ndarray, variables: int) -> np.ndarray:
    """Where the codes of pairs are among the bytes of some rows of evidence: see `Pairs`."""
    rows = rows_of_unit.py_func(variables)
    groups = 8 // rows
    if not 0 < variables <= 2 * WORD:
        pairs = pairs[:0]
    padded = np.zeros((-(-len(pairs) // (8 * groups)), groups, 8, 2), np.int64)
    padded.reshape(-1, 2)[: len(pairs)] = pairs
    byte = padded.transpose(0, 3, 1, 2)[:, :, :, None, :] + variables * np.arange(rows)[:, None]
    byte = np.where(byte < WORD, byte, byte - rows * variables + 2 * WORD)
    return byte.astype(np.uint8, order="C").reshape(-1, 2, WORD)


def room_for_codes(condensed: Condensed, variables: int, lanes: int) -> Codes:
    """Where kernels write the codes of a block."""
    groups = -(-len(condensed.pairs) // 8)
    return Codes(
        aligned((groups + 7) * lanes).view(np.uint64),
        np.empty(len(condensed.scopes) * lanes, np.uint16),
        np.empty((variables + 8 * groups) * lanes, np.uint8),
    )


def _filled(tables: Tables, rows: np.ndarray) -> np.ndarray:
    """All entries of tables, one table after another; rows: the codes that belong to the entries."""
    program, roots, blocks = tables.program, tables.roots, -(-len(rows) // STEP)
    codes, out = np.empty((blocks, tables.variables * STEP), np.uint8), np.empty((len(roots), blocks * STEP))
    pack_codes(rows.reshape(-1).view(np.uint8), tables.variables, 0, STEP, codes)
    run_linear(*program.arrays, codes, STEP, aligned(program.slots * STEP), roots, out)
    filled = aligned(len(roots) * len(rows))
    filled.reshape(-1, len(rows))[:] = out[:, : len(rows)]
    return filled


def aligned(size: int) -> np.ndarray:
    """Room for doubles that starts at a cache line: a vector that straddles two costs twice as much to load."""
    room = np.empty(size + 8)
    first = -(room.ctypes.data // 8) % 8
    return room[first : first + size]
