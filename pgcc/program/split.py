"""A program with determinants in two parts: what comes before all of them, condensed, and the rest."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import compress

import numpy as np

from pgcc.ir.flat import starts
from pgcc.program.condense import Condensed, condense
from pgcc.program.program import DET, LEAF, Program
from pgcc.program.schedule import schedule, value_arguments


@dataclass(frozen=True, eq=False)
class Split:
    """What `split_at_determinants` makes.

    Attributes
    ----------
    head : Condensed
        What no determinant is needed for. What it keeps, the tail reads.
    tail : Program
        The other instructions. Its slots are those of the head, and more. It has no leaves.
    """

    head: Condensed
    tail: Program


def split_at_determinants(program: Program, unread: np.ndarray) -> Split:
    """The two parts of a program that shares no slots.

    Parameters
    ----------
    program : Program
    unread : bool array
        Which instructions make values that only determinants name, which do not read them.

    Examples
    --------
    >>> import pgcc
    >>> from pgcc.program.lower import lower
    >>> from pgcc.passes.homogenize import homogenize
    >>> program = lower(homogenize(pgcc.dpp(L=[[2, 1], [1, 2]])))
    >>> both = split_at_determinants(program, np.zeros(program.instructions, bool))
    >>> both.head, both.tail
    (<Condensed: 4 instructions, 4 operations, 4 slots>, <Program: 2 instructions, 7 operations, 6 slots>)
    """
    late = _late_values(program)
    is_late = late[program.target]
    # all that is not read is one value, which nobody makes
    nothing = program.slots
    name = np.arange(program.slots + 1)
    name[program.target[unread]] = nothing
    tail = _renamed(without(program, ~is_late), name)
    read = np.append(tail.args[value_arguments(tail)], [tail.value, tail.magnitude])
    inputs = np.setdiff1d(read, [*np.flatnonzero(late), nothing])
    head = condense(without(program, is_late | unread), inputs.tolist())
    return Split(head, _after(head, inputs, nothing, tail))


def without(program: Program, left_out: np.ndarray) -> Program:
    """The program without these instructions."""
    kept = ~left_out
    lengths, counts = np.diff(program.start), np.diff(program.first_weight)
    weighs = np.repeat(kept, counts)
    return replace(
        program,
        op=program.op[kept],
        target=program.target[kept],
        start=starts(lengths[kept]),
        args=program.args[np.repeat(kept, lengths)],
        first_weight=starts(counts[kept]),
        weights=program.weights[weighs],
        numbers=list(compress(program.numbers, weighs.tolist())),
    )


def _late_values(program: Program) -> np.ndarray:
    """Which values need a determinant, or are one."""
    late = np.zeros(program.slots, bool)
    for i in np.flatnonzero(program.op != LEAF).tolist():
        if program.op[i] >= DET or late[program.args[program.start[i] : program.start[i + 1]]].any():
            late[program.target[i]] = True
    return late


def _after(head: Condensed, inputs: np.ndarray, nothing: int, tail: Program) -> Program:
    """The tail with dead values sharing slots; what it reads of the head stands where that has put it."""
    given = np.append(inputs, nothing)
    first = len(given)
    with_given = replace(
        tail,
        op=np.concatenate([np.full(first, LEAF, np.uint8), tail.op]),
        target=np.concatenate([given, tail.target]).astype(np.int32),
        start=np.concatenate([np.arange(first), first + tail.start]),
        args=np.concatenate([np.zeros(first, np.int32), tail.args]),
        first_weight=np.concatenate([np.zeros(first, np.int64), tail.first_weight]),
    )
    shared = schedule(with_given)
    # what is given is all alive at once, in slots of its own; every other slot is new
    new = head.slots - len(inputs)
    slot = np.arange(shared.slots) + new
    slot[shared.target[: len(inputs)]] = head.kept
    is_given = np.arange(len(shared.op)) < first
    return replace(_renamed(without(shared, is_given), slot), slots=shared.slots + new)


def _renamed(program: Program, name: np.ndarray) -> Program:
    """The same with other slots."""
    args, is_value = program.args.copy(), value_arguments(program)
    args[is_value] = name[args[is_value]]
    return replace(
        program,
        target=name[program.target].astype(np.int32),
        args=args,
        value=int(name[program.value]),
        magnitude=int(name[program.magnitude]),
    )
