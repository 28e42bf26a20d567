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
            logs = _listed(distribution, codes, distribution.variables) - base[row]
            found.append(Estimate(_entropy(logs)))
        else:
            drawn = _draw(distribution, codes, samples, rng)
            logs = distribution.logprobs(drawn) - base[row]
            found.append(_sampled_entropy(drawn, logs, int((codes < 0).sum()), distribution.rtol))
    return found


def _sampled_entropy(drawn: np.ndarray, logs: np.ndarray, free: int, rtol: float) -> Estimate:
    """The mean of −log Pr over samples; the sum over what they have seen, if that is nearly all there is.

    For then their scatter tells nothing of what they missed. It has a probability u, which so many samples may miss
    while u·samples is below 3 or so, and adds −u·log u + u·H, 0 ≤ H ≤ free·log 2.
    """
    _, first = np.unique(drawn, axis=0, return_index=True)
    seen = logs[first]
    u = max(1.0 - float(np.exp(seen).sum()), rtol)
    if u * len(drawn) > 3.0:
        return _mean(-logs)
    half = float(u * (free * np.log(2.0) - np.log(u))) / 2
    return Estimate(float(-(np.exp(seen) @ seen)) + half, half, exact=False)


def kl(p: Distribution, q: Distribution, given: Evidence, samples: int, rng: Any) -> list[Estimate]:
    """Σ Pr_p(x | e)·log(Pr_p(x | e) / Pr_q(x | e)) for every row e; inf where q excludes what p allows.

    An exact one is Σ p·log(p/q) − p + q, no term of which is negative: where p and q are close, what cancels is only in
    log p − log q, so that the error is below rtol·(D + √D).
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
        if exact:
            log_p, log_q = (_listed(each, codes, p.variables) for each in (p, q))
        else:
            rows = _draw(p, codes, samples, rng)
            log_p, log_q = p.logprobs(rows), q.logprobs(np.ascontiguousarray(rows[:, order]))
        with np.errstate(invalid="ignore"):
            log_p, log_q = log_p - base_p[row], log_q - base_q[row]
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
    base = distribution.possible(given)
    cells = np.array(list(product((0, 1), repeat=len(a) + len(b))), np.int8)
    found = np.empty(given.rows)
    for row in range(given.rows):
        codes = given.chunk(slice(row, row + 1))[0]
        rows = np.repeat(codes[None], len(cells), axis=0)
        seen = codes[np.concatenate([a, b])]
        rows[:, np.concatenate([a, b])] = cells
        values = np.exp(distribution.logprobs(rows, distribution.rtol / 8) - base[row])
        values[((seen >= 0) & (cells != seen)).any(axis=1)] = 0.0
        joint = (values / values.sum()).reshape(1 << len(a), 1 << len(b))
        of_a, of_b = joint.sum(axis=1)[:, None], joint.sum(axis=0)
        with np.errstate(divide="ignore", under="ignore"):
            apart = np.log(of_a) + np.log(of_b)  # the product may be below the range of doubles
            found[row] = _divergences(joint, np.exp(apart), np.log(joint), apart).sum()
    return found


def log_odds(distribution: Distribution, given: Evidence) -> np.ndarray:
    """log Pr(X_i = 1 | e) − log Pr(X_i = 0 | e), rows × variables; ±inf for what is certain."""
    distribution.possible(given)
    codes = given.chunk(slice(None))
    result = np.where(codes == 1, np.inf, -np.inf)
    row, variable = np.nonzero(codes < 0)
    for some in distribution.portions(len(row)):
        place, at = row[some], variable[some]
        queries = codes[place]
        queries[np.arange(len(place)), at] = 1
        result[place, at] = distribution.logprobs(queries, distribution.rtol / 2)
        queries[np.arange(len(place)), at] = 0
        result[place, at] -= distribution.logprobs(queries, distribution.rtol / 2)
    return result


def _listed(distribution: Distribution, codes: np.ndarray, names: tuple[str, ...]) -> np.ndarray:
    """log Pr of all rows that agree with what is observed; names : whose columns the codes are."""
    free = np.flatnonzero(codes < 0)
    logs = np.empty(1 << len(free))
    column = {name: i for i, name in enumerate(names)}
    order = [column[name] for name in distribution.variables]
    for some in distribution.portions(len(logs)):
        rows = np.repeat(codes[None], some.stop - some.start, axis=0)
        rows[:, free] = np.arange(some.start, some.stop)[:, None] >> np.arange(len(free))[::-1] & 1
        logs[some] = distribution.logprobs(np.ascontiguousarray(rows[:, order]), distribution.rtol / 8)
    return logs


def _divergences(p: np.ndarray, q: np.ndarray, log_p: np.ndarray, log_q: np.ndarray) -> np.ndarray:
    """p·log(p/q) − p + q ≥ 0, where q = 0 only if p is.

    That is p·(eˣ − 1 − x) with x = log(q/p), which near 0 cancels: there it is the series p·(x²/2! + x³/3! + …).
    """
    with np.errstate(invalid="ignore"):
        x = np.where(p > 0.0, log_q - log_p, 0.0)
    near = np.clip(x, -0.125, 0.125)
    series = np.zeros_like(near)
    for k in range(12, 1, -1):
        series = (1.0 + series) * near / k
    return np.where(np.abs(x) < 0.125, p * near * series, q - p - p * x) + np.where(p > 0.0, 0.0, q)


def _entropy(logs: np.ndarray) -> float:
    """−Σ p·log p, with 0·log 0 = 0; the largest p as what the others leave, for its logarithm cancels near 1."""
    top = int(logs.argmax())
    others = np.delete(logs, top)
    others = others[others > -np.inf]
    p = np.exp(others)
    left = np.log1p(p.sum() / np.exp(logs[top]))
    return float(np.exp(logs[top]) * left - p @ others)


def _draw(distribution: Distribution, codes: np.ndarray, samples: int, rng: Any) -> np.ndarray:
    if isinstance(samples, bool) or not isinstance(samples, (int, np.integer)) or samples < 2:
        raise PgccError(f"samples={samples!r}: an estimate with its standard error takes at least 2")
    return sample(distribution, Evidence(distribution.variables, codes), int(samples), rng)[0]


def _mean(terms: np.ndarray) -> Estimate:
    error = float(terms.std(ddof=1) / np.sqrt(len(terms)))
    return Estimate(float(terms.mean()), error, exact=False)
