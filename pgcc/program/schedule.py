"""Register allocation: which slot holds which value.

The order of instructions stays. It is depth-first, so that a value is read soon after it is computed. A slot is free
again after the last use of its value, and the slot freed last is taken first, while it is still in the cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from pgcc.ir.flat import starts
from pgcc.program.program import Code, Program

Instructions = TypeVar("Instructions", bound=Code)


def schedule(program: Program) -> Program:
    """The same program with values sharing slots: it needs as many as there are values alive at the same time.

    Examples
    --------
    >>> import pgcc
    >>> from pgcc.program.lower import lower
    >>> schedule(lower(pgcc.parse("0.5*a*b + 0.25*a + 0.25")))
    <Program: 4 instructions, 7 operations, 4 slots>
    """
    return share_slots(program, (program.value, program.magnitude))[0]


def share_slots(program: Instructions, kept: Sequence[int] | np.ndarray) -> tuple[Instructions, np.ndarray]:
    """`schedule` for code without a root: the same instructions, and the new slots of the values to keep to the end."""
    last_use = _last_uses(program, kept)
    # The values that die at each instruction, in order of instruction.
    mortal = np.flatnonzero((last_use >= 0) & (last_use < program.instructions))
    dead = mortal[np.argsort(last_use[mortal], kind="stable")].tolist()
    ends = starts(np.bincount(last_use[mortal], minlength=program.instructions)).tolist()
    slot = [-1] * len(last_use)
    free: list[int] = []
    used = 0
    for i, value in enumerate(program.target.tolist()):
        if slot[value] < 0:
            if free:
                slot[value] = free.pop()
            else:
                slot[value] = used
                used += 1
        if ends[i] != ends[i + 1]:
            free.extend([slot[v] for v in dead[ends[i] : ends[i + 1]]])
    slots = np.array(slot, np.int32)
    return program.renamed(slots, used), slots[list(kept)].astype(np.int64)


def _last_uses(program: Code, roots: Sequence[int] | np.ndarray) -> np.ndarray:
    """The last instruction that reads each value; one past the end for the roots, −1 for a value nobody reads."""
    start, is_slot = program.start, program.is_slot
    last = np.full(int(program.target.max(initial=-1)) + 1, -1, np.int64)
    user = np.repeat(np.arange(program.instructions), np.diff(start))
    np.maximum.at(last, program.args[is_slot], user[is_slot])
    last[list(roots)] = len(start)
    return last
