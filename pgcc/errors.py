"""The errors pgcc raises. Every one is a `PgccError`, so that one `except` catches them all."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class PgccError(Exception):
    """Base class of every error that pgcc raises on purpose.

    Examples
    --------
    >>> import pgcc
    >>> try:
    ...     pgcc.parse("0.5*rain +")
    ... except pgcc.PgccError as error:
    ...     print(type(error).__name__)
    ParseError

    Some know which argument they are about, and which other one would help. The message writes both as in Python, and
    the command line replaces them by its own options.

    >>> error = pgcc.PgccError("rtol=2 is too large", argument="rtol", advice="exact=True gives fractions")
    >>> str(error)
    'rtol=2 is too large; exact=True gives fractions'
    """

    argument: str | None = None  # the message writes it as argument=value
    advice: str | None = None  # the end of the message: name=value, and what this would do

    def __init__(self, *message: object, argument: str | None = None, advice: str | None = None):
        super().__init__(*message)
        self.argument, self.advice = argument, advice

    def __str__(self) -> str:
        return printable(super().__str__() + (f"; {self.advice}" if self.advice else ""))


def printable(text: str) -> str:
    """Text for a terminal: characters that would control it, in the name of a file or a variable, are escaped.

    >>> print(printable("no file " + chr(27) + "[31mred"))
    no file \\x1b[31mred
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in text)


class ParseError(PgccError):
    """Text that is not a valid expression. The message shows the line, with a caret under the mistake.

    Attributes
    ----------
    line, column : int
        Where the mistake is, both counted from 1.

    Examples
    --------
    >>> import pgcc
    >>> pgcc.parse("0.5*rain + + + 0.5*")
    Traceback (most recent call last):
    pgcc.errors.ParseError: line 1, column 20: expected a number, a name or '(', found the end of the text
      0.5*rain + + + 0.5*
                         ^
    """

    def __init__(self, message: str, source_line: str = "", line: int = 1, column: int = 1, where: str = ""):
        self.message, self.line, self.column = message, line, column
        self._parts = (message, source_line, line, column, where)
        head = f"{where + ', ' if where else ''}line {line}, column {column}: {message}"
        super().__init__(head + _caret(source_line, column) if source_line.strip() else head)

    def __reduce__(self) -> tuple:
        return type(self), self._parts


class CircuitError(PgccError):
    """A circuit that cannot be built: wrong children, names, numbers or shapes.

    Examples
    --------
    >>> import pgcc
    >>> pgcc.mixture([0.5, 0.6], [pgcc.parse("a"), pgcc.parse("b")])
    Traceback (most recent call last):
    pgcc.errors.CircuitError: the weights of a mixture add up to 1.1, not to 1
    """


class SemanticsError(PgccError):
    """A well-formed circuit that is not a distribution: a variable is squared, or the total is negative or zero.

    Examples
    --------
    >>> import pgcc
    >>> pgcc.product([pgcc.parse("0.5*a + 0.5"), pgcc.parse("0.1*a + 0.9")])
    Traceback (most recent call last):
    pgcc.errors.SemanticsError: circuit 0 and circuit 1 share the variable 'a': they have to be independent
    """


class EvidenceError(PgccError, ValueError):
    """Evidence with an unknown name, a contradiction, or a value other than 0, 1 or unobserved.

    Examples
    --------
    >>> import pgcc
    >>> pgcc.compile(pgcc.parse("0.5*milk + 0.5")).prob("milc=1")
    Traceback (most recent call last):
    pgcc.errors.EvidenceError: unknown variable 'milc': did you mean 'milk'?
    """


class PrecisionError(PgccError):
    """A number that could not be computed to the accuracy asked for.

    Examples
    --------
    >>> import pgcc
    >>> pgcc.compile(pgcc.parse("0.5*z + 0.5")).prob("z=1", rtol=2)
    Traceback (most recent call last):
    pgcc.errors.PrecisionError: rtol=2 is not between 1e-14 and 1; exact=True gives fractions
    """


class ProofError(PgccError):
    """A proof with a step that does not hold.

    Examples
    --------
    >>> import pgcc
    >>> from pgcc.validity.proof import Proof, verify
    >>> g = pgcc.parse("2*x - y")
    >>> steps = [(0, "variable", 1, None), (1, "variable", 1, None), (2, "weighted sum", 1, None)]
    >>> verify(g, [Proof("nonnegative", True, "steps", g, {"steps": steps})])
    Traceback (most recent call last):
    pgcc.errors.ProofError: step 2: 'weighted sum' does not show that node 2, Sum(2 children), has the sign 1
    """


class FormatError(PgccError):
    """A file that is damaged, or does not have the format that its extension names.

    Examples
    --------
    >>> import pathlib, tempfile, pgcc
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "model.docx")
    ...     _ = path.write_text("a letter")
    ...     try:
    ...         pgcc.load(path)
    ...     except pgcc.FormatError as error:
    ...         print("cannot read the format '.docx'" in str(error))
    True
    """


class MissingPackageError(PgccError, ImportError):
    """Something that needs a package that is not installed. The message says the command that installs it."""


class SpellingError(PgccError, AttributeError):
    """A word of another library. The message says what to write here.

    Examples
    --------
    >>> import pgcc
    >>> pgcc.compile(pgcc.parse("0.5*z + 0.5")).log_prob({"z": 1})
    Traceback (most recent call last):
    pgcc.errors.SpellingError: Model has no 'log_prob': write model.logprob(evidence)
    """


# What people bring from other libraries, and what to write instead: attributes, functions of pgcc, and arguments.
OTHER_WORDS = {
    "Model.save": "pgcc.save(model.circuit, path)",
    "Model.map": "model.mode(evidence)",
    "Model.map_query": "model.mode(evidence, over=names)",
    "Model.mpe": "model.mode(evidence)",
    "Model.argmax": "model.mode(evidence)",
    "Model.predict": "model.mode(evidence), or model.mode(evidence, over=names)",
    "Model.predict_proba": "model.conditional({name: 1}, given=rows), or model.marginals(rows)",
    "Model.predict_probability": "model.marginals(rows)",
    "Model.query": "model.prob(evidence), or model.marginals(evidence)[name]",
    "Model.simulate": "model.sample(n, evidence, rng=seed, names=True)",
    "Model.fit": "pgcc.learn.BayesianNetworkMLE(model.circuit).fit(rows), or another estimator",
    "Model.network": "model.circuit.network",
    "Model.nodes": "model.variables",
    "Model.edges": "model.circuit.edges, how large it is, or model.circuit.network.parents",
    "Model.get_cpds": "model.circuit.network.cpt(name)",
    "Model.get_cardinality": "len(model.states[name])",
    "Model.probability": "model.prob(evidence)",
    "Model.marginal": "model.marginals(evidence)",
    "Model.log_prob": "model.logprob(evidence)",
    "Model.log_probability": "model.logprob(evidence)",
    "Model.log_likelihood": "model.logprob(rows)",
    "Model.score": "model.logprob(rows).mean()",
    "Model.partition_function": "model.prob(), of a model compiled with normalize=False",
    "Circuit.save": "pgcc.save(circuit, path)",
    "Circuit.fit": "pgcc.learn.BayesianNetworkMLE(circuit).fit(rows) for a Bayesian network, or CircuitMLE(circuit)",
    "Circuit.nodes": "list(circuit.domains), or circuit.network.parents of a Bayesian network",
    "Circuit.states": "circuit.domains, or pgcc.compile(circuit).states",
    "Circuit.get_cpds": "circuit.network.cpt(name)",
    "Estimator.predict": "pgcc.learn.Classifier(estimator).fit(X, y).predict(X), or estimator.model_.mode(rows)",
    "Estimator.predict_proba": "estimator.conditional_proba(X, column), or pgcc.learn.Classifier(estimator).fit(X, y)",
    "Estimator.save": "pgcc.learn.save(estimator, path)",
    "PC.save": "pgcc.save(pc.to_pgc(), path)",
    "pgcc.kdpp": "pgcc.dpp(L=L).observe(size=k)",
    "pgcc.read": "pgcc.load(path)",
    "pgcc.from_file": "pgcc.load(path)",
    "pgcc.BIFReader": "pgcc.load(path)",
    "pgcc.VariableElimination": "pgcc.compile(circuit).marginals(evidence)",
    "pgcc.BayesianNetwork": "pgcc.builders.bayesian_network({name: (parents, table)})",
    "pgcc.DiscreteBayesianNetwork": "pgcc.builders.bayesian_network({name: (parents, table)})",
    "pgcc.TabularCPD": "pgcc.builders.bayesian_network({name: (parents, table)})",
    "dpp(k=)": "pgcc.dpp(L=L).observe(size=k)",
    "dpp(size=)": "pgcc.dpp(L=L).observe(size=k)",
    "sample(seed=)": "rng=seed",
    "sample(random_state=)": "rng=seed",
    "sample(n_samples=)": "n",
    "conditional(evidence=)": "given=evidence",
    "sensitivity(evidence=)": "given=evidence",
    "question(show_progress=)": "nothing: a bar shows where something takes long",
    "question(virtual_evidence=)": "likelihoods as evidence, {name: {state: likelihood}}",
    "question(do=)": "model.do({name: state}), and ask what that gives",
    "question(variables=)": "nothing: answers are about all variables, and have their names",
    "mode(timeout=)": "time_limit=seconds",
    "grad(size=)": "condition(size=k).grad(evidence), with the derivatives by the numbers of that circuit",
    "grad(over=)": "condition(over=names, size=k).grad(evidence), with the derivatives by the numbers of that circuit",
}
# Questions for a model: whoever asks a circuit has not compiled it yet.
QUESTIONS = frozenset(
    ("prob", "logprob", "marginals", "conditional", "cardinality", "sample", "mode", "explain", "entropy", "moments")
)


class KnowsOtherWords:
    """A class that says what to write instead when it is asked for an attribute that another library has."""

    if not TYPE_CHECKING:  # a type checker reports unknown attributes itself

        def __getattr__(self, name: str) -> Any:
            for owner in (kind.__name__ for kind in type(self).__mro__):
                if own := OTHER_WORDS.get(f"{owner}.{name}"):
                    raise SpellingError(f"{owner} has no {name!r}: write {own}")
            kind = type(self).__name__
            if name in QUESTIONS:
                raise SpellingError(
                    f"a {kind} answers no questions: pgcc.compile makes a Model of it, which has {name!r}"
                )
            raise AttributeError(f"{kind!r} object has no attribute {name!r}")


def check_words(function: str, names: Iterable[str]) -> None:
    """Refuse arguments under the names that they have in another library, there in this function or in any question."""
    for name in names:
        if own := OTHER_WORDS.get(f"{function}({name}=)") or OTHER_WORDS.get(f"question({name}=)"):
            raise SpellingError(f"{function} has no argument {name!r}: write {own}")


def knows_other_words(function: Callable[P, T]) -> Callable[P, T]:
    """A function that says what to write instead of arguments that another library has."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        check_words(function.__name__, kwargs)
        return function(*args, **kwargs)

    return call


def circuit_from(value: object) -> str:
    """How to get a circuit from a value that is none, for an error message."""
    if hasattr(value, "to_pgc"):
        return "its method to_pgc() gives one"
    if hasattr(value, "nodes"):
        return "pgcc.builders.bayesian_network makes one of a network"
    if hasattr(value, "circuit"):
        return "its attribute circuit is one"
    if hasattr(value, "get_params"):
        return "when it has learned, its attribute circuit_ is one"
    return "pgcc.parse makes one from text, pgcc.load gives one"


def brief(value: object) -> str:
    """A value in an error message, shortened to a line.

    >>> brief(10**5000)
    'an int with too many digits'
    """
    try:
        text = repr(value)
    except ValueError:  # Python does not write numbers of more than 4,300 digits
        return f"{'an' if isinstance(value, int) else 'a'} {type(value).__name__} with too many digits"
    return text if len(text) <= 60 else text[:60] + "…"


def plural(count: int, noun: str, many: str | None = None) -> str:
    """A number of things; `many` is the plural of a noun that does not only take an s.

    >>> plural(1, "edge"), plural(1200, "edge"), plural(2, "child", "children")
    ('1 edge', '1,200 edges', '2 children')
    """
    return f"{count:,} {noun if count == 1 else many or noun + 's'}"


# A caret is only useful on a line that fits a terminal: show this many characters around the place.
_WINDOW = 72


def _caret(source_line: str, column: int) -> str:
    text = source_line.replace("\t", " ").rstrip("\n")
    start = max(0, min(column - 1 - _WINDOW // 2, len(text) - _WINDOW))
    shown = text[start : start + _WINDOW]
    return f"\n  {shown}\n  {' ' * (column - 1 - start)}^"
