"""Sampling from the root down: a sum chooses one of its terms, a product all of its factors, a determinant a set.

The nodes of a circuit are the slots of its program, children before parents. Node s has the terms first[s] …:

    SUM    weight · left · right     one of them is chosen (right may be −1)
    TIMES  left                      all of them
    DET    inside: left, outside: right      one of the two for every child
    LEAF   none; which[s] is its variable, or −1

A sample costs as much as the nodes that it visits. Values are scaled numbers, so that no evidence is too improbable.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pgcc.determinants.kernels.picking import pick_children
from pgcc.ir.scaled_numbers import ZERO_EXPONENT
from pgcc.kernels.policy import kernel
from pgcc.kernels.random import STATE, first_above, start_stream, uniform
from pgcc.program.program import DET, LEAF, SUM, TIMES
from pgcc.rings.kernels.scaled import shifted

_DOWN = 2.0**-256
_CERTAIN = 2.0  # a cumulative probability above every uniform number


class Links(NamedTuple):
    """The nodes and their terms: see above."""

    kind: np.ndarray
    first: np.ndarray
    left: np.ndarray
    right: np.ndarray
    which: np.ndarray


class Numbers(NamedTuple):
    """The weights of terms, and by node the numbers a and b of leaves a·ȳ + b·z, as scaled numbers."""

    weight: np.ndarray
    weight_exponent: np.ndarray
    table: np.ndarray
    table_exponent: np.ndarray


class Choices(NamedTuple):
    """The probabilities of all choices, for one row of evidence.

    Attributes
    ----------
    live : uint8 array
        By node, whether there is an unobserved variable below it.
    cumulative : float64 array
        By term of a sum, the cumulative probability; above 1 from the last possible term on.
    one : float64 array
        By node, for a leaf, the probability of 1.
    """

    live: np.ndarray
    cumulative: np.ndarray
    one: np.ndarray


@kernel
def choice_tables(links, numbers, codes, m, e, choices):
    """Fill in the choices for a row of evidence, from the values m · 2^(256·e) of all nodes."""
    kind, first, left, right, which = links
    table, table_exponent = numbers.table, numbers.table_exponent
    live, cumulative, one = choices
    for s in range(len(kind)):
        begin, end = first[s], first[s + 1]
        if kind[s] == LEAF:
            live[s] = which[s] >= 0 and codes[which[s]] < 0
            one[s] = _share(table[s, 1], table_exponent[s, 1], table[s, 0], table_exponent[s, 0])
            continue
        live[s] = 0
        for t in range(begin, end):
            if live[left[t]] or (right[t] >= 0 and live[right[t]]):
                live[s] = 1
                break
        if kind[s] == SUM and live[s]:
            _accumulate(links, numbers, begin, end, m, e, cumulative)


@kernel
def _share(m, e, other_m, other_e):
    """a / (a + b) for scaled a, b ≥ 0"""
    top = max(e, other_e)
    a = shifted(m, top - e) if m != 0.0 else 0.0
    b = shifted(other_m, top - other_e) if other_m != 0.0 else 0.0
    return a / (a + b) if a + b > 0.0 else 0.0


@kernel
def _accumulate(links, numbers, begin, end, m, e, cumulative):
    """Cumulative probabilities of the terms of a sum.

    A term is a product of at most three mantissas, between 2⁻³⁸⁴ and 2³⁸⁴; all are brought to a common exponent.
    """
    left, right, weight, weight_exponent = links.left, links.right, numbers.weight, numbers.weight_exponent
    top = ZERO_EXPONENT
    for t in range(begin, end):
        x, p = weight[t] * m[left[t]], weight_exponent[t] + e[left[t]]
        if right[t] >= 0:
            x, p = x * m[right[t]], p + e[right[t]]
        cumulative[t] = x
        if x != 0.0:
            top = max(top, p)
    total, last = 0.0, begin
    for t in range(begin, end):
        x = cumulative[t]
        if x != 0.0:
            gap = top - weight_exponent[t] - e[left[t]] - (e[right[t]] if right[t] >= 0 else 0)
            while gap > 0 and x != 0.0:
                x *= _DOWN
                gap -= 1
            if x > 0.0:
                last = t
            total += x
        cumulative[t] = total
    scale = 1.0 / total if total > 0.0 else 0.0  # no sample visits a sum without a possible term
    for t in range(begin, last):
        cumulative[t] *= scale
    for t in range(last, end):
        cumulative[t] = _CERTAIN


@kernel
def mark_reached(links, choices, root, reached):
    """reached[s] = 1 for the nodes with unobserved variables that a walk down from the root may visit."""
    kind, first, left, right, _ = links
    live, cumulative, _ = choices
    reached[:] = 0
    reached[root] = live[root]
    for s in range(root, -1, -1):
        if not reached[s]:
            continue
        before = 0.0
        for t in range(first[s], first[s + 1]):
            if kind[s] == SUM:
                possible = cumulative[t] > before
                before = cumulative[t]
                if not possible:
                    continue
            if live[left[t]]:
                reached[left[t]] = 1
            if right[t] >= 0 and live[right[t]]:
                reached[right[t]] = 1


@kernel
def walk_down(links, root, choices, sets, codes, stream, out):
    """out[i] = sample i of a row of evidence, from the random stream number `number` + i.

    stream : seed, row and number, see `start_stream`. sets : Sets, for `pick_children`.
    """
    kind, first, left, right, which = links
    live, cumulative, one = choices
    seed, of_row, first_number = stream
    state = np.empty(STATE, np.uint64)
    stack = np.empty(len(kind) + 1, np.int64)  # factors share no variables: a node with some is visited at most once
    most = 0
    for d in range(len(sets.plan)):
        most = max(most, sets.plan[d].children)
    picked = np.empty(most, np.uint8)
    for number in range(len(out)):
        start_stream(seed, of_row, first_number + number, state)
        sample = out[number]
        for v in range(len(codes)):
            sample[v] = max(codes[v], 0)  # a state that is not drawn is out
        stack[0], top = root, np.int64(live[root])
        while top > 0:
            top -= 1
            s = stack[top]
            if kind[s] == LEAF:
                sample[which[s]] = uniform(state) < one[s]
                continue
            t, end = first[s], first[s + 1]
            if kind[s] == SUM:
                if end - t > 1:
                    t = first_above(cumulative, t, end, uniform(state))
                end = t + 1
            elif kind[s] == DET:
                pick_children(sets, which[s], state, picked)
                for i in range(end - t):
                    child = left[t + i] if picked[i] else right[t + i]
                    if live[child]:
                        stack[top] = child
                        top += 1
                continue
            elif kind[s] != TIMES:
                raise ValueError("there is no rule to sample from an instruction of this kind")
            for i in range(t, end):
                if live[left[i]]:
                    stack[top] = left[i]
                    top += 1
                if right[i] >= 0 and live[right[i]]:
                    stack[top] = right[i]
                    top += 1
