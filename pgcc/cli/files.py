"""What commands read and write."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import pgcc
from pgcc.errors import PgccError
from pgcc.frontend.formats.atomic import replacing

if TYPE_CHECKING:
    from pgcc.ir.circuit import Circuit

# Rows of a table of evidence, and entries of them, that are read at a time: they bound the memory.
_ROWS, _ENTRIES = 1 << 15, 1 << 20


def read_circuit(args: argparse.Namespace) -> Circuit:
    """The circuit that the command line names."""
    if args.expr is not None:
        return pgcc.parse(args.expr, where="--expr")
    if args.file == "-":
        return pgcc.parse(sys.stdin.read(), where="standard input")
    return pgcc.load(args.file)


def rows_at_a_time(variables: Sequence[str]) -> int:
    """How many rows of a table to hold in memory."""
    return max(1, min(_ROWS, _ENTRIES // max(1, len(variables))))


def table_name(path: str) -> str:
    """What to call a table in messages."""
    return "standard input" if path == "-" else path


def open_table(path: str) -> contextlib.AbstractContextManager[TextIO]:
    """A CSV file, or standard input for -."""
    if path == "-":
        return contextlib.nullcontext(sys.stdin)
    return open(path, encoding="utf-8", newline="")


def check_not_there(path: str, force: bool) -> None:
    """Refuse to replace a file."""
    if not force and os.path.lexists(path):
        raise PgccError(f"{path} exists: --force replaces it")


def write_text(path: str, text: str) -> None:
    """The file appears whole or not at all."""
    try:
        with replacing(Path(path)) as file:
            file.write(text.encode())
    except OSError as error:
        raise PgccError(f"{path} cannot be written: {error.strerror or error}") from None
