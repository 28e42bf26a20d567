"""BayesianNetworkMLE: the tables of a Bayesian network with given arrows, by counting, and by EM where there are gaps.

The E-step needs the expected number of rows in each cell of each table. So every family (a variable and its parents) in
which something is missing gets a variable of its own in the circuit, whose states are the cells: its marginals are what
is asked for, and the circuit grows by its leaves only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any

import numpy as np

from pgcc.cluster import Crew
from pgcc.data.evidence import Evidence
from pgcc.errors import PgccError, brief
from pgcc.frontend.elimination import eliminate
from pgcc.frontend.network import Network, Table, Tables, check_acyclic
from pgcc.frontend.relations import Relation
from pgcc.ir.circuit import Circuit
from pgcc.ir.domains import Domain, Domains, as_columns, domains_of
from pgcc.ir.operands import need_sequence
from pgcc.learn.common.checkpoint import State
from pgcc.learn.common.estimator import Estimator, check_positive, check_whole
from pgcc.learn.common.training import Run, RunPlan
from pgcc.learn.tables.data_split import DataSplit
from pgcc.learn.tables.packed_rows import Rows, slices
from pgcc.model import compile

# EM stops after a step that gains less than this in the mean log-likelihood. The most cells of a table.
_TOLERANCE, _MOST_CELLS = 1e-9, 1 << 20


@dataclass(eq=False, repr=False)
class BayesianNetworkMLE(Estimator):
    """Learn the tables of a Bayesian network from data, given its arrows.

    Complete data are counted. If values are missing (−1, NaN, None), the counts are those that the previous tables
    expect, with exact posteriors of every row: this is EM, and no step decreases the likelihood (with `smoothing`, the
    likelihood times the prior that it stands for).

    Parameters
    ----------
    network : list of edges, dict, graph or Circuit
        The arrows: pairs (parent, child); a dict from variables to lists of their parents; a graph with `nodes` and
        `edges`, of networkx or pgmpy; or a circuit that knows its network, which also says what the states are.
        Columns of the data without arrows are variables of their own.
    smoothing : float
        The number added to the count of every state, for each state of the parents. With 0, tables are
        maximum-likelihood estimates, and even where the parents have states that never occur.
    max_iter : int
        The largest number of steps of EM.
    verbose : bool, optional
        Report every step on standard error. By default, a bar shows the progress if that is a terminal; False shows
        nothing.

    Attributes
    ----------
    circuit_ : Circuit
        The distribution that was learned. Its `network` has the tables.
    tables_ : dict of arrays
        For every variable, Pr(x | parents): an axis for each parent, and the last one for its own states.
    parents_ : dict of lists
        The parents of every variable, in the order of the axes.
    n_iter_ : int
        The number of steps made.
    history_ : dict of lists
        For every step: the mean log-likelihood before it, and the seconds it took.

    See Also
    --------
    pgcc.builders.bayesian_network : a network with given tables
    pgcc.learn.ChowLiu : learn the most likely tree

    Examples
    --------
    >>> from pgcc.learn import BayesianNetworkMLE
    >>> rows = [("sun", "dry")] * 6 + [("rain", "wet")] * 3 + [("rain", "dry"), ("snow", "wet"), ("snow", None)]
    >>> data = [{"weather": weather, "lawn": lawn} for weather, lawn in rows]
    >>> model = BayesianNetworkMLE([("weather", "lawn")], smoothing=0).fit(data)
    >>> model.tables_["weather"].round(3), model.tables_["lawn"].round(3).tolist()
    (array([0.333, 0.167, 0.5  ]), [[0.25, 0.75], [0.0, 1.0], [1.0, 0.0]])
    >>> model.model_.marginals({"lawn": "wet"})["weather"]["rain"].__round__(3)
    0.6
    """

    network: Any
    _: KW_ONLY
    smoothing: float = 1.0
    max_iter: int = 100
    binarize: float | None = None
    verbose: bool | None = None

    _validation = "never"

    def _plans(self, data: DataSplit, seed: int, workers: Crew) -> list[RunPlan]:
        """Count, or take steps of EM where values are missing."""
        smoothing = check_positive("smoothing", self.smoothing, zero=True)
        steps = check_whole("max_iter", self.max_iter)
        counts = TableCounts(data.rows, *self._families(data))
        shapes = {"theta": (float, sum(map(len, counts.certain)))}
        return [RunPlan(partial(NetworkEM, counts, smoothing), steps if counts.gaps else 1, None, shapes, shapes)]

    def _finish(self, runs: Sequence[Run], data: DataSplit) -> None:
        domains, scopes = self._families(data)
        self.history_, self.n_iter_ = runs[0].history, runs[0].epochs
        cells = _shaped(runs[0].best["theta"], [Tables(domains).shape(scope) for scope in scopes])
        listed, self.tables_ = list(domains), dict(zip(domains, cells, strict=True))
        self.parents_ = {name: [listed[v] for v in scope[:-1]] for name, scope in zip(domains, scopes, strict=True)}
        tables = {name: Table(s, self.tables_[name], True) for name, s in zip(domains, scopes, strict=True)}
        self.circuit_ = Network.bayesian(domains, tables).circuit()

    def _families(self, data: DataSplit) -> tuple[Domains, list[tuple[int, ...]]]:
        domains = domains_of(data.rows.names) or Domains.plain(data.rows.names)
        return domains, _scopes(self.network, domains)

    def _columns(self) -> Sequence[str] | None:
        known = self.network.network if isinstance(self.network, Circuit) else None
        return None if known is None else as_columns(known.domains)

    def _settings(self, seed: int) -> dict[str, Any]:
        return super()._settings(seed) | {"network": None}

    def _arrays(self, data: DataSplit) -> Iterable[np.ndarray]:
        return map(np.array, self._families(data)[1])


def _scopes(network: Any, domains: Domains) -> list[tuple[int, ...]]:
    """The parents of every variable and the variable itself, as indices."""
    if isinstance(network, Circuit):
        if network.network is None or not network.network.is_bayesian:
            raise PgccError("the circuit was not compiled from a Bayesian network, whose arrows are needed")
        names = list(network.network.domains)
        parents = {names[t.scope[-1]]: [names[v] for v in t.scope[:-1]] for t in network.network.tables}
    elif isinstance(network, Mapping):
        listed = {name: [above] if isinstance(above, str) else above for name, above in network.items()}
        parents = {
            str(name): list(map(str, need_sequence(above, f"the parents of {name!r} are a list of names")))
            for name, above in listed.items()
        }
    else:
        parents = {str(node): [] for node in getattr(network, "nodes", ())}
        edges = getattr(network, "edges", network)
        edges = edges() if callable(edges) else edges
        if isinstance(edges, str) or not hasattr(edges, "__iter__"):
            raise PgccError(f"network={brief(network)}: expected edges (parent, child), a dict of parents, or a graph")
        for edge in edges:
            if isinstance(edge, str) or not hasattr(edge, "__len__") or len(edge) != 2:
                raise PgccError(f"network has {brief(edge)}, which is no edge: edges are pairs (parent, child)")
            parents.setdefault(str(edge[0]), [])
            parents.setdefault(str(edge[1]), []).append(str(edge[0]))
    check_acyclic(parents)
    make = Tables(domains)
    found = {name: make.scope(name, above) for name, above in parents.items()}
    return [found.get(name, (v,)) for v, name in enumerate(domains)]


def _shaped(theta: np.ndarray, shapes: Sequence[tuple[int, ...]]) -> list[np.ndarray]:
    parts = np.split(theta, np.cumsum([np.prod(shape, dtype=int) for shape in shapes])[:-1])
    return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]


class TableCounts:
    """How many rows there are in each cell of the table of each family; what is certain, and rows with gaps.

    Attributes
    ----------
    certain : list of arrays
        For every family, the number of rows in each cell, without the rows with gaps.
    gaps : list of (codes, counts)
        The rows with gaps, in blocks.
    """

    def __init__(self, rows: Rows, domains: Domains, scopes: Sequence[tuple[int, ...]]):
        self.rows, self.domains, self.scopes = rows.total, domains, scopes
        self.shapes = [Tables(domains).shape(scope) for scope in scopes]
        for name, shape in zip(domains, self.shapes, strict=True):
            if np.prod(shape, dtype=float) > _MOST_CELLS:
                raise PgccError(f"the table of {name!r} has the shape {shape}: more than {_MOST_CELLS:,} cells")
        self.certain = [np.zeros(np.prod(shape, dtype=int)) for shape in self.shapes]
        self.gaps: list[tuple[np.ndarray, np.ndarray]] = []
        for block in rows.blocks():
            codes, counts = block.codes, block.counts
            whole = (codes >= 0).all(axis=1)
            states = domains.states_in(codes[whole])
            for cells, scope, shape in zip(self.certain, scopes, self.shapes, strict=True):
                cell = np.ravel_multi_index(tuple(states[:, v] for v in scope), shape)
                cells += np.bincount(cell, counts[whole], len(cells))
            left, weights = codes[~whole], counts[~whole]
            self.gaps += [(left[part], weights[part]) for part in slices(len(left), self._width)]

    @property
    def _width(self) -> int:
        """The numbers that are computed for a row with gaps."""
        return len(self.domains.columns) + sum(map(len, self.certain))

    def shaped(self, theta: np.ndarray) -> list[np.ndarray]:
        """The tables from all their numbers."""
        return _shaped(theta, self.shapes)

    def expected(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """The log-likelihood of all rows, and the expected number of rows in every cell."""
        counts = np.concatenate(self.certain)
        used = counts > 0
        total = float(counts[used] @ np.log(theta[used]))
        if not self.gaps:
            return total, counts
        circuit, at = self._with_families(theta)
        model = compile(circuit)
        for codes, weights in self.gaps:
            whole = np.full((len(codes), len(circuit.variables)), -1, np.int8)
            whole[:, : codes.shape[1]] = codes
            evidence = Evidence.of_codes(circuit.variables, whole)
            total += float(weights @ np.asarray(model.logprob(evidence)))
            counts += weights @ np.asarray(model.marginals(evidence))[:, at]
        return total, counts

    def _with_families(self, theta: np.ndarray) -> tuple[Circuit, np.ndarray]:
        """The circuit of these tables with a variable for the cell of each, and where marginals have the cells."""
        families, factors = {}, []
        for f, (scope, table) in enumerate(zip(self.scopes, self.shaped(theta), strict=True)):
            name = f"cell of the table {f}"
            while name in self.domains:
                name += "'"
            cells = tuple(range(table.size))
            families[name] = Domain(cells, tuple(f"{name}={cell}" for cell in cells))
            live = np.flatnonzero(table)
            states = np.array([*np.unravel_index(live, table.shape), live], np.int32)
            factors.append(Relation((*scope, len(self.domains) + f), states, table.ravel()[live]))
        domains = Domains({**self.domains, **families})
        return eliminate(domains, factors), np.array(
            [i for i, (name, *_) in enumerate(domains.axis) if name in families]
        )


class NetworkEM:
    """EM for the tables of a network: an epoch is an E-step (which counts, if there are no gaps) and an M-step."""

    def __init__(self, counts: TableCounts, smoothing: float, state: State | None):
        self._counts, self._smoothing = counts, smoothing
        self._theta = self._normalized(np.concatenate(counts.certain) + 1.0) if state is None else state["theta"]
        self._value = -np.inf

    def advance(self) -> float | None:
        """The mean log-likelihood of the tables, and the next tables; None if that gains nothing more."""
        counts, before = self._counts, self._value
        total, expected = counts.expected(self._theta)
        self._value = total / counts.rows
        if abs(self._value - before) < _TOLERANCE:
            return None
        self._theta = self._normalized(expected + self._smoothing)
        return self._value

    def _normalized(self, counts: np.ndarray) -> np.ndarray:
        """The tables in proportion to counts; even where there are none."""
        found = []
        for table in self._counts.shaped(counts):
            total = table.sum(axis=-1, keepdims=True)
            even = np.full(table.shape, 1 / table.shape[-1])
            found.append(np.divide(table, total, out=even, where=total > 0).ravel())
        return np.concatenate(found)

    def validate(self) -> None:
        """Nothing is chosen: the last tables are kept."""

    def learned(self) -> State:
        """The tables of the last M-step."""
        return {"theta": self._theta}

    state = learned
