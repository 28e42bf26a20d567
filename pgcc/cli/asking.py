"""Code shared by the commands that answer questions: the model, and evidence from arguments or from a table."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import Any

import pgcc
from pgcc.cli.files import check_can_draw, open_table, read_circuit, table_name
from pgcc.data.text import parse_evidence, parse_names, read_csv, rows_at_a_time
from pgcc.errors import PgccError
from pgcc.model import Model

Answer = dict[str, Any]


def compile_model(args: argparse.Namespace, *settings: str) -> Model:
    """Compile the circuit that the command line names, with the settings given there."""
    given = {name: value for name in settings if (value := getattr(args, name)) is not None}
    return pgcc.compile(read_circuit(args), normalize=args.normalize, validate=args.validate, **given)


def check_evidence(args: argparse.Namespace) -> None:
    """Refuse evidence that is given twice."""
    if args.evidence is not None and args.words:
        args.parser.error(f"evidence is given twice: as {args.words[0]!r} and by --evidence")
    if args.evidence == "-" == args.file:
        args.parser.error("the circuit and the evidence cannot both be read from standard input")


def check_picture(args: argparse.Namespace) -> None:
    """Refuse to draw several answers in one picture, or to replace a file."""
    if args.plot is not None:
        check_can_draw(args.plot, args.force)
        if not is_single(args):
            args.parser.error("--plot draws the answer to one piece of evidence")


def is_single(args: argparse.Namespace) -> bool:
    """Whether there is at most one piece of evidence."""
    return args.evidence is None and len(args.words) < 2


def only_evidence(args: argparse.Namespace) -> dict[str, int]:
    """The single piece of evidence; an empty dict if there is none."""
    return parse_evidence(args.words[0]) if args.words else {}


def each_answer(args: argparse.Namespace, model: Model, answers: Callable[[Any], list[Answer]]) -> Iterator[Answer]:
    """An answer for each piece of evidence, with what it is an answer to: ``evidence``, or the ``row`` of a table.

    answers : takes a dict of evidence, or rows of codes, and gives a list with an answer for each.
    """
    if args.evidence is not None:
        yield from _answers_of_table(args, model, answers)
        return
    for evidence in [parse_evidence(text) for text in args.words] or [{}]:
        observed = {name: code for name, code in evidence.items() if code >= 0}
        for answer in answers(evidence):
            yield {"evidence": observed, **answer}


def _answers_of_table(
    args: argparse.Namespace, model: Model, answers: Callable[[Any], list[Answer]]
) -> Iterator[Answer]:
    where, done = table_name(args.evidence), 0
    with open_table(args.evidence) as file:
        for line, codes in read_csv(file, model.variables, rows_at_a_time(model.variables), where):
            try:
                found = answers(codes)
            except PgccError as error:
                raise PgccError(f"{where}, row 0 being line {line}: {error}") from None
            yield from ({"row": row, **answer} for row, answer in enumerate(found, done))
            done += len(found)


def counted(args: argparse.Namespace) -> dict[str, Any]:
    """The arguments ``size`` and ``over`` of a question, where they are given."""
    given: dict[str, Any] = {}
    if args.over is not None:
        given["over"] = parse_names(args.over)
    if getattr(args, "size", None) is not None:
        given["size"] = parse_size(args.size)
    return given


def counted_with_size(args: argparse.Namespace) -> dict[str, Any]:
    """`counted`, for a command whose --over says what --size counts."""
    given = counted(args)
    if "over" in given and "size" not in given:
        args.parser.error("--over says what --size counts: it means nothing alone")
    return given


def parse_size(text: str) -> int | tuple[int, int]:
    """`3` as a number, `2..5` as a range.

    >>> parse_size("3"), parse_size("2..5")
    (3, (2, 5))
    """
    parts = [part.strip() for part in text.split("..")]
    if len(parts) > 2 or not all(part.isascii() and part.isdigit() and len(part) < 10 for part in parts):
        raise PgccError(f"--size {text!r} is neither a number, such as 3, nor a range, such as 2..5")
    return (int(parts[0]), int(parts[1])) if len(parts) == 2 else int(parts[0])
