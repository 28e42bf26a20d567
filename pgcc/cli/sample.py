"""`pgcc sample`: exact samples, as a table."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

import numpy as np

from pgcc.cli.asking import compile_model, counted_with_size
from pgcc.cli.files import check_can_write, write_text
from pgcc.cli.output import csv_header, json_text
from pgcc.data.text import parse_evidence


def run(args: argparse.Namespace) -> None:
    """Print a line for each sample, after one with the names of the variables."""
    if len(args.words) > 1:
        args.parser.error(f"one piece of EVIDENCE at most, not also {args.words[1]!r}")
    if args.words and args.words[0].isdigit():
        args.parser.error(f"to choose the number of samples, write -n {args.words[0]}")
    if args.output is not None:
        check_can_write(args.output, args.force)
    model = compile_model(args, "threads")
    evidence = parse_evidence(args.words[0]) if args.words else None
    rows = model.sample(args.n, evidence, args.seed, **counted_with_size(args))
    lines = _as_sets(rows, model.variables) if args.json else _as_table(rows, model.variables)
    if args.output is None:
        sys.stdout.writelines(lines)
    else:
        write_text(args.output, "".join(lines))


def _as_table(rows: np.ndarray, names: tuple[str, ...]) -> Iterator[str]:
    yield csv_header(names)
    for row in rows.tolist():
        yield ",".join(map(str, row)) + "\n"


def _as_sets(rows: np.ndarray, names: tuple[str, ...]) -> Iterator[str]:
    for row in rows:
        yield json_text({"set": [names[i] for i in np.flatnonzero(row).tolist()]}) + "\n"
