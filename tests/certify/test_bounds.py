"""Every term of the formulas of error bounds: each is compared with the worst that it has to cover, in fractions.

Errors of random computations are far below their bounds, so that a bound without one of its terms would hold in
nearly every test. Here the worst case itself is computed: all errors at their limits, and of the same sign.
"""

from __future__ import annotations

import math
import random
from fractions import Fraction as Exact

import numpy as np
import pytest
from flint import arb, fmpq, fmpq_mat

import pgcc
from pgcc.certify.certificate import Analysis, _log_growth, rounding_bound
from pgcc.certify.kernels.analysis import nothing_known
from pgcc.certify.kernels.bounds import absolute_error, certify, divide, posteriors
from pgcc.evaluate.counting import _certified, _error
from pgcc.exact.balls import is_definite
from pgcc.exact.precision import ball_parts
from pgcc.ir.circuit import Circuit
from pgcc.ir.node import Node, const, product, var, weighted_sum
from pgcc.linalg import surely_definite
from pgcc.passes.homogenize import homogenize
from pgcc.program.lower import lower
from pgcc.program.program import LEAF, SUM, TIMES, Program
from pgcc.program.reverse import reverse
from pgcc.queries.information import _sampled_divergence, _sampled_entropy
from pgcc.rings import paper as literal
from pgcc.rings.values import Values

UNIT = Exact(1, 2**53)


def worst_relative(v: float, m: float, gamma: float, floor: float) -> Exact:
    """The relative error of v, if the true value is as far away as γ·M + floor, and M as large as it can be."""
    g, f = Exact(gamma), Exact(floor)
    error = g * (Exact(m) + f) / (1 - g) + f
    return error / (abs(Exact(v)) - error)


@pytest.mark.parametrize("gamma", [1e-15, 1e-9, 0.1, 0.4])
@pytest.mark.parametrize("floor", [0.0, 1e-6, 0.01])
def test_a_bound_covers_rounding_and_underflow(gamma, floor):
    rng = np.random.default_rng(0)
    value = rng.uniform(0.5, 1.0, 50) * rng.choice([-1, 1], 50)
    magnitude = np.abs(value) * rng.uniform(1.0, 1.2, 50)
    bound = np.empty(50)
    certify(value, magnitude, gamma, floor, bound)
    for v, m, b in zip(value.tolist(), magnitude.tolist(), bound.tolist(), strict=True):
        worst = worst_relative(v, m, gamma, floor)
        assert b == math.inf if worst < 0 else worst <= Exact(b) <= worst * Exact(1.002), (v, m, b)


def test_a_bound_of_zero():
    bound = np.empty(1)
    for floor, expected in ((0.0, 0.0), (1e-300, math.inf)):
        certify(np.zeros(1), np.zeros(1), 1e-15, floor, bound)
        assert bound[0] == expected


@pytest.mark.parametrize("by_bound", [0.0, 1e-15, 1e-3, 0.3])
@pytest.mark.parametrize("size", [1.0, 2.0**600])  # near 1, or the range has to be looked after
def test_a_quotient_has_the_errors_of_both(by_bound, size):
    """(1 + b)/(1 − c)·(1 + u) − 1, for b the bound of what is divided and c of what divides."""
    rng = np.random.default_rng(1)
    mantissa, exponent, bound = (
        rng.uniform(0.5, 1.0, 40) * size,
        np.zeros(40, np.int64),
        10.0 ** rng.uniform(-17, -2, 40),
    )
    before = bound.copy()
    divide(mantissa, exponent, bound, 0.7, 0, by_bound)
    for b, after in zip(before.tolist(), bound.tolist(), strict=True):
        worst = (1 + Exact(b)) / (1 - Exact(by_bound)) * (1 + UNIT) - 1
        assert worst <= Exact(after) <= 2 * worst + 8 * UNIT


def test_posteriors_have_the_errors_of_both():
    gamma, floor, rtol = 0.01, np.array([0.001]), 1.0
    read, sizes = np.array([[0.3], [0.6]]), np.array([[0.31], [0.62]])
    evidence = np.full((1, 1), -1, np.int8)
    worst = [worst_relative(read[i, 0], sizes[i, 0], gamma, floor[0]) for i in (0, 1)]
    least = (worst[0] + worst[1]) / (1 - worst[1])  # (1 + a)/(1 − b) − 1
    most = least * Exact(1.01)
    for rtol, certain in ((float(least) * 0.999, False), (float(most), True)):
        numbers, found, impossible = np.empty((1, 1)), np.empty((1, 1), bool), np.empty(1, bool)
        posteriors(read, sizes, evidence, gamma, floor, rtol, numbers, found, impossible)
        assert found[0, 0] == certain
        assert numbers[0, 0] == pytest.approx(0.5)


def test_floats_below_the_normal_numbers():
    for power in (-1000, -1030, -1060, -1073, -1080):
        values = Values(np.array([0.7123456789]), np.array([power]), np.array([1e-15]))
        number, bound = float(values.floats()[0]), float(values.float_bounds()[0])
        true = Exact(0.7123456789) * Exact(2) ** power
        if number == 0.0:
            assert bound == math.inf
        else:
            assert abs(Exact(number) - true) / true + Exact(1e-15) <= Exact(bound) * (1 + Exact(1e-9))


@pytest.mark.parametrize("count", [1, 10, 10**6, 10**12, 10**15])
def test_roundings_come_to_powers(count):
    """(1 + u)^k − 1 is more than k·u, by (k·u)²/2."""
    ku = count * UNIT
    bound = rounding_bound(count)
    assert Exact(bound) >= ku + ku**2 / 2
    assert bound <= 1.1 * float(ku) / (1 - float(ku))
    assert rounding_bound(1e17) == math.inf


@pytest.mark.parametrize("radius", [0.0, 1e-20, 1e-3, 0.3])
def test_balls_as_doubles_keep_their_radius(radius):
    """(r + u·m)/(m − r) of a midpoint that is rounded."""
    middle = 1.2345678901234567
    mantissa, exponent, bound = ball_parts(arb(middle, radius))
    assert math.ldexp(mantissa, exponent) == pytest.approx(middle)
    lowest = (Exact(radius) / (Exact(middle) - Exact(radius))) if radius else Exact(0)
    assert lowest <= Exact(bound) <= lowest * Exact(1.001) + 4 * UNIT


# -- roundings of programs ---------------------------------------------------------------------------------------------


def rounding_counts(program: Program, length: int = 1) -> np.ndarray:
    return Analysis(program.slots).run(program, length=length).state.rounds


def least_counts(program: Program, length: int = 1) -> list[int]:
    """How many roundings a term of each slot may really pass, by the operations of the kernels, one by one.

    A leaf's numbers are rounded, and their sum. A weight is rounded, and multiplied; of k terms the first passes k − 1
    additions. A coefficient of a product of series is a sum of up to `length` products.
    """
    count = [0] * program.slots
    for i in range(program.instructions):
        args = program.args[program.start[i] : program.start[i + 1]].tolist()
        at = int(program.target[i])
        match int(program.op[i]):
            case op if op == LEAF:
                count[at] = 2
            case op if op == TIMES:
                count[at] = sum(count[x] for x in args) + (len(args) - 1) * length
            case op if op == SUM:  # values, then pairs: what comes later passes fewer additions
                values, pairs = (part.tolist() for part in program.terms(i))
                terms = [count[x] + 2 + (len(values) - 1) + len(pairs) * length for x in values]
                terms += [count[x] + count[y] + 2 + length + len(pairs) * length - 1 for x, y in pairs]
                count[at] = max(terms)
            case op:
                raise AssertionError(f"operation {op} has no count here")
    return count


def programs() -> list[Program]:
    x, y, z, w = (weighted_sum([i, 1], [var(n), const(1)]) for i, n in enumerate("xyzw", 2))
    flat = weighted_sum(
        [1, 2, 3, 4, 5, 6, 7], [product([a, b]) for a, b in [(x, y)] * 1 + [(x, z), (x, w), (y, z)] * 2]
    )
    chains = [
        product([x, y, z, w]),
        weighted_sum([1, 2, 3], [product([x, y, z, w]), product([x, y]), x]),
        product([weighted_sum([1, 2], [product([x, y]), weighted_sum([3], [x])]), weighted_sum([1, 2], [z, w])]),
        flat,
    ]
    lowered = [lower(homogenize(Circuit(c))) for c in chains]
    return [*lowered, *map(reverse, lowered)]


@pytest.mark.parametrize("length", [1, 5])
def test_no_rounding_is_left_out(length):
    for program in programs():
        counted = rounding_counts(program, length)
        for slot, least in enumerate(least_counts(program, length)):
            assert least <= counted[slot] <= 3 * least + 3 * length, (slot, least, counted[slot])


def test_a_bound_below_the_normal_numbers():
    """γ·m is a multiple of 2⁻¹⁰⁷⁴ as a double: the formula itself is rounded by as much as what it bounds."""
    gamma = np.linspace(1.0, 9.0, 65) * 2.0**-53
    for m in (2.0**-1022, 1.7 * 2.0**-1022, 1.3 * 2.0**-1021):
        for g in gamma.tolist():
            assert Exact(absolute_error(m, g, 0.0)) >= Exact(g) * Exact(m) / (1 - Exact(g)), (m, g)


@pytest.mark.parametrize("gamma", [0.01, 0.1, 0.15])
def test_a_posterior_has_the_errors_of_both_however_large(gamma):
    """x/r with x below and r above what they are: (1 + a)/(1 − b) − 1 and not a + b."""
    read, sizes = np.array([[0.8], [1.2]]), np.ones((2, 1))
    error = Exact(gamma) / (1 - Exact(gamma))
    x, root = Exact(0.8), Exact(1.2)
    worst = max((x / root) / ((x - s * error) / (root + s * error)) - 1 for s in (-1, 1))
    numbers, certain, impossible = np.empty((1, 1)), np.empty((1, 1), bool), np.empty(1, bool)
    for rtol, promised in ((float(worst) * 0.999, False), (float(worst) * 1.3, True)):
        posteriors(read, sizes, np.array([[-1]], np.int8), gamma, np.zeros(1), rtol, numbers, certain, impossible)
        assert certain[0, 0] == promised


# -- underflow of programs ---------------------------------------------------------------------------------------------

LOST, NORMAL = Exact(1, 2**1074), Exact(1, 2**1022)
Ends = tuple[Exact, Exact, Exact, bool]  # the largest, the least (0 if nobody knows), what it is off by, the sign
NOTHING: Ends = (Exact(0), Exact(2) ** 5000, Exact(0), True)


def times(x: Ends, y: Ends, length: int = 1) -> Ends:
    """A product that is rounded: (X + e)·(Y + f) − X·Y, and what underflows of `length` products."""
    if x[0] == 0 or y[0] == 0:
        return (*NOTHING[:3], x[3] and y[3])
    error = x[2] * y[0] + x[0] * y[2] + x[2] * y[2] * length
    low = Exact(0) if error else x[1] * y[1]
    if low < NORMAL:
        low, error = Exact(0), error + LOST * length
    return x[0] * y[0], low, error, x[3] and y[3]


def weighted(weight: Exact, x: Ends) -> Ends:
    size = abs(weight)
    lost = 0 < size < NORMAL
    found = x if size == 1 else times((size, Exact(0) if lost else size, LOST if lost else Exact(0), True), x)
    return (*found[:3], weight > 0 and x[3])


def least_ends(program: Program, length: int, weight_first: bool) -> list[Ends]:
    """What the values of the slots may be, as small and as wrong as the kernels can make them, in fractions."""
    ends = [NOTHING] * program.slots
    weights = [Exact(w) for w in program.numbers]
    for i in range(program.instructions):
        args, at = program.args[program.start[i] : program.start[i + 1]].tolist(), int(program.target[i])
        first = int(program.first_weight[i])
        match int(program.op[i]):
            case op if op == LEAF:
                a, b = map(Exact, program.leaf_numbers[args[0]])
                sizes = [abs(x) for x in (a, b, a + b) if x]
                lost = any(x < NORMAL for x in sizes)
                low = Exact(0) if lost or length > 1 else min(sizes)
                ends[at] = abs(a) + abs(b), low, LOST if lost else Exact(0), a >= 0 and b >= 0
            case op if op == TIMES:
                found = ends[args[0]]
                for x in args[1:]:
                    found = times(found, ends[x], length)
                ends[at] = found
            case op if op == SUM:
                values, pairs = (part.tolist() for part in program.terms(i))
                here = weights[first : int(program.first_weight[i + 1])]
                terms = [weighted(w, ends[x]) for w, x in zip(here, values, strict=False)]
                for w, (x, y) in zip(here[len(values) :], pairs, strict=True):
                    if weight_first:
                        terms.append(times(weighted(w, ends[x]), ends[y], length))
                    else:
                        terms.append(weighted(w, times(ends[x], ends[y], length)))
                terms = [t for t in terms if t[0]] or [NOTHING]
                error, sign = sum(t[2] for t in terms), all(t[3] for t in terms)
                low = min(t[1] for t in terms) if sign and not error else Exact(0)
                ends[at] = sum(t[0] for t in terms), low, error, sign
            case op:
                raise AssertionError(f"operation {op} is not known here")
    return ends


def log(x: Exact) -> float:
    return math.log(x.numerator) - math.log(x.denominator) if x else -math.inf


def tiny_programs(rng: random.Random) -> list[Program]:
    ordinary = [0, 0, 0, 5, -5, 150, -150, -158, -300, -306, -310, -320, 300]
    powers = rng.choice([ordinary, [-322, -321, 300, 301]])  # the others: what is lost is of any size again

    def number() -> Exact:
        size = Exact(rng.randint(1, 99), rng.randint(1, 9)) * Exact(10) ** rng.choice(powers)
        return -size if rng.random() < 0.15 else size

    def some(names: str) -> Node:
        if len(names) == 1:
            return weighted_sum([number(), number()], [var(names), const(1)])
        k = rng.randint(1, len(names) - 1)
        ways = [list(names), [names[:k], names[k:]]]
        terms = [product(list(map(some, rng.choice(ways)))) for _ in range(rng.randint(1, 4 if len(names) < 4 else 2))]
        return weighted_sum([rng.choice([Exact(1), number()]) for _ in terms], terms)

    plain = lower(homogenize(Circuit(some("abcde"[: rng.randint(2, 5)]))))
    return [plain, reverse(plain)]


@pytest.mark.parametrize("length", [1, 5])
@pytest.mark.parametrize("weight_first", [False, True])
def test_no_loss_is_left_out(length, weight_first):
    """States of slots are at least as wide as those of fractions; where nothing can be lost, no wider."""
    lost = exact = both = 0
    for seed in range(25):
        for program in tiny_programs(random.Random(seed)):
            sums = [program.terms(i) for i in np.flatnonzero(program.op == SUM)]
            both += sum(len(values) > 0 and len(pairs) > 0 for values, pairs in sums)
            state = Analysis(program.slots, weight_first=weight_first).run(program, length=length).state
            for slot, (high, low, error, sign) in enumerate(least_ends(program, length, weight_first)):
                told = seed, slot, log(high), log(low), log(error), [column[slot] for column in state]
                if high == 0:
                    assert state.high[slot] == state.error[slot] == -math.inf, told
                    continue
                assert state.high[slot] >= log(high) - 1e-6, told
                assert state.low[slot] <= log(low) + 1e-6 if low else state.low[slot] <= -1e11, told
                assert state.error[slot] >= log(error) - 1e-6, told
                assert sign or not state.positive[slot], told
                lost, exact = lost + (error > 0), exact + (error == 0)
                if low > 2 * NORMAL and length == 1:
                    assert state.error[slot] == -math.inf, told
    assert min(lost, exact) > (200 if length == 1 else 20), (lost, exact)
    assert both > 10


@pytest.mark.parametrize("rounds", [10.0, 1e12, 4e15])
def test_a_floor_has_what_is_lost_of_values_and_of_magnitudes(rounds):
    """2·E + 2·γ·E', and something for rounding the floor itself."""
    for value, magnitude in ((1e-300, 1e-300), (1e-300, 1e-280), (0.0, 1e-290), (1e-310, 1e-200)):
        analysis = Analysis(2)
        analysis.state.rounds[:] = rounds, rounds / 2
        analysis.state.error[:] = [math.log(x) if x else -math.inf for x in (value, magnitude)]
        found = analysis.certificate([0], [1])
        assert found.gamma == rounding_bound(rounds)
        worst = 2 * Exact(value) + 2 * Exact(found.gamma) * Exact(magnitude) + LOST
        assert worst <= Exact(found.floor) <= 2 * worst
    analysis.state.error[:] = -800.0  # below the smallest double, but not 0
    assert analysis.certificate([0], [1]).floor >= 2.0**-1074


def test_determinants_grow_with_what_their_children_are_off_by():
    """Π(1 + e_i/h_i) − 1"""
    for errors in ([1e-12, 0.0, 1e-20], [0.3, 0.3, 0.2], [1.0, 2.0, 5.0], [30.0, 0.0, 0.0], [0.0, 0.0, 0.0]):
        state = nothing_known(3)
        state.high[:] = [math.log(h) for h in (1.0, 1e5, 1e-5)]
        state.error[:] = [math.log(e) + h if e else -math.inf for e, h in zip(errors, state.high, strict=True)]
        growth = math.prod(1 + Exact(e) for e in errors) - 1
        assert log(growth) - 1e-9 <= _log_growth(state)


# -- definite matrices -------------------------------------------------------------------------------------------------


def test_nothing_is_definite_by_rounding():
    """Gram matrices of rank n − 1, as doubles: the least eigenvalue is 0 but for rounding, above or below it."""
    proved = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(2, 9))
        B = rng.standard_normal((n, n - 1)) * 10.0 ** rng.integers(-3, 4, (n, 1))
        A = B @ B.T
        A = (A + A.T) / 2
        A[np.diag_indices(n)] *= 1.0 + rng.choice([0.0, 1e-15, 1e-14, 1e-12])
        minors = [
            fmpq_mat([[fmpq(*x.as_integer_ratio()) for x in r[:k]] for r in A[:k].tolist()]).det()
            for k in range(1, n + 1)
        ]
        definite = all(x > 0 for x in minors)
        assert surely_definite(A) <= definite, seed
        assert is_definite(A.tolist()) <= definite, seed
        proved += is_definite(A.tolist())
    assert proved > 10


def test_a_definite_matrix_that_is_off():
    matrix, off = np.array([[1.0, 0.9], [0.9, 1.0]]), np.array([[0.0, 0.11], [0.11, 0.0]])
    assert surely_definite(matrix, off / 2)
    assert not surely_definite(matrix, off)
    assert not surely_definite(np.eye(2) * 1e-10, np.eye(2) * 2e-10)


# -- polynomials by FFT ------------------------------------------------------------------------------------------------


def convolved(p: list[Exact], q: list[Exact]) -> list[Exact]:
    found = [Exact(0)] * (len(p) + len(q) - 1)
    for i, x in enumerate(p):
        for j, y in enumerate(q):
            found[i + j] += x * y
    return found


@pytest.mark.parametrize(("n", "m"), [(1, 1), (1, 6), (4, 7), (40, 60)])
@pytest.mark.parametrize(("first", "second"), [(0.0, 0.0), (1e-3, 0.0), (0.0, 1e-3), (0.5, 0.5)])
def test_products_of_polynomials(n, m, first, second):
    """Factors whose coefficients are all off by as much as they may be, in the direction that adds up."""
    off = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        p, q = rng.uniform(0.5, 1.0, n), rng.uniform(0.5, 1.0, m)
        found, bound = literal._product((p, first), (q, second))
        true = convolved([Exact(x) + Exact(first) for x in p.tolist()], [Exact(x) + Exact(second) for x in q.tolist()])
        worst = max(abs(Exact(x) - y) for x, y in zip(found.tolist(), true, strict=True))
        assert worst <= Exact(bound) <= 1000 * worst + 1000 * n * m * UNIT
        off += worst > 0
    assert off > 5


@pytest.mark.parametrize("error", [0.0, 1e-3])
def test_sums_of_polynomials(error):
    """All weights rounded down, by up to half a unit in the last place; all coefficients too small."""
    for count in (1, 2, 20):
        weights = [Exact(1) + Exact(k, 3 * 2**52) for k in range(1, count + 1)]
        rounded = [float(w) for w in weights]
        polynomials = [(np.array([1.0, 0.3, 0.7 * k]), error) for k in range(1, count + 1)]
        found, bound = literal._sum(rounded, polynomials)
        for k in range(3):
            terms = (w * (Exact(float(p[k])) + Exact(error)) for w, (p, _) in zip(weights, polynomials, strict=True))
            assert abs(Exact(float(found[k])) - sum(terms)) <= Exact(bound)
        size = sum(float(np.abs(p).max()) for p, _ in polynomials)
        assert Exact(bound) >= count * Exact(error) + (count + 1) * UNIT * Exact(size)  # if every addition rounds


def test_numbers_of_polynomials():
    for number in (Exact(1, 3), Exact(1, 10**320), Exact(-2, 3)):
        values = literal.evaluate_literally(Circuit(const(number)), np.zeros((1, 0), np.int8))
        assert abs(Exact(float(values.mantissa[0])) - number) <= Exact(min(float(values.bound[0]), 1e9)) * abs(number)


# -- estimates and counts ----------------------------------------------------------------------------------------------


def seen_of(mass: list[float], samples: int = 1000) -> np.ndarray:
    """Samples that met two assignments of 20 variables, as often as they should."""
    drawn = np.zeros((samples, 20), np.int8)
    drawn[: round(samples * mass[0]), 0] = 1
    return drawn


@pytest.mark.parametrize("u", [1e-3, 1e-6, 1e-8])
@pytest.mark.parametrize("first", [0.5, 0.999])
def test_entropy_of_what_no_sample_met(u, first):
    """The rest, of probability u, is one assignment at least, and all others alike at most."""
    mass = [first * (1 - u), (1 - first) * (1 - u)]
    drawn = seen_of(mass)
    logs = np.log(np.where(drawn[:, 0] == 1, *mass))
    found = _sampled_entropy(drawn, logs, 20, 1e-12)
    least = -sum(p * math.log(p) for p in (*mass, u))
    for true in (least, least + u * math.log(2**20 - 2)):
        assert abs(found - true) <= found.standard_error * (1 + 1e-9)
    assert found.standard_error < 10 * u * math.log(2**20) + 0.05


def test_entropy_of_what_samples_miss_as_a_whole():
    """A thousand samples, all different: a set of probability 3/1000 may be missed, and be anything."""
    drawn = np.array([[s >> i & 1 for i in range(20)] for s in range(1000)], np.int8)
    found = _sampled_entropy(drawn, np.full(1000, -20 * math.log(2)), 20, 1e-12)
    assert found.scatter < 1e-9
    assert 2 * found.standard_error >= 0.003 * 20 * math.log(2)


@pytest.mark.parametrize("u", [1e-3, 1e-6])
@pytest.mark.parametrize("v", [1e-3, 1e-1])
@pytest.mark.parametrize("floor", [-30.0, -300.0])
def test_divergence_of_what_no_sample_met(u, v, floor):
    """The rest adds u·log(u/v) at least, and −u·floor at most."""
    p, q = [0.5 * (1 - u)] * 2, [0.4 * (1 - v), 0.6 * (1 - v)]
    drawn = seen_of(p)
    log_p, log_q = (np.log(np.where(drawn[:, 0] == 1, *mass)) for mass in (p, q))
    found = _sampled_divergence(drawn, log_p, log_q, floor, 1e-12)
    part = sum(x * math.log(x / y) for x, y in zip(p, q, strict=True))
    for true in (part + u * math.log(u / v), part - u * floor + u * math.log(u)):
        assert abs(found - true) <= found.standard_error * (1 + 1e-9)


@pytest.mark.parametrize("error", [1e-12, 0.3, 0.6])
def test_counts_are_relative_to_the_true_ones(error):
    found = _certified((np.array([0.7]), np.array([1])), (np.array([0.7 * error]), np.array([1])), 0.0)
    assert Exact(error) / (1 - Exact(error)) <= Exact(float(found.bound[0])) <= 2 * Exact(error) / (1 - Exact(error))
    value = np.array([0.7]), np.array([1])
    assert _certified(value, value, 0.0).bound[0] == math.inf
    assert (
        _certified(value, (np.zeros(1), np.array([1])), 1e-9).bound[0] == math.inf
    )  # of what was cut off, nobody knows where


@pytest.mark.parametrize("lost", [1e-12, 1e-3])
@pytest.mark.parametrize("rounding", [0.0, 1e-9])
def test_what_is_cut_off_counts(lost, rounding):
    """The true distribution has a third entry, `lost`, which was cut off: all three quotients are off."""
    kept = np.array([0.7 * (1 - lost), 0.3 * (1 - lost), 0.0])
    value, error = (kept, np.ones(3, np.int64)), (rounding * kept, np.ones(3, np.int64))
    bound = Exact(_error(value, error, lost))
    assert Exact(lost) * (1 + Exact(7, 10)) <= bound <= 4 * Exact(lost) + 4 * Exact(rounding)
    assert bound >= Exact(0.7) - Exact(float(kept[0])) + Exact(rounding) / 2


def test_a_divergence_counts_unseen_sets_that_are_more_probable_under_q(monkeypatch):
    """An unseen set of probability u adds u·log(u/v), which is negative and larger than u·log(1/q)."""
    monkeypatch.setattr("pgcc.queries.information.MOST_LISTED", 2)
    u = 1e-11
    coins = pgcc.parse("(a + 1)/2*(b + 1)/2*(c + 1)/2")
    p = pgcc.compile(pgcc.parse("(1e-11*a + 1 - 1e-11)*(b + 1)/2*(c + 1)/2"), rtol=1e-13)
    found = p.kl(pgcc.compile(coins, rtol=1e-13), samples=1000, rng=0)
    true = math.log(2.0) + (1 - u) * math.log1p(-u) + u * math.log(u)
    assert not found.exact
    assert abs(found - true) <= 2 * found.standard_error <= 1e-8
