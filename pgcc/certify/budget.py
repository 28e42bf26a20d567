"""The error budget: which share of a relative error `rtol` each part of an answer may take.

`rtol` is what a caller was promised. An answer is put together from parts (a value and the total that divides it, two
values and their quotient, a determinant inside of a value), whose relative errors add up; what the shares of the parts
leave of `rtol` pays for the roundings in between. Shares are powers of two, so that taking one rounds nothing.
"""

from __future__ import annotations


def of_value(rtol: float) -> float:
    """For g(evidence) in the probability g(evidence) / g(1); also for a logarithm that is divided by nothing."""
    return rtol / 2


def of_total(rtol: float) -> float:
    """For g(1), by which values are divided: beside the half of a value it leaves more than a third for roundings."""
    return rtol / 8


def of_quotient(rtol: float) -> float:
    """For each of the two values of a quotient Pr(a) / Pr(b), and for each coefficient of a pmf that is normalised."""
    return rtol / 4


def of_information(rtol: float) -> float:
    """For each value in sums Σ p·log(p / q): quotients of quotients, or a quotient and its logarithm."""
    return rtol / 8


def of_determinant(rtol: float) -> float:
    """For a determinant inside of a value: its children, the sums above it and its own magnitude take the rest."""
    return rtol / 8


def of_enclosure(rtol: float) -> float:
    """For a determinant's polynomial between two others: it may be off by the distance of both, and by their errors."""
    return rtol / 4


def of_product(rtol: float) -> float:
    """For each of two probabilities that are multiplied: their errors, too, and the product is rounded."""
    return rtol / 4


def of_moments(rtol: float) -> float:
    """For every entry of the pmf that moments are taken of: see `queries.moments.moments`."""
    return rtol / 16


def of_search(rtol: float) -> float:
    """For every log-probability that a search for the mode compares; not below what float64 can promise."""
    return max(1e-15, rtol / 16)


def of_summands(rtol: float, total: float, count: int) -> float:
    """The absolute error of each of `count` probabilities whose sum is at least `total`."""
    return rtol / 4 * total / max(1, count)


def of_counts(atol: float) -> float:
    """For all coefficients of a distribution together, in an absolute error of each after they are normalised."""
    return atol / 2


def of_cuts(atol: float, count: int) -> float:
    """For each of `count` places at which the negligible tail of a distribution may be cut off."""
    return atol / (16.0 * count)


def of_pruning(tolerance: float) -> float:
    """For partial assignments that a search for the mode leaves away; the errors of logarithms take the other half."""
    return tolerance / 2
