"""Whether rows of codes say all that they imply."""

from __future__ import annotations

from pgcc.kernels.policy import kernel


@kernel
def are_closed(rows, first):
    """Whether every block of columns that has a 1 is 0 otherwise. first : the first column of every block."""
    wrong = False
    for i in range(len(rows)):
        row = rows[i]
        for b in range(len(first)):
            ones, others = 0, 0
            for c in range(first[b], first[b + 1] if b + 1 < len(first) else len(row)):
                ones += row[c] == 1
                others += row[c] != 0
            wrong |= (ones > 0) & (others > 1)
    return not wrong
