"""Which values of a program depend on which: both functions take programs in which no two values share a slot."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pgcc.program.program import DETERMINANTS, Code


def needed_slots(program: Code, wanted: Sequence[int] | np.ndarray, reading: np.ndarray | bool = True) -> np.ndarray:
    """By slot, whether its value is wanted, or is needed to compute a value that is.

    So `needed_slots(program, wanted)[program.target]` are the instructions that are needed. reading : by instruction,
    whether the values that it reads are needed if its own is; by default, those of all instructions are.

    >>> import pgcc
    >>> from pgcc.program.lower import lower
    >>> program = lower(pgcc.parse("(0.5*a*b + 0.5)*(0.5*c*d + 0.5)"))
    >>> needed_slots(program, [program.target[-2]]).tolist().count(True), program.slots
    (4, 8)
    """
    needed = bytearray(program.slots)
    for slot in np.asarray(wanted).tolist():
        needed[slot] = 1
    first, last = program.first_slot, program.start[1:]
    which = np.flatnonzero((first < last) & reading)[::-1]
    args = program.args.tolist()
    columns = (program.target[which], first[which], last[which])
    for target, begin, end in zip(*(column.tolist() for column in columns), strict=True):
        if needed[target]:
            for slot in args[begin:end]:
                needed[slot] = 1
    return np.frombuffer(needed, np.bool_)


def slots_of_determinants(program: Code) -> np.ndarray:
    """By slot, whether its value is that of a determinant (or its magnitude, …), or computed from one."""
    found = bytearray(program.slots)
    args, is_determinant = program.args.tolist(), np.isin(program.op, DETERMINANTS)
    columns = (is_determinant, program.target, program.first_slot, program.start[1:])
    for determinant, target, begin, end in zip(*(column.tolist() for column in columns), strict=True):
        found[target] = determinant or 1 in [found[slot] for slot in args[begin:end]]
    return np.frombuffer(found, np.bool_)
