"""Code is selected, renamed and joined; and an instruction that nobody knows is an error, not a wrong number."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import pgcc
from pgcc.determinants.kernels.picking import SAMPLER, Sets, pick_children
from pgcc.determinants.staged import _shifted_weights
from pgcc.errors import PgccError
from pgcc.evaluate.differentiation import Differentiator
from pgcc.evaluate.direct import Float64, Scaled
from pgcc.kernels.walk import instructions_of
from pgcc.passes.homogenize import homogenize
from pgcc.program.lower import lower
from pgcc.program.parameters import parametrize
from pgcc.program.program import DET, DETBAR, DETERMINANTS, DETIN, DETMAG, LEAF, NAMES, NUMBERED, PAIR, Program
from pgcc.program.reachability import needed_slots, slots_of_determinants
from pgcc.program.reverse import adjoints, reverse
from pgcc.rings.kernels.counting import Dets, plan_polynomials, run_polynomials
from pgcc.rings.kernels.series import find_slack
from pgcc.testing import random_circuit


def programs() -> list[Program]:
    """Programs with sums, products, magnitudes and determinants."""
    dpp = pgcc.dpp(L=[[2, 1], [1, 3]], names=["u", "v"])
    circuits = [random_circuit(seed, 6, size=20) for seed in range(8)]
    return [lower(homogenize(c)) for c in [*circuits, dpp, dpp * pgcc.parse("0.5*a*b - 0.1*a + 1")]]


def listing(program: Program, i: int) -> tuple[int, int, list[int], list[float], list]:
    """Instruction i: operation, target, arguments, weights, numbers."""
    args = program.args[program.start[i] : program.start[i + 1]].tolist()
    weights = slice(int(program.first_weight[i]), int(program.first_weight[i + 1]))
    return (
        int(program.op[i]),
        int(program.target[i]),
        args,
        program.weights[weights].tolist(),
        program.numbers[weights],
    )


@pytest.mark.parametrize("program", programs())
def test_selected_instructions_are_those_of_the_program(program: Program) -> None:
    keep = np.random.default_rng(program.slots).random(program.instructions) < 0.5
    some = program.select(keep)
    assert some.instructions == keep.sum()
    for k, i in enumerate(np.flatnonzero(keep).tolist()):
        assert listing(some, k) == listing(program, i)


@pytest.mark.parametrize("program", programs())
def test_the_two_parts_of_a_program_are_the_program(program: Program) -> None:
    first = np.arange(program.instructions) < program.instructions // 2
    joined = program.select(first).followed_by(program.select(~first))
    for name, column in program.select(first | ~first).columns.items():
        assert np.array_equal(column, joined.columns[name]), name


@pytest.mark.parametrize("program", programs())
def test_renamed_slots(program: Program) -> None:
    new = 3 + np.random.default_rng(1).permutation(program.slots)
    other = program.renamed(new, program.slots + 3)
    assert (other.slots, other.value, other.magnitude) == (
        program.slots + 3,
        new[program.value],
        new[program.magnitude],
    )
    for i in range(program.instructions):
        op, target, args, *weights = listing(program, i)
        head, slots = (args[:1], args[1:]) if op in NUMBERED else ([], args)
        assert listing(other, i) == (op, new[target], [*head, *new[slots].tolist()], *weights)
    back = np.empty(program.slots + 3, np.int64)
    back[new] = np.arange(program.slots)
    for name, column in other.renamed(back, program.slots).columns.items():
        assert np.array_equal(column, program.columns[name]), name


@pytest.mark.parametrize("program", programs())
def test_dependence(program: Program) -> None:
    below: dict[int, set[int]] = {}
    for i in range(program.instructions):
        op, target, args, *_ = listing(program, i)
        slots = args[1:] if op in NUMBERED else args
        below[target] = {target}.union(*(below[s] for s in slots))
    for slot, needed in below.items():
        assert set(np.flatnonzero(needed_slots(program, [slot])).tolist()) == needed
    dets = {one.target for one in program.det_instructions}
    assert np.flatnonzero(slots_of_determinants(program)).tolist() == [s for s in sorted(below) if below[s] & dets]


def test_segments_and_determinants_cover_a_program() -> None:
    for program in [*programs(), reverse(programs()[-2])]:
        seen, dets = [], []
        for begin, end, det in program.segments():
            assert not set(program.op[begin:end].tolist()) & set(DETERMINANTS)
            seen += range(begin, end)
            if det is not None:
                seen.append(det.place)
                dets.append(det)
                op, target, args, *_ = listing(program, det.place)
                assert (det.op, det.target, [det.det, *det.slots.tolist()]) == (op, target, args)
                assert [*det.inside.tolist(), *det.outside.tolist()] == det.slots.tolist()
        assert seen == list(range(program.instructions))
        assert dets == program.det_instructions
        assert [det.det for det in program.dets] == list(range(len(program.structures)))


# -- instructions that nobody knows ----------------------------------------------------------------------------------


def with_op(program: Program, old: int, new: int) -> Program:
    """The program with every operation `old` replaced."""
    assert (program.op == old).any()
    return replace(program, op=np.where(program.op == old, new, program.op).astype(np.uint8))


def test_no_degrees_of_an_unknown_instruction() -> None:
    program = lower(pgcc.dpp(L=[[2, 1], [1, 3]]))
    degree, slack = np.ones(program.slots, np.int64), np.zeros(program.slots, np.int64)
    with pytest.raises(ValueError, match="truncated polynomials"):
        find_slack(instructions_of(program), degree, np.array([program.value]), 1, slack)


@pytest.mark.parametrize("op", [DET, DETMAG])
def test_no_counts_of_an_unknown_determinant(op: int) -> None:
    scaled = Scaled(Float64(lower(homogenize(pgcc.dpp(L=[[2, 1], [1, 3]])))))
    program, one = scaled.program, np.ones(1, np.int64)
    codes, counted = np.full(2, -1, np.int8), np.ones(2, bool)
    lengths, most = np.ones(program.instructions, np.int64), np.ones(program.slots, np.int64)
    dets = Dets(one, 0 * one, np.ones(1), 0 * one)
    roots, out = np.array([program.value]), (np.zeros((1, 1)), np.zeros((1, 1), np.int64))

    def run(code: Program) -> None:
        rounds, cuts = np.zeros(program.slots), np.zeros(program.slots, np.int64)
        plan_polynomials(instructions_of(code), scaled.constants, one, codes, counted, lengths, most, rounds, cuts)

    run(program)
    broken = with_op(program, op, DETBAR)
    with pytest.raises(ValueError, match="polynomials do not know"):
        run(broken)
    with pytest.raises(ValueError, match="polynomials do not know"):
        run_polynomials(instructions_of(broken), scaled.constants, dets, codes, lengths, most, 0.0, roots, *out)


def test_no_sets_of_an_unknown_sampler() -> None:
    plan = np.zeros(1, SAMPLER)
    plan["kind"] = 7
    with pytest.raises(ValueError, match="no sampler of this kind"):
        pick_children(Sets(plan, np.zeros(1, np.int64), np.zeros(1)), 0, np.zeros(4, np.uint64), np.zeros(1, np.uint8))


def test_no_scaling_of_an_unknown_instruction() -> None:
    program = lower(homogenize(pgcc.dpp(L=[[2, 1], [1, 3]])))
    for old, new in ((LEAF, PAIR), (DET, DETIN)):
        with pytest.raises(PgccError, match=f"no rule to scale {NAMES[new]}"):
            _shifted_weights(with_op(program, old, new), np.ones(1, np.int64))


def test_no_gradients_of_an_unknown_determinant() -> None:
    program = parametrize(pgcc.dpp(L=[[2, 1], [1, 3]])).program
    scaled = Differentiator(program).scaled
    whole = adjoints(program).program
    det = with_op(whole, DETBAR, DETIN).det_instructions[-1]
    with pytest.raises(PgccError, match="no rule to differentiate DETIN"):
        scaled._run_determinant(det, {}, np.zeros((1, whole.slots)), np.zeros((1, whole.slots), np.int64))
