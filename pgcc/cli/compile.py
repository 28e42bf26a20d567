"""`pgcc compile`: the source of an evaluator."""

from __future__ import annotations

import argparse

import pgcc
from pgcc.cli.files import check_output, read_circuit, write_text


def run(args: argparse.Namespace) -> None:
    """Write the source to a file, or to standard output."""
    check_output(args)
    source = pgcc.emit(read_circuit(args), normalize=args.normalize, validate=args.validate)
    if args.output is None:
        print(source, end="")
    else:
        write_text(args.output, source)
