"""A program with determinants in two parts: a head without them, in the fast form, and a tail.

It exists for speed alone, and for as much as the fast form brings: compared with the whole program in one part, a DPP
of 12 items times a random circuit of 3,000 or 10,000 edges (`benchmarks/circuits.py`) runs 1.6 or 2.6 times as fast, a
determinantal PGC of 8 leaves with 200 edges each 1.4 times, and a DPP alone, or times nltcs.psdd, 1.0 to 1.1 times.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pgcc.program.condense import Condensed, condense
from pgcc.program.program import LEAF, Code, Program
from pgcc.program.reachability import slots_of_determinants
from pgcc.program.schedule import schedule


def split_at_determinants(program: Program, unread: np.ndarray) -> tuple[Condensed, Program]:
    """The two parts of a program in which no two values share a slot.

    Parameters
    ----------
    program : Program
    unread : bool array
        By instruction, whether its value need not be computed: only determinants of variables have it as an argument,
        and those read the evidence instead.

    Returns
    -------
    head : Condensed
        The instructions that do not depend on a determinant. The values that it keeps are those that the tail reads.
    tail : Program
        The determinants, and all instructions that depend on one. It runs after the head, over the slots of the head
        and some more, and has no leaves.

    Examples
    --------
    >>> import pgcc
    >>> from pgcc.program.lower import lower
    >>> from pgcc.passes.homogenize import homogenize
    >>> program = lower(homogenize(pgcc.dpp(L=[[2, 1], [1, 2]])))
    >>> split_at_determinants(program, np.zeros(program.instructions, bool))
    (<Condensed: 4 instructions, 4 operations, 4 slots>, <Program: 2 instructions, 7 operations, 6 slots>)
    """
    late = slots_of_determinants(program)
    in_tail = late[program.target]
    unused = program.slots  # one slot, which is never written, for all values that are not computed
    new = np.arange(program.slots + 1)
    new[program.target[unread]] = unused
    tail = program.select(in_tail).renamed(new, program.slots + 1)
    read = np.append(tail.args[tail.is_slot], [tail.value, tail.magnitude])
    inputs = np.setdiff1d(read, [*np.flatnonzero(late), unused])
    head = condense(program.select(~in_tail & ~unread), inputs.tolist())
    return head, _scheduled_after(head, inputs, unused, tail)


def _scheduled_after(head: Condensed, inputs: np.ndarray, unused: int, tail: Program) -> Program:
    """The tail with dead values sharing slots, and with its inputs in the slots where the head keeps them.

    For the scheduler, the inputs and the unused slot are leaves that are written before all else.
    """
    given = np.append(inputs, unused)
    count = len(given)
    ones, zeros = np.ones(count, np.int64), np.zeros(count, np.int64)
    leaves = Code.assemble(LEAF * ones, given, ones, zeros, zeros, np.zeros(0), [], tail.slots)
    shared = schedule(replace(tail, **leaves.followed_by(tail).columns))
    # The inputs are alive at the same time, so each has a slot of its own: the one that the head keeps it in. All other
    # slots come after those of the head.
    more = head.slots - len(inputs)
    new = np.arange(shared.slots) + more
    new[shared.target[: len(inputs)]] = head.kept
    return shared.select(np.arange(shared.instructions) >= count).renamed(new, shared.slots + more)
