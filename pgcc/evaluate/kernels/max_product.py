"""Logarithms with the maximum in place of sums, for blocks of rows; and the walk down to where the maximum comes from.

A number has a value for every row of the block. Logarithms need no range of exponents: 0 is −inf.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from pgcc.kernels.policy import kernel
from pgcc.kernels.simd import LANES, choose, larger, load, plus, splat, store
from pgcc.kernels.walk import Operations, number_system, walk
from pgcc.program.program import LEAF, SUM


class Logs(NamedTuple):
    """The numbers of a program.

    Attributes
    ----------
    weights : float64 array
        Logarithms of the weights.
    is_max : uint8 array
        By weight, whether its sum becomes a maximum; otherwise, it is a sum.
    leaf_variable : int32 array
    leaf_table : float64 array, m × 3
        Logarithms of each leaf if its variable is observed 0, observed 1, unobserved.
    """

    weights: np.ndarray
    is_max: np.ndarray
    leaf_variable: np.ndarray
    leaf_table: np.ndarray


class MaxProduct(NamedTuple):
    """The number system: `width` rows, a multiple of eight; codes : variables · width; values : slots · width."""

    logs: Logs
    width: int
    codes: np.ndarray
    values: np.ndarray


def _leaf(system, i, at, number):
    logs, n = system.logs, system.width
    v = np.int64(logs.leaf_variable[number])
    out, into, free = logs.leaf_table[number, 0], logs.leaf_table[number, 1], logs.leaf_table[number, 2]
    for q in range(0, n, LANES):
        store(system.values, at * n + q, splat(free) if v < 0 else choose(system.codes, v * n + q, out, into, free))


def _one(system, i, at):
    system.values[at * system.width : (at + 1) * system.width] = 0.0


def _times(system, at, x):
    values, n = system.values, system.width
    for q in range(0, n, LANES):
        store(values, at * n + q, plus(load(values, at * n + q), load(values, x * n + q)))


def _zero(system, i, at):
    system.values[at * system.width : (at + 1) * system.width] = -math.inf


@kernel
def _add_up(values, at, n, w, x, y):
    """log(exp a + exp b) of each row, where b is the term w·x·y (y may be −1)."""
    for q in range(n):
        a, b = values[at * n + q], w + values[x * n + q] + (values[y * n + q] if y >= 0 else 0.0)
        if b > -math.inf:
            values[at * n + q] = max(a, b) + math.log1p(math.exp(-abs(a - b)))


def _add(system, at, k, x):
    values, n, w = system.values, system.width, system.logs.weights[k]
    if not system.logs.is_max[k]:
        _add_up(values, at, n, w, x, -1)
        return
    for q in range(0, n, LANES):
        term = plus(splat(w), load(values, x * n + q))
        store(values, at * n + q, larger(term, load(values, at * n + q)))


def _add_product(system, at, k, x, y):
    values, n, w = system.values, system.width, system.logs.weights[k]
    if not system.logs.is_max[k]:
        _add_up(values, at, n, w, x, y)
        return
    for q in range(0, n, LANES):
        term = plus(splat(w), plus(load(values, x * n + q), load(values, y * n + q)))
        store(values, at * n + q, larger(term, load(values, at * n + q)))


number_system(MaxProduct, Operations(_leaf, _one, _times, _zero, _add, _add_product))


@kernel
def run_upward(code, logs, codes, values, width):
    """values[slot · width + row], for one block of rows; codes : variables · width. code : Instructions."""
    walk(code, MaxProduct(logs, width, codes, values), 0, len(code.op))


@kernel
def run_max_product(code, logs, links, weights, leaves, root, codes, width, found, out):
    """found[row] = the value of the root, and out[row] = an assignment that it comes from.

    links, weights, leaves : see `walk_to_best`. width : the rows of a block.
    """
    variables = codes.shape[1]
    values, stack = np.empty(len(leaves) * width), np.empty(len(leaves) + 1, np.int64)
    block = np.full(variables * width, -1, np.int8)
    for first in range(0, len(codes), width):
        many = min(width, len(codes) - first)
        for r in range(many):
            for v in range(variables):
                block[v * width + r] = codes[first + r, v]
        walk(code, MaxProduct(logs, width, block, values), 0, len(code.op))
        for r in range(many):
            found[first + r] = values[root * width + r]
            walk_to_best(links, weights, leaves, root, codes[first + r], values, width, r, stack, out[first + r])


@kernel
def walk_to_best(links, weights, leaves, root, codes, values, width, row, stack, out):
    """From the root down, by the largest term of every sum, and all factors of every product.

    weights : by term, the logarithms. leaves : by node, the logarithms of a and b of a leaf a·ȳ + b·z.
    """
    kind, first, left, right, which = links
    for v in range(len(codes)):
        out[v] = max(codes[v], 0)
    stack[0], top = root, 1
    while top > 0:
        top -= 1
        s = stack[top]
        begin, end = np.int64(first[s]), np.int64(first[s + 1])
        if kind[s] == LEAF:
            v = which[s]
            if v >= 0 and codes[v] < 0:
                out[v] = leaves[s, 1] > leaves[s, 0]
            continue
        if kind[s] == SUM:
            best, chosen = -math.inf, begin
            for t in range(begin, end):
                value = weights[t] + values[left[t] * width + row]
                if right[t] >= 0:
                    value += values[right[t] * width + row]
                if value > best:
                    best, chosen = value, t
            begin, end = chosen, min(chosen + 1, end)
        for t in range(begin, end):
            stack[top] = left[t]
            top += 1
            if right[t] >= 0:
                stack[top] = right[t]
                top += 1
