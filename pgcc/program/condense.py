"""A program in the form that the float64 loop runs fastest: fewer instructions, each doing more, in fewer slots.

Four rewrites, each of which only saves loads and stores:

- *Tables.* A value that depends on two variables takes 9 values at most. They are computed once, and an instruction
  looks them up by the joint code of the two: 4·code(x) + code(y), where codes are 0, 1 and, for free, 3.
- *Wide tables.* One of k variables takes 3^k. Eight rows at a time need eight loads, so that pays only where much is
  computed of few variables, as in the leaves of a determinantal PGC. They are looked up by the number of the state.
- *Products in place.* A product x·y that k sums read costs 2 + k reads and a write; w·x·y in each of them costs 2·k
  reads. Up to k = 3, sums multiply themselves.
- *Regions one after another.* Variables are ranked by first use. Sorted by (last variable, −first variable), values
  over the same variables come together, as in the order of a vtree, and children die soon. (What a value reads has a
  part of its variables, so it never comes later.) A reverse pass takes them the other way round, so that what was made
  last is read first. Taken where it needs fewer slots.

Errors are those of what comes out: `pgcc.certify.certificate` goes through the condensed program and its tables.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from pgcc.ir.bulk import collector_paused
from pgcc.program.builder import starts
from pgcc.program.program import ARITHMETIC, LEAF, LOOKUP, PAIR, QUOTIENT, TIMES, Code, Program
from pgcc.program.schedule import share_slots

ENTRIES = 16  # of a table of two variables
MOST_VARIABLES = 7  # of a wide one
_MOST_READERS = 3
# How many arguments of other instructions are read in the time that it takes to number states, and to look up a value:
# in the nearest cache, where tables of five variables at most mostly are; in the next, which has room for so many
# entries; or farther away.
_TO_NUMBER, _NEAREST, _NEXT, _FAR = 12, 8, 24, 40
_FIVE, _NEXT_ENTRIES = 5, 3 << 16
# And in the time that it takes to pack evidence for states: for any, and for every variable.
_TO_PACK, _TO_PACK_VARIABLE = 100, 3
# Entries of all wide tables at most, and arguments that are read to fill them: less than a tenth of a second.
_MOST_ENTRIES, _MOST_WORK = 1 << 20, 1 << 28

Scope = tuple[int, ...]  # variables in order
Instruction = tuple[int, int, list[int], Sequence[int]]  # operation, value, arguments, numbers of weights
_NONE: Scope = ()
_MANY: Scope = (-1,)  # more variables than any table has
_PLACES = [tuple(range(k)) for k in range(MOST_VARIABLES + 1)]


@dataclass(frozen=True, eq=False)
class Tables:
    """Values of so many variables as a program of these: variable i is the one at place i of the value's own.

    roots : int64 array
        The slot of each value in the program, which shares no slots.
    """

    variables: int
    program: Program
    roots: np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class Condensed(Code):
    """What `condense` makes: instructions that read tables where those of a program read leaves.

    PAIR t reads table t of two variables by joint code number ``joint[t]``, LOOKUP t reads wide table t by the number
    of the state of the variables ``scopes[wide_scope[t]]``.

    Attributes
    ----------
    joint : int32 array
        The number of the joint code of each table of two variables.
    kept : int64 array
        The slots of what was to be kept.
    pairs : int32 array, joint codes × 2
        The two variables of each.
    tables : Tables
        Those of two variables: at their codes i and j they have the entries 4·i + j.
    wide : list of Tables
        The wide ones, in order of their numbers; they have an entry for each of the `states`.
    wide_scope : int32 array
        The number of the scope of each wide table.
    scopes : int32 array, scopes × `MOST_VARIABLES`
        The variables of each, then −1.
    """

    joint: np.ndarray
    kept: np.ndarray
    pairs: np.ndarray
    tables: Tables
    wide: list[Tables]
    wide_scope: np.ndarray
    scopes: np.ndarray


def states(variables: int) -> np.ndarray:
    """The 3^k states of k variables (1, 0, −1), in the order of wide tables: those with nothing free come first.

    Examples
    --------
    >>> states(2).tolist()
    [[0, 0], [1, 0], [0, 1], [1, 1], [-1, 0], [-1, 1], [0, -1], [1, -1], [-1, -1]]
    """
    numbers = state_numbers(variables)
    plane, where = np.arange(variables), np.flatnonzero(_is_state(variables))
    found = np.where(where[:, None] >> (variables + plane) & 1, -1, where[:, None] >> plane & 1).astype(np.int8)
    return found[np.argsort(numbers[where])]


def state_numbers(variables: int) -> np.ndarray:
    """The number of the state of k variables by its bits: bit i is set where variable i is not 0, bit k + i where it is
    free.

    Examples
    --------
    >>> state_numbers(1).tolist()
    [0, 1, 0, 2]
    """
    there = _is_state(variables)
    return np.where(there, np.cumsum(there) - 1, 0).astype(np.uint16)


def _is_state(variables: int) -> np.ndarray:
    """Which bits are those of a state: what is free is not 0."""
    bits = np.arange(1 << 2 * variables)
    return bits >> variables & ~bits == 0


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
    >>> from pgcc.program.lower import lower
    >>> from pgcc.passes.padding import homogenize
    >>> program = lower(homogenize(pgcc.parse("(0.5*a*b + 0.5)*(0.5*c*d + 0.5)")))
    >>> program, condense(program, [program.value])
    (<Program: 11 instructions, 18 operations, 11 slots>, <Condensed: 3 instructions, 4 operations, 3 slots>)
    """
    with collector_paused():
        return _Condenser(program, kept).run()


class _Condenser:
    """Instructions are known by position, values by slot."""

    def __init__(self, program: Program, kept: Sequence[int]):
        self.program, self.kept = program.expect(*ARITHMETIC, QUOTIENT), list(map(int, kept))
        self.op, self.target = program.op.tolist(), program.target.tolist()
        start, args = program.start.tolist(), program.args.tolist()
        self.args = [args[first:last] for first, last in pairwise(start)]
        self.first_weight, self.alone = program.first_weight.tolist(), program.alone.tolist()
        self.scope, self.span = self._scopes()
        self._known_places: dict[tuple[Scope, Scope, Scope], Scope] = {}

    def run(self) -> Condensed:
        looked_up, computed = self._split()
        narrow = [x for x in looked_up if len(self.scope[x]) <= 2]
        wide = sorted((x for x in looked_up if len(self.scope[x]) > 2), key=lambda x: len(self.scope[x]))
        pairs = _numbered(self.scope[x] for x in narrow)
        scopes = _numbered(self.scope[x] for x in wide)
        reading: list[Instruction] = [(PAIR, x, [number], []) for number, x in enumerate(narrow)]
        reading += [(LOOKUP, x, [number], []) for number, x in enumerate(wide)]
        code, kept = self._in_best_order([*reading, *self._computing(computed)])
        by_size = [(k, [x for x in wide if len(self.scope[x]) == k]) for k in range(3, MOST_VARIABLES + 1)]
        return Condensed(
            code.op,
            code.target,
            code.start,
            code.args,
            code.first_weight,
            code.weights,
            code.numbers,
            code.slots,
            joint=np.array([pairs[self.scope[x]] for x in narrow], np.int32),
            kept=kept,
            # a constant has no variables: any will do
            pairs=np.array([(scope[0], scope[-1]) if scope else (0, 0) for scope in pairs], np.int32).reshape(-1, 2),
            tables=self._tables(narrow, 2),
            wide=[self._tables(values, k) for k, values in by_size if values],
            wide_scope=np.array([scopes[self.scope[x]] for x in wide], np.int32),
            scopes=np.array([_padded(scope) for scope in scopes], np.int32).reshape(-1, MOST_VARIABLES),
        )

    def _scopes(self) -> tuple[list[Scope], np.ndarray]:
        """The variables of each value, if a table may have them; and its span: its first and its last one by rank."""
        slots, leaf_variable = self.program.slots, self.program.leaf_variable.tolist()
        scope, low, high = [_NONE] * slots, [slots] * slots, [-1] * slots
        rank: dict[int, int] = {}
        alone, unions = {-1: _NONE}, _Unions()
        for kind, value, args in zip(self.op, self.target, self.args, strict=True):
            if kind == LEAF:
                variable = leaf_variable[args[0]]
                scope[value] = alone.setdefault(variable, (variable,))
                if variable >= 0:
                    low[value] = high[value] = rank.setdefault(variable, len(rank))
                continue
            here = _NONE
            for x in args:
                there = scope[x]
                if there is not here and here is not _MANY:
                    here = unions[here, there]
            scope[value] = here
            low[value] = min([low[x] for x in args], default=slots)
            high[value] = max([high[x] for x in args], default=-1)
        return scope, np.array([low, high])

    def _split(self) -> tuple[list[int], list[int]]:
        """The values that are looked up, and the instructions that are run."""
        tabulated = _Work(self.target, self.args, self.op, self.scope, self.kept).worth_tables(self.program.n_variables)
        needed, looked_up, computed = set(self.kept), [], []
        for i in reversed(range(len(self.op))):
            value = self.target[i]
            if value in needed:
                if self.scope[value] in tabulated or (len(self.scope[value]) <= 2 and self.scope[value] is not _MANY):
                    looked_up.append(value)
                else:
                    computed.append(i)
                    needed.update(self.args[i])
        return looked_up[::-1], computed[::-1]

    # -- tables -------------------------------------------------------------------------------------

    def _tables(self, roots: list[int], variables: int) -> Tables:
        """These values as functions of the codes at the places of their variables."""
        slot: dict[tuple[int, Scope], int] = {}  # of a value with its variables at these places
        op: list[int] = []
        target: list[int] = []
        args: list[int] = []
        lengths: list[int] = []
        weights: list[int] = []
        counts: list[int] = []
        leaves: list[int] = []
        places_of_leaves: list[int] = []
        for i, everywhere in self._below(roots):
            value, weights_here = self.target[i], self._weights(i)
            for places in everywhere:
                if self.op[i] == LEAF:
                    here = [len(leaves)]
                    leaves += self.args[i]
                    places_of_leaves.append(places[0] if places else -1)
                else:
                    here = [slot[x, self._places(x, value, places)] for x in self.args[i]]
                op.append(self.op[i])
                slot[value, places] = len(slot)
                target.append(slot[value, places])
                args += here
                lengths.append(len(here))
                weights += weights_here
                counts.append(len(weights_here))
        program = replace(
            self.program,
            op=np.array(op, np.uint8),
            target=np.array(target, np.int32),
            start=starts(lengths),
            args=np.array(args, np.int32),
            first_weight=starts(counts),
            weights=self.program.weights[weights],
            leaf_variable=np.array(places_of_leaves, np.int32),
            leaf_table=self.program.leaf_table[leaves],
            slots=len(slot),
            value=0,
            magnitude=0,
            n_variables=variables,
            numbers=[self.program.numbers[w] for w in weights],
            leaf_numbers=[self.program.leaf_numbers[leaf] for leaf in leaves],
        )
        top = [slot[value, _PLACES[len(self.scope[value])]] for value in roots]
        return Tables(variables, program, np.array(top, np.int64))

    def _below(self, roots: list[int]) -> Iterator[tuple[int, dict[Scope, None]]]:
        """The instructions that these values need, in order, each with all places of the variables of its value."""
        places: dict[int, dict[Scope, None]] = {x: {_PLACES[len(self.scope[x])]: None} for x in roots}
        below = []
        for i in reversed(range(len(self.op))):
            value = self.target[i]
            if value in places:
                below.append(i)
                if self.op[i] != LEAF:
                    for x in self.args[i]:
                        there = places.setdefault(x, {})
                        for here in places[value]:
                            there[self._places(x, value, here)] = None
        return ((i, places[self.target[i]]) for i in reversed(below))

    def _places(self, x: int, value: int, places: Scope) -> Scope:
        """Where the variables of x are, which `value` reads, if those of that are at these places."""
        inner, outer = self.scope[x], self.scope[value]
        if inner is outer:
            return places
        known = self._known_places.get((inner, outer, places))
        if known is None:
            known = tuple(place for v, place in zip(outer, places, strict=True) if v in inner)
            self._known_places[inner, outer, places] = known
        return known

    # -- the rest -----------------------------------------------------------------------------------

    def _computing(self, computed: list[int]) -> Iterator[Instruction]:
        """These instructions, with products in place: terms w·x, then w·x·y of such products, then those of its own."""
        products = self._products_in_place(computed)
        for i in computed:
            args, weights, alone = self.args[i], self._weights(i), self.alone[i]
            if self.target[i] in products:
                continue
            if any(x in products for x in args[:alone]):  # only of a SUM
                order = sorted(range(alone), key=lambda j: args[j] in products)
                weights = [*(weights[j] for j in order), *weights[alone:]]
                args = [*(y for j in order for y in products.get(args[j], (args[j],))), *args[alone:]]
            yield self.op[i], self.target[i], args, weights

    def _weights(self, i: int) -> Sequence[int]:
        """The numbers of the weights of an instruction."""
        return range(self.first_weight[i], self.first_weight[i + 1])

    def _products_in_place(self, computed: list[int]) -> dict[int, list[int]]:
        """The products of two that only sums read, and few of them, with what they multiply."""
        products = {self.target[i]: self.args[i] for i in computed if self.op[i] == TIMES and len(self.args[i]) == 2}
        readers = dict.fromkeys(products, 0)
        for i in computed:
            for k, x in enumerate(self.args[i]):
                if x in readers:
                    readers[x] += 1 if k < self.alone[i] else _MOST_READERS + 1
        for x in self.kept:
            readers[x] = _MOST_READERS + 1
        return {x: args for x, args in products.items() if readers[x] <= _MOST_READERS}

    def _in_best_order(self, instructions: list[Instruction]) -> tuple[Code, np.ndarray]:
        """The instructions as code that shares slots, in the order that needs fewer of them."""
        orders = self._orders(np.array([value for _, value, _, _ in instructions], np.int64))
        return min(
            (self._scheduled([instructions[k] for k in order]) for order in orders), key=lambda found: found[0].slots
        )

    def _orders(self, values: np.ndarray) -> list[np.ndarray]:
        """As they were made, and by regions."""
        made = np.full(self.program.slots, len(self.target))
        np.minimum.at(made, self.program.target, np.arange(len(self.target)))
        return [np.argsort(made[values]), np.lexsort((made[values], *self._regions(values)))]

    def _regions(self, values: np.ndarray) -> tuple[np.ndarray, ...]:
        """Keys, the last one first, that sort values by their spans; those of a reverse pass the other way round."""
        low, high = self.span[:, values]
        if self.program.flow_of is None:
            return -low, high
        of = self.program.flow_of[values]
        back, own = of >= 0, self.span[:, np.maximum(of, 0)]
        return np.where(back, own[0], -low), np.where(back, -own[1], high), np.where(of == -2, 2, back)

    def _scheduled(self, instructions: list[Instruction]) -> tuple[Code, np.ndarray]:
        used = [w for _, _, _, weights in instructions for w in weights]
        code = Code(
            op=np.array([op for op, _, _, _ in instructions], np.uint8),
            target=np.array([value for _, value, _, _ in instructions], np.int32),
            start=starts([len(args) for _, _, args, _ in instructions]),
            args=np.array([x for _, _, args, _ in instructions for x in args], np.int32),
            first_weight=starts([len(weights) for _, _, _, weights in instructions]),
            weights=self.program.weights[used],
            numbers=[self.program.numbers[w] for w in used],
            slots=self.program.slots,
        )
        return share_slots(code, self.kept)


def _numbered(scopes: Iterable[Scope]) -> dict[Scope, int]:
    return {scope: number for number, scope in enumerate(dict.fromkeys(scopes))}


def _padded(scope: Scope) -> list[int]:
    return [*scope, *[-1] * (MOST_VARIABLES - len(scope))]


class _Unions(dict[tuple[Scope, Scope], Scope]):
    """The variables of two scopes together. Scopes that are equal are the same object, if those that are joined are."""

    def __init__(self) -> None:
        super().__init__()
        self._all: dict[Scope, Scope] = {}

    def __missing__(self, scopes: tuple[Scope, Scope]) -> Scope:
        a, b = (self._all.setdefault(scope, scope) for scope in scopes)
        both = tuple(sorted({*a, *b}))
        many = a is _MANY or b is _MANY or len(both) > MOST_VARIABLES
        self[scopes] = union = _MANY if many else self._all.setdefault(both, both)
        return union


class _Work:
    """What it takes to compute values of few variables, in arguments that are read: which scopes are worth tables.

    Attributes
    ----------
    own : dict
        What it takes to compute all values of a scope from those of others.
    parts : dict
        These others.
    read : dict
        How many values of a scope are read elsewhere.
    """

    def __init__(
        self, target: list[int], args: list[list[int]], op: list[int], scope: list[Scope], kept: Sequence[int]
    ):
        self.own: dict[Scope, int] = defaultdict(int)
        self.parts: dict[Scope, set[Scope]] = {_MANY: {scope[x] for x in kept}}
        self.read: dict[Scope, int] = defaultdict(int)
        elsewhere = set(kept)
        for kind, value, read in zip(op, target, args, strict=True):
            here = scope[value]
            if kind != LEAF and (len(here) > 2 or here is _MANY):
                others = [x for x in read if scope[x] is not here]
                elsewhere.update(others)
                self.parts.setdefault(here, set()).update([scope[x] for x in others])
                self.own[here] += len(read)
        for x in elsewhere:
            self.read[scope[x]] += 1
            if len(scope[x]) <= 2:
                self.own[scope[x]] += 2  # it is looked up in a table of two variables

    def worth_tables(self, variables: int) -> set[Scope]:
        """As many variables at a time as leave the tables near, and whatever is worth them if they are far.

        None, if all of them save less than it takes to pack evidence for them.
        """
        most = MOST_VARIABLES
        while True:
            chosen, entries, saved = self._chosen(most)
            if entries <= _NEXT_ENTRIES:
                return chosen if saved > _TO_PACK + _TO_PACK_VARIABLE * variables else set()
            most -= 1

    def _chosen(self, most: int) -> tuple[set[Scope], int, int]:
        """What is worth tables, if so many variables may be near; entries that are to be near; and what is saved."""
        chosen: set[Scope] = set()
        near = entries = work = saved = 0
        needed: list[dict[Scope, None]] = [{} for _ in range(MOST_VARIABLES + 1)]

        def need(scope: Scope) -> None:
            for part in self.parts.get(scope, ()):
                if part is not _MANY:
                    needed[len(part)][part] = None

        need(_MANY)
        # what reads a scope has more variables: all that need it are known when it is its turn
        for size in range(MOST_VARIABLES, 2, -1):
            for scope in needed[size]:
                values, arguments, states = self.read[scope], self._all(scope), 3**size
                far = arguments <= _TO_NUMBER + _FAR * values
                cost = _TO_NUMBER + (_NEAREST if size <= _FIVE else _NEXT) * values
                worth = not far or (size <= most and arguments > cost)
                if worth and entries + values * states <= _MOST_ENTRIES and work + arguments * states <= _MOST_WORK:
                    chosen.add(scope)
                    entries, work = entries + values * states, work + arguments * states
                    near, saved = near + (values * states if far else 0), saved + arguments - cost
                else:
                    need(scope)
        return chosen, near, saved

    def _all(self, scope: Scope) -> int:
        """What it takes to compute all values of a scope, and of its parts."""
        seen, wanted = {scope}, [scope]
        for here in wanted:
            new = self.parts.get(here, set()) - seen
            wanted += new
            seen |= new
        return sum(self.own[here] for here in wanted)
