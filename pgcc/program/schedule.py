"""Which slot holds which value.

Instructions stay in depth-first order, in which a value is used soon after it is made; a slot is free again after
the last use of its value, and the slot freed last is taken first, while it is still in the cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

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


def share_slots(program: Instructions, kept: Sequence[int]) -> tuple[Instructions, np.ndarray]:
    """The same for instructions of which some values are wanted in the end; and the slots of those.

    (The `value` and `magnitude` of a program are as they were.)
    """
    op, start = program.op, program.start
    target, args = program.target.copy(), program.args.copy()
    is_value = value_arguments(program)
    last_use = _last_uses(target, start, args, is_value, kept)
    # The arguments that die at each instruction, in order of instruction.
    user = np.repeat(np.arange(len(op)), np.diff(start))
    dying = is_value & (last_use[args] == user)
    deaths = np.unique(user[dying] * len(last_use) + args[dying])  # an instruction may read a value twice
    ends = np.searchsorted(deaths, np.arange(len(op) + 1) * len(last_use)).tolist()
    dead = (deaths % len(last_use)).tolist()
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


def value_arguments(program: Code) -> np.ndarray:
    """Which entries of `args` are values: not the number of a leaf, of a determinant or of a table."""
    is_value = np.ones(len(program.args), bool)
    is_value[program.start[:-1][(program.op == LEAF) | (program.op >= DET)]] = False
    return is_value


def _last_uses(
    target: np.ndarray, start: np.ndarray, args: np.ndarray, is_value: np.ndarray, roots: Sequence[int]
) -> np.ndarray:
    """The last instruction that reads each value; one past the end for the roots, −1 for a value nobody reads."""
    last = np.full(int(target.max(initial=-1)) + 1, -1, np.int64)
    user = np.repeat(np.arange(len(start) - 1), np.diff(start))
    np.maximum.at(last, args[is_value], user[is_value])
    last[list(roots)] = len(start)
    return last
