"""Sparse tables: the assignments at which a table is not zero, as arrays, and their joins.

A table with few zeros and one with many are the same thing here: a row per *live* assignment. All work on rows is done
by numpy, for all rows at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pgcc.ir.flat import spread


class Relation(NamedTuple):
    """The live assignments of some variables, and what stands there.

    Attributes
    ----------
    scope : tuple of int
        The variables, by index.
    states : integer array
        ``states[i, r]`` is the state of variable ``scope[i]`` in row r.
    weights : float64 array
        For every row, a number > 0.
    nodes : integer array or None
        For every row, the position of a node by which the number is multiplied; None in tables of numbers.
    """

    scope: tuple[int, ...]
    states: np.ndarray
    weights: np.ndarray
    nodes: np.ndarray | None = None


class TooManyRowsError(Exception):
    """A join would have more rows than allowed."""


def from_table(scope: tuple[int, ...], table: np.ndarray) -> Relation:
    """The entries of a table that are not zero.

    >>> from_table((4, 7), np.array([[0.5, 0], [0.25, 0.25]])).states.tolist()
    [[0, 1, 1], [0, 0, 1]]
    """
    live = np.flatnonzero(table)
    states = np.array(np.unravel_index(live, table.shape or (1,)), np.int32)[: len(scope)]
    return Relation(scope, states, table.ravel()[live])


def number_columns(columns: Sequence[np.ndarray], sizes: Sequence[int]) -> tuple[np.ndarray, int]:
    """A number for each row of some columns, in lexicographic order: equal rows have equal numbers.

    sizes : the entries of each column are less than this.

    Returns the numbers, and a bound on them.

    >>> number_columns([np.array([0, 1, 1]), np.array([2, 0, 2])], [2, 3])[0].tolist()
    [2, 3, 5]
    """
    code, span = columns[0].astype(np.int64), sizes[0]
    for column, size in zip(columns[1:], sizes[1:], strict=True):
        if span * size >= 1 << 62:
            distinct, code = np.unique(code, return_inverse=True)
            span = len(distinct)
        code = code * size + column
        span *= size
    return code, span


def join(
    relations: Sequence[Relation], sizes: Sequence[int], most: int
) -> tuple[tuple[int, ...], np.ndarray, list[np.ndarray]]:
    """The assignments that are live in all of several relations.

    Parameters
    ----------
    relations : sequence of Relation
    sizes : sequence of int
        The number of states of every variable.
    most : int
        The largest number of rows.

    Returns
    -------
    scope, states
        As in a `Relation`.
    rows : list of integer arrays
        For every relation, which of its rows each row of the join comes from.
    """
    left = list(range(len(relations)))
    first = max(left, key=lambda i: relations[i].states.shape[1])
    scope, states = relations[first].scope, relations[first].states
    rows = {first: np.arange(states.shape[1])}
    left.remove(first)
    while left:
        nearest = min(left, key=lambda i: _growth(scope, relations[i], sizes))
        left.remove(nearest)
        other = relations[nearest]
        mine, its = _matches(scope, states, other, sizes, most)
        if mine is not None:
            states = states[:, mine]
            rows = {i: row[mine] for i, row in rows.items()}
        rows[nearest] = its
        new = [i for i, v in enumerate(other.scope) if v not in scope]
        if new:
            scope += tuple(other.scope[i] for i in new)
            states = np.concatenate([states, other.states[new][:, its]])
    return scope, states, [rows[i] for i in range(len(relations))]


def _growth(scope: tuple[int, ...], other: Relation, sizes: Sequence[int]) -> float:
    """The number of rows of a join per row of `scope`, if states were independent."""
    common = 1.0
    for v in set(scope).intersection(other.scope):
        common *= sizes[v]
    return other.states.shape[1] / common


def _matches(
    scope: tuple[int, ...], states: np.ndarray, other: Relation, sizes: Sequence[int], most: int
) -> tuple[np.ndarray | None, np.ndarray]:
    """The pairs of rows that agree in the common variables; None for "every row of the first, once"."""
    n, m = states.shape[1], other.states.shape[1]
    common = [v for v in scope if v in other.scope]
    if not common:
        _check_rows(n * m, most)
        return np.repeat(np.arange(n), m), np.tile(np.arange(m), n)
    columns = [np.concatenate([states[scope.index(v)], other.states[other.scope.index(v)]]) for v in common]
    code, span = number_columns(columns, [sizes[v] for v in common])
    if span > 4 * (n + m) + 1024:
        distinct, code = np.unique(code, return_inverse=True)
        span = len(distinct)
    mine, its = code[:n], code[n:]
    count = np.bincount(its, minlength=span)
    order = np.argsort(its, kind="stable")
    repeats = count[mine]
    _check_rows(int(repeats.sum()), most)
    first = (np.cumsum(count) - count)[mine]
    if (repeats == 1).all():
        return None, order[first]
    return np.repeat(np.arange(n), repeats), order[spread(first, repeats)]


def _check_rows(count: int, most: int) -> None:
    if count > most:
        raise TooManyRowsError(f"{count:,} live terms")
