"""Mixtures of trees: the likelihood of rows, and expected counts of pairs of variables, for EM.

A variable has one column, which is 0 or 1, or several, of which exactly one is 1: `size` columns from `home` on.
`above` is the first column of the parent, or −1. A row is the list of its columns that are 1 or show a missing
variable, stored like sparse rows (CSR). The log-likelihood of a complete row is linear in its columns and in the pairs
of a column and one of the parent.

The missing variables of a row form *islands*, connected by edges of the tree. Given all else, islands are independent,
and the sum over the states of one is found by belief propagation on it alone: with the terms that come from other
columns, each missing column has a log-odds δ, and log(1 + e^δ) (log Σ e^δ over the columns of a variable that has
several) changes the constant, or the log-odds of a missing parent. Where nothing but the parent is near, that is known
in advance. The last axis of all arrays is the component.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pgcc.kernels.exp_log import exp, log
from pgcc.kernels.policy import inlined_kernel, kernel
from pgcc.learn.kernels.mixtures import compute_responsibilities


class Table(NamedTuple):
    """Rows of data."""

    codes: np.ndarray  # rows × columns: 1, 0, −1
    start: np.ndarray  # the columns of row r that are 1 or show a missing variable are entries[start[r]:start[r + 1]]
    entries: np.ndarray


class Forms(NamedTuple):
    """Trees in log-linear form, by column (`home` and `size` are the same in all components).

    A *case* is 0 if no column of the parent is 1 (or there is no parent), s + 1 if column s of it is.
    """

    home: np.ndarray
    size: np.ndarray
    above: np.ndarray
    linear: np.ndarray  # the last entry is the constant
    pairwise: np.ndarray  # columns × columns of the parent; 0 if there is no such column
    normal: np.ndarray  # columns × cases: the log of the sum over the states of a variable if no column below it is 1
    chance: np.ndarray  # columns × cases: Pr(the column is 1) then


class Sums(NamedTuple):
    """What a pass over rows finds."""

    logs: np.ndarray  # log Pr(row)
    rows: np.ndarray  # the expected number of rows of every component
    both: np.ndarray  # columns × columns × components; empty if only `logs` are wanted


class Work(NamedTuple):
    """What is known of one row, by column. `delta` and `pending` are all zeros between rows."""

    delta: np.ndarray  # what other columns add to the log-odds of a missing column
    pending: np.ndarray  # the number of missing children from which no message has come
    case: np.ndarray  # of a missing variable; −1 if the parent is missing, too
    chance: np.ndarray  # columns × cases: Pr(column = 1 | the case, what is known of its descendants)
    order: np.ndarray  # the missing variables whose `value` is still open, children first
    found: np.ndarray  # how many these are
    value: np.ndarray  # Pr(column = 1 | the row)
    scores: np.ndarray  # log(weight · Pr(row)), and then responsibilities
    island: np.ndarray  # of a missing variable: its root (of one component, and so are covariances)
    covariance: np.ndarray  # of the missing columns of an island


@inlined_kernel
def find_case(row, above, size):
    """The case of a variable, by the codes of its parent; −1 if that is missing."""
    if above < 0:
        return 0
    case = int(row[above])
    for s in range(1, size[above]):
        if row[above + s] != 0 and case >= 0:
            case = -1 if row[above + s] < 0 else s + 1
    return case


@inlined_kernel
def sum_states(row, v, case, c, forms, work):
    """The log of the sum over the states of a missing variable, given the case of its parent; fills `chance`."""
    columns, chance = range(v, v + forms.size[v]), work.chance
    top = 0.0 if forms.size[v] == 1 else -np.inf
    for i in columns:
        odds = forms.linear[i, c] + work.delta[i, c] if row[i] < 0 else -np.inf
        chance[i, case, c] = odds + forms.pairwise[i, case - 1, c] if case > 0 else odds
        top = max(top, chance[i, case, c])
    total = exp(-top) if forms.size[v] == 1 else 0.0
    for i in columns:
        chance[i, case, c] = exp(chance[i, case, c] - top)
        total += chance[i, case, c]
    for i in columns:
        chance[i, case, c] /= total
    return top + log(total)


@inlined_kernel
def sum_out(row, v, c, forms, work):
    """Sum out a missing variable: returns what that adds to the constant, and adds the rest to a missing parent."""
    u, columns, case, constant, is_far = forms.above[v, c], range(v, v + forms.size[v]), work.case[v, c], 0.0, True
    for i in columns:
        is_far &= work.delta[i, c] == 0.0 and row[i] < 0
    first, last = case, case + 1
    if case < 0:
        first, last = 0 if forms.size[u] == 1 else 1, forms.size[u] + 1
    for k in range(first, last):
        total = forms.normal[v, k, c] if is_far else sum_states(row, v, k, c, forms, work)
        for i in columns if is_far else range(0):
            work.chance[i, k, c] = forms.chance[i, k, c]
        if case >= 0 or k == 0:
            constant = total
        else:
            work.delta[u + k - 1, c] += total - constant
    return constant


@inlined_kernel
def upward(table, r, forms, work):
    """Fill `scores` with log(weight · Pr(what is known of a row))."""
    row, delta, pending, scores = table.codes[r], work.delta, work.pending, work.scores
    components, several = len(scores), forms.pairwise.shape[1] > 1
    for c in range(components):
        scores[c, 0] = forms.linear[len(row), c]
    for a in range(table.start[r], table.start[r + 1]):
        i = table.entries[a]
        for c in range(components if row[i] == 1 else 0):
            u, total = max(forms.above[i, c], 0), forms.linear[i, c]
            for s in range(forms.size[u] if several else 1):
                if row[u + s] < 0:
                    delta[u + s, c] += forms.pairwise[i, s, c]
                else:
                    total += row[u + s] * forms.pairwise[i, s, c]
            scores[c, 0] += total
    for a in range(table.start[r], table.start[r + 1]):
        v = table.entries[a]
        for c in range(components if forms.home[v] == v and row[v] != 1 else 0):
            work.case[v, c] = find_case(row, forms.above[v, c], forms.size)
            if work.case[v, c] < 0:
                pending[forms.above[v, c], c] += 1
    work.found[:] = 0
    for a in range(table.start[r], table.start[r + 1]):
        v = table.entries[a]
        for c in range(components if forms.home[v] == v and row[v] != 1 else 0):
            w, case = v, work.case[v, c]
            if forms.size[v] == 1 and case >= 0 and pending[v, c] == 0 and delta[v, c] == 0.0:
                scores[c, 0] += forms.normal[v, case, c]
                work.value[v, c] = forms.chance[v, case, c]
                continue
            while pending[w, c] == 0:  # from a leaf of an island up
                scores[c, 0] += sum_out(row, w, c, forms, work)
                work.order[work.found[c], c] = w
                work.found[c] += 1
                pending[w, c] = -1
                if work.case[w, c] < 0:
                    w = forms.above[w, c]
                    pending[w, c] -= 1
    for c in range(components):
        for at in range(work.found[c]):
            v = work.order[at, c]
            pending[v, c] = 0
            delta[v : v + forms.size[v], c] = 0.0


@inlined_kernel
def downward(forms, work, both):
    """Find the values that are open; add responsibility · the covariances of columns of islands to `both`."""
    value, cov, island = work.value, work.covariance, work.island
    for c in range(len(work.found)):
        for at in range(work.found[c] - 1, -1, -1):
            v, case = work.order[at, c], work.case[work.order[at, c], c]
            u = forms.above[v, c]
            island[v] = v if case >= 0 else island[u]
            for j in range(v, v + forms.size[v]):
                if case >= 0:
                    value[j, c] = work.chance[j, case, c]
                else:
                    none = work.chance[j, 0, c] if forms.size[u] == 1 else 0.0
                    value[j, c] = none
                    for t in range(forms.size[u]):
                        value[j, c] += value[u + t, c] * (work.chance[j, t + 1, c] - none)
                    for before in range(at + 1, work.found[c]):
                        w = work.order[before, c]
                        for i in range(w, w + forms.size[w] if island[w] == island[v] else w):
                            cov[i, j] = 0.0
                            for t in range(forms.size[u]):
                                cov[i, j] += cov[i, u + t] * (work.chance[j, t + 1, c] - none)
                            cov[j, i] = cov[i, j]
                            both[i, j, c] += work.scores[c, 0] * cov[i, j]
                cov[j, j] = value[j, c] - value[j, c] * value[j, c]
                for i in range(v, j):  # never both are 1
                    cov[i, j] = -value[i, c] * value[j, c]
                    cov[j, i] = cov[i, j]
                    both[i, j, c] += work.scores[c, 0] * cov[i, j]


@inlined_kernel
def add_products(table, first, at, values, shares, both):
    """Add share · value[i] · value[j] for all pairs of entries of some rows, of which `at` has the first ones.

    That goes column by column: if there are too many counts for the cache, those of pairs with one column stay in it.
    (An E-step of 1,500 rows × 1,000 variables, 10 components: 250 ms row by row, 110 ms by 256 rows.)
    """
    begin, i = table.start[first], 0
    while i < len(both):
        following = len(both)
        for r in range(len(at)):
            a, end = at[r], table.start[first + r + 1]
            if a < end and table.entries[a] == i:
                part = values[a - begin]
                for c in range(len(part)):
                    part[c] *= shares[r, c]
                    both[i, i, c] += part[c]
                for b in range(a + 1, end):
                    to, value = both[i, table.entries[b]], values[b - begin]
                    for c in range(len(part)):
                        to[c] += part[c] * value[c]
                a += 1
                at[r] = a
            if a < end:
                following = min(following, table.entries[a])
        i = following


@kernel
def expect(table, forms, counts, given, first, last, step, work, sums):
    """Fills `sums` for the rows first … last − 1.

    Each row adds responsibility · Pr(x_i = 1, x_j = 1 | what is known of it) to both[i, j] or both[j, i]: the product
    of the two probabilities, and the covariance if both are in one island. Responsibilities may be `given`.
    """
    n, components = forms.above.shape
    once, at = np.ones(1), np.empty(step, np.int64)
    values, shares = np.empty((step * n, components)), np.empty((step, components))
    for begin in range(first, last, step):
        end = min(begin + step, last)
        for r in range(begin, end):
            upward(table, r, forms, work)
            sums.logs[r] = compute_responsibilities(once, work.scores, work.scores)
            if len(sums.both) == 0:
                continue
            at[r - begin] = table.start[r]
            for c in range(components):
                work.scores[c, 0] = counts[r] * (given[c, r] if given.shape[1] > 0 else work.scores[c, 0])
                sums.rows[c] += work.scores[c, 0]
                shares[r - begin, c] = work.scores[c, 0]
            downward(forms, work, sums.both)
            for a in range(table.start[r], table.start[r + 1]):
                i, value = table.entries[a], values[a - table.start[begin]]
                for c in range(components):
                    value[c] = 1.0 if table.codes[r, i] == 1 else work.value[i, c]
        if len(sums.both) > 0:
            add_products(table, begin, at[: end - begin], values, shares, sums.both)
