"""The float64 loop: runs the fast form of programs without determinants, a block of rows at a time."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np

from pgcc.certify.certificate import Analysis, Certificate
from pgcc.locks import cached_property
from pgcc.program.condense import MOST_VARIABLES, Condensed, Tables, condense, state_numbers, states
from pgcc.program.program import Code, Program
from pgcc.rings.float64.kernels.interpreter import Block, FloatProgram, Leaves, PairTables, WideTables
from pgcc.rings.float64.kernels.packed_evidence import STEP
from pgcc.rings.float64.kernels.rows import Answer, run_rows, write_certified

# Bytes of values up to which 256 rows at a time are fastest, or 128: a few times the first-level cache, and the
# second-level cache.
_NEAR, _NEXT = 1 << 17, 1 << 21
# A block of at most this many doubles is kept for the next call.
_KEPT = 1 << 22
# The evidence that row 4·i + j of a table stands for, on its two variables.
_TABLE_ROWS = np.array([[(0, 1, -1, -1)[i], (0, 1, -1, -1)[j]] for i in range(4) for j in range(4)], np.int8)
_NO_LEAVES = Leaves(np.zeros(0, np.int32), np.zeros((0, 3)))
_NO_PAIRS = PairTables(np.zeros((0, 2), np.int32), np.zeros(0, np.int32), np.zeros(0))
_NO_WIDE = WideTables(
    np.zeros(0),
    np.zeros(0, np.int64),
    np.zeros(0, np.int64),
    np.zeros((0, MOST_VARIABLES), np.int32),
    np.zeros((MOST_VARIABLES - 2, 0), np.uint16),
)


class Loop:
    """Some values of a program that shares no slots, for many rows.

    Parameters
    ----------
    program : Program
    kept : slots
        The values to return.
    signed : bool
        Whether the second half of `kept` are the magnitudes of the first half; otherwise, every value is its magnitude.
    lanes : int, optional
        Rows per block. With more of them, decoding an instruction costs less; but the slots should stay in the cache.
    """

    def __init__(self, program: Program, kept: Sequence[int], signed: bool, lanes: int | None = None):
        self.unscheduled, self.kept, self._signed, self._lanes = program, kept, signed, lanes
        self._memory = threading.local()  # one block per thread, kept: new memory has to be cleared first

    def values(self, evidence: np.ndarray) -> np.ndarray:
        """The values for int8 rows of evidence (1, 0, −1), kept × rows; the last block may add columns."""
        lanes = self._lanes_for(evidence)
        kept = self.condensed.kept
        out = np.empty((len(kept), -(-len(evidence) // lanes) * lanes))
        run_rows.call_alike(self.float_program, evidence, lanes, self._block(lanes), kept, out)
        return out

    def write_certified(self, evidence: np.ndarray, answer: Answer, numbers: np.ndarray) -> bool:
        """Write the first value of every row that is certified with the last value as magnitude (see the kernel)."""
        lanes = self._lanes_for(evidence)
        block, kept = self._block(lanes), self.condensed.kept
        return write_certified.call_alike(self.float_program, evidence, lanes, block, kept, answer, numbers)

    @cached_property
    def condensed(self) -> Condensed:
        """The fast form of the program."""
        return condense(self.unscheduled, self.kept)

    @cached_property
    def certificate(self) -> Certificate:
        """The certificate of the kept values, with their magnitudes (see `signed`)."""
        kept = self.condensed.kept
        half = len(kept) // 2 if self._signed else 0
        analysis = Analysis(self.condensed.slots).run_condensed(self.condensed)
        return analysis.certificate(kept[: half or None], kept[half:])

    @cached_property
    def float_program(self) -> FloatProgram:
        """The fast form as the interpreter reads it."""
        return condensed_program(self.condensed, self.unscheduled.n_variables)

    @cached_property
    def lanes(self) -> int:
        """Rows per block: up to 256 if their values stay in the first cache, up to 128 if they fit the second."""
        if self._lanes is not None:
            return self._lanes
        row = 8 * self.condensed.slots
        return STEP * max(1, min(8, _NEAR // row // STEP), min(4, _NEXT // row // STEP))

    def _lanes_for(self, evidence: np.ndarray) -> int:
        if len(evidence) == 1:  # half the time of a block of 32 rows; an eighth where that leaves the cache
            return 1
        return min(self.lanes, -(-len(evidence) // STEP) * STEP)

    def _block(self, lanes: int) -> Block:
        """Memory for a block. A thread gets the same memory in every call, unless it is large."""
        known: tuple[int, Block] | None = getattr(self._memory, "known", None)
        if known is not None and known[0] == lanes:
            return known[1]
        block = new_block(self.condensed, self.condensed.slots, self.unscheduled.n_variables, lanes)
        if len(block.work) <= _KEPT:
            self._memory.known = lanes, block
        return block


def uncondensed_program(program: Program) -> FloatProgram:
    """A program as the interpreter reads it."""
    return _float_program(program, Leaves(program.leaf_variable, program.leaf_table), _NO_PAIRS, _NO_WIDE)


def condensed_program(condensed: Condensed, variables: int) -> FloatProgram:
    """A fast form as the interpreter reads it, with its tables filled in; variables : the columns of the evidence."""
    column = (variables + condensed.joint).astype(np.int32)
    pairs = PairTables(condensed.pairs, column, _filled(condensed.tables, _TABLE_ROWS))
    return _float_program(condensed, _NO_LEAVES, pairs, _wide_tables(condensed) if condensed.wide else _NO_WIDE)


def _float_program(code: Code, leaves: Leaves, pairs: PairTables, wide: WideTables) -> FloatProgram:
    return FloatProgram(
        code.op, code.target, code.start, code.args, code.first_weight, code.weights, leaves, pairs, wide
    )  # fmt: skip


def _wide_tables(condensed: Condensed) -> WideTables:
    tables = [_filled(one, states(one.variables)) for one in condensed.wide]
    sizes = [3**one.variables for one in condensed.wide for _ in one.roots]
    numbers = np.zeros((MOST_VARIABLES - 2, 4**MOST_VARIABLES), np.uint16)
    for k in {one.variables for one in condensed.wide}:
        numbers[k - 3, : 4**k] = state_numbers(k)
    return WideTables(
        np.concatenate(tables),
        np.cumsum([0, *sizes])[:-1],
        condensed.wide_scope.astype(np.int64),
        condensed.scopes,
        numbers,
    )


def _filled(tables: Tables, rows: np.ndarray) -> np.ndarray:
    """All entries of tables, one table after another; rows : the evidence that each entry stands for."""
    program, count = tables.program, len(tables.roots)
    out = np.empty((count, -(-len(rows) // STEP) * STEP))
    block = new_block(None, program.slots, tables.variables, STEP)
    run_rows.call_alike(uncondensed_program(program), rows, STEP, block, tables.roots, out)
    filled = aligned(count * len(rows))
    filled.reshape(-1, len(rows))[:] = out[:, : len(rows)]
    return filled


def new_block(condensed: Condensed | None, slots: int, variables: int, lanes: int) -> Block:
    """Memory for a block of rows of a program, which may begin with a condensed one."""
    pairs, scopes = (0, 0) if condensed is None else (len(condensed.pairs), len(condensed.scopes))
    return Block(
        np.empty(max(8, variables + pairs) * lanes, np.uint8),  # codes are transposed eight variables at a time
        np.empty(scopes * lanes, np.uint16),
        aligned(slots * lanes + (STEP if lanes == 1 else 0)),  # what certifies the value reads a vector
    )


def aligned(size: int) -> np.ndarray:
    """Memory for doubles that starts at a cache line: a vector that straddles two costs twice as much to load."""
    memory = np.empty(size + 8)
    first = -(memory.ctypes.data // 8) % 8
    return memory[first : first + size]
