"""Deterministic circuits as decision nodes over a tree of variables, and how an element of one is split."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np
from scipy.sparse import csr_array

from pgcc.builders import parents_first
from pgcc.errors import FormatError
from pgcc.ir.blocks import Blocks
from pgcc.ir.circuit import Circuit, from_flat
from pgcc.ir.flat_builder import FlatBuilder

# No circuit grows beyond this number of elements, those that were replaced included.
MOST_ELEMENTS = 1 << 20


class Decisions:
    """The structure of a deterministic, structured-decomposable circuit: nodes, which are sums, and their elements.

    A node belongs to a variable. Each of its elements is the product of a state of the variable and, for each child of
    the variable in a tree, a node of that child. A row takes exactly one element of every variable.

    At first there is a node for every variable and state of its parent: this is the Chow–Liu tree.

    Parameters
    ----------
    parents : sequence of int
        The tree: the parent of every variable; −1 for the root.
    states : sequence of int
        The number of states of every variable.
    splits : sequence of pairs, optional
        Elements and variables to `split`, one after another.

    Attributes
    ----------
    order : list of int
        The variables, parents first.
    below : list of lists
        The variables below each variable in the tree.
    literal, factors, node : lists
        Of every element: its variable and state; the nodes that are multiplied; the node whose element it is, or −1
        after it was split.
    elements : list of lists
        Of every node.
    start : list of lists
        The first element of every variable, for each state of its parent, before any split.

    Examples
    --------
    >>> chain = Decisions([-1, 0, 1], [2, 2, 2])
    >>> len(chain.elements), len(chain.node)
    (5, 10)
    >>> chain.split(chain.start[0][0], 2)  # the element of x1 = 0: for both states of x3, what became of elements
    [{0: 10, 2: 11, 4: 12, 5: 13, 8: 14}, {1: 15, 3: 16, 4: 17, 5: 18, 8: 19}]
    """

    def __init__(self, parents: Sequence[int], states: Sequence[int], splits: Iterable[tuple[int, int]] = ()):
        self.parents, self.states = list(parents), list(states)
        self.order = parents_first(parents) if max(parents) < len(self.states) else []
        if len(self.order) < len(self.states) or self.parents.count(-1) != 1 or min(parents) < -1:
            raise FormatError("these are no splits of a tree: a variable is its own ancestor, or there is no root")
        self.below: list[list[int]] = [[] for _ in self.order]
        self.start: list[list[int]] = [[] for _ in self.order]
        self.literal, self.factors = list[tuple[int, int]](), list[tuple[int, ...]]()
        self.node, self.elements = array("q"), list[list[int]]()  # (an array becomes one of numpy at once)
        self.splits: list[tuple[int, int]] = []
        self._children = [[c for c in self.order if self.parents[c] == v] for v in range(len(self.order))]
        nodes: list[list[int]] = [[] for _ in self.order]
        for v in reversed(self.order):
            self.below[v] = sorted(x for c in self._children[v] for x in (c, *self.below[c]))
            for _ in range(1 if self.parents[v] < 0 else self.states[self.parents[v]]):
                nodes[v].append(self._add_node())
                self.start[v].append(len(self.node))
                for x in range(self.states[v]):
                    self._add(nodes[v][-1], (v, x), tuple(nodes[c][x] for c in self._children[v]))
        self.root = len(self.elements) - 1
        for element, variable in splits:
            self.split(element, variable)

    def _add_node(self) -> int:
        self.elements.append([])
        return len(self.elements) - 1

    def _add(self, node: int, literal: tuple[int, int], factors: tuple[int, ...]) -> int:
        self.elements[node].append(len(self.node))
        self.node.append(node)
        self.literal.append(literal)
        self.factors.append(factors)
        return len(self.node) - 1

    def path(self, element: int, variable: int) -> list[int]:
        """The variables from that of an element down to one below it."""
        path = [variable]
        while path[-1] != self.literal[element][0]:
            path.append(self.parents[path[-1]])
        return path[::-1]

    def split(self, element: int, variable: int) -> list[dict[int, int]]:
        """Replace an element by one for each state of a variable below it. The likelihood of rows cannot get worse.

        What depends on the variable is copied, for each of its states without the elements that disagree; the copies
        share what does not depend on it.

        Returns
        -------
        list of dicts
            For every state of the variable: which element a row with this state now takes instead of which.
        """
        is_possible = 0 <= element < len(self.node) <= MOST_ELEMENTS and self.node[element] >= 0
        if not is_possible or variable not in self.below[self.literal[element][0]]:
            raise FormatError(f"there is no element {element} that could be split on variable {variable}")
        levels, level, path = list[list[int]](), [element], self.path(element, variable)
        for above, v in pairwise(path):
            place = self._children[above].index(v)
            levels.append(list(dict.fromkeys(self.factors[e][place] for e in level)))  # the nodes to copy, by variable
            level = [e for n in levels[-1] for e in self.elements[n]]
        found = [self._copy(element, levels, state) for state in range(self.states[variable])]
        self.elements[self.node[element]].remove(element)
        self.node[element] = -1
        self.splits.append((element, variable))
        return found

    def _copy(self, element: int, levels: list[list[int]], state: int) -> dict[int, int]:
        """Copy an element, and the nodes that lead to a state of the last variable; return the copies of elements."""
        copies: dict[int, int] = {}
        nodes: dict[int, int] = {}  # what has the place of a node: itself if all of it agrees; −1 if nothing does

        def replaced(e: int) -> tuple[int, ...]:
            return tuple(nodes.get(factor, factor) for factor in self.factors[e])

        for level in reversed(levels):
            for n in level:
                agree = [e for e in self.elements[n] if level is not levels[-1] or self.literal[e][1] == state]
                kept = {e: factors for e in agree if -1 not in (factors := replaced(e))}
                nodes[n] = n if kept else -1
                if kept and kept != {e: self.factors[e] for e in self.elements[n]}:
                    nodes[n] = new = self._add_node()
                    copies |= {e: self._add(new, self.literal[e], f) for e, f in kept.items()}
        if -1 not in (factors := replaced(element)):
            copies[element] = self._add(self.node[element], self.literal[element], factors)
        return copies

    def sums(self) -> csr_array:
        """Which elements each node has, as a matrix of zeros and ones: nodes × elements."""
        node = np.array(self.node)
        live = np.flatnonzero(node >= 0)
        return csr_array((np.ones(len(live)), (node[live], live)), (len(self.elements), len(node)))

    def circuit(self, theta: np.ndarray, weights: np.ndarray, names: Sequence[str]) -> Circuit:
        """The mixture of the circuits with these parameters.

        Parameters
        ----------
        theta : array, elements × components
            The probability of every element, given its node.
        weights : array
            The weight of every component.
        names : sequence of str
            The columns that show the variables.
        """
        self.check(theta, weights)
        build, blocks = FlatBuilder(), Blocks.of(names)
        literals = [
            [build.var(names[c + x]) if blocks.size[c] > 1 else build.var(names[c], x == 0) for x in range(states)]
            for c, states in zip(blocks.first.tolist(), self.states, strict=True)
        ]
        depth = {v: i for i, v in enumerate(reversed(self.order))}
        bottom_up = sorted(range(len(self.elements)), key=lambda n: depth[self.literal[self.elements[n][0]][0]])
        mixed = []
        for weight, probabilities in zip(weights.tolist(), theta.T.tolist(), strict=True):
            made = [0] * len(self.elements)
            for n in bottom_up:
                terms = [(probabilities[e], *self.literal[e], self.factors[e]) for e in self.elements[n]]
                products = [((literals[v][x], *(made[f] for f in factors)), p) for p, v, x, factors in terms if p > 0.0]
                made[n] = _sum(build, ((build.product(of) if len(of) > 1 else of[0], p) for of, p in products))
            mixed.append((made[self.root], weight))
        return from_flat(build.flat(_sum(build, mixed)), names)

    def check(self, theta: np.ndarray, weights: np.ndarray) -> None:
        """Refuse parameters, from a file, that are not probabilities of these elements."""
        fits = len(theta) == len(self.node) and all(((x >= 0.0) & (x <= 1.0)).all() for x in (theta, weights))
        if not fits or any((np.abs(total - 1.0) > 1e-6).any() for total in (self.sums() @ theta, weights.sum())):
            raise FormatError("these are no parameters of the circuit with these splits")


def _sum(build: FlatBuilder, terms: Iterable[tuple[int, float]]) -> int:
    """Σ weight · term"""
    shares: dict[int, float] = {}
    for term, weight in terms:
        shares[term] = shares.get(term, 0.0) + weight
    return next(iter(shares)) if list(shares.values()) == [1.0] else build.weighted_sum(shares.values(), shares)
