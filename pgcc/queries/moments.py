"""Mean, variance, skewness and kurtosis of how many of some variables are in, and covariances of such counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from flint import arb

from pgcc.certify import budget
from pgcc.data.evidence import Evidence
from pgcc.exact.precision import ball_parts
from pgcc.queries.cardinality import cardinality
from pgcc.queries.distribution import Distribution
from pgcc.queries.marginals import marginals

# The moments of longer distributions follow from derivatives, which take less time than the distributions.
_LONG = 1000


class Moments(NamedTuple):
    """The moments of a count: numbers, or arrays with one entry per row of evidence.

    Attributes
    ----------
    mean, variance
        The mean and the variance of the count.
    skewness
        The third central moment over the variance to the power 3/2; NaN if the variance is 0. Its terms cancel, so it
        has an absolute error, rtol·√kurtosis: the skewness of a symmetric distribution is not exactly 0.
    kurtosis
        The fourth central moment over the square of the variance; 3 for a normal distribution, NaN without variance.

    Examples
    --------
    >>> import pgcc
    >>> pgcc.compile(pgcc.parse("(a + 1)*(b + 1)/4")).moments().mean
    1.0
    """

    mean: Any
    variance: Any
    skewness: Any
    kurtosis: Any


def moments(distribution: Distribution, given: Evidence, columns: np.ndarray) -> Moments:
    """The moments of |S ∩ T| given every row.

    From the distribution, if it is short. With pmf entries to a relative error ε: E[d²] and 2·|a|·E|d| ≤ E[d²] are off
    by ε·E[d²] each, and the variance is at least half of E[d²]: 4ε. A shift of a by ε·E|d| ≤ ε·σ·√2 in the third and
    fourth moment, and the variance in the denominators, make less than 16ε of the moments' own sizes E|d − a|³ ≤
    σ³·√kurtosis and E(d − a)⁴.
    """
    if len(columns) <= _LONG:
        return moments_of(cardinality(replace(distribution, rtol=budget.of_moments(distribution.rtol)), given, columns))
    distribution.possible(given)
    counted = _times(distribution, columns)
    rows = [_by_derivatives(distribution, codes, counted) for codes in given.chunk(slice(None))]
    return Moments(*np.array(rows, float).reshape(-1, 4).T)


def _times(distribution: Distribution, columns: np.ndarray) -> np.ndarray:
    """How many times each variable counts."""
    return np.bincount(columns, minlength=len(distribution.variables))


def _by_derivatives(distribution: Distribution, codes: np.ndarray, counted: np.ndarray) -> Moments:
    """The moments of a count given one row, from derivatives at t = 1: the digits that cancel are computed, too."""
    observed = int(counted[codes == 1].sum())

    def read(expansions: list[list[Any]]) -> Moments | None:
        mean, variance, third, fourth = map(arb, _central(expansions[0]))
        if variance == 0:
            return Moments(_accurate(mean + observed, distribution.rtol), 0.0, np.nan, np.nan)
        kurtosis = fourth / variance**2
        skewness = third / (variance * variance.sqrt())
        found = [_accurate(x, distribution.rtol) for x in (mean + observed, variance, kurtosis)]
        if None in found or not skewness.rad() <= distribution.rtol * kurtosis.sqrt():
            return None
        return Moments(found[0], found[1], float(skewness), found[2])

    return distribution.compiled.exact_counting.expanded(codes, [counted], read)


def _central(c: Sequence[Any]) -> tuple[Any, Any, Any, Any]:
    """The mean and the central moments of a count, given the coefficients E[C(N, k)] · c_0 of ε^k.

    >>> _central([1.0, 1.0, 0.25, 0.0, 0.0])  # of two fair coins
    (1.0, 0.5, 0.0, 0.5)
    """
    first, second, third, fourth = (factor * x / c[0] for factor, x in zip((1, 2, 6, 24), c[1:], strict=True))
    # E[N^k] from the factorial moments E[N·(N − 1)·…·(N − k + 1)]
    a, b = first, second + first
    d, e = third + 3 * second + first, fourth + 6 * third + 7 * second + first
    return a, b - a**2, d - 3 * a * b + 2 * a**3, e - 4 * a * d + 6 * a**2 * b - 3 * a**4


def _accurate(ball: Any, rtol: float) -> float | None:
    """A ball as a double, if its relative error is at most `rtol`."""
    return float(ball) if ball_parts(ball)[2] <= rtol else None


def covariance_of_counts(distribution: Distribution, given: Evidence, groups: Sequence[np.ndarray]) -> np.ndarray:
    """rows × k × k: Cov(|S ∩ A|, |S ∩ B|) given every row, for k sets of columns, off by at most rtol·σ_A·σ_B.

    By polarisation, 2·Cov(M, N) = Var(M + N) − Var(M) − Var(N).
    """
    distribution.possible(given)
    counts = [_times(distribution, columns) for columns in groups]
    exact, result = distribution.compiled.exact_counting, np.empty((given.rows, len(counts), len(counts)))
    for row, codes in enumerate(given.chunk(slice(None))):
        for i, j in zip(*np.triu_indices(len(counts)), strict=True):
            several = [counts[i] + counts[j], counts[i], counts[j]]
            result[row, i, j] = result[row, j, i] = exact.expanded(codes, several, _covariance(distribution.rtol))
    return result


def _covariance(rtol: float) -> Callable[[list[list[Any]]], float | None]:
    """Reads a covariance from the expansions of a sum of two counts and of each of them."""

    def read(expansions: list[list[Any]]) -> float | None:
        both, one, other = (arb(_central(c)[1]) for c in expansions)
        found = (both - one - other) / 2
        is_accurate = bool(found.rad() <= rtol * (one * other).sqrt()) or found.is_exact()
        return float(found) if is_accurate else None

    return read


def moments_of(pmf: np.ndarray) -> Moments:
    """The moments of rows of probabilities of 0, 1, 2, …

    Deviations d are from the integer c next to the mean, without rounding. With a = E[d], |a| ≤ ½, the variance is
    E[d²] − a², of which a² is at most half, because d² ≥ |d|: however small it is, it keeps its digits.

    >>> moments_of(np.array([[0.5, 0.0, 0.5]]))
    Moments(mean=array([1.]), variance=array([1.]), skewness=array([0.]), kurtosis=array([1.]))
    """
    k = np.arange(pmf.shape[1])
    centre = np.rint(pmf @ k)
    d = k - centre[:, None]
    a = (d * pmf).sum(axis=1)
    variance = np.maximum((d**2 * pmf).sum(axis=1) - a**2, 0.0)
    third, fourth = (((d - a[:, None]) ** power * pmf).sum(axis=1) for power in (3, 4))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return Moments(pmf @ k, variance, third / variance / np.sqrt(variance), fourth / variance / variance)


def expected_count(distribution: Distribution, given: Evidence, columns: np.ndarray) -> np.ndarray:
    """E[|S ∩ T|] given every row: the sum of marginals."""
    return marginals(distribution, given)[:, columns].sum(axis=1)
