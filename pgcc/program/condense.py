"""The fast form of a program, for the float64 loop: fewer instructions, each of which does more, in fewer slots.

It exists for speed alone. Compared with the scheduled program, with the best number of rows per block for that: random
circuits over region trees (`benchmarks/circuits.py`, 100 to 10,000 edges) run 2.1 to 3.2 times as fast, and their
reverse passes 1.05 to 1.4 times. PSDDs gain little, because most of their values depend on many variables: nltcs.psdd
and plants.psdd, with the same rows per block, run 1.0 times as fast, and their reverse passes 1.0 and 1.2 times.

Four rewrites save loads and stores, which are what the loop spends its time on:

- *Tables.* A value that depends on at most two variables takes at most 9 different values. These are computed once, and
  an instruction PAIR looks them up by the joint code of the two variables: 4·code(x) + code(y), where the code of a
  variable is 0 (observed 0), 1 (observed 1) or 3 (unobserved).
- *Wide tables.* A value that depends on k variables takes 3^k. An instruction LOOKUP finds them by the number of the
  state of the k variables (`state_numbers`). That takes a load for every row, while arithmetic is done for eight rows
  at a time, so it pays only where many operations depend on few variables (`table_choice`).
- *Products in place.* A product x·y that k sums read costs 2 + k reads and a write; terms w·x·y in each of the sums
  cost 2·k reads. For k ≤ 3, the product is replaced by such terms.
- *Order by scope.* Variables are ranked by first use, and instructions sorted by (last variable, −first variable) of
  their values. Then values over the same variables come one after another, as in the order of a vtree, and are read
  soon. (A value never comes before its arguments, whose variables are among its own.) The instructions of a reverse
  pass come in the opposite order, because it reads first what the forward pass wrote last. The new order is taken if
  it needs fewer slots than the old one.

Rewriting changes the rounding errors: `pgcc.certify.certificate` analyses the fast form itself, and its tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pgcc.collector import collector_paused
from pgcc.ir.flat import spread, starts
from pgcc.program.program import ARITHMETIC, LEAF, LOOKUP, MOST_VARIABLES, PAIR, TIMES, Code, Program
from pgcc.program.reachability import needed_slots
from pgcc.program.schedule import share_slots
from pgcc.program.table_choice import Scope, scopes_of, worth_tables

_MOST_READERS = 3


@dataclass(frozen=True, eq=False)
class Tables:
    """The tables of values that depend on at most k variables: a program that computes their entries.

    Attributes
    ----------
    variables : int
        The number of variables k.
    program : Program
        A program in k variables that computes one entry of every table. Its variable i stands for the i-th of the
        variables that the value of a table depends on, in ascending order. No two values share a slot.
    roots : int64 array
        By table, the slot of its entry in the program.
    """

    variables: int
    program: Program
    roots: np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class Condensed(Code):
    """The fast form of a program: its instructions read tables where those of a program read leaves.

    PAIR t looks up table t of two variables by the joint code of the variables ``pairs[joint[t]]``. LOOKUP t looks up
    wide table t by the number of the state of the variables ``scopes[wide_scope[t]]``.

    Attributes
    ----------
    joint : int32 array
        By table of two variables, the row of `pairs` with its variables.
    kept : int64 array
        The slots of the values that were to be kept, in the order in which they were given to `condense`.
    pairs : int32 array, n × 2
        The distinct pairs of variables.
    tables : Tables
        The tables of two variables. The entry for the codes i and j is number 4·i + j.
    wide : list of Tables
        The wide tables, grouped by their numbers of variables, in ascending order; tables are numbered through all
        groups. A table of k variables has an entry for each of the `states` of k variables.
    wide_scope : int32 array
        By wide table, the row of `scopes` with its variables.
    scopes : int32 array, n × `MOST_VARIABLES`
        The distinct sets of variables of wide tables, each filled up with −1.
    """

    joint: np.ndarray
    kept: np.ndarray
    pairs: np.ndarray
    tables: Tables
    wide: list[Tables]
    wide_scope: np.ndarray
    scopes: np.ndarray


def states(variables: int) -> np.ndarray:
    """The 3^k states of k variables (1, 0, −1), in the order of wide tables: first those with nothing unobserved.

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
    """The number of a state of k variables, by its 2·k bits; 0 for bits that are those of no state.

    Bit i is set if variable i is not observed 0, and bit k + i if it is unobserved.

    Examples
    --------
    >>> state_numbers(1).tolist()
    [0, 1, 0, 2]
    """
    there = _is_state(variables)
    return np.where(there, np.cumsum(there) - 1, 0).astype(np.uint16)


def _is_state(variables: int) -> np.ndarray:
    """Which numbers of 2·k bits are those of a state (see `state_numbers`): bit k + i is set only if bit i is."""
    bits = np.arange(1 << 2 * variables)
    return bits >> variables & ~bits == 0


def condense(program: Program, kept: Sequence[int]) -> Condensed:
    """The fast form of a program without determinants, in which no two values share a slot.

    Parameters
    ----------
    program : Program
    kept : sequence of int
        The slots of the values to compute.

    Examples
    --------
    >>> import pgcc
    >>> from pgcc.program.lower import lower
    >>> from pgcc.passes.homogenize import homogenize
    >>> program = lower(homogenize(pgcc.parse("(0.5*a*b + 0.5)*(0.5*c*d + 0.5)")))
    >>> program, condense(program, [program.value])
    (<Program: 11 instructions, 18 operations, 11 slots>, <Condensed: 3 instructions, 4 operations, 3 slots>)
    """
    with collector_paused():
        return _Condenser(program, kept).run()


class _Condenser:
    """Instructions are known by position, values by slot, scopes by their place in `scopes`.

    Attributes
    ----------
    writer : int array
        The instruction that writes each value.
    lengths : int array
        How many values each instruction reads.
    scopes, scope, sizes
        The distinct scopes, the scope of each value, and the sizes of scopes (see `ValueScopes`).
    """

    def __init__(self, program: Program, kept: Sequence[int]):
        self.program, self.kept = program.expect(*ARITHMETIC), np.array(kept, np.int64)
        self.writer = np.full(program.slots, program.instructions)
        self.writer[program.target] = np.arange(program.instructions)
        self.lengths = program.arity
        self.scopes, self.scope, self.sizes = self.value_scopes = scopes_of(program)

    def run(self) -> Condensed:
        looked_up, computed = self._split()
        size = self.sizes[self.scope[looked_up]]
        narrow, wide = looked_up[size <= 2], looked_up[size > 2]
        wide = wide[np.argsort(size[size > 2], kind="stable")]
        pairs, joint = _numbered(self.scope[narrow])
        scopes, wide_scope = _numbered(self.scope[wide])
        lookups = self._looking_up(PAIR, narrow).followed_by(self._looking_up(LOOKUP, wide))
        code, kept = share_slots(self._in_best_order(lookups.followed_by(self._computing(computed))), self.kept)
        by_size = [(k, wide[self.sizes[self.scope[wide]] == k]) for k in range(3, MOST_VARIABLES + 1)]
        return Condensed(
            **code.columns,
            joint=joint.astype(np.int32),
            kept=kept,
            pairs=np.array([_ends(self.scopes[s]) for s in pairs], np.int32).reshape(-1, 2),
            tables=self._tables(narrow, 2),
            wide=[self._tables(values, k) for k, values in by_size if len(values)],
            wide_scope=wide_scope.astype(np.int32),
            scopes=np.array([_padded(self.scopes[s]) for s in scopes], np.int32).reshape(-1, MOST_VARIABLES),
        )

    def _split(self) -> tuple[np.ndarray, np.ndarray]:
        """The values that are looked up in tables, and the instructions that are run, in the order of instructions."""
        worth = worth_tables(self.program, self.kept, self.value_scopes)
        tabulated = np.array([scope in worth for scope in self.scopes]) | (self.sizes <= 2)
        looked_up = tabulated[self.scope[self.program.target]]
        needed = needed_slots(self.program, self.kept, ~looked_up)[self.program.target]
        return self.program.target[needed & looked_up].astype(np.int64), np.flatnonzero(needed & ~looked_up)

    # -- tables -------------------------------------------------------------------------------------

    def _tables(self, roots: np.ndarray, variables: int) -> Tables:
        """The tables of some values, the roots, each of which depends on at most `variables` variables.

        The program of the tables has *places* 0, 1, … as its variables: place i is the i-th variable of a root. A value
        below several roots may depend on other places in each of them. Its instruction is then copied for every such
        set of places: the copy of instruction i for the set p of places (as bits) is number i << variables | p.
        """
        program = self.program
        copies, top = self._copies(roots, variables)
        which, places = copies >> variables, copies & (1 << variables) - 1
        leaf = program.op[which] == LEAF
        lengths, read = self._read_copies(copies, variables)
        lengths = np.where(leaf, 1, lengths)
        args = np.empty(int(lengths.sum()), np.int64)
        of_leaf = np.repeat(leaf, lengths)
        args[of_leaf] = np.arange(leaf.sum())
        args[~of_leaf] = np.searchsorted(copies, read)
        leaves = program.args[program.start[which[leaf]]]
        counts = np.diff(program.first_weight)[which]
        weights = spread(program.first_weight[which], counts)
        code = self._code(program.op[which], np.arange(len(copies)), lengths, args, counts, weights, len(copies))
        table = Program(
            **code.columns,
            leaf_variable=_lowest_bit(places[leaf]).astype(np.int32),
            leaf_table=program.leaf_table[leaves],
            leaf_numbers=[program.leaf_numbers[leaf] for leaf in leaves.tolist()],
            structures=[],
            value=0,
            magnitude=0,
            n_variables=variables,
        )
        return Tables(variables, table, np.searchsorted(copies, top))

    def _copies(self, roots: np.ndarray, variables: int) -> tuple[np.ndarray, np.ndarray]:
        """The copies (see `_tables`) needed to compute these values, in ascending order, and those of the values."""
        program = self.program
        below = needed_slots(program, roots, self.sizes[self.scope[program.target]] <= variables)[program.target]
        rank = np.cumsum(below) - 1
        top = self.writer[roots] << variables | (1 << self.sizes[self.scope[roots]]) - 1
        known = np.zeros(int(below.sum()) << variables, bool)
        places = (1 << variables) - 1
        new = np.unique(top)
        found = [new]
        while len(new):
            known[rank[new >> variables] << variables | new & places] = True
            inner = new[self.lengths[new >> variables] > 0]
            read = np.unique(self._read_copies(inner, variables)[1]) if len(inner) else inner
            new = read[~known[rank[read >> variables] << variables | read & places]]
            found.append(new)
        return np.sort(np.concatenate(found)), top

    def _read_copies(self, copies: np.ndarray, variables: int) -> tuple[np.ndarray, np.ndarray]:
        """How many copies each of some copies reads, and which, one after another."""
        program, which = self.program, copies >> variables
        lengths = self.lengths[which]
        reader = np.repeat(np.arange(len(which)), lengths)
        x = program.args[spread(program.start[which], lengths)]
        inside = self._variables_inside(self.scope[x], self.scope[program.target[which]][reader])
        places = (copies & (1 << variables) - 1)[reader]
        return lengths, self.writer[x] << variables | _deposited(inside, places, variables)

    def _variables_inside(self, inner: np.ndarray, outer: np.ndarray) -> np.ndarray:
        """For pairs of scopes, as bits, which variables of the outer scope are in the inner one."""
        both, which = np.unique(outer * len(self.scopes) + inner, return_inverse=True)
        bits = []
        for pair in both.tolist():
            outside, within = self.scopes[pair // len(self.scopes)], self.scopes[pair % len(self.scopes)]
            bits.append(sum(1 << i for i, variable in enumerate(outside) if variable in within))
        return np.array(bits, np.int64)[which]

    # -- instructions -------------------------------------------------------------------------------

    def _looking_up(self, op: int, values: np.ndarray) -> Code:
        """An instruction PAIR or LOOKUP for every one of some values, which reads the table with the same number."""
        count, none = len(values), np.zeros(len(values), np.int64)
        return self._code(np.full(count, op), values, none + 1, np.arange(count), none, none[:0], self.program.slots)

    def _computing(self, computed: np.ndarray) -> Code:
        """These instructions with products in place.

        The terms of a SUM are then: its terms w·x, but without products in place; terms w·x·y for these products; the
        terms w·x·y that it had before.
        """
        program = self.program
        in_place = self._products_in_place(computed)
        which = computed[~in_place[program.target[computed]]]
        lengths, alone = self.lengths[which], program.alone[which]
        owner = np.repeat(np.arange(len(which)), lengths)
        x = program.args[spread(program.start[which], lengths)].astype(np.int64)
        single = np.arange(len(x)) - np.repeat(starts(lengths)[:-1], lengths) < alone[owner]  # x of a term w·x
        product = single & in_place[x]  # only of a SUM
        # the order within an instruction: terms w·x (0), products in place (1), all other arguments (2)
        group = np.where(single, product, 2)
        order = np.argsort(3 * owner + group, kind="stable")
        x, product = x[order], product[order]
        width = np.where(product, 2, 1)
        at = np.cumsum(width) - width
        args = np.empty(int(width.sum()), np.int64)
        args[at] = np.where(product, program.args[program.start[self.writer[x]]], x)
        args[at[product] + 1] = program.args[program.start[self.writer[x[product]]] + 1]
        counts = np.diff(program.first_weight)[which]
        of_weight = np.repeat(np.arange(len(which)), counts)
        weights = spread(program.first_weight[which], counts)
        group_of_weight = np.full(len(weights), 2)
        group_of_weight[weights - program.first_weight[which][of_weight] < alone[of_weight]] = group[single]
        weights = weights[np.argsort(3 * of_weight + group_of_weight, kind="stable")]
        lengths = lengths + np.bincount(owner[order][product], minlength=len(which))
        return self._code(program.op[which], program.target[which], lengths, args, counts, weights, program.slots)

    def _products_in_place(self, computed: np.ndarray) -> np.ndarray:
        """By slot, whether it is a product of two that is read only by terms w·x of sums, at most `_MOST_READERS`."""
        program = self.program
        lengths = self.lengths[computed]
        x = program.args[spread(program.start[computed], lengths)]
        place = np.arange(len(x)) - np.repeat(starts(lengths)[:-1], lengths)
        single = place < np.repeat(program.alone[computed], lengths)
        readers = np.bincount(x[single], minlength=program.slots)
        readers[x[~single]] = readers[self.kept] = _MOST_READERS + 1
        in_place = np.zeros(program.slots, bool)
        in_place[program.target[computed[(program.op[computed] == TIMES) & (lengths == 2)]]] = True
        return in_place & (readers <= _MOST_READERS)

    def _in_best_order(self, code: Code) -> Code:
        """The instructions in the one of the `_orders` that needs fewest slots."""
        return code.select(min(self._orders(code.target), key=lambda order: self._slots_needed(code, order)))

    def _orders(self, values: np.ndarray) -> list[np.ndarray]:
        """Orders of the instructions that write these values: that of the program, and the order by scope."""
        made = self.writer[values]
        return [np.argsort(made), np.lexsort((made, *self._scope_keys(values)))]

    def _scope_keys(self, values: np.ndarray) -> tuple[np.ndarray, ...]:
        """Sort keys of the order by scope, the primary one last, as `np.lexsort` takes them.

        An adjoint has the keys of its value, negated.
        """
        span = _spans(self.program)
        low, high = span[:, values]
        if self.program.adjoint_of is None:
            return -low, high
        of = self.program.adjoint_of[values]
        back, own = of >= 0, span[:, np.maximum(of, 0)]
        return np.where(back, own[0], -low), np.where(back, -own[1], high), np.where(of == -2, 2, back)

    def _slots_needed(self, code: Code, order: np.ndarray) -> int:
        """The largest number of values alive at the same time, if the instructions are run in this order."""
        count = len(order)
        time = np.empty(count, np.int64)
        time[order] = np.arange(count)
        last_read = np.full(self.program.slots, count)  # a value that nobody reads stays, as do those that are kept
        read = code.args[code.is_slot]
        last_read[read] = -1
        np.maximum.at(last_read, read, np.repeat(time, code.arity))
        last_read[self.kept] = count
        deaths = np.bincount(last_read[code.target], minlength=count + 1)
        return int((np.arange(1, count + 1) - np.cumsum(deaths[:count]) + deaths[:count]).max(initial=0))

    def _code(
        self, op: np.ndarray, target: np.ndarray, lengths: np.ndarray, args: np.ndarray, counts: np.ndarray,
        weights: np.ndarray, slots: int,
    ) -> Code:  # fmt: skip
        """Code from columns (see `Code.assemble`), with the weights at these positions in the program."""
        program = self.program
        numbers = [program.numbers[w] for w in weights.tolist()]
        return Code.assemble(op, target, lengths, args, counts, program.weights[weights], numbers, slots)


def _spans(program: Program) -> np.ndarray:
    """By slot, the first and the last of its variables, which are ranked by first use; only of the forward pass."""
    slots, leaf_variable = program.slots, program.leaf_variable.tolist()
    low, high = [slots] * slots, [-1] * slots
    lowest, highest = low.__getitem__, high.__getitem__
    rank: dict[int, int] = {}
    forward = np.ones(len(program.op), bool) if program.adjoint_of is None else program.adjoint_of[program.target] < 0
    which = np.flatnonzero(forward & (np.diff(program.start) > 0))
    columns = (program.op[which], program.target[which], program.start[which], program.start[which + 1])
    args = program.args.tolist()
    for op, value, first, last in zip(*(column.tolist() for column in columns), strict=True):
        if op != LEAF:
            read = args[first:last]
            low[value], high[value] = min(map(lowest, read)), max(map(highest, read))
        elif leaf_variable[args[first]] >= 0:
            low[value] = high[value] = rank.setdefault(leaf_variable[args[first]], len(rank))
    return np.array([low, high])


def _numbered(scopes: np.ndarray) -> tuple[list[int], np.ndarray]:
    """The distinct scopes in order of first appearance, and for each of the given scopes its place among them."""
    distinct, first, which = np.unique(scopes, return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return distinct[order].tolist(), place[which]


def _ends(scope: Scope) -> Scope:
    """The two variables of a table: one of them twice if the value depends on one only, and any for a constant."""
    return (scope[0], scope[-1]) if scope else (0, 0)


def _padded(scope: Scope) -> list[int]:
    return [*scope, *[-1] * (MOST_VARIABLES - len(scope))]


def _deposited(bits: np.ndarray, places: np.ndarray, most: int) -> np.ndarray:
    """Bit deposit: the i-th lowest set bit of `places`, which has bits below `most`, is kept if bit i of `bits` is set.

    >>> _deposited(np.array([0b101]), np.array([0b11010]), 5).tolist() == [0b10010]
    True
    """
    found, seen = np.zeros(len(places), np.int64), np.zeros(len(places), np.int64)
    for place in range(most):
        here = places >> place & 1
        found |= (bits >> seen & here) << place
        seen += here
    return found


def _lowest_bit(places: np.ndarray) -> np.ndarray:
    """The first of a set of places; −1 if it is empty."""
    return np.log2(np.maximum(places & -places, 0.5)).astype(np.int64)
