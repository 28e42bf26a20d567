"""Programs with determinants in float64: planning, scaling and certificates.

A `Staged` program runs in two parts, by `run_staged` of `kernels/staged`: the head, which needs no determinant, in the
fast form, and then the tail. Determinants are scaled by powers of two to stay in the range of doubles.
`evaluate/direct` makes and runs it.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from pgcc.certify import budget
from pgcc.certify.certificate import MOST_UNITS, Analysis, Certificate, log_determinant_bound
from pgcc.certify.kernels.analysis import ENDLESS, State, nothing_known
from pgcc.determinants.forms import FloatDeterminant, FloatDeterminants
from pgcc.determinants.kernels import staged as kernels
from pgcc.determinants.kernels.observed import PADDING
from pgcc.determinants.kernels.staged import run_staged, run_tail
from pgcc.errors import PgccError
from pgcc.ir.numbers import add
from pgcc.locks import cached_property
from pgcc.program.program import DET, DETMAG, LEAF, NAMES, SUM, TIMES, DetInstruction, Program
from pgcc.program.reachability import needed_slots
from pgcc.program.split import split_at_determinants
from pgcc.rings.float64.kernels.interpreter import FloatProgram
from pgcc.rings.float64.kernels.packed_evidence import STEP, Rows
from pgcc.rings.float64.loop import condensed_program, new_block, uncondensed_program

# The relative error to aim at, while a program is planned, in determinants below other determinants.
_PLANNING_ERROR = 1e-11
# The logarithm of the largest factor by which the bound on a determinant may exceed its value where nothing is
# observed.
_LEEWAY = 30.0
# The smallest normal number, below which weights have lost digits; and an exponent with which every weight underflows.
_SMALLEST, _FAR = 2.0**-1022, 4000


class Staged:
    """A program whose determinants are computed for blocks of rows, between stretches of float64 instructions.

    A determinant may be 10⁷⁰⁰ although the probabilities are ordinary numbers. Each is divided by a power of two that
    brings its largest value near 1, and the weights of the sums above it compensate for that.

    Parameters
    ----------
    program : Program
        As `lower` makes it.
    """

    def __init__(self, program: Program):
        self.structures = program.structures
        self.dets = self._plan(program)
        self.degree = self._degrees(program)
        below = needed_slots(program, np.concatenate([np.zeros(0, np.int64), *(det.slots for det in program.dets)]))
        exponents = np.array([e for _, e, _ in self._totals], np.int64)
        self.shift = np.where([bool(below[det.target]) for det in program.dets], 0, exponents)
        weights, self.exponent = _shifted_weights(program, self.shift)
        self.unscheduled = replace(program, weights=weights)
        # Variables that only determinants read are read straight from the evidence.
        unread = _unread_leaves(program, [one.columns is not None for one in self.dets.each])
        self.head, self.program = split_at_determinants(self.unscheduled, unread)

    def _plan(self, program: Program) -> FloatDeterminants:
        """Every determinant, with the values of its children, in this very arithmetic, where nothing is observed."""
        each: list[FloatDeterminant] = []
        free = Rows(padded(np.full(program.n_variables, -1, np.int8)), program.n_variables)
        block, unknown = new_block(None, program.slots, program.n_variables, STEP), np.zeros(STEP, bool)
        block.columns[:] = 255
        work = block.work
        work[:] = 0.0
        begin = 0
        for d, det in enumerate(program.dets):
            unscaled = kernels.Determinants(
                FloatDeterminants(each).layout, np.zeros(d, np.int64), np.zeros(d), _PLANNING_ERROR
            )
            run_tail(uncondensed_program(program), begin, det.place, unscaled, free, 0, block, unknown)
            leaves = leaves_of_variables(program, det)
            columns = None if leaves is None else program.leaf_variable[leaves].astype(np.int64)
            each.append(FloatDeterminant(self.structures[d], work[det.inside * STEP], columns, program.n_variables))
            begin = det.place
        return FloatDeterminants(each)

    def _degrees(self, program: Program) -> np.ndarray:
        """The factor by which relative errors of the children are multiplied in a determinant; inf where it is unknown.

        Without negative coefficients, it is the largest number of children in a set. Exact children have no error.
        """
        exact, binary = _exact_values(program)
        degree = np.empty(len(program.dets))
        for d, det in enumerate(program.dets):
            structure = self.structures[d]
            if not binary[det.outside].all():
                degree[d] = math.inf
            elif exact[det.inside].all():
                degree[d] = 1.0
            else:
                degree[d] = 1.0 + min(structure.rank, len(det.inside)) if structure.nonnegative else math.inf
        return degree

    @property
    def _totals(self) -> list[tuple[float, int, float]]:
        return [one.total for one in self.dets.each]

    @cached_property
    def certificate(self) -> Certificate:
        """The certificate of the head and then the tail, with determinants scaled as they are."""
        analysis = Analysis(self.program.slots, _Bounds(self)).run_condensed(self.head).run(self.program)
        return analysis.certificate([self.program.value], [self.program.magnitude])

    def analysis(self, program: Program) -> Analysis:
        """The error analysis of another program with the same determinants, in which no two values share a slot."""
        return Analysis(program.slots, _Bounds(self)).run(program)

    def run(self, rtol: float, evidence: np.ndarray, lanes: int) -> tuple[np.ndarray, np.ndarray]:
        """Value and, if signed, magnitude of every row, and in which rows float64 cannot compute a determinant.

        The results are padded to whole blocks. Bases FREE that would be cheaper for some row are computed on the way.
        """
        program, rows = self.program, -(-len(evidence) // lanes) * lanes
        roots = np.array([program.value, program.magnitude] if program.signed else [program.value])
        out, unknown = np.empty((len(roots), rows)), np.empty(rows, bool)
        variables, wanted = evidence.shape[1], budget.of_determinant(rtol)
        flat, block = Rows(padded(evidence), variables), new_block(self.head, program.slots, variables, lanes)
        self.dets.refine(wanted)
        done, waits = 0, True
        while done < rows // lanes:
            dets = self.determinants(wanted, waits)
            done = run_staged.call_alike(*self._parts, dets, flat, done, lanes, block, (roots, out, unknown))
            if done < rows // lanes:
                self.dets.find_free_bases()
                waits = self.dets.layout is not dets.layout  # another thread may have found them; or there are none
        return out, unknown

    def determinants(self, wanted: float, waits: bool = False) -> kernels.Determinants:
        """The determinants for the kernels, with the relative error to aim at."""
        return kernels.Determinants(self.dets.layout, self.shift, self.degree, wanted, waits)

    @cached_property
    def _parts(self) -> tuple[FloatProgram, FloatProgram]:
        """Head and tail as the interpreter reads them."""
        return condensed_program(self.head, self.unscheduled.n_variables), uncondensed_program(self.program)


class _Bounds:
    """Bounds on the determinants of a staged program, for its certificate."""

    def __init__(self, staged: Staged):
        self.each, self.shift, self.degree = staged.dets.each, staged.shift, staged.degree

    def children(self, d: int, values: State) -> State:
        """The state of the children of determinant d; variables are read from the evidence, not from their slots."""
        one = self.each[d]
        if one.columns is None:
            return values
        found = nothing_known(2 * len(one.phi))
        found.rounds[:] = 2.0
        found.high[:] = found.low[:] = np.log(np.concatenate([one.phi, np.ones(len(one.phi))]))
        return found

    def log_bound(self, d: int, children: State) -> float:
        """The logarithm of an upper bound; without negative coefficients, the value where nothing is observed."""
        one, k = self.each[d], len(children.high) // 2
        bound = ENDLESS
        if self.is_positive(d, children):
            bound = self._log_total(one, children)
        if bound == ENDLESS:
            bound = log_determinant_bound(one.structure, children.high[:k], children.high[k:])
        return bound - float(self.shift[d]) * math.log(2.0)

    def is_positive(self, d: int, children: State) -> bool:
        """Whether determinant d is never negative."""
        return self.each[d].structure.nonnegative and bool(children.positive.all())

    def _log_total(self, one: FloatDeterminant, children: State) -> float:
        """The bound from `total`, where the children are φ and 1: D is homogeneous of degree k in all of them."""
        mantissa, exponent, off = one.total
        k = len(one.phi)
        with np.errstate(divide="ignore", invalid="ignore"):
            more = children.high - np.log(np.concatenate([one.phi, np.ones(k)]))
        growth = float(np.nan_to_num(more, nan=0.0, posinf=np.inf, neginf=0.0).max(initial=0.0))  # NaN: 0/0
        if not off < 1.0 or mantissa == 0.0 or growth * k > _LEEWAY:
            return ENDLESS
        return math.log(abs(mantissa)) + exponent * math.log(2.0) - math.log1p(-off) + growth * k

    def log_units(self, d: int) -> float:
        """The logarithm of a bound on the units of roundings in a magnitude: see `run_tail`."""
        degree = float(self.degree[d])
        return math.log(MOST_UNITS + (degree if degree < math.inf else 0.0))  # if inf, magnitudes are infinite anyway


def padded(codes: np.ndarray) -> np.ndarray:
    """Rows of int8 codes as the kernels of determinants read them: flat, followed by PADDING bytes."""
    flat = np.zeros(codes.size + PADDING, np.uint8)
    flat[:-PADDING] = codes.reshape(-1).view(np.uint8)
    return flat


def _exact_values(program: Program) -> tuple[np.ndarray, np.ndarray]:
    """Which slots hold exact values in doubles, and which hold only 0 or 1; no two values may share a slot."""
    exact, binary = np.zeros(program.slots, bool), np.zeros(program.slots, bool)
    for i in np.flatnonzero(np.isin(program.op, (LEAF, TIMES))).tolist():  # all others may round
        slots, at = program.args[program.start[i] : program.start[i + 1]], program.target[i]
        if program.op[i] == TIMES:
            exact[at] = binary[at] = binary[slots].all()
        else:
            a, b = program.leaf_numbers[slots[0]]
            table = program.leaf_table[slots[0]].tolist()
            exact[at] = table == [a, b, add(a, b)]
            binary[at] = exact[at] and {*table} <= {0.0, 1.0}
    return exact, binary


def leaves_of_variables(program: Program, det: DetInstruction) -> np.ndarray | None:
    """The leaves c_i·z_i, c_i > 0, of distinct variables, that are its children, with complements ȳ_i; or None."""
    leaf = np.full(program.slots, -1)
    slots, numbers = program.leaves
    leaf[slots] = numbers
    f, y = leaf[det.inside], leaf[det.outside]
    if (f < 0).any() or (y < 0).any():
        return None
    columns = program.leaf_variable[f]
    if (columns < 0).any() or len(np.unique(columns)) < len(columns) or (program.leaf_variable[y] != columns).any():
        return None
    pairs, one = program.leaf_numbers, program.leaf_table[f, 1]
    if not ((one > 2.0**-960) & (one < 2.0**960)).all():
        return None
    # compare the exact numbers: as doubles, z + 10⁻⁴⁰⁰ would be the variable z
    if any(pairs[i][0] != 0 for i in f.tolist()) or any(pairs[i] != (1, 0) for i in y.tolist()):
        return None
    return f


def _unread_leaves(program: Program, of_variables: list[bool]) -> np.ndarray:
    """Which instructions are leaves that only determinants of variables have as arguments.

    of_variables : by determinant, whether all its children are variables, which it reads from the evidence.
    """
    reads_slots = np.ones(program.instructions, bool)
    reads_slots[[det.place for det in program.dets if of_variables[det.det]]] = False
    others = program.select(reads_slots)
    read = np.zeros(program.slots, bool)
    read[others.args[others.is_slot]] = True
    read[[program.value, program.magnitude]] = True
    return (program.op == LEAF) & ~read[program.target]


def _shifted_weights(program: Program, shift: np.ndarray) -> tuple[np.ndarray, int]:
    """The weights if determinant d is divided by 2^shift[d], and the exponent by which the root is then divided."""
    weights = program.weights.copy()
    if not shift.any():
        return weights, 0
    power = np.zeros(program.slots, np.int64)
    for i in range(program.instructions):
        first, last, at, kind = program.start[i], program.start[i + 1], program.target[i], program.op[i]
        if kind in (DET, DETMAG):
            power[at] = shift[program.args[first]]
        elif kind == TIMES:
            power[at] = power[program.args[first:last]].sum()
        elif kind == SUM:
            values, pairs = program.terms(i)
            terms = np.append(power[values], power[pairs].sum(axis=1))
            power[at] = terms.max()
            span = slice(program.first_weight[i], program.first_weight[i + 1])
            shifted = np.ldexp(weights[span], np.maximum(terms - power[at], -_FAR))
            lost = (np.abs(shifted) < _SMALLEST) & (weights[span] != 0.0)
            weights[span] = np.where(lost, np.nan, shifted)  # rows with NaN are computed over scaled numbers
        elif kind != LEAF:
            raise PgccError(f"internal error: there is no rule to scale {NAMES[kind]}; please report it")
    return weights, int(power[program.value])
