"""The command line: `pgcc query`, `pgcc marginals`, `pgcc cardinality`, `pgcc sample`, `pgcc mode`, `pgcc score`,
`pgcc convert`, `pgcc show`, `pgcc explore`, `pgcc compile`, `pgcc check`, `pgcc fit`, `pgcc warmup`,
`pgcc completion`.

Each command is a function of its name, whose module is imported when the command is used: `pgcc --help` loads nothing
but argparse.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module

from pgcc.cli.arguments import parse_arguments
from pgcc.cli.exits import Exit
from pgcc.errors import PgccError, printable
from pgcc.interrupts import end_at_once

# The command that ends its own processes when it is interrupted, and only waits for them. The others end at once:
# Python would handle Ctrl-C only after the current call of a library, which may take minutes.
_WITH_PROCESSES = "warmup"
# The modules of commands that have none of their own.
_MODULES = {
    **dict.fromkeys(("query", "marginals", "cardinality", "sample", "mode", "score"), "questions"),
    **dict.fromkeys(("check", "show", "convert", "compile", "explore"), "circuits"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments. By default, those of the process.

    Returns
    -------
    int
        One of `pgcc.cli.exits`.
    """
    args = None
    try:
        args = parse_arguments(sys.argv[1:] if argv is None else argv)
        if argv is None and args.command != _WITH_PROCESSES:
            end_at_once()
        with warnings.catch_warnings():
            warnings.showwarning = _tell_warning
            module = import_module(f"pgcc.cli.{_MODULES.get(args.command, args.command)}")
            code = getattr(module, args.command)(args)
        sys.stdout.flush()
        return code or Exit.DONE
    except BrokenPipeError:
        _discard_output()
        return Exit.BROKEN_PIPE
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except Exception as error:
        if os.environ.get("PGCC_TRACEBACK"):
            raise
        with contextlib.suppress(BrokenPipeError):
            _flush_answers()
            print(f"pgcc: {printable(_explain(error, args))}", file=sys.stderr)
        return Exit.FAILED


def _explain(error: Exception, args: argparse.Namespace | None) -> str:
    match error:
        case PgccError():
            return str(error) if args is None else args.parser.explain(error)
        case OSError(strerror=str(reason)):
            return f"{error.filename}: {reason}" if error.filename else reason
        case UnicodeDecodeError():
            return f"the input is not text in UTF-8 (byte {error.start})"
        case MemoryError():
            return "out of memory"
    text = " ".join(f"{type(error).__name__}: {error}".split())
    return f"internal error, please report it: {text} (PGCC_TRACEBACK=1 shows where)"


def _tell_warning(message: Warning | str, *where: object, **more: object) -> None:
    print(f"pgcc: {printable(str(message))}", file=sys.stderr)


def _flush_answers() -> None:
    """Write pending answers before the error message; a full disk is reported only once."""
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
