"""Weighted spanning trees by star–mesh elimination, which subtracts nothing and so loses no accuracy.

det(diag(κ) + Σ_e w_e·u_e·v_eᵀ), where u_e·v_eᵀ is the Laplacian of one edge, is the sum over the spanning trees of a
graph with an additional ground node, to which an edge of weight κ_i leads from every node i (matrix–tree theorem). An
edge that must be in is contracted, an edge that is out is deleted, and a node p is eliminated by the star–mesh
transform (the algorithm of Grassmann, Taksar and Heyman, 1985):

    factor s = Σ_j W_pj,     W_ij += W_ip · W_pj / s

All numbers are sums, products and quotients of positive numbers, so accuracy does not suffer from weights of very
different sizes. What is left after every step is again a sum over trees of products of weights. Eliminating p changes
only the weights of edges out of the d neighbours of p, and a tree has one edge out of every node, so relative errors of
η in these weights change the result by at most d·η. (For an undirected graph, direct all edges of a tree towards the
ground.) `forms` calls `tree_sum`.
"""

from __future__ import annotations

import math

import numpy as np

from pgcc.ir.numbers import UNIT
from pgcc.kernels.policy import bare_kernel, kernel, separate_kernel

_TINY = 2.0**-1000


@kernel
def new_nodes(r):
    """Scratch memory for `tree_sum` of a graph of r nodes and the ground.

    (W, parent, label, chosen): the weights between nodes, the union–find forest of contracted nodes, the number of
    every contracted node, and whether an edge out of a node must be in.
    """
    return np.empty((r, r)), np.empty(r + 1, np.int64), np.empty(r + 1, np.int64), np.empty(r + 1, np.bool_)


@kernel
def find_root(parent, node):
    """The representative of a node's set, with path halving (union–find)."""
    while parent[node] != node:
        parent[node] = parent[parent[node]]
        node = parent[node]
    return node


@kernel
def _compensated_sum(values, count, last):
    """last + Σ values, all ≥ 0, with a relative error of two roundings (Kahan)."""
    total, lost = last, 0.0
    for j in range(count):
        term = values[j] - lost
        bigger = total + term
        lost = (bigger - total) - term
        total = bigger
    return total


@kernel
def contract(graph, f, y, parent, chosen):
    """Contract the edges that must be in: (mantissa and exponent of the product of their weights, how many there are).

    The count is −1 if they form a cycle, or if two directed edges have the same tail, so that no tree contains them.
    """
    tail, head, weight, kill, directed = graph
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
    """The determinant for one row as (mantissa, binary exponent, relative error); NaN if the error is unknown.

    graph : Laplacian. f, y : values of the children and of their complements. nodes : see `new_nodes`.
    """
    W, parent, label, chosen = nodes
    value, exponent, count = contract(graph, f, y, parent, chosen)
    if count < 0:
        return 0.0, 0, 0.0
    m = number_nodes(parent, label)
    to_ground = np.zeros(m)
    merges, reliable = _add_edges(graph, f, y, nodes, to_ground)
    # roundings: 2 of the weight of an edge, an entry of U times one of V, and then two products if the edge is in, or
    # one product f·weight; 1 of a merge
    roundings = 4.0 * count + 3.0 * m + merges
    for p in range(m - 1, -1, -1):
        s = _compensated_sum(W[p], p, to_ground[p])
        if s == 0.0:
            return (0.0, 0, 0.0) if reliable else (0.0, 0, math.nan)
        value, binary = math.frexp(value * s)
        exponent += binary
        neighbours, normal = _star_mesh(W, to_ground, p, s)
        roundings += 5.0 * neighbours + 4.0  # per neighbour: 3 of its share W_ip/s, 1 of the product, and 1 of the sum
        reliable &= normal and s < math.inf
    return value, exponent, 1.01 * roundings * UNIT if reliable else math.nan


@bare_kernel
def number_nodes(parent, label):
    """Number the contracted nodes, without the ground; returns how many there are."""
    m = 0
    for node in range(len(parent) - 1):
        if parent[node] == node:
            label[node] = m
            m += 1
    return m


@bare_kernel
def _add_edges(graph, f, y, nodes, to_ground):
    """W and `to_ground` = the weights between contracted nodes, and from them to the ground.

    Returns the number of merges, which are additions to nonzero weights, each of which is rounded; and whether no
    weight is near under- or overflow.
    """
    tail, head, weight, kill, directed = graph
    W, parent, label, chosen = nodes
    r, m = len(kill), len(to_ground)
    for i in range(m):
        W[i, :m] = 0.0
    merges, reliable = 0, True
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
    return merges, reliable


@bare_kernel
def _star_mesh(W, to_ground, p, s):
    """Eliminate node p, whose weights add up to s: W_ij += W_ip · W_pj / s for the nodes i, j before it.

    Returns the number of its neighbours, and whether no product is near underflow.
    """
    row, neighbours = W[p], 0
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
    # a subnormal share has lost digits, whatever it is multiplied by
    lost = least_share < math.inf and not (least_share > _TINY and least * least_share > _TINY)
    return neighbours, not lost
