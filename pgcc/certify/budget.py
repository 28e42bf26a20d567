"""The error budget: the share of a relative error `rtol` that each part of an answer may take.

The caller was promised `rtol`. An answer is assembled from parts (a value and the total that divides it, two values and
their quotient, a determinant inside a value), whose relative errors add up. The rest of `rtol` covers the roundings in
between. Shares are powers of two, so that they are computed exactly.
"""

from __future__ import annotations


def of_value(rtol: float) -> float:
    """For g(evidence) in the probability g(evidence) / g(1), and in the logarithm of a raw value."""
    return rtol / 2


def of_total(rtol: float) -> float:
    """For g(1), by which values are divided: with the half for a value, more than a third is left for roundings."""
    return rtol / 8


def of_quotient(rtol: float) -> float:
    """For each of the two values of a quotient Pr(a) / Pr(b), and for each coefficient of a pmf that is normalised."""
    return rtol / 4


def of_information(rtol: float) -> float:
    """For each value in sums Σ p·log(p / q): quotients of quotients, or a quotient and its logarithm."""
    return rtol / 8


def of_determinant(rtol: float) -> float:
    """For a determinant inside a value: its children, the sums above it and its own magnitude take the rest."""
    return rtol / 8


def of_enclosure(rtol: float) -> float:
    """For a determinant's polynomial enclosed by two others: its error is their distance plus their own errors."""
    return rtol / 4


def of_product(rtol: float) -> float:
    """For each of two probabilities that are multiplied: their errors add up, and the product is rounded."""
    return rtol / 4


def of_moments(rtol: float) -> float:
    """For every entry of the pmf whose moments are computed: see `queries.moments.moments`."""
    return rtol / 16


def of_search(rtol: float) -> float:
    """For every log-probability that a search for the mode compares, but no less than float64 can guarantee."""
    return max(1e-15, rtol / 16)


def of_summands(rtol: float, total: float, count: int) -> float:
    """The absolute error of each of `count` probabilities whose sum is at least `total`."""
    return rtol / 4 * total / max(1, count)


def of_counts(atol: float) -> float:
    """For each coefficient of a distribution that is then normalised, given the absolute error of each in the end."""
    return atol / 2


def of_cuts(atol: float, count: int) -> float:
    """For each of `count` places at which two negligible tails of a distribution may be cut off."""
    return atol / (64.0 * count)


def of_pruning(tolerance: float) -> float:
    """For partial assignments that a search for the mode prunes; the errors of logarithms take the other half."""
    return tolerance / 2
