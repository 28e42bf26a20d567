"""Bayesian networks from Python objects: graphs with tables, dicts, and the networks of pgmpy and pyAgrum."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import product as assignments
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pgcc.arrays import as_array, is_frame
from pgcc.errors import CircuitError, EvidenceError, brief, plural
from pgcc.frontend.network import Network, Tables, check_acyclic
from pgcc.ir.circuit import Circuit
from pgcc.ir.domains import Domain, Domains
from pgcc.ir.names import hint
from pgcc.ir.numbers import one_minus
from pgcc.ir.operands import as_list, model_names, need_sequence, probability

if TYPE_CHECKING:
    import networkx

MOST_ROWS = 1 << 20  # of a table: one for all states of the parents


def bayesian_network(
    G: networkx.DiGraph | Mapping[str, Any] | Any,
    cpt: str = "cpt",
    keep: Iterable[str] | None = None,
    evidence: Mapping[str, Any] | None = None,
    states: Mapping[str, Sequence[Any]] | None = None,
) -> Circuit:
    """A Bayesian network, compiled by variable elimination in the best of several greedy orders.

    Parameters
    ----------
    G : dict, networkx.DiGraph, or network of pgmpy or pyAgrum
        In a dict, each variable has its table, or a pair of the list of its parents and its table. A graph has edges
        from parents to children; nodes have their table as the attribute `cpt`, and may have attributes `states` (a
        list) and `parents` (their order; by default, that of the edges in `G.predecessors`). A
        `pgmpy.models.DiscreteBayesianNetwork` or a `pyagrum.BayesNet` has everything itself.

        A table is a *row* for a variable without parents. Otherwise it is

        - a dict of a row for each tuple of the parents' states (for one parent, for each state of it);
        - an array with an axis for each parent and, if the node has `states`, a last axis for its own;
        - a pandas DataFrame with a line for each state of the variable (its index) and a column for each state of the
          parent; for several parents, the columns are a MultiIndex, with their names in any order, or in their order.
          It may be the other way round if the names of its index are the parents (as ``TabularCPD.to_dataframe`` of
          pgmpy and ``pandas.crosstab`` make it).

        A row is a dict from states to probabilities, or a list of probabilities for `states`, or a single number,
        Pr(x = 1), for a plain binary variable: one without named states. A dict or DataFrame says what the states are.
        Tables are float64; in rows of a single number, both Pr(x = 1) and Pr(x = 0) are the doubles nearest to the
        exact numbers.
    cpt : str
        The name of that attribute.
    keep : iterable of str, optional
        The variables that you want to ask about; the others are summed out here. By default, all are kept.
    evidence : dict, optional
        What was observed: a state, or a set of states, of each of these variables. The circuit is over the variables
        that were not observed in one state, and its total is the probability of the evidence.
    states : dict, optional
        The states of variables whose tables are arrays, as the attribute `states` of a node of a graph says them.

    Returns
    -------
    Circuit
        A circuit whose variables are the nodes, named ``str(node)``. It knows the network (`Circuit.network`).

    Raises
    ------
    CircuitError
        If a table is incomplete, or probabilities do not add up to 1 (up to 0.0005, which is what rounding to a few
        digits leaves, and is divided away), or the induced width is too large (`WidthError`).

    See Also
    --------
    pgcc.load : read a circuit from a file
    pgcc.Circuit.do : intervene in the network
    pgcc.builders.chow_liu : a tree-shaped network with given probabilities
    pgcc.builders.naive_bayes : mixtures of independent variables

    Examples
    --------
    >>> import pgcc
    >>> lawn = pgcc.builders.bayesian_network({
    ...     "weather": {"sun": 0.6, "rain": 0.3, "snow": 0.1},
    ...     "sprinkler": (["weather"], {"sun": 0.4, "rain": 0, "snow": 0}),
    ...     "lawn": (["weather", "sprinkler"], {
    ...         ("sun", 0): {"dry": 0.9, "wet": 0.1}, ("sun", 1): {"dry": 0.05, "wet": 0.95},
    ...         ("rain", 0): {"dry": 0.1, "wet": 0.9}, ("rain", 1): {"dry": 0.01, "wet": 0.99},
    ...         ("snow", 0): {"dry": 0.3, "wet": 0.7}, ("snow", 1): {"dry": 0.3, "wet": 0.7},
    ...     }),
    ... })
    >>> lawn.domains
    <Domains: weather in {sun, rain, snow}, sprinkler in {0, 1}, lawn in {dry, wet}>

    Arrays, with an axis for each parent and the last one for the variable itself:

    >>> arrays = {"weather": [0.7, 0.3], "lawn": (["weather"], [[0.9, 0.1], [0.2, 0.8]])}
    >>> names = {"weather": ["sun", "rain"], "lawn": ["dry", "wet"]}
    >>> pgcc.builders.bayesian_network(arrays, states=names).network.cpt("lawn")
    weather  sun  rain
    lawn
    dry      0.9   0.2
    wet      0.1   0.8

    Plain binary variables, as a graph:

    >>> import networkx
    >>> G = networkx.DiGraph([("rain", "wet"), ("sprinkler", "wet")])
    >>> G.nodes["rain"]["cpt"], G.nodes["sprinkler"]["cpt"] = 0.2, 0.1
    >>> G.nodes["wet"]["cpt"] = {(0, 0): 0, (0, 1): 0.9, (1, 0): 0.8, (1, 1): 0.99}
    >>> pgcc.compile(pgcc.builders.bayesian_network(G)).prob({"rain": 1, "wet": 0})
    0.0362
    """
    try:
        network = _network(G, cpt, states or {})
    except EvidenceError as error:  # an unknown state in a table
        raise CircuitError(str(error)) from None
    return network.asked(keep, evidence).circuit()


def _network(G: Any, cpt: str, states: Mapping[str, Any]) -> Network:
    if hasattr(G, "get_cpds"):
        return _from_nodes(_in_pgmpy(G))
    if hasattr(G, "cpt") and hasattr(G, "variable"):
        return _from_nodes(_in_pyagrum(G))
    nodes = _in_dict(G) if isinstance(G, Mapping) else _in_graph(G, cpt)
    for name, listed in states.items():
        if name not in nodes:
            raise CircuitError(f"states= names the unknown variable {name!r}{hint(name, nodes)}")
        nodes[name] = nodes[name]._replace(states=need_sequence(listed, f"the states of {name!r} are a sequence"))
    return _from_nodes(nodes)


class _Node(NamedTuple):
    """What was given for a variable: `states` are None if its table has to say them."""

    parents: list[str]
    given: Any
    states: list | None = None


# -- networks of other libraries ---------------------------------------------------------------------------------------


def _in_pgmpy(model: Any) -> dict[str, _Node]:
    """Its tables have their variable first, and may list the states of a parent in an order of their own."""
    cpds = {cpd.variable: cpd for cpd in model.get_cpds()}
    nodes = {}
    for node in model.nodes():
        if node not in cpds:
            raise CircuitError(f"variable {str(node)!r} has no table of probabilities")
        _, *parents = cpds[node].variables
        table = np.moveaxis(np.asarray(as_array(cpds[node].values, f"the table of {str(node)!r}"), float), 0, -1)
        for axis, parent in enumerate(parents):
            own, listed = (Domain.of(str(parent), cpds[at].state_names[parent]) for at in (node, parent))
            table = table.take([own.number(s, f"a parent of {str(node)!r}") for s in listed.states], axis)
        nodes[str(node)] = _Node(list(map(str, parents)), table, cpds[node].state_names[node])
    return nodes


def _in_pyagrum(model: Any) -> dict[str, _Node]:
    """Its tables name their variable first, and the axes of their arrays are the other way round."""
    nodes = {}
    for variable in map(model.variable, model.nodes()):
        table = model.cpt(variable.name())
        _, *parents = table.names
        array = np.moveaxis(np.asarray(table.toarray(), float).T, 0, -1)
        nodes[variable.name()] = _Node(parents, array, list(variable.labels()))
    return nodes


# -- graphs and dicts --------------------------------------------------------------------------------------------------


def _in_dict(given: Mapping[str, Any]) -> dict[str, _Node]:
    names = model_names(list(given), len(given))
    nodes = {}
    for name, value in zip(names, given.values(), strict=True):
        has_parents = isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], (str, list, tuple))
        parents, table = value if has_parents else ([], value)
        nodes[name] = _Node([parents] if isinstance(parents, str) else list(parents), table)
    return nodes


def _in_graph(G: Any, cpt: str) -> dict[str, _Node]:
    import networkx as nx

    if not isinstance(G, nx.DiGraph) or G.is_multigraph():
        raise CircuitError(
            "a Bayesian network is a networkx.DiGraph, a dict of tables, or a network of pgmpy or pyAgrum, "
            f"not {type(G).__name__}"
        )
    labels = dict(zip(G, model_names([str(node) for node in G], len(G)), strict=True))
    nodes = {}
    for node, name in labels.items():
        states = G.nodes[node].get("states")
        listed = None if states is None else need_sequence(states, f"the attribute `states` of {name!r} is a sequence")
        nodes[name] = _Node([labels[parent] for parent in _parents(G, node)], G.nodes[node].get(cpt), listed)
    return nodes


def _parents(G: networkx.DiGraph, node: Any) -> list:
    natural = list(G.predecessors(node))
    listed = as_list(G.nodes[node].get("parents", natural), f"the attribute `parents` of {str(node)!r}")
    if len(listed) != len(natural) or any(parent not in listed for parent in natural):
        raise CircuitError(f"the attribute `parents` of {str(node)!r} does not list its predecessors")
    return listed


def _from_nodes(nodes: dict[str, _Node]) -> Network:
    check_acyclic({name: node.parents for name, node in nodes.items()})
    nodes = {name: node._replace(given=_without_frame(node, name)) for name, node in nodes.items()}
    domains = Domains.of({name: node.states or _states_in(node) for name, node in nodes.items()})
    make, tables = Tables(domains), {}
    for name, node in nodes.items():
        scope = make.scope(name, node.parents)
        table = _table(node, name, domains[name], [domains[parent] for parent in node.parents])
        tables[name] = make.conditional(scope, table)
    return Network.bayesian(domains, tables)


def _without_frame(node: _Node, name: str) -> Any:
    """A DataFrame or Series of pandas as a dict of rows, with its columns in the order of the parents."""
    given = node.given
    if not hasattr(given, "iloc"):
        return given
    if not is_frame(given):
        return given.to_dict()
    if node.parents and set(given.index.names) == set(node.parents):
        given = given.T
    elif given.index.nlevels > 1:
        raise CircuitError(f"the table of {name!r} has lines for the states of its parents: it needs columns for them")
    if not (given.columns.is_unique and given.index.is_unique):
        raise CircuitError(f"the table of {name!r} has two equal columns, or two equal lines")
    table, above = given.to_dict(), list(given.columns.names)
    if not node.parents and len(table) == 1:
        return table.popitem()[1]
    if len(above) < 2 or set(above) != set(node.parents):
        return table
    return {tuple(key[above.index(parent)] for parent in node.parents): row for key, row in table.items()}


def _states_in(node: _Node) -> list:
    """The states that a table names; 0 and 1 if it names none."""
    row = node.given
    if isinstance(row, Mapping) and (node.parents or set(row) == {()}):
        row = next(iter(row.values()), None)
    return [0, 1] if not isinstance(row, Mapping) or set(row) == {0, 1} else list(row)


def _table(node: _Node, name: str, own: Domain, above: Sequence[Domain]) -> np.ndarray:
    """Pr(x | parents): an axis for each of them, and one for x."""
    given, k = node.given, len(above)
    shape = tuple(len(domain.states) for domain in above)
    if given is None:
        raise CircuitError(f"the node {name!r} has no table of probabilities")
    if math.prod(shape) > MOST_ROWS:
        raise CircuitError(f"the node {name!r} has {k} parents: a table of {math.prod(shape):,} rows is too large")
    if isinstance(given, np.ndarray) and given.dtype == float and given.shape == (*shape, len(own.states)):
        return given
    if isinstance(given, Mapping):
        rows = _rows_by_key(node, name, above)
    else:
        held = as_array(given, f"the table of {name!r}")
        array = np.asarray(given if held is None else held, dtype=object)
        if array.shape != shape + (() if node.states is None else (len(own.states),)):
            raise CircuitError(_shape_needed(array.shape, name, own, shape, node.states is None))
        rows = [array[cell] for cell in np.ndindex(shape)]
    cells = assignments(*([f"{parent}={s}" for s in d.states] for parent, d in zip(node.parents, above, strict=True)))
    numbers = [_row(row, name, own, ", ".join(cell)) for row, cell in zip(rows, cells, strict=True)]
    return np.array(numbers).reshape(*shape, len(own.states))


def _shape_needed(found: tuple, name: str, own: Domain, shape: tuple, is_plain: bool) -> str:
    k = len(shape)
    parents = plural(k, "parent") if k else "no parents"
    if is_plain:
        need = f"the shape {shape}: Pr(x = 1) for all values of its parents" if k else "one number, Pr(x = 1)"
        need += f"; states={{{name!r}: [...]}} says what its states are, whose axis is the last"
    else:
        need = f"the shape {(*shape, len(own.states))}: the last axis is that of its own states"
    return f"the table of {name!r} has the shape {found}; with {parents} it needs {need}"


def _rows_by_key(node: _Node, name: str, above: Sequence[Domain]) -> list:
    """The rows of a dict in the order of the parents' states."""
    given: Mapping[Any, Any] = node.given
    if not above and set(given) != {()}:
        return [given]
    table: dict[tuple, Any] = {}
    for key, row in given.items():
        cell = tuple(key) if isinstance(key, (tuple, list)) else (key,)
        if len(cell) == len(above):
            where = f"in the table of {name!r}, the parent"
            columns = zip(node.parents, above, cell, strict=True)
            cell = tuple(d.number(state, f"{where} {parent!r}") for parent, d, state in columns)
        table[cell] = row
    cells = dict.fromkeys(np.ndindex(*(len(domain.states) for domain in above)))
    strange = [cell for cell in table if cell not in cells]
    missing = [tuple(d.states[i] for d, i in zip(above, cell, strict=True)) for cell in cells if cell not in table]
    if strange or missing or len(table) < len(given):
        see = [*(f"{cell} is none" for cell in strange), *(f"{cell} is missing" for cell in missing), "two are equal"][
            0
        ]
        parents = ", ".join(node.parents) or "no parents"
        raise CircuitError(f"the table of {name!r} needs an entry for every tuple of the values of {parents}: {see}")
    return [table[cell] for cell in cells]


def _row(row: Any, name: str, own: Domain, cell: str) -> Sequence[float]:
    """The probabilities of all states; from a single one, both are correct to the last digit: 1 − p is rounded once."""
    given = f" | {cell}" if cell else ""
    if own.is_plain and np.ndim(row) == 0 and not isinstance(row, Mapping):
        inside = probability(row, f"Pr({name}=1{given})")
        numbers: Sequence[Any] = (one_minus(inside), inside)
    else:
        if isinstance(row, Mapping):
            entries = {own.number(label, f"a state of {name!r}"): p for label, p in row.items()}
            listed = [entries[i] for i in range(len(own.states)) if i in entries]
        else:
            listed = as_list(row, f"a row of the table of {name!r}")
        if len(listed) != len(own.states):
            states = ", ".join(map(str, own.states))
            where = f" given {cell}" if cell else ""
            raise CircuitError(f"{name!r} needs a probability for each of its states, {states},{where}: {brief(row)}")
        if not cell and any(isinstance(p, Mapping) for p in listed):
            raise CircuitError(f"{name!r} has no parents, but a table for each state of one: write (parents, table)")
        numbers = [probability(p, f"Pr({name}={s}{given})") for s, p in zip(own.states, listed, strict=True)]
    for state, exact in zip(own.states, numbers, strict=True):
        if exact and not float(exact):
            raise CircuitError(
                f"Pr({name}={state}{given}) is below the range of float64, in which Bayesian networks are computed"
            )
    return [float(p) for p in numbers]
