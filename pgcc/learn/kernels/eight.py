"""`mixtures` with eight components in the lanes of vectors: 1.4–2.1 times as fast (7–20 components, the paper's sets).

Measured per step of training: nltcs 2.1, plants 1.9, apparel 1.9, jester 1.7, carseats and bedding 1.4; with four
components 1.25–1.7. Slower with fewer components (empty lanes) and with more than 96 groups (dna: 0.74).

Number i of each component stands at 8·i + lane. Rows of L, minors and leaves are then rows of vectors: nothing is
gathered, and minors need no padding. Where fewer than eight components are left, the last one fills the other lanes,
with weight 0. Lanes are independent, so that results do not depend on which components share a vector.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pgcc.kernels.elementary import exp_eight, log_eight
from pgcc.kernels.policy import bare_kernel, kernel
from pgcc.kernels.simd import LANES, add_up, div, larger, load, mul, muladd, plus, splat, store, sub
from pgcc.learn.kernels.dense import invert_eight, packed, row_times_eight


class Eights(NamedTuple):
    """Arrays for intermediate results; the first axis of all but `gradient` is the number of the eight components."""

    parameters: np.ndarray
    L: np.ndarray  # packed upper triangle; later the gradient
    inverse: np.ndarray  # minus (I + L)⁻¹, packed
    square: np.ndarray  # scratch memory, m × m
    swept: np.ndarray  # minus the inverses of all minors, packed
    logdet: np.ndarray  # of all patterns, and of I + L
    leaf: np.ndarray  # probabilities of all codes
    log_leaf: np.ndarray
    log_mass: np.ndarray  # of every observation
    scores: np.ndarray  # log(π · p(row))
    shares: np.ndarray  # responsibilities times counts
    on_patterns: np.ndarray  # gradient in the log det of every pattern
    on_observations: np.ndarray  # and in the log mass of every observation
    in_parameters: np.ndarray
    gradient: np.ndarray  # the same, components × parameters


@kernel
def forward(table, batch, parameters, log_weights, first, last, work):
    """Scores of the rows of a batch under some eights of components, keeping what the gradient needs."""
    m = len(table.leaf) - 1
    scratch = np.empty(LANES * (3 * m))
    for e in range(first, last):
        mine, L, inverse, logdet, log_mass = (
            work.parameters[e], work.L[e], work.inverse[e], work.logdet[e], work.log_mass[e],
        )  # fmt: skip
        side_by_side(parameters, LANES * e, mine)
        multiply_by_transposed(mine, m, work.square[e], L)
        for j in range(len(L)):
            inverse[j] = L[j]
        for i in range(m):
            at = LANES * (packed(m, i) + i)
            store(inverse, at, plus(load(inverse, at), splat(1.0)))
        whole = LANES * len(batch.patterns)
        invert_eight(inverse, 0, m, scratch, logdet, whole)
        log_leaves(table, mine[LANES * m * m :], work.leaf[e], work.log_leaf[e], log_mass)
        start = 0
        for at in range(len(batch.patterns)):
            n = fill_minor(table, batch.patterns[at], L, log_mass, work.swept[e], start)
            invert_eight(work.swept[e], start, n, scratch, logdet, LANES * at)
            start += LANES * (n * (n + 1) // 2)
        for lane in range(LANES):  # lanes without a component have weight 0
            c = LANES * e + lane
            scratch[lane] = log_weights[c] if c < len(log_weights) else -np.inf
        score_rows(table, batch, logdet, log_mass, sub(load(scratch, 0), load(logdet, whole)), work.scores[e])


@bare_kernel
def side_by_side(parameters, first, out):
    """The parameters of eight components, or as many as there are from `first` on and the last one again."""
    for i in range(parameters.shape[1]):
        for lane in range(LANES):
            out[LANES * i + lane] = parameters[min(first + lane, len(parameters) - 1), i]


@bare_kernel
def multiply_by_transposed(B, m, transposed, L):
    """L = B·Bᵀ, packed; `transposed` is scratch memory for Bᵀ."""
    for i in range(m):
        for j in range(m):
            store(transposed, LANES * (j * m + i), load(B, LANES * (i * m + j)))
    for i in range(m):
        row_times_eight(B, LANES * i * m, transposed, m, i, L, LANES * packed(m, i))


@bare_kernel
def fill_minor(table, p, L, log_mass, out, start):
    """S·L·S + I_F of a pattern; how many rows it has."""
    m, groups = len(table.leaf) - 1, table.groups[table.pattern[p] : table.pattern[p + 1]]
    n, at = len(groups), start
    for i in range(n):
        row = packed(m, groups[i])
        for j in range(i, n):
            store(out, at, load(L, LANES * (row + groups[j])))
            at += LANES
    for i in range(n):
        o = table.free[table.pattern[p] + i]
        if o >= 0:
            diagonal = start + LANES * (packed(n, i) + i)
            scale_minor(out, start, n, i, half_exp(log_mass, o))
            store(out, diagonal, plus(load(out, diagonal), splat(1.0)))
    return n


@bare_kernel
def half_exp(log_mass, o):
    """The root of the mass of an observation."""
    return exp_eight(mul(splat(0.5), load(log_mass, LANES * o)))


@bare_kernel
def scale_minor(a, start, n, i, scale):
    """Multiply row and column i of a symmetric matrix, its diagonal entry twice."""
    for j in range(i + 1):
        at = start + LANES * (packed(n, j) + i)
        store(a, at, mul(load(a, at), scale))
    for j in range(i, n):
        at = start + LANES * (packed(n, i) + j)
        store(a, at, mul(load(a, at), scale))


@bare_kernel
def score_rows(table, batch, logdet, log_mass, offset, scores):
    """log(π · p(row)) of the rows of a batch; `offset` is log π − log det(I + L)."""
    for b in range(len(batch.rows)):
        r = batch.rows[b]
        total = plus(offset, load(logdet, LANES * batch.local[b]))
        for j in range(table.row[r], table.row[r + 1]):
            total = plus(total, load(log_mass, LANES * table.seen[j]))
        store(scores, LANES * b, total)


@kernel
def share(counts, scores, shares):
    """Σ counts · log p(row), and the responsibilities of components times the counts."""
    total, lanes, eights = 0.0, np.empty(LANES), len(scores)
    for b in range(len(counts)):
        at = LANES * b
        highest = splat(-np.inf)
        for e in range(eights):
            highest = larger(highest, load(scores[e], at))
        store(lanes, 0, highest)
        top = lanes[0]
        for lane in range(1, LANES):
            top = max(top, lanes[lane])
        if top == -np.inf:  # every component gives the row probability 0, and none learns from it
            for e in range(eights):
                store(shares[e], at, splat(0.0))
            total = -np.inf
            continue
        masses = splat(0.0)
        for e in range(eights):
            part = exp_eight(sub(load(scores[e], at), splat(top)))
            store(shares[e], at, part)
            masses = plus(masses, part)
        mass = add_up(masses)
        for e in range(eights):
            store(shares[e], at, mul(load(shares[e], at), splat(counts[b] / mass)))
        total += counts[b] * (top + np.log(mass))
    return total


@kernel
def backward(table, batch, parameters, log_weights, first, last, prior, work):
    """The gradient of Σ counts · log p(row) + Σ prior · log leaf in some eights of components; see `mixtures`."""
    m = len(table.leaf) - 1
    all_rows = batch.counts.sum()
    for e in range(first, last):
        mine, in_L, in_parameters, log_mass = work.parameters[e], work.L[e], work.in_parameters[e], work.log_mass[e]
        on_patterns, on_observations = work.on_patterns[e], work.on_observations[e]
        mass = add_shares(table, batch, work.shares[e], on_patterns, on_observations)
        for i in range(m * (m + 1) // 2):
            store(in_L, LANES * i, mul(mass, load(work.inverse[e], LANES * i)))
        start = 0
        for at in range(len(batch.patterns)):
            weight = load(on_patterns, LANES * at)
            start += spread(table, batch.patterns[at], weight, log_mass, work.swept[e], start, in_L, on_observations)
        multiply_by_twice(in_L, m, work.square[e], mine, in_parameters)
        in_leaves(
            table, on_observations, work.leaf[e], work.log_leaf[e], log_mass, prior, in_parameters[LANES * m * m :]
        )
        store(in_parameters, len(in_parameters) - LANES, mass)
        for c in range(LANES * e, min(LANES * (e + 1), len(parameters))):
            gradient = work.gradient[c]
            for i in range(len(gradient)):
                gradient[i] = in_parameters[LANES * i + c % LANES]
            gradient[-1] -= all_rows * np.exp(log_weights[c])


@bare_kernel
def add_shares(table, batch, shares, on_patterns, on_observations):
    """The sums of shares of every pattern and of every observation of a group that is in; returns the total."""
    on_patterns[:] = 0.0
    on_observations[:] = 0.0
    mass = splat(0.0)
    for b in range(len(batch.rows)):
        weight, r = load(shares, LANES * b), batch.rows[b]
        mass = plus(mass, weight)
        add_to(on_patterns, LANES * batch.local[b], weight)
        for j in range(table.row[r], table.row[r + 1]):
            add_to(on_observations, LANES * table.seen[j], weight)
    return mass


@bare_kernel
def add_to(a, at, x):
    store(a, at, plus(load(a, at), x))


@bare_kernel
def spread(table, p, weight, log_mass, swept, start, in_L, on_observations):
    """Add weight · inverse of a minor to the gradients in L and in the masses of uncertain groups; its length."""
    m, groups = len(table.leaf) - 1, table.groups[table.pattern[p] : table.pattern[p + 1]]
    n, at = len(groups), start
    for i in range(n):
        o = table.free[table.pattern[p] + i]
        if o >= 0:  # from here on `swept` is −S·inverse·S
            diagonal = load(swept, start + LANES * (packed(n, i) + i))
            add_to(on_observations, LANES * o, muladd(weight, diagonal, weight))
            scale_minor(swept, start, n, i, half_exp(log_mass, o))
    for i in range(n):
        row = packed(m, groups[i])
        for j in range(i, n):
            to = LANES * (row + groups[j])
            store(in_L, to, sub(load(in_L, to), mul(weight, load(swept, at))))
            at += LANES
    return at - start


@bare_kernel
def multiply_by_twice(triangle, m, square, B, out):
    """2·G·B, G by its packed upper triangle; `square` is scratch memory for 2·G."""
    for i in range(m):
        for j in range(i, m):
            twice = mul(splat(2.0), load(triangle, LANES * (packed(m, i) + j)))
            store(square, LANES * (i * m + j), twice)
            store(square, LANES * (j * m + i), twice)
    for i in range(m):
        row_times_eight(square, LANES * i * m, B, m, 0, out, LANES * i * m)


# -- leaves ---------------------------------------------------------------------------------------------------


@bare_kernel
def log_leaves(table, theta, leaf, log_leaf, log_mass):
    """Softmax of the logits of every leaf, its logarithm, and the logarithms of the masses of all observations."""
    for g in range(len(table.leaf) - 1):
        first, last = LANES * table.leaf[g], LANES * table.leaf[g + 1]
        top = load(theta, first)
        for j in range(first + LANES, last, LANES):
            top = larger(top, load(theta, j))
        total = splat(0.0)
        for j in range(first, last, LANES):
            part = exp_eight(sub(load(theta, j), top))
            store(leaf, j, part)
            total = plus(total, part)
        offset = plus(top, log_eight(total))
        for j in range(first, last, LANES):
            store(leaf, j, div(load(leaf, j), total))
            store(log_leaf, j, sub(load(theta, j), offset))
    for o in range(len(table.observation) - 1):
        first, last = table.observation[o], table.observation[o + 1]
        top = load(log_leaf, LANES * table.codes[first])
        if last > first + 1:
            for j in range(first + 1, last):
                top = larger(top, load(log_leaf, LANES * table.codes[j]))
            total = splat(0.0)
            for j in range(first, last):
                total = plus(total, exp_eight(sub(load(log_leaf, LANES * table.codes[j]), top)))
            top = plus(top, log_eight(total))
        store(log_mass, LANES * o, top)


@bare_kernel
def in_leaves(table, on_observations, leaf, log_leaf, log_mass, prior, gradient):
    """From the gradient in the logarithms of masses to that in the logits; `prior` is counts to be added."""
    for j in range(len(prior)):
        store(gradient, LANES * j, splat(prior[j]))
    for o in range(len(table.observation) - 1):
        first, last, weight = table.observation[o], table.observation[o + 1], load(on_observations, LANES * o)
        if last == first + 1:
            add_to(gradient, LANES * table.codes[first], weight)
            continue
        for j in range(first, last):
            code = LANES * table.codes[j]
            part = exp_eight(sub(load(log_leaf, code), load(log_mass, LANES * o)))
            add_to(gradient, code, mul(weight, part))
    for g in range(len(table.leaf) - 1):
        first, last = LANES * table.leaf[g], LANES * table.leaf[g + 1]
        total = splat(0.0)
        for j in range(first, last, LANES):
            total = plus(total, load(gradient, j))
        for j in range(first, last, LANES):
            store(gradient, j, sub(load(gradient, j), mul(total, load(leaf, j))))
