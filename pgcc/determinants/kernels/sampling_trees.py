"""Random spanning trees by loop-erased random walks (Wilson, 1996), for directed and undirected graphs.

A walk leaves a node by one of its arcs, with probability proportional to the arc's weight. The tree starts as the
ground alone. From every node that is not in the tree yet, walk until the tree is hit; the last arcs taken out of the
nodes on the way become a branch of the tree. Killing rates are arcs to the ground.

An edge that must be in is contracted; nothing else leads out of the tail of a directed one. An edge that is out has no
arc. `pgcc.determinants.samplers` builds the arcs, `picking` draws.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pgcc.determinants.kernels.laplacian import contract, find_root, number_nodes
from pgcc.kernels.policy import kernel
from pgcc.kernels.random import STATE, first_above, start_stream, uniform


class Arcs(NamedTuple):
    """The arcs out of every node.

    Attributes
    ----------
    start : int64 array, nodes + 2
        The offset of the first arc of every node.
    heads, edges : int64 arrays
        The head of every arc, and the number of its edge, or −1 for a killing rate. There is memory for two arcs per
        edge and one per killing rate.
    cumulative : float64 array
        The cumulative probabilities of the arcs of every node.
    """

    start: np.ndarray
    heads: np.ndarray
    edges: np.ndarray
    cumulative: np.ndarray


@kernel
def arcs_of(graph, inside, arcs):
    """Write the arcs out of every contracted node; returns the number of these nodes, or −1 if no tree is possible.

    graph : Laplacian, in which edges that are out have weight 0. inside : which edges must be in. arcs : Arcs.
    """
    tail, head, weight, kill, directed = graph
    start, _, _, cumulative = arcs
    r = len(kill)
    parent, label, chosen = np.empty(r + 1, np.int64), np.empty(r + 1, np.int64), np.empty(r + 1, np.bool_)
    if contract(graph, np.ones(len(tail)), np.where(inside, 0.0, 1.0), parent, chosen)[2] < 0:
        return -1
    m = number_nodes(parent, label)
    label[r] = m
    count = np.zeros(m + 2, np.int64)
    for fill in range(2):  # first count, then write
        for i in range(len(tail)):
            if weight[i] <= 0.0 or inside[i] or (directed and chosen[tail[i]]):
                continue
            a, b = label[find_root(parent, tail[i])], label[find_root(parent, head[i])]
            if a == b:
                continue
            if a != m:
                _add_arc(fill, count, a, b, i, weight[i], arcs)
            if b != m and not directed:
                _add_arc(fill, count, b, a, i, weight[i], arcs)
        for node in range(r):
            a = label[find_root(parent, node)]
            if kill[node] > 0.0 and a != m and not (directed and chosen[node]):
                _add_arc(fill, count, a, m, -1, kill[node], arcs)
        if fill == 0:
            start[0] = 0
            for node in range(m):
                start[node + 1] = start[node] + count[node]
                if count[node] == 0:
                    return -1
                count[node] = start[node]
    for node in range(m):
        begin, end = start[node], start[node + 1]
        for arc in range(begin + 1, end):
            cumulative[arc] += cumulative[arc - 1]
        total = cumulative[end - 1]
        for arc in range(begin, end):
            cumulative[arc] /= total
        cumulative[end - 1] = 2.0  # above every uniform number
    return m


@kernel
def _add_arc(fill, count, a, b, edge, weight, arcs):
    """Count an arc from a to b and, if `fill` is set, write it."""
    if fill:
        at = count[a]
        arcs.heads[at], arcs.edges[at], arcs.cumulative[at] = b, edge, weight
    count[a] += 1


@kernel
def random_walks(graph, nodes, cumulative, state, picked, most):
    """Draw a tree in at most `most` steps: picked[e] = 1 for its edges.

    graph : `start`, `heads` and `edges` of `Arcs`, concatenated. Returns the number of steps, or −1 if these are not
    enough.
    """
    start, arcs = graph[: nodes + 1], graph[nodes]
    heads, edges = graph[nodes + 1 : nodes + 1 + arcs], graph[nodes + 1 + arcs :]
    taken, in_tree = np.empty(nodes, np.int64), np.zeros(nodes + 1, np.bool_)
    in_tree[nodes] = True
    steps = 0
    for first in range(nodes):
        node = first
        while not in_tree[node]:
            arc = first_above(cumulative, start[node], start[node + 1], uniform(state))
            taken[node] = arc
            node = heads[arc]
            steps += 1
            if steps > most:
                return -1
        node = first
        while not in_tree[node]:
            in_tree[node] = True
            if edges[taken[node]] >= 0:
                picked[edges[taken[node]]] = 1
            node = heads[taken[node]]
    return steps


@kernel
def count_steps(graph, nodes, cumulative, children, trees, most):
    """The number of steps to draw a few trees, from random streams of their own; −1 if one takes more than `most`."""
    state, picked, total = np.empty(STATE, np.uint64), np.zeros(children, np.uint8), 0
    for tree in range(trees):
        start_stream(np.uint64(0x57117501), tree, 0, state)
        steps = random_walks(graph, nodes, cumulative, state, picked, most)
        if steps < 0:
            return -1
        total += steps
    return total
