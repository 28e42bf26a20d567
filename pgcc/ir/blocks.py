"""Blocks: columns of which exactly one is in, because they show the states of one variable (`pgcc.ir.domains`).

Where every term of a circuit is seen to have exactly one column of each block, z is enough: g(z) at z = 1 for the
states that are possible, and 0 for the others, is the probability of evidence. No factor ȳ is needed for a block. In
return, the codes of a block have to say all that they imply: where a column is 1, the others are 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pgcc.ir.circuit import Circuit
from pgcc.ir.domains import domains_of
from pgcc.ir.facts import find_uneven_sums, is_monotone
from pgcc.ir.scopes import Scope, as_bits
from pgcc.locks import cached_property


@dataclass(frozen=True)
class Blocks:
    """The blocks of a circuit's columns; a column that is in none is a block of its own.

    Attributes
    ----------
    first : int array
        The first column of every block.
    block : int array
        The block of every column.
    """

    first: np.ndarray
    block: np.ndarray

    @staticmethod
    def of(columns: Sequence[str]) -> Blocks:
        """The blocks of the columns of variables with states."""
        domains = domains_of(columns)
        shown = np.arange(len(columns)) if domains is None else domains.shown[0]
        first, block = np.unique(shown, return_index=True, return_inverse=True)[1:]
        return Blocks(first, block)

    @cached_property
    def are_columns(self) -> bool:
        """Whether every block is a column."""
        return len(self.first) == len(self.block)

    @cached_property
    def size(self) -> np.ndarray:
        """For every column, how many columns its block has."""
        return np.ones_like(self.block) if self.are_columns else np.bincount(self.block)[self.block]

    @cached_property
    def states(self) -> np.ndarray:
        """For every column, how many states its variable has: a column alone is in or out."""
        return np.maximum(self.size, 2)

    def closed(self, rows: np.ndarray) -> np.ndarray:
        """Rows of codes with all that they imply: 0 beside a 1, and nothing is possible where two are 1.

        >>> import pgcc
        >>> blocks = find_blocks(pgcc.pc.categorical("w", {"sun": "1/2", "rain": "1/4", "snow": "1/4"}).to_pgc())
        >>> blocks.closed(np.array([[-1, 1, -1], [0, -1, -1], [1, 1, -1]], np.int8)).tolist()
        [[0, 1, 0], [0, -1, -1], [0, 0, 0]]
        """
        rows = np.ascontiguousarray(rows)
        ones = rows == 1
        count = np.add.reduceat(ones, self.first, axis=1, dtype=np.int16)
        shut = (count.take(self.block, axis=1) > ones) & (rows != 0)
        return np.where(shut, np.int8(0), rows) if shut.any() else rows


def find_blocks(circuit: Circuit) -> Blocks | None:
    """The blocks of a circuit, if its structure shows that exactly one column of each is in; None otherwise.

    (Only of circuits without negative numbers and determinants: others are searched for negative coefficients column by
    column.)
    """
    domains = circuit.domains
    if not (domains and domains.unit and has_one_state(circuit) and all(map(is_monotone, circuit.order))):
        return None
    return Blocks.of(circuit.variables)


def has_one_state(circuit: Circuit) -> bool:
    """Whether the structure shows that every term has exactly one column of each block.

    Factors have different variables, the terms of every sum have the same blocks, and the root has all of them.
    """
    blocks = {name for name, domain in (circuit.domains or {}).items() if domain.is_block}
    if not blocks or circuit._overlap is not None or circuit.facts.dets:
        return not blocks
    scopes, flat = circuit.scopes, circuit._flat
    bits = sum(1 << i for i, name in enumerate(scopes.names) if name in blocks)
    if not blocks <= set(scopes.names) or bits & ~as_bits(scopes.distinct[scopes.of[-1]]):
        return False

    def of_blocks(scope: Scope) -> int:
        return as_bits(scope) & bits

    number = [of_blocks(scope) for scope in scopes.distinct]
    return all(
        number[scopes.of[c]] == number[scopes.of[i]]
        for i in find_uneven_sums(circuit).tolist()
        for c in flat.child[flat.start[i] : flat.start[i + 1]].tolist()
    )
