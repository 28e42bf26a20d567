"""Expectation–maximization of mixtures in which groups are independent: determinantal PGCs with diagonal kernels.

A group is in (some variable of it is 1) with probability q = odds / (1 + odds), and then its leaf chooses the set:

    p(row) = Π_g (1 − q_g) · Π_{in} odds · s · Π_{uncertain} (1 + odds · s)

where s is the mass of the leaf on the sets that are consistent with the row. Groups of variables with states, the last
ones, have odds 0 and only the factor s, if it is known.
"""

from __future__ import annotations

import math

import numpy as np

from pgcc.kernels.exp_log import exp, log
from pgcc.kernels.policy import kernel
from pgcc.learn.kernels.leaves import log_leaves


@kernel
def expect(table, log_weights, log_odds, logits, leaf, log_mass, scores):
    """The E-step, unnormalized: scores log(π · p(row)) of all rows and components; fills leaf and log_mass."""
    log_leaf = np.empty(leaf.shape[1])
    for c in range(len(log_weights)):
        log_leaves(table, logits[c], leaf[c], log_leaf, log_mass[c])
        log_empty = log_weights[c]  # of the row in which every group is out
        for g in range(len(table.leaf) - 1):
            log_empty -= math.log1p(exp(log_odds[c, g]))
        for r in range(len(table.of_row)):
            total, seen = log_empty, table.row[r]
            p = table.of_row[r]
            for j in range(table.pattern[p], table.pattern[p + 1]):
                odds = log_odds[c, table.groups[j]]
                if table.free[j] >= 0:
                    total += math.log1p(exp(odds + log_mass[c, table.free[j]]))
                else:
                    total += odds + log_mass[c, table.seen[seen]]
                    seen += 1
            for j in range(seen, table.row[r + 1]):  # variables with states
                total += log_mass[c, table.seen[j]]
            scores[c, r] = total


@kernel
def maximize(table, responsibilities, prior_in, prior_code, pseudo_rows, log_odds, leaf, log_mass, logits, weights):
    """The M-step: weights, odds and leaves from responsibilities (times the counts of rows).

    Additive smoothing: `pseudo_rows` rows, distributed as the priors, are added to every component.
    """
    groups, codes = len(table.leaf) - 1, table.leaf[len(table.leaf) - 1]
    active, count, of_observation = np.empty(groups), np.empty(codes), np.empty(len(table.observation) - 1)
    for c in range(len(weights)):
        active[:], count[:], of_observation[:] = 0.0, 0.0, 0.0
        mass = 0.0
        for r in range(len(table.of_row)):
            weight, seen = responsibilities[c, r], table.row[r]
            mass += weight
            p = table.of_row[r]
            for j in range(table.pattern[p], table.pattern[p + 1]):
                part = weight
                if table.free[j] >= 0:
                    o = table.free[j]
                    part /= 1.0 + exp(-log_odds[c, table.groups[j]] - log_mass[c, o])
                else:
                    o = table.seen[seen]
                    seen += 1
                active[table.groups[j]] += part
                of_observation[o] += part
            for j in range(seen, table.row[r + 1]):
                of_observation[table.seen[j]] += weight
        for o in range(len(of_observation)):
            for j in range(table.observation[o], table.observation[o + 1]):
                count[table.codes[j]] += of_observation[o] * (leaf[c, table.codes[j]] / exp(log_mass[c, o]))
        weights[c] = mass
        for g in range(groups):
            inside = active[g] + pseudo_rows * prior_in[g]
            log_odds[c, g] = log(inside / (mass + pseudo_rows - inside))
            for j in range(table.leaf[g], table.leaf[g + 1]):
                logits[c, j] = log((count[j] + pseudo_rows * prior_code[j]) / (active[g] + pseudo_rows))
