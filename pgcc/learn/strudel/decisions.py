"""Deterministic circuits as decision nodes over a tree of variables, and how an element of one is split."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np

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
    the variable in the tree, a node of that child. A row takes exactly one element of every variable.

    At first there is a node for every variable and state of its parent: this is the Chow–Liu tree.

    Parameters
    ----------
    parents : sequence of int
        The tree: the parent of every variable; −1 for the root.
    states : sequence of int
        The number of states of every variable.
    splits : array, splits × 2, optional
        Elements and variables to `split`, one after another.

    Attributes
    ----------
    order : list of int
        The variables, parents first.
    below : list of lists
        The variables below each variable in the tree.
    variable, state, factors, node : lists
        Of every element. Its node is −1 after it was split.
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

    def __init__(self, parents: Sequence[int], states: Sequence[int], splits: np.ndarray | None = None):
        self.parents, self.states, self.order = list(parents), list(states), parents_first(parents)
        if len(self.order) < len(self.states) or self.parents.count(-1) != 1:
            raise FormatError("these are no splits of a tree: a variable is its own ancestor, or there is no root")
        self.children: list[list[int]] = [[] for _ in self.order]
        for v in self.order[1:]:
            self.children[self.parents[v]].append(v)
        self.below: list[list[int]] = [[] for _ in self.order]
        for v in reversed(self.order):
            self.below[v] = sorted(x for c in self.children[v] for x in (c, *self.below[c]))
        self.variable: list[int] = []
        self.state: list[int] = []
        self.factors: list[tuple[int, ...]] = []
        self.node: list[int] = []
        self.elements: list[list[int]] = []
        self.start: list[list[int]] = [[] for _ in self.order]
        nodes: list[list[int]] = [[] for _ in self.order]
        for v in reversed(self.order):
            for _ in range(1 if v == self.order[0] else self.states[self.parents[v]]):
                nodes[v].append(self._add_node())
                self.start[v].append(len(self.node))
                for x in range(self.states[v]):
                    self._add(nodes[v][-1], v, x, tuple(nodes[c][x] for c in self.children[v]))
        self.root = len(self.elements) - 1
        self.splits: list[tuple[int, int]] = []
        for element, variable in [] if splits is None else splits.tolist():
            self.split(element, variable)

    def _add_node(self) -> int:
        self.elements.append([])
        return len(self.elements) - 1

    def _add(self, node: int, variable: int, state: int, factors: tuple[int, ...]) -> int:
        self.elements[node].append(len(self.node))
        self.variable.append(variable)
        self.state.append(state)
        self.factors.append(factors)
        self.node.append(node)
        return len(self.node) - 1

    def path(self, element: int, variable: int) -> list[int]:
        """The variables from that of an element down to another one."""
        path = [variable]
        while path[-1] >= 0 and path[-1] != self.variable[element]:
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
        if not is_possible or variable not in self.below[self.variable[element]]:
            raise FormatError(f"there is no element {element} that could be split on variable {variable}")
        node, path = self.node[element], self.path(element, variable)
        places = [self.children[p].index(v) for p, v in pairwise(path)]
        levels = [[element]]  # the elements that depend on the variable, by the variables of the path
        for place in places:
            nodes = dict.fromkeys(self.factors[e][place] for e in levels[-1])
            levels.append([e for n in nodes for e in self.elements[n]])
        found = [self._given(state, levels, places) for state in range(self.states[variable])]
        self.elements[node].remove(element)
        self.node[element] = -1
        self.splits.append((element, variable))
        return found

    def _given(self, state: int, levels: list[list[int]], places: list[int]) -> dict[int, int]:
        """Copy elements given a state of the variable of the last level; return the copy of each that has one."""
        copies: dict[int, int] = {}
        nodes: dict[int, int] = {}  # which node has the place of another; those of which nothing is left are missing
        for level, place in zip(reversed(levels), [None, *reversed(places)], strict=True):
            kept: dict[int, list[tuple[int, tuple[int, ...]]]] = {}
            for e in level:
                factors = self.factors[e]
                if place is None and self.state[e] == state:
                    kept.setdefault(self.node[e], []).append((e, factors))
                elif place is not None and (other := nodes.get(factors[place])) is not None:
                    new = (*factors[:place], other, *factors[place + 1 :])
                    kept.setdefault(self.node[e], []).append((e, new))
            is_top = level is levels[0]
            for n, elements in kept.items():
                nodes[n] = n
                if is_top or len(elements) < len(self.elements[n]) or any(f != self.factors[e] for e, f in elements):
                    nodes[n] = n if is_top else self._add_node()
                    copies |= {e: self._add(nodes[n], self.variable[e], self.state[e], f) for e, f in elements}
        return copies

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
        build, blocks = FlatBuilder(), Blocks.of(names)
        literals = [
            [build.var(names[c + x]) if blocks.size[c] > 1 else build.var(names[c], x == 0) for x in range(k)]
            for c, k in zip(blocks.first.tolist(), self.states, strict=True)
        ]
        used: list[dict[int, None]] = [{} for _ in self.order]
        used[self.order[0]][self.root] = None
        for v in self.order:
            for e in (e for n in used[v] for e in self.elements[n]):
                for c, factor in zip(self.children[v], self.factors[e], strict=True):
                    used[c][factor] = None
        mixed = []
        for weight, probabilities in zip(weights.tolist(), theta.T.tolist(), strict=True):
            made: dict[int, int] = {}
            for v in reversed(self.order):
                for n in used[v]:
                    terms = [e for e in self.elements[n] if probabilities[e] > 0.0]
                    factors = [(literals[v][self.state[e]], *(made[f] for f in self.factors[e])) for e in terms]
                    products = [build.product(of) if len(of) > 1 else of[0] for of in factors]
                    made[n] = _sum(build, zip(products, (probabilities[e] for e in terms), strict=True))
            mixed.append((made[self.root], weight))
        return from_flat(build.flat(_sum(build, mixed)), names)


def _sum(build: FlatBuilder, terms: Iterable[tuple[int, float]]) -> int:
    """Σ weight · term"""
    shares: dict[int, float] = {}
    for term, weight in terms:
        shares[term] = shares.get(term, 0.0) + weight
    return next(iter(shares)) if list(shares.values()) == [1.0] else build.weighted_sum(shares.values(), shares)
