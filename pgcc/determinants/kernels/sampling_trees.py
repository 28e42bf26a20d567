"""Random spanning trees by loop-erased random walks (Wilson 1996).

A walk leaves a node by one of its arcs, with probability proportional to the arc's weight. From every node that is not
in the tree yet, walk until the tree is hit; the last arc taken out of every node on the way is the branch. The tree
starts as the ground. Works for directed graphs, and for rates of killing, which are arcs to the ground.

An edge that must be in is contracted; if it is directed, it is the only arc out of its tail. An edge that is out has no
arc.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pgcc.determinants.kernels.laplacian import find_root
from pgcc.kernels.policy import kernel
from pgcc.kernels.random import STATE, first_above, start_stream, uniform


class Arcs(NamedTuple):
    """The arcs out of every node.

    Attributes
    ----------
    start : int64 array, nodes + 2
        Where those of every node start.
    heads, edges : int64 arrays
        Where each leads, and the number of its edge, −1 for a rate: there are two for every edge, one for every rate.
    cumulative : float64 array
        The probability of the arcs of a node so far.
    """

    start: np.ndarray
    heads: np.ndarray
    edges: np.ndarray
    cumulative: np.ndarray


@kernel
def arcs_of(graph, inside, arcs):
    """The arcs out of every node as `random_walks` takes them: how many nodes there are, or −1 if no tree is possible.

    graph : Graph. inside : which edges must be in; those that cannot be have weight 0. arcs : Arcs.
    """
    directed, tail, head, weight, kill = graph
    start, _, _, cumulative = arcs
    r = len(kill)
    parent, label, forced = np.arange(r + 1), np.full(r + 1, -1), np.zeros(r + 1, np.bool_)
    for i in range(len(tail)):
        if inside[i] and directed:
            if forced[tail[i]]:
                return -1
            forced[tail[i]] = True
        elif inside[i]:
            a, b = find_root(parent, tail[i]), find_root(parent, head[i])
            if a == b:
                return -1
            if a == r:
                a, b = b, a
            parent[a] = b  # the ground stays a root
    m = 0
    for node in range(r):
        if find_root(parent, node) == node:
            label[node] = m
            m += 1
    label[r] = m
    count = np.zeros(m + 2, np.int64)
    for fill in range(2):  # first count, then write
        for i in range(len(tail)):
            if weight[i] <= 0.0 or (directed and forced[tail[i]] and not inside[i]) or (inside[i] and not directed):
                continue
            a, b = label[find_root(parent, tail[i])], label[find_root(parent, head[i])]
            if a == b:
                continue
            if a != m:
                _put(fill, count, a, b, i, weight[i], arcs)
            if b != m and not directed:
                _put(fill, count, b, a, i, weight[i], arcs)
        for node in range(r):
            a = label[find_root(parent, node)]
            if kill[node] > 0.0 and a != m and not (directed and forced[node]):
                _put(fill, count, a, m, -1, kill[node], arcs)
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
def _put(fill, count, a, b, edge, weight, arcs):
    """Write an arc from a to b, or only count it."""
    if fill:
        at = count[a]
        arcs.heads[at], arcs.edges[at], arcs.cumulative[at] = b, edge, weight
    count[a] += 1


@kernel
def random_walks(graph, nodes, cumulative, state, picked):
    """picked[e] = 1 for the edges of a tree. graph: where the arcs of every node start, their heads, their edges."""
    _walk(graph, nodes, cumulative, state, picked, np.int64(2) ** 62)


@kernel
def _walk(graph, nodes, cumulative, state, picked, most):
    """The same in at most so many steps: how many there were, or −1."""
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
    """Steps that a few trees take, from streams that nothing else reads; −1 if one takes more than `most`."""
    state, picked, total = np.empty(STATE, np.uint64), np.zeros(children, np.uint8), 0
    for tree in range(trees):
        start_stream(np.uint64(0x57117501), tree, 0, state)
        steps = _walk(graph, nodes, cumulative, state, picked, most)
        if steps < 0:
            return -1
        total += steps
    return total
