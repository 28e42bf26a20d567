"""The files that commands read and write."""

from __future__ import annotations

import argparse
import errno
import os
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import pgcc
from pgcc import plot
from pgcc.data.text import parse_names
from pgcc.errors import PgccError, printable
from pgcc.formats import FORMATS
from pgcc.formats.io import MOST_STREAMED, is_replaceable, writing

if TYPE_CHECKING:
    from pgcc.ir.circuit import Circuit

# Options of the command line that are passed on to `pgcc.load` where they are given.
_FILE_OPTIONS = ("kernel", "symmetric", "nearest", "rank", "root", "orientation", "killing", "keep", "weights", "vtree")


def read_circuit(args: argparse.Namespace) -> Circuit:
    """The circuit that the command line names."""
    options = {name: value for name in _FILE_OPTIONS if (value := getattr(args, name)) is not None}
    if "keep" in options:
        options["keep"] = parse_names(options["keep"])
    text = "--expr" if args.expr is not None else "standard input" if args.file == "-" else None
    if text is not None:
        if options:
            args.parser.error(f"options of kernels, graphs and networks mean nothing for the text of {text}")
        return pgcc.parse(_standard_input() if args.expr is None else args.expr, where=text)
    if not os.path.lexists(args.file):
        _explain_missing(args)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        circuit = pgcc.load(args.file, **options)
    for warning in caught:
        print(printable(f"pgcc: {args.file}: {warning.message}"), file=sys.stderr)
    return circuit


def _explain_missing(args: argparse.Namespace) -> None:
    """Report an argument that is not a file, but evidence or a polynomial."""
    if os.path.splitext(args.file)[1].lower() in FORMATS:
        return  # a name that was mistyped
    if any(mark in args.file for mark in "*+"):
        args.parser.error(f"there is no file {args.file!r}; use --expr for the polynomial itself")
    if "=" in args.file:
        args.parser.error(f"there is no file {args.file!r}: expected a FILE, or --expr TEXT, before the evidence")


def _standard_input() -> str:
    """All of standard input; an error if it is longer than a pipe may be."""
    text = sys.stdin.read(MOST_STREAMED + 1)
    if len(text) > MOST_STREAMED:
        raise PgccError(f"standard input has more than {MOST_STREAMED:,} characters, which is the limit")
    return text


def table_name(path: str) -> str:
    """The name of a table in messages."""
    return "standard input" if path == "-" else path


def check_can_write(path: str, force: bool) -> None:
    """Refuse to replace a file, and refuse a path that cannot be written, before the computation and not after."""
    try:
        if not is_replaceable(path):  # a pipe or a device, which is written into
            return
    except OSError as error:
        raise PgccError(f"{path} cannot be written: {error.strerror or error}") from None
    if not force and os.path.lexists(path) and not os.path.isdir(path):
        raise PgccError(f"{path} exists: --force replaces it")
    target = os.path.realpath(path)
    folder = os.path.dirname(target)
    for is_wrong, reason in (
        (os.path.isdir(target), errno.EISDIR),
        (not os.path.isdir(folder), errno.ENOENT),
        (not os.access(folder, os.W_OK), errno.EACCES),
    ):
        if is_wrong:
            raise PgccError(f"{path} cannot be written: {os.strerror(reason)}")


def check_output(args: argparse.Namespace, missing: str | None = None) -> None:
    """Refuse words that no command expects, and a file that cannot be written; `missing`: what to say without one."""
    if args.words:
        args.parser.error(f"unexpected {args.words[0]!r}")
    if args.output is not None:
        check_can_write(args.output, args.force)
    elif missing is not None:
        args.parser.error(missing)


def check_can_draw(path: str, force: bool) -> None:
    """`check_can_write` for a picture, whose format must be a known one."""
    check_can_write(path, force)
    plot.format_of(path)


def write_text(path: str, text: str) -> None:
    """Write a text file, completely or not at all."""
    with writing(Path(path)) as file:
        file.write(text.encode())
