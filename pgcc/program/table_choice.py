"""Which values of a program the fast form looks up in wide tables (`condense`): those where that saves time.

It exists for speed alone. Compared with the fast form without wide tables, random circuits (`benchmarks/circuits.py`)
run 1.3 times (10,000 edges over 20 or 100 variables) to 2.4 times (3,000 edges over 12) as fast. A reverse pass, which
needs most values anyway, takes as long or up to a tenth longer.

A value that depends on k variables takes at most 3^k different values, which can be computed beforehand. That pays
where many operations depend on few variables. Costs are counted in arguments read by instructions, which is what the
float64 loop spends its time on.
"""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

import numpy as np

from pgcc.ir.flat import spread
from pgcc.program.program import LEAF, MOST_VARIABLES, Program

# The cost, in arguments, of computing the number of the state of a scope; and of looking up a value in a table that is
# in the first-level cache, in the second-level cache, or in memory. Tables of up to `_SMALL` variables are mostly in
# the first-level cache, and the second-level cache has room for `_CACHED_ENTRIES`.
_NUMBERING, _FIRST_LEVEL, _SECOND_LEVEL, _MEMORY = 12, 8, 24, 40
_SMALL, _CACHED_ENTRIES = 5, 3 << 16
# The cost of packing evidence for states: once, and for every variable.
_PACKING, _PACKING_VARIABLE = 100, 3
# The most entries of all wide tables, and the most arguments read to fill them, which takes less than 0.1 s.
_MOST_ENTRIES, _MOST_WORK = 1 << 20, 1 << 28

Scope = tuple[int, ...]  # variables in order
NONE: Scope = ()
MANY: Scope = (-1,)  # more variables than any table has


class ValueScopes(NamedTuple):
    """The variables that values depend on.

    Attributes
    ----------
    distinct : list of Scope
        The scopes; `MANY` stands for all scopes with more than `MOST_VARIABLES` variables.
    of : int array
        By slot, the place of the value's scope among them.
    sizes : int array
        How many variables each scope has; more than `MOST_VARIABLES` for `MANY`.
    """

    distinct: list[Scope]
    of: np.ndarray
    sizes: np.ndarray


def scopes_of(program: Program) -> ValueScopes:
    """The scopes of all values of a program in which no two values share a slot."""
    unions = _Unions()
    variables = [unions.number((v,) if v >= 0 else NONE) for v in program.leaf_variable.tolist()]
    scope = [0] * program.slots
    args, start = program.args.tolist(), program.start.tolist()
    for op, value, first, last in zip(program.op.tolist(), program.target.tolist(), start, start[1:], strict=False):
        if op == LEAF:
            scope[value] = variables[args[first]]
            continue
        here = 0
        for x in args[first:last]:
            there = scope[x]
            if there != here:
                here = unions[here, there]
                if here == 1:
                    break
        scope[value] = here
    sizes = [MOST_VARIABLES + 1 if scope is MANY else len(scope) for scope in unions.scopes]
    return ValueScopes(unions.scopes, np.array(scope, np.int64), np.array(sizes))


class _Unions(dict[tuple[int, int], int]):
    """The union of two scopes. Scopes are known by their places in `scopes`: 0 is the empty one, 1 is `MANY`."""

    def __init__(self) -> None:
        super().__init__()
        self.scopes = [NONE, MANY]
        self._place = {NONE: 0, MANY: 1}

    def number(self, scope: Scope) -> int:
        """The place of a scope."""
        place = self._place.setdefault(scope, len(self.scopes))
        if place == len(self.scopes):
            self.scopes.append(scope)
        return place

    def __missing__(self, two: tuple[int, int]) -> int:
        both = tuple(sorted({*self.scopes[two[0]], *self.scopes[two[1]]}))
        many = 1 in two or len(both) > MOST_VARIABLES
        self[two] = union = 1 if many else self.number(both)
        return union


def worth_tables(program: Program, kept: np.ndarray, scopes: ValueScopes) -> set[Scope]:
    """The scopes of more than two variables whose values are worth tables; none if all tables together save too little.

    kept : the slots of the values to compute. Some tables are worth their cost only if they are in the cache: these are
    limited to fewer and fewer variables, until all of them fit.
    """
    work, most = _Work(program, kept, scopes), MOST_VARIABLES
    while True:
        chosen, entries, saved = work.choose(most)
        if entries <= _CACHED_ENTRIES:
            return chosen if saved > _PACKING + _PACKING_VARIABLE * program.n_variables else set()
        most -= 1


class _Work:
    """The cost of computing values that depend on few variables, in arguments read.

    Attributes
    ----------
    own : dict
        By scope, the cost of computing its values, if the values of its parts are known.
    parts : dict
        By scope, the other scopes that its values read.
    read : dict
        By scope, how many of its values are read by values of other scopes, or kept.
    """

    def __init__(self, program: Program, kept: np.ndarray, values: ValueScopes):
        scopes, scope, sizes = values
        of = scope[program.target]  # the scope of each instruction
        lengths = np.where(sizes[of] > 2, program.arity, 0)
        reader = np.repeat(of, lengths)
        x = program.args[spread(program.start[:-1], lengths)]
        part = scope[x]
        other = part != reader
        self.own: dict[Scope, int] = defaultdict(int)
        for s, count in enumerate(np.bincount(of, lengths, len(scopes)).tolist()):
            self.own[scopes[s]] += int(count)
        self.parts: dict[Scope, set[Scope]] = {MANY: {scopes[s] for s in scope[kept].tolist()}}
        for pair in np.unique(reader[other] * len(scopes) + part[other]).tolist():
            self.parts.setdefault(scopes[pair // len(scopes)], set()).add(scopes[pair % len(scopes)])
        elsewhere = np.zeros(program.slots, bool)
        elsewhere[x[other]] = elsewhere[kept] = True
        self.read: dict[Scope, int] = defaultdict(int)
        for s, count in enumerate(np.bincount(scope[elsewhere], minlength=len(scopes)).tolist()):
            if count:
                self.read[scopes[s]] = count
                if sizes[s] <= 2:
                    self.own[scopes[s]] += 2 * count  # each is looked up in a table of two variables

    def choose(self, most: int) -> tuple[set[Scope], int, int]:
        """The scopes that are worth tables, if the tables of at most `most` variables are in a cache.

        Also, how many entries of these must be in a cache for that, and how many arguments are saved.
        """
        chosen: set[Scope] = set()
        cached = entries = work = saved = 0
        needed: list[dict[Scope, None]] = [{} for _ in range(MOST_VARIABLES + 1)]

        def need(scope: Scope) -> None:
            for part in self.parts.get(scope, ()):
                if part is not MANY:
                    needed[len(part)][part] = None

        need(MANY)
        # the readers of a scope have more variables: all scopes that read it are known when it is its turn
        for size in range(MOST_VARIABLES, 2, -1):
            for scope in needed[size]:
                values, arguments, states = self.read[scope], self._with_parts(scope), 3**size
                needs_cache = arguments <= _NUMBERING + _MEMORY * values
                cost = _NUMBERING + (_FIRST_LEVEL if size <= _SMALL else _SECOND_LEVEL) * values
                worth = not needs_cache or (size <= most and arguments > cost)
                if worth and entries + values * states <= _MOST_ENTRIES and work + arguments * states <= _MOST_WORK:
                    chosen.add(scope)
                    entries, work = entries + values * states, work + arguments * states
                    cached, saved = cached + (values * states if needs_cache else 0), saved + arguments - cost
                else:
                    need(scope)
        return chosen, cached, saved

    def _with_parts(self, scope: Scope) -> int:
        """The cost of computing all values of a scope, and of its parts, theirs, and so on."""
        seen, wanted = {scope}, [scope]
        for here in wanted:
            new = self.parts.get(here, set()) - seen
            wanted += new
            seen |= new
        return sum(self.own[here] for here in wanted)
