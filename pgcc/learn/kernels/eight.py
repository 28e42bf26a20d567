"""The kernels of `mixtures` for eight components at a time, one per SIMD lane: 1.4–2.1 times as fast.

Measured per training step, with 7–20 components, on data sets of the paper: nltcs 2.1, plants 1.9, apparel 1.9, jester
1.7, carseats and bedding 1.4; with four components 1.25–1.7. It is slower with fewer components (empty lanes) and with
more than 96 groups (dna: 0.74).

Arrays are interleaved: number i of the component in a lane is at 8·i + lane. Rows of L, of its principal minors and of
leaves are then contiguous vectors, so nothing is gathered and minors need no padding. If fewer than eight components
are left, copies of the last one with weight 0 fill the other lanes. Lanes are independent: results do not depend on
which components share a vector.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pgcc.kernels.elementary import exp_eight, log_eight
from pgcc.kernels.policy import bare_kernel, kernel
from pgcc.kernels.simd import LANES, add_up, div, larger, load, mul, muladd, plus, splat, store, sub
from pgcc.learn.kernels.dense import invert_eight, packed, row_times_eight


class Eights(NamedTuple):
    """Intermediate results. The first axis counts blocks of eight components; that of `gradient`, components."""

    parameters: np.ndarray
    L: np.ndarray  # packed upper triangle; overwritten by its gradient in the backward pass
    inverse: np.ndarray  # minus (I + L)⁻¹, packed
    square: np.ndarray  # scratch memory, m × m
    swept: np.ndarray  # minus the inverse of the minor of every pattern, packed
    logdet: np.ndarray  # of the minor of every pattern, and of I + L
    leaf: np.ndarray  # probabilities of all codes
    log_leaf: np.ndarray
    log_mass: np.ndarray  # of every observation
    scores: np.ndarray  # log(π · p(row))
    responsibilities: np.ndarray  # times the counts of rows
    grad_logdet: np.ndarray  # of the objective, with respect to the log-determinant of every pattern
    grad_log_mass: np.ndarray  # … and to the log mass of every observation
    grad_parameters: np.ndarray
    gradient: np.ndarray  # grad_parameters, not interleaved: components × parameters


@kernel
def forward(table, batch, parameters, log_weights, first, last, work):
    """The scores log(π · p(row)) of a mini-batch, for the blocks of components first … last − 1.

    Intermediate results that the backward pass needs are kept in `work`.
    """
    m = len(table.leaf) - 1
    scratch = np.empty(LANES * (3 * m))
    for e in range(first, last):
        mine, L, inverse, logdet, log_mass = (
            work.parameters[e], work.L[e], work.inverse[e], work.logdet[e], work.log_mass[e],
        )  # fmt: skip
        interleave(parameters, LANES * e, mine)
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
def interleave(parameters, first, out):
    """Interleave the parameters of components first … first + 7; copies of the last component fill empty lanes."""
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
    """Write the minor S·L·S + I_F of a pattern to `out`; return its number of rows."""
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
    """The square root of the mass of an observation."""
    return exp_eight(mul(splat(0.5), load(log_mass, LANES * o)))


@bare_kernel
def scale_minor(a, start, n, i, scale):
    """Multiply row i and column i of a symmetric matrix by `scale` (the diagonal entry by its square)."""
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
def compute_responsibilities(counts, scores, responsibilities):
    """Compute the responsibilities of all components, times the counts of rows; return Σ counts · log p(row)."""
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
                store(responsibilities[e], at, splat(0.0))
            total = -np.inf
            continue
        masses = splat(0.0)
        for e in range(eights):
            part = exp_eight(sub(load(scores[e], at), splat(top)))
            store(responsibilities[e], at, part)
            masses = plus(masses, part)
        mass = add_up(masses)
        for e in range(eights):
            store(responsibilities[e], at, mul(load(responsibilities[e], at), splat(counts[b] / mass)))
        total += counts[b] * (top + np.log(mass))
    return total


@kernel
def backward(table, batch, parameters, log_weights, first, last, prior, work):
    """The gradient of Σ counts · log p(row) + Σ prior · log leaf for some blocks of components; see `mixtures`."""
    m = len(table.leaf) - 1
    all_rows = batch.counts.sum()
    for e in range(first, last):
        mine, grad_L, grad_parameters, log_mass = (
            work.parameters[e],
            work.L[e],
            work.grad_parameters[e],
            work.log_mass[e],
        )
        grad_logdet, grad_log_mass = work.grad_logdet[e], work.grad_log_mass[e]
        mass = add_responsibilities(table, batch, work.responsibilities[e], grad_logdet, grad_log_mass)
        for i in range(m * (m + 1) // 2):
            store(grad_L, LANES * i, mul(mass, load(work.inverse[e], LANES * i)))
        start = 0
        for at in range(len(batch.patterns)):
            weight = load(grad_logdet, LANES * at)
            start += backward_minor(
                table, batch.patterns[at], weight, log_mass, work.swept[e], start, grad_L, grad_log_mass
            )
        multiply_by_twice(grad_L, m, work.square[e], mine, grad_parameters)
        backward_leaves(
            table, grad_log_mass, work.leaf[e], work.log_leaf[e], log_mass, prior, grad_parameters[LANES * m * m :]
        )
        store(grad_parameters, len(grad_parameters) - LANES, mass)
        for c in range(LANES * e, min(LANES * (e + 1), len(parameters))):
            gradient = work.gradient[c]
            for i in range(len(gradient)):
                gradient[i] = grad_parameters[LANES * i + c % LANES]
            gradient[-1] -= all_rows * np.exp(log_weights[c])


@bare_kernel
def add_responsibilities(table, batch, responsibilities, grad_logdet, grad_log_mass):
    """Sum the responsibilities of rows by pattern, and by observation of the groups that are in; return the total."""
    grad_logdet[:] = 0.0
    grad_log_mass[:] = 0.0
    mass = splat(0.0)
    for b in range(len(batch.rows)):
        weight, r = load(responsibilities, LANES * b), batch.rows[b]
        mass = plus(mass, weight)
        add_to(grad_logdet, LANES * batch.local[b], weight)
        for j in range(table.row[r], table.row[r + 1]):
            add_to(grad_log_mass, LANES * table.seen[j], weight)
    return mass


@bare_kernel
def add_to(a, at, x):
    store(a, at, plus(load(a, at), x))


@bare_kernel
def backward_minor(table, p, weight, log_mass, swept, start, grad_L, grad_log_mass):
    """Backpropagate through the log-determinant of a minor, to L and to the masses of uncertain groups.

    Returns the length of the minor in `swept`.
    """
    m, groups = len(table.leaf) - 1, table.groups[table.pattern[p] : table.pattern[p + 1]]
    n, at = len(groups), start
    for i in range(n):
        o = table.free[table.pattern[p] + i]
        if o >= 0:  # from here on `swept` is −S·inverse·S
            diagonal = load(swept, start + LANES * (packed(n, i) + i))
            add_to(grad_log_mass, LANES * o, muladd(weight, diagonal, weight))
            scale_minor(swept, start, n, i, half_exp(log_mass, o))
    for i in range(n):
        row = packed(m, groups[i])
        for j in range(i, n):
            to = LANES * (row + groups[j])
            store(grad_L, to, sub(load(grad_L, to), mul(weight, load(swept, at))))
            at += LANES
    return at - start


@bare_kernel
def multiply_by_twice(triangle, m, square, B, out):
    """2·G·B, where G is symmetric and given by its packed upper triangle; `square` is scratch memory for 2·G."""
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
    """The softmax of the logits of every leaf, its logarithm, and the log mass of every observation."""
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
def backward_leaves(table, grad_log_mass, leaf, log_leaf, log_mass, prior, gradient):
    """The gradient for the logits, from the gradient for the log masses; `prior` has pseudo-counts of codes."""
    for j in range(len(prior)):
        store(gradient, LANES * j, splat(prior[j]))
    for o in range(len(table.observation) - 1):
        first, last, weight = table.observation[o], table.observation[o + 1], load(grad_log_mass, LANES * o)
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
