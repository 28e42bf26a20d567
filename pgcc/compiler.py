"""How a circuit becomes answers: the stages from a circuit to evaluators, and the ladders from rows to numbers.

A circuit is a directed acyclic graph of constants, variables, weighted sums, products and determinants (`ir/node.py`).
It computes a polynomial g in z_1 … z_n that is *multiaffine*: of degree at most 1 in each variable (it has no
*squares*). For every set S of variables, the coefficient of Π_{i∈S} z_i is proportional to Pr(S).

A *row* of evidence has a code for every variable: 1 (in), 0 (out) or −1 (unobserved). We write g(row) for the sum of
the coefficients of all sets that agree with the row. Let A be the set of variables that are in. Then g(row) is the
coefficient of t^|A| in the polynomial in t that g becomes if z_i is t where variable i is in, 0 where it is out, and 1
where it is unobserved. If nothing is observed, this is g(1, …, 1), the *total*, written g(1): Pr(row) = g(row) / g(1).

A circuit is *decomposable* if the factors of every product share no variable (nor do the children of a determinant).
Then no polynomials in t are needed: one evaluation with numbers computes g(row), once the circuit is *homogenized*
(smoothed, in the language of probabilistic circuits), so that all terms of a sum have the same variables. A term that
lacks z_i gets its complement ȳ_i as a factor, which is 0 if variable i is in, and 1 otherwise. Most circuits are
decomposable. Their stages, and the way of their rows:

    stages: given ─simplify→ circuit ─homogenize→ homogenized ─lower→ program ─condense, analyse→ float64 → scaled
                                                       └───────────────────────────────────────→ exact
    rows:   float64 ─(out of range)→ zeros → scaled ─(still uncertain)→ exact;  the values are then divided by g(1)

A *stage* is a function of earlier stages. It runs once, when its result is first needed: `compiled.program` is the
result of the stage "program". Some stages are *evaluators*: they have a method `evaluate(rows, rtol)`, with further
arguments for some questions, which returns answers with bounds on their relative errors, computed in some number system
(float64, scaled numbers, polynomials in t, balls: see `rings/`). An answer is *certain* if its bound is at most `rtol`.

A *rung* names an evaluator and the rows that it takes. A *ladder* is a list of rungs, cheapest first: rows climb it
until their answers are certain. There are four ladders, for values g(row), marginals, counts and gradients (and two for
the values and marginals of soft evidence, see `evaluate.soft`), and one function, `climb`, for all of them.
`Model.explain` prints the stages made so far and the ladders.

(Large batches of a decomposable circuit without determinants, and all logarithms of its values, take a shortcut: one
kernel evaluates, certifies and divides, and only the rows that it does not certify climb the ladder. See
`queries.probability.Plan`.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from pgcc.errors import PgccError, SemanticsError
from pgcc.evaluate.direct import Float64, Scaled
from pgcc.evaluate.soft import Reweighted, SoftRows, runs_of
from pgcc.ir.blocks import find_blocks, has_one_state
from pgcc.ir.circuit import Circuit, over_columns
from pgcc.ir.facts import multiplications
from pgcc.ir.node import Node, Op
from pgcc.kernels.policy import tier
from pgcc.locks import cached_property
from pgcc.methods import check_method
from pgcc.passes.building import sum_of
from pgcc.passes.expand_det import expand_small
from pgcc.passes.homogenize import homogenize
from pgcc.passes.pipeline import simplify
from pgcc.program.lower import lower, lower_with_nodes
from pgcc.program.program import Program
from pgcc.progress import waiting
from pgcc.rings.exact_values import Exact
from pgcc.rings.identity import Multiaffinity, multiaffine_sums, refuse_mixed, refuse_squares, squares_of
from pgcc.rings.paper import evaluate_literally
from pgcc.rings.series import Series
from pgcc.rings.values import Values

# -- from a circuit to evaluators ------------------------------------------------------------------------------------


_LARGE = 256  # edges per column from which on a walk down pays (`benchmarks.networks`)


class Stage(NamedTuple):
    """A stage of the compiler: `compiled.<name>` is `make(compiled.<input>, …)`.

    Attributes
    ----------
    name : str
        The name of the stage.
    inputs : str
        Attributes of `Compiled`, separated by spaces: earlier stages, `given`, `tested`, `degree`, or the functions
        `closed`, `values`, `values_of_part` and `similar`, which evaluators may call.
    make : function, or str
        A text "module:function" is imported when the stage runs, because not every question needs it. The result is
        None if the stage does not apply to the circuit; rungs on it are then skipped.
    result : str
        What the result is, or what is true of it.
    """

    name: str
    inputs: str
    make: Callable[..., Any] | str
    result: str


# fmt: off
# Any circuit: g(row) is a coefficient of a polynomial in t. Decomposable circuits need only the first of these stages,
# and the others for method="top" and "bottom".
FOR_ANY_CIRCUIT = [
    Stage("circuit", "given", simplify,
          "the same polynomial, as a circuit that is no larger"),
    Stage("expanded", "circuit", partial(expand_small, sized_only=True),
          "small determinants of a fixed size (k-DPPs) are expanded into sums and products"),
    Stage("lowered", "expanded", lower_with_nodes,
          "the program for polynomials in t, with at most one instruction per node; and the node of each instruction"),
    Stage("squares", "expanded lowered", squares_of,
          "which values contain the square of a variable, by a test modulo random primes"),
    Stage("sums", "expanded lowered tested", multiaffine_sums,
          "the sums that are known to be multiaffine although not decomposable: they bound degrees in t"),
    Stage("series", "circuit lowered sums", Series.of,
          "evaluates the program over truncated polynomials in t"),
    Stage("reweighted", "given similar", Reweighted,
          "compiles the circuit again for soft evidence, with each variable z_i weighed by its likelihoods"),
]
# Decomposable circuits: one number per node is enough.
IF_DECOMPOSABLE = [
    Stage("homogenized", "circuit", homogenize,
          "every term of a sum names every variable of the sum"),
    Stage("program", "homogenized", lower,
          "at most one instruction per node, one slot of memory per value"),
    Stage("float64", "program", Float64,
          "evaluates a condensed form of the program in float64; bounds on its rounding errors are its certificate"),
    Stage("zeros", "program", "pgcc.rings.zeros:Zeros",
          "which values are exactly 0, by bits: 64 rows at a time"),
    Stage("scaled", "float64", Scaled,
          "evaluates the program over scaled numbers m·2^(256·e), which do not overflow"),
    Stage("exact", "homogenized", partial(Exact, homogeneous=True),
          "evaluates the circuit in ball arithmetic (midpoint ± radius, of any precision) and in rationals"),
    Stage("reverse", "float64 outs", "pgcc.evaluate.all_marginals:find_reverse",
          "the reverse pass: derivatives with respect to every leaf, condensed, in float64"),
    Stage("reverse_zeros", "reverse zeros closed", "pgcc.evaluate.all_marginals:find_reverse_zeros",
          "which derivatives are exactly 0, by bits"),
    Stage("scaled_reverse", "float64 reverse", "pgcc.evaluate.all_marginals:find_scaled_reverse",
          "the reverse pass over scaled numbers"),
    Stage("one_by_one", "values outs", "pgcc.evaluate.all_marginals:OneByOne",
          "computes each marginal as a quotient of two values"),
    Stage("counting", "scaled homogenized values_of_part", "pgcc.evaluate.counting:find_counting",
          "evaluates the program over polynomials in t of scaled numbers, with t·z_i for every variable i to count"),
    Stage("exact_counting", "exact", "pgcc.evaluate.counting_exact:CountingExact",
          "the same in balls and rationals"),
    Stage("descent", "float64", "pgcc.evaluate.descent:find_descent",
          "follows the one term of every sum that a complete row leaves, from the root down"),
    Stage("sampler", "float64", "pgcc.evaluate.top_down:find_top_down",
          "draws samples from the root down, by one choice at every sum"),
    Stage("max_product", "homogenized program", "pgcc.evaluate.max_product:find_max_product",
          "the most probable assignments in one pass, if no two terms of a sum are positive at the same assignment"),
]
# All other circuits: every value is a polynomial in t.
IF_NOT_DECOMPOSABLE = [
    Stage("exact", "circuit degree", lambda circuit, degree: Exact(circuit, False, degree),
          "evaluates the circuit in balls and rationals at one point more than its degree in t, and interpolates"),
    Stage("one_by_one", "values outs", "pgcc.evaluate.all_marginals:OneByOne",
          "computes each marginal as a quotient of two values"),
    Stage("exact_counting", "exact", "pgcc.evaluate.counting_exact:CountingExact",
          "evaluates the circuit over polynomials in t of balls and rationals, with t·z_i for every variable to count"),
]
# fmt: on
# The stages by name. (Key: is the circuit decomposable?)
STAGES = {
    True: {stage.name: stage for stage in FOR_ANY_CIRCUIT + IF_DECOMPOSABLE},
    False: {stage.name: stage for stage in FOR_ANY_CIRCUIT + IF_NOT_DECOMPOSABLE},
}


class Compiled:
    """A circuit with the results of its stages, each made when it is first needed.

    Parameters
    ----------
    circuit : Circuit
        The circuit to compile.
    validate : bool
        Whether to test a circuit that is not decomposable for squares, and to refuse it if it has one.

    Attributes
    ----------
    given : Circuit
        The circuit as it was given.
    decomposable : bool
        Whether no two factors of a product share a variable.
    blocks : Blocks or None
        The columns of variables with states, if every term is proved to have one column of each.
    outs : int array
        The columns for which being out is a state with a name: marginals say how probable that is, too.
    work, edges : int
        The approximate number of multiplications per row, and the number of edges, of the stage "circuit".
    seconds : dict
        The stages made so far, and how long each took, not counting earlier stages.
    """

    # the stages that are used elsewhere
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
    max_product: Any
    descent: Any

    def __init__(self, circuit: Circuit, validate: bool = True):
        self.given, self.validate = circuit, validate
        self.seconds: dict[str, float] = {}
        self._make(FOR_ANY_CIRCUIT[0])  # before it is known which stages there are
        self.blocks = find_blocks(self.circuit)
        self.outs = self.circuit.domains.outs if self.circuit.domains else np.zeros(0, np.int64)
        settled = self.blocks is not None or has_one_state(self.circuit)
        if self.blocks is None:
            self.circuit = over_columns(self.circuit)
        self.work, self.edges = multiplications(self.circuit), self.circuit.edges
        self.decomposable = self.circuit._overlap is None  # no two factors of a product share a variable
        if validate and not self.decomposable:
            refuse_squares(self.circuit, self.squares)
        if validate and not settled:
            refuse_mixed(circuit, self.lowered[0])

    def __getattr__(self, name: str) -> Any:
        """Make the result of a stage, which is an ordinary attribute from then on."""
        stage = STAGES[self.decomposable].get(name) if "decomposable" in self.__dict__ else None
        if stage is None:
            raise AttributeError(f"a compiled circuit of this kind has no stage {name!r}")
        return self._make(stage)

    def _make(self, stage: Stage) -> Any:
        inputs = [getattr(self, name) for name in stage.inputs.split()]
        start, make = perf_counter(), stage.make
        if isinstance(make, str):
            module, function = make.split(":")
            make = getattr(import_module(module), function)
        with waiting(f"compiling, stage {stage.name}: {stage.result}"):
            result = self.__dict__[stage.name] = make(*inputs)
        self.seconds[stage.name] = perf_counter() - start
        return result

    @property
    def is_large(self) -> bool:
        """Whether a walk from the root down, over some numbers for each column, takes far less time than all edges."""
        return self.decomposable and self.edges > _LARGE * len(self.circuit.variables) and self.descent is not None

    @property
    def tested(self) -> Multiaffinity | None:
        """`squares`, where that test is needed and wanted: None if decomposable, or if `validate` is False."""
        return self.squares if self.validate and not self.decomposable else None

    @property
    def multiaffine(self) -> bool:
        """Whether no variable is squared, by structure or by the test; False also if that is unknown."""
        return self.decomposable or (self.tested is not None and not self.tested.squared)

    @property
    def degree(self) -> int | None:
        """A bound on the degree in t, for interpolation. None: |A|, row by row, which holds if nothing is squared."""
        return None if self.multiaffine else self.circuit.facts.degree

    @staticmethod
    def values_of_part(part: Circuit) -> Callable[[np.ndarray, float], Values]:
        """The function `values` of a subcircuit, compiled by itself: counts need the values of single determinants."""
        return Compiled(part, validate=False).values

    def similar(self, circuit: Circuit) -> Compiled:
        """Another circuit, compiled in the same way."""
        return Compiled(circuit, self.validate)

    @cached_property
    def with_empty(self) -> Compiled:
        """The circuit without the constant that is subtracted from it: the one before `Circuit.exclude_empty`."""
        root = self.circuit.root
        terms = zip(root.weights, root.children, strict=True)
        return self.similar(
            Circuit(sum_of(term for term in terms if term[1].op is not Op.CONST), self.circuit.variables)
        )

    def closed(self, rows: Any) -> Any:
        """Rows of evidence with all that they imply about variables with states (see `Blocks`)."""
        if self.blocks is None:
            return rows
        if isinstance(rows, SoftRows):
            return SoftRows(self.blocks.closed(rows.codes), rows.likelihoods)
        return self.blocks.closed(rows)

    # -- answers: see the ladders below ------------------------------------------------------------------------------

    def values(self, rows: np.ndarray | SoftRows, rtol: float, method: str = "auto") -> Values:
        """g(row) for rows of evidence, to `rtol` and not divided by the total.

        With a single method, no other is used as a fallback, so check the bounds.
        """
        ladder = SOFT_VALUES[self.decomposable] if isinstance(rows, SoftRows) else self.ladder(method)
        with tier(self.work * len(rows)):
            return climb(ladder, self, rows, rtol)[0]

    def ladder(self, method: str) -> list[Rung]:
        """The rungs that compute values: all of them by "auto", or those of one method."""
        if check_method(method) == "auto":
            return LARGE_VALUES if self.is_large else VALUES[self.decomposable]
        if method not in methods_for(self.decomposable):
            raise PgccError(f"method {method!r} needs a decomposable circuit: this one is not")
        return BY_METHOD[method]

    def total(self, rtol: float, method: str = "auto") -> Values:
        """g(1) to `rtol`; it must be positive."""
        with waiting("computing the total g(1)"):
            values = self.values(np.full((1, len(self.circuit.variables)), -1, np.int8), rtol, method)
        if values.mantissa[0] <= 0.0:
            size = "0" if values.mantissa[0] == 0.0 else f"{values.floats()[0]:.6g}"
            raise SemanticsError(
                f"the total g(1) is {size}: it must be positive to be a distribution",
                advice="normalize=False keeps the polynomial as it is",
            )
        return values


# -- from rows to numbers --------------------------------------------------------------------------------------------


class Rung(NamedTuple):
    """An evaluator on a ladder.

    Attributes
    ----------
    method : str
        Its name in reports. For a rung of `VALUES`, it is also a value of `method=`, and stands in `pgcc.methods`.
    stage : str
        The attribute of `compiled` that evaluates, as `run` says. If that is None, the rung is skipped.
    which : str
        Which rows climb to it, in words.
    takes : function, optional
        Which of the rows that are still uncertain it takes: (compiled, rung, rows, known, *extra) → mask, where `known`
        is what earlier rungs have found for these rows, or None. By default, it takes all of them.
    run : function, optional
        (evaluator, rows, rtol, known, *extra) → answers. By default, `evaluator.evaluate(rows, rtol, *extra)`.
    """

    method: str
    stage: str
    which: str
    takes: Callable[..., np.ndarray] | None = None
    run: Callable[..., Any] | None = None


def left_the_range(compiled: Any, rung: Rung, rows: np.ndarray, known: Values) -> np.ndarray:
    """Rows that a wider range of exponents may help. `known.lost` marks the others, which failed by cancellation."""
    return np.ones(len(rows), bool) if known.lost is None else ~known.lost


def needs_fewest(compiled: Compiled, rung: Rung, rows: np.ndarray, known: Values | None) -> np.ndarray:
    """Rows for which this method needs fewer coefficients: "top" takes the highest powers of t, "bottom" the lowest.

    If the polynomial in t has degree at most D, by the degrees of sums and products, these are its top D − |A| + 1
    coefficients (fewer if subcircuits are known to be multiaffine), or its bottom |A| + 1. A row takes one of the two.
    No rows if there are determinants: float64 cannot certify those of polynomials.
    """
    if compiled.circuit.facts.dets:
        return np.zeros(len(rows), bool)
    fewer_at_the_top = compiled.series.lengths(rows) <= (rows == 1).sum(axis=1) + 1
    return fewer_at_the_top if rung.method == "top" else ~fewer_at_the_top


# The four ladders. (Key: is the circuit decomposable?)
# fmt: off
_BALLS = Rung("ball", "exact", "whatever is left, in arbitrary precision")
# g(row). The method "direct" is one number per node. A determinant that loses digits in float64 is recomputed in
# double-double arithmetic, on the same rung.
VALUES = {
    True: [
        Rung("direct", "float64", "all rows"),
        Rung("direct", "zeros", "rows that left the range of doubles: those without a possible term are 0",
             left_the_range, lambda zeros, rows, rtol, known: zeros.settle_values(rows, known)),
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
# The same for large circuits whose sums choose by literals: a complete row visits few nodes of them.
LARGE_VALUES = [
    Rung("direct", "descent", "rows in which all is observed",
         lambda compiled, rung, rows, *_: (rows >= 0).all(axis=1)),
    *VALUES[True],
]
# Pr(X_i = 1 | row) of every variable. The last rung gets what the others know, and computes only the rest.
_ONE_BY_ONE = Rung("one by one", "one_by_one", "variables that are still uncertain",
                   run=lambda one_by_one, rows, rtol, known: one_by_one.evaluate(rows, rtol, known))
MARGINALS = {
    True: [
        Rung("reverse", "reverse", "all rows"),
        Rung("reverse", "reverse_zeros", "rows with a variable that is uncertain: what has no possible term is 0",
             run=lambda zeros, rows, rtol, known: zeros.settle_posteriors(rows, known)),
        Rung("reverse", "scaled_reverse", "rows with a variable that is uncertain"),
        _ONE_BY_ONE,
    ],
    False: [_ONE_BY_ONE],
}
# The same two for rows with soft evidence. Likelihoods change leaves only, which scaled numbers can do row by row; what
# they cannot compute climbs the ladder of the circuit that is compiled for these likelihoods.
def _each_reweighted(ladders: dict[bool, list[Rung]]) -> Rung:
    """The last rung: these ladders of the circuit for the likelihoods of each row."""

    def run(reweighted: Reweighted, rows: SoftRows, rtol: float, *_: Any) -> Any:
        answers = None
        for some in runs_of(rows.likelihoods):
            compiled = reweighted.by(rows.likelihoods[some.start])
            found = climb(ladders[compiled.decomposable], compiled, rows.codes[some], rtol)[0]
            answers = found.unknown(len(rows)) if answers is None else answers
            answers.put(some, found)
        return answers

    return Rung("reweighted", "reweighted", "whatever is left, one circuit after another", run=run)


_BY_VALUES, _BY_MARGINALS = _each_reweighted(VALUES), _each_reweighted(MARGINALS)
SOFT_VALUES = {
    True: [
        Rung("direct", "scaled", "all rows, if there are no determinants",
             lambda compiled, rung, rows, *_: np.full(len(rows), not compiled.program.has_det)),
        _BY_VALUES,
    ],
    False: [_BY_VALUES],
}
SOFT_MARGINALS = {True: [Rung("reverse", "scaled_reverse", "all rows"), _BY_MARGINALS], False: [_BY_MARGINALS]}
# Pr(row, |S ∩ T| = k) of every k. The extra arguments are the set T of variables to count, as a mask, and `atol`, an
# absolute error, or None.
_BALL_COUNTS = Rung("ball", "exact_counting", "whatever is left, in arbitrary precision")
COUNTS = {
    True: [
        Rung("polynomials", "counting", "all rows"),
        _BALL_COUNTS,
    ],
    False: [_BALL_COUNTS],
}
# Σ_row share[row] · ∂ log g(row), where the user gives each row its share of the sum, with respect to the weights and
# constants of the circuit. The rungs name attributes of a `Differentiator` (`pgcc.evaluate.differentiation`), not of a
# `Compiled`: training changes the weights of a circuit at every step, so that it would have to be compiled each time.
GRADIENTS = {
    True: [
        Rung("adjoints", "float64", "all rows"),
        Rung("adjoints", "scaled", "uncertain rows; all rows if there are determinants, for which `float64` is None"),
    ],
    False: [Rung("points", "points", "all rows: coefficients of t by a discrete Fourier transform over points")],
}
# The evaluation in the paper (Zhang, Juba, Van den Broeck, ICML 2021), for comparison: a method that is on no ladder.
_PAPER = Rung("fft", "circuit", "all rows", run=lambda circuit, rows, *_: evaluate_literally(circuit, rows))
# fmt: on


def _by_method() -> dict[str, list[Rung]]:
    """The rungs of every method for values. The first one of a method takes all rows, as none comes before it."""
    found: dict[str, list[Rung]] = {}
    for rung in dict.fromkeys([*VALUES[True], *VALUES[False], _PAPER]):
        rungs = found.setdefault(rung.method, [])
        rungs.append(rung if rungs else rung._replace(takes=None))
    return found


BY_METHOD = _by_method()


def methods_for(decomposable: bool) -> list[str]:
    """The methods for circuits of this kind."""
    return [name for name, rungs in BY_METHOD.items() if all(rung.stage in STAGES[decomposable] for rung in rungs)]


def climb(ladder: Sequence[Rung], compiled: Any, rows: Any, rtol: float, *extra: Any) -> tuple[Any, dict[str, int]]:
    """Answer rows to `rtol`: each rung takes rows whose answers are still uncertain.

    Parameters
    ----------
    ladder : sequence of Rung
        The rungs, cheapest first.
    compiled : Compiled
        A compiled circuit, or anything else with the stages of the ladder.
    rows : int8 array
        Evidence (1, 0, −1), or anything else with a length that can be indexed by row numbers.
    rtol : float
        The relative error to guarantee.
    extra
        Further arguments of the question, which are passed to every rung.

    Returns
    -------
    answers : Values, Posteriors, Counts or Gradients
        One answer per row. Those that are uncertain after the last rung keep their bounds, so check these. Without
        rows, the answers are empty `Values`, whatever the ladder.
    used : dict
        How many rows each method took; if it has several rungs, the most that one of them took, so that no row counts
        twice.

    Notes
    -----
    Answers are indexed by row numbers, and have `uncertain(rtol)`: the numbers of the rows whose bounds are larger,
    `unknown(rows)`: as many answers of the same kind of which nothing is known, and `put(numbers, answers)`.
    """
    answers: Any = None
    used: dict[str, int] = {}
    if isinstance(compiled, Compiled):
        rows = compiled.closed(rows)
    uncertain = np.arange(len(rows))
    for rung in ladder:
        used.setdefault(rung.method, 0)
        taken = uncertain
        if rung.takes is not None and len(uncertain):
            known = None if answers is None else answers[uncertain]
            taken = uncertain[rung.takes(compiled, rung, rows[uncertain], known, *extra)]
        evaluator = getattr(compiled, rung.stage) if len(taken) else None
        if evaluator is None:
            continue
        used[rung.method] = max(used[rung.method], len(taken))
        subset = rows if len(taken) == len(rows) else rows[taken]
        if rung.run is None:
            found = evaluator.evaluate(subset, rtol, *extra)
        else:
            found = rung.run(evaluator, subset, rtol, None if answers is None else answers[taken], *extra)
        if answers is None and len(taken) < len(rows):
            answers = found.unknown(len(rows))
        if answers is None:
            answers = found
        else:
            answers.put(taken, found)
        uncertain = answers.uncertain(rtol)
    return (Values.empty(len(rows)) if answers is None else answers), used
