"""Well-known models over binary variables, as circuits: Bayesian networks, HMMs, mixtures, trees and cutset networks.

Each builder returns a circuit over literals z_i ("x_i is 1") and ȳ_i ("x_i is 0"). It is smooth and decomposable, has
the total 1 (provided that the given probabilities add up to 1), and is ready for `pgcc.compile`. Variables are called
x1, x2, … unless you give `names`, in the order of the columns of your data. Numbers are kept as you give them, so
fractions stay exact, except in Bayesian networks, whose tables are multiplied and added up in float64.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from pgcc.collector import collector_paused
from pgcc.errors import CircuitError, brief, plural
from pgcc.frontend.bayesian_network import bayesian_network
from pgcc.ir.circuit import Circuit
from pgcc.ir.node import ONE, Node, var
from pgcc.ir.numbers import Number
from pgcc.ir.operands import as_list, model_names, probability
from pgcc.passes.building import product_of, sum_of

__all__ = [
    "bayesian_network",
    "chow_liu",
    "cutset_network",
    "hmm",
    "naive_bayes",
]

TOLERANCE = 1e-9  # probabilities add up to 1 within this


def __dir__() -> list[str]:
    return __all__


# -- trees --------------------------------------------------------------------------------------------------


def chow_liu(parents: Iterable[int | None], probs: Iterable[Any], names: Iterable[str] | None = None) -> Circuit:
    """A tree-shaped network (or a forest), in which every variable depends on one parent.

    Parameters
    ----------
    parents : sequence of int or None
        The index of each variable's parent; −1 or None for a root.
    probs : sequence
        For each variable, the pair Pr(x = 1 | parent = 0), Pr(x = 1 | parent = 1). For a root, a single number, or a
        pair of equal numbers, so that you can pass an n×2 array.
    names : sequence of str, optional
        Names of the variables.

    See Also
    --------
    pgcc.learn.ChowLiu : learn the most likely tree from data
    pgcc.builders.bayesian_network : any Bayesian network over binary variables

    Examples
    --------
    >>> import pgcc
    >>> print(pgcc.builders.chow_liu([-1, 0], [0.25, (0.125, 0.75)], names=["rain", "wet"]))
    0.75*~rain*(0.875*~wet + 0.125*wet) + 0.25*rain*(0.25*~wet + 0.75*wet)
    """
    listed, tables = as_list(parents, "parents"), as_list(probs, "probs")
    if len(tables) != len(listed):
        raise CircuitError(f"{plural(len(listed), 'variable')}, but probabilities for {len(tables)}")
    labels = model_names(names, len(listed))
    above = [_parent(p, i, labels) for i, p in enumerate(listed)]
    given = [_pair(p, above[i] < 0, labels[i]) for i, p in enumerate(tables)]
    with collector_paused():
        return Circuit(_tree(above, given, labels), labels)


def _tree(above: list[int], given: list[tuple[Number, Number]], labels: Sequence[str]) -> Node:
    """S_i(v) = Σ_x Pr(x_i = x | parent = v) · lit_x · Π_{children c} S_c(x); for a root both v are the same."""
    below: list[tuple[list[Node], list[Node]]] = [([], []) for _ in above]
    roots: list[Node] = []
    order = parents_first(above)
    if len(order) < len(above):
        stuck = min(set(range(len(above))) - set(order))
        raise CircuitError(f"the parents of {labels[stuck]!r} form a cycle")
    for i in reversed(order):
        terms = [product_of([var(labels[i], complement=not x), *below[i][x]]) for x in (0, 1)]
        sums = [_bernoulli(p, *terms) for p in given[i]]
        if above[i] < 0:
            roots.append(sums[0])
        else:
            for x in (0, 1):
                below[above[i]][x].append(sums[x])
    return product_of(roots[::-1])


def _parent(parent: Any, i: int, labels: Sequence[str]) -> int:
    number = -1 if parent is None else _whole(parent, f"the parent of {labels[i]!r}")
    if not -1 <= number < len(labels):
        raise CircuitError(
            f"the parent of {labels[i]!r} is {number}: not −1 and not one of the {len(labels)} variables"
        )
    return number


def _pair(given: Any, root: bool, name: str) -> tuple[Number, Number]:
    if np.ndim(given) == 0:
        if not root:
            raise CircuitError(f"{name!r} has a parent, so it needs two probabilities of being 1, not {given!r}")
        p = probability(given, f"Pr({name} = 1)")
        return p, p
    if len(given) != 2:
        raise CircuitError(f"{name!r} needs two probabilities of being 1, one for each value of its parent: {given!r}")
    low, high = (probability(p, f"Pr({name} = 1 | parent = {v})") for v, p in enumerate(given))
    if root and low != high:
        raise CircuitError(f"{name!r} is a root, but two different probabilities are given: {low} and {high}")
    return low, high


def parents_first(parents: Sequence[int]) -> list[int]:
    """The nodes of a forest by depth, so parents before children; without nodes on cycles, and those below them.

    Parameters
    ----------
    parents : sequence of int
        The parent of every node; −1 for a root.

    Examples
    --------
    >>> parents_first([2, 0, -1]), parents_first([1, 0, -1])
    ([2, 0, 1], [2])
    """
    children: list[list[int]] = [[] for _ in parents]
    for i, parent in enumerate(parents):
        if parent >= 0:
            children[parent].append(i)
    order: list[int] = []
    level = [i for i, parent in enumerate(parents) if parent < 0]
    while level:
        order += level
        level = sorted(child for i in level for child in children[i])
    return order


# -- mixtures -----------------------------------------------------------------------------------------------


def naive_bayes(weights: Iterable[Any], probs: Iterable[Any], names: Iterable[str] | None = None) -> Circuit:
    """A naive Bayes model: a mixture in which the variables are independent given the (hidden) component.

    Parameters
    ----------
    weights : sequence of k numbers
        Pr(component). They must add up to 1.
    probs : array, k × n
        Pr(x = 1 | component).
    names : sequence of str, optional
        Names of the variables.

    See Also
    --------
    pgcc.mixture : a mixture of distributions
    pgcc.builders.bayesian_network : any Bayesian network over binary variables

    Examples
    --------
    >>> import pgcc
    >>> print(pgcc.builders.naive_bayes([0.5, 0.5], [[0.25], [0.75]], names=["a"]))
    0.5*(0.75*~a + 0.25*a) + 0.5*(0.25*~a + 0.75*a)
    """
    shares = _distribution(weights, "the weights of the components")
    rows = [as_list(row, "a row of probs") for row in as_list(probs, "probs")]
    if len(rows) != len(shares):
        raise CircuitError(f"{plural(len(shares), 'weight')}, but probabilities for {plural(len(rows), 'component')}")
    if len({len(row) for row in rows}) > 1:
        raise CircuitError("the components have probabilities for different numbers of variables")
    labels = model_names(names, len(rows[0]))
    with collector_paused():
        leaves = [
            [_leaf(p, name, f" | component {k}") for p, name in zip(row, labels, strict=True)]
            for k, row in enumerate(rows)
        ]
        return Circuit(_mixture(shares, [product_of(row) for row in leaves]), labels)


def hmm(
    initial: Iterable[Any],
    transition: Iterable[Any],
    emission: Iterable[Any],
    length: int,
    names: Iterable[str] | None = None,
) -> Circuit:
    """A hidden Markov model with k hidden states and one binary observation at each step.

    Parameters
    ----------
    initial : sequence of k numbers
        Pr(first state).
    transition : array, k × k
        Row s: Pr(next state | state s).
    emission : sequence of k numbers
        Pr(observation = 1 | state).
    length : int
        The number of observations, ≥ 1.
    names : sequence of str, optional
        Names of the observations.

    Returns
    -------
    Circuit
        A circuit with length · (k² + 4k) edges.

    See Also
    --------
    pgcc.builders.bayesian_network : any Bayesian network over binary variables
    pgcc.builders.chow_liu : a tree-shaped network with given probabilities

    Examples
    --------
    >>> import pgcc
    >>> weather = pgcc.builders.hmm([0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], [0.1, 0.7], length=100)
    >>> len(weather.variables), weather.edges
    (100, 1194)
    """
    steps = _whole(length, "the length")
    if steps < 1:
        raise CircuitError(f"a hidden Markov model has at least one observation, not {steps}")
    first = _distribution(initial, "the initial probabilities")
    k = len(first)
    rows = [
        _distribution(row, f"the transition probabilities from state {s}")
        for s, row in enumerate(as_list(transition, "transition"))
    ]
    ones = [probability(e, f"Pr(observation = 1 | state {s})") for s, e in enumerate(as_list(emission, "emission"))]
    if len(rows) != k or any(len(row) != k for row in rows) or len(ones) != k:
        raise CircuitError(f"{k} initial probabilities need transitions {k}×{k} and {k} emissions")
    labels = model_names(names, steps)
    with collector_paused():
        return Circuit(_mixture(first, _backward(rows, ones, labels)), labels)


def _backward(rows: list[list[Number]], ones: list[Number], labels: Sequence[str]) -> list[Node]:
    """β_t(s) = (e_s·z_t + (1 − e_s)·ȳ_t) · Σ_s' A[s, s'] · β_{t+1}(s')"""
    beta: list[Node] = []
    for name in reversed(labels):
        seen = [_bernoulli(e, var(name, complement=True), var(name)) for e in ones]
        beta = [product_of([now, _mixture(row, beta)]) for now, row in zip(seen, rows, strict=True)] if beta else seen
    return beta


def cutset_network(spec: Any, names: Iterable[str] | None = None) -> Circuit:
    """A cutset network: a decision tree over some variables, with a Chow–Liu tree over the rest at each leaf.

    Parameters
    ----------
    spec : nested tuples and dicts
        A decision is a tuple ``(name, p, if_zero, if_one)``: the variable is 1 with probability p, and its value
        chooses one of two specs over the same remaining variables. A leaf is a dict of all three arguments of
        `chow_liu`, ``{"names": […], "parents": […], "probs": […]}``, or None if no variables are left.
    names : sequence of str, optional
        The order of all variables. By default, the order of first appearance.

    See Also
    --------
    pgcc.builders.chow_liu : a tree-shaped network with given probabilities

    Examples
    --------
    >>> import pgcc
    >>> independent = {"names": ["b"], "parents": [-1], "probs": [0.5]}
    >>> print(pgcc.builders.cutset_network(("a", 0.25, ("b", 0.125, None, None), independent)))
    0.75*~a*(0.875*~b + 0.125*b) + 0.25*a*(0.5*~b + 0.5*b)
    """
    with collector_paused():
        root, scope = _cutset(spec)
        labels = model_names(list(scope) if names is None else names, len(scope))
        if set(labels) != set(scope):
            raise CircuitError(f"the names are not those of the network: {sorted(set(labels) ^ set(scope))[0]!r}")
        return Circuit(root, labels)


def _cutset(spec: Any) -> tuple[Node, dict[str, None]]:
    """The node and the variables of a spec. The loop visits each part once, however often it is used."""
    done: dict[int, tuple[Node, dict[str, None]]] = {}
    stack = [spec]
    while stack:
        part = stack[-1]
        if id(part) in done:
            stack.pop()
        elif not isinstance(part, tuple):
            done[id(part)] = _cutset_leaf(part)
        elif len(part) != 4:
            raise CircuitError(f"a decision of a cutset network is (name, p, if_zero, if_one), not {len(part)} items")
        else:
            waiting = [branch for branch in part[:1:-1] if id(branch) not in done]
            stack += waiting
            if not waiting:
                done[id(part)] = _decision(part[0], part[1], done[id(part[2])], done[id(part[3])])
    return done[id(spec)]


def _decision(name: Any, p: Any, zero: tuple, one: tuple) -> tuple[Node, dict[str, None]]:
    """p · z · one + (1 − p) · ȳ · zero"""
    differ = sorted(zero[1].keys() ^ one[1].keys())
    if differ:
        raise CircuitError(f"below the decision on {name!r}, only one branch has the variable {differ[0]!r}")
    positive = var(name)  # raises an error if this cannot be a name
    if name in zero[1]:
        raise CircuitError(f"below the decision on {name!r}, the variable occurs again")
    terms = [product_of([var(name, complement=True), zero[0]]), product_of([positive, one[0]])]
    return _bernoulli(probability(p, f"Pr({name} = 1)"), *terms), {name: None, **zero[1]}


def _cutset_leaf(part: Any) -> tuple[Node, dict[str, None]]:
    if part is None:
        return ONE, {}
    if not isinstance(part, dict) or part.keys() != {"names", "parents", "probs"}:
        raise CircuitError(
            "a leaf of a cutset network is None or a dict of names, parents and probs, not " + brief(part)
        )
    tree = chow_liu(**part)
    return tree.root, dict.fromkeys(tree.variables)


# -- helpers ------------------------------------------------------------------------------------------------


def _leaf(p: Any, name: str, given: str) -> Node:
    return _bernoulli(probability(p, f"Pr({name} = 1{given})"), var(name, complement=True), var(name))


def _bernoulli(p: Number, zero: Node, one: Node) -> Node:
    """(1 − p) · zero + p · one; a term of probability 0 is left out."""
    return _mixture((1 - p, p), (zero, one))


def _mixture(weights: Sequence[Number], nodes: Sequence[Node]) -> Node:
    return sum_of(zip(weights, nodes, strict=True))


def _distribution(values: Iterable[Any], what: str) -> list[Number]:
    numbers = [probability(value, f"one of {what}") for value in as_list(values, what)]
    total = float(sum(Fraction(p) for p in numbers))
    if not abs(total - 1) <= TOLERANCE:
        raise CircuitError(f"{what} add up to {total!r}, not to 1")
    return numbers


def _whole(value: Any, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise CircuitError(f"{what} is a whole number, not {value!r}")
    return int(value)
