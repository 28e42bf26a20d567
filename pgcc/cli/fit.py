"""`pgcc fit`: a model from data."""

from __future__ import annotations

import argparse
import csv
import io
import sys
import time
from typing import Any

import numpy as np

import pgcc
from pgcc.cli.files import check_not_there, open_table, rows_at_a_time, table_name
from pgcc.cli.output import json_text
from pgcc.errors import PgccError
from pgcc.learn import DPP, PGC, ChowLiu, MixtureOfTrees, SimplePGC
from pgcc.learn.base import Estimator
from pgcc.queries.evidence_text import read_csv

MODELS: dict[str, type[Estimator]] = {
    "simple-pgc": SimplePGC,
    "dpp": DPP,
    "chow-liu": ChowLiu,
    "mixture-of-trees": MixtureOfTrees,
    "pgc": PGC,
}
# Options of the command line that are parameters of the estimator, where they are given.
_PARAMETERS = ("max_group", "components", "recipe", "epochs", "restarts", "smoothing", "seed", "threads")


def run(args: argparse.Namespace) -> None:
    """Read the data, learn, and write the circuit."""
    if args.words:
        args.parser.error(f"unexpected {args.words[0]!r}")
    if args.output is None:
        args.parser.error("expected -o MODEL, the file to write")
    check_not_there(args.output, args.force)
    estimator = _estimator(args)
    X, names = read_data(args.file)
    validation = None if args.validation is None else read_data(args.validation, names)[0]
    began = time.perf_counter()
    model = estimator.fit(X, validation, checkpoint=args.checkpoint)
    seconds = time.perf_counter() - began
    circuit = model.circuit_.relabel(dict(zip(model.feature_names_in_, names, strict=True)))
    pgcc.save(circuit, args.output)
    told: dict[str, Any] = {
        "model": repr(estimator),
        "file": args.output,
        "rows": len(X),
        "variables": len(names),
        "edges": circuit.size,
        "train": model.score(X),
        "validation": None if validation is None else model.score(validation),
        "seconds": seconds,
    }
    print(json_text(told) if args.json else _text(told))


def _estimator(args: argparse.Namespace) -> Estimator:
    kind = MODELS[args.model]
    said = {name: value for name in _PARAMETERS if (value := getattr(args, name)) is not None}
    known = kind().get_params()
    for name in said:
        if name not in known:
            args.parser.error(f"--{name.replace('_', '-')} means nothing for {args.model}")
    return kind(**said, **({"verbose": sys.stderr.isatty()} if "verbose" in known else {}))


def read_data(path: str, names: list[str] | None = None) -> tuple[np.ndarray, list[str]]:
    """A table of 1, 0 and ? or nothing, and the names of its columns: those of the first line, or x0, x1, …"""
    where = table_name(path)
    with open_table(path) as file:
        text = file.read().removeprefix("\ufeff")
    if names is None:
        names = _names(text, where)
    chunks = [codes for _, codes in read_csv(io.StringIO(text), names, rows_at_a_time(names), where, header=None)]
    if not chunks:
        raise PgccError(f"{where} has no rows")
    return np.concatenate(chunks), names


def _names(text: str, where: str) -> list[str]:
    try:
        first = next((row for row in csv.reader(io.StringIO(text), skipinitialspace=True) if row), None)
    except csv.Error as error:
        raise PgccError(f"{where}: not CSV: {error}") from None
    if first is None:
        raise PgccError(f"{where} is empty")
    entries = [entry.strip() for entry in first]
    if all(entry in ("1", "0", "?", "") for entry in entries):
        return [f"x{i}" for i in range(len(entries))]
    return entries


def _text(told: dict[str, Any]) -> str:
    lines = [
        f"wrote {told['file']}: {told['variables']:,} variables, {told['edges']:,} edges",
        f"{told['model']}, learned from {told['rows']:,} rows in {told['seconds']:.1f} s",
        f"average log-likelihood {told['train']:.6f} of these rows",
    ]
    if told["validation"] is not None:
        lines[-1] += f", {told['validation']:.6f} of the validation data"
    return "\n".join(lines)
