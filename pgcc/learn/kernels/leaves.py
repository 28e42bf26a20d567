"""Leaves of determinantal PGCs: the softmax of their logits, the masses of observations, and the gradient."""

from __future__ import annotations

import numpy as np

from pgcc.kernels.exp_log import exp, log
from pgcc.kernels.policy import bare_kernel


@bare_kernel
def log_leaves(table, theta, leaf, log_leaf, log_mass):
    """The softmax of the logits of every leaf, its logarithm, and the log mass of every observation."""
    for g in range(len(table.leaf) - 1):
        first, last = table.leaf[g], table.leaf[g + 1]
        top = theta[first]
        for j in range(first + 1, last):
            top = max(top, theta[j])
        total = 0.0
        for j in range(first, last):
            leaf[j] = exp(theta[j] - top)
            total += leaf[j]
        offset = top + log(total)
        for j in range(first, last):
            leaf[j] /= total
            log_leaf[j] = theta[j] - offset
    for o in range(len(table.observation) - 1):
        first, last = table.observation[o], table.observation[o + 1]
        if last == first + 1:
            log_mass[o] = log_leaf[table.codes[first]]
            continue
        top = -np.inf
        for j in range(first, last):
            top = max(top, log_leaf[table.codes[j]])
        total = 0.0
        for j in range(first, last):
            total += exp(log_leaf[table.codes[j]] - top)
        log_mass[o] = top + log(total)


@bare_kernel
def backward_leaves(table, grad_log_mass, leaf, log_mass, prior, gradient):
    """The gradient for the logits, from the gradient for the log masses; `prior` has pseudo-counts of codes."""
    for j in range(len(prior)):
        gradient[j] = prior[j]
    for o in range(len(grad_log_mass)):
        first, last, weight = table.observation[o], table.observation[o + 1], grad_log_mass[o]
        if last == first + 1:
            gradient[table.codes[first]] += weight
        elif weight != 0.0:
            for j in range(first, last):
                gradient[table.codes[j]] += weight * (leaf[table.codes[j]] / exp(log_mass[o]))
    for g in range(len(table.leaf) - 1):
        total = 0.0
        for j in range(table.leaf[g], table.leaf[g + 1]):
            total += gradient[j]
        for j in range(table.leaf[g], table.leaf[g + 1]):
            gradient[j] -= total * leaf[j]
