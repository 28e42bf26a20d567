"""Homogenizing, lowering and scheduling: the same polynomial, in fewer slots."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from how_many import some
from hypothesis import given, settings
from hypothesis import strategies as st
from well_formed import verify

import pgcc
from pgcc.ir.circuit import Circuit
from pgcc.ir.interpret import evaluate, probability
from pgcc.ir.node import ONE, Node, Op, const, det, product, var, weighted_sum
from pgcc.passes.homogenize import aligned_blocks, homogenize
from pgcc.program.lower import affine_forms, lower, lower_with_nodes
from pgcc.program.program import DET, DETMAG, LEAF, SUM, TIMES, Program
from pgcc.program.schedule import schedule
from pgcc.testing import circuits, random_circuit, random_det

LITERALS = {1: (1, 0), 0: (0, 1), -1: (1, 1)}  # z and ȳ of a variable observed 1, observed 0, free


def at_literals(circuit: Circuit, codes: dict[str, int]) -> Fraction:
    """A homogenized circuit at numbers: complements are renamed to variables of their own."""
    renamed = circuit.rewrite(lambda node: var(f"~{node.name}") if node.is_complement else node)
    values = {}
    for name in circuit.variables:
        z, y = LITERALS[codes.get(name, -1)]
        values[name], values[f"~{name}"] = Fraction(z), Fraction(y)
    return evaluate(Circuit(renamed), values)


def is_smooth_in_literals(circuit: Circuit) -> bool:
    return circuit.facts.smooth and circuit.facts.decomposable


class TestHomogenize:
    def test_nodes_that_become_equal_are_one(self) -> None:
        z, y, w = var("z"), var("z", complement=True), var("w")
        with_one, with_complement = weighted_sum((2, 3), (z, ONE)), weighted_sum((2, 3), (z, y))
        hom = homogenize(Circuit(weighted_sum((1, 5), (product((with_one, w)), with_complement))))
        assert len(set(hom.order)) == len(hom.order) == len(hom._links) == len(hom.scopes.of)
        assert is_smooth_in_literals(hom)
        for codes in itertools.product([1, 0, -1], repeat=2):
            named = dict(zip(hom.variables, codes, strict=True))
            zs, ws = named["z"], named["w"]
            leaf = (2 if zs != 0 else 0) + (3 if zs != 1 else 0)
            assert at_literals(hom, named) == leaf * (ws != 0) + 5 * leaf * (ws != 1)

    @pytest.mark.slow
    @settings(max_examples=some(150), deadline=None)
    @given(st.data())
    def test_one_evaluation_at_numbers_is_any_marginal(self, data: st.DataObject) -> None:
        circuit = data.draw(circuits(max_variables=4, decomposable=True))
        hom = verify(homogenize(circuit))
        assert is_smooth_in_literals(hom)
        for codes in itertools.product([1, 0, -1], repeat=len(circuit.variables)):
            named = dict(zip(circuit.variables, codes, strict=True))
            seen = {v: c for v, c in named.items() if c >= 0}
            assert at_literals(hom, named) == probability(circuit, seen)

    @pytest.mark.slow
    def test_determinants(self) -> None:
        rng = np.random.default_rng(1)
        for seed in range(25):
            circuit = random_det(seed, 4, complements=bool(seed % 2))
            if not circuit.facts.decomposable:
                continue
            hom = homogenize(circuit)
            for _ in range(12):
                named = dict(zip(circuit.variables, rng.choice([1, 0, -1], 4).tolist(), strict=True))
                seen = {v: c for v, c in named.items() if c >= 0}
                assert at_literals(hom, named) == probability(circuit, seen)

    def test_keeps_the_polynomial_where_complements_are_one(self) -> None:
        circuit = random_circuit(3, 6, size=25)
        point = {v: Fraction(i + 2, 3) for i, v in enumerate(circuit.variables)}
        assert evaluate(homogenize(circuit), point) == evaluate(circuit, point)

    def test_refuses_what_is_not_decomposable(self) -> None:
        with pytest.raises(pgcc.CircuitError, match="'a'"):
            homogenize(pgcc.parse("(a + 1)*(a + b)"))

    def test_padding_is_shared_never_one_per_edge(self) -> None:
        n = 256
        z = [var(f"z{i}") for i in range(n)]
        # Sum_i z_i: child i misses all the others, n(n − 1) factors if each edge had its own
        circuit = Circuit(weighted_sum([Fraction(1, n)] * n, z))
        hom = homogenize(circuit)
        assert hom.edges < 30 * n
        assert pgcc.compile(circuit).prob({"z7": 1}) == 1 / n

    @given(st.integers(0, 5000), st.integers(0, 5000))
    def test_aligned_blocks_cover_the_interval(self, a: int, b: int) -> None:
        start, stop = sorted((a, b))
        blocks = aligned_blocks(start, stop)
        covered = [i for k, level in blocks for i in range(k << level, (k + 1) << level)]
        assert covered == list(range(start, stop))
        assert len(blocks) <= 2 * (stop - start).bit_length() + 1


def run_exactly(program: Program, codes: np.ndarray) -> tuple[Fraction, Fraction]:
    """A program over Fractions, by the book: the value and the magnitude at the roots (no determinants)."""
    slots: list[Fraction] = [Fraction(0)] * program.slots
    for i, op in enumerate(program.op.tolist()):
        args = program.args[program.start[i] : program.start[i + 1]].tolist()
        weights = [Fraction(w) for w in program.numbers[program.first_weight[i] : program.first_weight[i + 1]]]
        if op == LEAF:
            v = program.leaf_variable[args[0]]
            a, b = map(Fraction, program.leaf_numbers[args[0]])
            value = [a, b, a + b][2 if v < 0 else codes[v]]
        elif op == TIMES:
            value = Fraction(1)
            for x in args:
                value *= slots[x]
        else:
            assert op == SUM
            values, pairs = program.terms(i)
            terms = [slots[x] for x in values] + [slots[x] * slots[y] for x, y in pairs]
            value = sum((w * t for w, t in zip(weights, terms, strict=True)), Fraction(0))
        slots[program.target[i]] = value
    return slots[program.value], slots[program.magnitude]


class TestProgram:
    @settings(max_examples=some(150), deadline=None)
    @given(st.data())
    def test_is_the_circuit_before_and_after_sharing_slots(self, data: st.DataObject) -> None:
        circuit = data.draw(circuits(max_variables=5, decomposable=True)).simplify()
        program = lower(homogenize(circuit))
        shared = schedule(program)
        assert shared.slots <= program.slots
        codes = np.array(data.draw(st.lists(st.sampled_from([1, 0, -1]), min_size=5, max_size=5)))
        codes = codes[: len(circuit.variables)]
        seen = {v: c for v, c in zip(circuit.variables, codes.tolist(), strict=True) if c >= 0}
        value, magnitude = run_exactly(program, codes)
        assert value == probability(circuit, seen)
        assert magnitude >= abs(value)
        assert run_exactly(shared, codes) == (value, magnitude)
        assert program.signed or value == magnitude

    def test_monotone_circuits_have_no_second_root(self) -> None:
        assert not lower(homogenize(pgcc.parse("0.5*a*b + 0.25*a + 0.25"))).signed
        assert lower(homogenize(pgcc.parse("1.5*a*b - 0.5"))).signed

    def test_a_chain_needs_few_slots(self) -> None:
        node: Node = var("z0")
        for i in range(1, 2000):
            node = weighted_sum((0.5, 0.25), (product((node, var(f"z{i}"))), node))
        program = lower(homogenize(Circuit(node)))
        assert program.slots > 4000
        assert schedule(program).slots < 12

    def test_products_with_one_parent_take_no_slot(self) -> None:
        a, b, c, d = (var(x) for x in "abcd")
        program = lower(Circuit(weighted_sum((1, 2), (product((a, b)), product((c, d))))))
        assert program.op.tolist().count(SUM) == 1
        assert program.op.tolist().count(TIMES) == 0

    def test_determinants_come_with_a_magnitude(self) -> None:
        program = lower(homogenize(random_det(0, 3, kind="psd", alone=True)))
        assert program.op.tolist().count(DET) == program.op.tolist().count(DETMAG) == 1
        assert program.has_det

    def test_a_determinant_may_have_no_children(self) -> None:
        program = lower(Circuit(det([[2, 1], [1, 2]], [[], []], [[], []], [])))
        assert program.op.tolist() == [DET, DETMAG]

    def test_every_instruction_knows_its_node(self) -> None:
        circuit = homogenize(random_circuit(5, 6, size=30).simplify())
        program, nodes = lower_with_nodes(circuit)
        affine = {circuit.order[i] for i in affine_forms(circuit._flat, circuit.variables)}
        for op, node in zip(program.op.tolist(), nodes, strict=True):
            if op == SUM:
                assert node.op is Op.SUM
            elif op == TIMES:
                assert node.op is Op.PRODUCT
            else:
                assert node in affine

    def test_affine_leaves(self) -> None:
        def form(node: Node) -> tuple | None:
            circuit = Circuit(node, ["w", "z"])
            return affine_forms(circuit._flat, circuit.variables).get(len(circuit.order) - 1)

        z, y = var("z"), var("z", complement=True)
        assert form(z) == (1, 0, 1)
        assert form(y) == (1, 1, 0)
        assert form(const(3)) == (-1, 3, 0)
        assert form(product(())) == (-1, 1, 0)
        assert form(weighted_sum((2, 3), (z, ONE))) == (1, 3, 2)
        assert form(weighted_sum((2, 3, 4), (z, y, ONE))) == (1, 7, 2)
        assert form(weighted_sum((2, 3), (z, var("w")))) is None
        assert form(product((z, ONE))) is None
