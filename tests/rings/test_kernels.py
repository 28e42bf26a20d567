"""The compiled loops, each against a few lines of plain Python."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import sympy
from how_many import some
from hypothesis import given, settings
from hypothesis import strategies as st

import pgcc
from pgcc.certify.certificate import Analysis, rounding_bound
from pgcc.certify.kernels.bounds import certify
from pgcc.compiler import Compiled
from pgcc.evaluate.direct import Float64, Scaled
from pgcc.ir.circuit import Circuit
from pgcc.ir.node import ONE, Node, const, product, var, weighted_sum
from pgcc.ir.scaled_numbers import split_number
from pgcc.kernels.policy import kernel
from pgcc.kernels.simd import LANES, load, store
from pgcc.passes.homogenize import homogenize
from pgcc.program.lower import lower
from pgcc.program.program import SUM
from pgcc.rings.float64.kernels.packed_evidence import Rows, pack_block
from pgcc.rings.identity import find_squares
from pgcc.rings.kernels.modular import divide_mod, mul_mod
from pgcc.rings.kernels.scaled import normalized
from pgcc.rings.residues import formal_bits, random_prime, residues, rounds
from pgcc.rings.values import Values
from pgcc.testing import random_circuit, random_det

# The least and the greatest primes that are drawn, and a few between them.
PRIMES = (2**49 + 69, 2**50 - 27, *(random_prime(np.random.default_rng(seed)) for seed in range(6)))


@kernel
def multiply_mod(a, b, prime):
    store(a, 0, mul_mod(load(a, 0), load(b, 0), prime))


@st.composite
def residue_pairs(draw) -> tuple[int, list[int], list[int]]:
    """A prime and two times eight numbers modulo it, many of them at the ends and next to powers of two and √p."""
    prime = draw(st.sampled_from(PRIMES))
    root = math.isqrt(prime)
    near = st.sampled_from([0, 1, 2, prime - 1, prime - 2, prime // 2, prime // 2 + 1, root, root + 1, 2**48, 2**49])
    eight = st.lists(st.one_of(st.integers(0, prime - 1), near), min_size=LANES, max_size=LANES)
    return prime, draw(eight), draw(eight)


def test_primes_at_the_ends() -> None:
    for prime in PRIMES:
        assert 2**49 < prime < 2**50
        assert pow(3, prime - 1, prime) == 1


@settings(max_examples=some(300), deadline=None)
@given(residue_pairs())
def test_multiplication_modulo_a_prime(given: tuple[int, list[int], list[int]]) -> None:
    prime, a, b = given
    product = np.array(a, float)
    multiply_mod(product, np.array(b, float), float(prime))
    assert [int(x) for x in product] == [x * y % prime for x, y in zip(a, b, strict=True)]


def test_products_whose_quotient_is_next_to_a_half() -> None:
    """Where the quotient is rounded either way, and where a remainder is 1 or p − 1: as far off as it can be."""
    for prime in PRIMES:
        for a in (prime - 1, prime - 3, prime // 2 + 1, 2**49 - 1, 3, 2**25 + 1):
            inverse = pow(a, -1, prime)
            b = [x * inverse % prime for x in (1, prime - 1, prime // 2, prime // 2 + 1, 2, prime - 2, 0, 3)]
            product = np.full(LANES, float(a))
            multiply_mod(product, np.array(b, float), float(prime))
            assert [int(x) for x in product] == [a * x % prime for x in b]


@settings(max_examples=some(30), deadline=None)
@given(residue_pairs())
def test_division_modulo_a_prime(given: tuple[int, list[int], list[int]]) -> None:
    prime, a, b = given
    b = [x or 1 for x in b]
    quotient = np.array(a, float)
    divide_mod(quotient, np.array(b, float), float(prime))
    assert [int(x) for x in quotient] == [x * pow(y, -1, prime) % prime for x, y in zip(a, b, strict=True)]


@settings(deadline=None)
@given(st.lists(st.one_of(st.fractions(), st.integers(), st.floats(allow_nan=False, allow_infinity=False))))
def test_residues_are_a_homomorphism(numbers: list) -> None:
    prime = PRIMES[0]
    found = residues([x.as_integer_ratio() for x in numbers], prime)
    assert found is not None
    for x, r in zip(map(Fraction, numbers), found, strict=True):
        assert int(r) * x.denominator % prime == x.numerator % prime


def test_a_prime_that_divides_a_denominator_is_passed_over() -> None:
    assert residues([(1, 1), (1, 2 * PRIMES[0])], PRIMES[0]) is None
    rng, same = np.random.default_rng(5), np.random.default_rng(5)
    first, second = random_prime(same), random_prime(same)
    program = lower(Circuit(weighted_sum((Fraction(1, first), 1), (var("z"), ONE))))
    assert next(rounds(program, rng)).prime == second


def test_primes_are_not_known_beforehand() -> None:
    assert len({random_prime(np.random.default_rng()) for _ in range(5)}) == 5


@settings(deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(-(10**6), 10**6))
def test_scaled_numbers_are_normalised(m: float, e: int) -> None:
    mantissa, exponent = normalized(m, e)
    if m == 0.0:
        assert mantissa == 0.0
    else:
        assert 2.0**-128 <= abs(mantissa) < 2.0**128
        assert Fraction(mantissa) * Fraction(2) ** (256 * (exponent - e)) == Fraction(m)


@given(st.fractions().filter(bool), st.integers(-2000, 2000))
def test_any_number_can_be_split(x: Fraction, k: int) -> None:
    number = x * Fraction(2) ** k
    m, e = split_number(number, 256)
    assert 2.0**-128 <= abs(m) < 2.0**128
    assert abs(Fraction(m) * Fraction(2) ** (256 * e) / number - 1) <= Fraction(2) ** -53


def test_packing_pads_with_the_last_row() -> None:
    lanes = 64
    for n in (0, 1, 3, 8, 11, 16, 21):
        evidence = np.random.default_rng(n).choice([1, 0, -1], size=(150, n)).astype(np.int8).view(np.uint8)
        for columns in (n, max(8, n)):  # with eight or more, codes are transposed
            codes = np.full((2, columns * lanes), 77, np.uint8)
            for block in range(2):
                pack_block(Rows(evidence.reshape(-1), n), 32 + block * lanes, lanes, codes[block])
            rows = codes.reshape(2, columns, lanes)[:, :n].transpose(0, 2, 1).reshape(2 * lanes, n)
            np.testing.assert_array_equal(rows[:118], evidence[32:])
            assert (rows[118:] == evidence[-1]).all()


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("negative", [False, True])
def test_a_row_by_itself_has_the_same_bits_as_in_a_block(seed: int, negative: bool) -> None:
    """Forward and reverse; circuits with tables of two variables and of more."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 15))
    circuit = random_circuit(rng, n, size=int(rng.integers(3, 80)), negative=negative)
    compiled = Compiled(circuit, validate=False)
    rows = rng.choice([0, 1, -1], size=(40, len(circuit.variables))).astype(np.int8)
    for loop in (compiled.float64.loop, compiled.reverse._loop):
        together = loop.values(rows)
        for i in range(len(rows)):
            assert np.array_equal(loop.values(rows[i : i + 1])[:, 0], together[:, i], equal_nan=True)


class TestDeterminants:
    def test_one_that_underflows(self) -> None:
        # 300 factors of 1e-3: numpy's det is 0, and 1e-900 is not
        n = 300
        children = [var(f"z{i}") for i in range(n)]
        from pgcc.ir.node import det

        circuit = Circuit(det(np.zeros((n, n)), np.eye(n), np.eye(n) * 1e-3, children))
        values = Compiled(circuit, validate=False).values(np.ones((1, n), np.int8), 1e-9, "direct")
        assert values.logs()[0] == pytest.approx(n * math.log(1e-3), rel=1e-14)
        assert values.bound[0] <= 1e-9


class TestScaled:
    def test_agrees_with_float64_where_both_can(self) -> None:
        rng = np.random.default_rng(0)
        for seed in range(30):
            circuit = random_circuit(seed, 8, size=30)
            float64 = Float64(lower(homogenize(circuit.simplify())))
            rows = rng.choice([1, 0, -1], size=(40, 8)).astype(np.int8)
            linear = float64.evaluate(rows, np.inf)
            scaled = Scaled(float64).evaluate(rows, 1e-9)
            tolerance = linear.bound + scaled.bound
            fine = tolerance < 1e-6
            difference = np.abs(linear.floats() - scaled.floats())[fine]
            assert (difference <= tolerance[fine] * np.abs(scaled.floats()[fine]) + 1e-300).all()

    def test_sums_of_very_different_sizes(self) -> None:
        def power_of_ten(k: int, name: str) -> Node:
            return product([weighted_sum((1e-200,), (var(f"{name}{i}"),)) for i in range(k)])

        big, small = power_of_ten(3, "a"), power_of_ten(30, "b")
        circuit = Circuit(weighted_sum((1.0, 1.0), (big, small)))
        rows = np.array([[1, 1, 1] + [0] * 30, [0, 0, 0] + [1] * 30, [1, 1, 1] + [1] * 30], np.int8)
        values = Compiled(circuit).values(rows, 1e-9, "direct")
        assert values.logs()[0] == pytest.approx(-600 * math.log(10), rel=1e-14)
        assert values.logs()[1] == pytest.approx(-6000 * math.log(10), rel=1e-14)
        assert values.logs()[2] == -math.inf
        assert (values.bound <= 1e-9).all()


class TestBounds:
    def test_certify_never_divides_by_a_value_smaller_than_its_error(self) -> None:
        value, magnitude = np.array([1.0, 1e-20, 0.0, 0.0, np.nan, np.inf]), np.array([2.0, 1.0, 1.0, 0.0, 1.0, 1.0])
        bound = np.empty(6)
        certify(value, magnitude, 1e-15, 0.0, bound)
        assert bound[0] == pytest.approx(2e-15, rel=1e-3)
        assert bound[1:3].tolist() == [np.inf, np.inf]
        assert bound[3] == 0.0
        assert bound[4:].tolist() == [np.inf, np.inf]

    def test_a_zero_that_may_be_an_underflow_is_not_certified(self) -> None:
        bound = np.empty(1)
        certify(np.zeros(1), np.zeros(1), 1e-15, 1e-320, bound)
        assert bound[0] == np.inf

    def test_rounding_bound(self) -> None:
        assert rounding_bound(10) > 10 * 2.0**-53
        assert rounding_bound(1e17) == np.inf

    def test_underflow_is_weighed_by_what_multiplies_it(self) -> None:
        def floor(weight: float) -> float:
            inner = product((weighted_sum((1e-200,), (var("a"),)), weighted_sum((1e-200,), (var("b"),))))
            program = lower(homogenize(Circuit(weighted_sum((weight,), (product((inner, var("c"))),)))))
            return Analysis(program.slots).run(program).certificate([program.value], [program.magnitude]).floor

        assert floor(1.0) < 1e-320
        assert floor(1e300) == pytest.approx(floor(1e200) * 1e100, rel=1e-3)

    def test_values_of_any_range(self) -> None:
        values = Values(np.array([0.5, 0.75, 0.0]), np.array([-3000, 5000, 0]), np.zeros(3))
        assert values.floats().tolist() == [0.0, np.inf, 0.0]
        expected = [math.log(0.5) - 3000 * math.log(2), math.log(0.75) + 5000 * math.log(2)]
        np.testing.assert_allclose(values.logs()[:2], expected)
        assert values.logs()[2] == -np.inf


class TestIdentity:
    def test_finds_every_square_and_nothing_else(self) -> None:
        names = list("abcd")
        a, b, c, d = (var(x) for x in names)
        square = weighted_sum((1, -1), (product((a, a)), product((b, b, c))))
        program = lower(Circuit(weighted_sum((1, 1, 1), (square, product((c, d)), ONE)), names))
        assert find_squares(program, range(4)).squared == [0, 1]

    def test_inside_determinants(self) -> None:
        tangled = 0
        for seed in range(20):
            circuit = random_det(seed, 4, decomposable=False)
            program = lower(circuit)
            assert find_squares(program, range(4)).squared == []
            tangled += not circuit.facts.decomposable
        assert tangled > 10

    def test_a_square_below_the_root_that_cancels_is_seen_below_only(self) -> None:
        z = var("z")
        grown = weighted_sum((1, 1), (z, ONE))
        square = weighted_sum((1, 2), (product((grown, grown)), z))
        root = weighted_sum((1, -1), (square, product((z, z))))
        program = lower(Circuit(root))
        found = find_squares(program, [0])
        assert found.squared == []
        assert not found.instructions.all()

    @pytest.mark.parametrize("squarings", [10, 48, 120])
    def test_degrees_of_products_that_are_read_in_place(self, squarings: int) -> None:
        """(u + 1)(u − 1) − u² + z + 1 = z: for u = z^(2^48) no random point modulo a prime of 50 bits could tell."""
        z = u = var("z")
        for _ in range(squarings):
            u = product((u, u))
        up, down = weighted_sum((1, 1), (u, ONE)), weighted_sum((1, -1), (u, ONE))
        root = weighted_sum((1, -1, 1, 1), (product((up, down)), product((u, u)), z, ONE))
        program = lower(Circuit(root))
        assert (np.diff(program.first_weight) > program.alone)[program.op == SUM].any()  # a product in a sum
        if squarings < 120:
            found = find_squares(program, [0])
            assert found.squared == []
            assert found.chance < 1e-18
            worse = Circuit(weighted_sum((1, 1), (root, product((z, z)))))
            assert find_squares(lower(worse), [0]).squared == [0]
        else:
            with pytest.raises(pgcc.SemanticsError, match="cannot be tested"):
                find_squares(program, [0])

    def test_coefficients_of_more_bits_than_there_are_primes(self) -> None:
        """If M is a multiple of all small prime powers, 3^M − 1 is 0 modulo 1–6 of 100 random primes."""
        c = const(3)
        for _ in range(110):
            c = product((c, c))
        z = var("z")
        up = weighted_sum((1, 1), (z, c))
        root = weighted_sum((1, -1, -2), (product((up, up)), product((z, z)), product((c, z))))
        with pytest.raises(pgcc.SemanticsError, match="cannot be tested"):
            find_squares(lower(Circuit(root)), [0])

    @pytest.mark.parametrize("text", ["(a + b)*(a - b) + 1/3*b**2", "(3/7*a + 5*b)**5 - 2/9*a", "a*b*(a - 1)**3/1000"])
    def test_formal_bits_bound_the_coefficients(self, text: str) -> None:
        circuit = pgcc.parse(text)
        polynomial = sympy.Poly(circuit.to_sympy())
        bits, degree = formal_bits(lower(circuit))
        assert polynomial.total_degree() <= degree
        x, step = sympy.Symbol("a"), sympy.Symbol("step")
        at = [polynomial.as_expr().subs(x, x + k * step) for k in range(3)]
        for one in (polynomial, sympy.Poly(at[0] - 2 * at[1] + at[2], *polynomial.gens, step)):
            assert max(abs(sympy.Rational(c).p) for c in one.coeffs()).bit_length() <= bits
