"""`pgcc query`: probabilities of evidence, on the command line or in a table."""

from __future__ import annotations

import argparse
from typing import Any

import pgcc
from pgcc.cli.files import open_table, read_circuit, rows_at_a_time, table_name
from pgcc.cli.output import fraction_text, listed, print_answers
from pgcc.errors import PgccError
from pgcc.ir.numbers import nearest_float
from pgcc.model import Model
from pgcc.queries.evidence_text import parse_evidence, read_csv


def run(args: argparse.Namespace) -> None:
    """Print a line for each piece of evidence."""
    _check_query(args)
    asked = [parse_evidence(text) for text in args.words] or [{}]
    circuit = read_circuit(args)
    settings = {name: value for name in ("method", "rtol", "threads") if (value := getattr(args, name)) is not None}
    model = pgcc.compile(circuit, normalize=args.normalize, validate=args.validate, **settings)
    if args.evidence is not None:
        _query_table(model, args)
        return
    for evidence in asked:
        observed = {name: code for name, code in evidence.items() if code >= 0}
        print_answers(({"evidence": observed, **answer} for answer in _answers(model, evidence, args)), args.json)


def _check_query(args: argparse.Namespace) -> None:
    if args.evidence is not None and args.words:
        args.parser.error(f"evidence is given twice: as {args.words[0]!r} and by --evidence")
    if args.evidence == "-" == args.file:
        args.parser.error("the circuit and the evidence cannot both be read from standard input")
    for name in ("method", "rtol"):
        if args.exact and getattr(args, name) is not None:
            args.parser.error(f"--{name} means nothing with --exact")


def _query_table(model: Model, args: argparse.Namespace) -> None:
    where = table_name(args.evidence)
    done = 0
    with open_table(args.evidence) as file:
        for line, codes in read_csv(file, model.variables, rows_at_a_time(model.variables), where):
            try:
                answers = _answers(model, codes, args)
            except PgccError as error:
                raise PgccError(f"{where}, row 0 being line {line}: {error}") from None
            print_answers(({"row": row, **answer} for row, answer in enumerate(answers, done)), args.json)
            done += len(answers)


def _answers(model: Model, evidence: Any, args: argparse.Namespace) -> list[dict[str, Any]]:
    """The answers for one piece of evidence (a dict) or several rows, as the data that --json prints."""
    if args.log:
        return [{"logprob": x} for x in listed(model.logprob(evidence))]
    if args.exact:
        return [{"exact": fraction_text(x), "prob": nearest_float(x)} for x in listed(model.prob(evidence, exact=True))]
    if args.bound:
        both = map(listed, model.prob(evidence, bound=True))
        return [{"prob": x, "bound": bound} for x, bound in zip(*both, strict=True)]
    return [{"prob": x} for x in listed(model.prob(evidence))]
