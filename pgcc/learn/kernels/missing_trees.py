"""Mixtures of trees of one structure: the factors of rows that touch a missing variable, for all components at once.

In a tree, the missing variables form *islands*, connected by edges. Given the observed variables, islands are
independent of each other, and the sum over the states of one is found by belief propagation on it alone:

    β_v(t) = [t is possible] · Π_{children j of v} Σ_u Pr(x_j = u | x_v = t) · β_j(u)    β_j is 0 or 1 if j is observed

All of it is in linear space; the inner loops go over components. `bound` has lower bounds of log₂ max_t β_v(t), valid
for all components: numbers are brought back into range only where these say that they may leave it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pgcc.kernels.policy import bare_kernel, kernel

WIDTH = 256  # components at a time: messages stay in the cache
UNTOUCHED = 1.0  # the bound of a variable whose β is still 1


class Structure(NamedTuple):
    """A tree: the variables, parents first; the parent of each (−1 for a root); its first state, up to their number."""

    order: np.ndarray
    parents: np.ndarray
    first: np.ndarray


class Scale(NamedTuple):
    """How numbers are kept in range: those below `small`, 2^−bits, are multiplied by `large`, its inverse."""

    small: np.floating
    large: np.floating
    bits: float
    depth: float  # no number may be below 2^−depth
    least: np.ndarray  # states × states: log₂ of the smallest probability in the table, of all components


class Work(NamedTuple):
    """Scratch memory for one row."""

    state: np.ndarray  # of every variable; −1 if missing
    bound: np.ndarray
    message: np.ndarray
    total: np.ndarray  # the product over islands, times 2^−bits·steps
    steps: np.ndarray
    beta: np.ndarray  # states × components
    belief: np.ndarray  # states × components: responsibility · Pr(state | what is known)


@bare_kernel
def find_states(tree, possible, state):
    """The state of every variable, −1 if several are possible; returns how many variables are missing."""
    missing = 0
    for v in range(len(state)):
        count = 0
        for t in range(tree.first[v], tree.first[v + 1]):
            if possible[t]:
                count += 1
                state[v] = t
        if count != 1:
            state[v] = -1
            missing += 1
    return missing


@bare_kernel
def rescale(values, bound, scale, factor, steps):
    """Scale the rows of `values` so that the largest is at least `small`, given a bound; `steps` takes the factors."""
    bound = max(bound, -scale.depth - scale.bits)
    while bound < -scale.bits:
        for c in range(WIDTH):
            factor[c] = values[0, c]
        for t in range(1, len(values)):
            row = values[t]
            for c in range(WIDTH):
                factor[c] = max(factor[c], row[c])
        for c in range(WIDTH):
            steps[c] += 1 if factor[c] < scale.small else 0
            factor[c] = scale.large if factor[c] < scale.small else 1
        for t in range(len(values)):
            row = values[t]
            for c in range(WIDTH):
                row[c] *= factor[c]
        bound = min(bound + scale.bits, -scale.bits)
    return bound


@bare_kernel
def expect_below(tree, table, v, s, begin, beta, message):
    """The message of a missing variable to the state s of its parent: Σ_t Pr(t | s) · β(t)."""
    first, width = tree.first[v], min(WIDTH, table.shape[2] - begin)
    p, q, low, high = table[first, s], table[first + 1, s], beta[first], beta[first + 1]
    p, q = p[begin : begin + width], q[begin : begin + width]
    for c in range(width):
        message[c] = p[c] * low[c] + q[c] * high[c]
    for t in range(first + 2, tree.first[v + 1]):
        p, low = table[t, s, begin : begin + width], beta[t]
        for c in range(width):
            message[c] += p[c] * low[c]


@bare_kernel
def find_parent(tree, state, v):
    """Whether the parent of a variable is missing; the possible states of the parent, from … to (0 for a root)."""
    u = tree.parents[v]
    if u < 0:
        return False, 0, 1
    if state[u] < 0:
        return True, 0, tree.first[u + 1] - tree.first[u]
    return False, state[u] - tree.first[u], state[u] - tree.first[u] + 1


@bare_kernel
def upward(tree, possible, table, begin, scale, work):
    """Fill β of the missing variables, and `total` and `steps`, the product over islands."""
    state, bound, beta, message = work.state, work.bound, work.beta, work.message
    of_total, width = 0.0, min(WIDTH, table.shape[2] - begin)
    work.total[:] = 1
    work.steps[:] = 0
    for v in range(len(state)):
        bound[v] = UNTOUCHED
        for t in range(tree.first[v], tree.first[v + 1] if state[v] < 0 else tree.first[v]):
            beta[t] = possible[t]
            if not possible[t]:
                bound[v] = 0.0
    for at in range(len(state) - 1, -1, -1):
        v = tree.order[at]
        u, is_known = tree.parents[v], state[v] >= 0
        of_island, s0, s1 = find_parent(tree, state, v)
        if (is_known and not of_island) or (not is_known and bound[v] == UNTOUCHED):
            continue
        into, limit = work.total, of_total
        if of_island:
            into, limit = beta[tree.first[u] : tree.first[u + 1]], bound[u]
        low = np.inf
        for t in range(state[v] if is_known else tree.first[v], state[v] + 1 if is_known else tree.first[v + 1]):
            for s in range(s0, s1):
                low = min(low, scale.least[t, s])
        limit = min(limit, 0.0)
        if not is_known:
            if limit + low + bound[v] < -scale.depth:
                bound[v] = rescale(beta[tree.first[v] : tree.first[v + 1]], bound[v], scale, message, work.steps)
            low += bound[v]
        if limit + low < -scale.depth:
            limit = rescale(into, limit, scale, message, work.steps)
        for s in range(s0, s1):
            row, factor = into[s - s0], message
            if is_known:
                factor = table[state[v], s, begin : begin + width]
            else:
                expect_below(tree, table, v, s, begin, beta, message)
            for c in range(width):
                row[c] *= factor[c]
        if of_island:
            bound[u] = limit + low
        else:
            of_total = limit + low


@bare_kernel
def downward(tree, table, begin, responsibilities, work, flows):
    """Add responsibility · Pr(x_v = t, x_parent = s | what is known) to flows[t, s], for all factors of islands."""
    state, beta, message, belief = work.state, work.beta, work.message, work.belief
    width = len(responsibilities)
    for v in tree.order:
        u, is_known = tree.parents[v], state[v] >= 0
        of_island, s0, s1 = find_parent(tree, state, v)
        if is_known and not of_island:
            continue
        if not is_known:
            belief[tree.first[v] : tree.first[v + 1]] = 0
        for s in range(s0, s1):
            weight = responsibilities
            if of_island:
                weight = belief[tree.first[u] + s]
            if is_known:
                flow = flows[state[v], s, begin : begin + width]
                for c in range(width):
                    flow[c] += weight[c]
                continue
            expect_below(tree, table, v, s, begin, beta, message)
            for c in range(width):
                message[c] = weight[c] / message[c] if message[c] > 0 else 0
            for t in range(tree.first[v], tree.first[v + 1]):
                flow, mine = flows[t, s, begin : begin + width], belief[t]
                p, likely = table[t, s, begin : begin + width], beta[t]
                for c in range(width):
                    part = message[c] * p[c] * likely[c]
                    flow[c] += part
                    mine[c] += part


@kernel
def walk_islands(tree, possible, table, scale, work, totals, logs):
    """The product over the islands of every row is totals · exp(logs), rows × components; where there are none, 1."""
    for begin in range(0, table.shape[2], WIDTH):
        end = min(begin + WIDTH, table.shape[2])
        for r in range(len(possible)):
            if find_states(tree, possible[r], work.state) > 0:
                upward(tree, possible[r], table, begin, scale, work)
                total, log, taken = totals[r, begin:end], logs[r, begin:end], scale.bits * np.log(2.0)
                for c in range(end - begin):
                    total[c] = work.total[0, c]
                    log[c] -= work.steps[c] * taken


@kernel
def count_islands(tree, possible, table, scale, work, responsibilities, flows):
    """Add the expected counts of all factors that touch a missing variable to `flows`, times responsibilities."""
    for begin in range(0, table.shape[2], WIDTH):
        end = min(begin + WIDTH, table.shape[2])
        for r in range(len(possible)):
            if find_states(tree, possible[r], work.state) > 0:
                upward(tree, possible[r], table, begin, scale, work)
                downward(tree, table, begin, responsibilities[r, begin:end], work, flows)
