"""`pgcc score`: the log-likelihood of data."""

from __future__ import annotations

import argparse
import contextlib
import math
from collections.abc import Generator, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from pgcc.cli.asking import compile_model
from pgcc.cli.files import open_table, table_name
from pgcc.cli.output import json_text, print_answers
from pgcc.cluster import logprobs
from pgcc.data.npy import Npy, is_npy, reading
from pgcc.data.text import read_csv, rows_at_a_time
from pgcc.errors import PgccError, plural, printable
from pgcc.model import Model
from pgcc.progress import progress


def run(args: argparse.Namespace) -> None:
    """Score a table in chunks of rows."""
    if len(args.words) != 1:
        args.parser.error("expected one table of data" if not args.words else f"unexpected {args.words[1]!r}")
    (path,) = args.words
    if args.file == "-" == path:
        args.parser.error("the circuit and the data cannot both be read from standard input")
    model = compile_model(args, "rtol", "threads")
    where, score = printable(table_name(path)), _Score()
    with (
        progress(f"scoring {where}", None, "row") as bar,
        contextlib.closing(_blocks(path, model.variables)) as blocks,
    ):
        scored = _score_here(model, blocks, where) if args.cluster is None else logprobs(args.cluster, model, blocks)
        for _, logs in scored:
            if args.rows:
                rows = enumerate(logs.tolist(), score.rows)
                print_answers(({"row": row, "logprob": x} for row, x in rows), args.json)
            score.add(logs)
            bar.at(score.rows)
    if not score.rows:
        raise PgccError(f"{where} has no rows to score")
    print(json_text(score.as_dict()) if args.json else score)


def _blocks(path: str, variables: Sequence[str]) -> Generator[tuple[str, np.ndarray]]:
    """The rows of the table in chunks, with the name of the first row of each."""
    if is_npy(path):
        with reading(path) as file:
            first = 0
            for codes in Npy(file, path).chunks(variables):
                yield f"row {first}", codes
                first += len(codes)
        return
    with open_table(path) as table:
        for line, codes in read_csv(table, variables, rows_at_a_time(variables), table_name(path), header=None):
            yield f"line {line}", codes


def _score_here(model: Model, blocks: Iterable[tuple[str, np.ndarray]], where: str) -> Iterator[tuple[str, np.ndarray]]:
    for first, codes in blocks:
        try:
            yield first, model.logprob(codes)
        except PgccError as error:
            raise PgccError(f"{where}, row 0 being {first}: {error}") from None


class _Score:
    """The sum of logarithms, without the rounding errors of adding up a million of them one by one."""

    def __init__(self) -> None:
        self.rows = self.impossible = 0
        self._sums: list[float] = []

    def add(self, logs: np.ndarray) -> None:
        self.rows += len(logs)
        self.impossible += int(np.isneginf(logs).sum())
        self._sums.append(math.fsum(logs))

    def as_dict(self) -> dict[str, Any]:
        total = math.fsum(self._sums)
        return {"rows": self.rows, "average": total / self.rows, "total": total, "impossible": self.impossible}

    def __str__(self) -> str:
        text = f"average log-likelihood {self.as_dict()['average']:.15g} over {plural(self.rows, 'row')}"
        return text + (f", {self.impossible:,} of them impossible" if self.impossible else "")
