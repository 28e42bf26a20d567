"""How a circuit becomes answers: the stages from a circuit to evaluators, and the ladders from rows to numbers.

A circuit computes a polynomial g in z_1 … z_n, of degree at most 1 in each (no *squares*), whose coefficient of
Π_{i∈S} z_i is proportional to Pr(S). A *row* of evidence has a code for every variable: 1 (in), 0 (out) or −1
(unobserved). Let A be the set of variables that are in. We want g(row), the sum of the coefficients of all sets that
agree with the row: the coefficient of t^|A| in g, where z_i is t if variable i is in, 0 if it is out, and 1 if it is
unobserved. A circuit is *decomposable* if the factors of every product share no variable. Then no polynomials in t are
needed: a single evaluation with numbers computes g(row), once the circuit is *homogenized*, so that all terms of a sum
have the same variables (a term that lacks z_i gets its complement ȳ_i as a factor, which is 0 if variable i is in, and
1 otherwise). Most circuits are decomposable, and are compiled as follows:

    given ─simplify→ circuit ─homogenize→ homogenized ─lower→ program ─condense, certify→ float64 → scaled
                                               homogenized ─────────────────────────────→ exact
    rows ─float64→ Values ─rows out of range→ scaled ─┐
                          └──────all uncertain rows──→ exact → Values, to be divided by g(1)

A *stage* is a function of earlier stages. It runs once, when its result is first needed: `compiled.program` is the
result of the stage "program". The last stages are *evaluators*: `evaluate(rows, rtol)`, with further arguments for
some questions, returns answers with bounds on their errors, computed in some number system. A *rung* names an evaluator
and the rows that it takes. A *ladder* is a list of rungs, cheapest first: rows climb it until their bound is good
enough. There is a ladder for every kind of question, and one function, `climb`, for all ladders. `Model.explain` prints
these tables.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from pgcc.errors import PgccError, SemanticsError
from pgcc.ir.circuit import Circuit
from pgcc.ir.facts import multiplications
from pgcc.ir.node import Node
from pgcc.kernels.policy import tier
from pgcc.passes.expand_det import expand_small
from pgcc.passes.homogenize import homogenize
from pgcc.passes.pipeline import simplify
from pgcc.program import strategy
from pgcc.program.lower import lower, lower_with_nodes
from pgcc.program.program import Program
from pgcc.progress import waiting
from pgcc.rings.balls import Exact
from pgcc.rings.direct import Float64, Scaled
from pgcc.rings.identity import Multiaffinity, multiaffine_sums, refuse_squares, squares_of
from pgcc.rings.paper import evaluate_literally
from pgcc.rings.series import Series
from pgcc.rings.values import Values

# -- from a circuit to evaluators ------------------------------------------------------------------------------------


class Stage(NamedTuple):
    """A stage of the compiler: `compiled.<name>` is `make(compiled.<input>, …)`.

    Attributes
    ----------
    name : str
        The name of the stage.
    inputs : str
        Attributes of `Compiled`, separated by spaces: earlier stages, `given`, `tested`, `degree`, `values` or
        `values_of_part`.
    make : function, or str
        A text "module:function" is imported when the stage runs, because not every question needs it.
    law : str
        What is true of the result.
    """

    name: str
    inputs: str
    make: Callable[..., Any] | str
    law: str


# fmt: off
# Any circuit: g(row) is a coefficient of a polynomial in t. Of these stages, decomposable circuits need only "circuit",
# unless a method is asked for by name.
ANY = [
    Stage("circuit", "given", simplify,
          "the same polynomial, by a circuit that is not larger"),
    Stage("expanded", "circuit", partial(expand_small, sized_only=True),
          "determinants of which exactly k children are in (k-DPPs), if they are small, as sums and products"),
    Stage("lowered", "expanded", lower_with_nodes,
          "at most one instruction per node, for polynomials in t; and the node of each instruction"),
    Stage("squares", "expanded lowered", squares_of,
          "which values contain the square of a variable, by a test modulo random primes"),
    Stage("sums", "expanded lowered tested", multiaffine_sums,
          "the sums without squares although products below them share variables: they bound the degree in t"),
    Stage("series", "circuit lowered sums", Series.of,
          "the program over truncated polynomials in t"),
]
# Decomposable circuits: one number per node is enough.
IF_DECOMPOSABLE = [
    Stage("homogenized", "circuit", homogenize,
          "every term of a sum names every variable of the sum"),
    Stage("program", "homogenized", lower,
          "at most one instruction per node, one slot per value"),
    Stage("float64", "program", Float64,
          "the program, and its values in fewer, larger instructions and shared slots, with their certificate"),
    Stage("scaled", "float64", Scaled,
          "the program, not condensed, over numbers m·2^(256·e)"),
    Stage("exact", "homogenized", partial(Exact, homogeneous=True),
          "the circuit in balls and rationals"),
    Stage("reverse", "float64", "pgcc.evaluate.marginals:find_reverse",
          "the program, not condensed, with its derivatives by every leaf; then condensed, in float64"),
    Stage("scaled_reverse", "float64", "pgcc.evaluate.marginals:find_scaled_reverse",
          "the same over scaled numbers"),
    Stage("one_by_one", "values", "pgcc.evaluate.marginals:OneByOne",
          "a marginal is a quotient of two values"),
    Stage("counting", "scaled homogenized values_of_part", "pgcc.evaluate.counting:find_counting",
          "the program over polynomials in t of scaled numbers, with t·z_i for every z_i that counts"),
    Stage("long_counting", "scaled", "pgcc.evaluate.counting_long:find_long",
          "the same over long polynomials without their negligible tails"),
    Stage("exact_counting", "exact", "pgcc.evaluate.counting_exact:CountingExact",
          "the same in balls and rationals"),
    Stage("sampler", "float64", "pgcc.evaluate.sampling:find_top_down",
          "one choice at every sum, from the root down"),
]
# All other circuits: every value is a polynomial in t.
IF_NOT_DECOMPOSABLE = [
    Stage("exact", "circuit degree", lambda circuit, degree: Exact(circuit, False, degree),
          "the circuit in balls and rationals, at one point more than its degree in t"),
    Stage("one_by_one", "values", "pgcc.evaluate.marginals:OneByOne",
          "a marginal is a quotient of two values"),
    Stage("exact_counting", "exact", "pgcc.evaluate.counting_exact:CountingExact",
          "the circuit over polynomials in t of balls and rationals, with t·z_i for every z_i that counts"),
]
# fmt: on
# The stages by whether a circuit is decomposable.
STAGES = {
    True: {stage.name: stage for stage in ANY + IF_DECOMPOSABLE},
    False: {stage.name: stage for stage in ANY + IF_NOT_DECOMPOSABLE},
}


class Compiled:
    """A circuit with the results of its stages, each made when it is first needed, and its values by the ladders.

    Parameters
    ----------
    circuit : Circuit
        The circuit to compile.
    validate : bool
        Test a circuit that is not decomposable for squares, and refuse it if it has one.

    Attributes
    ----------
    given : Circuit
        The circuit as it was given.
    decomposable : bool
        Whether no two factors of a product share a variable.
    work : int
        The approximate number of multiplications per row.
    seconds : dict
        The stages made so far, and how long each took, not counting earlier stages.
    """

    circuit: Circuit
    expanded: Circuit
    lowered: tuple[Program, list[Node]]
    squares: Multiaffinity
    series: Series
    homogenized: Circuit
    program: Program
    float64: Float64
    scaled: Scaled
    exact: Exact

    def __init__(self, circuit: Circuit, validate: bool = True):
        self.given, self.validate = circuit, validate
        self.seconds: dict[str, float] = {}
        self._make(ANY[0])
        self.work = multiplications(self.circuit)
        self.decomposable = self.circuit.overlap is None
        if validate and not self.decomposable:
            refuse_squares(self.circuit, self.squares)

    def __getattr__(self, name: str) -> Any:
        """Make the result of a stage, which is an ordinary attribute from then on."""
        stage = STAGES[self.decomposable].get(name) if "decomposable" in self.__dict__ else None
        if stage is None:
            raise AttributeError(f"a circuit of this kind has no stage {name!r}")
        return self._make(stage)

    def _make(self, stage: Stage) -> Any:
        inputs = [getattr(self, name) for name in stage.inputs.split()]
        start, make = perf_counter(), stage.make
        if isinstance(make, str):
            module, function = make.split(":")
            make = getattr(import_module(module), function)
        with waiting(f"compiling, stage {stage.name}: {stage.law}"):
            result = self.__dict__[stage.name] = make(*inputs)
        self.seconds[stage.name] = perf_counter() - start
        return result

    @property
    def tested(self) -> Multiaffinity | None:
        """The result of the test for squares; None if the circuit is decomposable or should not be tested."""
        return self.squares if self.validate and not self.decomposable else None

    @property
    def multiaffine(self) -> bool:
        """Whether no variable is squared, by structure or by the test; False if it should not be tested."""
        return self.decomposable or (self.tested is not None and not self.tested.squared)

    @property
    def degree(self) -> int | None:
        """None if no variable is squared, so that the degree in t is at most |A|; otherwise the circuit's degree."""
        return None if self.multiaffine else self.circuit.facts.degree

    @staticmethod
    def values_of_part(part: Circuit) -> Callable[[np.ndarray, float], Values]:
        """The function `values` of a part of a circuit, compiled by itself."""
        return Compiled(part, validate=False).values

    # -- answers: see the ladders below ------------------------------------------------------------------------------

    def values(self, rows: np.ndarray, rtol: float, method: str = "auto") -> Values:
        """g of int8 rows of evidence (1, 0, −1), to `rtol` and not divided by the total.

        By a single method, nothing falls back on another, so check the bounds.
        """
        with tier(self.work * len(rows)):
            return climb(self.ladder(method), self, rows, rtol)[0]

    def ladder(self, method: str) -> list[Rung]:
        """The rungs that compute values: all of them by "auto", or those of one method."""
        if strategy.check_method(method) == "auto":
            return VALUES[self.decomposable]
        rungs = BY_METHOD[method]
        if any(rung.stage not in STAGES[self.decomposable] for rung in rungs):
            raise PgccError(f"method {method!r} needs a decomposable circuit: this one is not (see explain())")
        return rungs

    def total(self, rtol: float, method: str = "auto") -> Values:
        """g(1) to `rtol`; it must be positive."""
        with waiting("computing the total g(1)"):
            values = self.values(np.full((1, len(self.circuit.variables)), -1, np.int8), rtol, method)
        if values.mantissa[0] <= 0.0:
            size = "0" if values.mantissa[0] == 0.0 else f"{values.floats()[0]:.6g}"
            raise SemanticsError(
                f"the total g(1) is {size}: it must be positive to be a distribution; "
                "normalize=False keeps the polynomial as it is"
            )
        return values


# -- from rows to numbers --------------------------------------------------------------------------------------------


class Rung(NamedTuple):
    """An evaluator on a ladder, `compiled.<stage>`; skipped if that is None, because it does not apply to the circuit.

    Attributes
    ----------
    method : str
        Its name in reports; that of a rung for values is also a `method=`.
    stage : str
        The stage that evaluates.
    who : str
        Which rows climb to it, in words.
    takes : function, optional
        Which of the rows that are still uncertain it takes: (compiled, rung, rows, known, *asked) → mask, where `known`
        is what earlier rungs have found, or None. By default, it takes all of them.
    run : function, optional
        (stage, rows, rtol, known, *asked) → answers. By default, `stage.evaluate(rows, rtol, *asked)`.
    """

    method: str
    stage: str
    who: str
    takes: Callable[..., np.ndarray] | None = None
    run: Callable[..., Any] | None = None


def left_the_range(compiled: Any, rung: Rung, rows: np.ndarray, known: Values) -> np.ndarray:
    """Rows whose bound failed because of overflow or underflow: a wider range does not help those that `known.lost`
    marks, which have lost too many digits by cancellation."""
    return np.ones(len(rows), bool) if known.lost is None else ~known.lost


def needs_fewest(compiled: Compiled, rung: Rung, rows: np.ndarray, known: Values | None) -> np.ndarray:
    """Rows for which this method needs the fewest coefficients in t: "top" the highest powers, "bottom" the lowest.

    No rows if there are determinants: float64 certifies no determinant of polynomials.
    """
    if compiled.circuit.facts.dets:
        return np.zeros(len(rows), bool)
    return strategy.choose((rows == 1).sum(axis=1), compiled.series.lengths(rows)) == rung.method


def counts_many(
    compiled: Any, rung: Rung, rows: np.ndarray, known: Any, counted: np.ndarray, atol: float | None
) -> np.ndarray:
    """Rows that count many unobserved variables, where an absolute error is allowed."""
    many = (counted & (rows < 0)).sum(axis=1) > strategy.LONG_COUNT
    return many & (atol is not None)


# The ladder of each question, by whether the circuit is decomposable.
# fmt: off
_BALLS = Rung("ball", "exact", "whatever is left, with as many bits as it takes")
# g(row). A determinant that loses digits in float64 is recomputed in pairs of doubles, on the same rung.
VALUES = {
    True: [
        Rung("direct", "float64", "all rows"),
        Rung("direct", "scaled", "rows that left the range of doubles", left_the_range),
        _BALLS,
    ],
    False: [
        Rung("top", "series", "rows that need fewer of the top coefficients", needs_fewest,
             lambda series, rows, *_: series.top(rows)),
        Rung("bottom", "series", "rows that need fewer of the bottom coefficients", needs_fewest,
             lambda series, rows, *_: series.bottom(rows)),
        _BALLS,
    ],
}
# Pr(X_i = 1 | row) of every variable. The last rung gets what the others know, and computes only the rest.
_ONE_BY_ONE = Rung("one by one", "one_by_one", "variables that are still uncertain",
                   run=lambda one_by_one, rows, rtol, known: one_by_one.evaluate(rows, rtol, known))
MARGINALS = {
    True: [
        Rung("reverse", "reverse", "all rows"),
        Rung("reverse", "scaled_reverse", "rows with a variable that is uncertain"),
        _ONE_BY_ONE,
    ],
    False: [_ONE_BY_ONE],
}
# Pr(row, |S ∩ T| = k) of every k; `asked` is T, as a mask of the variables, and an absolute error or None.
_BALL_COUNTS = Rung("ball", "exact_counting", "whatever is left, with as many bits as it takes")
COUNTS = {
    True: [
        Rung("tails cut off", "long_counting", "rows of many variables, where an absolute error is allowed",
             counts_many),
        Rung("polynomials", "counting", "all other rows"),
        _BALL_COUNTS,
    ],
    False: [_BALL_COUNTS],
}
# Σ share · ∂ log g(row). The rungs are attributes of a `pgcc.evaluate.gradient.Differentiator`, not of a `Compiled`:
# training changes the weights of a circuit at every step, and would have to compile it each time.
GRADIENTS = {
    True: [
        Rung("adjoints", "float64", "all rows"),
        Rung("adjoints", "scaled", "uncertain rows; all rows if there are determinants, where there is no rung below"),
    ],
    False: [Rung("points", "points", "all rows: derivatives of coefficients are means over complex points")],
}
# The paper's own evaluation, for comparison only: no ladder falls back on it.
_PAPER = Rung("fft", "circuit", "all rows", run=lambda circuit, rows, *_: evaluate_literally(circuit, rows))
# fmt: on


def _by_method() -> dict[str, list[Rung]]:
    """The rungs of every method for values. The first one of a method takes all rows."""
    found: dict[str, list[Rung]] = {}
    for rung in dict.fromkeys([*VALUES[True], *VALUES[False], _PAPER]):
        rungs = found.setdefault(rung.method, [])
        rungs.append(rung if rungs else rung._replace(takes=None))
    return found


BY_METHOD = _by_method()


def climb(ladder: Sequence[Rung], compiled: Any, rows: Any, rtol: float, *asked: Any) -> tuple[Any, dict[str, int]]:
    """Answer all rows to `rtol`: each rung takes rows that the rungs below could not guarantee.

    Parameters
    ----------
    ladder : sequence of Rung
        The rungs, lowest first.
    compiled : Compiled
        A compiled circuit, or anything else with the stages of the ladder.
    rows : int8 array
        Evidence (1, 0, −1), or anything else with a length that can be indexed by row numbers.
    rtol : float
        The relative error to guarantee.
    asked
        Further arguments of the question, which are passed to every rung.

    Returns
    -------
    Values, Posteriors, Counts or Gradients, and the number of rows by method (rungs of one method share their rows).
    Rows that are uncertain after the last rung keep their bound, so check it. Answers are indexed by rows, and have
    `put`, `unknown(rows)` and `uncertain(rtol)`. Without rows, the answers are empty `Values`.
    """
    answers: Any = None
    used: dict[str, int] = {}
    uncertain = np.arange(len(rows))
    for rung in ladder:
        used.setdefault(rung.method, 0)
        taken = uncertain
        if rung.takes is not None and len(uncertain):
            known = None if answers is None else answers[uncertain]
            taken = uncertain[rung.takes(compiled, rung, rows[uncertain], known, *asked)]
        stage = getattr(compiled, rung.stage) if len(taken) else None
        if stage is None:
            continue
        used[rung.method] = max(used[rung.method], len(taken))
        some = rows if len(taken) == len(rows) else rows[taken]
        if rung.run is None:
            found = stage.evaluate(some, rtol, *asked)
        else:
            found = rung.run(stage, some, rtol, None if answers is None else answers[taken], *asked)
        if answers is None and len(taken) < len(rows):
            answers = found.unknown(len(rows))
        if answers is None:
            answers = found
        else:
            answers.put(taken, found)
        uncertain = answers.uncertain(rtol)
    return (Values.empty(len(rows)) if answers is None else answers), used
