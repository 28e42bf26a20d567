"""The questions people ask of a model, beyond the probability of evidence: what they mean, and where each is answered.

Answers live in `pgcc.queries`, one file per kind of question; each is loaded when it is first asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from pgcc.errors import EvidenceError, PgccError, SemanticsError

if TYPE_CHECKING:
    import numpy as np

    from pgcc.ir.circuit import Circuit
    from pgcc.model import Model
    from pgcc.queries.distribution import Distribution


P = ParamSpec("P")
T = TypeVar("T")


def _evidence_first(question: Callable[P, T]) -> Callable[P, T]:
    """Refuse the order of arguments that some questions had once, names before evidence, and say which it is now."""

    @wraps(question)
    def ask(*args: P.args, **kwargs: P.kwargs) -> T:
        if len(args) > 2 or (len(args) == 2 and _are_names(args[1])):
            name = question.__name__
            raise EvidenceError(
                f"evidence comes first, and names are said by keyword: {name}(evidence, over=[…]), or {name}(over=[…])"
            )
        return question(*args, **kwargs)

    return ask


def _are_names(given: Any) -> bool:
    """Whether it is names of variables, and not evidence."""
    if isinstance(given, (str, Iterator)):
        return True
    try:
        return not hasattr(given, "keys") and len(given) > 0 and all(isinstance(name, str) for name in given)
    except TypeError:
        return False


class Questions:
    """What every `Model` answers. A mixin: `Model` says what the distribution is."""

    circuit: Circuit

    def _distribution(self, rtol: float | None = None, threads: int | None = None) -> Distribution:
        raise NotImplementedError

    @property
    def variables(self) -> tuple[str, ...]:
        raise NotImplementedError

    def _compile(self, circuit: Circuit) -> Model:
        raise NotImplementedError

    def marginals(
        self,
        evidence: Any = None,
        *,
        size: Any = None,
        over: Iterable[str] | None = None,
        rtol: float | None = None,
        threads: int | None = None,
    ) -> np.ndarray:
        """Pr(X_i = 1 | evidence) for every variable.

        Parameters
        ----------
        evidence : dict, array, DataFrame or list of dicts
            As in `prob`. Evidence of probability 0 is an error.
        size : int or (int, int), optional
            Given also that so many of `over` are in: exactly k, or at least the first and at most the second.
        over : names, optional
            The set that is counted; all variables unless said otherwise.
        rtol, threads
            As in `prob`.

        Returns
        -------
        array with one entry per variable, or rows × variables; 1 and 0 for what is observed.

        Examples
        --------
        >>> import pgcc
        >>> model = pgcc.compile(pgcc.parse("0.4*a*b + 0.3*a + 0.3"))
        >>> model.marginals()
        array([0.7, 0.4])
        >>> model.marginals({"b": 0}).round(12)
        array([0.5, 0. ])
        """
        from pgcc.queries.marginals import marginals

        if size is not None or over is not None:
            return self.given_size(_size_said(size), over).marginals(evidence, rtol=rtol, threads=threads)
        distribution = self._distribution(rtol, threads)
        given = distribution.read(evidence)
        table = marginals(distribution, given)
        return table[0] if given.single else table

    def conditional(
        self, query: Any, given: Any = None, *, rtol: float | None = None, threads: int | None = None
    ) -> Any:
        """Pr(query | given): both are evidence; a query that contradicts what is given has probability 0.

        Examples
        --------
        >>> import pgcc
        >>> model = pgcc.compile(pgcc.parse("0.4*a*b + 0.3*a + 0.3"))
        >>> round(model.conditional({"a": 1}, given={"b": 0}), 12)
        0.5
        """
        from pgcc.queries.conditional import conditional

        distribution = self._distribution(rtol, threads)
        asked, known = distribution.read(query), distribution.read(given)
        answers = conditional(distribution, asked, known)
        return float(answers[0]) if asked.single and known.single else answers

    def condition(self, evidence: Any) -> Model:
        """The distribution given one piece of evidence, as a model over the variables that are left.

        With ``normalize=False`` it is the polynomial of Pr(evidence, …), as it is.

        Examples
        --------
        >>> import pgcc
        >>> model = pgcc.compile(pgcc.parse("0.4*a*b + 0.3*a + 0.3"))
        >>> model.condition({"b": 0}).prob({"a": 1})
        0.5
        """
        distribution = self._distribution()
        given = distribution.read(evidence)
        if not given.single:
            raise EvidenceError("a model is conditioned on one piece of evidence, not on a table of them")
        distribution.possible(given)
        codes = given.chunk(slice(None))[0].tolist()
        observed = {name: code for name, code in zip(self.variables, codes, strict=True) if code >= 0}
        return self._compile(self.circuit.condition(observed))

    def pairwise(self, evidence: Any = None, *, rtol: float | None = None, threads: int | None = None) -> np.ndarray:
        """Pr(X_i = 1, X_j = 1 | evidence) for all pairs; the marginals on the diagonal.

        Returns
        -------
        array n × n, or rows × n × n for a table of evidence.

        Examples
        --------
        >>> import pgcc
        >>> pgcc.compile(pgcc.parse("0.4*a*b + 0.3*a + 0.3")).pairwise().round(12)
        array([[0.7, 0.4],
               [0.4, 0.4]])
        """
        from pgcc.queries.pairwise import pairwise

        distribution = self._distribution(rtol, threads)
        given = distribution.read(evidence)
        table = pairwise(distribution, given)
        return table[0] if given.single else table

    def covariance(self, evidence: Any = None, *, rtol: float | None = None, threads: int | None = None) -> np.ndarray:
        """Cov(X_i, X_j | evidence), the variances on the diagonal; with an error below
        3·rtol·max(Pr(i, j), Pr(i)·Pr(j)) (rtol·Pr(i) on the diagonal).

        Examples
        --------
        >>> import pgcc
        >>> pgcc.compile(pgcc.parse("0.4*a*b + 0.3*a + 0.3")).covariance().round(12)
        array([[0.21, 0.12],
               [0.12, 0.24]])
        """
        from pgcc.queries.pairwise import covariance

        return covariance(self.pairwise(evidence, rtol=rtol, threads=threads))

    @_evidence_first
    def cardinality(
        self,
        evidence: Any = None,
        *,
        over: Iterable[str] | None = None,
        atol: float | None = None,
        rtol: float | None = None,
        threads: int | None = None,
    ) -> np.ndarray:
        """Pr(|S ∩ T| = k | evidence) for k = 0, 1, …, |T|: how many of the variables T are in.

        Parameters
        ----------
        evidence
            As in `prob`. What is observed to be in counts.
        over : names, optional
            T; all variables unless said otherwise.
        atol : float, optional
            The absolute error that is enough: then long distributions are multiplied by FFT. Otherwise every
            probability has a relative error below `rtol`, however small it is.

        Returns
        -------
        array of |T| + 1 numbers, or rows × (|T| + 1).

        Examples
        --------
        >>> import pgcc
        >>> pgcc.compile(pgcc.parse("0.4*a*b + 0.3*a + 0.3")).cardinality()
        array([0.3, 0.3, 0.4])
        """
        from pgcc.queries.cardinality import cardinality

        distribution = self._distribution(rtol, threads)
        given = distribution.read(evidence)
        table = cardinality(distribution, given, distribution.columns(over), atol)
        return table[0] if given.single else table

    def any_of(self, names: Iterable[str], evidence: Any = None) -> Any:
        """Pr(at least one of these is in | evidence), right however small it is.

        Examples
        --------
        >>> import pgcc
        >>> pgcc.compile(pgcc.parse("(1e-20*a + 1)*(1e-21*b + 1)")).any_of(["a", "b"])
        1.1e-20
        """
        from pgcc.queries.counts import any_of

        return self._of_names(any_of, names, evidence)

    def none_of(self, names: Iterable[str], evidence: Any = None) -> Any:
        """Pr(none of these is in | evidence).

        Examples
        --------
        >>> import pgcc
        >>> pgcc.compile(pgcc.parse("0.4*a*b + 0.3*a + 0.3")).none_of(["a", "b"])
        0.3
        """
        from pgcc.queries.counts import none_of

        return self._of_names(none_of, names, evidence)

    def all_of(self, names: Iterable[str], evidence: Any = None) -> Any:
        """Pr(all of these are in | evidence).

        Examples
        --------
        >>> import pgcc
        >>> pgcc.compile(pgcc.parse("0.4*a*b + 0.3*a + 0.3")).all_of(["a", "b"])
        0.4
        """
        from pgcc.queries.counts import all_of

        return self._of_names(all_of, names, evidence)

    def exactly(self, k: int, names: Iterable[str] | None = None, evidence: Any = None) -> Any:
        """Pr(exactly k of these, or of all variables, are in | evidence).

        Examples
        --------
        >>> import pgcc
        >>> pgcc.compile(pgcc.parse("0.4*a*b + 0.3*a + 0.3")).exactly(1)
        0.3
        """
        from pgcc.queries.counts import exactly

        return self._of_names(exactly, names, evidence, k)

    @_evidence_first
    def parity(self, evidence: Any = None, *, over: Iterable[str] | None = None) -> Any:
        """Pr(an odd number of the variables `over`, or of all, are in | evidence), right however small it is.

        Examples
        --------
        >>> import pgcc
        >>> pgcc.compile(pgcc.parse("(1e-20*a + 1)*(1e-21*b + 1)")).parity(over=["a", "b"])
        1.1e-20
        """
        from pgcc.queries.counts import parity

        return self._of_names(parity, over, evidence)

    @_evidence_first
    def expected_count(self, evidence: Any = None, *, over: Iterable[str] | None = None) -> Any:
        """E[|S ∩ T| | evidence]: how many of the variables T, or of all, are in on average.

        Examples
        --------
        >>> import pgcc
        >>> round(pgcc.compile(pgcc.parse("0.4*a*b + 0.3*a + 0.3")).expected_count(), 12)
        1.1
        """
        from pgcc.queries.moments import expected_count

        return self._of_names(expected_count, over, evidence)

    @_evidence_first
    def moments(self, evidence: Any = None, *, over: Iterable[str] | None = None) -> Any:
        """Mean, variance, skewness and kurtosis of |S ∩ T| given the evidence, as a named tuple.

        Right to `rtol`; the skewness, whose terms cancel, to an absolute error of rtol·√kurtosis.

        Examples
        --------
        >>> import pgcc
        >>> round(pgcc.compile(pgcc.parse("(a + 1)*(b + 1)/4")).moments().variance, 12)
        0.5
        """
        from pgcc.queries.moments import moments

        distribution = self._distribution()
        return moments(distribution, distribution.read(evidence), distribution.columns(over))

    def _of_names(self, question: Any, names: Iterable[str] | None, evidence: Any, *more: Any) -> Any:
        """A number per row of evidence, or one."""
        distribution = self._distribution()
        given = distribution.read(evidence)
        answers = question(distribution, given, distribution.columns(names), *more)
        return float(answers[0]) if given.single else answers

    def sample(
        self,
        n: int = 1,
        evidence: Any = None,
        rng: Any = None,
        *,
        size: Any = None,
        over: Iterable[str] | None = None,
        threads: int | None = None,
    ) -> np.ndarray:
        """Exact samples: n rows of 0 and 1, one column per variable.

        Parameters
        ----------
        n : int
        evidence
            As in `prob`: samples agree with what is observed, and are distributed as what is left then.
        rng : int or numpy Generator, optional
            A seed gives the same samples every time, whatever the number of threads, and the first of many are those of
            few.
        size, over
            Given also how many of `over` are in: as in `marginals`.

        Returns
        -------
        int8 array, n × variables, or rows × n × variables for a table of evidence.

        Examples
        --------
        >>> import pgcc
        >>> model = pgcc.compile(pgcc.parse("0.4*a*b + 0.3*a + 0.3"))
        >>> model.sample(2, {"b": 1}, rng=0)
        array([[1, 1],
               [1, 1]], dtype=int8)
        """
        from pgcc.queries.sampling import sample

        if size is not None or over is not None:
            return self.given_size(_size_said(size), over).sample(n, evidence, rng, threads=threads)
        distribution = self._distribution(threads=threads)
        given = distribution.read(evidence)
        drawn = sample(distribution, given, n, rng)
        return drawn[0] if given.single else drawn

    def mode(self, evidence: Any = None, *, nodes: int = 10_000, rtol: float | None = None) -> Any:
        """The most probable assignment that agrees with the evidence.

        Branch and bound: exact for few variables, which is to say that nothing is more probable by more than a relative
        `rtol`. It is NP-hard, so that for many the best one found is returned, and how much better one could be. (The
        bound takes it for granted that no coefficient is negative: see `Model.standing`.)

        Parameters
        ----------
        evidence
            As in `prob`.
        nodes : int
            How many partial assignments are looked at, at most.

        Returns
        -------
        Mode, with attributes ``assignment``, ``logprob``, ``bound``, ``gap`` and ``exact``; a list for a table.

        Examples
        --------
        >>> import pgcc
        >>> pgcc.compile(pgcc.parse("0.4*a*b + 0.3*a + 0.3")).mode()
        <Mode: {a, b}, log-probability -0.916291, the most probable>
        """
        from pgcc.queries.mode import mode

        distribution = self._distribution(rtol, 1)
        given = distribution.read(evidence)
        found = mode(distribution, given, nodes)
        return found[0] if given.single else found

    def entropy(self, evidence: Any = None, *, samples: int = 10_000, rng: Any = None) -> Any:
        """−Σ Pr(x | evidence)·log Pr(x | evidence), in nats.

        Exact for up to 16 unobserved variables; otherwise estimated from samples, with the attribute
        ``standard_error``, which counts what so many samples cannot have seen.

        Examples
        --------
        >>> import pgcc
        >>> pgcc.compile(pgcc.parse("(a + 1)*(b + 1)/4")).entropy() / 0.6931471805599453
        2.0
        """
        from pgcc.queries.information import entropy

        distribution = self._distribution()
        given = distribution.read(evidence)
        found = entropy(distribution, given, samples, rng)
        return found[0] if given.single else found

    def kl(self, other: Model, evidence: Any = None, *, samples: int = 10_000, rng: Any = None) -> Any:
        """The Kullback–Leibler divergence Σ p(x)·log(p(x) / q(x)) from this distribution p to another q, in nats.

        Exact for up to 16 unobserved variables, with an error below rtol·(D + √D); otherwise estimated from samples,
        with the attribute ``standard_error``. Infinite where q excludes what p allows. Samples do not show everything
        that q excludes: unless the circuit of q shows that it excludes nothing, ``standard_error`` is inf, and
        ``scatter`` is the standard error of the mean over what the samples met.

        Examples
        --------
        >>> import pgcc
        >>> p, q = pgcc.compile(pgcc.parse("(a + 1)/2")), pgcc.compile(pgcc.parse("0.25*a + 0.75"))
        >>> round(p.kl(q), 6)
        0.143841
        """
        from pgcc.queries.information import kl

        distribution = self._distribution()
        given = distribution.read(evidence)
        if not isinstance(other, Questions):
            raise PgccError(f"the divergence is from a model to a model, not to {type(other).__name__}")
        found = kl(distribution, other._distribution(), given, samples, rng)
        return found[0] if given.single else found

    def mutual_information(self, a: Any, b: Any, evidence: Any = None) -> Any:
        """I(a; b | evidence) of two variables, or two sets of them, in nats; with an error below rtol·(I + √I).

        Examples
        --------
        >>> import pgcc
        >>> round(pgcc.compile(pgcc.parse("0.5*a*b + 0.5")).mutual_information("a", "b"), 6)
        0.693147
        """
        from pgcc.queries.information import mutual_information

        distribution = self._distribution()
        given = distribution.read(evidence)
        found = mutual_information(distribution, given, distribution.columns(a), distribution.columns(b))
        return float(found[0]) if given.single else found

    def log_odds(self, evidence: Any = None, *, rtol: float | None = None, threads: int | None = None) -> np.ndarray:
        """log Pr(X_i = 1 | evidence) − log Pr(X_i = 0 | evidence) for every variable, accurate however near to certain.

        Examples
        --------
        >>> import pgcc
        >>> pgcc.compile(pgcc.parse("1e30*a + 1")).log_odds().round(6)
        array([69.077553])
        """
        from pgcc.queries.information import log_odds

        distribution = self._distribution(rtol, threads)
        given = distribution.read(evidence)
        table = log_odds(distribution, given)
        return table[0] if given.single else table

    def given_size(self, size: Any, over: Iterable[str] | None = None) -> Model:
        """The distribution given how many of the variables `over`, or of all, are in: a number, or (least, most).

        Examples
        --------
        >>> import pgcc
        >>> model = pgcc.compile(pgcc.parse("0.4*a*b + 0.3*a + 0.1*b + 0.2"))
        >>> model.given_size(1).prob({"a": 1})
        0.75
        >>> model.given_size((1, 2)).prob({"b": 1})
        0.625
        """
        from pgcc.queries.counts import size_circuit

        self._distribution().columns(over)  # refuses unknown names, and those that stand twice
        circuit = size_circuit(self.circuit, size, over)
        try:
            return self._compile(circuit)
        except SemanticsError as error:
            if "the total g(1) is 0" not in str(error):  # negative: no distribution
                raise
            raise SemanticsError(f"no set of size {size} is possible: nothing can be conditioned on it") from None


def _size_said(size: Any) -> Any:
    if size is None:
        raise EvidenceError("over says what size counts: it means nothing alone")
    return size
