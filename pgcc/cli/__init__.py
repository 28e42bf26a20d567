"""The command line: `pgcc query`, `pgcc marginals`, `pgcc cardinality`, `pgcc sample`, `pgcc mode`, `pgcc score`,
`pgcc convert`, `pgcc show`, `pgcc compile`, `pgcc check`, `pgcc fit`, `pgcc warmup`.

Each command is a module of its own with `run(args)`, imported when it is asked for: `pgcc --help` loads nothing but
argparse.
"""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module

from pgcc.cli.arguments import parse_arguments
from pgcc.errors import PgccError

FAILED, INTERRUPTED, BROKEN_PIPE = 2, 130, 141


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments; by default those of the process.

    Returns
    -------
    int
        0, or what the command answers with (`pgcc check`: 1 refuted, 3 not proven); 2 after one line on standard error
        that says what is wrong; 130 when interrupted, 141 when whoever reads the output went away.
    """
    try:
        args = parse_arguments(sys.argv[1:] if argv is None else argv)
        with warnings.catch_warnings():
            warnings.showwarning = _tell_warning
            code = import_module(f"pgcc.cli.{args.command}").run(args)
        sys.stdout.flush()
        return code or 0
    except BrokenPipeError:
        _discard_output()
        return BROKEN_PIPE
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        if os.environ.get("PGCC_TRACEBACK"):
            raise
        with contextlib.suppress(BrokenPipeError):
            _flush_answers()
            print(f"pgcc: {_explain(error)}", file=sys.stderr)
        return FAILED


def _explain(error: Exception) -> str:
    match error:
        case PgccError():
            return str(error)
        case OSError(strerror=str(reason)):
            return f"{error.filename}: {reason}" if error.filename else reason
        case UnicodeDecodeError():
            return f"the input is not text in UTF-8 (byte {error.start})"
        case MemoryError():
            return "out of memory"
    text = " ".join(f"{type(error).__name__}: {error}".split())
    return f"internal error, please report it: {text} (PGCC_TRACEBACK=1 shows where)"


def _tell_warning(message: Warning | str, *where: object, **more: object) -> None:
    print(f"pgcc: {message}", file=sys.stderr)


def _flush_answers() -> None:
    """Write the answers that came before the error before it; a full disk is reported only once."""
    try:
        sys.stdout.flush()
    except OSError:
        _discard_output()


def _discard_output() -> None:
    """Discard buffered output, so that Python reports no error about it at exit."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
