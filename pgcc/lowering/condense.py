"""A program in the form that the float64 loop runs fastest: fewer instructions, each doing more, in fewer slots.

Three rewrites, each of which only saves loads and stores:

- *Tables.* A value that depends on two variables takes 16 values at most. They are computed once, and an instruction
  looks them up by the joint code of the two: 4·code(x) + code(y), where codes are 0, 1 and, for free, 3.
- *Products in place.* w·(x·y) reads two values where the product of x and y, made once and read by k sums, costs
  2 + k reads and a write: up to k = 3, sums multiply themselves.
- *Regions one after another.* Variables are ranked by first use. Sorted by (last variable, −first variable), values
  over the same variables come together, as in the order of a vtree: children die soon. (What a value reads has a part
  of its variables, so it never comes later.) Kept where it needs fewer slots.

Rounding errors are no larger than those of the program it is made of: in a sum, terms that were products come after
the others and before those that were read in place already, so that no term meets more additions than it did.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from pgcc.lowering.program import DOT, LEAF, MORE, SUM, TIMES, Program
from pgcc.lowering.schedule import schedule

_MANY = -2  # in place of a variable: there are three or more
_MOST_READERS = 3
_NOWHERE = 1 << 30
ENTRIES = 16  # of a table


@dataclass(frozen=True, eq=False)
class Condensed:
    """What `condense` makes.

    Attributes
    ----------
    program : Program
        Its leaf l is the table of 16 that `tables` computes at ``roots[l]``, looked up by joint code number
        ``leaf_variable[l]``. A SUM has ``args`` x…, then pairs y, z…, and a weight for each: Σ w·v[x] + Σ w·v[y]·v[z].
        There are as many pairs as arguments without a weight; ``first_weight`` has one entry more than instructions.
    pairs : int32 array, joint codes × 2
        The two variables of each; the same one twice for one alone, −1 for none.
    tables : Program
        All tables as a program of two variables: its row 4·i + j has the entries for the codes i and j.
    roots : int64 array
        The slot of each table in that program, which shares no slots.
    """

    program: Program
    pairs: np.ndarray
    tables: Program
    roots: np.ndarray


def condense(program: Program) -> Condensed:
    """The form for the fast loop of a program without determinants, as `lower` makes it.

    Examples
    --------
    >>> import pgcc
    >>> from pgcc.lowering.lower import lower
    >>> from pgcc.passes.padding import homogenize
    >>> condense(lower(homogenize(pgcc.parse("(0.5*a*b + 0.5)*(0.5*c*d + 0.5)")))).program
    <Program: 3 instructions, 4 operations, 3 slots>
    """
    return _Condenser(program).run()


class _Condenser:
    def __init__(self, program: Program):
        self.program = program
        self.op, self.target = program.op.tolist(), program.target.tolist()
        start, args = program.start.tolist(), program.args.tolist()
        self.args = [args[first:last] for first, last in zip(start, start[1:], strict=False)]
        self.first_weight = program.first_weight.tolist()
        self.scope, self.span = self._scopes()

    def run(self) -> Condensed:
        wide = [i for i, value in enumerate(self.target) if self.scope[value][0] == _MANY]
        looked_up = dict.fromkeys(x for i in wide for x in self.args[i] if self.scope[x][0] != _MANY)
        looked_up |= dict.fromkeys(r for r in (self.program.value, self.program.magnitude) if self.scope[r][0] != _MANY)
        tables, roots = self._tables(list(looked_up))
        pairs = {scope: k for k, scope in enumerate(dict.fromkeys(self.scope[v] for v in looked_up))}
        table = {value: k for k, value in enumerate(looked_up)}
        condensed = self._wide(wide, table)
        column = np.array([pairs[self.scope[v]] for v in looked_up], np.int32)
        condensed = replace(
            condensed,
            leaf_variable=column,
            leaf_table=np.zeros((len(column), ENTRIES)),
            leaf_numbers=[],
            n_variables=len(pairs),
        )
        return Condensed(condensed, np.array(list(pairs), np.int32).reshape(-1, 2), tables, roots)

    def _scopes(self) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        """The one or two variables of each value, or that it has more; and its span: first and last by rank."""
        slots, leaf_variable = self.program.slots, self.program.leaf_variable.tolist()
        scope, span = [(-1, -1)] * slots, [(_NOWHERE, -1)] * slots
        rank: dict[int, int] = {}
        for kind, value, args in zip(self.op, self.target, self.args, strict=True):
            if kind == LEAF:
                variable = leaf_variable[args[0]]
                scope[value] = variable, variable
                if variable >= 0:
                    span[value] = (rank.setdefault(variable, len(rank)),) * 2
                continue
            here, (first, last) = scope[value], span[value]  # MORE goes on with what its value has
            for x in args:
                if scope[x] != here:
                    here = _union(here, scope[x])
                low, high = span[x]
                first, last = min(first, low), max(last, high)
            scope[value], span[value] = here, (first, last)
        return scope, span
    # -- tables -------------------------------------------------------------------------------------

    def _tables(self, roots: list[int]) -> tuple[Program, np.ndarray]:
        """Narrow values as functions of two codes. A value of one variable has two versions: it may be either."""
        wanted = set(roots)
        below = []
        for i in reversed(range(len(self.op))):
            if self.target[i] in wanted and self.scope[self.target[i]][0] != _MANY:
                below.append(i)
                if self.op[i] != LEAF:
                    wanted.update(self.args[i])
        slot: dict[tuple[int, int], int] = {}
        ops, targets, starts, args, weights, variables, leaves = [], [], [0], [], [], [], []
        counts = self._weight_counts()
        for i in reversed(below):
            value, scope = self.target[i], self.scope[self.target[i]]
            for version in (0, 1) if scope[0] == scope[1] >= 0 else (0,):
                if self.op[i] == LEAF:
                    args.append(len(leaves))
                    leaves.append(self.args[i][0])
                    variables.append(version if scope[0] >= 0 else -1)
                else:
                    args += [slot[x, self._version(x, scope, version)] for x in self.args[i]]
                ops.append(self.op[i])
                targets.append(slot.setdefault((value, version), len(slot)))
                starts.append(len(args))
                weights.append((self.first_weight[i], counts[i]))
        flat = [k for first, count in weights for k in range(first, first + count)]
        tables = replace(
            self.program,
            op=np.array(ops, np.uint8),
            target=np.array(targets, np.int32),
            start=np.array(starts, np.int64),
            args=np.array(args, np.int32),
            first_weight=np.cumsum([0, *(count for _, count in weights)])[:-1].astype(np.int64),
            weights=self.program.weights[flat],
            node=np.zeros(len(ops), np.int32),
            leaf_variable=np.array(variables, np.int32),
            leaf_table=self.program.leaf_table[leaves],
            slots=len(slot),
            value=0,
            magnitude=0,
            n_variables=2,
            numbers=[],
            leaf_numbers=[],
        )
        return tables, np.array([slot[value, 0] for value in roots], np.int64)

    def _version(self, x: int, scope: tuple[int, int], version: int) -> int:
        """Which version of x a value over `scope` reads."""
        variable, other = self.scope[x]
        if variable < 0 or variable != other:
            return 0
        return version if scope[0] == scope[1] else int(variable == scope[1])

    def _weight_counts(self) -> list[int]:
        return np.diff(np.append(self.program.first_weight, len(self.program.weights))).tolist()

    # -- the rest -----------------------------------------------------------------------------------

    def _wide(self, wide: list[int], table: dict[int, int]) -> Program:
        inlined = self._inlined(wide)
        kinds, values, args, weights = [], [], [], []
        for value, number in table.items():
            kinds.append(LEAF)
            values.append(value)
            args.append([number])
            weights.append([])
        for i in wide:
            kind, value = self.op[i], self.target[i]
            if kind == TIMES:
                if value not in inlined:
                    kinds.append(TIMES)
                    values.append(value)
                    args.append(self.args[i])
                    weights.append([])
                continue
            k = self.first_weight[i]
            if kind == MORE:
                args[-1] = args[-1] + self.args[i]
                weights[-1] = weights[-1] + list(range(k, k + len(self.args[i]) // 2))
                continue
            kinds.append(SUM)
            values.append(value)
            if kind == DOT:
                args.append(self.args[i])
                weights.append(list(range(k, k + len(self.args[i]) // 2)))
                continue
            linear = [j for j, x in enumerate(self.args[i]) if x not in inlined]
            pairs = [j for j, x in enumerate(self.args[i]) if x in inlined]
            args.append([self.args[i][j] for j in linear] + [y for j in pairs for y in inlined[self.args[i][j]]])
            weights.append([k + j for j in (*linear, *pairs)])
        # Two orders: as they were written (a table where it is first read), or region by region.
        position = {}
        for i, value in enumerate(self.target):
            position.setdefault(value, i)
        by_position = sorted(range(len(values)), key=lambda k: position[values[k]])
        by_span = sorted(range(len(values)), key=lambda k: (self.span[values[k]][1], -self.span[values[k]][0], position[values[k]]))
        made = [self._assemble(order, kinds, values, args, weights) for order in (by_position, by_span)]
        self.made_slots = [m.slots for m in made]
        return min(made, key=lambda p: p.slots)

    def _assemble(self, order, kinds, values, args, weights) -> Program:
        lengths = np.array([len(args[k]) for k in order])
        weight_counts = [len(weights[k]) for k in order]
        program = replace(
            self.program,
            op=np.array([kinds[k] for k in order], np.uint8),
            target=np.array([values[k] for k in order], np.int32),
            start=np.cumsum([0, *lengths]).astype(np.int64),
            args=np.array([x for k in order for x in args[k]], np.int32),
            first_weight=np.cumsum([0, *weight_counts]).astype(np.int64),
            weights=self.program.weights[[w for k in order for w in weights[k]]],
            node=np.zeros(len(order), np.int32),
            numbers=[],
        )
        return schedule(program)

    def _inlined(self, wide: list[int]) -> dict[int, list[int]]:
        """The wide products of two that only sums read, few of them, with what they multiply."""
        products = {self.target[i]: self.args[i] for i in wide if self.op[i] == TIMES and len(self.args[i]) == 2}
        readers = dict.fromkeys(products, 0)
        for i in wide:
            step = 1 if self.op[i] == SUM else _MOST_READERS + 1
            for x in self.args[i]:
                if x in readers:
                    readers[x] += step
        for root in (self.program.value, self.program.magnitude):
            if root in readers:
                readers[root] = _MOST_READERS + 1
        return {v: args for v, args in products.items() if readers[v] <= _MOST_READERS}


def _union(a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
    """The variables of two scopes together."""
    if a[0] == _MANY or b[0] == _MANY:
        return _MANY, _MANY
    if a[0] < 0:
        return b
    if b[0] < 0:
        return a
    both = {*a, *b}
    return (min(both), max(both)) if len(both) <= 2 else (_MANY, _MANY)
