"""The arguments and options of the command line."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, NoReturn, cast

from pgcc import __version__
from pgcc.cli import exits, texts
from pgcc.errors import PgccError
from pgcc.methods import METHODS

# Arguments of the library whose options have other names.
OPTIONS = {
    "k": "top",
    "n_components": "components",
    "max_iter": "epochs",
    "n_init": "restarts",
    "random_state": "seed",
    "rng": "seed",
    "n_jobs": "threads",
}


class _Parser(argparse.ArgumentParser):
    """An argument parser that reports bad usage like every other error: in one line."""

    commands: dict[str, _Parser]  # of the parser of all commands

    def __init__(self, **options: Any):
        super().__init__(formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False, **options)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if isinstance(action, argparse._SubParsersAction) and value not in action.choices:
            self.error(f"there is no command {value!r}{_nearest(value, action.choices)}")
        super()._check_value(action, value)

    def error(self, message: str) -> NoReturn:
        raise PgccError(f"{message} (see {self.prog} --help)")

    def explain(self, error: PgccError) -> str:
        """The message of an error, with the options of this command; advice that it has no option for is left out."""
        text, part = str(error), cast(BaseException | None, error)
        while isinstance(part, PgccError):  # an error may repeat one that it was raised from
            before, name, after = text.partition(f"{part.argument}=")
            text = before + (self._in_own_terms(name + after) or name + after)
            if part.advice is not None:
                own = self._in_own_terms(part.advice)
                text = text.replace(f"; {part.advice}", "" if own is None else f"; {own}")
            part = part.__context__
        return text

    def _in_own_terms(self, text: str) -> str | None:
        """``rtol=…`` as ``--rtol …``, and ``exact=True`` as ``--exact``; None if there is no such option."""
        name, _, rest = text.partition("=")
        for action in self._actions:
            if action.option_strings and action.dest == OPTIONS.get(name, name):
                flag = action.option_strings[-1]
                return f"{flag} {rest.lstrip()}" if action.nargs != 0 else flag + rest.removeprefix(str(action.const))
        return None


def _nearest(word: str, known: Iterable[str]) -> str:
    """What to say about an unknown word: the nearest known one, or all of them."""
    near = difflib.get_close_matches(word.lower(), list(known), 1)
    return f": did you mean {near[0]}?" if near else f": there are {', '.join(known)}"


# -- options -----------------------------------------------------------------------------------------------------------


class Option(NamedTuple):
    """The arguments of `add_argument`."""

    flags: tuple[str, ...]
    settings: dict[str, Any]

    def but(self, **settings: Any) -> Option:
        """The same option with other settings."""
        return Option(self.flags, {**self.settings, **settings})


class OneOf(NamedTuple):
    """Options of which at most one may be given."""

    options: tuple[Option, ...]


def _value(*flags: str, **settings: Any) -> Option:
    """An option with a value."""
    return Option(flags, settings)


def _switch(*flags: str, **settings: Any) -> Option:
    """An option without a value."""
    return Option(flags, {"action": "store_true", **settings})


def whole_number(text: str) -> int:
    """A whole number, perhaps written as 1e6. (The name stands in messages.)"""
    try:
        return int(text)
    except ValueError:
        if not (number := float(text)).is_integer():
            raise
        return int(number)


def _rank(text: str) -> int | str:
    return text if text == "full" else int(text)


EVIDENCE = _value("--evidence", metavar="CSV", help=texts.CSV)
RTOL = _value("--rtol", type=float, metavar="R", help="the relative error to guarantee (1e-9)")
THREADS = _value("--threads", type=int, metavar="N", help="number of threads; -1 means all cores (1)")
THREADS_FOR_TABLES = THREADS.but(help="number of threads for tables; -1 means all cores (1)")
SEED = _value("--seed", type=int, metavar="S", help="the same seed gives the same samples")
OVER = _value("--over", metavar="NAMES", help="the variables that --size counts (all)")
SIZE = (
    _value("--size", metavar="K", help="condition on the number of variables that are in: 3, 2..5, or 2,5"),
    OVER,
)
OUTPUT = _value("-o", "--output", metavar="PATH", help="the file to write; by default standard output")
FORCE = _switch("--force", help="replace the file if it exists")
JSON = _switch("--json", help="print a JSON object")
PICTURE = (
    _value("--plot", metavar="PATH", help="also draw a picture (.svg, .png, .pdf; needs matplotlib)"),
    FORCE.but(help="replace the picture if it exists"),
)
CLUSTER = _value("--cluster", metavar="ADDRESS", help="run on the workers of this Dask scheduler (needs distributed)")
# What `pgcc.compile` takes, and what most questions share.
COMPILE = (
    _switch("--no-normalize", dest="normalize", action="store_false", help="do not divide by the total g(1)"),
    _switch("--no-validate", dest="validate", action="store_false", help="do not check that the circuit is valid"),
)
QUESTION = (EVIDENCE, JSON.but(help="print a JSON object per piece of evidence"), RTOL, THREADS_FOR_TABLES, *PICTURE)
# Options of file formats; `pgcc.cli.files` passes them on to `pgcc.load`.
FILE = (
    _value("--kernel", choices=("L", "K", "factor"), help="the kind of matrix in a .npy, .csv or .npz FILE (L)"),
    _switch("--nonsymmetric", dest="symmetric", action="store_false", default=None,
            help="the kernel may be nonsymmetric"),
    _switch("--nearest", default=None, help="use the nearest valid kernel"),
    _value("--rank", type=_rank, metavar="R", help="the rank of the kernel: a number, or full"),
    _value("--root", metavar="NODE", help="read a directed graph as arborescences from this node"),
    _value("--orientation", choices=("out", "in"),
           help="whether their edges point away from the root or towards it (out)"),
    _value("--killing", metavar="RATE", help="read a graph as rooted forests, where each node is a root at this rate"),
    _value("--keep", metavar="NAMES", help="the variables of a network to ask about; the others are summed out"),
    _value("--weights", metavar="PATH", help="the weights of the literals of an .nnf, .ddnnf or .sdd FILE"),
    Option(("--no-vtree",), {"dest": "vtree", "action": "store_const", "const": False,
                             "help": "read an .sdd or .psdd FILE without the .vtree beside it"}),
)  # fmt: skip


# -- commands ----------------------------------------------------------------------------------------------------------


class Command(NamedTuple):
    """A command, with its line in `pgcc --help`, its description, and its options.

    `kind` is what its first word is: a "circuit", "data", or "" if it takes none of them.
    """

    name: str
    usage: str
    summary: str
    description: str
    options: Sequence[Option | OneOf]
    kind: str = "circuit"


# The estimators of `pgcc.cli.fit`, repeated because they take long to import.
MODELS = (
    "simple-pgc",
    "dpp",
    "chow-liu",
    "mixture-of-trees",
    "continuous-mixture",
    "hidden-tree",
    "einsum-network",
    "strudel",
    "stacked-ensemble",
)

# fmt: off
COMMANDS = (
    Command("query", "[options] (FILE | --expr TEXT) [EVIDENCE ...]", "ask for probabilities", texts.QUERY, (
        EVIDENCE,
        OneOf((
            _switch("--exact", help="print fractions"),
            _switch("--log", help="print natural logarithms, accurate far below 1e-300"),
            _switch("--bound", help="also print a bound on the relative error, after a tab"),
        )),
        JSON.but(help="print a JSON object per line, with all digits; null means infinity"),
        RTOL,
        _value("--method", choices=("auto", *METHODS), metavar="NAME", help=texts.METHOD),
        THREADS_FOR_TABLES,
        *COMPILE,
    )),
    Command("marginals", "[options] (FILE | --expr TEXT) [EVIDENCE ...]", "print the probability of every variable",
            texts.MARGINALS, (
        *QUESTION,
        _switch("--covariance", help="print the covariance matrix instead"),
        *SIZE,
        *COMPILE,
    )),
    Command("cardinality", "[options] (FILE | --expr TEXT) [EVIDENCE ...]",
            "print the distribution of how many variables are in", texts.CARDINALITY, (
        *QUESTION,
        OVER.but(help="what to count, such as 'z1, weather=rain' (all variables)"),
        _value("--atol", type=float, metavar="A", help="accept this absolute error: thousands of variables in seconds"),
        *COMPILE,
    )),
    Command("sample", "[options] (FILE | --expr TEXT) [EVIDENCE]", "draw exact samples", texts.SAMPLE, (
        _value("-n", type=whole_number, default=1, metavar="N", help="the number of samples (1)"),
        SEED,
        *SIZE,
        JSON.but(help="print a JSON object per sample, with the names that are in"),
        THREADS,
        OUTPUT,
        FORCE,
        *COMPILE,
    )),
    Command("mode", "[options] (FILE | --expr TEXT) [EVIDENCE ...]", "find the most probable sets", texts.MODE, (
        EVIDENCE,
        *SIZE,
        _value("--top", type=int, default=1, metavar="K", help="the number of sets, the most probable first (1)"),
        _value("--time-limit", type=float, metavar="S", help="the most seconds to search (10)"),
        JSON.but(help="print a JSON object per set, with all digits"),
        RTOL,
        THREADS,
        *COMPILE,
    )),
    Command("score", "[options] (FILE | --expr TEXT) DATA", "print the log-likelihood of the rows of a table",
            texts.SCORE, (
        _switch("--rows", help="first print the log-likelihood of every row"),
        CLUSTER,
        JSON.but(help="print JSON objects, with all digits; null means -inf"),
        RTOL,
        THREADS,
        *COMPILE,
    )),
    Command("convert", "[options] (FILE | --expr TEXT) OUT", "write a circuit in another format", texts.CONVERT, (
        _switch("--simplify", help="write a smaller circuit for the same polynomial"),
        _switch("--number", help="call the variables x1, x2, … in their order, as .nnf and .psdd do"),
        FORCE,
        JSON,
    )),
    Command("show", "[options] (FILE | --expr TEXT) [EVIDENCE]",
            "describe size, structure, strategy and accuracy; with evidence, also how it is answered", "", (
        OneOf((_switch("--dot", help="print the circuit as a graph for Graphviz instead"), JSON)),
        *PICTURE,
        _value("--around", metavar="NAME", help="draw only the neighbourhood of this variable"),
        _value("--most-nodes", type=int, metavar="N",
               help="draw only the top of a circuit with more nodes than this (80; --dot writes all by default)"),
        *COMPILE,
    )),
    Command("explore", "[options] (FILE | --expr TEXT) -o page.html",
            "write an interactive web page for exploring a model", texts.EXPLORE, (
        OUTPUT.but(help="the page to write (.html)"),
        _value("--title", metavar="TEXT", help="the title of the page (the name of the file)"),
        FORCE,
    )),
    Command("compile", "[options] (FILE | --expr TEXT) [-o evaluator.py]",
            "write an evaluator as standalone Python source that needs only numpy and numba", "", (
        OUTPUT,
        FORCE,
        *COMPILE,
    )),
    Command("check", "[options] (FILE | --expr TEXT)", "check whether a circuit is a probability distribution",
            texts.CHECK, (
        _value("--time", type=float, default=5.0, metavar="S",
               help="seconds for computing all coefficients, and again for a search (5)"),
        _value("--tolerance", type=float, default=1e-12, metavar="T",
               help="if numbers are floats, a coefficient may be as low as -T*g(1) (1e-12)"),
        _switch("--normalize", help="judge g / g(1), so any positive total is accepted"),
        _switch("--dependence", help="also check for negative dependence"),
        _switch("--certificate", help="also print which rule holds at which node"),
        JSON,
    )),
    Command("fit", "[options] DATA -o MODEL", "learn a model from data", texts.FIT, (
        _value("--model", choices=MODELS, help="the kind of model (with --budget stacked-ensemble, else simple-pgc)"),
        _value("--validation", metavar="CSV", help="data for making choices (a tenth of the rows)"),
        _value("--max-group", type=int, metavar="K", help="the most variables in a group (simple-pgc)"),
        _value("--components", type=int, metavar="C", help="the number of components of the mixture"),
        _value("--recipe", choices=("auto", "paper"), help="how to train (simple-pgc, dpp)"),
        _value("--epochs", type=int, metavar="N", help="the most passes over the data"),
        _value("--restarts", type=int, metavar="N", help="the number of runs with different seeds"),
        _value("--budget", type=float, metavar="S", help="seconds to learn the best of all kinds"),
        _value("--smoothing", type=float, metavar="S", help="rows to add to the counts (trees)"),
        SEED.but(help="the same seed gives the same model"),
        THREADS.but(help="number of threads (1)"),
        CLUSTER,
        _value("--checkpoint", metavar="PATH",
               help="save the state of the run here (pgc: a folder), and resume from it"),
        OUTPUT.but(metavar="MODEL", help="the circuit to write: .npz, .pgc …"),
        FORCE,
        JSON,
    ), "data"),
    Command("warmup", "[options]", "compile kernels for this machine in advance", texts.WARMUP, (
        _value("--jobs", type=int, metavar="N", help="processes at a time (one per core)"),
    ), ""),
    Command("completion", "(bash | zsh | fish)", "print a script for completing commands and options in your shell",
            texts.COMPLETION, (
        _value("shell", choices=("bash", "zsh", "fish"), help="your shell"),
    ), ""),
)
# fmt: on


def build_parser() -> _Parser:
    """The parser of all commands."""
    parser = _Parser(
        prog="pgcc",
        description="Answer questions about probability generating polynomials, fast and with certified accuracy.",
        epilog=f"{texts.EXAMPLES}\n{exits.table()}\nRun 'pgcc COMMAND --help' to learn more about a command.",
    )
    parser.add_argument("--version", action="version", version=f"pgcc {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for command in COMMANDS:
        _add_command(commands, command)
    parser.commands = dict(commands.choices)
    return parser


def _add_command(commands: Any, command: Command) -> None:
    parser = commands.add_parser(
        command.name,
        usage=f"pgcc {command.name} {command.usage}",
        help=command.summary,
        description=command.description or f"{command.summary[0].upper()}{command.summary[1:]}.",
    )
    defaults: dict[str, Any] = {"command": command.name, "parser": parser}
    match command.kind:
        case "circuit":
            # Which of the words is the file is known when it is known whether there is --expr.
            parser.add_argument("words", nargs="*", metavar="FILE", help=texts.FILE)
            parser.add_argument("--expr", metavar="TEXT", help="the polynomial itself, instead of a file")
            _add_options(parser.add_argument_group("kernels, graphs and networks"), FILE)
            defaults["expected"] = "expected a FILE, or --expr TEXT"
        case "data":
            parser.add_argument("words", nargs="*", metavar="DATA", help=texts.DATA)
            defaults |= {"expr": None, "expected": "expected DATA"}
        case _:
            defaults |= {"expr": "", "words": []}
    _add_options(parser, command.options)
    parser.set_defaults(**defaults)


def _add_options(to: Any, options: Iterable[Option | OneOf]) -> None:
    """Add options to a parser, or to a group of one."""
    for one in options:
        if isinstance(one, OneOf):
            _add_options(to.add_mutually_exclusive_group(), one.options)
        else:
            to.add_argument(*one.flags, **one.settings)


# -- parsing -----------------------------------------------------------------------------------------------------------


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
        meant = f": did you mean --{near[0]}?" if near else ""
        if word.lstrip("-") in [command.name for command in COMMANDS]:
            meant = f": there is a command, pgcc {word.lstrip('-')}"
        one.error(f"unknown option {word}{meant}")
    if one is parser:
        parser.error("expected a COMMAND")
    words = [*args.words, *rest]
    if args.expr is None and not words:
        args.parser.error(args.expected)
    args.file = words.pop(0) if args.expr is None else None
    args.words = words
    return args
