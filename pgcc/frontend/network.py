"""Bayesian and Markov networks: tables over variables with states, kept beside the circuit that is compiled from them.

    Pr(x)  ∝  Π_f φ_f(x_f)

In a Bayesian network, every variable has one table, Pr(x | its parents), and parents form no cycle. That is more than a
polynomial shows: it says what an intervention does (the table of x is replaced), and that the sum over a *barren*
variable, one that is neither asked about nor observed and has no such descendants, is 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from graphlib import CycleError, TopologicalSorter
from typing import Any

import numpy as np

from pgcc.arrays import need_pandas
from pgcc.errors import CircuitError, EvidenceError, brief, plural
from pgcc.frontend.elimination import Table, WidthError, eliminate
from pgcc.ir.circuit import Circuit
from pgcc.ir.domains import Domains
from pgcc.ir.names import hint
from pgcc.ir.operands import need_sequence

# Probabilities add up to 1 within this, which is what ten numbers of four printed digits leave (0.3333 three times);
# then they are divided by their sum, unless they are off by roundings of doubles only. (Seven digits are usual.)
ROUNDING = 5e-4
MOST_AXES = 32  # an array of numpy has no more
_SHOWN = 8  # tables in the repr


@dataclass(frozen=True, repr=False)
class Network:
    """A Bayesian or Markov network, and what was asked of it when its circuit was compiled.

    Attributes
    ----------
    domains : Domains
        The variables with their states.
    tables : tuple of Table
        Tables refer to variables by their index.
    keep : tuple of str or None
        The variables of the circuit; all of them for None.
    evidence : dict
        What was observed: for each variable, a set of states.
    """

    domains: Domains
    tables: tuple[Table, ...] = field(hash=False)
    keep: tuple[str, ...] | None = None
    evidence: Mapping[str, frozenset] = field(default_factory=dict, hash=False)

    @staticmethod
    def bayesian(domains: Domains, tables: Mapping[str, Table]) -> Network:
        """The Bayesian network of a table for each variable."""
        names = list(domains)
        check_acyclic({name: [names[v] for v in table.scope[:-1]] for name, table in tables.items()})
        for name in domains:
            if name not in tables:
                raise CircuitError(f"variable {name!r} has no table of probabilities")
        return Network(domains, tuple(tables[name] for name in domains))

    @property
    def is_bayesian(self) -> bool:
        """Whether every variable has a table of its probabilities, and there are no other tables."""
        children = {table.scope[-1] for table in self.tables if table.is_conditional}
        return len(children) == len(self.tables) == len(self.domains)

    @property
    def is_whole(self) -> bool:
        """Whether the circuit is over all variables, and none was observed."""
        return self.keep is None and not self.evidence

    def __repr__(self) -> str:
        kind = "Bayesian" if self.is_bayesian else "Markov"
        product = " ".join([self._factor(table) for table in self.tables[:_SHOWN]] + ["…"][: len(self.tables) - _SHOWN])
        return f"<Network: {plural(len(self.domains), 'variable')}, {kind}: {product}>"

    def _factor(self, table: Table) -> str:
        """A table as the law has it: Pr(x | parents), or φ(x)."""
        *above, name = (list(self.domains)[v] for v in table.scope or ())
        if not table.is_conditional:
            return f"φ({', '.join((*above, name))})"
        return f"Pr({name}{' | ' if above else ''}{', '.join(above)})"

    @property
    def parents(self) -> dict[str, tuple[str, ...]]:
        """The parents of every variable that has a table of its probabilities, in the order of the axes."""
        names = list(self.domains)
        conditional = [table.scope for table in self.tables if table.is_conditional]
        return {names[v]: tuple(names[u] for u in above) for *above, v in conditional}

    def cpt(self, name: str) -> Any:
        """The table of a variable, as pandas shows it and as `pgcc.builders.bayesian_network` takes it.

        Returns
        -------
        DataFrame with a line for each state and a column for each state of the parents; without parents, a Series.

        Examples
        --------
        >>> import pgcc
        >>> lawn = pgcc.builders.bayesian_network({"rain": 0.2, "wet": (["rain"], {0: 0.1, 1: 0.9})}).network
        >>> lawn.parents
        {'rain': (), 'wet': ('rain',)}
        >>> lawn.cpt("wet")
        rain    0    1
        wet
        0     0.9  0.1
        1     0.1  0.9
        """
        pandas, names = need_pandas(), list(self.domains)
        found = [t for t in self.tables if t.is_conditional and names[t.scope[-1]] == name]
        if not found:
            why = "only in a Bayesian network does every variable have one" if name in names else hint(name, names)[2:]
            raise CircuitError(f"there is no table of {name!r}: {why}")
        above = self.parents[name]
        index = pandas.Index(self.domains[name].states, name=name)
        if not above:
            return pandas.Series(found[0].table, index, name="probability")
        states = [self.domains[parent].states for parent in above]
        columns = (
            pandas.MultiIndex.from_product(states, names=above)
            if states[1:]
            else pandas.Index(states[0], name=above[0])
        )
        return pandas.DataFrame(found[0].table.reshape(-1, len(index)).T, index, columns)

    def asked(self, keep: Iterable[str] | None, evidence: Mapping[str, Any] | None) -> Network:
        """The same network, to be compiled for some variables, or given what was observed."""
        kept = [keep] if isinstance(keep, str) else need_sequence(keep or (), "keep= is a sequence of names")
        if not isinstance(evidence, Mapping | None):
            raise EvidenceError(f"what was observed is a dict of states, not {brief(evidence)}", argument="evidence")
        seen = {}
        for name, states in (evidence or {}).items():
            try:
                seen[name] = frozenset(states if isinstance(states, (set, frozenset, list, tuple)) else [states])
            except TypeError:
                raise EvidenceError(f"variable {name!r} is in a state, or one of a set, not {brief(states)}") from None
            if not seen[name]:
                raise EvidenceError(f"variable {name!r} is in one of its states, and the set is empty")
        return replace(self, keep=None if keep is None else tuple(kept), evidence=seen)

    def circuit(self) -> Circuit:
        """The circuit, which knows this network."""
        part = self._without_barren()
        try:
            circuit = eliminate(part.domains, part.tables, self.keep, self.evidence)
        except WidthError as error:
            ways = {"keep=NAMES sums out the other variables": self.keep is None}
            ways["evidence={...} leaves out what was observed"] = not self.evidence
            error.advice = ", and ".join(way for way, is_open in ways.items() if is_open) or None
            raise
        circuit._network = self
        return circuit

    def _without_barren(self) -> Network:
        """Without variables whose tables sum to 1: those that are not asked for, nor ancestors of what is."""
        names = list(self.domains)
        above = {table.scope[-1]: table.scope[:-1] for table in self.tables if table.is_conditional}
        asked = {*(names if self.keep is None else self.keep), *self.evidence}
        stack = [v for v, name in enumerate(names) if name in asked or v not in above]
        stack += [v for table in self.tables if not table.is_conditional for v in table.scope]
        needed = set(stack)
        while stack:
            new = [v for v in above.get(stack.pop(), ()) if v not in needed]
            needed.update(new)
            stack += new
        if len(needed) == len(names) or not asked.issubset(names):
            return self
        place = {v: i for i, v in enumerate(sorted(needed))}
        tables = (
            replace(table, scope=tuple(place[v] for v in table.scope))
            for table in self.tables
            if place.keys() >= set(table.scope[-1:])
        )
        return Network(Domains({names[v]: self.domains[names[v]] for v in place}), tuple(tables))

    def do(self, states: Mapping[str, Any]) -> Network:
        """The network after an intervention: each of these variables has a given state, whatever its parents are."""
        if not isinstance(states, Mapping):
            raise CircuitError(f"an intervention is a dict from variables to states, not {brief(states)}")
        names, tables = list(self.domains), list(self.tables)
        at = {names[table.scope[-1]]: i for i, table in enumerate(tables) if table.is_conditional}
        for name, label in states.items():
            if name not in self.domains:
                raise CircuitError(f"cannot set {name!r}: the network has no such variable{hint(name, names)}")
            if name not in at:
                raise CircuitError(f"cannot set {name!r}: only in a Bayesian network does a variable have causes")
            number = self.domains[name].number(label, f"variable {name!r}")
            certain = np.eye(len(self.domains[name].states))[number]
            tables[at[name]] = Table((names.index(name),), certain, True)
        return replace(self, tables=tuple(tables))

    def renamed(self, names: Mapping[str, str]) -> Network | None:
        """The same network with other names of variables; None if one is that of another that was summed out."""
        if len({names.get(name, name) for name in self.domains}) < len(self.domains):
            return None
        kept = self.keep and tuple(names.get(name, name) for name in self.keep)
        evidence = {names.get(name, name): states for name, states in self.evidence.items()}
        return replace(self, domains=self.domains.renamed(names), keep=kept, evidence=evidence)


def check_acyclic(parents: Mapping[Any, Iterable[Any]]) -> None:
    """Refuse a cycle, by its names."""
    try:
        TopologicalSorter(parents).prepare()
    except CycleError as error:
        raise CircuitError(
            "a Bayesian network has no directed cycle: " + " → ".join(str(node) for node in error.args[1])
        ) from None


class Tables:
    """Makes the conditional tables of a Bayesian network, checked.

    Examples
    --------
    >>> make = Tables(Domains.of({"rain": ["no", "yes"], "wet": ["no", "yes"]}))
    >>> make.conditional(make.scope("wet", ["rain"]), [[0.9, 0.1], [0.3, 0.5]])
    Traceback (most recent call last):
    pgcc.errors.CircuitError: the probabilities of 'wet' given rain=yes add up to 0.8: 0.2 less than 1
    """

    def __init__(self, domains: Domains):
        self.domains = domains
        self.items = list(domains.items())
        self.place = {name: i for i, name in enumerate(domains)}

    def scope(self, name: str, parents: Sequence[str]) -> tuple[int, ...]:
        """The indices of the parents and of the variable, which have to be known and different."""
        for known in (name, *parents):
            if known not in self.place:
                raise CircuitError(f"the table of {name!r} has the unknown variable {known!r}{hint(known, self.place)}")
        scope = tuple(self.place[known] for known in (*parents, name))
        if len(set(scope)) < len(scope):
            raise CircuitError(f"the table of {name!r} has a variable twice: {', '.join((name, *parents))}")
        if len(scope) > MOST_AXES:
            raise CircuitError(f"the table of {name!r} has {len(parents)} parents; the limit is {MOST_AXES - 1}")
        return scope

    def shape(self, scope: Sequence[int]) -> tuple[int, ...]:
        return tuple(len(self.items[v][1].states) for v in scope)

    def conditional(self, scope: tuple[int, ...], given: Any) -> Table:
        """Pr(x | parents) for the last variable of a scope, of the right shape, once its numbers are checked."""
        table, (name, domain) = np.asarray(given, float), self.items[scope[-1]]
        if not (table >= 0).all():
            raise CircuitError(f"the table of {name!r} has entries that are no probabilities, such as {table.min()}")
        sums = table.sum(axis=-1, keepdims=True)
        off = np.abs(sums - 1)
        if off.max() > ROUNDING:
            row = np.unravel_index(off.argmax(), off.shape)
            far = f"{off[row]:.3g} {'less' if sums[row] < 1 else 'more'} than 1"
            where = f"{name!r}{self._given(scope, row[:-1])}"
            raise CircuitError(f"the probabilities of {where} add up to {sums[row]:.10g}: {far}")
        exact = off <= len(domain.states) * np.finfo(float).eps
        return Table(scope, np.where(exact, table, table / sums), True)

    def _given(self, scope: Sequence[int], row: Sequence[Any]) -> str:
        """The states of the parents in a row of a table, by name."""
        states = [f"{self.items[v][0]}={self.items[v][1].states[i]}" for v, i in zip(scope, row, strict=False)]
        return f" given {', '.join(states)}" if states else ""
