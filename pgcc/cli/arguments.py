"""The arguments and options of the command line."""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from pgcc import __version__
from pgcc.cli import exits, texts
from pgcc.cli.terms import in_own_terms
from pgcc.errors import PgccError

# The methods of evaluation, repeated from pgcc.program.strategy because that takes long to import.
METHODS = ("auto", "direct", "top", "bottom", "fft", "ball")


class UsageError(PgccError):
    """Arguments that a command does not understand. The message is already in the terms of the command line."""


class _Parser(argparse.ArgumentParser):
    """An argument parser that reports bad usage like every other error: in one line."""

    elsewhere: frozenset[str] = frozenset()  # the parameters that some command has an option for

    def __init__(self, **options: Any):
        super().__init__(formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False, **options)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if isinstance(action, argparse._SubParsersAction) and value not in action.choices:
            self.error(f"there is no command {value!r}{_nearest(value, action.choices)}")
        super()._check_value(action, value)

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (see {self.prog} --help)")

    def in_own_terms(self, text: str) -> str:
        """A message of the library, translated to the terms of this command."""
        return in_own_terms(text, self, self.elsewhere)

    def tell(self, text: str) -> None:
        """Write a message on standard error, in the terms of this command."""
        print(f"pgcc: {self.in_own_terms(text)}", file=sys.stderr)


def _nearest(word: str, known: Iterable[str]) -> str:
    """What to say about an unknown word: the nearest known one, or all of them."""
    near = difflib.get_close_matches(word.lower(), list(known), 1)
    return f": did you mean {near[0]}?" if near else f": there are {', '.join(known)}"


def build_parser() -> _Parser:
    parser = _Parser(
        prog="pgcc",
        description="Answer questions about probability generating polynomials, fast and with certified accuracy.",
        epilog=f"{texts.EXAMPLES}\n{exits.table()}\nRun 'pgcc COMMAND --help' to learn more about a command.",
    )
    parser.add_argument("--version", action="version", version=f"pgcc {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    _add_query(commands)
    _add_marginals(commands)
    _add_cardinality(commands)
    _add_sample(commands)
    _add_mode(commands)
    _add_score(commands)
    _add_convert(commands)
    _add_show(commands)
    _add_explore(commands)
    _add_compile(commands)
    _add_check(commands)
    _add_fit(commands)
    _add_warmup(commands)
    _add_completion(commands)
    given = {action.dest for one in commands.choices.values() for action in one._actions if action.option_strings}
    for command in commands.choices.values():
        command.elsewhere = frozenset(given)
    return parser


def _add_command(commands: Any, name: str, usage: str, short: str, long: str) -> _Parser:
    parser = commands.add_parser(
        name, usage=f"pgcc {name} {usage}", help=short, description=long or f"{short[0].upper()}{short[1:]}."
    )
    # Which of the words is the file is known when it is known whether there is --expr.
    parser.add_argument("words", nargs="*", metavar="FILE", help=texts.FILE)
    parser.add_argument("--expr", metavar="TEXT", help="the polynomial itself, instead of a file")
    _add_file_options(parser)
    parser.set_defaults(command=name, parser=parser, expected="expected a FILE, or --expr TEXT")
    return parser


def _add_file_options(parser: argparse.ArgumentParser) -> None:
    """Options of file formats; `pgcc.cli.files` passes them on to `pgcc.load`."""
    group = parser.add_argument_group("kernels, graphs and networks")
    group.add_argument(
        "--kernel", choices=("L", "K", "factor"), help="the kind of matrix in a .npy, .csv or .npz FILE (L)"
    )
    group.add_argument(
        "--nonsymmetric", dest="symmetric", action="store_false", default=None, help="the kernel may be nonsymmetric"
    )
    group.add_argument("--nearest", action="store_true", default=None, help="use the nearest valid kernel")
    group.add_argument("--rank", type=_rank, metavar="R", help="the rank of the kernel: a number, or full")
    group.add_argument("--root", metavar="NODE", help="read a directed graph as arborescences from this node")
    group.add_argument(
        "--orientation", choices=("out", "in"), help="whether their edges point away from the root or towards it (out)"
    )
    group.add_argument(
        "--killing", metavar="RATE", help="read a graph as rooted forests, where each node is a root at this rate"
    )
    group.add_argument(
        "--keep",
        metavar="NAMES",
        help="the variables of a .uai network to ask about; the others are summed out",
    )
    group.add_argument("--weights", metavar="PATH", help="the weights of the literals of an .nnf, .ddnnf or .sdd FILE")


def _rank(text: str) -> int | str:
    return text if text == "full" else int(text)


def _add_query(commands: Any) -> None:
    parser = _add_command(
        commands, "query", "[options] (FILE | --expr TEXT) [EVIDENCE ...]", "ask for probabilities", texts.QUERY
    )
    parser.add_argument("--evidence", metavar="CSV", help=texts.CSV)
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--exact", action="store_true", help="print fractions")
    kind.add_argument("--log", action="store_true", help="print natural logarithms, accurate far below 1e-300")
    kind.add_argument("--bound", action="store_true", help="also print a bound on the relative error, after a tab")
    parser.add_argument(
        "--json", action="store_true", help="print a JSON object per line, with all digits; null means infinity"
    )
    _add_rtol(parser)
    parser.add_argument("--method", choices=METHODS, metavar="NAME", help=texts.METHODS)
    _add_threads(parser, "number of threads for tables")
    _add_model_options(parser)


def _add_marginals(commands: Any) -> None:
    parser = _add_command(
        commands,
        "marginals",
        "[options] (FILE | --expr TEXT) [EVIDENCE ...]",
        "print the probability of every variable",
        texts.MARGINALS,
    )
    _add_question_options(parser)
    parser.add_argument("--covariance", action="store_true", help="print the covariance matrix instead")
    _add_size_options(parser)
    _add_model_options(parser)


def _add_cardinality(commands: Any) -> None:
    parser = _add_command(
        commands,
        "cardinality",
        "[options] (FILE | --expr TEXT) [EVIDENCE ...]",
        "print the distribution of how many variables are in",
        texts.CARDINALITY,
    )
    _add_question_options(parser)
    parser.add_argument("--over", metavar="NAMES", help="the variables to count, such as 'z1, z3' (all)")
    parser.add_argument(
        "--atol", type=float, metavar="A", help="accept this absolute error: thousands of variables in seconds"
    )
    _add_model_options(parser)


def _add_sample(commands: Any) -> None:
    parser = _add_command(
        commands, "sample", "[options] (FILE | --expr TEXT) [EVIDENCE]", "draw exact samples", texts.SAMPLE
    )
    parser.add_argument("-n", type=int, default=1, metavar="N", help="the number of samples (1)")
    parser.add_argument("--seed", type=int, metavar="S", help="the same seed gives the same samples")
    _add_size_options(parser)
    parser.add_argument(
        "--json", action="store_true", help="print a JSON object per sample, with the names that are in"
    )
    _add_threads(parser, "number of threads")
    parser.add_argument("-o", "--output", metavar="PATH", help="the file to write; by default standard output")
    parser.add_argument("--force", action="store_true", help="replace the file if it exists")
    _add_model_options(parser)


def _add_mode(commands: Any) -> None:
    parser = _add_command(
        commands, "mode", "[options] (FILE | --expr TEXT) [EVIDENCE ...]", "find the most probable sets", texts.MODE
    )
    parser.add_argument("--evidence", metavar="CSV", help=texts.CSV)
    _add_size_options(parser)
    parser.add_argument(
        "--top", type=int, default=1, metavar="K", help="the number of sets, the most probable first (1)"
    )
    parser.add_argument("--time-limit", type=float, metavar="S", help="the most seconds to search (10)")
    parser.add_argument("--json", action="store_true", help="print a JSON object per set, with all digits")
    _add_rtol(parser)
    _add_threads(parser, "number of threads")
    _add_model_options(parser)


def _add_question_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--evidence", metavar="CSV", help=texts.CSV)
    parser.add_argument("--json", action="store_true", help="print a JSON object per piece of evidence")
    _add_rtol(parser)
    _add_threads(parser, "number of threads for tables")
    _add_picture_options(parser)


def _add_rtol(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rtol", type=float, metavar="R", help="the relative error to guarantee (1e-9)")


def _add_threads(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument("--threads", type=int, metavar="N", help=f"{what}; -1 means all cores (1)")


def _add_size_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--size", metavar="K", help="condition on the number of variables that are in: 3, or 2..5")
    parser.add_argument("--over", metavar="NAMES", help="the variables that --size counts (all)")


def _add_picture_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--plot", metavar="PATH", help="also draw a picture (.svg, .png, .pdf; needs matplotlib)")
    parser.add_argument("--force", action="store_true", help="replace the picture if it exists")


def _add_score(commands: Any) -> None:
    parser = _add_command(
        commands,
        "score",
        "[options] (FILE | --expr TEXT) DATA",
        "print the log-likelihood of the rows of a table",
        texts.SCORE,
    )
    parser.add_argument("--rows", action="store_true", help="first print the log-likelihood of every row")
    _add_cluster_option(parser)
    parser.add_argument("--json", action="store_true", help="print JSON objects, with all digits; null means -inf")
    _add_rtol(parser)
    _add_threads(parser, "number of threads")
    _add_model_options(parser)


def _add_convert(commands: Any) -> None:
    parser = _add_command(
        commands,
        "convert",
        "[options] (FILE | --expr TEXT) OUT",
        "write a circuit in another format",
        texts.CONVERT,
    )
    parser.add_argument("--simplify", action="store_true", help="write a smaller circuit for the same polynomial")
    parser.add_argument("--force", action="store_true", help="replace the file if it exists")
    parser.add_argument("--json", action="store_true", help="print a JSON object")


def _add_show(commands: Any) -> None:
    parser = _add_command(
        commands,
        "show",
        "[options] (FILE | --expr TEXT) [EVIDENCE]",
        "describe size, structure, strategy and accuracy; with evidence, also how it is answered",
        "",
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--dot", action="store_true", help="print the circuit as a graph for Graphviz instead")
    form.add_argument("--json", action="store_true", help="print a JSON object")
    _add_picture_options(parser)
    parser.add_argument("--around", metavar="NAME", help="draw only the neighbourhood of this variable")
    parser.add_argument(
        "--most-nodes",
        type=int,
        metavar="N",
        help="draw only the top of a circuit with more nodes than this (80; --dot writes all by default)",
    )
    _add_model_options(parser)


def _add_explore(commands: Any) -> None:
    parser = _add_command(
        commands,
        "explore",
        "[options] (FILE | --expr TEXT) -o page.html",
        "write an interactive web page for exploring a model",
        texts.EXPLORE,
    )
    parser.add_argument("-o", "--output", metavar="PATH", help="the page to write (.html)")
    parser.add_argument("--title", metavar="TEXT", help="the title of the page (the name of the file)")
    parser.add_argument("--force", action="store_true", help="replace the file if it exists")


def _add_compile(commands: Any) -> None:
    parser = _add_command(
        commands,
        "compile",
        "[options] (FILE | --expr TEXT) [-o evaluator.py]",
        "write an evaluator as standalone Python source that needs only numpy and numba",
        "",
    )
    parser.add_argument("-o", "--output", metavar="PATH", help="the file to write; by default standard output")
    parser.add_argument("--force", action="store_true", help="replace the file if it exists")
    _add_model_options(parser)


def _add_check(commands: Any) -> None:
    parser = _add_command(
        commands,
        "check",
        "[options] (FILE | --expr TEXT)",
        "check whether a circuit is a probability distribution",
        texts.CHECK,
    )
    parser.add_argument(
        "--time",
        type=float,
        default=5.0,
        metavar="S",
        help="seconds for computing all coefficients, and again for a search (5)",
    )
    parser.add_argument(
        "--tolerance",
        type=float,
        default=1e-12,
        metavar="T",
        help="if numbers are floats, a coefficient may be as low as -T*g(1) (1e-12)",
    )
    parser.add_argument("--normalize", action="store_true", help="judge g / g(1), so any positive total is accepted")
    parser.add_argument("--dependence", action="store_true", help="also check for negative dependence")
    parser.add_argument("--certificate", action="store_true", help="also print which rule holds at which node")
    parser.add_argument("--json", action="store_true", help="print a JSON object")


def _add_data_command(commands: Any, name: str, usage: str, short: str, long: str, data: str) -> _Parser:
    """A command whose FILE is data, not a circuit."""
    parser = commands.add_parser(name, usage=f"pgcc {name} {usage}", help=short, description=long)
    parser.add_argument("words", nargs="*", metavar="DATA", help=data)
    parser.set_defaults(command=name, parser=parser, expr=None, expected=f"expected {usage.split()[1]}")
    return parser


def _add_fit(commands: Any) -> None:
    parser = _add_data_command(
        commands,
        "fit",
        "[options] DATA -o MODEL",
        "learn a model from data",
        texts.FIT,
        "a CSV file of 1, 0 and ? or nothing, or an array in .npy; it is read in pieces",
    )
    parser.add_argument(
        "--model",
        choices=("simple-pgc", "dpp", "chow-liu", "mixture-of-trees", "pgc"),
        default="simple-pgc",
        help="the kind of model to learn (simple-pgc)",
    )
    parser.add_argument("--validation", metavar="CSV", help="data for making choices (a tenth of the rows)")
    parser.add_argument("--max-group", type=int, metavar="K", help="the most variables in a group (simple-pgc)")
    parser.add_argument("--components", type=int, metavar="C", help="the number of components of the mixture")
    parser.add_argument("--recipe", choices=("auto", "paper"), help="how to train (simple-pgc, dpp)")
    parser.add_argument("--epochs", type=int, metavar="N", help="the most passes over the data")
    parser.add_argument("--restarts", type=int, metavar="N", help="the number of runs with different seeds")
    parser.add_argument("--smoothing", type=float, metavar="S", help="rows to add to the counts (trees)")
    parser.add_argument("--seed", type=int, metavar="S", help="the same seed gives the same model")
    parser.add_argument("--threads", type=int, metavar="N", help="number of threads (1)")
    _add_cluster_option(parser)
    parser.add_argument(
        "--checkpoint", metavar="PATH", help="save the state of the run here (pgc: a folder), and resume from it"
    )
    parser.add_argument("-o", "--output", metavar="MODEL", help="the circuit to write: .npz, .pgc …")
    parser.add_argument("--force", action="store_true", help="replace the file if it exists")
    parser.add_argument("--json", action="store_true", help="print a JSON object")


def _add_cluster_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--cluster", metavar="ADDRESS", help="run on the workers of this Dask scheduler (needs distributed)"
    )


def _add_warmup(commands: Any) -> None:
    parser = commands.add_parser(
        "warmup",
        usage="pgcc warmup [options]",
        help="compile kernels for this machine in advance",
        description=texts.WARMUP,
    )
    parser.add_argument("--jobs", type=int, metavar="N", help="processes at a time (one per core)")
    parser.set_defaults(command="warmup", parser=parser, expr="", words=[])


def _add_completion(commands: Any) -> None:
    parser = commands.add_parser(
        "completion",
        usage="pgcc completion (bash | zsh)",
        help="print a script for completing commands and options in your shell",
        description=texts.COMPLETION,
    )
    parser.add_argument("shell", choices=("bash", "zsh"), help="your shell")
    parser.set_defaults(command="completion", parser=parser, expr="", words=[])


def _add_model_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--no-normalize", dest="normalize", action="store_false", help="do not divide by the total g(1)"
    )
    parser.add_argument(
        "--no-validate", dest="validate", action="store_false", help="do not check that the circuit is valid"
    )


def parse_arguments(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the command and its options. `file` is the circuit (None with --expr), `words` the other arguments."""
    parser = build_parser()
    # Words after an option that follows other words are left over: argparse would have them in one run.
    args, rest = parser.parse_known_args(argv)
    unknown = [word for word in rest if word.startswith("-") and word != "-"]
    one = getattr(args, "parser", parser)
    if unknown:
        word = unknown[0].partition("=")[0]
        known = [option.lstrip("-") for option in one._option_string_actions]
        near = difflib.get_close_matches(word.lstrip("-").lower(), known, 1)
        one.error(f"unknown option {word}" + (f": did you mean --{near[0]}?" if near else ""))
    if one is parser:
        parser.error("expected a COMMAND")
    words = [*args.words, *rest]
    if args.expr is None and not words:
        args.parser.error(args.expected)
    args.file = words.pop(0) if args.expr is None else None
    args.words = words
    return args
