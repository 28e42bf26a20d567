"""The command line: `pgcc query`, `pgcc show`, `pgcc compile`.

Whatever is heavy is imported when it is needed: `pgcc --help` loads nothing but argparse.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import sys
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

import pgcc
from pgcc.errors import PgccError

if TYPE_CHECKING:
    from pgcc.ir.circuit import Circuit
    from pgcc.model import Model

FAILED, INTERRUPTED, BROKEN_PIPE = 2, 130, 141

# Rows of a table of evidence, and entries of them, that are read at a time: they bound the memory.
_ROWS, _ENTRIES = 1 << 15, 1 << 20


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments; by default those of the process.

    Returns
    -------
    int
        0, or 2 after one line on standard error that says what is wrong; 130 when interrupted, 141 when whoever reads
        the output went away.
    """
    try:
        args = _parse_arguments(sys.argv[1:] if argv is None else argv)
        args.run(args)
        sys.stdout.flush()
        return 0
    except BrokenPipeError:
        _discard_output()
        return BROKEN_PIPE
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        if os.environ.get("PGCC_TRACEBACK"):
            raise
        with contextlib.suppress(BrokenPipeError):
            _flush_answers()
            print(f"pgcc: {_explain(error)}", file=sys.stderr)
        return FAILED


def _explain(error: Exception) -> str:
    match error:
        case PgccError():
            return str(error)
        case OSError(strerror=str(reason)):
            return f"{error.filename}: {reason}" if error.filename else reason
        case UnicodeDecodeError():
            return f"the input is not text in UTF-8 (byte {error.start})"
        case MemoryError():
            return "out of memory"
    text = " ".join(f"{type(error).__name__}: {error}".split())
    return f"internal error, please report it: {text} (PGCC_TRACEBACK=1 shows where)"


def _flush_answers() -> None:
    """Answers before the error stand before it; a full disk is told once."""
    try:
        sys.stdout.flush()
    except OSError:
        _discard_output()


def _discard_output() -> None:
    """Let what is still buffered go nowhere, so that leaving says nothing about it."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


# -- arguments ------------------------------------------------------------------------------------


class _Parser(argparse.ArgumentParser):
    """Bad usage is an error like every other: one line."""

    def __init__(self, **options: Any):
        super().__init__(formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False, **options)

    def error(self, message: str) -> NoReturn:
        raise PgccError(f"{message} (see {self.prog} --help)")


_EXAMPLES = """\
examples:
  pgcc query examples/beta.pgc "z2=0, z3=0"             Pr(z2 out, z3 out)
  pgcc query examples/beta.pgc "z1=1" "z1=0" --exact    two queries, as fractions
  pgcc query examples/beta.pgc --evidence rows.csv      a line per row of a table
  pgcc query --expr "0.3*rain + 0.7" "rain=1" --json    no file at all
  pgcc show examples/beta.pgc                           size, facts, strategy, accuracy
  pgcc show examples/beta.pgc --dot | dot -Tsvg         draw it
  pgcc compile examples/beta.pgc -o evaluator.py        readable, standalone Numba source
"""

_QUERY = """\
Print the probability that what is observed is so, everything else summed out: a line for each EVIDENCE, or for each
row of a table. Without evidence it is that of nothing at all: 1, or with --no-normalize the total of the polynomial.
EVIDENCE is 'name=value, …': 1 for in, 0 for out, ? for unobserved. Odd names stand in quotes: '"my name"=1'.
"""

_CSV = """a CSV file with the names of variables in its first line, then rows of 1, 0 and (for unobserved) nothing, ? or
-1; variables without a column are unobserved; - is standard input"""

_METHODS = "auto (the default), direct, top, bottom, roots, fft or ball; 'pgcc show' says which ones auto takes"


def _build_parser() -> _Parser:
    parser = _Parser(
        prog="pgcc",
        description="Ask a probability generating polynomial for probabilities: fast, and to a certified accuracy.",
        epilog=_EXAMPLES + "\n'pgcc COMMAND --help' tells more about each command.",
    )
    parser.add_argument("--version", action="version", version=f"pgcc {pgcc.__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_query(commands)
    _add_show(commands)
    _add_compile(commands)
    return parser


def _add_command(commands: Any, name: str, run: Any, usage: str, short: str, long: str) -> _Parser:
    parser = commands.add_parser(
        name, usage=f"pgcc {name} {usage}", help=short, description=long or f"{short[0].upper()}{short[1:]}."
    )
    # Which of the words is the file is known when it is known whether there is --expr.
    parser.add_argument("words", nargs="*", metavar="FILE", help="a .pgc or .npz file; - is text on standard input")
    parser.add_argument("--expr", metavar="TEXT", help="the polynomial itself, instead of a file")
    parser.set_defaults(run=run, parser=parser)
    return parser


def _add_query(commands: Any) -> None:
    parser = _add_command(
        commands, "query", _query, "[options] (FILE | --expr TEXT) [EVIDENCE ...]", "ask for probabilities", _QUERY
    )
    parser.add_argument("--evidence", metavar="CSV", help=_CSV)
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--exact", action="store_true", help="print fractions")
    kind.add_argument("--log", action="store_true", help="print natural logarithms, right far below 1e-300")
    kind.add_argument("--bound", action="store_true", help="also print a bound on the relative error, after a tab")
    parser.add_argument(
        "--json", action="store_true", help="print an object of JSON per line, with every bit; null is an infinity"
    )
    parser.add_argument("--rtol", type=float, metavar="R", help="the relative error that is promised (1e-9)")
    parser.add_argument("--method", metavar="NAME", help=_METHODS)
    parser.add_argument("--threads", type=int, metavar="N", help="threads for tables; -1 for all cores (1)")
    _add_model_options(parser)


def _add_show(commands: Any) -> None:
    parser = _add_command(
        commands,
        "show",
        _show,
        "[options] (FILE | --expr TEXT) [EVIDENCE]",
        "tell size, facts, strategy and accuracy; with evidence, how it is answered",
        "",
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--dot", action="store_true", help="print the circuit as a graph for Graphviz instead")
    form.add_argument("--json", action="store_true", help="print one object of JSON")
    _add_model_options(parser)


def _add_compile(commands: Any) -> None:
    parser = _add_command(
        commands,
        "compile",
        _compile,
        "[options] (FILE | --expr TEXT) [-o evaluator.py]",
        "write the standalone Python source of an evaluator, which needs numpy and numba only",
        "",
    )
    parser.add_argument("-o", "--output", metavar="PATH", help="the file to write; by default standard output")
    parser.add_argument("--force", action="store_true", help="replace the file if it exists")
    _add_model_options(parser)


def _add_model_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--no-normalize", dest="normalize", action="store_false", help="do not divide by the total g(1)"
    )
    parser.add_argument(
        "--no-validate", dest="validate", action="store_false", help="do not test that no variable is squared"
    )


def _parse_arguments(argv: Sequence[str]) -> argparse.Namespace:
    parser = _build_parser()
    # Words after an option that follows other words are left over: argparse would have them in one run.
    args, rest = parser.parse_known_args(argv)
    unknown = [word for word in rest if word.startswith("-") and word != "-"]
    if unknown:
        args.parser.error(f"unknown option {unknown[0]}")
    words = [*args.words, *rest]
    if args.expr is None and not words:
        args.parser.error("expected a FILE, or --expr TEXT")
    args.file = words.pop(0) if args.expr is None else None
    args.words = words
    return args


# -- commands -------------------------------------------------------------------------------------


def _query(args: argparse.Namespace) -> None:
    from pgcc.queries.evidence_text import parse_evidence

    _check_query(args)
    asked = [parse_evidence(text) for text in args.words] or [{}]
    circuit = _read_circuit(args)
    settings = {name: value for name in ("method", "rtol", "threads") if (value := getattr(args, name)) is not None}
    model = pgcc.compile(circuit, normalize=args.normalize, validate=args.validate, **settings)
    if args.evidence is not None:
        _query_table(model, args)
        return
    for evidence in asked:
        observed = {name: code for name, code in evidence.items() if code >= 0}
        _print_answers(({"evidence": observed, **answer} for answer in _answers(model, evidence, args)), args)


def _check_query(args: argparse.Namespace) -> None:
    if args.evidence is not None and args.words:
        args.parser.error(f"evidence is given twice: as {args.words[0]!r} and by --evidence")
    if args.evidence == "-" == args.file:
        args.parser.error("the circuit and the evidence cannot both be read from standard input")
    for name in ("method", "rtol"):
        if args.exact and getattr(args, name) is not None:
            args.parser.error(f"--{name} means nothing with --exact")


def _query_table(model: Model, args: argparse.Namespace) -> None:
    from pgcc.queries.evidence_text import read_csv

    where = "standard input" if args.evidence == "-" else args.evidence
    rows = max(1, min(_ROWS, _ENTRIES // max(1, len(model.variables))))
    done = 0
    with _open_table(args.evidence) as file:
        for line, codes in read_csv(file, model.variables, rows, where):
            try:
                answers = _answers(model, codes, args)
            except PgccError as error:
                raise PgccError(f"{where}, row 0 being line {line}: {error}") from None
            _print_answers(({"row": row, **answer} for row, answer in enumerate(answers, done)), args)
            done += len(answers)


def _open_table(path: str) -> contextlib.AbstractContextManager[TextIO]:
    if path == "-":
        return contextlib.nullcontext(sys.stdin)
    return open(path, encoding="utf-8", newline="")


def _answers(model: Model, evidence: Any, args: argparse.Namespace) -> list[dict[str, Any]]:
    """The answers for one piece of evidence (a dict) or several rows, as the data that --json prints."""
    if args.log:
        return [{"logprob": x} for x in _listed(model.logprob(evidence))]
    if args.exact:
        return [{"exact": _fraction_text(x), "prob": _nearest(x)} for x in _listed(model.prob(evidence, exact=True))]
    if args.bound:
        both = map(_listed, model.prob(evidence, bound=True))
        return [{"prob": x, "bound": bound} for x, bound in zip(*both, strict=True)]
    return [{"prob": x} for x in _listed(model.prob(evidence))]


def _listed(result: Any) -> list[Any]:
    """A number, a list or an array as a list of Python numbers."""
    if isinstance(result, (float, Fraction)):
        return [result]
    return result if isinstance(result, list) else result.tolist()


def _fraction_text(value: Fraction) -> str:
    limit = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)  # there is no limit on the digits that people ask for
    try:
        return str(value)
    finally:
        sys.set_int_max_str_digits(limit)


def _nearest(value: Fraction) -> float:
    from pgcc.ir.numbers import nearest_float

    return nearest_float(value)


def _print_answers(answers: Iterator[dict[str, Any]], args: argparse.Namespace) -> None:
    sys.stdout.writelines(f"{_json(answer) if args.json else _text(answer)}\n" for answer in answers)


def _text(answer: dict[str, Any]) -> str:
    if "exact" in answer:
        return answer["exact"]
    # More digits than these are noise to people; --json has every bit.
    return "\t".join(f"{answer[key]:.15g}" for key in ("prob", "logprob") if key in answer) + (
        f"\t{answer['bound']:.2g}" if "bound" in answer else ""
    )


def _json(data: dict[str, Any]) -> str:
    return json.dumps(_finite(data), allow_nan=False)


def _finite(data: Any) -> Any:
    """JSON has no infinities and no NaN: they become null."""
    if isinstance(data, dict):
        return {key: _finite(value) for key, value in data.items()}
    return None if isinstance(data, float) and not math.isfinite(data) else data


def _show(args: argparse.Namespace) -> None:
    from pgcc.queries.evidence_text import parse_evidence

    if len(args.words) > 1:
        args.parser.error(f"expected at most one piece of evidence, found {args.words[1]!r} too")
    evidence = parse_evidence(args.words[0]) if args.words else None
    circuit = _read_circuit(args)
    if args.dot:
        from pgcc.ir.printer import dot_text

        print(dot_text(circuit))
        return
    model = pgcc.compile(circuit, normalize=args.normalize, validate=args.validate)
    told = model.explain(evidence)
    if args.json:
        print(_json({"names": list(model.variables), **told.as_dict()}))
        return
    names = model.variables
    print(f"variables: {', '.join(names[:20])}{', …' if len(names) > 20 else ''}")
    print(told)


def _compile(args: argparse.Namespace) -> None:
    if args.words:
        args.parser.error(f"unexpected {args.words[0]!r}")
    if args.output is not None and not args.force and os.path.lexists(args.output):
        raise PgccError(f"{args.output} exists: --force replaces it")
    source = pgcc.emit(_read_circuit(args), normalize=args.normalize, validate=args.validate)
    if args.output is None:
        print(source, end="")
    else:
        _write(args.output, source)


def _write(path: str, text: str) -> None:
    from pgcc.frontend.formats.atomic import replacing

    try:
        with replacing(Path(path)) as file:
            file.write(text.encode())
    except OSError as error:
        raise PgccError(f"{path} cannot be written: {error.strerror or error}") from None


def _read_circuit(args: argparse.Namespace) -> Circuit:
    if args.expr is not None:
        return pgcc.parse(args.expr, where="--expr")
    if args.file == "-":
        return pgcc.parse(sys.stdin.read(), where="standard input")
    return pgcc.load(args.file)
