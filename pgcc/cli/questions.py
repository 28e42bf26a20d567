"""The commands that ask questions: `pgcc query`, `marginals`, `cardinality`, `sample`, `mode` and `score`."""

from __future__ import annotations

import argparse
import contextlib
import math
import sys
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

import pgcc
from pgcc import plot
from pgcc.cli.files import check_can_draw, check_can_write, read_circuit, table_name, write_text
from pgcc.cli.output import csv_header, fraction_text, json_text, listed, print_answers, print_csv
from pgcc.cluster import logprobs
from pgcc.data.answers import by_state, entries
from pgcc.data.evidence import Evidence
from pgcc.data.tables import Csv, open_table
from pgcc.errors import PgccError, plural, printable
from pgcc.ir.numbers import nearest_float
from pgcc.model import Model
from pgcc.progress import progress
from pgcc.queries.cardinality import most_in

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


def _probabilities(model: Model, evidence: Evidence, args: argparse.Namespace) -> list[dict[str, Any]]:
    """The answers for one piece of evidence or several rows, as the data that --json prints."""
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
    """Print a line for each variable or state, or with several pieces of evidence a table with a row for each."""
    _check_evidence(args)
    _check_picture(args)
    model, given = _compile_model(args, "rtol", "threads"), _counted(args)
    if given:
        model = model.condition(**given)
    names, domains = entries(model.variables, model.circuit.domains), model.circuit.domains

    def named(row: np.ndarray) -> dict[str, Any]:
        if row.ndim == 2:
            rows = (dict(zip(names, numbers, strict=True)) for numbers in row.tolist())
            return {"covariance": dict(zip(names, rows, strict=True))}
        if args.json and domains is not None:
            return {"marginals": by_state(domains, row.tolist())}
        return {"marginals": dict(zip(names, row.tolist(), strict=True))}

    def answers(evidence: Evidence) -> list[dict[str, Any]]:
        found = model.covariance(evidence) if args.covariance else model.marginals(evidence, names=False)
        return list(map(named, found[None] if evidence.single else found))

    if args.plot is not None:
        draw = plot.covariance if args.covariance else plot.marginals
        plot.save(draw(model, _only_evidence(args)), args.plot)
    found = _each_answer(args, model, answers)
    if args.covariance and not args.json:
        for answer in found:
            rows = answer["covariance"].items()
            print_csv(["", *names], ([name, *row.values()] for name, row in rows))
    else:
        _print_lists(args, found, lambda answer: answer["marginals"], names)


# -- pgcc cardinality --------------------------------------------------------------------------------------------------


def cardinality(args: argparse.Namespace) -> None:
    """Print a line for each number, or with several pieces of evidence a table with a row for each of them."""
    _check_evidence(args)
    _check_picture(args)
    model, over = _compile_model(args, "rtol", "threads"), args.over

    def answers(evidence: Evidence) -> list[dict[str, Any]]:
        found = np.atleast_2d(model.cardinality(evidence, over=over, atol=args.atol))
        return [{"pmf": row} for row in found.tolist()]

    if args.plot is not None:
        plot.save(plot.cardinality(model, _only_evidence(args), over=over), args.plot)
    most = most_in(model._asked, model._asked.places(model._counted(over)))
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
    rows = model.sample(args.n, _only_evidence(args), args.seed, **_counted(args))
    lines = _as_data(rows, model) if args.json else _as_table(rows, model.variables)
    if args.output is None:
        sys.stdout.writelines(lines)
    else:
        write_text(args.output, "".join(lines))


def _as_table(rows: np.ndarray, names: tuple[str, ...]) -> Iterator[str]:
    yield csv_header(names)
    for row in rows.tolist():
        yield ",".join(map(str, row)) + "\n" if rows.dtype != object else csv_header(row)


def _as_data(rows: np.ndarray, model: Model) -> Iterator[str]:
    for row in rows.tolist():
        yield json_text(_sets(dict(zip(model.variables, row, strict=True)), model)) + "\n"


def _sets(assignment: dict[str, Any], model: Model) -> dict[str, Any]:
    """An assignment as the names that are in, or by variable if some have states."""
    if model.circuit.domains is not None:
        return {"assignment": assignment}
    return {"set": [name for name, value in assignment.items() if value]}


# -- pgcc mode ---------------------------------------------------------------------------------------------------------


def mode(args: argparse.Namespace) -> None:
    """Print a line for every set: what is in, its log-probability, and whether it is proved to be best."""
    _check_evidence(args)
    is_map = args.size is None and args.top == 1  # then the names are the variables to be assigned
    model, how = _compile_model(args, "rtol", "threads"), {"over": args.over} if is_map else _counted(args)
    if args.time_limit is not None:
        how["time_limit"] = args.time_limit

    def answers(evidence: Evidence) -> list[dict[str, Any]]:
        found = model.top(args.top, evidence, **how) if args.top != 1 else model.mode(evidence, **how)
        rows = [found] if evidence.single else found
        return [{"sets": row if args.top != 1 else [row]} for row in rows]

    for answer in _each_answer(args, model, answers):
        for found in answer.pop("sets"):
            sys.stdout.write(json_text({**answer, **_described(found, model)}) + "\n" if args.json else _line(found))
        sys.stdout.flush()


def _described(found: Mode, model: Model) -> dict[str, Any]:
    numbers = {name: getattr(found, name) for name in ("logprob", "bound", "gap", "exact", "rank")}
    return {**_sets(found.assignment, model), **numbers}


def _line(found: Mode) -> str:
    proved = "exact" if found.exact else f"gap {found.gap:.4g}"
    if found.condition is not None:
        proved += f", if {found.condition}"
    return f"{', '.join(found.inside)}\t{found.logprob:.15g}\t{proved}\n"


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
        contextlib.closing(_blocks(path, model, header=None)) as blocks,
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


def _only_evidence(args: argparse.Namespace) -> str:
    """The single piece of evidence; an empty text if there is none."""
    return args.words[0] if args.words else ""


def _each_answer(
    args: argparse.Namespace, model: Model, answers: Callable[[Evidence], list[Answer]]
) -> Iterator[Answer]:
    """An answer for each piece of evidence, with what it is an answer to: ``evidence``, or the ``row`` of a table.

    answers : takes one or several rows of evidence, and gives a list with an answer for each.
    """
    if args.evidence is None:
        for given in [Evidence(model.circuit.variables, text) for text in args.words or [""]]:
            observed = {name: _value(value, model.states[name]) for name, value in given.values(0).items()}
            for answer in answers(given):
                yield {"evidence": observed, **answer}
        return
    done = 0
    with contextlib.closing(_blocks(args.evidence, model, header=True)) as blocks:
        for _, found in _ask_blocks(args.evidence, blocks, answers):
            yield from ({"row": row, **answer} for row, answer in enumerate(found, done))
            done += len(found)


def _value(value: Any, states: tuple[Any, ...]) -> Any:
    """What is observed of a variable, for JSON: a set of states as a list in their order."""
    return [state for state in states if state in value] if isinstance(value, set) else value


def _blocks(path: str, model: Model, header: bool | None) -> Generator[tuple[str, Evidence]]:
    """The rows of a table in chunks, with the name of the first row of each; header None: if there is one."""
    columns = model.circuit.variables
    with contextlib.ExitStack() as files:
        if path == "-":
            table: Any = Csv(sys.stdin, table_name(path), columns, header)
        else:
            table = files.enter_context(open_table(path, columns, header))
        for place, codes in table.chunks():
            yield place, Evidence.of_codes(columns, np.require(codes, np.int8, ["C", "W"]))


def _ask_blocks(
    path: str, blocks: Iterable[tuple[str, Evidence]], ask: Callable[[Evidence], Found]
) -> Iterator[tuple[str, Found]]:
    """The name of the first row of each chunk, and the answers to its rows; errors say which row is row 0."""
    for first, rows in blocks:
        try:
            found = ask(rows)
        except PgccError as error:
            raise PgccError(f"{table_name(path)}, row 0 being {first}: {error}") from None
        yield first, found


def _counted(args: argparse.Namespace) -> dict[str, Any]:
    """The arguments ``size`` and ``over`` of a question, where they are given."""
    if args.size is None:
        if args.over is not None:
            args.parser.error("--over says what --size counts: it means nothing alone")
        return {}
    return {"size": parse_size(args.size), "over": args.over}


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
