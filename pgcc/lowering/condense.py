"""A program in the form that the float64 loop runs fastest: fewer instructions, each doing more, in fewer slots.

Three rewrites, each of which only saves loads and stores:

- *Tables.* A value that depends on two variables takes 9 values at most. They are computed once, and an instruction
  looks them up by the joint code of the two: 4·code(x) + code(y), where codes are 0, 1 and, for free, 3.
- *Products in place.* A product x·y that k sums read costs 2 + k reads and a write; w·x·y in each of them costs 2·k
  reads. Up to k = 3, sums multiply themselves.
- *Regions one after another.* Variables are ranked by first use. Sorted by (last variable, −first variable), values
  over the same variables come together, as in the order of a vtree, and children die soon. (What a value reads has a
  part of its variables, so it never comes later.) A reverse pass takes them the other way round, so that what was made
  last is read first. Taken where it needs fewer slots.

No bound on rounding errors gets larger: in a sum, terms that were products come after the other values and before
those that were multiplied in place already, so that no term meets more additions than it did.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from pgcc.ir.bulk import collector_paused
from pgcc.lowering.program import DOT, LEAF, MORE, QUOTIENT, SUM, TIMES, Program
from pgcc.lowering.schedule import share_slots

ENTRIES = 16  # of a table
_MOST_READERS = 3

Scope = tuple[int, int]  # one variable twice, or two in order
Instruction = tuple[int, int, list[int], Sequence[int]]  # operation, value, arguments, numbers of weights
_NONE: Scope = (-1, -1)
_WIDE: Scope = (-2, -2)  # three variables or more


@dataclass(frozen=True, eq=False)
class Condensed:
    """What `condense` makes.

    Attributes
    ----------
    program : Program
        Its leaf l is table l, looked up by joint code number ``leaf_variable[l]``. There is no DOT and no MORE: a SUM
        has values x…, then pairs y, z…, and a weight for each: Σ w·v[x] + Σ w·v[y]·v[z]. It has as many pairs as
        arguments without a weight. ``first_weight`` has an entry more than there are instructions.
    kept : int64 array
        The slots of what was to be kept.
    pairs : int32 array, joint codes × 2
        The two variables of each.
    tables : Program
        All tables as a program of two variables: at their codes i and j it has the entries 4·i + j.
    roots : int64 array
        The slot of each table in that program, which shares no slots.
    """

    program: Program
    kept: np.ndarray
    pairs: np.ndarray
    tables: Program
    roots: np.ndarray


def condense(program: Program, kept: Sequence[int]) -> Condensed:
    """The form for the fast loop of a program that shares no slots and has no determinants.

    Parameters
    ----------
    program : Program
    kept : slots
        The values that are wanted.

    Examples
    --------
    >>> import pgcc
    >>> from pgcc.lowering.lower import lower
    >>> from pgcc.passes.padding import homogenize
    >>> program = lower(homogenize(pgcc.parse("(0.5*a*b + 0.5)*(0.5*c*d + 0.5)")))
    >>> program, condense(program, [program.value]).program
    (<Program: 11 instructions, 18 operations, 11 slots>, <Program: 3 instructions, 4 operations, 3 slots>)
    """
    with collector_paused():
        return _Condenser(program, kept).run()


class _Condenser:
    """Instructions are known by position, values by slot."""

    def __init__(self, program: Program, kept: Sequence[int]):
        self.program, self.kept = program, list(map(int, kept))
        self.op, self.target = program.op.tolist(), program.target.tolist()
        start, args = program.start.tolist(), program.args.tolist()
        self.args = [args[first:last] for first, last in pairwise(start)]
        self.first_weight = program.first_weight.tolist()
        self.scope, self.span = self._scopes()

    def run(self) -> Condensed:
        wide = [i for i, value in enumerate(self.target) if self.scope[value] is _WIDE]
        read = [x for i in wide for x in self.args[i]] + self.kept
        looked_up = list(dict.fromkeys(x for x in read if self.scope[x] is not _WIDE))
        tables, roots = self._tables(looked_up)
        pairs = {scope: number for number, scope in enumerate(dict.fromkeys(self.scope[x] for x in looked_up))}
        leaves: list[Instruction] = [(LEAF, x, [number], []) for number, x in enumerate(looked_up)]
        program, kept = self._in_best_order([*leaves, *self._wide_instructions(wide)])
        program = replace(
            program,
            leaf_variable=np.array([pairs[self.scope[x]] for x in looked_up], np.int32),
            leaf_table=np.zeros((0, 3)),
            leaf_numbers=[],
            n_variables=len(pairs),
        )
        # a constant has no variables: any will do
        columns = np.maximum(np.array(list(pairs), np.int32).reshape(-1, 2), 0)
        return Condensed(program, kept, columns, tables, roots)

    def _scopes(self) -> tuple[list[Scope], np.ndarray]:
        """The variables of each value, if they are two at most; and its span: its first and its last one by rank."""
        slots, leaf_variable = self.program.slots, self.program.leaf_variable.tolist()
        scope, low, high = [_NONE] * slots, [slots] * slots, [-1] * slots
        rank: dict[int, int] = {}
        for kind, value, args in zip(self.op, self.target, self.args, strict=True):
            if kind == LEAF:
                variable = leaf_variable[args[0]]
                scope[value] = variable, variable
                if variable >= 0:
                    low[value] = high[value] = rank.setdefault(variable, len(rank))
                continue
            here = scope[value]  # MORE goes on with what its value has
            for x in args:
                if here is not _WIDE and scope[x] != here:
                    here = _union(here, scope[x])
            scope[value] = here
            low[value] = min(low[value], min([low[x] for x in args], default=slots))
            high[value] = max(high[value], max([high[x] for x in args], default=-1))
        return scope, np.array([low, high])

    # -- tables -------------------------------------------------------------------------------------

    def _tables(self, roots: list[int]) -> tuple[Program, np.ndarray]:
        """Values of at most two variables as functions of two codes; one of a single variable may be of either."""
        slot: dict[tuple[int, int], int] = {}  # of a value, read by the code of its first variable, or by the other
        op: list[int] = []
        target: list[int] = []
        args: list[int] = []
        lengths: list[int] = []
        weights: list[int] = []
        counts: list[int] = []
        leaves: list[int] = []
        variables: list[int] = []
        for i in self._below(roots):
            value, weights_here = self.target[i], self._weights(i)
            scope = self.scope[value]
            for which in (0, 1) if scope[0] == scope[1] else (0,):
                if self.op[i] == LEAF:
                    here = [len(leaves)]
                    leaves += self.args[i]
                    variables.append(which if scope[0] >= 0 else -1)
                else:
                    here = [slot[x, self._code_of(x, scope, which)] for x in self.args[i]]
                op.append(self.op[i])
                target.append(slot.setdefault((value, which), len(slot)))
                args += here
                lengths.append(len(here))
                weights += weights_here
                counts.append(len(weights_here))
        program = replace(
            self.program,
            op=np.array(op, np.uint8),
            target=np.array(target, np.int32),
            start=_starts(lengths),
            args=np.array(args, np.int32),
            first_weight=_starts(counts)[:-1],
            weights=self.program.weights[weights],
            node=np.zeros(0, np.int32),
            leaf_variable=np.array(variables, np.int32),
            leaf_table=self.program.leaf_table[leaves],
            slots=len(slot),
            value=0,
            magnitude=0,
            n_variables=2,
            numbers=[],
            leaf_numbers=[],
        )
        return program, np.array([slot[value, 0] for value in roots], np.int64)

    def _below(self, roots: list[int]) -> Iterator[int]:
        """The instructions that these values need, in order."""
        wanted, below = set(roots), []
        for i in reversed(range(len(self.op))):
            if self.target[i] in wanted:
                below.append(i)
                if self.op[i] != LEAF:
                    wanted.update(self.args[i])
        return reversed(below)

    def _code_of(self, x: int, scope: Scope, which: int) -> int:
        """By which of the two codes a value over `scope` reads x; if it has one variable, by the one it is read by."""
        variable, other = self.scope[x]
        if variable != other or variable < 0:
            return 0
        return which if scope[0] == scope[1] else int(variable == scope[1])

    # -- the rest -----------------------------------------------------------------------------------

    def _wide_instructions(self, wide: list[int]) -> Iterator[Instruction]:
        """With products in place, and every sum in one instruction."""
        products = self._products_in_place(wide)
        k = 0
        while k < len(wide):
            i = wide[k]
            kind, value, args = self.op[i], self.target[i], self.args[i]
            weights: Sequence[int] = self._weights(i)
            k += 1
            if kind == SUM and any(x in products for x in args):
                order = sorted(range(len(args)), key=lambda j: args[j] in products)
                weights = [weights[j] for j in order]
                args = [y for j in order for y in products.get(args[j], (args[j],))]
            while k < len(wide) and self.op[wide[k]] == MORE:  # it follows what it adds to
                more = wide[k]
                args, weights = args + self.args[more], [*weights, *self._weights(more)]
                k += 1
            if value not in products:
                yield SUM if kind == DOT else kind, value, args, weights

    def _weights(self, i: int) -> range:
        """The numbers of the weights of an instruction."""
        kind, first, length = self.op[i], self.first_weight[i], len(self.args[i])
        return range(first, first + (length if kind == SUM else length // 2 if kind in (DOT, MORE, QUOTIENT) else 0))

    def _products_in_place(self, wide: list[int]) -> dict[int, list[int]]:
        """The products of two that only sums read, and few of them, with what they multiply."""
        products = {self.target[i]: self.args[i] for i in wide if self.op[i] == TIMES and len(self.args[i]) == 2}
        readers = dict.fromkeys(products, 0)
        for i in wide:
            reading = 1 if self.op[i] == SUM else _MOST_READERS + 1
            for x in self.args[i]:
                if x in readers:
                    readers[x] += reading
        for x in self.kept:
            readers[x] = _MOST_READERS + 1
        return {x: args for x, args in products.items() if readers[x] <= _MOST_READERS}

    def _in_best_order(self, instructions: list[Instruction]) -> tuple[Program, np.ndarray]:
        """The instructions as a program that shares slots, in the order that needs fewer of them."""
        orders = self._orders(np.array([value for _, value, _, _ in instructions], np.int64))
        return min((self._scheduled([instructions[k] for k in order]) for order in orders), key=lambda p: p[0].slots)

    def _orders(self, values: np.ndarray) -> list[np.ndarray]:
        """As they were made, and by regions."""
        made = np.full(self.program.slots, len(self.target))
        np.minimum.at(made, self.program.target, np.arange(len(self.target)))
        return [np.argsort(made[values]), np.lexsort((made[values], *self._regions(values)))]

    def _regions(self, values: np.ndarray) -> tuple[np.ndarray, ...]:
        """Keys, the last one first, that sort values by their spans; those of a reverse pass the other way round."""
        low, high = self.span[:, values]
        if self.program.mirrored is None:
            return -low, high
        of = self.program.mirrored[values]
        back, own = of >= 0, self.span[:, np.maximum(of, 0)]
        return np.where(back, own[0], -low), np.where(back, -own[1], high), np.where(of == -2, 2, back)

    def _scheduled(self, instructions: list[Instruction]) -> tuple[Program, np.ndarray]:
        program = replace(
            self.program,
            op=np.array([op for op, _, _, _ in instructions], np.uint8),
            target=np.array([value for _, value, _, _ in instructions], np.int32),
            start=_starts([len(args) for _, _, args, _ in instructions]),
            args=np.array([x for _, _, args, _ in instructions for x in args], np.int32),
            first_weight=_starts([len(weights) for _, _, _, weights in instructions]),
            weights=self.program.weights[[w for _, _, _, weights in instructions for w in weights]],
            node=np.zeros(0, np.int32),
            numbers=[],
            value=self.kept[0],
            magnitude=self.kept[-1],
        )
        return share_slots(program, self.kept)


def _starts(lengths: list[int]) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def _union(a: Scope, b: Scope) -> Scope:
    """The variables of both."""
    if a is _WIDE or b is _WIDE:
        return _WIDE
    both = sorted({*a, *b} - {-1})
    return (both[0], both[-1]) if len(both) <= 2 else _WIDE
