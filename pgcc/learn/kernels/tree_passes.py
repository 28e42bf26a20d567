"""Mixtures of trees: the likelihood of rows, and expected counts of pairs of variables, for EM.

A complete row is the list of its variables that are 1; all lists are stored like sparse rows (CSR): offsets `start`
and entries `ones`. A row with missing entries is an array of codes, and belief propagation passes messages up and down
the trees. `order` has parents before children, and `probs` are Pr(x = 1 | state of the parent).

A variable has one column, which is 0 or 1, or several, of which exactly one is 1: `size` columns from `home` on.
`above` is the first column of the parent, or −1.
"""

from __future__ import annotations

import numpy as np

from pgcc.kernels.exp_log import log
from pgcc.kernels.policy import bare_kernel, kernel, separate_kernel


@kernel
def pair_counts(start, ones, responsibilities, first, last, both):
    """Add the responsibility of every row to both[c, i, j], for all i and j that are both 1 in it, for components c."""
    for c in range(first, last):
        mine = both[c]
        for r in range(len(start) - 1):
            share = responsibilities[c, r]
            for a in range(start[r], start[r + 1]):
                for b in range(a, start[r + 1]):
                    mine[ones[a], ones[b]] += share
        for i in range(len(mine)):
            for j in range(i):
                mine[i, j] = mine[j, i]


@kernel
def tree_scores(start, ones, size, above, linear, pairwise, first, last, is_one, scores):
    """The log-linear form of log(weight · Pr(row)) for complete rows, for components first … last − 1.

    It is a constant, the last entry of `linear`, + Σ linear (over the columns that are 1) + Σ pairwise (over those that
    have a column of the parent that is 1 too). `is_one` is scratch memory, all zeros before and after the call.
    """
    several = pairwise.shape[2] > 1
    for c in range(first, last):
        for r in range(len(start) - 1):
            for a in range(start[r], start[r + 1]):
                is_one[ones[a]] = 1.0
            total = linear[c, len(size)]
            for a in range(start[r], start[r + 1]):
                i = ones[a]
                total += linear[c, i]
                u = above[c, i]
                if u >= 0:
                    total += pairwise[c, i, 0] * is_one[u]
                    if several:
                        for s in range(1, size[u]):
                            total += pairwise[c, i, s] * is_one[u + s]
            for a in range(start[r], start[r + 1]):
                is_one[ones[a]] = 0.0
            scores[c, r] = total


@bare_kernel
def upward_pass(codes, home, size, order, above, probs, likelihood, posterior):
    """log Pr(observed entries of a row); fills posterior[i, v] = Pr(x_i = 1 | parent = v, observed entries)."""
    if probs.shape[1] > 2:
        return upward_pass_of_states(codes, home, size, order, above, probs, likelihood, posterior)
    found = 0.0
    for i in range(len(order)):
        likelihood[i, 0] = 0.0 if codes[i] == 1 else 1.0
        likelihood[i, 1] = 0.0 if codes[i] == 0 else 1.0
    for at in range(len(order) - 1, -1, -1):
        i = order[at]
        low, high = likelihood[i, 0], likelihood[i, 1]
        scale = max(low, high)
        if scale == 0.0:
            return -np.inf
        found += log(scale)
        low, high = low / scale, high / scale
        for v in range(2):
            message = (1.0 - probs[i, v]) * low + probs[i, v] * high
            posterior[i, v] = probs[i, v] * high / message if message > 0.0 else 0.0
            if above[i] >= 0:
                likelihood[above[i], v] *= message
            elif v == 0:
                found += log(message)
    return found


@separate_kernel
def upward_pass_of_states(codes, home, size, order, above, probs, likelihood, posterior):
    """The same if some variables have several columns."""
    found = 0.0
    for i in range(len(order)):
        if size[i] == 1:
            likelihood[i, 0] = 0.0 if codes[i] == 1 else 1.0
            likelihood[i, 1] = 0.0 if codes[i] == 0 else 1.0
        else:
            likelihood[home[i], i - home[i]] = 0.0 if codes[i] == 0 else 1.0
    for at in range(len(order) - 1, -1, -1):
        i = order[at]
        if home[i] != i:
            continue
        states, scale = max(2, size[i]), 0.0
        for s in range(states):
            scale = max(scale, likelihood[i, s])
        if scale == 0.0:
            return -np.inf
        found += log(scale)
        for v in range(2 if above[i] < 0 else max(2, size[above[i]])):
            message = (1.0 - probs[i, v]) * likelihood[i, 0] / scale if size[i] == 1 else 0.0
            for s in range(size[i]):
                posterior[i + s, v] = probs[i + s, v] * likelihood[i, s + states - size[i]] / scale
                message += posterior[i + s, v]
            for s in range(size[i]):
                posterior[i + s, v] = posterior[i + s, v] / message if message > 0.0 else 0.0
            if above[i] >= 0:
                likelihood[above[i], v] *= message
            elif v == 0:
                found += log(message)
    return found


@kernel
def scores_with_missing(codes, home, size, order, above, probs, log_weights, first, last, scores):
    """log(weight · Pr(observed entries)) of every row, for components first … last − 1."""
    likelihood, posterior = np.empty(probs.shape[1:]), np.empty(probs.shape[1:])
    for c in range(first, last):
        for r in range(len(codes)):
            scores[c, r] = log_weights[c] + upward_pass(
                codes[r], home, size, order[c], above[c], probs[c], likelihood, posterior
            )


@kernel
def pair_counts_with_missing(codes, home, size, order, above, probs, responsibilities, first, last, both):
    """Add responsibility · Pr(x_i = 1, x_j = 1 | observed entries) to both[c, i, j], for all rows and pairs.

    The downward pass: if v is the parent of j, Pr(x_i, x_j) = Σ_v Pr(x_i, v) · Pr(x_j | v).
    """
    n = codes.shape[1]
    likelihood, posterior, joint = np.empty(probs.shape[1:]), np.empty(probs.shape[1:]), np.empty((n, n))
    for c in range(first, last):
        joint[:] = 0.0  # columns of one variable are never both 1
        for r in range(len(codes)):
            share = responsibilities[c, r]
            if (
                share == 0.0
                or upward_pass(codes[r], home, size, order[c], above[c], probs[c], likelihood, posterior) == -np.inf
            ):
                continue
            for at in range(n):
                j = order[c, at]
                v, low, high = above[c, j], posterior[j, 0], posterior[j, 1]
                if v < 0:
                    joint[j, j] = low
                    continue
                if size[v] > 1:
                    add_up_states(order[c, : at - (j - home[j])], j, v, size[v], posterior, joint)
                    continue
                joint[j, j] = joint[v, v] * high + (1.0 - joint[v, v]) * low
                for earlier in range(at - (j - home[j])):
                    i = order[c, earlier]
                    joint[i, j] = joint[i, v] * high + (joint[i, i] - joint[i, v]) * low
                    joint[j, i] = joint[i, j]
            for i in range(n):
                for j in range(n):
                    both[c, i, j] += share * joint[i, j]


@separate_kernel
def add_up_states(earlier, j, v, states, posterior, joint):
    """Pr(x_i, x_j) for all earlier columns, if the parent of j has columns for all its states."""
    joint[j, j] = 0.0
    for t in range(states):
        joint[j, j] += joint[v + t, v + t] * posterior[j, t]
    for i in earlier:
        joint[i, j] = 0.0
        for t in range(states):
            joint[i, j] += joint[i, v + t] * posterior[j, t]
        joint[j, i] = joint[i, j]
