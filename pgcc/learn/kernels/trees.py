"""Mixtures of trees: weighted counts of pairs, and likelihoods.

Complete rows are lists of the variables that are 1, as starts and entries. Rows with missing entries are codes, and
messages go up and down the trees (belief propagation): an `order` has parents before children, `probs` are
Pr(x = 1 | parent = 0), Pr(x = 1 | parent = 1).
"""

from __future__ import annotations

import numpy as np

from pgcc.kernels.policy import bare_kernel, kernel


@kernel
def pair_counts(start, ones, shares, first, last, both):
    """Add the shares of rows to both[c, i, j] for all i and j that are 1 together, for some components c."""
    for c in range(first, last):
        mine = both[c]
        for r in range(len(start) - 1):
            share = shares[c, r]
            for a in range(start[r], start[r + 1]):
                for b in range(a, start[r + 1]):
                    mine[ones[a], ones[b]] += share
        for i in range(len(mine)):
            for j in range(i):
                mine[i, j] = mine[j, i]


@kernel
def tree_scores(start, ones, parents, nothing, alone, together, first, last, inside, scores):
    """nothing + Σ alone over variables that are 1 + Σ together over those whose parent is 1 too, for some components.

    `inside` is zeros, before and after.
    """
    for c in range(first, last):
        for r in range(len(start) - 1):
            for a in range(start[r], start[r + 1]):
                inside[ones[a]] = 1.0
            total = nothing[c]
            for a in range(start[r], start[r + 1]):
                i = ones[a]
                total += alone[c, i]
                if parents[c, i] >= 0:
                    total += together[c, i] * inside[parents[c, i]]
            for a in range(start[r], start[r + 1]):
                inside[ones[a]] = 0.0
            scores[c, r] = total


@bare_kernel
def send_up(codes, order, parents, probs, likely, given):
    """log Pr(the known entries of a row), and Pr(x_i = 1 | parent = v, known entries) in given[i, v]."""
    log = 0.0
    for i in range(len(order)):
        likely[i, 0] = 0.0 if codes[i] == 1 else 1.0
        likely[i, 1] = 0.0 if codes[i] == 0 else 1.0
    for at in range(len(order) - 1, -1, -1):
        i = order[at]
        low, high = likely[i, 0], likely[i, 1]
        scale = max(low, high)
        if scale == 0.0:
            return -np.inf
        log += np.log(scale)
        low, high = low / scale, high / scale
        for v in range(2):
            message = (1.0 - probs[i, v]) * low + probs[i, v] * high
            given[i, v] = probs[i, v] * high / message if message > 0.0 else 0.0
            if parents[i] >= 0:
                likely[parents[i], v] *= message
            elif v == 0:
                log += np.log(message)
    return log


@kernel
def gap_scores(codes, order, parents, probs, log_weights, first, last, scores):
    """log(weight · Pr(the known entries of every row)), for some components."""
    n = codes.shape[1]
    likely, given = np.empty((n, 2)), np.empty((n, 2))
    for c in range(first, last):
        for r in range(len(codes)):
            scores[c, r] = log_weights[c] + send_up(codes[r], order[c], parents[c], probs[c], likely, given)


@kernel
def gap_counts(codes, order, parents, probs, shares, first, last, both):
    """Add share · Pr(x_i = 1, x_j = 1 | known entries of a row) to both[c, i, j], for all pairs and some components.

    Down the tree, from i to j's parent v to j: Pr(x_i, x_j) = Σ_v Pr(x_i, v) · Pr(x_j | v).
    """
    n = codes.shape[1]
    likely, given, joint = np.empty((n, 2)), np.empty((n, 2)), np.empty((n, n))
    for c in range(first, last):
        for r in range(len(codes)):
            share = shares[c, r]
            if share == 0.0 or send_up(codes[r], order[c], parents[c], probs[c], likely, given) == -np.inf:
                continue
            for at in range(n):
                j = order[c, at]
                v, low, high = parents[c, j], given[j, 0], given[j, 1]
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
