"""The exit codes of all commands."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """What a command ended with."""

    DONE = 0
    REFUTED = 1
    FAILED = 2
    NOT_PROVEN = 3
    INTERRUPTED = 130
    BROKEN_PIPE = 141


MEANING = {
    Exit.DONE: "it went well; pgcc check: all is proved",
    Exit.REFUTED: "pgcc check: something is refuted",
    Exit.FAILED: "an error: one line on standard error says what is wrong",
    Exit.NOT_PROVEN: "pgcc check: something is neither proved nor refuted",
    Exit.INTERRUPTED: "interrupted by Ctrl-C",
    Exit.BROKEN_PIPE: "whoever read the output went away, as in 'pgcc … | head'",
}


def table() -> str:
    """The codes and their meaning, for people.

    >>> print(table().splitlines()[1])
      0    it went well; pgcc check: all is proved
    """
    return "\n".join(["exit codes:", *(f"  {code:<4d} {meaning}" for code, meaning in MEANING.items())]) + "\n"
