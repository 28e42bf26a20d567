"""Exact samples, drawn from the root down, for circuits without negative numbers."""

from __future__ import annotations

from collections import OrderedDict
from contextlib import nullcontext
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pgcc.certify import budget
from pgcc.determinants.kernels.picking import Sets
from pgcc.determinants.kernels.scaled_staged import scaled_determinant
from pgcc.determinants.samplers import find_set_sampler
from pgcc.determinants.sampling_tables import SetSampler, Tables, lay_out
from pgcc.determinants.staged import padded
from pgcc.evaluate.direct import Float64, split_constants
from pgcc.evaluate.kernels.top_down import Choices, Links, Numbers, choice_tables, mark_reached, walk_down
from pgcc.ir.flat import starts
from pgcc.kernels.policy import tier
from pgcc.kernels.walk import instructions_of, walk
from pgcc.locks import cached_property, new_lock
from pgcc.program.program import DET, DETMAG, LEAF, LOWERED, SUM, DetInstruction, Program
from pgcc.program.reverse import terms_of
from pgcc.rings.kernels.scaled import RADIX, Constants, Scaled

# The relative error of determinants that occur in the probabilities of a choice.
_RTOL = 1e-9
# The largest odds of a determinant's child; beyond them, samples are drawn in another way.
_MOST_ODDS = 2.0**400
# The tables of this many rows of evidence are kept for the next call, if they have at most this many numbers.
_MOST_KEPT, _MOST_KEPT_SIZE = 8, 1 << 21
# Operations of the sampling kernel in one call: Python sees Ctrl-C only between calls.
_MOST_WORK = 1 << 29


class Nodes(NamedTuple):
    """The nodes of a program by slot, as the sampling kernel reads them."""

    links: Links
    numbers: Numbers


@dataclass(frozen=True)
class Ready:
    """The tables from which samples are drawn, given one row of evidence.

    Attributes
    ----------
    codes : int8 array
        The row of evidence.
    choices : Choices
        The probabilities of all choices.
    sets : Sets
        The tables of the determinants (see `lay_out`).
    steps : int
        The approximate number of steps of random walks in a sample.
    """

    codes: np.ndarray
    choices: Choices
    sets: Sets
    steps: int

    @property
    def size(self) -> int:
        """The number of numbers in the tables."""
        return len(self.choices.live) + len(self.choices.cumulative) + len(self.sets.reals)

    @property
    def work(self) -> int:
        """An upper bound on the multiplications, or steps, of a sample."""
        children = int(self.sets.plan["children"].max(initial=1))  # a determinant eliminates each of its children
        return self.size * children + self.steps

    @property
    def at_a_time(self) -> int:
        """How many samples the kernel draws in one call, which should take some tenths of a second."""
        return max(1, _MOST_WORK // (self.work + 1))


class TopDown:
    """The sampler of a homogenized program without negative numbers; sets : the samplers of its determinants."""

    def __init__(self, float64: Float64, sets: list[SetSampler]):
        self.program, self.float64, self.sets = float64.program, float64, sets
        self._kept: OrderedDict[bytes, Ready] = OrderedDict()
        self._lock = new_lock()

    @cached_property
    def nodes(self) -> Nodes:
        """The nodes of the program."""
        return find_nodes(self.program, self._scaled)

    @cached_property
    def _scaled(self) -> Constants:
        """Weights and leaves as scaled numbers."""
        return split_constants(self.program)

    @cached_property
    def _valued(self) -> np.ndarray:
        """By node, whether its value is needed: for the choices of a sum of several terms, or of a determinant."""
        kind, first, left, right, _ = self.nodes.links
        needed = np.zeros(len(kind), bool)
        for s in range(len(kind) - 1, -1, -1):
            terms = slice(first[s], first[s + 1])
            if needed[s] or kind[s] == DET or (kind[s] == SUM and first[s + 1] - first[s] > 1):
                needed[left[terms]] = True
                needed[right[terms][right[terms] >= 0]] = True
        return needed

    def prepare(self, codes: np.ndarray) -> Ready | None:
        """The tables for one row of possible evidence; None if a determinant is not accurate enough in float64."""
        key = codes.tobytes()
        ready = self._kept.get(key) or self._prepare(codes)
        if ready is not None and ready.size <= _MOST_KEPT_SIZE:
            with self._lock:
                self._kept[key] = ready
                if len(self._kept) > _MOST_KEPT:
                    self._kept.popitem(last=False)
        return ready

    def draw(self, ready: Ready, seed: int, row: int, begin: int, out: np.ndarray) -> None:
        """Write samples number begin, begin + 1, … of the stream of a row to `out`."""
        stream = np.uint64(seed), row, begin
        # random walks may be far longer than the circuit is large
        with tier(ready.work * len(out)) if ready.steps else nullcontext():
            walk_down(self.nodes.links, self.program.value, ready.choices, ready.sets, ready.codes, stream, out)

    def _prepare(self, codes: np.ndarray) -> Ready | None:
        links, numbers = self.nodes
        values = self._values(codes)
        if values is None:
            return None
        nodes = len(links.kind)
        choices = Choices(np.zeros(nodes, np.uint8), np.zeros(len(links.left)), np.zeros(nodes))
        choice_tables(links, numbers, codes, *values, choices)
        tables: list[Tables | None] = [None] * len(self.sets)
        if self.sets:
            reached = np.zeros_like(choices.live)
            mark_reached(links, choices, self.program.value, reached)
            for s in np.flatnonzero((links.kind == DET) & (reached == 1)).tolist():
                found = self._tables(s, *values)
                if found is None:
                    return None
                tables[links.which[s]] = found
        steps = sum(found.steps for found in tables if found is not None)
        return Ready(codes.copy(), choices, lay_out(tables), steps)

    def _values(self, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """The values of all nodes as scaled numbers m · 2^(256·e); None if a determinant is not accurate enough."""
        program = self.program
        m, e = np.zeros(program.slots), np.zeros(program.slots, np.int64)
        flat = padded(codes)
        for begin, end, det in program.segments():
            walk(instructions_of(program), Scaled(self._scaled, codes, m, e), begin, end)
            if det is not None and det.op == DET:  # no sample visits a magnitude
                value = self._determinant(det, flat, m, e)
                if value is None:
                    return None
                m[det.target], e[det.target] = value
        return m, e

    def _determinant(
        self, det: DetInstruction, flat: np.ndarray, m: np.ndarray, e: np.ndarray
    ) -> tuple[float, int] | None:
        if not self._valued[det.target]:
            return 1.0, 0
        staged = self.float64.staged
        assert staged is not None
        error, wanted = np.zeros(1), budget.of_determinant(_RTOL)
        staged.dets.refine(wanted)
        value = scaled_determinant(
            staged.dets.layout, np.int64(det.det), det.slots, (flat, 0), wanted, (m, e), error
        )  # fmt: skip
        return value if error[0] <= _RTOL else None

    def _tables(self, s: int, m: np.ndarray, e: np.ndarray) -> Tables | None:
        """The tables of the determinant at node s; None if its odds are out of range."""
        _, first, left, right, which = self.nodes.links
        f, y = left[first[s] : first[s + 1]], right[first[s] : first[s + 1]]
        inside, outside = m[y] == 0.0, m[f] == 0.0
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            phi = np.ldexp(m[f] / m[y], (np.clip(e[f] - e[y], -4, 4) * RADIX).astype(np.int32))
        phi[inside | outside] = 0.0
        certain = inside | outside
        if (inside & outside).any() or not ((phi < _MOST_ODDS) & (phi > 1.0 / _MOST_ODDS))[~certain].all():
            return None
        return self.sets[which[s]].prepare(phi, inside)

    def __repr__(self) -> str:
        names = sorted({one.name for one in self.sets})
        dets = f", determinants by {' and '.join(names)}" if names else ""
        return f"<TopDown: {self.program.slots} nodes{dets}>"


def find_top_down(float64: Float64) -> TopDown | None:
    """The sampler of a homogenized program; None if a number is negative, or a determinant may be."""
    program = float64.program
    if min(program.numbers, default=0) < 0 or any(a < 0 or b < 0 for a, b in program.leaf_numbers):
        return None
    sets = [find_set_sampler(structure) for structure in program.structures]
    found = [one for one in sets if one is not None]
    return TopDown(float64, found) if len(found) == len(sets) else None


def find_nodes(program: Program, constants: Constants) -> Nodes:
    """The nodes of a program that shares no slots. (Those that hold magnitudes are never visited by a sample.)"""
    program, terms = program.expect(*LOWERED), terms_of(program, choices=True)
    order = np.argsort(terms.of, kind="stable")
    left, right, number = terms.x[order], terms.y[order], terms.weight[order]
    kind, which = np.full(program.slots, LEAF, np.uint8), np.full(program.slots, -1, np.int32)
    visited = program.op != DETMAG
    kind[program.target[visited]] = program.op[visited]
    slots, leaf = program.leaves
    which[slots] = program.leaf_variable[leaf]
    for det in program.dets:
        which[det.target] = det.det
    weighted = number >= 0
    weight, weight_exponent = np.zeros(len(number)), np.zeros(len(number), np.int64)
    weight[weighted] = constants.weights[number[weighted]]
    weight_exponent[weighted] = constants.weight_exponents[number[weighted]]
    table, table_exponent = np.zeros((program.slots, 2)), np.zeros((program.slots, 2), np.int64)
    table[slots], table_exponent[slots] = constants.leaf_table[leaf, :2], constants.leaf_exponents[leaf, :2]
    first = starts(np.bincount(terms.of, minlength=program.slots))
    links = Links(kind, first, left.astype(np.int32), right.astype(np.int32), which)
    return Nodes(links, Numbers(weight, weight_exponent, table, table_exponent))
