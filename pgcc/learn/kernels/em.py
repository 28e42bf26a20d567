"""Expectation–maximisation of mixtures in which groups are independent: determinantal PGCs with diagonal kernels.

A group is in with probability q = odds / (1 + odds), and then its leaf says which set:

    p(row) = Π_g (1 − q_g) · Π_{in} odds · s · Π_{perhaps in} (1 + odds · s)        s: mass of the consistent sets
"""

from __future__ import annotations

import numpy as np

from pgcc.kernels.policy import kernel
from pgcc.learn.kernels.leaves import log_leaves


@kernel
def expect(table, log_weights, log_odds, logits, leaf, log_mass, scores):
    """log(π · p(row)) of every row under every component; fills `leaf` and `log_mass`."""
    log_leaf = np.empty(leaf.shape[1])
    for c in range(len(log_weights)):
        log_leaves(table, logits[c], leaf[c], log_leaf, log_mass[c])
        nothing = log_weights[c]
        for g in range(len(table.leaf) - 1):
            nothing -= np.log1p(np.exp(log_odds[c, g]))
        for r in range(len(table.of_row)):
            total, seen = nothing, table.row[r]
            p = table.of_row[r]
            for j in range(table.pattern[p], table.pattern[p + 1]):
                odds = log_odds[c, table.groups[j]]
                if table.free[j] >= 0:
                    total += np.log1p(np.exp(odds + log_mass[c, table.free[j]]))
                else:
                    total += odds + log_mass[c, table.seen[seen]]
                    seen += 1
            scores[c, r] = total


@kernel
def maximize(table, shares, prior_in, prior_code, extra, log_odds, leaf, log_mass, logits, weights):
    """From responsibilities (times counts) to weights, odds and leaves.

    `extra` rows are added to every component, with groups and codes distributed as the prior.
    """
    groups, codes = len(table.leaf) - 1, table.leaf[len(table.leaf) - 1]
    active, count, on = np.empty(groups), np.empty(codes), np.empty(len(table.observation) - 1)
    for c in range(len(weights)):
        active[:], count[:], on[:] = 0.0, 0.0, 0.0
        mass = 0.0
        for r in range(len(table.of_row)):
            share, seen = shares[c, r], table.row[r]
            mass += share
            p = table.of_row[r]
            for j in range(table.pattern[p], table.pattern[p + 1]):
                part = share
                if table.free[j] >= 0:
                    o = table.free[j]
                    part /= 1.0 + np.exp(-log_odds[c, table.groups[j]] - log_mass[c, o])
                else:
                    o = table.seen[seen]
                    seen += 1
                active[table.groups[j]] += part
                on[o] += part
        for o in range(len(on)):
            for j in range(table.observation[o], table.observation[o + 1]):
                count[table.codes[j]] += on[o] * (leaf[c, table.codes[j]] / np.exp(log_mass[c, o]))
        weights[c] = mass
        for g in range(groups):
            inside = active[g] + extra * prior_in[g]
            log_odds[c, g] = np.log(inside / (mass + extra - inside))
            for j in range(table.leaf[g], table.leaf[g + 1]):
                logits[c, j] = np.log((count[j] + extra * prior_code[j]) / (active[g] + extra))
