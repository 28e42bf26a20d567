"""Weighted spanning trees by star–mesh elimination: nothing is ever subtracted.

det(diag(κ) + Σ_e w_e·u_e·v_eᵀ), where u_e v_eᵀ is the Laplacian of one edge, is a sum over spanning trees of the graph
with a ground node more, to which κ leads. An edge that must be in is contracted, one that is out is left away, and
a node p with the weights W_pj around it is eliminated by

    factor s = Σ_j W_pj,     W_ij += W_ip · W_pj / s      (Grassmann, Taksar & Heyman 1985)

All numbers are sums, products and quotients of positive ones: weights across any number of orders of magnitude cost no
accuracy. What is left after every step is a sum over trees of products of weights. Eliminating p changes only weights
of edges that lead out of the d neighbours of p, and a tree has one edge out of every node, so a relative error η of
these weights changes the result by at most d·η. (For an undirected graph, direct all edges of a tree to the ground.)
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from pgcc.ir.numbers import UNIT
from pgcc.kernels.policy import kernel, separate_kernel

_TINY = 2.0**-1000


class Graph(NamedTuple):
    """A graph with a ground node: its edges are the children of a determinant.

    Attributes
    ----------
    directed : bool
    tail, head : int64 arrays
        The ends of every edge; the ground is node len(kill).
    weight : float64 array
        Of every edge.
    kill : float64 array
        κ: the weights of the edges to the ground, for every other node.
    """

    directed: bool
    tail: np.ndarray
    head: np.ndarray
    weight: np.ndarray
    kill: np.ndarray


class Nodes(NamedTuple):
    """Memory for `tree_sum`: weights between nodes; of a node its part, its label, and whether its edge is chosen."""

    W: np.ndarray
    parent: np.ndarray
    label: np.ndarray
    chosen: np.ndarray


@kernel
def new_nodes(r):
    """Memory for a graph of r nodes, and the ground."""
    labels = np.empty(r + 1, np.int64)
    return Nodes(np.empty((r, r)), np.empty(r + 1, np.int64), labels, np.empty(r + 1, np.bool_))


@kernel
def find_root(parent, node):
    """The representative of a node's part, with the path to it halved (union–find)."""
    while parent[node] != node:
        parent[node] = parent[parent[node]]
        node = parent[node]
    return node


@kernel
def _compensated_sum(values, count, last):
    """last + Σ values, all ≥ 0, to two roundings (Kahan)."""
    total, lost = last, 0.0
    for j in range(count):
        term = values[j] - lost
        bigger = total + term
        lost = (bigger - total) - term
        total = bigger
    return total


@kernel
def _contract(graph, f, y, parent, chosen):
    """Join the ends of the edges that must be in: (their product, its exponent, how many); a count of −1 for a cycle.

    A directed edge that is in is the only way out of its tail.
    """
    directed, tail, head, weight, kill = graph
    r = len(kill)  # the ground
    for node in range(r + 1):
        parent[node], chosen[node] = node, False
    value, exponent, count = 1.0, 0, 0
    for i in range(len(weight)):
        if y[i] != 0.0:
            continue
        a, b = find_root(parent, tail[i]), find_root(parent, head[i])
        if a == b or (directed and chosen[tail[i]]):
            return 0.0, 0, -1
        if directed:
            chosen[tail[i]] = True
            parent[a] = b  # a is tail[i] itself: no edge was chosen out of it before
        elif a == r:
            parent[b] = a  # the ground stays a root
        else:
            parent[a] = b
        inside, binary = math.frexp(f[i])
        mantissa, more = math.frexp(weight[i])
        value, carry = math.frexp(value * inside * mantissa)
        exponent += binary + more + carry
        count += 1
    return value, exponent, count


@separate_kernel
def tree_sum(graph, f, y, nodes):
    """The determinant for one row as (mantissa, binary exponent, relative error); an error of NaN: not to be trusted.

    graph : Graph. f, y : values of the children and of their complements. nodes : Nodes.
    """
    directed, tail, head, weight, kill = graph
    W, parent, label, chosen = nodes
    r = len(kill)
    value, exponent, count = _contract(graph, f, y, parent, chosen)
    if count < 0:
        return 0.0, 0, 0.0
    m = 0
    for node in range(r):
        if parent[node] == node:
            label[node] = m
            m += 1
    to_ground = np.zeros(m)
    for i in range(m):
        W[i, :m] = 0.0
    merges, reliable = 0, True  # merges: additions to a weight that is there already; the first one is exact
    for node in range(r):
        root = find_root(parent, node)
        if root != r and kill[node] > 0.0 and not (directed and chosen[node]):
            merges += to_ground[label[root]] > 0.0
            to_ground[label[root]] += kill[node]
    for i in range(len(weight)):
        if y[i] == 0.0 or f[i] == 0.0 or weight[i] == 0.0:
            continue
        w = f[i] * weight[i]
        if not (w > _TINY and w < math.inf):
            reliable = False
        if directed and chosen[tail[i]]:
            continue
        a, b = find_root(parent, tail[i]), find_root(parent, head[i])
        if a == b:
            continue
        if a == r:
            a, b = b, a
            if directed:
                continue  # nothing leads out of the ground
        if b == r:
            merges += to_ground[label[a]] > 0.0
            to_ground[label[a]] += w
        else:
            merges += W[label[a], label[b]] > 0.0
            W[label[a], label[b]] += w
            if not directed:
                W[label[b], label[a]] += w
    # an edge that is in: α, α·β, and two products; any other weight: α, α·β, and one product; a merge rounds one weight
    roundings = 4.0 * count + 3.0 * m + merges
    for p in range(m - 1, -1, -1):
        row = W[p]
        s = _compensated_sum(row, p, to_ground[p])
        if s == 0.0:
            return (0.0, 0, 0.0) if reliable else (0.0, 0, math.nan)
        if not s < math.inf:
            reliable = False
        mantissa, binary = math.frexp(value * s)
        value, exponent = mantissa, exponent + binary
        neighbours = 0
        least, least_share = to_ground[p] if to_ground[p] > 0.0 else math.inf, math.inf
        for j in range(p):
            if row[j] > 0.0:
                least = min(least, row[j])
        for i in range(p):
            share = W[i, p] / s
            if W[i, p] > 0.0:
                neighbours += 1
                least_share = min(least_share, share)
                other = W[i]
                for j in range(p):
                    other[j] += share * row[j]
                to_ground[i] += share * to_ground[p]
        roundings += 5.0 * neighbours + 4.0  # a share has 3 roundings, its product one, and the sum one
        if least_share < math.inf and not (least_share > _TINY and least * least_share > _TINY):
            reliable = False  # a share below the normal numbers has lost digits, whatever it is multiplied by
    return value, exponent, 1.01 * roundings * UNIT if reliable else math.nan
