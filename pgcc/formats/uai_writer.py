"""Circuits that are products of small factors → `.uai`.

The factors of a product have variables of their own, so that the coefficients of each are a table of a Markov network.
They are computed exactly, a table per node, and rounded once.
"""

from __future__ import annotations

from fractions import Fraction
from functools import reduce
from typing import BinaryIO, NamedTuple

import numpy as np

from pgcc.errors import FormatError
from pgcc.formats.logic import over_literals
from pgcc.ir.circuit import Circuit
from pgcc.ir.node import Node, Op
from pgcc.ir.numbers import exact, nearest_float
from pgcc.ir.printer import describe
from pgcc.ir.scopes import size

# Variables of one table, and entries of the tables of all nodes together.
MOST_IN_TABLE, MOST_ENTRIES = 16, 1 << 22


class Table(NamedTuple):
    """The coefficients of a polynomial over some variables, as fractions: an axis of length 2 for each of them."""

    scope: tuple[int, ...]
    entries: np.ndarray

    def times(self, other: Table) -> Table:
        """The product with a polynomial over other variables."""
        scope = self.scope + other.scope
        order = sorted(range(len(scope)), key=scope.__getitem__)
        entries = np.asarray(np.multiply.outer(self.entries, other.entries), object).transpose(order)
        return Table(tuple(scope[i] for i in order), entries)


def write(circuit: Circuit, file: BinaryIO) -> None:
    """Write a circuit as a Markov network with a table for every factor.

    Raises
    ------
    FormatError
        If a factor has too many variables, or a coefficient that no table may have.
    """
    if not circuit.variables:
        raise FormatError("a network has at least one variable, and this circuit has none")
    full = over_literals(circuit, "a network")
    tables = _factors(full)
    lines = ["MARKOV", str(len(full.variables)), " ".join("2" for _ in full.variables), str(len(tables))]
    lines += [" ".join(map(str, [len(one.scope), *one.scope])) for one in tables]
    lines += [f"{one.entries.size} {' '.join(map(_decimal, one.entries.ravel()))}" for one in tables]
    file.write(("\n".join(lines) + "\n").encode("ascii"))


def _factors(circuit: Circuit) -> list[Table]:
    """The tables of the factors of the root; constants are in the first."""
    constant, top, stack = exact(1), [], [len(circuit.order) - 1]
    while stack:
        i = stack.pop()
        node, below = circuit.order[i], circuit._links[i]
        if node.op is Op.CONST:
            constant *= exact(node.value)
        elif node.op is Op.PRODUCT:
            stack += reversed(below)
        elif node.op is Op.SUM and len(below) == 1:
            constant *= exact(node.weights[0])
            stack += below
        else:
            top.append(i)
    tables = _tables(circuit, top)
    first, *others = (tables[i] for i in top)
    return [Table(first.scope, constant * first.entries), *others]


def _tables(circuit: Circuit, wanted: list[int]) -> dict[int, Table]:
    """The tables of nodes and of all that is below them, by position."""
    needed = set(wanted)
    for i in range(len(circuit.order) - 1, -1, -1):
        if i in needed:
            needed.update(circuit._links[i])
    scopes = circuit.scopes
    sizes = {i: size(scopes.distinct[scopes.of[i]]) for i in needed}
    for i in wanted:
        if sizes[i] > MOST_IN_TABLE:
            raise FormatError(
                f"a network has a table for every factor, of {MOST_IN_TABLE} variables at most, and "
                f"{describe(circuit.order[i])} has {sizes[i]}: .pgc and .npz keep it"
            )
    if sum(1 << n for n in sizes.values()) > MOST_ENTRIES:
        raise FormatError("the tables of this circuit are too large for a network: .pgc and .npz keep it")
    column = {name: i for i, name in enumerate(circuit.variables)}
    tables: dict[int, Table] = {}
    for i in sorted(needed):
        tables[i] = _table(circuit.order[i], [tables[c] for c in circuit._links[i]], column)
    return tables


def _table(node: Node, below: list[Table], column: dict[str, int]) -> Table:
    if node.op is Op.CONST:
        return Table((), np.array(exact(node.value), object))
    if node.op is Op.VAR:
        entries = np.array([exact(int(node.is_complement)), exact(int(not node.is_complement))], object)
        return Table((column[node.name],), entries)
    if node.op is Op.PRODUCT:
        return reduce(Table.times, below)
    if node.op is Op.SUM:  # of terms over the same variables
        terms = [exact(weight) * one.entries for weight, one in zip(node.weights, below, strict=True)]
        return Table(below[0].scope, sum(terms[1:], terms[0]))
    raise FormatError(f"a network has no {node!r}")


def _decimal(entry: Fraction) -> str:
    if entry < 0:
        raise FormatError("a network has no negative entries, and this circuit has a negative coefficient")
    rounded = nearest_float(entry)
    if not np.isfinite(rounded) or (rounded == 0.0) != (entry == 0):
        raise FormatError("a network has doubles, and a coefficient of this circuit is beyond their range")
    return repr(rounded)
