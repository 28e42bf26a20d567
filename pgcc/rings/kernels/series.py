"""A program over truncated polynomials in t: z = t for variables observed 1, 0 for observed 0, 1 for the free ones.

`run_bottom` keeps the coefficients of 1, t, …, t^(L−1). `run_top` keeps, of every value u, the L coefficients from
t^D(u) downwards, where D(u) is a bound on its degree: the formal degree, or |A ∩ scope(u)| at sums that are known to
be multiaffine, whose higher coefficients cancel. Products are direct: small coefficients keep their digits.
"""

from __future__ import annotations

import numpy as np

from pgcc.kernels.policy import kernel
from pgcc.program.program import LEAF, TIMES

HUGE = 2**40  # degrees stop here: they are then no longer told apart


@kernel
def _add_product(out, x, y, weight, shift, dx, dy):
    """out[i + j + shift] += weight · x[i] · y[j]; x and y have dx + 1 and dy + 1 entries."""
    length = len(out)
    for i in range(dx + 1):
        factor = weight * x[i]
        if factor != 0.0:
            low, high = max(0, -shift - i), min(dy, length - 1 - shift - i)
            for j in range(low, high + 1):
                out[i + j + shift] += factor * y[j]


@kernel
def count_ones(codes):
    """|A|"""
    total = 0
    for code in codes:
        total += code == 1
    return total


@kernel
def run_bottom(
    op, target, start, args, first_weight, weights, leaf_variable, leaf_table, evidence, length, roots, slots, out
):  # fmt: skip
    """out[r, row] = coefficient of t^|A| at slot roots[r]; length = |A| + 1 of these rows, at least."""
    work, spare = np.zeros((slots, length)), np.zeros(length)
    degree = np.zeros(slots, np.int64)  # no coefficient above it is nonzero
    one = np.zeros(length)
    one[0] = 1.0
    cap = length - 1
    for row in range(evidence.shape[0]):
        observed = count_ones(evidence[row])
        for i in range(len(op)):
            kind, first, last, at = op[i], start[i], start[i + 1], target[i]
            here = work[at]
            here[:] = 0.0
            degree[at] = 0
            if kind == LEAF:
                leaf = args[first]
                v = leaf_variable[leaf]
                code = 2 if v < 0 or evidence[row, v] < 0 else evidence[row, v]
                here[0] = leaf_table[leaf, 0 if code == 1 else code]
                if code == 1 and cap > 0:
                    here[1] = leaf_table[leaf, 1]
                    degree[at] = 1
            elif kind == TIMES:
                here[0] = 1.0
                for j in range(first, last):
                    x = args[j]
                    spare[:] = 0.0
                    _add_product(spare, here, work[x], 1.0, 0, degree[at], degree[x])
                    here[:] = spare
                    degree[at] = min(cap, degree[at] + degree[x])
            else:
                weight, end = first_weight[i], first_weight[i + 1]
                alone, j = 2 * (end - weight) - (last - first), first  # terms w·x; the others are w·x·y
                for k in range(weight, end):
                    x = args[j]
                    if k - weight < alone:
                        _add_product(here, work[x], one, weights[k], 0, degree[x], 0)
                        degree[at] = max(degree[at], degree[x])
                        j += 1
                    else:
                        y = args[j + 1]
                        _add_product(here, work[x], work[y], weights[k], 0, degree[x], degree[y])
                        degree[at] = max(degree[at], min(cap, degree[x] + degree[y]))
                        j += 2
        for r in range(len(roots)):
            out[r, row] = work[roots[r], observed] if observed < length else 0.0


@kernel
def find_degrees(op, target, start, args, first_weight, leaf_variable, cap_start, cap_scope, codes, degree):
    """D of every value, for one row of evidence; the program must keep every value in a slot of its own."""
    for i in range(len(op)):
        kind, first, last, at = op[i], start[i], start[i + 1], target[i]
        if kind == LEAF:
            v = leaf_variable[args[first]]
            bound = 1 if v >= 0 and codes[v] == 1 else 0
        elif kind == TIMES:
            bound = 0
            for j in range(first, last):
                bound = min(HUGE, bound + degree[args[j]])
        else:
            bound, terms = 0, first_weight[i + 1] - first_weight[i]
            alone = first + 2 * terms - (last - first)  # where the pairs begin
            for j in range(first, alone):
                bound = max(bound, min(HUGE, degree[args[j]]))
            for j in range(alone, last, 2):
                bound = max(bound, min(HUGE, degree[args[j]] + degree[args[j + 1]]))
        if cap_start[i] < cap_start[i + 1]:  # a multiaffine sum: at most |A ∩ scope|
            inside = 0
            for j in range(cap_start[i], cap_start[i + 1]):
                inside += codes[cap_scope[j]] == 1
            bound = min(bound, inside)
        degree[at] = bound


@kernel
def find_slack(op, target, start, args, first_weight, degree, roots, observed, slack):
    """How many coefficients below the top one each value must keep (−1: none at all); the largest of them.

    −1 altogether where the degree of the root is below |A|: the coefficient is 0.
    """
    slack[:] = -1
    for r in range(len(roots)):
        slack[roots[r]] = max(slack[roots[r]], degree[roots[r]] - observed)
    for i in range(len(op) - 1, -1, -1):
        kind, first, last, at = op[i], start[i], start[i + 1], target[i]
        if kind == LEAF or slack[at] < 0:
            continue
        lowest = degree[at] - slack[at]
        if kind == TIMES:
            total = 0
            for j in range(first, last):
                total += degree[args[j]]
            for j in range(first, last):
                slack[args[j]] = max(slack[args[j]], total - lowest)
        else:
            alone = first + 2 * (first_weight[i + 1] - first_weight[i]) - (last - first)  # where the pairs begin
            for j in range(first, alone):
                slack[args[j]] = max(slack[args[j]], degree[args[j]] - lowest)
            for j in range(alone, last, 2):
                x, y = args[j], args[j + 1]
                slack[x] = max(slack[x], degree[x] + degree[y] - lowest)
                slack[y] = max(slack[y], degree[x] + degree[y] - lowest)
    most = -1
    for value in slack:
        most = max(most, value)
    return most


@kernel
def top_lengths(
    op, target, start, args, first_weight, leaf_variable, cap_start, cap_scope, evidence, roots, slots, lengths
):
    """How many coefficients per value `run_top` keeps for each row; 0 where the degree is below |A|."""
    degree, slack = np.zeros(slots, np.int64), np.zeros(slots, np.int64)
    for row in range(evidence.shape[0]):
        observed = count_ones(evidence[row])
        find_degrees(op, target, start, args, first_weight, leaf_variable, cap_start, cap_scope, evidence[row], degree)
        lengths[row] = find_slack(op, target, start, args, first_weight, degree, roots, observed, slack) + 1
        if degree.max() == HUGE:
            lengths[row] = HUGE


@kernel
def run_top(
    op, target, start, args, first_weight, weights, leaf_variable, leaf_table,
    cap_start, cap_scope, evidence, roots, slots, limit, out, lengths,
):  # fmt: skip
    """out[r, row] = coefficient of t^|A| at slot roots[r]; lengths[row] = L, or 0 where it is 0 by degree, or −1.

    −1 says that more than `limit` coefficients would be needed: nothing was computed.
    """
    degree, slack = np.zeros(slots, np.int64), np.zeros(slots, np.int64)
    capacity = 1
    work, spare, one = np.zeros((slots, 1)), np.zeros(1), np.ones(1)
    for row in range(evidence.shape[0]):
        observed = count_ones(evidence[row])
        codes = evidence[row]
        find_degrees(op, target, start, args, first_weight, leaf_variable, cap_start, cap_scope, codes, degree)
        length = find_slack(op, target, start, args, first_weight, degree, roots, observed, slack) + 1
        if length > limit or degree.max() == HUGE:
            length = -1
        lengths[row] = length
        if length <= 0:
            continue
        if length > capacity:
            capacity = length
            work, spare, one = np.zeros((slots, capacity)), np.zeros(capacity), np.zeros(capacity)
            one[0] = 1.0
        for i in range(len(op)):
            kind, first, last, at = op[i], start[i], start[i + 1], target[i]
            here = work[at, :length]
            here[:] = 0.0
            if kind == LEAF:
                leaf = args[first]
                v = leaf_variable[leaf]
                code = 2 if v < 0 or codes[v] < 0 else codes[v]
                here[0] = leaf_table[leaf, code]
                if code == 1 and length > 1:
                    here[1] = leaf_table[leaf, 0]
            elif kind == TIMES:
                here[0] = 1.0
                top = 0
                for j in range(first, last):
                    x = args[j]
                    spare[:length] = 0.0
                    most = min(top, length - 1)
                    _add_product(spare[:length], here, work[x], 1.0, 0, most, min(degree[x], length - 1))
                    here[:] = spare[:length]
                    top += degree[x]
            else:
                weight, end = first_weight[i], first_weight[i + 1]
                alone, j = 2 * (end - weight) - (last - first), first  # terms w·x; the others are w·x·y
                for k in range(weight, end):
                    x = args[j]
                    dx = min(degree[x], length - 1)
                    if k - weight < alone:
                        _add_product(here, work[x], one, weights[k], degree[at] - degree[x], dx, 0)
                        j += 1
                    else:
                        y = args[j + 1]
                        shift = degree[at] - degree[x] - degree[y]
                        _add_product(here, work[x], work[y], weights[k], shift, dx, min(degree[y], length - 1))
                        j += 2
        for r in range(len(roots)):
            out[r, row] = work[roots[r], degree[roots[r]] - observed]
