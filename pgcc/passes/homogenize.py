"""Homogenize and smooth: give every child of a sum a factor for each variable of the sum that it misses.

*Homogenize*: the factor is ȳ_i, which is 1 in every generating polynomial.

    g(z)  ↦  ĝ(z, ȳ) = Σ_S g_S · Π_{i∈S} z_i · Π_{i∉S} ȳ_i

The result agrees with g at ȳ = 1, and any marginal is then one evaluation at numbers: (z_i, ȳ_i) = (1, 0), (0, 1),
(1, 1) for observed 1, observed 0, free.

A variable with states of three columns or more (see `pgcc.ir.domains`) is one variable here: if every term has one of
its columns, as it should, no factor is missing.

*Smooth*: the factor is z_i + ȳ_i, which says "either value". That is what a variable means that a probabilistic circuit
(over literals z_i, ȳ_i) does not mention.

Products of factors are shared: they are built from the aligned blocks of a binary tree over the variables, never one
per edge.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from pgcc.collector import collector_paused
from pgcc.errors import CircuitError
from pgcc.ir.circuit import Circuit, from_flat
from pgcc.ir.facts import find_uneven_sums
from pgcc.ir.flat_builder import FlatBuilder
from pgcc.ir.node import Op
from pgcc.ir.numbers import Number, mul
from pgcc.ir.operands import check_decomposable
from pgcc.ir.scopes import Scope, difference, from_intervals, runs, size


def homogenize(circuit: Circuit) -> Circuit:
    """The homogenized circuit of a decomposable one; its root mentions every variable of the circuit.

    Examples
    --------
    >>> import pgcc
    >>> print(homogenize(pgcc.parse("0.4*a*b + 0.6")))
    2/5*a*b + 3/5*~a*~b
    """

    def out(build: FlatBuilder, name: str) -> int:
        if circuit.domains and name not in circuit.variables:
            raise CircuitError(f"a term has no state of {name!r}: exactly one state of it must be in every term")
        return build.var(name, complement=True)

    return _padded(circuit, out)


def smooth(circuit: Circuit) -> Circuit:
    """The smooth circuit of a decomposable probabilistic circuit: every sum's children have the same variables.

    Examples
    --------
    >>> import pgcc
    >>> print(smooth(pgcc.parse("0.4*a*b + 0.6*~a")))
    2/5*a*b + 3/5*~a*(b + ~b)
    """

    def either(build: FlatBuilder, name: str) -> int:
        states = circuit.domains[name].columns if circuit.domains and name not in circuit.variables else (name, None)
        leaves = [build.var(column or name, complement=column is None) for column in states]
        return build.weighted_sum((1,) * len(leaves), leaves)

    return _padded(circuit, either)


def _padded(circuit: Circuit, factor: Callable[[FlatBuilder, str], int]) -> Circuit:
    with collector_paused():
        build = FlatBuilder()
        fillers = Fillers(circuit, lambda name: factor(build, name), build.product)
        return _Padding(circuit, build, fillers).run()


class Fillers:
    """The products of factors that children of a decomposable circuit's sums miss.

    Parameters
    ----------
    circuit : Circuit
    factor, product : function
        Make the factor of a variable, given by its name, and a product, whatever they are (numbers of new nodes or
        instructions). They are called when a product is first needed.
    """

    def __init__(self, circuit: Circuit, factor: Callable[[str], int], product: Callable[[Sequence[int]], int]):
        check_decomposable(circuit)
        self.scopes, self._factor, self._product = circuit.scopes, factor, product
        occurring = set(self.scopes.names)
        unit = circuit.domains.unit if circuit.domains else {}
        units = dict.fromkeys(unit.get(column, column) for column in circuit.variables)
        self.names = [*self.scopes.names, *(name for name in units if name not in occurring)]
        self._everything = self.scopes.number(from_intervals([(0, len(self.names))] if self.names else []))
        self._absent: dict[Scope, int] = {}
        self._missing: dict[tuple[int, int], int | None] = {}

    def missing(self, have: int, want: int) -> int | None:
        """Π of the factors of the variables of scope `want` that scope `have` lacks; None if there are none."""
        if have == want:
            return None
        key = (have, want)
        if key not in self._missing:
            lacking = difference(self.scopes.distinct[want], self.scopes.distinct[have])
            self._missing[key] = self._filler(lacking) if size(lacking) else None
        return self._missing[key]

    def missing_below(self, op: Op, scope: int, below: tuple[int, ...]) -> list[int | None]:
        """For every child of a node of this scope (a position): the factors of the variables that it should have, too.

        A term of a sum should have those of the sum, and f_i and y_i of a determinant those of both.
        """
        of = [self.scopes.of[c] for c in below]
        if op is Op.SUM:
            return [self.missing(have, scope) for have in of]
        if op is Op.DET:
            k = len(below) // 2
            both = [self.scopes.union(of[i], of[k + i])[0] for i in range(k)]
            return list(map(self.missing, of, both * 2))
        if op is Op.PRODUCT or op is Op.VAR or op is Op.CONST:
            return [None] * len(below)
        raise CircuitError(f"{op.name} cannot be homogenized")

    def missing_from_root(self) -> int | None:
        """Π of the factors of the circuit's variables that its root lacks; None if there are none."""
        return self.missing(self.scopes.of[-1], self._everything)

    def _filler(self, scope: Scope) -> int:
        """Π of the factors of a scope, of shared blocks."""
        filler = self._absent.get(scope)
        if filler is None:
            blocks = [self._block(k, level) for start, stop in runs(scope) for k, level in aligned_blocks(start, stop)]
            filler = self._absent[scope] = blocks[0] if len(blocks) == 1 else self._product(blocks)
        return filler

    def _block(self, k: int, level: int) -> int:
        """Π of the factors i in [k·2^level, (k+1)·2^level)"""
        key = (k << level, (k + 1) << level)
        block = self._absent.get(key)
        if block is None:
            if level:
                block = self._product((self._block(2 * k, level - 1), self._block(2 * k + 1, level - 1)))
            else:
                block = self._factor(self.names[k])
            self._absent[key] = block
        return block


class _Padding:
    """The circuit in which no child of a sum, or of a determinant, misses a variable that it should have."""

    def __init__(self, circuit: Circuit, build: FlatBuilder, fillers: Fillers):
        self.circuit, self.build, self.fillers = circuit, build, fillers
        self.new: list[int] = []  # the positions of the nodes in `build`

    def run(self) -> Circuit:
        """The new circuit, or the same one if nothing is missing."""
        flat, of = self.circuit._flat, self.circuit.scopes.of
        uneven = set(np.append(find_uneven_sums(self.circuit), np.flatnonzero(flat.op == Op.DET)).tolist())
        missing_from_root = self.fillers.missing_from_root()
        if not uneven and missing_from_root is None:
            return self.circuit
        for i, (op, below, data) in enumerate(flat.entries()):
            children = [self.new[c] for c in below]
            if i in uneven:
                missing = self.fillers.missing_below(op, of[i], below)
                if op is Op.SUM:
                    data = self._take_constants(data, children, missing)
                children = list(map(self._pad, children, missing))
            self.new.append(self.build.add(op, tuple(children), data))
        return from_flat(self.build.flat(self._pad(self.new[-1], missing_from_root)), self.circuit.variables)

    def _take_constants(
        self, weights: tuple[Number, ...], children: list[int], missing: Sequence[int | None]
    ) -> tuple[Number, ...]:
        """w·c = (w·c)·1, where c is a constant that misses variables."""
        taken = list(weights)
        for i, (child, filler) in enumerate(zip(children, missing, strict=True)):
            if filler is not None and self.build.op[child] is Op.CONST:
                taken[i] = mul(weights[i], self.build.data[child])
                children[i] = self.build.one
        return tuple(taken)

    def _pad(self, child: int, missing: int | None) -> int:
        """child · missing, where (a·b)·missing is a·b·missing."""
        build = self.build
        if missing is None:
            return child
        if child == build.one:
            return missing
        factors = build.children[child] if build.op[child] is Op.PRODUCT else (child,)
        return build.product((*factors, missing))


def aligned_blocks(start: int, stop: int) -> list[tuple[int, int]]:
    """[start, stop) as O(log) aligned blocks (k, level) = [k·2^level, (k+1)·2^level).

    >>> aligned_blocks(3, 8)
    [(3, 0), (1, 2)]
    """
    blocks = []
    while start < stop:
        level = min((start & -start).bit_length() - 1 if start else 63, (stop - start).bit_length() - 1)
        blocks.append((start >> level, level))
        start += 1 << level
    return blocks
