"""Bayesian networks over binary variables: tables of conditional probabilities, and variable elimination."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product as assignments
from typing import TYPE_CHECKING, Any

import numpy as np

from pgcc.arrays import as_array
from pgcc.errors import CircuitError, plural
from pgcc.frontend.elimination import Factor, eliminate
from pgcc.ir.circuit import Circuit
from pgcc.ir.domains import Domains
from pgcc.ir.numbers import one_minus
from pgcc.ir.operands import as_list, model_names, probability

if TYPE_CHECKING:
    import networkx


def bayesian_network(G: networkx.DiGraph, cpt: str = "cpt", keep: Iterable[str] | None = None) -> Circuit:
    """A Bayesian network over binary variables, compiled by variable elimination with a min-fill order.

    Parameters
    ----------
    G : networkx.DiGraph
        The network, with edges from parents to children. The attribute `cpt` of a node gives Pr(x = 1 | parents): a
        number if it has no parents, a dict from tuples of the parents' values, or an array of shape (2,) · k with one
        axis per parent. Tables are float64: Pr(x = 1) and Pr(x = 0) are each the double nearest to the exact number.
        Parents come in the order of `G.predecessors` (the order of the edges), unless the node has an attribute
        `parents` that lists them in another order.
    cpt : str
        The name of that attribute.
    keep : iterable of str, optional
        The variables that you want to ask about; the others are summed out here. By default, all are kept.

    Returns
    -------
    Circuit
        A circuit whose variables are the nodes, named ``str(node)``.

    Raises
    ------
    CircuitError
        If a table is incomplete, or the induced width is too large (`WidthError`).

    See Also
    --------
    pgcc.load : read a circuit from a file
    pgcc.builders.chow_liu : a tree-shaped network with given probabilities
    pgcc.builders.naive_bayes : mixtures of independent variables

    Examples
    --------
    >>> import networkx
    >>> import pgcc
    >>> G = networkx.DiGraph([("rain", "wet"), ("sprinkler", "wet")])
    >>> G.nodes["rain"]["cpt"], G.nodes["sprinkler"]["cpt"] = 0.2, 0.1
    >>> G.nodes["wet"]["cpt"] = {(0, 0): 0, (0, 1): 0.9, (1, 0): 0.8, (1, 1): 0.99}
    >>> pgcc.compile(pgcc.builders.bayesian_network(G)).prob({"rain": 1, "wet": 0})
    0.0362
    """
    import networkx as nx

    if not isinstance(G, nx.DiGraph) or G.is_multigraph():
        raise CircuitError(f"a Bayesian network is a networkx.DiGraph, not {type(G).__name__}")
    if not nx.is_directed_acyclic_graph(G):
        raise CircuitError(
            "a Bayesian network has no directed cycle: " + " → ".join(str(u) for u, _ in nx.find_cycle(G))
        )
    labels = model_names([str(node) for node in G], len(G))
    index = {node: i for i, node in enumerate(G)}
    factors = []
    for node, i in index.items():
        parents = _parents(G, node)
        table = _cpt(G.nodes[node].get(cpt), len(parents), str(node))
        factors.append(Factor((*(index[p] for p in parents), i), table))
    return eliminate(Domains.plain(labels), factors, keep)


def _parents(G: networkx.DiGraph, node: Any) -> list:
    natural = list(G.predecessors(node))
    listed = as_list(G.nodes[node].get("parents", natural), f"the attribute `parents` of {str(node)!r}")
    if len(listed) != len(natural) or any(parent not in listed for parent in natural):
        raise CircuitError(f"the attribute `parents` of {str(node)!r} does not list its predecessors")
    return listed


def _cpt(given: Any, k: int, name: str) -> np.ndarray:
    """Pr(x | values of k parents): an axis for each of them, and one for x."""
    if given is None:
        raise CircuitError(f"the node {name!r} has no table of probabilities")
    if k > 20:
        raise CircuitError(f"the node {name!r} has {k} parents: a table of 2^{k} entries is too large")
    cells = list(assignments((0, 1), repeat=k))
    if isinstance(given, dict):
        table = {_key(key): p for key, p in given.items()}
        if len(table) < len(given) or table.keys() != set(cells):
            wrong = next(iter(table.keys() ^ set(cells)), "a pair of equal keys")
            raise CircuitError(
                f"the table of {name!r} needs an entry for every tuple of the values of {k} parents: see {wrong}"
            )
        entries = [table[cell] for cell in cells]
    else:
        held = as_array(given, f"the table of {name!r}")
        array = np.asarray(given if held is None else held, dtype=object)
        if array.shape != (2,) * k:
            need = f"the shape {(2,) * k}: Pr(x = 1) for all values of its parents" if k else "one number, Pr(x = 1)"
            parents = plural(k, "parent") if k else "no parents"
            raise CircuitError(f"the table of {name!r} has the shape {array.shape}; with {parents} it needs {need}")
        entries = [array[cell] for cell in cells]
    rows = [_both(p, f"{name} =", c) for p, c in zip(entries, cells, strict=True)]
    return np.array(rows).reshape((2,) * (k + 1))


def _both(p: Any, event: str, given: tuple) -> tuple[float, float]:
    """Pr(x = 0) and Pr(x = 1), each correct to the last digit: 1 − p is computed exactly, then rounded."""
    inside = probability(p, f"Pr({event} 1 | {given})")
    for value, exact in enumerate(both := (one_minus(inside), inside)):
        if exact and not float(exact):
            raise CircuitError(
                f"Pr({event} {value} | {given}) is below the range of float64, in which Bayesian networks are computed"
            )
    return float(both[0]), float(both[1])


def _key(key: Any) -> tuple:
    return tuple(key) if isinstance(key, (tuple, list)) else (key,)
