"""Mixtures of trees: the likelihood of rows, and expected counts of pairs of variables, for EM.

A complete row is the list of its variables that are 1; all lists are stored like sparse rows (CSR): offsets `start`
and entries `ones`. A row with missing entries is an array of codes, and belief propagation passes messages up and down
the trees. `order` has parents before children, and `probs` are Pr(x = 1 | parent = 0) and Pr(x = 1 | parent = 1).
"""

from __future__ import annotations

import numpy as np

from pgcc.kernels.exp_log import log
from pgcc.kernels.policy import bare_kernel, kernel


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
def tree_scores(start, ones, parents, constant, linear, pairwise, first, last, is_one, scores):
    """The log-linear form of log(weight · Pr(row)) for complete rows, for components first … last − 1.

    It is constant + Σ linear (over the variables that are 1) + Σ pairwise (over those whose parent is 1 too). `is_one`
    is scratch memory, all zeros before and after the call.
    """
    for c in range(first, last):
        for r in range(len(start) - 1):
            for a in range(start[r], start[r + 1]):
                is_one[ones[a]] = 1.0
            total = constant[c]
            for a in range(start[r], start[r + 1]):
                i = ones[a]
                total += linear[c, i]
                if parents[c, i] >= 0:
                    total += pairwise[c, i] * is_one[parents[c, i]]
            for a in range(start[r], start[r + 1]):
                is_one[ones[a]] = 0.0
            scores[c, r] = total


@bare_kernel
def upward_pass(codes, order, parents, probs, likelihood, posterior):
    """log Pr(observed entries of a row); fills posterior[i, v] = Pr(x_i = 1 | parent = v, observed entries)."""
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
            if parents[i] >= 0:
                likelihood[parents[i], v] *= message
            elif v == 0:
                found += log(message)
    return found


@kernel
def scores_with_missing(codes, order, parents, probs, log_weights, first, last, scores):
    """log(weight · Pr(observed entries)) of every row, for components first … last − 1."""
    n = codes.shape[1]
    likelihood, posterior = np.empty((n, 2)), np.empty((n, 2))
    for c in range(first, last):
        for r in range(len(codes)):
            scores[c, r] = log_weights[c] + upward_pass(codes[r], order[c], parents[c], probs[c], likelihood, posterior)


@kernel
def pair_counts_with_missing(codes, order, parents, probs, responsibilities, first, last, both):
    """Add responsibility · Pr(x_i = 1, x_j = 1 | observed entries) to both[c, i, j], for all rows and pairs.

    The downward pass: if v is the parent of j, Pr(x_i, x_j) = Σ_v Pr(x_i, v) · Pr(x_j | v).
    """
    n = codes.shape[1]
    likelihood, posterior, joint = np.empty((n, 2)), np.empty((n, 2)), np.empty((n, n))
    for c in range(first, last):
        for r in range(len(codes)):
            share = responsibilities[c, r]
            if share == 0.0 or upward_pass(codes[r], order[c], parents[c], probs[c], likelihood, posterior) == -np.inf:
                continue
            for at in range(n):
                j = order[c, at]
                v, low, high = parents[c, j], posterior[j, 0], posterior[j, 1]
                if v < 0:
                    joint[j, j] = low
                    continue
                joint[j, j] = joint[v, v] * high + (1.0 - joint[v, v]) * low
                for earlier in range(at):
                    i = order[c, earlier]
                    joint[i, j] = joint[i, v] * high + (joint[i, i] - joint[i, v]) * low
                    joint[j, i] = joint[i, j]
            for i in range(n):
                for j in range(n):
                    both[c, i, j] += share * joint[i, j]
