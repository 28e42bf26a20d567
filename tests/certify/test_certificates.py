"""Rounding counts and underflow floors belong to the program that runs: wrong ones are shown by numbers made for it."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

import pgcc
from pgcc import compiler
from pgcc.certify.certificate import Analysis, log_determinant_bound
from pgcc.compiler import Compiled, climb
from pgcc.errors import PgccError
from pgcc.ir.circuit import Circuit
from pgcc.ir.interpret import evaluate
from pgcc.ir.node import ONE, Node, const, det, product, var, weighted_sum
from pgcc.ir.numbers import UNIT
from pgcc.passes import pipeline
from pgcc.passes.homogenize import homogenize
from pgcc.program import table_choice
from pgcc.program.det_structure import DetStructure
from pgcc.program.lower import lower
from pgcc.program.program import DETBAR, LOWERED
from pgcc.program.reverse import adjoints
from pgcc.rings.values import Values


def exact_value(values: Values, i: int) -> Fraction:
    return Fraction(float(values.mantissa[i])) * Fraction(2) ** int(values.exponent[i])


def count_checked(compiled: Compiled, method: str, rows: np.ndarray, rtol: float = 1e-9) -> int:
    """How many values have a bound; each is compared with the rational number that it stands for."""
    values = compiled.values(rows, rtol, method)
    known = np.flatnonzero(values.bound < np.inf).tolist()
    for i in known:
        true, found = compiled.exact.rational(rows[i].tolist()), exact_value(values, i)
        assert abs(found - true) <= Fraction(float(values.bound[i])) * abs(true), (method, rows[i].tolist())
    return len(known)


def count_certain(compiled: Compiled, rows: np.ndarray, rtol: float = 1e-9) -> int:
    """How many posteriors are certain; each is compared with the quotient of two rational numbers."""
    if not compiled.decomposable or compiled.reverse is None:
        return 0
    found, checked = climb(compiler.MARGINALS[True][:3], compiled, rows, rtol)[0], 0
    for i, row in enumerate(rows.tolist()):
        root = compiled.exact.rational(row)
        assert root == 0 or not found.impossible[i]
        for j in np.flatnonzero(found.certain[i]).tolist() if root else []:
            if row[j] < 0:
                true = compiled.exact.rational([*row[:j], 1, *row[j + 1 :]]) / root
                off = abs(Fraction(float(found.numbers[i, j])) - true)
                assert off <= Fraction(rtol) * abs(true) + Fraction(2) ** -1074, (row, j)
                checked += 1
    return checked


# -- reproductions ----------------------------------------------------------------------------------------------


def squares_beside_many(inside: str) -> Circuit:
    names = [f"h{i}" for i in range(11)]
    many = " + ".join("*".join(c) or "1" for r in range(12) for c in combinations(names, r))
    squares = " * ".join(f"((z{i} + 1)**2 - z{i}**2)" for i in range(4))
    return pgcc.parse(f"u = p + q\n({inside}) * {squares} * ({many})")


def test_scopes_belong_to_the_circuit_that_was_lowered() -> None:
    """Above `LARGE` edges `simplify` changes what it has returned."""
    circuit = squares_beside_many("u + u + 1")
    assert circuit.edges > pipeline.LARGE
    assert pipeline.simplify(pipeline.simplify(circuit)) is not pipeline.simplify(circuit)
    model = pgcc.compile(circuit)
    named = {"z0": 0, "z1": 1, "z2": 1, "z3": 1, "p": 1}
    value, bound = model.prob(named, bound=True)
    assert abs(Fraction(value) / model.prob(named, exact=True) - 1) <= bound < 1e-9


def test_small_circuits_that_simplify_leaves_half_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "LARGE", 3)
    checked = 0
    for seed in range(12):
        rng = random.Random(seed)
        squares = " * ".join(f"((z{i} + {rng.randint(1, 3)})**2 - z{i}**2)" for i in range(3))
        extra = " + ".join(["u"] * rng.randint(1, 3))
        compiled = Compiled(pgcc.parse(f"u = p + q\nv = u*3 + u\n({extra} + v + 1) * {squares} * (u*0 + h + 2)"))
        rows = np.array([[rng.choice((0, 1, -1)) for _ in compiled.circuit.variables] for _ in range(8)], np.int8)
        checked += sum(count_checked(compiled, method, rows) for method in ("top", "bottom"))
    assert checked > 150


MARGINALS = (
    "(1e-180*d+3e-180)*((1e-180*a+5e-180)*(1e180*b+7e180)*(1e180*c+2e180)+(1e180*a+20e180)*(b+3)*(c+5))",
    "(1e-170*d+3e-170)*((1e-170*a+5e-170)*(1e150*b+7e160)*(1e170*c+2e170)*(e+1)+(1e180*a+20e160)*(b+3)*(c+5)*(e+2))",
)


@pytest.mark.parametrize("text", MARGINALS)
def test_marginals_of_products_that_underflow(text: str) -> None:
    model = pgcc.compile(pgcc.parse(text))
    free = {name: model.prob({name: 1}, exact=True) for name in model.variables}
    np.testing.assert_allclose(model.marginals(), [float(p) for p in free.values()], rtol=1e-9)
    joint = model.pairwise()
    for i, j in combinations(range(len(model.variables)), 2):
        both = model.prob({model.variables[i]: 1, model.variables[j]: 1}, exact=True)
        assert joint[i, j] == pytest.approx(float(both), rel=1e-9)


def test_operations_that_nobody_knows_are_errors() -> None:
    whole = adjoints(lower(homogenize(pgcc.dpp(L=[[2, 1], [1, 2]])))).program
    assert (whole.op == DETBAR).any()
    with pytest.raises(PgccError, match="DETBAR"):
        Analysis(whole.slots).run(whole)
    with pytest.raises(PgccError, match="DETBAR"):
        whole.expect(*LOWERED)


def signed_determinant(c: int) -> Node:
    """c − (c − 1)·x: 1 where x is free, c where it is 0."""
    return det([[c]], [[1]], [[1 - c]], [var("x")])


@pytest.mark.parametrize("c", [10**6, 10**10, 10**20])
def test_the_floor_beside_a_determinant_that_is_not_largest_where_everything_is_free(c: int) -> None:
    tiny = weighted_sum((Fraction(12, 10**321), Fraction(1, 10**320)), (var("w"), ONE))
    root = weighted_sum((Fraction(10**300),), (product((signed_determinant(c), tiny)),))
    compiled = Compiled(Circuit(root, ["x", "w"]))
    rows = np.array([[x, w] for x in (0, 1, -1) for w in (0, 1, -1)], np.int8)
    assert count_checked(compiled, "direct", rows) == 9  # over scaled numbers
    count_certain(compiled, rows)
    out, errors = compiled.float64.absolute_errors(rows)
    for row, value, error in zip(rows.tolist(), out.tolist(), errors.tolist(), strict=True):
        assert abs(Fraction(value) - compiled.exact.rational(row)) <= Fraction(error)


@pytest.mark.parametrize("power", [200, 250, 300])
def test_a_complement_that_is_small_beside_its_child_but_not_in_the_determinant(power: int) -> None:
    """det(1 + f·u·v) with f near 1e+200, u and v near 1e-100: over scaled numbers, 1 must not be lost beside f."""
    big, small = Fraction(10) ** power, Fraction(10) ** (-power // 2)
    child = weighted_sum((big, big), (product((var("a"), var("b"))), var("a")))
    tiny = weighted_sum((Fraction(1, 10**320), Fraction(1, 10**321)), (var("w"), ONE))
    compiled = Compiled(Circuit(product((det([[1]], [[small]], [[small]], [child]), tiny)), ["a", "b", "w"]))
    rows = np.array([[a, b, w] for a in (0, 1, -1) for b in (0, 1, -1) for w in (0, 1, -1)], np.int8)
    assert count_checked(compiled, "direct", rows) > 5
    values = compiled.values(rows, 1e-9)
    assert (values.bound <= 1e-9).all()
    for i, row in enumerate(rows.tolist()):
        true = compiled.exact.rational(row)
        assert abs(exact_value(values, i) - true) <= Fraction(1e-9) * true


def test_a_bound_of_every_value_of_a_determinant() -> None:
    """Hadamard's, for children up to f and y; and what is affine in a child is at most that over it."""
    rng = random.Random(3)
    for _ in range(60):
        r, k = rng.randint(1, 4), rng.randint(1, 4)
        m0, u, v = ([[rng.randint(-5, 5) for _ in range(m)] for _ in range(r)] for m in (r, k, k))
        names = [f"x{i}" for i in range(k)]
        node = det(m0, u, v, [var(n) for n in names])
        top = [rng.choice((0.25, 1.0, 1e3)) for _ in names]
        bound = log_determinant_bound(DetStructure.of(node), np.log(top), np.zeros(k))
        for _ in range(8):
            at = {name: Fraction(rng.choice((0.0, 0.5, 1.0)) * x) for name, x in zip(names, top, strict=True)}
            value = abs(evaluate(Circuit(node, names), at))
            assert value == 0 or math.log(value) <= bound + 1e-9


def cancelling_squares(n: int, lost: Fraction, more: int) -> Circuit:
    """(x + 1)·((P + c)² − (3·P + e)·P/3 − c²) = (x + 1)·(2·c − e/3)·P.

    P has n + 1 equal coefficients in t, whose squares are lost·2⁻¹⁰⁷⁴.
    """
    size = Fraction(math.sqrt(lost)) * Fraction(1, 2**537)
    inner: Node = ONE
    for i in range(n):  # 1 + z·(1 + z·(1 + …))
        inner = weighted_sum((1, 1), (product((var(f"z{i}"), inner)), ONE))
    p, c, x = weighted_sum((size,), (inner,)), const(size * more), weighted_sum((1, 1), (var("x"), ONE))
    square, other = weighted_sum((1, 1), (p, c)), weighted_sum((3, 1), (p, const(size / 100)))
    terms = (product((square, square, x)), product((other, p, x)), product((c, c, x)))
    return Circuit(weighted_sum((1, Fraction(-1, 3), -1), terms), [*(f"z{i}" for i in range(n)), "x"])


@pytest.mark.parametrize("method", ["top", "bottom"])
def test_the_floor_of_series(method: str) -> None:
    """A coefficient of a product adds up as many products as there are coefficients, each of which may underflow."""
    checked = 0
    for n in (3, 40, 90):
        for tenths in (4, 104, 106, 348, 352):
            for more in (100, 10**6):
                compiled = Compiled(cancelling_squares(n, Fraction(tenths, 10), more))
                rows = np.ones((2, n + 1), np.int8)
                rows[1, : n // 2] = -1
                checked += count_checked(compiled, method, rows)
    assert checked > 25


# -- numbers made for it ----------------------------------------------------------------------------------------

EXPONENTS = (0, 0, 0, 5, -5, 150, -150, -158, 300, -300, -310, -320)


def numbers(rng: random.Random, signed: bool) -> Iterator[Fraction | float]:
    while True:
        number: Fraction | float = Fraction(rng.randint(1, 99), 10) * Fraction(10) ** rng.choice(EXPONENTS)
        number = float(number) if rng.random() < 0.5 else number
        yield -number if signed and rng.random() < 0.3 else number


def anything(rng: random.Random, names: list[str], signed: bool, dets: bool, sums: bool = True) -> Node:
    """A decomposable circuit of these variables whose numbers reach from 1e-320 to 1e+300."""
    some = numbers(rng, signed)
    if len(names) == 1:
        return weighted_sum((next(some), next(some)), (var(names[0]), ONE))
    kind = rng.random() * (1.0 if sums else 0.75 if dets else 0.55)  # no sum is right below another
    if kind < 0.55 or (dets and kind < 0.75):
        most = 4 if kind < 0.55 else 2
        cuts = sorted(rng.sample(range(1, len(names)), min(len(names) - 1, rng.randint(1, most))))
        parts = [names[a:b] for a, b in zip([0, *cuts], [*cuts, len(names)], strict=True)]
        if kind < 0.55:
            return product([anything(rng, part, signed, dets) for part in parts])
        r, k = rng.randint(1, 3), len(parts)
        m0, u, v = ([[Fraction(rng.randint(-4, 4), 3) for _ in range(m)] for _ in range(r)] for m in (r, k, k))
        children = [var(p[0]) if len(p) == 1 and rng.random() < 0.5 else anything(rng, p, signed, False) for p in parts]
        return det(m0, u, u if rng.random() < 0.4 else v, children)
    terms = rng.randint(2, 3)
    below = [anything(rng, names, signed, dets, sums=False) for _ in range(terms)]
    return weighted_sum([next(some) for _ in range(terms)], below)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("kind", ["monotone", "signed", "determinants"])
def test_numbers_at_the_ends_of_the_range(kind: str, wide: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if wide:  # tables for everything that has few variables
        for name in ("_PACKING", "_PACKING_VARIABLE", "_NUMBERING", "_FIRST_LEVEL", "_SECOND_LEVEL", "_MEMORY"):
            monkeypatch.setattr(table_choice, name, -1)
    values = posteriors = unknown = 0
    for seed in range(40):
        rng = random.Random(f"{kind}{seed}")
        names = [f"x{i}" for i in range(rng.randint(2, 7))]
        root = anything(rng, names, kind != "monotone", kind == "determinants")
        compiled = Compiled(Circuit(root, names))
        rows = np.array([[rng.choice((0, 1, -1)) for _ in names] for _ in range(6)], np.int8)
        here = count_checked(compiled, "direct", rows)
        values, unknown = values + here, unknown + len(rows) - here
        posteriors += count_certain(compiled, rows)
    assert values > 60, (values, unknown)
    assert posteriors > (20 if kind == "determinants" else 60)


def test_floors_of_what_cannot_underflow_are_zero() -> None:
    compiled = Compiled(pgcc.parse("0.3*a*b*c + 0.2*a + 0.5*b"))
    assert compiled.float64.certificate.floor == 0.0
    assert 0.0 < compiled.float64.certificate.gamma < 50 * UNIT
    tiny = Compiled(Circuit(product([weighted_sum((1e-200, 1e-200), (var(n), ONE)) for n in "ab"])))
    assert tiny.float64.certificate.floor > 0.0


def test_explain_tells_of_the_program_that_runs() -> None:
    model = pgcc.compile(pgcc.parse("(0.5*a*b + 0.5)*(0.5*c*d + 0.5)*(e + 1)"))
    told, runs = model.explain(), model._compiled.float64.loop.condensed
    assert (told.operations, told.slots) == (runs.operations, runs.slots)
    staged = pgcc.compile(pgcc.dpp(L=[[2, 1], [1, 2]]))._compiled.float64.staged
    told = pgcc.compile(pgcc.dpp(L=[[2, 1], [1, 2]])).explain()
    assert staged is not None
    assert told.slots == staged.program.slots


def test_a_constant_below_the_normal_numbers() -> None:
    compiled = Compiled(Circuit(const(1e-320)))
    assert count_checked(compiled, "direct", np.zeros((1, 0), np.int8)) == 1


@pytest.mark.parametrize("method", ["top", "bottom"])
def test_series_beside_subnormal_numbers(method: str) -> None:
    """Leaves that lose a millionth where others are huge: the coefficients are ordinary numbers, and off by it."""
    compiled = Compiled(pgcc.parse("(2**-1055/3*a + 2**-1053/7)*(2**1000*b + 2**1001)*(c + 1)"))
    rows = np.array([[a, b, c] for a in (0, 1, -1) for b in (0, 1, -1) for c in (1, -1)], np.int8)
    known = count_checked(compiled, method, rows)
    values, true = compiled.values(rows, 1e-9, method), [compiled.exact.rational(row) for row in rows.tolist()]
    off = max(abs(exact_value(values, i) / x - 1) for i, x in enumerate(true))
    assert known == 0 or off > 1e-9
