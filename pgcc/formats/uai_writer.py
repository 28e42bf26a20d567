"""Circuits → `.uai`: those that were compiled from a network, and those that are products of small factors.

A network has its tables. The factors of a product have variables of their own, so that the coefficients of each are a
table of a Markov network. They are computed exactly, a table per node, and rounded once.
"""

from __future__ import annotations

from fractions import Fraction
from typing import BinaryIO, NamedTuple

import numpy as np

from pgcc.errors import FormatError
from pgcc.exact.pencil import RATIONALS
from pgcc.exact.tape import Layouts, make_tape, run_tape
from pgcc.formats.logic import over_literals
from pgcc.frontend.network import Network
from pgcc.ir.circuit import Circuit
from pgcc.ir.numbers import exact, nearest_float
from pgcc.ir.printer import describe
from pgcc.ir.scopes import size
from pgcc.passes.building import factors_of

# Variables of one table, and entries of the tables of all nodes together.
MOST_IN_TABLE, MOST_ENTRIES = 16, 1 << 22


class Table(NamedTuple):
    """The coefficients of a polynomial over some variables, as fractions: an axis of length 2 for each of them."""

    scope: tuple[int, ...]
    entries: np.ndarray


def write(circuit: Circuit, file: BinaryIO) -> None:
    """Write the network that a circuit was compiled from, or else a Markov network with a table for every factor.

    Raises
    ------
    FormatError
        If a factor has too many variables, or a coefficient that no table may have.
    """
    network: Network | None = circuit.network
    if network is not None and network.is_whole:
        kind = "BAYES" if network.is_bayesian else "MARKOV"
        sizes = [len(domain.states) for domain in network.domains.values()]
        tables = [(one.scope, list(map(repr, one.table.ravel().tolist()))) for one in network.tables]
    elif circuit.variables:
        full = over_literals(circuit, "a network")
        kind, sizes = "MARKOV", [2] * len(full.variables)
        tables = [(one.scope, list(map(_decimal, one.entries.ravel()))) for one in _factors(full)]
    else:
        raise FormatError("a network has at least one variable, and this circuit has none")
    lines = [kind, str(len(sizes)), " ".join(map(str, sizes)), str(len(tables))]
    lines += [" ".join(map(str, [len(scope), *scope])) for scope, _ in tables]
    lines += [f"{len(entries)} {' '.join(entries)}" for _, entries in tables]
    file.write(("\n".join(lines) + "\n").encode("ascii"))


def _factors(circuit: Circuit) -> list[Table]:
    """The tables of the factors of the root; constants are in the first."""
    constant, factors = factors_of(circuit.root)
    column = {name: i for i, name in enumerate(circuit.variables)}
    first, *others = (_table(Circuit(factor), column) for factor in factors)
    return [Table(first.scope, constant * first.entries), *others]


def _table(factor: Circuit, column: dict[str, int]) -> Table:
    """The table of a factor: its value where every variable is an array along an axis of its own."""
    scopes = factor.scopes
    sizes = [size(scopes.distinct[scope]) for scope in scopes.of]
    if sizes[-1] > MOST_IN_TABLE:
        raise FormatError(
            f"a network has a table for every factor, of {MOST_IN_TABLE} variables at most, and "
            f"{describe(factor.root)} has {sizes[-1]}: .pgc and .npz keep it"
        )
    if sum(1 << n for n in sizes) > MOST_ENTRIES:
        raise FormatError("the tables of this circuit are too large for a network: .pgc and .npz keep it")
    names, ends = sorted(factor.variables, key=column.__getitem__), (exact(0), exact(1))
    literals = {
        (name, out): np.array(ends[:: -1 if out else 1], object).reshape([2 if name == one else 1 for one in names])
        for name in names
        for out in (False, True)
    }
    value = run_tape(make_tape(factor.order, RATIONALS._replace(lift=exact), Layouts()), literals)
    return Table(tuple(column[name] for name in names), np.asarray(value, object))


def _decimal(entry: Fraction) -> str:
    if entry < 0:
        raise FormatError("a network has no negative entries, and this circuit has a negative coefficient")
    rounded = nearest_float(entry)
    if not np.isfinite(rounded) or (rounded == 0.0) != (entry == 0):
        raise FormatError("a network has doubles, and a coefficient of this circuit is beyond their range")
    return repr(rounded)
