"""The printer: what people see, what files hold, and what Graphviz draws."""

from fractions import Fraction

import numpy as np
import pytest
from any_circuits import any_circuits, at_points, exact_numbers, numbers, same_polynomial
from how_many import some
from hypothesis import given, settings

import pgcc
from pgcc.collector import collector_paused
from pgcc.ir.circuit import Circuit
from pgcc.ir.node import ONE, const, det, product, var, weighted_sum
from pgcc.ir.printer import INLINE_LIMIT, SHOWN_LINES, expression_text, pgc_text
from pgcc.ir.spelling import MAX_BITS, MAX_NAME, display_text, number_text, read_exact

a, b, c = pgcc.variables("a b c")

SHOWN = [
    (a, "a"),
    (a * b / 2 + 1 / 2, "1/2*a*b + 0.5"),
    (Fraction(2, 5) * b + Fraction(3, 10), "2/5*b + 3/10"),
    (a - (b + c), "a - (b + c)"),
    (a + (b - c), "a + b - c"),
    (a - b * c, "a - b*c"),
    (-a * b - 3, "-a*b - 3"),
    (-(a + b), "-(a + b)"),
    ((a + b) * c, "(a + b)*c"),
    ((a + b) ** 2 * c, "(a + b)**2*c"),
    ((-a) ** 2, "(-a)**2"),
    ((a * b) ** 2, "(a*b)**2"),
    (2 * (3 * a), "2*(3*a)"),
    (2 * a * (3 * b), "2*a*(3*b)"),
    (0 * a, "0*a"),
    (1.0 * a, "1.0*a"),
    (-0.25 * a * b + 1, "-0.25*a*b + 1"),
    (1 - a, "1 - a"),
    (a + -1, "a - 1"),
    (Circuit(const(Fraction(-1, 2))), "-1/2"),
    (Circuit(weighted_sum((), ())), "0"),
    (Circuit(product(())), "1"),
    (Circuit(product((const(2), var("a")))), "2*a"),
    (Circuit(product((const(Fraction(1, 2)), var("a")))), "1/2*a"),
    (Circuit(product((var("a"), const(Fraction(1, 2))))), "a*(1/2)"),
    (Circuit(weighted_sum((Fraction(3, 10), 2), (ONE, const(-3)))), "3/10 + 2*(-3)"),
    (Circuit(var("a", complement=True)) * b, "~a*b"),
    (Circuit(var("a-b")) + 1, '"a-b" + 1'),
    (Circuit(det([[1]], [[2]], [["1/2"]], [var("a")])), "det([[1]], [[2]], [[1/2]], [a])"),
    (
        Circuit(det([[1.5]], [[1]], [[1]], [var("a")], [var("a", complement=True)])),
        "det([[1.5]], [[1]], [[1]], [a], [~a])",
    ),
]


@pytest.mark.parametrize(("circuit", "text"), SHOWN, ids=[text for _, text in SHOWN])
def test_what_people_see(circuit, text):
    assert expression_text(circuit) == text
    assert str(circuit) == text


@given(any_circuits(numbers=exact_numbers))
@settings(max_examples=some(120), deadline=None)
def test_the_shown_text_means_the_same(circuit):
    """What is shown of a small circuit without floats is the polynomial itself."""
    again = Circuit(pgcc.parse(expression_text(circuit)).root, circuit.variables)
    assert at_points(again) == at_points(circuit)


@given(any_circuits())
@settings(max_examples=some(200), deadline=None)
def test_files_hold_the_same_circuit(circuit):
    """Node for node, floats as floats and exact numbers as exact numbers."""
    assert pgcc.parse(pgc_text(circuit)) == circuit


def test_a_float_times_a_float_stays_one():
    """It came back as a fraction, so that what was proved of the circuit was refuted of its file."""
    circuit = Circuit(weighted_sum((0.1, 0.9), (product((var("a"), const(1.0))), const(1.0))))
    text = pgc_text(circuit)
    assert text == "variables a\n0x1.999999999999ap-4*a*const(0x1p+0) + 0x1.ccccccccccccdp-1*const(0x1p+0)\n"
    assert pgcc.parse(text) == circuit
    for one in (circuit, pgcc.parse(text)):
        assert not one.facts.exact


@pytest.mark.parametrize(
    ("circuit", "text"),
    [
        (weighted_sum((), ()), "sum()"),
        (weighted_sum((1,), (var("a"),)), "sum(a)"),
        (weighted_sum((1,), (weighted_sum((2,), (var("a"),)),)), "sum((2*a))"),
        (product(()), "product()"),
        (product((const(3),)), "product(const(3))"),
        (weighted_sum((1, 1, 1), (const(0), const(2), const(3))), "const(0) + 2 + const(3)"),
        (weighted_sum((2, 1), (ONE, var("a"))), "2*const(1) + a"),
    ],
)
def test_what_only_files_say(circuit, text):
    """Nodes that the same text without functions would compute."""
    circuit = Circuit(circuit)
    assert pgc_text(circuit).splitlines()[-1] == text
    assert pgcc.parse(text).root is circuit.root
    assert not any(word in str(circuit) for word in ("sum", "product", "const"))  # for people


def test_files_of_old_still_load():
    old = "variables a\nn1 = 0x1p-1*0x1p+0\nn1*a + 0x1p-1*0x1p+0\n"
    assert same_polynomial(pgcc.parse(old), pgcc.parse("a/2 + 1/2"))
    assert pgcc.parse("const + sum*product").variables == ("const", "sum", "product")


@given(numbers)
def test_numbers_keep_value_and_kind(number):
    value = Circuit(const(number)).root.value
    again = pgcc.parse(number_text(value)).root.value
    assert again == value
    assert type(again) is type(value)


def test_floats_survive_as_floats():
    circuit = 0.1 * a + 0.7 * b - 0.3 * (a * b) + 5e-324 * c
    again = pgcc.parse(pgc_text(circuit))
    assert again == circuit
    assert not again.facts.exact


def test_the_order_of_variables_is_kept_and_unused_ones_too():
    circuit = Circuit(var("b"), ["c", "b", "a"])
    assert pgc_text(circuit) == "variables c, b, a\nb\n"
    assert pgcc.parse(pgc_text(circuit)) == circuit


def test_definitions_avoid_the_names_of_variables():
    x, y = pgcc.variables(["n1", "n_7"])
    shared = x + y
    text = pgc_text(shared * 2 + shared * shared)
    assert "n__1 = n1 + n_7" in text
    assert same_polynomial(pgcc.parse(text), shared * 2 + shared * shared)


def test_sharing_does_not_blow_up():
    """2^200 terms when expanded: 200 lines in a file, and a short text for people."""
    node = weighted_sum((1, 1), (var("a"), var("b")))
    for i in range(200):
        node = weighted_sum((1, i), (product((node, node)), node))
    circuit = Circuit(node)
    text = pgc_text(circuit)
    assert 200 <= text.count("\n") <= 250
    assert pgcc.parse(text) == circuit
    shown = str(circuit)
    assert shown.count("\n") <= SHOWN_LINES
    assert "more lines" in shown
    assert shown.endswith("199*n200")


def test_depth_and_width_do_not_matter():
    node = var("a")
    with collector_paused():
        for i in range(8_000):
            node = weighted_sum((0.5, 1), (product((node, var(f"z{i % 9}"))), ONE))
        circuit = Circuit(node)
        text = pgc_text(circuit)
        assert pgcc.parse(text) == Circuit(node, pgcc.parse(text).variables)
    assert max(map(len, text.splitlines())) < 160
    wide = Circuit(weighted_sum([0.25] * 8_000, [var(f"z{i}") for i in range(8_000)]))
    text = pgc_text(wide)
    assert max(map(len, text.splitlines())) < 160
    assert pgcc.parse(text) == wide
    assert len(str(wide)) < 20_000


def test_long_numbers_are_written_in_hexadecimal_and_enormous_ones_refused():
    long = Fraction(3**20_000, 2**30_000 + 1)
    circuit = long * a
    text = pgc_text(circuit)
    assert "0x" in text
    assert pgcc.parse(text) == circuit
    assert len(str(circuit)) < 60
    with pytest.raises(pgcc.CircuitError, match="too long to be written"):
        pgc_text(2**MAX_BITS * a)


def test_display_of_numbers():
    assert display_text(Fraction(1, 3)) == "1/3"
    assert display_text(-(10**80)) == "-1e+80"
    assert display_text(Fraction(1, 2**5000 + 1)) == "2**-5000"
    assert display_text(-(2**5000)) == "-2**5000"


@pytest.mark.parametrize("text", ["", "1/0", "1/-2", "0x", "1.5", "٣", " 1", "1_000", "9" * 5000, "0x" + "f" * 50_000])
def test_exact_numbers_in_files_are_strict(text):
    with pytest.raises(ValueError, match="is not"):
        read_exact(text)


def test_too_long_names_cannot_be_written():
    with pytest.raises(pgcc.CircuitError, match="characters"):
        pgc_text(Circuit(var("z" * (MAX_NAME + 1))))


def test_large_matrices_are_shown_by_their_shape_only():
    n = 30
    circuit = Circuit(det(np.eye(n), np.eye(n), np.eye(n), [var(f"z{i}") for i in range(n)]))
    assert "[30×30 matrix]" in str(circuit)
    assert pgcc.parse(pgc_text(circuit)) == circuit


def test_an_inline_text_is_bounded():
    names = [var("x" * 50 + str(i)) for i in range(60)]
    circuit = Circuit(weighted_sum([1] * 60, names))
    assert sum(len(v) for v in circuit.variables) > INLINE_LIMIT
    assert "\n" in str(circuit)
