"""Groups of variables that depend positively on each other: the greedy partition of SimplePGC."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pgcc.ir.blocks import Blocks

# A leaf has 2^K − 1 parameters.
LARGEST_GROUP = 12


class Exclusive(list):  # of columns, by number or name
    """The group of the columns of a variable with states: exactly one of them is 1."""


def codes_of(group: Sequence) -> list[tuple[int, ...]]:
    """The sets of variables that a group may show, as places in it.

    >>> codes_of([3, 5]), codes_of(Exclusive([3, 5, 7]))
    ([(0,), (1,), (0, 1)], [(0,), (1,), (2,)])
    """
    if isinstance(group, Exclusive):
        return [(i,) for i in range(len(group))]
    return [tuple(i for i in range(len(group)) if bits >> i & 1) for bits in range(1, 1 << len(group))]


def count_pairs(codes: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """For all pairs of variables, the number of rows in which both are known, both are 1, or i is 1 and j is known."""
    ones, known = (codes == 1).astype(np.float64), (codes >= 0).astype(np.float64)
    some = ones * counts[:, None]
    return np.stack([(known * counts[:, None]).T @ known, some.T @ ones, some.T @ known])


def positive_dependence(pairs: np.ndarray) -> np.ndarray:
    """w_ij = Pr(X_i = 1, X_j = 1) · log(Pr(X_i = 1, X_j = 1) / (Pr(X_i = 1) · Pr(X_j = 1))), from `count_pairs`.

    It is zero if the two are never both 1. Only rows in which both are known are counted.

    >>> positive_dependence(count_pairs(np.array([[1, 1], [0, 0]]), np.ones(2))).round(4).tolist()
    [[0.3466, 0.3466], [0.3466, 0.3466]]
    """
    known, ones, first = pairs
    rows = np.maximum(known, 1.0)
    both, mine = ones / rows, first / rows
    apart = mine * mine.T
    ratio = np.divide(both, apart, out=np.ones_like(both), where=both > 0)
    return both * np.log(ratio)


def partition_columns(weights: np.ndarray, most: int, blocks: Blocks) -> list[list[int]]:
    """`partition_variables` of the columns that are alone, followed by the groups of the others.

    >>> partition_columns(np.ones((5, 5)), 2, Blocks(np.array([0, 3, 4]), np.array([0, 0, 0, 1, 2])))
    [[3, 4], [0, 1, 2]]
    """
    alone = np.flatnonzero(blocks.size == 1)
    groups = [alone[group].tolist() for group in partition_variables(weights[np.ix_(alone, alone)], most)]
    several = [first for first in blocks.first.tolist() if blocks.size[first] > 1]
    return [*groups, *(Exclusive(range(first, first + int(blocks.size[first]))) for first in several)]


def partition_variables(weights: np.ndarray, most: int) -> list[list[int]]:
    """Algorithm 1 of the paper: merge the groups of the most dependent pairs first, up to a largest size.

    Parameters
    ----------
    weights : array, n × n
        w_ij; only entries above the diagonal are used. Pairs whose weight is not positive are not merged.
    most : int
        The largest size of a group.

    Returns
    -------
    list of lists
        The groups, each in ascending order, ordered by their first variables. Of pairs with equal weights, the first
        one, row by row, is merged first.

    Examples
    --------
    >>> w = np.array([[0, 3, 2, 0], [0, 0, 1, 0], [0, 0, 0, 1.0], [0, 0, 0, 0]])
    >>> partition_variables(w, 2), partition_variables(w, 3), partition_variables(w, 1)
    ([[0, 1], [2, 3]], [[0, 1, 2], [3]], [[0], [1], [2], [3]])
    """
    n = len(weights)
    group = [[i] for i in range(n)]
    first, second = np.triu_indices(n, 1)
    w = weights[first, second]
    for k in np.argsort(-w, kind="stable"):
        i, j = int(first[k]), int(second[k])
        if not w[k] > 0:
            break
        if group[i] is not group[j] and len(group[i]) + len(group[j]) <= most:
            union = sorted(group[i] + group[j])
            for member in union:
                group[member] = union
    return [group[i] for i in range(n) if group[i][0] == i]
