"""Condensed programs: the same polynomial in fewer instructions, and the loop that runs them."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from how_many import some
from hypothesis import given, settings
from hypothesis import strategies as st

import pgcc
from pgcc.certify.kernels.bounds import relative_bound
from pgcc.evaluate.direct import Float64
from pgcc.ir.circuit import Circuit
from pgcc.ir.node import ONE, product, var, weighted_sum
from pgcc.passes.homogenize import homogenize
from pgcc.program.condense import Condensed, _Condenser, condense, state_numbers, states
from pgcc.program.lower import lower
from pgcc.program.program import LEAF, LOOKUP, MOST_VARIABLES, PAIR, SUM, TIMES, Code, Program
from pgcc.program.reverse import result_slots, reverse
from pgcc.program.table_choice import Scope, ValueScopes, _Work, worth_tables
from pgcc.rings.float64.kernels.interpreter import PairTables
from pgcc.rings.float64.kernels.packed_evidence import Rows, are_codes, read_block
from pgcc.rings.float64.kernels.rows import Answer, certify_block
from pgcc.rings.float64.loop import Loop, new_block, uncondensed_program
from pgcc.testing import circuits, random_circuit

CODES = (0, 1, -1)
WORTH = "pgcc.program.condense.worth_tables"


def no_scopes(program: Program, kept: np.ndarray, scopes: ValueScopes) -> set[Scope]:
    return set()


def all_scopes(program: Program, kept: np.ndarray, scopes: ValueScopes) -> set[Scope]:
    return {scope for scope in _Work(program, kept, scopes).read if len(scope) > 2}


def run(
    program: Code,
    codes: dict[int, int],
    table: list[list[Fraction]] | None = None,
    wide: list[Fraction] | None = None,
) -> list[Fraction]:
    """All slots of a program at the end, its doubles taken exactly.

    table, wide : of a condensed one, its tables of two variables, and what LOOKUPs find.
    """
    slots = [Fraction(0)] * program.slots
    for i, op in enumerate(program.op.tolist()):
        args = program.args[program.start[i] : program.start[i + 1]].tolist()
        weights = [Fraction(w) for w in program.weights[program.first_weight[i] : program.first_weight[i + 1]].tolist()]
        if op == PAIR:
            assert isinstance(program, Condensed)
            assert table is not None
            value = table[args[0]][codes[int(program.joint[args[0]])]]
        elif op == LOOKUP:
            assert wide is not None
            value = wide[args[0]]
        elif op == LEAF:
            assert isinstance(program, Program)
            value = Fraction(program.leaf_table[args[0]][codes.get(int(program.leaf_variable[args[0]]), -1)])
        elif op == TIMES:
            value = math.prod((slots[x] for x in args), start=Fraction(1))
        else:
            assert op == SUM
            values, pairs = program.terms(i)
            terms = [slots[x] for x in values] + [slots[x] * slots[y] for x, y in pairs]
            value = sum((w * t for w, t in zip(weights, terms, strict=True)), Fraction(0))
        slots[program.target[i]] = value
    return slots


def tables_of(condensed: Condensed) -> list[list[Fraction]]:
    """Entry 4·i + j of every table."""
    entries = [run(condensed.tables.program, {0: i, 1: j}) for i in (0, 1, -1, -1) for j in (0, 1, -1, -1)]
    return [[entry[root] for entry in entries] for root in condensed.tables.roots.tolist()]


def wide_entries(condensed: Condensed, codes: tuple[int, ...]) -> list[Fraction]:
    """What every LOOKUP finds at one row of codes."""
    found, sizes = [], [one.variables for one in condensed.wide for _ in one.roots]
    for number, root in enumerate(root for one in condensed.wide for root in one.roots.tolist()):
        variables = condensed.scopes[condensed.wide_scope[number]][: sizes[number]].tolist()
        program = next(one.program for one in condensed.wide if one.variables == sizes[number])
        found.append(run(program, {i: codes[v] for i, v in enumerate(variables)})[root])
    return found


def condensed_values(condensed: Condensed, table: list[list[Fraction]], codes: tuple[int, ...]) -> list[Fraction]:
    """What is kept, at one row of codes."""
    joint = {p: 4 * (codes[x] & 3) + (codes[y] & 3) for p, (x, y) in enumerate(condensed.pairs.tolist())}
    slots = run(condensed, joint, table, wide_entries(condensed, codes))
    return [slots[x] for x in condensed.kept.tolist()]


class TestCondense:
    @settings(max_examples=some(60), deadline=None)
    @given(st.data())
    def test_is_the_same_polynomial(self, data: st.DataObject) -> None:
        circuit = data.draw(circuits(max_variables=5, decomposable=True)).simplify()
        program = lower(homogenize(circuit))
        condensed = condense(program, [program.value, program.magnitude])
        assert condensed.slots <= program.slots
        table = tables_of(condensed)
        for codes in data.draw(st.lists(st.tuples(*[st.sampled_from(CODES)] * 5), min_size=5, max_size=5)):
            slots = run(program, dict(enumerate(codes)))
            assert condensed_values(condensed, table, codes) == [slots[program.value], slots[program.magnitude]]

    @pytest.mark.parametrize("seed", range(6))
    def test_keeps_whatever_is_asked_for(self, seed: int) -> None:
        circuit = random_circuit(seed, 6, size=30, negative=False)
        program = reverse(lower(homogenize(circuit.simplify())))
        kept = result_slots(program).tolist()
        condensed = condense(program, kept)
        table = tables_of(condensed)
        for codes in itertools.islice(itertools.product(CODES, repeat=6), 0, None, 149):
            slots = run(program, dict(enumerate(codes)))
            assert condensed_values(condensed, table, codes) == [slots[x] for x in kept]

    @pytest.mark.parametrize("which", [0, 1])
    @pytest.mark.parametrize("seed", range(4))
    def test_every_order_is_right(self, seed: int, which: int, monkeypatch: pytest.MonkeyPatch) -> None:
        """As made, and by regions, in which a reverse pass comes the other way round."""
        orders = _Condenser._orders
        monkeypatch.setattr(_Condenser, "_orders", lambda self, values: [orders(self, values)[which]])
        self.test_keeps_whatever_is_asked_for(seed)

    @pytest.mark.parametrize("worth", [False, True])
    @pytest.mark.parametrize("seed", range(3))
    def test_whatever_is_looked_up(self, seed: int, worth: bool, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(WORTH, all_scopes if worth else no_scopes)
        self.test_keeps_whatever_is_asked_for(seed)
        circuit = random_circuit(seed, 9, size=60, negative=False)
        program = lower(homogenize(circuit.simplify()))
        condensed = condense(program, [program.value])
        assert bool(condensed.wide) == worth
        table = tables_of(condensed)
        for codes in itertools.islice(itertools.product(CODES, repeat=9), 0, None, 4001):
            assert condensed_values(condensed, table, codes) == [run(program, dict(enumerate(codes)))[program.value]]

    def test_a_leaf_of_many_terms_is_one_table(self) -> None:
        # what a sum over all subsets of five variables costs, and what looking it up does
        names = [f"x{i}" for i in range(10)]
        rng = np.random.default_rng(0)
        halves = []
        for first in (0, 5):
            monomials = [
                product([var(v) for v, there in zip(names[first:], bits, strict=False) if there])
                for bits in itertools.product((0, 1), repeat=5)
            ]
            halves.append(weighted_sum(rng.random(32).tolist(), monomials))
        program = lower(homogenize(Circuit(product(halves), names)))
        condensed = condense(program, [program.value])
        assert sorted(condensed.op.tolist()) == [TIMES, LOOKUP, LOOKUP]
        assert condensed.scopes[:, :6].tolist() == [[0, 1, 2, 3, 4, -1], [5, 6, 7, 8, 9, -1]]

    def test_tables_are_bounded(self) -> None:
        # 3^7 entries a value: three hundred values of seven variables are half of what may be
        names = [f"x{i}" for i in range(56)]
        rng = np.random.default_rng(0)
        row = []
        for first in range(0, 56, 7):
            leaves = [
                [weighted_sum((p, 1 - p), (var(v), ONE)) for p in rng.random(2)] for v in names[first : first + 7]
            ]
            products = [product(choice) for choice in itertools.product(*leaves)]
            row.append([weighted_sum(rng.random(128).tolist(), products) for _ in range(75)])
        tops = [product([values[i] for values in row]) for i in range(75)]
        program = lower(homogenize(Circuit(weighted_sum([1 / 75] * 75, tops))))
        condensed = condense(program, [program.value])
        entries = sum(len(one.roots) * 3**one.variables for one in condensed.wide)
        assert 0 < entries <= 1 << 20
        assert (condensed.op == SUM).sum() > 75

    @pytest.mark.parametrize("k", range(1, MOST_VARIABLES + 1))
    def test_states_are_numbered(self, k: int) -> None:
        numbers, rows = state_numbers(k), states(k)
        assert len(rows) == 3**k == len({tuple(row) for row in rows.tolist()})
        assert (rows[: 2**k] >= 0).all()
        for number, row in enumerate(rows.tolist()):
            bits = sum((x != 0) << i | (x < 0) << (k + i) for i, x in enumerate(row))
            assert numbers[bits] == number

    def test_two_variables_are_one_table(self) -> None:
        program = lower(homogenize(pgcc.parse("0.4*a*b + 0.3*a + 0.3")))
        condensed = condense(program, [program.value])
        assert condensed.op.tolist() == [PAIR]
        assert condensed.pairs.tolist() == [[0, 1]]
        row = tables_of(condensed)[0]
        assert [float(row[4 * i + j]) for i in (0, 1, 3) for j in (0, 1, 3)] == [
            0.3, 0.0, 0.3, 0.3, 0.4, 0.7, 0.6, 0.4, 1.0
        ]  # fmt: skip

    def test_a_variable_may_be_the_first_of_one_pair_and_the_second_of_another(self) -> None:
        a, b, c, d = (weighted_sum((0.25 + i / 8, 0.5), (var(name), ONE)) for i, name in enumerate("abcd"))
        node = weighted_sum((0.5, 0.5), (product((product((a, b)), product((c, d)))), product((product((b, c)), a, d))))
        program = lower(homogenize(Circuit(node, "abcd")))
        condensed = condense(program, [program.value])
        table = tables_of(condensed)
        for codes in itertools.product(CODES, repeat=4):
            assert condensed_values(condensed, table, codes) == [run(program, dict(enumerate(codes)))[program.value]]

    def test_regions_come_one_after_another(self) -> None:
        # a grid of sums over a balanced tree: in the order of nodes, all regions are alive at once
        rng, width = np.random.default_rng(0), 6
        row = [[weighted_sum((p, 1 - p), (var(f"x{i}"), ONE)) for p in rng.random(width)] for i in range(32)]
        while len(row) > 1:
            row = [
                [
                    weighted_sum(
                        rng.random(3).tolist(),
                        [product((left[i], right[j])) for i, j in rng.integers(0, width, (3, 2))],
                    )
                    for _ in range(width)
                ]
                for left, right in zip(row[::2], row[1::2], strict=True)
            ]
        program = lower(homogenize(Circuit(row[0][0])))
        assert condense(program, [program.value]).slots <= 8 * width


class TestJointCodes:
    @pytest.mark.parametrize("n", [1, 2, 5, 7, 8, 10, 16, 17, 32, 33, 64, 65, 100, 128, 129, 200])
    @pytest.mark.parametrize("count", [1, 8, 9, 70])
    def test_they_are_those_of_the_pairs(self, n: int, count: int) -> None:
        rng, lanes = np.random.default_rng(n), 64
        pairs = rng.integers(0, n, (count, 2)).astype(np.int32)
        program = replace(lower(Circuit(ONE)), n_variables=n)
        code = uncondensed_program(program)._replace(pairs=PairTables(pairs, np.zeros(0, np.int32), np.zeros(0)))
        for rows, first in ((200, 64), (200, 128), (70, 64), (64, 0), (1, 0), (13, 0), (15, 0), (72, 8)):
            evidence = rng.choice(np.array([0, 1, 255], np.uint8), (rows, n))
            there = evidence[np.minimum(first + np.arange(lanes), rows - 1)]
            block = new_block(None, 1, n + count, lanes)
            read_block(code, Rows(evidence.reshape(-1), n), first, lanes, block)
            columns = block.columns.reshape(-1, lanes)
            np.testing.assert_array_equal(columns[:n], there.T)
            np.testing.assert_array_equal(
                columns[n : n + count], (4 * (there[:, pairs[:, 0]] & 3) + (there[:, pairs[:, 1]] & 3)).T
            )


class TestLoop:
    @pytest.mark.parametrize("worth", [False, True])
    @pytest.mark.parametrize("n", [4, 7, 11])
    def test_tables_of_any_width(self, n: int, worth: bool, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(WORTH, all_scopes if worth else no_scopes)
        self.test_a_row_does_not_depend_on_how_rows_are_cut(n)

    @pytest.mark.parametrize("n", [1, 2, 3, 7, 8, 9, 17])
    def test_a_row_does_not_depend_on_how_rows_are_cut(self, n: int) -> None:
        circuit = random_circuit(n, n, size=4 * n)
        program = lower(homogenize(circuit.simplify()))
        loop = Loop(program, [program.value], False)
        rows = np.random.default_rng(n).choice(CODES, size=(600, len(circuit.variables))).astype(np.int8)
        whole = loop.values(rows)[0, :600]
        exact = [run(program, dict(enumerate(row)))[program.value] for row in rows[:20].tolist()]
        np.testing.assert_allclose(whole[:20], [float(x) for x in exact], rtol=1e-12, atol=1e-300)
        for count in (1, 31, 32, 33, 256, 257, 599):
            np.testing.assert_array_equal(loop.values(rows[:count])[0, :count], whole[:count])
            np.testing.assert_array_equal(loop.values(rows[600 - count :])[0, :count], whole[600 - count :])

    def test_a_product_of_one(self) -> None:
        # simplify leaves none, and what follows does not rely on it
        a, b, c = (weighted_sum((0.25 + i / 8, 0.5), (var(name), ONE)) for i, name in enumerate("abc"))
        program = lower(homogenize(Circuit(product((product((a, b, c)),)), "abc")))
        i = int(np.flatnonzero(program.op == TIMES)[-1])
        assert program.target[i] == program.value
        alone = replace(
            program,
            op=np.append(program.op, np.uint8(TIMES)),
            target=np.append(program.target, np.int32(program.slots)),
            start=np.append(program.start, program.start[-1] + 1),
            args=np.append(program.args, np.int32(program.value)),
            first_weight=np.append(program.first_weight, program.first_weight[-1]),
            slots=program.slots + 1,
            value=program.slots,
            magnitude=program.slots,
        )
        rows = np.array(list(itertools.product(CODES, repeat=3)), np.int8)
        for tables in (no_scopes, worth_tables):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(WORTH, tables)
                found, plain = Loop(alone, [alone.value], False), Loop(program, [program.value], False)
                np.testing.assert_array_equal(found.values(rows), plain.values(rows))

    def test_no_variables(self) -> None:
        model = pgcc.compile(pgcc.parse("3/4"), normalize=False)
        assert model.prob() == 0.75
        np.testing.assert_array_equal(model.prob(np.zeros((5, 0))), np.full(5, 0.75))


def certified(value: np.ndarray, magnitude: np.ndarray, *answer: float) -> tuple[bool, np.ndarray]:
    """Whether all are certain enough, and the numbers."""
    size = -(-len(value) // 8) * 8  # the last one repeats
    work = np.array([np.pad(x, (0, size - len(value)), "edge") for x in (value, magnitude)])
    numbers = np.full(3 + len(value), 7.0)
    every = certify_block(work.reshape(-1), 0, size, len(value), Answer(*answer), numbers, 3)
    assert (numbers[:3] == 7.0).all()
    return every, numbers[3:]


def probabilities_by(evaluator: Float64) -> Answer:
    """Values to 1e-9, with a total of 1."""
    return Answer(evaluator.certificate.gamma, evaluator.certificate.floor, 1e-9, 1.0)


class TestCertifyBlock:
    @settings(max_examples=some(200), deadline=None)
    @given(
        st.lists(st.floats(width=64), min_size=1, max_size=20),
        st.sampled_from([1.0, 3.0]),
        st.sampled_from([0.0, 1e-320, 1e-200]),
        st.sampled_from([1e-13, 1e-9]),
        st.sampled_from([0.75, 1e-200, 1e250, 1e-308]),
    )
    def test_writes_only_what_the_bound_allows(
        self, numbers: list[float], factor: float, floor: float, rtol: float, total: float
    ) -> None:
        gamma = 1e-14
        value = np.array(numbers)
        with np.errstate(over="ignore"):
            magnitude = factor * np.abs(value)
        every, out = certified(value, magnitude, gamma, floor, rtol, total)
        assert every == (not np.isnan(out).any())
        for v, m, x in zip(value, magnitude, out, strict=True):
            bound = relative_bound(v, m, gamma, floor)
            if not math.isnan(x):
                assert bound <= rtol
                assert x == v / total
            elif 1e-280 * max(1.0, total) < v < 1e280 * min(1.0, total):
                assert bound > 0.99 * rtol

    @pytest.mark.parametrize("times", [0.99, 1.01])
    def test_up_to_the_bound(self, times: float) -> None:
        """Magnitudes, and floors, that make the bound just less than what is asked for, or just more."""
        rtol, gamma, value = 0.25, 0.01, np.array([1.0, 3e-150, 7e150])
        share = times * rtol / (1.0 + times * rtol)  # error / value, which is times·rtol of value − error
        magnitude = value * share * (1.0 - gamma) / gamma
        assert certified(value, magnitude, gamma, 0.0, rtol, 1.0)[0] == (times < 1.0)
        for v in value.tolist():
            one = np.array([v])
            assert certified(one, one, 1e-15, share * v, rtol, 1.0)[0] == (times < 1.0)

    @pytest.mark.parametrize(("value", "total"), [(1e300, 1e-200), (1e-60, 1e250), (1e-280, 3.0), (1e280, 0.3)])
    def test_quotients_near_the_ends_of_the_range(self, value: float, total: float) -> None:
        number = np.array([value])
        every, out = certified(number, number, 1e-15, 0.0, 1e-9, total)
        sure = 1e-285 < value / total < 1e285
        assert every == sure
        np.testing.assert_array_equal(out, [value / total if sure else math.nan])

    def test_direct_values_are_those_with_bounds(self) -> None:
        for seed in range(10):
            circuit = random_circuit(seed, 7, size=30)
            direct = Float64(lower(homogenize(circuit.simplify())))
            rows = np.random.default_rng(seed).choice(CODES, size=(77, 7)).astype(np.int8)
            values, out = direct.evaluate(rows, 1e-9), np.empty(77)
            left = direct.write_certified(rows, probabilities_by(direct), out)
            here = np.setdiff1d(np.arange(77), left)
            np.testing.assert_array_equal(out[here], values.floats()[here])
            assert (values.bound[here] <= 1e-9).all()
            assert (values.floats()[left] <= 0.0).all()

    @pytest.mark.parametrize("code", [2, -2, 127])
    def test_what_is_no_evidence_is_not_certified(self, code: int) -> None:
        direct = Float64(lower(homogenize(random_circuit(1, 7, size=30, negative=False).simplify())))
        rows = np.random.default_rng(1).choice(CODES, size=(1000, 7)).astype(np.int8)
        rows[600, 3] = code
        out = np.empty(1000)
        left = direct.write_certified(rows, probabilities_by(direct), out)
        assert 600 in left
        assert len(left) < 1000  # those of its block
        assert np.isnan(out[left]).all()

    def test_a_logarithm_alone_and_in_a_table_is_the_same(self) -> None:
        model = pgcc.compile(random_circuit(2, 8, size=40, negative=False))
        rows = np.random.default_rng(0).choice(np.array(CODES, np.int8), (2000, 8))
        together = model.logprob(rows)
        assert [model.logprob(row) for row in rows[:40]] == together[:40].tolist()
        np.testing.assert_allclose(together, np.log(model.prob(rows)), rtol=1e-12, atol=1e-12)

    def test_what_is_nothing_is_left(self) -> None:
        # a zero may have been a number that underflowed
        value, magnitude = np.array([0.0, 1.0, np.nan]), np.array([0.0, 1.0, 1.0])
        every, out = certified(value, magnitude, 1e-15, 1e-323, 1e-9, 1.0)
        assert not every
        np.testing.assert_array_equal(out, [math.nan, 1.0, math.nan])


def test_codes_are_checked_byte_by_byte() -> None:
    for byte in range(256):
        for at in (0, 5, 63, 64, 100, 127, 128, 149):  # 64 at a time, and the rest
            evidence = np.array([0, 1, 255] * 50, np.uint8)
            evidence[at] = byte
            assert are_codes(evidence, 0, 150) == (byte in (0, 1, 255))
            assert are_codes(evidence, 0, at)
            assert are_codes(evidence, at + 1, 150)
