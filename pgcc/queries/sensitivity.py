"""How a posterior of a Bayesian network depends on the entries of its tables (`Model.sensitivity`).

Let θ = Pr(x | u) be an entry with 0 < θ < 1. If it changes, the other entries of its row change in proportion, so that
the row still adds up to 1. Every probability is then affine in θ: for evidence e,

    Pr(e) = Pr(e, not u) + θ'·Pr(e, x, u)/θ + (1 − θ')·Pr(e, not x, u)/(1 − θ)      where the entry becomes θ'

so that posteriors of the families (x, u), given e and given e and the query, tell everything. Where the odds of θ are
multiplied by c, this is Pr(e, not u) + (c·Pr(e, x, u) + Pr(e, not x, u)) / (1 − θ + c·θ). (Chan & Darwiche 2002.)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from pgcc.data.evidence import Evidence
from pgcc.errors import CircuitError, PgccError, brief
from pgcc.ir.circuit import Circuit
from pgcc.ir.domains import Domains
from pgcc.queries.conditional import conditional
from pgcc.queries.distribution import Distribution


class Influence(NamedTuple):
    """What an entry of a table does to a posterior, as `Model.sensitivity` returns it.

    Attributes
    ----------
    variable, state, parents : str, label, dict
        The entry is Pr(variable = state | parents).
    value : float
        The entry itself.
    derivative : float
        The derivative of the posterior by the entry, while the others of its row change in proportion.
    low, high : float
        The posterior if the odds of the entry are lower, or higher, by the given change.

    Examples
    --------
    >>> from pgcc.queries.sensitivity import Influence
    >>> str(Influence("wet", "yes", {"rain": "no"}, 0.1, 0.5, 0.4, 0.6))
    'Pr(wet=yes | rain=no)'
    """

    variable: str
    state: Any
    parents: dict[str, Any]
    value: float
    derivative: float
    low: float
    high: float

    def __str__(self) -> str:
        known = ", ".join(f"{name}={label}" for name, label in self.parents.items())
        return f"Pr({self.variable}={self.state}{' | ' if known else ''}{known})"


def entries_of(circuit: Circuit) -> int:
    """The number of entries of the tables of a circuit's Bayesian network, which has to be over all its variables."""
    network = circuit.network
    if network is None or not network.is_bayesian:
        raise CircuitError("only a Bayesian network has tables whose entries a posterior is sensitive to")
    if not network.is_whole:
        raise CircuitError("this circuit is a part of a network: compile the whole, and give the evidence here")
    return sum(table.table.size for table in network.tables)


def sensitivity(distribution: Distribution, given: Evidence, query: Evidence, change: float) -> list[list[Influence]]:
    """The influence of the entries of all tables on Pr(query | given), the strongest first."""
    if isinstance(change, bool) or not isinstance(change, (int, float)) or not 0 < change < np.inf:
        raise PgccError(f"change={brief(change)} is not a positive number, such as 0.1 for a tenth", argument="change")
    if not (given.single and query.single):
        raise PgccError("sensitivity takes one query and one piece of evidence, not tables of them")
    finer = replace(distribution, rtol=distribution.rtol / 8)  # see `_others`: 3/8 in a sum, and 6/8 in a quotient
    found = list(_influences(finer, given, query, 1.0 + change))
    return [sorted(found, key=lambda one: -abs(one.high - one.low))]


def _influences(distribution: Distribution, given: Evidence, query: Evidence, factor: float) -> Iterator[Influence]:
    domains = distribution.circuit.domains or Domains.plain(distribution.variables)
    network, names = distribution.circuit.network, list(domains)
    asked = query.chunk(slice(None))
    (posterior,) = conditional(distribution, given, query)
    for table in network.tables:
        scope = [list(network.domains)[v] for v in table.scope]
        cells = np.argwhere(table.table > 0)
        states = np.full((len(cells), len(names)), -1, np.int64)
        states[:, [names.index(name) for name in scope]] = cells
        codes = domains.codes(states)
        clash = ((codes >= 0) & (asked >= 0) & (codes != asked)).any(axis=1)
        both = np.where(asked >= 0, asked, codes)
        without, within = np.zeros((2, *table.table.shape))
        without[tuple(cells.T)] = _posteriors(distribution, given, codes)
        within[tuple(cells.T)] = np.where(clash, 0.0, _posteriors(distribution, given, both))
        slope, (low, high) = _effects(table.table, without, within, posterior, factor)
        for cell in np.argwhere(_listed(table.table)).tolist():
            *parents, state = (domains[name].states[i] for name, i in zip(scope, cell, strict=True))
            at = tuple(cell)
            numbers = (float(array[at]) for array in (table.table, slope, low, high))
            yield Influence(scope[-1], state, dict(zip(scope, parents, strict=False)), *numbers)


def _listed(table: np.ndarray) -> np.ndarray:
    """Which entries to list: neither 0 nor 1 and, of two that say the same as they add up to 1, the smaller one."""
    is_free = (table > 0) & (table < 1)
    least = np.where(is_free, table, np.inf).argmin(axis=-1)[..., None] == np.arange(table.shape[-1])
    return is_free & (least | (is_free.sum(axis=-1, keepdims=True) > 2))


def _posteriors(distribution: Distribution, given: Evidence, codes: np.ndarray) -> np.ndarray:
    """Pr(row of codes | given) of every row."""
    found = np.empty(len(codes))
    for some in distribution.portions(len(codes)):
        found[some] = conditional(distribution, given, Evidence.of_codes(distribution.variables, codes[some]))
    return found


def _effects(
    entry: np.ndarray, without: np.ndarray, within: np.ndarray, posterior: float, factor: float
) -> tuple[np.ndarray, list[np.ndarray]]:
    """The derivative of a posterior by every entry, and the posterior if odds are divided and multiplied by a factor.

    without, within : of the families given the evidence, and jointly with the query.
    """
    with np.errstate(divide="ignore", invalid="ignore"):  # of entries 0 and 1, which are left out
        rises = [part / entry - _others(part) / (1 - entry) for part in (within, without)]
        moved = []
        for c in (1 / factor, factor):
            scale = 1 - entry + c * entry
            joint, known = (_outside(part) + (c * part + _others(part)) / scale for part in (within, without))
            moved.append(joint / known)
    return rises[0] - posterior * rises[1], moved


def _others(parts: np.ndarray) -> np.ndarray:
    """Σ_{j≠i} of the last axis, with thrice the relative error of a part: at most one is more than half of the whole.

    >>> _others(np.array([1.0, 1e-20, 2e-20]))
    array([3.e-20, 1.e+00, 1.e+00])
    """
    whole = parts.sum(axis=-1, keepdims=True)
    is_large = parts > whole / 2
    return np.where(is_large, np.where(is_large, 0.0, parts).sum(axis=-1, keepdims=True), whole - parts)


def _outside(parts: np.ndarray) -> np.ndarray:
    """Of every row of a table of probabilities, the sum of all other rows."""
    rows = parts.sum(axis=-1)
    return _others(rows.ravel()).reshape(*rows.shape, 1)
