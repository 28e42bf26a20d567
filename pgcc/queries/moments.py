"""Mean, variance, skewness and kurtosis of how many of some variables are in, and covariances of such counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from pgcc.certify import budget
from pgcc.data.evidence import Evidence
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
    exact = distribution.compiled.exact_counting
    rows = [exact.moments(codes, counted, distribution.rtol) for codes in given.chunk(slice(None))]
    return Moments(*np.array(rows).reshape(-1, 4).T)


def _times(distribution: Distribution, columns: np.ndarray) -> np.ndarray:
    """How many times each variable counts."""
    return np.bincount(columns, minlength=len(distribution.variables))


def covariance_of_counts(distribution: Distribution, given: Evidence, groups: Sequence[np.ndarray]) -> np.ndarray:
    """rows × k × k: Cov(|S ∩ A|, |S ∩ B|) given every row, for k sets of columns, off by at most rtol·σ_A·σ_B."""
    distribution.possible(given)
    counts = [_times(distribution, columns) for columns in groups]
    exact, result = distribution.compiled.exact_counting, np.empty((given.rows, len(counts), len(counts)))
    for row, codes in enumerate(given.chunk(slice(None))):
        for i, j in zip(*np.triu_indices(len(counts)), strict=True):
            found = exact.covariance(codes, counts[i], counts[j], distribution.rtol)
            result[row, i, j] = result[row, j, i] = found
    return result


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
