"""Which slot holds which value.

Instructions stay in depth-first order, in which a value is used soon after it is made; a slot is free again after
the last use of its value, and the slot freed last is taken first, while it is still in the cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from pgcc.ir.flat import starts
from pgcc.program.program import DET, LEAF, Code, Program

Instructions = TypeVar("Instructions", bound=Code)


def schedule(program: Program) -> Program:
    """The same program with values sharing slots: its working memory is what is alive at a time.

    Examples
    --------
    >>> import pgcc
    >>> from pgcc.program.lower import lower
    >>> schedule(lower(pgcc.parse("0.5*a*b + 0.25*a + 0.25")))
    <Program: 4 instructions, 7 operations, 4 slots>
    """
    shared, (value, magnitude) = share_slots(program, (program.value, program.magnitude))
    return replace(shared, value=int(value), magnitude=int(magnitude))


def share_slots(program: Instructions, kept: Sequence[int] | np.ndarray) -> tuple[Instructions, np.ndarray]:
    """The same for instructions of which some values are wanted in the end; and the slots of those.

    (The `value` and `magnitude` of a program are as they were.)
    """
    op, start = program.op, program.start
    target, args = program.target.copy(), program.args.copy()
    is_value = value_arguments(program)
    last_use = _last_uses(target, start, args, is_value, kept)
    # The values that die at each instruction, in order of instruction.
    mortal = np.flatnonzero((last_use >= 0) & (last_use < len(op)))
    dead = mortal[np.argsort(last_use[mortal], kind="stable")].tolist()
    ends = starts(np.bincount(last_use[mortal], minlength=len(op))).tolist()
    slot = [-1] * len(last_use)
    free: list[int] = []
    used = 0
    for i, value in enumerate(target.tolist()):
        if slot[value] < 0:
            if free:
                slot[value] = free.pop()
            else:
                slot[value] = used
                used += 1
        if ends[i] != ends[i + 1]:
            free.extend([slot[v] for v in dead[ends[i] : ends[i + 1]]])
    slots = np.array(slot, np.int32)
    target[:] = slots[target]
    args[is_value] = slots[args[is_value]]
    return replace(program, target=target, args=args, slots=used), slots[list(kept)].astype(np.int64)


def needed_slots(program: Code, wanted: Sequence[int] | np.ndarray, reading: np.ndarray | bool = True) -> np.ndarray:
    """Which slots hold values that are wanted, or needed to compute these, in a program that shares no slots.

    reading : which instructions read their arguments; by default, all of them.
    """
    needed = bytearray(program.slots)
    for value in np.asarray(wanted).tolist():
        needed[value] = 1
    first, last = program.start[:-1] + ~_begins_with_value(program), program.start[1:]
    which = np.flatnonzero((first < last) & reading)[::-1]
    args = program.args.tolist()
    columns = (program.target[which], first[which], last[which])
    for value, begin, end in zip(*(column.tolist() for column in columns), strict=True):
        if needed[value]:
            for x in args[begin:end]:
                needed[x] = 1
    return np.frombuffer(needed, np.bool_)


def value_arguments(program: Code) -> np.ndarray:
    """Which entries of `args` are values: not the number of a leaf, of a determinant or of a table."""
    is_value = np.ones(len(program.args), bool)
    is_value[program.start[:-1][~_begins_with_value(program)]] = False
    return is_value


def values_read(program: Code) -> np.ndarray:
    """How many values each instruction reads."""
    return np.diff(program.start) - ~_begins_with_value(program)


def _begins_with_value(program: Code) -> np.ndarray:
    """Whether the first argument of each instruction is a value."""
    return (program.op != LEAF) & (program.op < DET)


def _last_uses(
    target: np.ndarray, start: np.ndarray, args: np.ndarray, is_value: np.ndarray, roots: Sequence[int] | np.ndarray
) -> np.ndarray:
    """The last instruction that reads each value; one past the end for the roots, −1 for a value nobody reads."""
    last = np.full(int(target.max(initial=-1)) + 1, -1, np.int64)
    user = np.repeat(np.arange(len(start) - 1), np.diff(start))
    np.maximum.at(last, args[is_value], user[is_value])
    last[list(roots)] = len(start)
    return last
