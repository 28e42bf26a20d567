"""The likelihood of a mixture of determinantal PGCs, and its gradient, one component at a time.

The parameters of a component are a factor B (L = B·Bᵀ), the logits θ of its leaves, and the logit of its weight π. In a
row, A are the groups with a variable that is 1, and F the uncertain groups: no variable is known to be 1, but some are
missing. s is the mass of a leaf on the sets that are consistent with the row. Then

    log p(row) = log π + Σ_A log s + log det(S·L·S + I_F) over A ∪ F − log det(I + L)        S = √s on F, 1 on A

The determinant has |A ∪ F| rows, and depends only on the *pattern* of the row: A, F, and the masses s on F. Each
component is computed by itself in a fixed order, so results do not depend on the number of threads.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pgcc.kernels.exp_log import exp, log
from pgcc.kernels.policy import bare_kernel, kernel, separate_kernel
from pgcc.kernels.simd import LANES
from pgcc.learn.kernels.dense import invert, invert_eight, multiply, packed
from pgcc.learn.kernels.encoded_tables import block_size
from pgcc.learn.kernels.leaves import backward_leaves, log_leaves


class Work(NamedTuple):
    """Arrays for intermediate results; the first axis of all is the component."""

    L: np.ndarray  # m·m numbers, a 0 and a 1; overwritten by its gradient in the backward pass
    inverse: np.ndarray  # minus (I + L)⁻¹, m·m numbers
    swept: np.ndarray  # minus the inverse of the minor of every pattern, in blocks of eight
    logdet: np.ndarray  # of the minor of every pattern
    leaf: np.ndarray  # probabilities of all codes
    log_leaf: np.ndarray
    log_mass: np.ndarray  # of every observation
    scores: np.ndarray  # log(π · p(row))
    responsibilities: np.ndarray  # times the counts of rows
    gradient: np.ndarray


@separate_kernel
def normalizer(B, L, inverse, scratch):
    """L = B·Bᵀ, followed by 0 and 1, and minus the inverse of I + L; returns log det(I + L)."""
    m = len(B)
    multiply(B, np.ascontiguousarray(B.T), L[: m * m].reshape(m, m))
    L[m * m], L[m * m + 1] = 0.0, 1.0
    for j in range(m * m):
        inverse[j] = L[j]
    for i in range(m):
        inverse[i * m + i] += 1.0
    return invert(inverse, m, scratch)


@bare_kernel
def fill_block(table, batch, block, L, log_mass, out, start):
    """Write the minors S·L·S + I_F of a block of patterns to `out`; return the number of rows of these matrices."""
    first = batch.start[block]
    count = batch.start[block + 1] - first
    mine, entries = out[start : start + count], batch.entries[first : first + count]
    for i in range(count):
        mine[i] = L[entries[i]]
    size = block_size(table, batch.patterns, block)
    for at in range(LANES * block, min(LANES * (block + 1), len(batch.patterns))):
        p = batch.patterns[at]
        for i in range(table.pattern[p + 1] - table.pattern[p]):
            o = table.free[table.pattern[p] + i]
            if o >= 0:
                scale, lane = exp(0.5 * log_mass[o]), at % LANES
                for j in range(i):
                    mine[lane + LANES * (packed(size, j) + i)] *= scale
                for j in range(i, size):
                    mine[lane + LANES * (packed(size, i) + j)] *= scale
                diagonal = lane + LANES * (packed(size, i) + i)
                mine[diagonal] = mine[diagonal] * scale + 1.0
    return size


@bare_kernel
def score_rows(table, batch, logdet, log_mass, offset, scores):
    """log(π · p(row)) of the rows of a batch; `offset` is log π − log det(I + L)."""
    for b in range(len(batch.rows)):
        r = batch.rows[b]
        total = offset + logdet[batch.local[b]]
        for j in range(table.row[r], table.row[r + 1]):
            total += log_mass[table.seen[j]]
        scores[b] = total


@kernel
def forward(table, batch, parameters, log_weights, first, last, keep, work):
    """The scores log(π · p(row)) of a mini-batch, for components first … last − 1.

    With `keep`, the intermediate results that the backward pass needs are kept in `work`. Without it, `work` has space
    for those of one component (but for the scores of all), and `swept` for the minors of one block.
    """
    m = len(table.leaf) - 1
    scratch = np.empty(LANES * 2 * m)
    for c in range(first, last):
        own = c if keep else 0
        L, swept, logdet, log_mass = work.L[own], work.swept[own], work.logdet[own], work.log_mass[own]
        B = parameters[c, : m * m].reshape(m, m)
        offset = log_weights[c] - normalizer(B, L, work.inverse[own], scratch)
        log_leaves(table, parameters[c, m * m : -1], work.leaf[own], work.log_leaf[own], log_mass)
        for block in range(len(batch.start) - 1):
            start = batch.start[block] if keep else np.int64(0)
            n = fill_block(table, batch, block, L, log_mass, swept, start)
            invert_eight(swept, start, n, scratch, logdet, LANES * block)
        score_rows(table, batch, logdet, log_mass, offset, work.scores[c])


@kernel
def compute_responsibilities(counts, scores, responsibilities):
    """Compute the responsibilities of all components, times the counts of rows; return Σ counts · log p(row)."""
    components, rows = len(scores), len(counts)
    total = 0.0
    for b in range(rows):
        top = -np.inf
        for c in range(components):
            top = max(top, scores[c, b])
        if top == -np.inf:  # every component gives the row probability 0, and none learns from it
            for c in range(components):
                responsibilities[c, b] = 0.0
            total = -np.inf
            continue
        mass = 0.0
        for c in range(components):
            responsibilities[c, b] = exp(scores[c, b] - top)
            mass += responsibilities[c, b]
        for c in range(components):
            responsibilities[c, b] *= counts[b] / mass
        total += counts[b] * (top + log(mass))
    return total


@kernel
def backward(table, batch, parameters, log_weights, first, last, prior, work):
    """The gradient of Σ counts · log p(row) + Σ prior · log leaf for components first … last − 1.

    With the responsibilities r of a component, the gradient is

        for L:      G = Σ r · S·(S·L·S + I_F)⁻¹·S − (Σ r)·(I + L)⁻¹, and 2·G·B for B
        for log s:  r for a group of A, and r · (1 − (S·L·S + I_F)⁻¹_gg) for a group g of F
        for θ:      that of the softmax: the part of log s due to each code, less its probability times the sum of all
    """
    m = len(table.leaf) - 1
    grad_logdet = np.empty(LANES * (len(batch.start) - 1))
    grad_log_mass = np.empty(len(table.observation) - 1)
    for c in range(first, last):
        grad_logdet[:] = 0.0
        grad_log_mass[:] = 0.0
        mass = all_rows = 0.0
        for b in range(len(batch.rows)):
            weight = work.responsibilities[c, b]
            mass += weight
            all_rows += batch.counts[b]
            grad_logdet[batch.local[b]] += weight
            r = batch.rows[b]
            for j in range(table.row[r], table.row[r + 1]):
                grad_log_mass[table.seen[j]] += weight
        gradient = work.gradient[c]
        gradient[-1] = mass - all_rows * exp(log_weights[c])
        grad_L, swept, log_mass = work.L[c], work.swept[c], work.log_mass[c]
        for i in range(m):  # `invert` leaves minus the inverse, above the diagonal
            for j in range(i, m):
                grad_L[i * m + j] = mass * work.inverse[c, i * m + j]
        for block in range(len(batch.start) - 1):
            backward_block(table, batch, block, grad_logdet, log_mass, swept, grad_L, grad_log_mass)
        matrix = grad_L[: m * m].reshape(m, m)
        for i in range(m):
            for j in range(i):
                matrix[i, j] = matrix[j, i]
        multiply(matrix, parameters[c, : m * m].reshape(m, m), gradient[: m * m].reshape(m, m))
        for j in range(m * m):
            gradient[j] *= 2.0
        backward_leaves(table, grad_log_mass, work.leaf[c], log_mass, prior, gradient[m * m : -1])


@bare_kernel
def backward_block(table, batch, block, weights, log_mass, swept, grad_L, grad_log_mass):
    """Backpropagate through the log-determinants of a block of minors, to L and to the masses of uncertain groups."""
    first, size = batch.start[block], block_size(table, batch.patterns, block)
    for at in range(LANES * block, min(LANES * (block + 1), len(batch.patterns))):
        p, mine = batch.patterns[at], first + at % LANES
        for i in range(table.pattern[p + 1] - table.pattern[p]):
            o = table.free[table.pattern[p] + i]
            if o >= 0:  # from here on `swept` is −S·inverse·S
                scale = exp(0.5 * log_mass[o])
                grad_log_mass[o] += weights[at] * (1.0 + swept[mine + LANES * (packed(size, i) + i)])
                for j in range(i + 1):
                    swept[mine + LANES * (packed(size, j) + i)] *= scale
                for j in range(i, size):
                    swept[mine + LANES * (packed(size, i) + j)] *= scale
    count = batch.start[block + 1] - first
    entries, inverse = batch.entries[first : first + count], swept[first : first + count]
    for i in range(count):
        grad_L[entries[i]] -= weights[LANES * block + i % LANES] * inverse[i]
