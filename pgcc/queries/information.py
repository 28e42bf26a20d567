"""Entropy, divergence, mutual information and log-odds: sums over all assignments, or estimates from samples.

Sums are exact if at most 2¹⁶ assignments are possible; otherwise the result is a mean over samples, with a standard
error. Entropies of deterministic circuits are exact, too: they take one reverse pass.
"""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np

from pgcc.certify import budget
from pgcc.data.evidence import Evidence
from pgcc.errors import EvidenceError, PgccError
from pgcc.evaluate.distinct import number_rows
from pgcc.ir.circuit import Circuit
from pgcc.ir.numbers import UNIT
from pgcc.queries.assignments import Assignments
from pgcc.queries.distribution import Distribution
from pgcc.queries.gradient import GradientFunction
from pgcc.queries.sampling import sample
from pgcc.rings.values import Values
from pgcc.validity.support import least_log_coefficient

# Up to this many assignments are listed.
MOST_LISTED = 1 << 16
# An event of probability 3/n is missed by n samples with probability e⁻³: two standard errors.
_MISSED = 1.5


class Estimate(float):
    """A number in nats, exact or estimated from samples.

    Attributes
    ----------
    standard_error : float
        The standard error of the estimate. It allows for events that the samples may have missed, with probabilities of
        about 1/samples. It is inf if such events may matter without limit, and 0 if the number is exact.
    scatter : float
        The standard error of the mean over the samples alone, which knows nothing about events they missed.
    exact : bool
        Whether the number is exact.

    Examples
    --------
    >>> import pgcc
    >>> coins = pgcc.product([(z + 1) / 2 for z in pgcc.variables([f"c{i}" for i in range(20)])])
    >>> pgcc.compile(coins).entropy().exact
    True
    >>> rare = pgcc.product([(z + 9) / 10 for z in pgcc.variables([f"c{i}" for i in range(20)])])
    >>> estimate = pgcc.compile(pgcc.mixture([0.5, 0.5], [coins, rare])).entropy(rng=0)
    >>> round(float(estimate)), estimate.exact, estimate.standard_error < 0.1
    (11, False, True)
    """

    standard_error: float
    scatter: float
    exact: bool

    def __new__(
        cls, value: float, standard_error: float = 0.0, exact: bool = True, scatter: float | None = None
    ) -> Estimate:
        number = super().__new__(cls, value)
        number.standard_error, number.exact = standard_error, exact
        number.scatter = standard_error if scatter is None else scatter
        return number

    def __getnewargs__(self) -> tuple[float, float, bool, float]:  # type: ignore[override]
        return float(self), self.standard_error, self.exact, self.scatter

    def __repr__(self) -> str:
        if self.exact:
            return float.__repr__(self)
        if np.isfinite(self.standard_error):
            return f"{float(self):.6g} ± {self.standard_error:.2g}"
        return f"{float(self):.6g} ± {self.scatter:.2g} over the samples, not bounded beyond what they met"

    __str__ = __repr__


def entropy(distribution: Distribution, given: Evidence, samples: int, rng: Any) -> list[Estimate]:
    """−Σ Pr(x | e)·log Pr(x | e) for every row e, in nats."""
    base = distribution.values(given.chunk(slice(None)), budget.of_information(distribution.rtol))
    found, deterministic = [], None
    for row in range(given.rows):
        codes, whole = given.chunk(slice(row, row + 1))[0], base[row : row + 1]
        left = Assignments.of(distribution.circuit, codes)
        if left.count <= MOST_LISTED:
            order = np.arange(len(codes))
            found.append(Estimate(_entropy(_listed(distribution, left, order, whole, given, row))))
        else:
            distribution.shares(whole, whole, given, np.array([row]))  # refuses what is impossible
            deterministic = _DeterministicEntropy.of(distribution) if deterministic is None else deterministic
            exact = deterministic.given(distribution.compiled.closed(codes[None]), distribution.rtol)
            if exact is not None and _checked(samples):
                found.append(Estimate(exact))
                continue
            drawn = _draw(distribution, codes, samples, rng)
            logs = distribution.log_shares(drawn, whole, given, row)
            found.append(_sampled_entropy(drawn, logs, math.log(left.count), distribution.rtol))
    return found


class _DeterministicEntropy:
    """Entropies of a circuit in which every assignment has one term, if that is proved.

    log Pr(x | e) is the sum of the logarithms of the numbers θ in the term of x, less log g(e), and the probability
    that this term has θ is θ·∂ log g(e)/∂θ.
    """

    def __init__(self, circuit: Circuit | None):
        self.function = None if circuit is None else GradientFunction(circuit, normalize=False)

    @classmethod
    def of(cls, distribution: Distribution) -> Self:
        compiled = distribution.compiled
        is_proved = compiled.decomposable and compiled.max_product is not None
        return cls(compiled.circuit if is_proved else None)

    def given(self, codes: np.ndarray, rtol: float) -> float | None:
        """The entropy given a row of codes; None if it is not known to this relative error."""
        if self.function is None:
            return None
        function, one = self.function, np.ones(1)
        found = function.evaluate(codes, one)
        slopes, numbers = (
            np.concatenate([found.weights, found.constants]),
            np.ones(len(found.weights) + len(found.constants)),
        )
        numbers[: len(found.weights)] = function.parametrized.program.weights
        for node, slot in function.parametrized.constants:
            numbers[len(found.weights) + slot] = node.value
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            logs = np.where(numbers > 0.0, np.log(numbers), 0.0)
            log_value, share = float(found.logs[0]), numbers * slopes
            exact = log_value - float(share @ logs)
            size = abs(log_value) + float(share @ (1.0 + np.abs(logs)))
            error = float((function.errors(codes, one) * numbers) @ np.abs(logs)) + function.differentiator.gamma
        return exact if error + 8 * UNIT * size <= rtol * exact < math.inf else None


def _sampled_entropy(drawn: np.ndarray, logs: np.ndarray, most: float, rtol: float) -> Estimate:
    """The mean of −log Pr over samples, or the sum over the assignments seen, if these have nearly all probability.

    A set of assignments of probability u adds −u·log u + u·H to the entropy, with 0 ≤ H ≤ `most`. The probability
    of the unseen assignments is known, so this encloses the entropy between two numbers. And a set of u ≈ 1/samples,
    which may well be missed entirely, shifts the mean by that much without adding to the scatter.
    """
    seen = logs[number_rows(drawn)[0]]
    mass, part = np.exp(seen), float(-(np.exp(seen) @ seen))
    u = _enclosed(1.0 - float(mass.sum()), rtol)
    least = part - rtol * (1.0 + part) + min(map(_times_log, u))
    highest = part + rtol * (1.0 + part) + max(map(_times_log, u)) + u[1] * most
    mean = _mean(-logs, _MISSED / len(drawn) * (most + np.log(len(drawn))))
    half = (highest - least) / 2
    return Estimate(max(0.0, least) + half, half, exact=False) if half <= mean.standard_error else mean


def kl(p: Distribution, given: Evidence, q: Distribution, samples: int, rng: Any) -> list[Estimate]:
    """Σ Pr_p(x | e)·log(Pr_p(x | e) / Pr_q(x | e)) for every row e; inf if q excludes something that p allows.

    An exact divergence D is computed as Σ p·log(p/q) − p + q, of which no term is negative. If p and q are close,
    cancellation happens only in log p − log q, so the error is below rtol·(D + √D).
    """
    if set(p.variables) != set(q.variables):
        odd = sorted(set(p.variables) ^ set(q.variables))
        raise PgccError(f"distributions over different variables have no divergence: only one of them has {odd[0]!r}")
    if dict(p.circuit.domains or {}) != dict(q.circuit.domains or {}):
        raise PgccError("distributions over variables with different states have no divergence")
    at = {name: i for i, name in enumerate(p.variables)}
    order = np.array([at[name] for name in q.variables], np.int64)
    codes = given.chunk(slice(None))
    base_p = p.values(codes, budget.of_information(p.rtol))
    p.shares(base_p, base_p, given, np.arange(given.rows))  # refuses what is impossible
    of_q = Evidence.of_codes(q.variables, np.ascontiguousarray(codes[:, order]))
    base_q = q.values(of_q.chunk(slice(None)), budget.of_information(q.rtol))
    found = []
    for row in range(given.rows):
        whole_p, whole_q = base_p[row : row + 1], base_q[row : row + 1]
        if whole_q.mantissa[0] == 0.0:
            found.append(Estimate(np.inf))
        elif (left := Assignments.of(p.circuit, codes[row])).count <= MOST_LISTED:
            log_p = _listed(p, left, np.arange(len(order)), whole_p, given, row)
            log_q = _listed(q, left, order, whole_q, of_q, row)
            excluded = bool((np.isneginf(log_q) & ~np.isneginf(log_p)).any())
            terms = 0.0 if excluded else _divergences(np.exp(log_p), np.exp(log_q), log_p, log_q).sum()
            found.append(Estimate(np.inf if excluded else float(terms)))
        else:
            drawn = _draw(p, codes[row], samples, rng)
            log_p = p.log_shares(drawn, whole_p, given, row)
            log_q = q.log_shares(np.ascontiguousarray(drawn[:, order]), whole_q, of_q, row)
            floor = least_log_coefficient(q.compiled) - float(whole_q.logs()[0])
            found.append(_sampled_divergence(drawn, log_p, log_q, floor, p.rtol + q.rtol))
    return found


def _sampled_divergence(drawn: np.ndarray, log_p: np.ndarray, log_q: np.ndarray, floor: float, rtol: float) -> Estimate:
    """The mean of log p − log q over samples of p, or the sum over what was seen, if that is nearly all probability.

    The unseen assignments have known probabilities u under p and v under q, and add at least u·log(u/v) (the log-sum
    inequality). They add at most −u·floor if no log q is below `floor`, and any number, even inf, if that is unknown.
    """
    if np.isneginf(log_q).any():
        return Estimate(np.inf)
    first, _ = number_rows(drawn)
    mass, terms = np.exp(log_p[first]), (log_p - log_q)[first]
    part, slack = float(mass @ terms), rtol * float(1.0 + mass @ np.abs(terms))
    u = _enclosed(1.0 - float(mass.sum()), rtol)
    v = _enclosed(1.0 - float(np.exp(log_q[first]).sum()), rtol)[1]
    least = max(0.0, part + _least_share(*u, v) - slack)
    missed = min(u[1], _MISSED / len(drawn))
    mean = _mean(log_p - log_q, max(missed * -floor, -_least_share(0.0, missed, v)))
    half = (part + slack - u[1] * floor - least) / 2
    if half <= mean.standard_error and np.isfinite(half):
        return Estimate(least + half, half, exact=False)
    low = max(0.0, least - float(mean))  # the mean of a sample may be below the proved lower bound
    return Estimate(float(mean) + low, mean.standard_error + low, exact=False, scatter=mean.scatter)


def _least_share(low: float, high: float, v: float) -> float:
    """The minimum of x·log(x/v) for x between the two, which is at v/e if that is between them."""
    return min(x * math.log(x / v) if x else 0.0 for x in (low, high, min(max(v / math.e, low), high)))


def mutual_information(distribution: Distribution, given: Evidence, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """I(A; B | e) of two sets of variables (by columns) for every row e, in nats."""
    if set(a.tolist()) & set(b.tolist()):
        raise EvidenceError("mutual information is between different variables")
    free = np.full(len(distribution.variables), -1, np.int8)
    of_a, of_b = (Assignments.of(distribution.circuit, free, columns) for columns in (a, b))
    if of_a.count * of_b.count > MOST_LISTED:
        raise PgccError(
            f"mutual information lists all {of_a.count * of_b.count:,} assignments of both: at most {MOST_LISTED:,}"
        )
    base = distribution.values(given.chunk(slice(None)), budget.of_information(distribution.rtol))
    in_a, in_b = (of.rows(slice(0, of.count))[:, columns] for of, columns in ((of_a, a), (of_b, b)))
    cells = np.hstack([np.repeat(in_a, len(in_b), axis=0), np.tile(in_b, (len(in_a), 1))])
    found = np.empty(given.rows)
    for row in range(given.rows):
        codes = given.chunk(slice(row, row + 1))[0]
        rows = np.repeat(codes[None], len(cells), axis=0)
        seen = codes[np.concatenate([a, b])]
        rows[:, np.concatenate([a, b])] = cells
        rows[((seen >= 0) & (cells != seen)).any(axis=1)] = codes
        part = distribution.values(rows, budget.of_information(distribution.rtol))
        values = distribution.shares(part, base[row : row + 1], given, np.full(len(rows), row))
        values[((seen >= 0) & (cells != seen)).any(axis=1)] = 0.0
        joint = (values / values.sum()).reshape(len(in_a), len(in_b))
        with np.errstate(divide="ignore", under="ignore"):
            apart = np.log(joint.sum(axis=1)[:, None]) + np.log(
                joint.sum(axis=0)
            )  # the product may be below the range of doubles
            found[row] = _divergences(joint, np.exp(apart), np.log(joint), apart).sum()
    return found


def log_odds(distribution: Distribution, given: Evidence) -> np.ndarray:
    """log Pr(X_i = 1 | e) − log Pr(X_i = 0 | e), rows × columns, then those of `outs` out; ±inf if certain."""
    distribution.possible(given)
    codes = given.chunk(slice(None))
    result = np.where(codes == 1, np.inf, -np.inf)
    row, variable = np.nonzero(codes < 0)
    for some in distribution.portions(len(row)):
        place, at = row[some], variable[some]
        queries = np.repeat(codes[place], 2, axis=0)
        queries[np.arange(0, len(queries), 2), at], queries[np.arange(1, len(queries), 2), at] = 1, 0
        values = distribution.values(queries, budget.of_quotient(distribution.rtol))
        for bad in np.flatnonzero(values.mantissa < 0.0)[:1].tolist():
            raise distribution.no_distribution(given, int(place[bad // 2]))
        result[place, at] = _log_quotients(distribution, values, queries)
    return np.hstack([result, -result[:, distribution.outs]])


def _log_quotients(distribution: Distribution, values: Values, queries: np.ndarray) -> np.ndarray:
    """The log of every other value over the next one, computed with more bits where they are nearly equal."""
    inside, outside = values[::2], values[1::2]
    certain = outside.mantissa == 0.0
    divisor = Values(np.where(certain, 1.0, outside.mantissa), outside.exponent, outside.bound)
    logs = np.where(certain, np.inf, inside.log_over(divisor))
    doubt = inside.bound + outside.bound + 4 * UNIT > budget.of_value(distribution.rtol) * np.abs(logs)
    for k in np.flatnonzero(doubt).tolist():
        pair = (queries[2 * k].tolist(), queries[2 * k + 1].tolist())
        logs[k] = distribution.compiled.exact.log_quotient(*pair, budget.of_value(distribution.rtol))
    return logs


def _listed(
    distribution: Distribution, left: Assignments, order: np.ndarray, whole: Values, given: Evidence, row: int
) -> np.ndarray:
    """log Pr(x | row of evidence) of all assignments x that are left; order : the columns of the distribution in x."""
    logs = np.empty(left.count)
    for some in distribution.portions(left.count):
        rows = np.ascontiguousarray(left.rows(some)[:, order])
        part = distribution.values(rows, budget.of_information(distribution.rtol))
        logs[some] = distribution.shares(part, whole, given, np.full(len(rows), row), logs=True)
    return logs


def _divergences(p: np.ndarray, q: np.ndarray, log_p: np.ndarray, log_q: np.ndarray) -> np.ndarray:
    """p·log(p/q) − p + q ≥ 0, where q = 0 only if p is.

    This is p·(eˣ − 1 − x) with x = log(q/p), which cancels near 0, where the series p·(x²/2! + x³/3! + …) is used.
    """
    with np.errstate(invalid="ignore"):
        x = np.where(p > 0.0, log_q - log_p, 0.0)
    near = np.clip(x, -0.125, 0.125)
    series = np.zeros_like(near)
    for k in range(12, 1, -1):
        series = (1.0 + series) * near / k
    return np.where(np.abs(x) < 0.125, p * near * series, q - p - p * x) + np.where(p > 0.0, 0.0, q)


def _entropy(logs: np.ndarray) -> float:
    """−Σ p·log p, with 0·log 0 = 0. The largest p is 1 minus the others, because its logarithm cancels near 1."""
    top = int(logs.argmax())
    others = np.delete(logs, top)
    others = others[others > -np.inf]
    p = np.exp(others)
    left = np.log1p(p.sum() / np.exp(logs[top]))
    return float(np.exp(logs[top]) * left - p @ others)


def _draw(distribution: Distribution, codes: np.ndarray, samples: int, rng: Any) -> np.ndarray:
    return sample(distribution, Evidence.of_codes(distribution.variables, codes), _checked(samples), rng)[0]


def _checked(samples: Any) -> int:
    """The number of samples, of which there must be at least two."""
    if isinstance(samples, bool) or not isinstance(samples, (int, np.integer)) or samples < 2:
        raise PgccError(f"samples={samples!r}: an estimate with its standard error takes at least 2")
    return int(samples)


def _mean(terms: np.ndarray, missed: float) -> Estimate:
    """The mean; missed : what an event that no sample has seen would add to it."""
    scatter = float(terms.std(ddof=1) / np.sqrt(len(terms)))
    return Estimate(float(terms.mean()), float(np.hypot(scatter, missed)), exact=False, scatter=scatter)


def _enclosed(probability: float, error: float) -> tuple[float, float]:
    return min(1.0, max(0.0, probability - error)), min(1.0, max(0.0, probability) + error)


def _times_log(u: float) -> float:
    return -u * float(np.log(u)) if u > 0.0 else 0.0
