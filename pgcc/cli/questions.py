"""The commands that ask questions: `pgcc query`, `marginals`, `cardinality`, `sample`, `mode` and `score`."""

from __future__ import annotations

import argparse
import contextlib
import math
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

import pgcc
from pgcc import plot
from pgcc.cli.files import check_can_draw, check_can_write, read_circuit, table_name, write_text
from pgcc.cli.output import csv_header, fraction_text, json_text, listed, print_answers, print_csv
from pgcc.cluster import logprobs
from pgcc.data.tables import Csv, open_table
from pgcc.data.text import parse_evidence, parse_names
from pgcc.errors import PgccError, plural, printable
from pgcc.ir.numbers import nearest_float
from pgcc.model import Model
from pgcc.progress import progress

if TYPE_CHECKING:
    from pgcc.queries.mode import Mode

Answer = dict[str, Any]
Found = TypeVar("Found")


# -- pgcc query --------------------------------------------------------------------------------------------------------


def query(args: argparse.Namespace) -> None:
    """Print a line for each piece of evidence."""
    _check_evidence(args)
    for name in ("method", "rtol"):
        if args.exact and getattr(args, name) is not None:
            args.parser.error(f"--{name} means nothing with --exact")
    model = _compile_model(args, "method", "rtol", "threads")
    print_answers(_each_answer(args, model, lambda evidence: _probabilities(model, evidence, args)), args.json)


def _probabilities(model: Model, evidence: Any, args: argparse.Namespace) -> list[dict[str, Any]]:
    """The answers for one piece of evidence (a dict) or several rows, as the data that --json prints."""
    if args.log:
        return [{"logprob": x} for x in listed(model.logprob(evidence))]
    if args.exact:
        return [{"exact": fraction_text(x), "prob": nearest_float(x)} for x in listed(model.prob(evidence, exact=True))]
    if args.bound:
        both = map(listed, model.prob(evidence, bound=True))
        return [{"prob": x, "bound": bound} for x, bound in zip(*both, strict=True)]
    return [{"prob": x} for x in listed(model.prob(evidence))]


# -- pgcc marginals ----------------------------------------------------------------------------------------------------


def marginals(args: argparse.Namespace) -> None:
    """Print a line for each variable, or with several pieces of evidence a table with a row for each of them."""
    _check_evidence(args)
    _check_picture(args)
    model, given = _compile_model(args, "rtol", "threads"), _counted(args)
    if given:
        model = model.condition(**given)

    def answers(evidence: Any) -> list[dict[str, Any]]:
        found = model.covariance(evidence) if args.covariance else model.marginals(evidence, names=False)
        return [_named(model.variables, row) for row in (found[None] if isinstance(evidence, dict) else found)]

    if args.plot is not None:
        draw = plot.covariance if args.covariance else plot.marginals
        plot.save(draw(model, _only_evidence(args)), args.plot)
    found = _each_answer(args, model, answers)
    if args.covariance and not args.json:
        for answer in found:
            rows = answer["covariance"].items()
            print_csv(["", *model.variables], ([name, *row.values()] for name, row in rows))
    else:
        _print_lists(args, found, lambda answer: answer["marginals"], model.variables)


def _named(names: tuple[str, ...], found: np.ndarray) -> dict[str, Any]:
    if found.ndim == 1:
        return {"marginals": dict(zip(names, found.tolist(), strict=True))}
    rows = (dict(zip(names, row, strict=True)) for row in found.tolist())
    return {"covariance": dict(zip(names, rows, strict=True))}


# -- pgcc cardinality --------------------------------------------------------------------------------------------------


def cardinality(args: argparse.Namespace) -> None:
    """Print a line for each number, or with several pieces of evidence a table with a row for each of them."""
    _check_evidence(args)
    _check_picture(args)
    model, over = _compile_model(args, "rtol", "threads"), None if args.over is None else parse_names(args.over)

    def answers(evidence: Any) -> list[dict[str, Any]]:
        found = np.atleast_2d(model.cardinality(evidence, over=over, atol=args.atol))
        return [{"pmf": row} for row in found.tolist()]

    if args.plot is not None:
        plot.save(plot.cardinality(model, _only_evidence(args), over=over), args.plot)
    most = len(model.variables if over is None else over)
    found = _each_answer(args, model, answers)
    _print_lists(args, found, lambda answer: dict(enumerate(answer["pmf"])), range(most + 1))


# -- pgcc sample -------------------------------------------------------------------------------------------------------


def sample(args: argparse.Namespace) -> None:
    """Print a line for each sample, after one with the names of the variables."""
    if len(args.words) > 1:
        args.parser.error(f"one piece of EVIDENCE at most, not also {args.words[1]!r}")
    if args.words and args.words[0].isdigit():
        args.parser.error(f"to choose the number of samples, write -n {args.words[0]}")
    if args.output is not None:
        check_can_write(args.output, args.force)
    model = _compile_model(args, "threads")
    evidence = parse_evidence(args.words[0]) if args.words else None
    rows = model.sample(args.n, evidence, args.seed, **_counted(args))
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


# -- pgcc mode ---------------------------------------------------------------------------------------------------------


def mode(args: argparse.Namespace) -> None:
    """Print a line for every set: the names that are in, its log-probability, and whether it is proved to be best."""
    _check_evidence(args)
    model, how = _compile_model(args, "rtol", "threads"), _counted(args)
    if args.time_limit is not None:
        how["time_limit"] = args.time_limit

    def answers(evidence: Any) -> list[dict[str, Any]]:
        found = model.top(args.top, evidence, **how) if args.top != 1 else model.mode(evidence, **how)
        rows = [found] if isinstance(evidence, dict) else found
        return [{"sets": row if args.top != 1 else [row]} for row in rows]

    for answer in _each_answer(args, model, answers):
        for found in answer.pop("sets"):
            sys.stdout.write(json_text({**answer, **_described(found)}) + "\n" if args.json else _line(found))
        sys.stdout.flush()


def _inside(found: Mode) -> list[str]:
    return [name for name, value in found.assignment.items() if value]


def _described(found: Mode) -> dict[str, Any]:
    numbers = {name: getattr(found, name) for name in ("logprob", "bound", "gap", "exact", "rank")}
    return {"set": _inside(found), **numbers}


def _line(found: Mode) -> str:
    proved = "exact" if found.exact else f"gap {found.gap:.4g}"
    if found.condition is not None:
        proved += f", if {found.condition}"
    return f"{', '.join(_inside(found))}\t{found.logprob:.15g}\t{proved}\n"


# -- pgcc score --------------------------------------------------------------------------------------------------------


def score(args: argparse.Namespace) -> None:
    """Score a table in chunks of rows."""
    if len(args.words) != 1:
        args.parser.error("expected one table of data" if not args.words else f"unexpected {args.words[1]!r}")
    (path,) = args.words
    if args.file == "-" == path:
        args.parser.error("the circuit and the data cannot both be read from standard input")
    model = _compile_model(args, "rtol", "threads")
    where, score = printable(table_name(path)), _Score()
    with (
        progress(f"scoring {where}", None, "row") as bar,
        contextlib.closing(_blocks(path, model.variables, header=None)) as blocks,
    ):
        here = args.cluster is None
        scored = _ask_blocks(path, blocks, model.logprob) if here else logprobs(args.cluster, model, blocks)
        for _, logs in scored:
            if args.rows:
                rows = enumerate(logs.tolist(), score.rows)
                print_answers(({"row": row, "logprob": x} for row, x in rows), args.json)
            score.add(logs)
            bar.at(score.rows)
    if not score.rows:
        raise PgccError(f"{where} has no rows to score")
    print(json_text(score.as_dict()) if args.json else score)


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


# -- the model and the evidence of all of them -------------------------------------------------------------------------


def _compile_model(args: argparse.Namespace, *settings: str) -> Model:
    """Compile the circuit that the command line names, with the settings given there."""
    given = {name: value for name in settings if (value := getattr(args, name)) is not None}
    return pgcc.compile(read_circuit(args), normalize=args.normalize, validate=args.validate, **given)


def _check_evidence(args: argparse.Namespace) -> None:
    """Refuse evidence that is given twice."""
    if args.evidence is not None and args.words:
        args.parser.error(f"evidence is given twice: as {args.words[0]!r} and by --evidence")
    if args.evidence == "-" == args.file:
        args.parser.error("the circuit and the evidence cannot both be read from standard input")


def _check_picture(args: argparse.Namespace) -> None:
    """Refuse to draw several answers in one picture, or to replace a file."""
    if args.plot is not None:
        check_can_draw(args.plot, args.force)
        if not _is_single(args):
            args.parser.error("--plot draws the answer to one piece of evidence")


def _is_single(args: argparse.Namespace) -> bool:
    """Whether there is at most one piece of evidence."""
    return args.evidence is None and len(args.words) < 2


def _print_lists(
    args: argparse.Namespace, found: Iterator[Answer], numbers: Callable[[Answer], dict], names: Iterable[Any]
) -> None:
    """Print the numbers of an answer line by line, those of several answers as a table, or anything as JSON."""
    if args.json:
        print_answers(found, as_json=True)
    elif _is_single(args):
        (answer,) = found
        sys.stdout.writelines(f"{name}\t{p:.15g}\n" for name, p in numbers(answer).items())
    else:
        print_csv(names, (numbers(answer).values() for answer in found))


def _only_evidence(args: argparse.Namespace) -> dict[str, int]:
    """The single piece of evidence; an empty dict if there is none."""
    return parse_evidence(args.words[0]) if args.words else {}


def _each_answer(args: argparse.Namespace, model: Model, answers: Callable[[Any], list[Answer]]) -> Iterator[Answer]:
    """An answer for each piece of evidence, with what it is an answer to: ``evidence``, or the ``row`` of a table.

    answers : takes a dict of evidence, or rows of codes, and gives a list with an answer for each.
    """
    if args.evidence is None:
        for evidence in [parse_evidence(text) for text in args.words] or [{}]:
            observed = {name: code for name, code in evidence.items() if code >= 0}
            for answer in answers(evidence):
                yield {"evidence": observed, **answer}
        return
    done = 0
    with contextlib.closing(_blocks(args.evidence, model.variables, header=True)) as blocks:
        for _, found in _ask_blocks(args.evidence, blocks, answers):
            yield from ({"row": row, **answer} for row, answer in enumerate(found, done))
            done += len(found)


def _blocks(path: str, variables: Sequence[str], header: bool | None) -> Generator[tuple[str, np.ndarray]]:
    """The rows of a table in chunks, with the name of the first row of each; header None: if there is one."""
    if path == "-":
        yield from Csv(sys.stdin, table_name(path), variables, header).chunks()
        return
    with open_table(path, variables, header) as table:
        yield from table.chunks()


def _ask_blocks(
    path: str, blocks: Iterable[tuple[str, np.ndarray]], ask: Callable[[np.ndarray], Found]
) -> Iterator[tuple[str, Found]]:
    """The name of the first row of each chunk, and the answers to its rows; errors say which row is row 0."""
    for first, codes in blocks:
        try:
            found = ask(codes)
        except PgccError as error:
            raise PgccError(f"{table_name(path)}, row 0 being {first}: {error}") from None
        yield first, found


def _counted(args: argparse.Namespace) -> dict[str, Any]:
    """The arguments ``size`` and ``over`` of a question, where they are given."""
    if args.size is None:
        if args.over is not None:
            args.parser.error("--over says what --size counts: it means nothing alone")
        return {}
    return {"size": parse_size(args.size), "over": None if args.over is None else parse_names(args.over)}


def parse_size(text: str) -> int | tuple[int, int] | list[int]:
    """`3` as a number, `2..5` as a range, `2,5` as one of them.

    >>> parse_size("3"), parse_size("2..5"), parse_size("2,5")
    (3, (2, 5), [2, 5])
    """
    if "," in text:
        return [int(part) if part.strip().isdecimal() else -1 for part in text.split(",")]
    parts = [part.strip() for part in text.split("..")]
    if len(parts) > 2 or not all(part.isascii() and part.isdigit() and len(part) < 10 for part in parts):
        raise PgccError(
            f"--size {text!r} is neither a number, such as 3, nor a range, such as 2..5, nor several, such as 2,5"
        )
    return (int(parts[0]), int(parts[1])) if len(parts) == 2 else int(parts[0])
