"""`compile` and the `Model` it returns: the questions people ask, what they mean, and the one way to ask them.

Every question has the form ``model.question(evidence=None, *, over=None, size=None, rtol=None, threads=None)``: what is
observed, which variables to count, how many of those are in, how accurate the answer must be, and on how many threads
to compute it. All questions go through `Model._ask`. The answers are computed in `pgcc.queries`, one file per kind of
question; apart from probabilities, each file is imported when its question is first asked.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, get_type_hints

from pgcc.certify import budget
from pgcc.collector import collector_paused
from pgcc.compiler import Compiled
from pgcc.data.answers import Axes, in_form, joined
from pgcc.data.evidence import Evidence, read_counted
from pgcc.errors import (
    EvidenceError,
    KnowsOtherWords,
    PgccError,
    PrecisionError,
    SemanticsError,
    brief,
    check_words,
    circuit_from,
    knows_other_words,
    plural,
)
from pgcc.evaluate.parallel import count_processors
from pgcc.evaluate.soft import runs_of, weigh
from pgcc.ir.circuit import Circuit
from pgcc.ir.facts import multiplications
from pgcc.kernels.policy import tier
from pgcc.methods import check_method
from pgcc.passes.condition import condition
from pgcc.passes.sizes import of_size, read_size
from pgcc.progress import waiting
from pgcc.queries.distribution import Distribution
from pgcc.queries.explain import Explanation, explain
from pgcc.queries.probability import exact_prob, logprob, prob
from pgcc.validity.standing import BY_RULES, CONDITIONED, RAW, Standing, find_standing, follows_from_rules

if TYPE_CHECKING:
    from pgcc.explore.page import Explorer
    from pgcc.queries.sensitivity import Influence

# The smallest relative error that float64 results can promise.
_SMALLEST_RTOL = 1e-14
# Above this many multiplications, or for circuits of more edges than this, a line at the terminal says what is being
# done: they may take seconds, and so may the stages of a large circuit that are made when a question is first asked.
_LONG_WORK, _LARGE_CIRCUIT, _NO_NOTICE = 5e7, 1e5, nullcontext()


@dataclass(frozen=True)
class _Settings:
    method: str
    rtol: float
    normalize: bool
    validate: bool
    threads: int


Names = Iterable[str] | Mapping[str, Any] | str | None
Size = int | tuple[int, int] | range | list[int] | set[int] | None


class How(TypedDict, total=False):
    """The keyword arguments that every question takes."""

    over: Names
    size: Size
    rtol: float | None
    threads: int | None


class HowByName(TypedDict, total=False):
    """The keyword arguments of questions whose answers are about variables."""

    over: Names
    size: Size
    names: bool | None
    rtol: float | None
    threads: int | None


class Model(KnowsOtherWords):
    """A compiled circuit that answers questions about its distribution. Made by `pgcc.compile`.

    A model is thread-safe. It can also be pickled: a worker process then compiles it again from the circuit.

    Attributes
    ----------
    circuit : Circuit
        The circuit that was compiled, exactly as you gave it.
    variables : tuple of str
        The names of the variables, in the order of the columns of your data.
    states : dict
        The states of every variable: (0, 1) if it is plainly in or out.

    Notes
    -----
    Nearly all questions take the same arguments under the same names. Evidence comes first, except in `conditional`,
    `kl`, `mutual_information`, `sample` and `top`, where it follows what you are asking about:

    evidence : dict, text, array, DataFrame, or list of dicts or texts
        What you observed. A dict names it, ``{"z1": 1, "z3": 0}``, and so does text, ``"z1=1, z3=0"``. An array has one
        column per variable, in the order of `variables`: 1 means in, 0 means out, −1 (or NaN) means unobserved. A
        single piece of evidence gets a single answer; a table gets one answer per row. *Soft* evidence is a dict with
        the likelihood of each value, ``{"z1": {1: 0.7, 0: 0.2}}``: the probability of every set is multiplied by the
        likelihood of the value that the set gives to z1.
    over : names, optional
        The variables to count. By default, all of them.
    size : int, (int, int), range, or list or set of int, optional
        Condition on the number of `over` variables that are in as well: exactly k, a pair (at least, at most), or one
        of several: [0, 2] is 0 or 2.
    names : bool, optional
        Whether to label answers about variables. By default they take the form of the evidence: a dict if the evidence
        has names, a pandas object if it is a DataFrame, and an array otherwise. True always gives names, False always
        gives arrays.
    rtol : float, optional
        The relative error that is guaranteed. By default, the model's.
    threads : int, optional
        The number of threads to use for many rows; −1 means all cores.

    See Also
    --------
    pgcc.compile : compile a circuit to a model
    pgcc.Circuit : the circuits that models are compiled from

    Examples
    --------
    >>> import pgcc
    >>> model = pgcc.compile(pgcc.parse("0.4*a*b + 0.3*a + 0.3"))
    >>> model
    <Model: 2 variables, 5 edges, one number per node>
    >>> model.prob("a=1"), model.marginals("b=0"), model.mode().assignment
    (0.7, {'a': 0.5, 'b': 0.0}, {'a': 1, 'b': 1})
    """

    circuit: Circuit
    variables: tuple[str, ...]

    def __init__(self, circuit: Circuit, settings: _Settings, standing: Standing | None = None):
        self.circuit, self._columns = circuit, circuit.variables
        self.variables = tuple(circuit.domains or self._columns)
        self._settings = settings
        self._sized: tuple[Any, Model] | None = None  # the last size that was asked about, and the model given that
        # the last likelihoods of soft evidence, the model given these, and the logarithm of the factor that it lacks
        with tier(multiplications(circuit)):
            self._compiled = Compiled(circuit, settings.validate)
            total = self._compiled.total(budget.of_total(settings.rtol)) if settings.normalize else None
            if total is None:
                self._standing = RAW
            else:
                self._standing = standing or find_standing(circuit, self._compiled, total)
        self._asked = Distribution(circuit, self._compiled, total, settings.rtol, settings.threads, self._standing)

    @property
    def states(self) -> dict[str, tuple[Any, ...]]:
        """The states of every variable, (0, 1) if it is plainly in or out.

        See Also
        --------
        pgcc.Circuit.with_states : say which variables of a polynomial are states of one variable

        Examples
        --------
        >>> import pgcc
        >>> weather = pgcc.pc.categorical("weather", {"sun": "0.6", "rain": "0.3", "snow": "0.1"})
        >>> model = pgcc.compile((weather * pgcc.pc.bernoulli("late", 0.25)).to_pgc())
        >>> model.states
        {'weather': ('sun', 'rain', 'snow'), 'late': (0, 1)}
        >>> model.marginals("weather!=sun")
        {'weather': {'sun': 0.0, 'rain': 0.75, 'snow': 0.25}, 'late': 0.25}
        """
        domains = self.circuit.domains
        return {name: (0, 1) if domains is None else domains[name].states for name in self.variables}

    @property
    def standing(self) -> Standing:
        """Whether it is proved that no probability is negative, and how.

        Rules that take too long for `pgcc.compile` are tried when you first ask for this.

        See Also
        --------
        pgcc.check : check whether a circuit is a distribution
        pgcc.Model.explain : what was compiled, and how a query is answered

        Examples
        --------
        >>> import pgcc
        >>> print(pgcc.compile(pgcc.parse("0.4*a*b + 0.6")).standing)
        proved: there are no negative numbers
        """
        if not (self._standing.proved or self._standing is RAW):
            with tier(self._compiled.work):
                if follows_from_rules(self.circuit, self._compiled):
                    self._standing = BY_RULES
                    self._asked = replace(self._asked, standing=BY_RULES)
        return self._standing

    # -- how probable is it? -------------------------------------------------------------------------------------------

    def prob(
        self,
        evidence: Any = None,
        *,
        bound: bool = False,
        exact: bool = False,
        method: str | None = None,
        **how: Unpack[How],
    ) -> Any:
        """Pr(evidence): the probability of what you observed, with everything else summed out.

        Parameters
        ----------
        evidence, over, size, rtol, threads
            As in every question: see `Model`. If you give a size, the answer is Pr(evidence | size).
        bound : bool
            Also return a bound on the relative error of the value. It is inf where a positive probability is too small
            for a float and is returned as 0; use `logprob` there.
        exact : bool
            Return a `Fraction`, computed from the weights exactly as you gave them (a float counts as the dyadic
            rational it stands for).
        method : str, optional
            "auto", or the name of one strategy. A named strategy never falls back on another, so check the bound.

        Returns
        -------
        float, or array with one entry per row; with ``bound=True`` a pair (value, bound).

        See Also
        --------
        pgcc.Model.logprob : the logarithm of this probability
        pgcc.Model.conditional : the probability of one event given another
        pgcc.Model.marginals : the probability of every variable

        Examples
        --------
        >>> import pgcc
        >>> model = pgcc.compile(pgcc.parse("0.4*a*b + 0.3*a + 0.3"))
        >>> model.prob({"a": 1}), model.prob("a=1, b=0")
        (0.7, 0.3)
        >>> model.prob([[1, 0], [-1, 1]])
        array([0.3, 0.4])
        >>> model.prob({"a": 1, "b": 0}, exact=True)
        Fraction(3, 10)
        >>> round(model.prob("b=1", size=(1, 2)), 12)
        0.571428571429
        """
        if exact:
            return self._ask(exact_prob, how, evidence, bound, takes_soft=True)
        method = self._settings.method if method is None else method
        return self._ask(prob, how, evidence, method, bound, takes_soft=True)

    def logprob(self, evidence: Any = None, *, method: str | None = None, **how: Unpack[How]) -> Any:
        """The natural logarithm of Pr(evidence).

        It is accurate for probabilities far below the range of floats, and for probabilities close to 1. It is −inf
        exactly when the probability is 0. The arguments are those of `prob`.

        See Also
        --------
        pgcc.Model.prob : the probability of evidence
        pgcc.Model.grad : derivatives of the log-probability of evidence

        Examples
        --------
        >>> import pgcc
        >>> model = pgcc.compile(pgcc.parse("(0.001*z + 0.999)"))
        >>> round(model.logprob({"z": 1}), 6)
        -6.907755
        """
        method = self._settings.method if method is None else method
        return self._ask(logprob, how, evidence, method, takes_soft=True)

    def conditional(self, query: Any, given: Any = None, **how: Unpack[How]) -> Any:
        """Pr(query | given): the probability of one piece of evidence given another.

        Both arguments take any form of evidence, for instance that several variables are all in, or all out. A query
        that contradicts what is given has probability 0.

        See Also
        --------
        pgcc.Model.condition : the distribution given evidence, as a model
        pgcc.Model.marginals : the probability of every variable

        Examples
        --------
        >>> import pgcc
        >>> model = pgcc.compile(pgcc.parse("0.4*a*b + 0.3*a + 0.3"))
        >>> round(model.conditional({"a": 1}, given={"b": 0}), 12)
        0.5
        """
        from pgcc.queries.conditional import conditional

        asked = self._asked.read(query)
        return self._ask(conditional, how, given, asked, also=asked, takes_soft=True)

    def condition(self, evidence: Any = None, *, over: Names = None, size: Size = None) -> Model:
        """The conditional distribution given one piece of evidence, a size, or both, as a new model.

        The new model is over the variables that were not observed. If this model was compiled with
        ``normalize=False``, the result is the unnormalized polynomial of Pr(evidence, …), as in `Circuit.observe`.

        See Also
        --------
        pgcc.Model.conditional : the probability of one event given another
        pgcc.Circuit.observe : keep the terms that agree with the evidence or have a given size

        Examples
        --------
        >>> import pgcc
        >>> model = pgcc.compile(pgcc.parse("0.4*a*b + 0.3*a + 0.1*b + 0.2"))
        >>> model.condition({"b": 0}).prob({"a": 1})
        0.6
        >>> round(model.condition(size=1).prob({"a": 1}), 12)
        0.75
        >>> model.condition("b=0", size=(1, 2)).variables
        ('a',)
        """
        whole = self._given(None if over is None else self._counted(over), size)
        if evidence is None:
            return whole
        given = whole._asked.read(evidence)
        observed = given.part(slice(0, given.rows)).observed()
        whole._asked.possible(given)
        circuit = whole.circuit
        if given.soft is not None:
            factor, circuit = weigh(circuit, given.soft[0])
            circuit = circuit if self._settings.normalize else circuit * factor
        return whole._part(condition(circuit, observed))

    def do(self, states: Mapping[str, Any] | str) -> Model:
        """The distribution after an intervention, in which each of these variables is set to a state, as a new model.

        The circuit has to come from a Bayesian network, which tells causes from effects: see `Circuit.do`.

        See Also
        --------
        pgcc.Circuit.do : the same for circuits
        pgcc.Model.condition : the distribution given evidence, as a model

        Examples
        --------
        >>> import pgcc
        >>> lawn = pgcc.compile(pgcc.builders.bayesian_network({"rain": 0.2, "wet": (["rain"], {0: 0.1, 1: 0.9})}))
        >>> round(lawn.conditional("rain=1", given="wet=1"), 6), round(lawn.do({"wet": 1}).prob("rain=1"), 6)
        (0.692308, 0.2)
        """
        return Model(self.circuit.do(states), self._settings)

    # -- variables -----------------------------------------------------------------------------------------------------

    def marginals(self, evidence: Any = None, **how: Unpack[HowByName]) -> Any:
        """Pr(X_i = 1 | evidence) for every variable.

        Parameters
        ----------
        evidence, over, size, names, rtol, threads
            As in every question: see `Model`. Evidence of probability 0 is an error.

        Returns
        -------
        array with one entry per variable, or rows × variables; a dict by name if the evidence has names. Without any
        evidence, the entries of the array have their names, too. Observed variables have exactly 1 or 0.

        See Also
        --------
        pgcc.Model.log_odds : the same marginals as log-odds
        pgcc.Model.pairwise : the probability of every pair
        pgcc.Model.conditional : the probability of one event given another
        pgcc.plot.marginals : a bar chart of marginals

        Examples
        --------
        >>> import pgcc
        >>> model = pgcc.compile(pgcc.parse("0.4*a*b + 0.3*a + 0.3"))
        >>> model.marginals(), model.marginals()["b"]
        (array([0.7, 0.4]), 0.4)
        >>> model.marginals("b=0")
        {'a': 0.5, 'b': 0.0}
        >>> model.marginals(names=True)
        {'a': 0.7, 'b': 0.4}
        """
        from pgcc.queries.marginals import marginals

        return self._ask(marginals, how, evidence, axes=Axes.VARIABLES, takes_soft=True)

    def log_odds(self, evidence: Any = None, **how: Unpack[HowByName]) -> Any:
        """log Pr(X_i = 1 | evidence) − log Pr(X_i = 0 | evidence) for every variable.

        The log-odds are accurate even for variables that are all but certain, whose marginals round to 0 or 1.

        See Also
        --------
        pgcc.Model.marginals : the probability of every variable

        Examples
        --------
        >>> import pgcc
        >>> pgcc.compile(pgcc.parse("1e30*a + 1")).log_odds().round(6)
        array([69.077553])
        """
        from pgcc.queries.information import log_odds

        return self._ask(log_odds, how, evidence, axes=Axes.VARIABLES)

    def pairwise(self, evidence: Any = None, **how: Unpack[HowByName]) -> Any:
        """Pr(X_i = 1, X_j = 1 | evidence) for all pairs of variables, with the marginals on the diagonal.

        Returns
        -------
        array n × n, or rows × n × n for a table of evidence; a DataFrame with ``names=True``.

        See Also
        --------
        pgcc.Model.covariance : which variables attract or repel each other
        pgcc.Model.marginals : the probability of every variable

        Examples
        --------
        >>> import pgcc
        >>> pgcc.compile(pgcc.parse("0.4*a*b + 0.3*a + 0.3")).pairwise().round(12)
        array([[0.7, 0.4],
               [0.4, 0.4]])
        """
        from pgcc.queries.pairwise import pairwise

        return self._ask(pairwise, how, evidence, axes=Axes.PAIRS)

    def covariance(
        self, evidence: Any = None, *, counts: Iterable[Names] | None = None, **how: Unpack[HowByName]
    ) -> Any:
        """Cov(X_i, X_j | evidence) for all pairs of variables, with the variances on the diagonal.

        The error is below 3·rtol·max(Pr(i, j), Pr(i)·Pr(j)), and below rtol·Pr(i) on the diagonal.

        Parameters
        ----------
        counts : sequence of sets of variables, optional
            The covariances, instead, of how many variables of each set are in, as an array. The error is below rtol
            times both standard deviations, for any number of variables.

        See Also
        --------
        pgcc.Model.pairwise : the probability of every pair
        pgcc.Model.mutual_information : how much two sets of variables tell you about each other
        pgcc.plot.covariance : a heat map of covariances

        Examples
        --------
        >>> import pgcc
        >>> pgcc.compile(pgcc.parse("0.4*a*b + 0.3*a + 0.3")).covariance().round(12)
        array([[0.21, 0.12],
               [0.12, 0.24]])
        >>> pgcc.compile(pgcc.parse("(0.4*a*b + 0.6)*(0.5*c + 0.5)")).covariance(counts=["a, b", "b, c"]).round(12)
        array([[0.96, 0.48],
               [0.48, 0.49]])
        """
        if counts is None:
            from pgcc.queries.pairwise import covariance

            return self._ask(covariance, how, evidence, axes=Axes.PAIRS)
        from pgcc.queries.moments import covariance_of_counts

        groups = [self._asked.places(self._counted(names)) for names in counts]
        return self._ask(covariance_of_counts, how, evidence, groups)

    # -- how many? -----------------------------------------------------------------------------------------------------

    def cardinality(self, evidence: Any = None, *, atol: float | None = None, **how: Unpack[How]) -> Any:
        """The distribution of how many variables are in: Pr(|S ∩ T| = k | evidence) for k = 0, 1, …, |T|.

        T is the set of variables named by `over`; by default, all of them.

        Parameters
        ----------
        evidence, over, size, rtol, threads
            As in every question: see `Model`. Variables observed to be in are counted too.
        atol : float, optional
            An absolute error that is good enough for you: negligible tails are then left out, which makes long
            distributions faster. Without it, every probability has a relative error below `rtol`, however small it is
            (rounded to the nearest double below 2⁻¹⁰²², where these have fewer digits).

        Returns
        -------
        array of |T| + 1 numbers, or rows × (|T| + 1).

        See Also
        --------
        pgcc.Model.expected_count : how many variables are in on average
        pgcc.Model.any_of : the probability that at least one variable is in
        pgcc.Model.parity : the probability that an odd number of variables is in
        pgcc.plot.cardinality : a bar chart of this distribution

        Examples
        --------
        >>> import pgcc
        >>> pgcc.compile(pgcc.parse("0.4*a*b + 0.3*a + 0.3")).cardinality()
        array([0.3, 0.3, 0.4])
        """
        from pgcc.queries.cardinality import cardinality

        return self._ask(cardinality, how, evidence, atol, counts=True, axes=Axes.COUNTS)

    def any_of(self, evidence: Any = None, **how: Unpack[How]) -> Any:
        """The probability, given evidence, that at least one of the variables `over` (by default, of all) is in.

        It is accurate to `rtol` however small it is.

        See Also
        --------
        pgcc.Model.cardinality : the distribution of how many variables are in
        pgcc.Model.parity : the probability that an odd number of variables is in

        Examples
        --------
        >>> import pgcc
        >>> pgcc.compile(pgcc.parse("(1e-20*a + 1)*(1e-21*b + 1)")).any_of(over=["a", "b"])
        1.1e-20
        """
        from pgcc.queries.any_and_parity import any_of

        return self._ask(any_of, how, evidence, counts=True)

    def parity(self, evidence: Any = None, **how: Unpack[How]) -> Any:
        """The probability, given evidence, that an odd number of the variables `over` (by default, of all) is in.

        It is accurate to `rtol` however small it is.

        See Also
        --------
        pgcc.Model.cardinality : the distribution of how many variables are in
        pgcc.Model.any_of : the probability that at least one variable is in

        Examples
        --------
        >>> import pgcc
        >>> pgcc.compile(pgcc.parse("(1e-20*a + 1)*(1e-21*b + 1)")).parity(over=["a", "b"])
        1.1e-20
        """
        from pgcc.queries.any_and_parity import parity

        return self._ask(parity, how, evidence, counts=True)

    def expected_count(self, evidence: Any = None, **how: Unpack[How]) -> Any:
        """E[|S ∩ T| | evidence]: how many of the variables `over` (by default, of all) are in on average.

        See Also
        --------
        pgcc.Model.moments : mean, variance, skewness and kurtosis of the count
        pgcc.Model.cardinality : the distribution of how many variables are in

        Examples
        --------
        >>> import pgcc
        >>> round(pgcc.compile(pgcc.parse("0.4*a*b + 0.3*a + 0.3")).expected_count(), 12)
        1.1
        """
        from pgcc.queries.moments import expected_count

        return self._ask(expected_count, how, evidence, counts=True)

    def moments(self, evidence: Any = None, **how: Unpack[How]) -> Any:
        """Mean, variance, skewness and kurtosis of the number of `over` variables that are in, as a named tuple.

        They are accurate to `rtol`, except for the skewness: its terms cancel, so its absolute error is below
        rtol·√kurtosis. A count of any number of variables has moments: more than a thousand of them do not take their
        whole distribution, but four derivatives.

        See Also
        --------
        pgcc.Model.expected_count : how many variables are in on average
        pgcc.Model.cardinality : the distribution of how many variables are in

        Examples
        --------
        >>> import pgcc
        >>> round(pgcc.compile(pgcc.parse("(a + 1)*(b + 1)/4")).moments().variance, 12)
        0.5
        """
        from pgcc.queries.moments import moments

        return self._ask(moments, how, evidence, counts=True)

    # -- sets ----------------------------------------------------------------------------------------------------------

    def sample(self, n: int | None = None, evidence: Any = None, rng: Any = None, **how: Unpack[HowByName]) -> Any:
        """Draw n exact samples, as rows of 0 and 1 with one column per variable.

        Parameters
        ----------
        n : int
            The number of samples, for each row of evidence; 1 by default. If you give a size, say this too: in numpy,
            `size` is the number of samples, here it is how many variables are in.
        rng : int or numpy Generator, optional
            A seed gives the same samples every time, whatever the number of threads. If you ask for more samples with
            the same seed, the first ones stay the same.
        evidence, over, size, names, rtol, threads
            As in every question: see `Model`. Samples agree with the evidence and follow the conditional distribution
            given it. Where variables are drawn one after another, `rtol` is the relative error of the conditional
            probabilities that they are drawn with.

        Returns
        -------
        int8 array, n × variables, or rows × n × variables for a table of evidence; a DataFrame with ``names=True``.

        See Also
        --------
        pgcc.Model.mode : the most probable assignment
        pgcc.Model.condition : the distribution given evidence, as a model

        Examples
        --------
        >>> import pgcc
        >>> model = pgcc.compile(pgcc.parse("0.4*a*b + 0.3*a + 0.3"))
        >>> model.sample(2, {"b": 1}, rng=0)
        array([[1, 1],
               [1, 1]], dtype=int8)
        """
        from pgcc.queries.sampling import sample

        if n is None:
            size, n = how.get("size"), 1
            if size is not None:
                raise PgccError(
                    f"sample(size={brief(size)}) could mean two things: sample(n) draws n samples, "
                    f"sample(1, size={brief(size)}) draws one in which that many variables are in",
                    argument="size",
                )
        return self._ask(sample, how, evidence, n, rng, axes=Axes.SAMPLES, times=_number(n))

    def mode(self, evidence: Any = None, *, time_limit: float = 10.0, **how: Unpack[How]) -> Any:
        """The most probable assignment that agrees with the evidence, or the best one found within a time limit.

        The mode is also known as the MAP or MPE assignment. If the circuit is deterministic (Bayesian networks, PSDDs
        and circuits of logic are), it is found in the time of one evaluation, also for many rows of evidence. It is
        exact for spanning trees and arborescences, too, and for other circuits of up to some 20 or 30 variables: no
        assignment is more probable by more than a relative `rtol`. Finding the mode is NP-hard, so with more variables
        you get the best assignment that was found, with a bound on how much better any other could be. (The bound
        assumes that no coefficient is negative: see `Model.standing`.)

        Parameters
        ----------
        evidence, over, size, rtol, threads
            As in every question: see `Model`. If you give a size, log-probabilities are conditional on it. They are not
            conditional on the evidence: subtract ``logprob(evidence, size=…)`` for that. Without a size, `over` names
            the variables to be assigned: the others are summed out. That is harder, and found by a search.
        time_limit : float
            Seconds for all rows of evidence together, from the moment you ask, not counting kernels that must be
            compiled first. The search has what is left once the model of the given size is prepared; it ends early when
            it is complete or makes no further progress. It is deterministic, so the answer depends on the machine only
            if the time runs out.

        Returns
        -------
        Mode, with attributes ``assignment``, ``logprob``, ``bound``, ``gap`` and ``exact``; a list for a table.

        See Also
        --------
        pgcc.Model.top : the k most probable assignments
        pgcc.Model.sample : draw exact samples

        Examples
        --------
        >>> import pgcc
        >>> model = pgcc.compile(pgcc.parse("0.4*a*b + 0.3*a + 0.1*b + 0.2"))
        >>> model.mode()
        <Mode: {a, b}, log-probability -0.916291, the most probable>
        >>> model.mode(size=1).assignment
        {'a': 1, 'b': 0}
        >>> model.mode(over="a")
        <Mode: {a}, log-probability -0.356675, the most probable>
        """
        from pgcc.queries.mode import mode, until

        over = None if how.get("size") is not None else how.pop("over", None)
        return self._ask(mode, how, evidence, until(time_limit), over)

    def top(self, k: int, evidence: Any = None, *, time_limit: float = 10.0, **how: Unpack[How]) -> Any:
        """The k most probable assignments that agree with the evidence, the most probable first.

        The list is exact if the circuit is deterministic, for up to 12 free variables, where every assignment is tried,
        and wherever `mode` is exact, if time allows. The ``bound`` of each entry holds for all assignments that are not
        listed before it, so ``exact`` tells you whether the entry is proved to be the next one. When time runs out, the
        list of a circuit that is not deterministic is filled up with neighbours of the assignments found so far.

        Parameters
        ----------
        k : int
        evidence, time_limit, over, size, rtol, threads
            As in `mode`. If you give a size, log-probabilities are conditional on it. They are not conditional on the
            evidence: subtract ``logprob(evidence, size=…)`` for that.

        Returns
        -------
        list of Mode, shorter than k if fewer assignments are possible or found; a list of such lists for a table.

        See Also
        --------
        pgcc.Model.mode : the most probable assignment

        Examples
        --------
        >>> import pgcc
        >>> for one in pgcc.compile(pgcc.parse("0.4*a*b + 0.3*a + 0.1*b + 0.2")).top(2):
        ...     print(one)
        <Mode: {a, b}, log-probability -0.916291, the most probable>
        <Mode: {a}, log-probability -1.20397, number 2 of the most probable>
        """
        from pgcc.queries.mode import as_count, top, until

        return self._ask(top, how, evidence, as_count(k), until(time_limit))

    # -- information ---------------------------------------------------------------------------------------------------

    def entropy(self, evidence: Any = None, *, samples: int = 10_000, rng: Any = None, **how: Unpack[How]) -> Any:
        """The entropy −Σ Pr(x | evidence)·log Pr(x | evidence), in nats.

        It is exact for up to 16 unobserved variables, and for any number of them if the circuit is proved to be
        deterministic. Otherwise it is estimated from samples, and the result has an attribute ``standard_error``, which
        allows for what that many samples may have missed.

        See Also
        --------
        pgcc.Model.kl : the divergence from this model to another
        pgcc.Model.mutual_information : how much two sets of variables tell you about each other

        Examples
        --------
        >>> import pgcc
        >>> pgcc.compile(pgcc.parse("(a + 1)*(b + 1)/4")).entropy() / 0.6931471805599453
        2.0
        """
        from pgcc.queries.information import entropy

        return self._ask(entropy, how, evidence, samples, rng, times=_number(samples))

    def kl(
        self, other: Model, evidence: Any = None, *, samples: int = 10_000, rng: Any = None, **how: Unpack[How]
    ) -> Any:
        """The Kullback–Leibler divergence Σ p(x)·log(p(x) / q(x)) from this distribution p to another q, in nats.

        Both distributions are conditioned on the evidence and the size. The divergence D is exact for up to 16
        unobserved variables, with an error below rtol·(D + √D). With more, it is estimated from samples, and the result
        has an attribute ``standard_error``. It is infinite if q excludes something that p allows. Samples may not show
        everything that q excludes: unless the circuit of q shows that it excludes nothing, ``standard_error`` is inf,
        and ``scatter`` is the standard error of the mean over the samples alone.

        See Also
        --------
        pgcc.Model.entropy : how uncertain the distribution is
        pgcc.Model.mutual_information : how much two sets of variables tell you about each other

        Examples
        --------
        >>> import pgcc
        >>> p, q = pgcc.compile(pgcc.parse("(a + 1)/2")), pgcc.compile(pgcc.parse("0.25*a + 0.75"))
        >>> round(p.kl(q), 6)
        0.143841
        """
        from pgcc.queries.information import kl

        if not isinstance(other, Model):
            raise PgccError(f"kl compares a model with another Model, not with {type(other).__name__}")
        over = how.get("over")
        if over is not None and not isinstance(over, (str, Mapping)):
            over = how["over"] = list(over)  # they are read twice
        if self._asked.read(evidence).soft is not None:
            raise PgccError(
                "kl does not take soft evidence",
                advice="p.condition(evidence).kl(q.condition(evidence)) compares what both say then",
            )
        counted = None if over is None else other._counted(over)
        q = other._given(counted, how.get("size"))._distribution(how.get("rtol"), how.get("threads"))
        return self._ask(kl, how, evidence, q, samples, rng, times=_number(samples))

    def mutual_information(self, a: Names, b: Names, evidence: Any = None, **how: Unpack[How]) -> Any:
        """The mutual information I(a; b | evidence) of two variables, or two sets of variables, in nats.

        Its error is below rtol·(I + √I).

        See Also
        --------
        pgcc.Model.entropy : how uncertain the distribution is
        pgcc.Model.covariance : which variables attract or repel each other

        Examples
        --------
        >>> import pgcc
        >>> round(pgcc.compile(pgcc.parse("0.5*a*b + 0.5")).mutual_information("a", "b"), 6)
        0.693147
        """
        from pgcc.queries.information import mutual_information

        sets = self._asked.columns_of(a), self._asked.columns_of(b)
        return self._ask(mutual_information, how, evidence, *sets)

    @knows_other_words
    def grad(self, evidence: Any = None, *, weights: Any = None) -> Any:
        """Derivatives of log Pr(evidence) with respect to every number in the circuit, as `pgcc.grad` computes them.

        The derivatives are with respect to the numbers of ``model.circuit``, so there is no `size` argument: ask
        ``condition(size=k)`` instead. They are computed in float64, with checks of their own in place of `rtol`.

        See Also
        --------
        pgcc.grad : derivatives with respect to the numbers of a circuit
        pgcc.learn.CircuitMLE : learn the numbers of any circuit from data
        pgcc.torch.logprob : log-probabilities of any circuit, for PyTorch

        Examples
        --------
        >>> import pgcc
        >>> model = pgcc.compile(pgcc.parse("3*a + 1"))
        >>> model.grad("a=1")[model.circuit].round(6)
        array([ 0.083333, -0.25    ])
        """
        from pgcc.queries.gradient import grad

        return grad(self.circuit, evidence, weights=weights, normalize=self._settings.normalize)

    @knows_other_words
    def sensitivity(
        self,
        query: Any,
        given: Any = None,
        *,
        change: float = 0.1,
        rtol: float | None = None,
        threads: int | None = None,
    ) -> list[Influence]:
        """How Pr(query | given) depends on the entries of the tables of a Bayesian network, the strongest first.

        When an entry changes, the others of its row change in proportion, so that they still add up to 1. Entries that
        are 0 or 1 stay what they are and are not listed; of two that add up to 1, the smaller one is.

        Parameters
        ----------
        query, given : evidence
            One piece each, as in `conditional`.
        change : float
            The posteriors ``low`` and ``high`` are those where the odds of the entry are divided, or multiplied, by
            1 + change. (For a small entry, that is by how much it changes.)
        rtol, threads
            As in every question: see `Model`.

        Returns
        -------
        list of Influence
            For every entry, its ``variable``, ``state`` and ``parents``, its ``value``, the ``derivative`` of the
            posterior, whose error is below rtol/min(θ, 1 − θ) for an entry θ, and the posteriors ``low`` and ``high``.
            ``pandas.DataFrame(…)`` makes a table of it.

        See Also
        --------
        pgcc.plot.tornado : a picture of it
        pgcc.Model.grad : derivatives with respect to the numbers of any circuit

        Examples
        --------
        >>> import pgcc
        >>> lawn = pgcc.builders.bayesian_network({"rain": 0.2, "wet": (["rain"], {0: 0.1, 1: 0.9})})
        >>> first, *_ = pgcc.compile(lawn).sensitivity("rain=1", given="wet=1")
        >>> print(first, first.value, round(first.derivative, 6), round(first.low, 6), round(first.high, 6))
        Pr(rain=1) 0.2 1.331361 0.671642 0.71223
        """
        from pgcc.queries.sensitivity import entries_of, sensitivity

        how: How = {"rtol": rtol, "threads": threads}
        asked, times = self._asked.read(query), 2 * entries_of(self.circuit)
        return self._ask(sensitivity, how, given, asked, change, times=times, takes_soft=True)

    # -- one way to ask ------------------------------------------------------------------------------------------------

    def _ask(
        self,
        question: Callable[..., Any],
        how: Mapping[str, Any],
        evidence: Any,
        *more: Any,
        axes: Axes = Axes.NUMBER,
        counts: bool = False,
        also: Evidence | None = None,
        times: int = 1,
        takes_soft: bool = False,
    ) -> Any:
        """Read the evidence, ask the question, and give the answer in the form of the evidence.

        how : `How`, or `HowByName` if the answer is about variables.
        axes : the axes of the answer to a single piece of evidence.
        counts : whether the question itself counts `over`, with or without a size; it then takes their columns first.
        also : further evidence, whose rows are answered if the first evidence is a single piece.
        times : how many passes over the circuit the question makes for each row.
        takes_soft : whether the question itself takes rows with likelihoods; others are asked of the distribution given
        these.
        """
        over = size = rtol = threads = names = None
        if how:
            _check_keywords(question.__name__, how, HowByName if axes.is_named else How)
            over, size, rtol, threads, names = map(how.get, ("over", "size", "rtol", "threads", "names"))
        counted = None if over is None else self._counted(over) if counts or size is not None else []
        whole = self if size is None and (over is None or counts) else self._given(counted, size)
        if counts:
            more = (self._asked.places(self._counted(None) if counted is None else counted), *more)
        own = self._asked  # once: properties take a while in a small query
        given = evidence if isinstance(evidence, Evidence) else Evidence(self._columns, evidence, own.column)
        asked = whole._asked if rtol is None and threads is None else whole._distribution(rtol, threads)
        compiled = whole._compiled
        work = compiled.work * given.rows * times
        is_long = work > _LONG_WORK or compiled.edges > _LARGE_CIRCUIT
        notice = waiting(f"{question.__name__}: {plural(given.rows, 'row')}") if is_long else _NO_NOTICE
        with tier(work), notice:
            if given.soft is None or takes_soft:
                answers = question(asked, given, *more)
            else:
                answers = joined([question(*part, *more) for part in whole._by_likelihoods(asked, given)])
        return in_form(answers, also if also is not None and given.single else given, axes, names)

    def _given(self, counted: list[str] | None, size: Size) -> Model:
        """This distribution, conditioned on how many of some columns are in.

        The last such model is kept, because questions about the same size usually come in series.
        """
        if counted is None and size is None:
            return self
        if size is None:
            told = "`over` says what `size` counts: it means nothing alone, and answers have all variables"
            raise EvidenceError(told, argument="over")
        counted = self._counted(None) if counted is None else counted
        key = (read_size(size), counted)
        if self._sized is not None and self._sized[0] == key:
            return self._sized[1]
        circuit = of_size(self.circuit, size, counted)
        try:
            found = self._part(circuit)
        except SemanticsError as error:
            if "the total g(1) is 0" not in str(error):  # negative: no distribution
                raise
            raise SemanticsError(f"no set of size {size} is possible, so it cannot be conditioned on") from None
        self._sized = key, found
        return found

    def _counted(self, over: Names) -> list[str]:
        """The columns of the circuit that are counted."""
        return read_counted(over, self.circuit.variables, self._asked.column)

    def _by_likelihoods(self, asked: Distribution, given: Evidence) -> Iterator[tuple[Distribution, Evidence]]:
        """Rows of soft evidence, without their likelihoods, and the distribution given these."""
        assert given.soft is not None
        for rows in runs_of(given.soft):
            compiled = self._compiled.reweighted.by(given.soft[rows.start])
            total = None if asked.total is None else compiled.total(budget.of_total(asked.rtol))
            log = 0.0 if total is None or asked.total is None else float(total.log_over(asked.total)[0])
            yield replace(asked, compiled=compiled, total=total, log_likelihood=log), given.part(rows)

    def _distribution(self, rtol: float | None = None, threads: int | None = None) -> Distribution:
        """The distribution that answers a question with its own accuracy or number of threads."""
        asked = self._asked
        rtol = asked.rtol if rtol is None else _check_rtol(rtol)
        threads = asked.threads if threads is None else _count_threads(threads)
        if asked.total is not None and not asked.total.bound[0] <= budget.of_total(rtol):
            asked = self._asked = replace(asked, total=self._compiled.total(budget.of_total(rtol)))
        return replace(asked, rtol=rtol, threads=threads)

    def _part(self, circuit: Circuit) -> Model:
        """A model of a conditional distribution of this one, with the same settings."""
        return Model(circuit, self._settings, CONDITIONED if self._standing.certain else None)

    def explain(self, evidence: Any = None) -> Explanation:
        """What was compiled and how queries are answered; given evidence, how that particular query is answered.

        See Also
        --------
        pgcc.Model.standing : whether it is proved that no probability is negative

        Examples
        --------
        >>> import pgcc
        >>> print(pgcc.compile(pgcc.parse("z/2 + 1/2")).explain())  # doctest: +ELLIPSIS
        circuit: 1 variable, 2 edges, depth 1, formal degree 1
        ...
        """
        standing, given = self.standing, None if evidence is None else self._asked.read(evidence)
        with tier(self._compiled.work * (1 if given is None else given.rows)):
            return explain(self._asked, given, standing)

    def explore(
        self, *, title: str | None = None, groups: Mapping[str, Iterable[str]] | None = None, height: int = 760
    ) -> Explorer:
        """An interactive web page that answers questions about this model: one file, with no server and no network.

        The page shows the marginal of every variable as a bar. Click a variable to put it in, to put it out, or to
        leave it open, and all bars, the probability of the evidence and the distribution of the size follow. The page
        also draws samples, finds the most probable set, and shows the circuit (or, for spanning trees, the graph) with
        the values of the current query.

        The page runs the same program as pgcc, in double precision, with a bound on every error. Unlike a model, it
        does not recompute inaccurate numbers; it marks those whose bound is above one in a million.

        Parameters
        ----------
        title : str, optional
            The title of the page.
        groups : dict, optional
            Variables to list together: a dict from group titles to names. By default, many variables are grouped by how
            their names begin.
        height : int
            The height of the page in a notebook, in pixels.

        Returns
        -------
        Explorer
            An object that shows itself in a notebook; ``save(path)`` writes the page to a file.

        Raises
        ------
        PgccError
            If the circuit is not decomposable, is a raw polynomial (``normalize=False``), or is too large for a page.

        See Also
        --------
        pgcc.Model.marginals : the numbers behind the bars, certified
        pgcc.Model.condition : the distribution given evidence, as a model

        Examples
        --------
        >>> import pgcc
        >>> page = pgcc.compile(pgcc.parse("0.4*a*b + 0.3*a + 0.3")).explore(title="Rain and wet grass")
        >>> page  # doctest: +ELLIPSIS
        <Explorer: Rain and wet grass, 2 variables, ... kB>

        Now ``page.save("rain.html")`` writes a file that you can open in any browser.
        """
        from pgcc.explore.page import Explorer

        if not self._settings.normalize:
            raise PgccError("a raw polynomial has no probabilities to explore: compile it normalized")
        with tier(self._compiled.work):
            return Explorer(self._compiled, self.standing.proved, title, groups, height)

    def __getstate__(self) -> dict[str, Any]:
        return {"circuit": self.circuit, "settings": self._settings, "standing": self._standing}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["circuit"], state["settings"], state["standing"])  # type: ignore[misc]

    def _repr_html_(self) -> str:
        """What notebooks show: the size, how it is evaluated, and the marginals as bars where they are cheap."""
        from pgcc.draw.html import model_html

        return model_html(self)

    def __repr__(self) -> str:
        facts = self._compiled.circuit.facts
        n = len(self.variables)
        how = "one number per node" if self._compiled.decomposable else "polynomials in t"
        doubt = "" if self._standing.proved or self._standing is RAW else ", not proven to be a distribution"
        return f"<Model: {plural(n, 'variable')}, {plural(facts.edges, 'edge')}, {how}{doubt}>"


def _check_keywords(question: str, how: Mapping[str, Any], kind: type) -> None:
    check_words(question, how)
    for name in how.keys() - kind.__annotations__.keys():
        raise TypeError(
            f"{question} has no argument {name!r}: all questions take {', '.join(kind.__annotations__)}; what is "
            "observed comes first, as a dict or as text"
        )


def _spell_out(cls: type) -> None:
    """Replace ``**how`` in the signature of every question by the arguments it stands for.

    `help`, `inspect` and editors then show them.
    """
    for method in vars(cls).values():
        how = getattr(method, "__annotations__", {}).get("how", "")
        if how.startswith("Unpack"):
            kind = {"Unpack[How]": How, "Unpack[HowByName]": HowByName}[how]
            signature = inspect.signature(method)
            own = [p for p in signature.parameters.values() if p.name != "how"]
            first = [p for p in own if p.kind is not p.KEYWORD_ONLY]
            shared = [
                inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
                for key, annotation in get_type_hints(kind).items()
            ]
            method.__signature__ = signature.replace(parameters=[*first, *shared, *own[len(first) :]])


_spell_out(Model)


def compile(
    circuit: Circuit,
    *,
    method: str = "auto",
    rtol: float = 1e-9,
    normalize: bool = True,
    validate: bool = True,
    threads: int = 1,
) -> Model:
    """Compile a circuit to a `Model`, which answers questions about its distribution.

    Parameters
    ----------
    circuit : Circuit
        The generating polynomial of the distribution, from `pgcc.parse`, `pgcc.dpp`, `pgcc.load` or any other source.
    method : str
        How to evaluate the circuit. "auto" chooses a strategy for each query; `pgcc.methods.METHODS` lists the
        strategies by name.
    rtol : float
        Every number returned has a relative error below this. What float64 cannot guarantee is recomputed with balls
        (numbers of more bits, with rigorous error bounds) or exact rationals. Below 2⁻¹⁰²², where doubles have fewer
        digits, such a number is rounded once, to the nearest double: logarithms keep all digits.
    normalize : bool
        Divide by the total g(1), which must be positive. If False, you get the raw coefficients.
    validate : bool
        Refuse circuits that are visibly not distributions: those in which a variable is squared, and those in which a
        negative coefficient is found. Squares are ruled out by the structure of the circuit where possible, and
        otherwise by a randomised identity test on the exact coefficients, modulo primes that are drawn afresh every
        time. Negative coefficients are looked for among all of them if they are few, and otherwise by a short search
        (not with ``normalize=False``). If you turn validation off, or if neither it nor the rules of `pgcc.check` can
        decide, `repr` and `explain` say so and every answer is checked: a probability that is certainly above 1 or
        below 0 is an error.
    threads : int
        The number of threads to use for batches of rows; −1 means all cores.

    Returns
    -------
    Model

    See Also
    --------
    pgcc.Model : a compiled circuit that answers questions
    pgcc.check : check whether a circuit is a distribution
    pgcc.load : read a circuit from a file

    Examples
    --------
    >>> import pgcc
    >>> model = pgcc.compile(pgcc.parse("(0.1*(z1 + 1)*(6*z2 + 1) - 0.4*z1*z2) * (0.8*z3 + 0.2)"))
    >>> round(model.prob({"z2": 0, "z3": 0}), 12)
    0.04
    """
    if not isinstance(circuit, Circuit):
        raise PgccError(f"compile takes a Circuit, not {type(circuit).__name__}: {circuit_from(circuit)}")
    settings = _Settings(
        method=check_method(method),
        rtol=_check_rtol(rtol),
        normalize=bool(normalize),
        validate=bool(validate),
        threads=_count_threads(threads),
    )
    with collector_paused():
        return Model(circuit, settings)


def _number(n: Any) -> int:
    """The number of samples asked for; 1 if it is not a number, which the question itself then refuses."""
    try:
        return operator.index(n)
    except TypeError:
        return 1


def _check_rtol(rtol: float) -> float:
    if not (isinstance(rtol, (int, float)) and _SMALLEST_RTOL <= rtol < 1):
        raise PrecisionError(
            f"rtol={brief(rtol)} is not between {_SMALLEST_RTOL} and 1",
            argument="rtol",
            advice="exact=True gives fractions",
        )
    return float(rtol)


def _count_threads(threads: int) -> int:
    if isinstance(threads, bool) or not isinstance(threads, int) or threads == 0 or threads < -1:
        raise PgccError(f"threads={threads!r} is neither a number ≥ 1 nor −1 (all cores)", argument="threads")
    if threads > 0:
        return threads
    return count_processors()
