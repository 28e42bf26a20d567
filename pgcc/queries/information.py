"""Entropy, divergence, mutual information and log-odds: sums over all that can be, or estimates from samples.

Sums are exact where at most 2¹⁶ assignments are left; elsewhere the mean over samples, with its standard error.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from pgcc.errors import EvidenceError, PgccError
from pgcc.queries.distribution import Distribution
from pgcc.queries.evidence import Evidence
from pgcc.queries.sampling import sample

# Unobserved variables whose assignments are still listed.
MOST_LISTED = 16


class Estimate(float):
    """A number in nats, exact or the mean over samples.

    Attributes
    ----------
    standard_error : float
        Of the mean; 0 if the number is exact.
    exact : bool
    """

    standard_error: float
    exact: bool

    def __new__(cls, value: float, standard_error: float = 0.0, exact: bool = True) -> Estimate:
        number = super().__new__(cls, value)
        number.standard_error, number.exact = standard_error, exact
        return number

    def __getnewargs__(self) -> tuple[float, float, bool]:  # type: ignore[override]
        return float(self), self.standard_error, self.exact

    def __repr__(self) -> str:
        return float.__repr__(self) if self.exact else f"{float(self):.6g} ± {self.standard_error:.2g}"

    __str__ = __repr__


def entropy(distribution: Distribution, given: Evidence, samples: int, rng: Any) -> list[Estimate]:
    """−Σ Pr(x | e)·log Pr(x | e) for every row e, in nats."""
    base = distribution.possible(given)
    found = []
    for row in range(given.rows):
        codes = given.chunk(slice(row, row + 1))[0]
        if (codes < 0).sum() <= MOST_LISTED:
            logs = distribution.logprobs(completions(codes)) - base[row]
            found.append(Estimate(float(-_weighted(np.exp(logs), logs))))
        else:
            drawn = _draw(distribution, codes, samples, rng)
            found.append(_mean(base[row] - distribution.logprobs(drawn)))
    return found


def kl(p: Distribution, q: Distribution, given: Evidence, samples: int, rng: Any) -> list[Estimate]:
    """Σ Pr_p(x | e)·log(Pr_p(x | e) / Pr_q(x | e)) for every row e; inf where q excludes what p allows.

    An exact one is Σ p·log(p/q) − p + q, no term of which is negative: nothing cancels where p and q are close.
    """
    if set(p.variables) != set(q.variables):
        odd = sorted(set(p.variables) ^ set(q.variables))
        raise PgccError(f"distributions over different variables have no divergence: only one of them has {odd[0]!r}")
    order = p.columns(q.variables)
    base_p = p.possible(given)
    base_q = q.logprobs(np.ascontiguousarray(given.chunk(slice(None))[:, order]))
    found = []
    for row in range(given.rows):
        codes = given.chunk(slice(row, row + 1))[0]
        exact = (codes < 0).sum() <= MOST_LISTED
        rows = completions(codes) if exact else _draw(p, codes, samples, rng)
        log_p = p.logprobs(rows) - base_p[row]
        with np.errstate(invalid="ignore"):
            log_q = q.logprobs(np.ascontiguousarray(rows[:, order])) - base_q[row]
        if np.isneginf(base_q[row]) or (np.isneginf(log_q) & ~np.isneginf(log_p)).any():
            found.append(Estimate(np.inf))
        elif exact:
            found.append(Estimate(float(_divergences(np.exp(log_p), np.exp(log_q), log_p, log_q).sum())))
        else:
            found.append(_mean(log_p - log_q))
    return found


def mutual_information(distribution: Distribution, given: Evidence, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """I(A; B | e) of two sets of variables (by columns) for every row e, in nats."""
    if len(a) + len(b) > MOST_LISTED:
        raise PgccError(f"mutual information lists the 2^(|A| + |B|) assignments: at most {MOST_LISTED} variables")
    if set(a.tolist()) & set(b.tolist()):
        raise EvidenceError("mutual information is between different variables")
    distribution.possible(given)
    cells = np.array(list(product((0, 1), repeat=len(a) + len(b))), np.int8)
    found = np.empty(given.rows)
    for row in range(given.rows):
        codes = given.chunk(slice(row, row + 1))[0]
        rows = np.repeat(codes[None], len(cells), axis=0)
        seen = codes[np.concatenate([a, b])]
        rows[:, np.concatenate([a, b])] = cells
        values = distribution.probs(rows)
        values[((seen >= 0) & (cells != seen)).any(axis=1)] = 0.0
        joint = (values / values.sum()).reshape(1 << len(a), 1 << len(b))
        apart = joint.sum(axis=1)[:, None] * joint.sum(axis=0)
        with np.errstate(divide="ignore"):
            found[row] = _divergences(joint, apart, np.log(joint), np.log(apart)).sum()
    return found


def log_odds(distribution: Distribution, given: Evidence) -> np.ndarray:
    """log Pr(X_i = 1 | e) − log Pr(X_i = 0 | e), rows × variables; ±inf for what is certain."""
    distribution.possible(given)
    codes = given.chunk(slice(None))
    result = np.where(codes == 1, np.inf, -np.inf)
    row, variable = np.nonzero(codes < 0)
    queries = codes[np.tile(row, 2)]
    place = np.arange(len(row))
    queries[place, variable], queries[len(row) + place, variable] = 1, 0
    logs = distribution.logprobs(queries)
    result[row, variable] = logs[: len(row)] - logs[len(row) :]
    return result


def completions(codes: np.ndarray) -> np.ndarray:
    """All rows that agree with what is observed."""
    free = np.flatnonzero(codes < 0)
    rows = np.repeat(codes[None], 1 << len(free), axis=0)
    rows[:, free] = np.arange(1 << len(free))[:, None] >> np.arange(len(free))[::-1] & 1
    return rows


def _divergences(p: np.ndarray, q: np.ndarray, log_p: np.ndarray, log_q: np.ndarray) -> np.ndarray:
    """p·log(p/q) − p + q ≥ 0, where q = 0 only if p is; accurate where p and q are close."""
    with np.errstate(invalid="ignore"):
        ratio = np.where(p > 0.0, log_q - log_p, 0.0)
        terms = np.where(p > 0.0, p * (np.expm1(ratio) - ratio), q)
    return np.maximum(terms, 0.0)


def _weighted(p: np.ndarray, logs: np.ndarray) -> float:
    """Σ p·log p with 0·log 0 = 0."""
    return float(np.sum(np.where(p > 0.0, p * np.where(p > 0.0, logs, 0.0), 0.0)))


def _draw(distribution: Distribution, codes: np.ndarray, samples: int, rng: Any) -> np.ndarray:
    if isinstance(samples, bool) or not isinstance(samples, int) or samples < 2:
        raise PgccError(f"samples={samples!r}: an estimate with its standard error takes at least 2")
    return sample(distribution, Evidence(distribution.variables, codes), samples, rng)[0]


def _mean(terms: np.ndarray) -> Estimate:
    error = float(terms.std(ddof=1) / np.sqrt(len(terms)))
    return Estimate(float(terms.mean()), error, exact=False)
