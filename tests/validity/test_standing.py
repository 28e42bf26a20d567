"""What is no distribution is refused: by `compile` where it finds that out, and otherwise by every question."""

import pickle
from fractions import Fraction

import numpy as np
import pytest

import pgcc
from pgcc.errors import SemanticsError
from pgcc.ir.circuit import Circuit
from pgcc.ir.node import ONE, product, var, weighted_sum

# Pr(x) = 3/2, Pr(not x) = −1/2; y is independent of it.
SIGNED = pgcc.parse("(1.5*x - 0.5) * (0.5*y + 0.5)")
# All single probabilities are between 0 and 1, but Pr(y | x) = 5/3 and Pr(x, not y) = −0.2.
PAIR = pgcc.parse("0.5*x*y - 0.2*x + 0.7")

# Every question, asked in a way that meets what is wrong with both circuits.
QUESTIONS = {
    "prob": lambda m: m.prob({"x": 1, "y": 0}) if m.circuit is PAIR else m.prob({"x": 1}),
    "prob of rows": lambda m: m.prob(np.array([[1, 0], [1, -1]] * 1000)),
    "prob with a bound": lambda m: m.prob([[1, 0], [1, -1]], bound=True),
    "prob exactly": lambda m: [m.prob(e, exact=True) for e in ({"x": 1, "y": 0}, {"x": 1})],
    "logprob": lambda m: [m.logprob(e) for e in ({"x": 1, "y": 0}, {"x": 1})],
    "logprob of rows": lambda m: m.logprob(np.array([[1, 0], [1, -1]] * 1000)),
    "marginals": lambda m: m.marginals({"x": 1} if m.circuit is PAIR else None, names=False),
    "conditional": lambda m: m.conditional({"y": 1, "x": 1}, given={"x": 1} if m.circuit is PAIR else {"y": 0}),
    "condition": lambda m: m.condition({"x": 1, "y": 0} if m.circuit is PAIR else {"x": 0}),
    "condition and prob": lambda m: m.condition({"x": 1} if m.circuit is PAIR else {"y": 1}).prob(
        {m.variables[m.circuit is PAIR]: 1}
    ),
    "pairwise": lambda m: m.pairwise(),
    "covariance": lambda m: m.covariance(),
    "cardinality": lambda m: m.cardinality(),
    "cardinality to atol": lambda m: m.cardinality(atol=1e-9),
    "any_of": lambda m: m.any_of({"x": 1} if m.circuit is PAIR else None, over=["x", "y"]),
    "conditional of none": lambda m: m.conditional(
        {"x": 0} if m.circuit is SIGNED else {"y": 0}, {"x": 1} if m.circuit is PAIR else None
    ),
    "conditional of all": lambda m: m.conditional({"x": 1, "y": 1}, {"x": 1} if m.circuit is PAIR else {"y": 1}),
    "parity": lambda m: m.parity(),
    "expected_count": lambda m: m.expected_count({"x": 1} if m.circuit is PAIR else None),
    "moments": lambda m: m.moments(),
    "sample": lambda m: m.sample(100, rng=0),
    "mode": lambda m: m.mode(),
    "top": lambda m: m.top(2),
    "entropy": lambda m: m.entropy(),
    "kl": lambda m: m.kl(pgcc.compile(pgcc.parse("(0.5*x + 0.5)*(0.5*y + 0.5)"))),
    "kl to it": lambda m: pgcc.compile(pgcc.parse("(0.5*x + 0.5)*(0.5*y + 0.5)")).kl(m),
    "mutual_information": lambda m: m.mutual_information("x", "y"),
    "log_odds": lambda m: m.log_odds({"x": 1} if m.circuit is PAIR else None, names=False),
    "size": lambda m: m.condition(size=1).prob({"x": 1}),
    "marginals of a size": lambda m: m.marginals(size=1),
    "sample of a size": lambda m: m.sample(100, size=1, rng=0),
    "grad": lambda m: [m.grad(e) for e in ({"x": 1, "y": 0}, {"x": 1})],
    "explain": lambda m: m.explain({"x": 1, "y": 0}) if m.circuit is PAIR else m.explain({"x": 1}),
}


def test_every_question_is_here():
    # explore() makes a page, which says so itself when it meets a probability that is none. do() and sensitivity() are
    # about networks, whose tables are checked when they are read.
    others = {"variables", "states", "standing", "circuit", "explore", "do", "sensitivity"}
    public = {name for name in dir(pgcc.Model) if not name.startswith("_")} - others
    assert public <= {name.split()[0] for name in QUESTIONS}


@pytest.mark.parametrize("circuit", [SIGNED, PAIR], ids=["above one", "pair"])
@pytest.mark.parametrize("question", QUESTIONS)
def test_questions_refuse_what_is_no_distribution(question, circuit):
    model = pgcc.compile(circuit, validate=False)
    with pytest.raises(SemanticsError, match=r"evidence.*(negative|above 1|below 0)|the total g\(1\) is -"):
        QUESTIONS[question](model)


@pytest.mark.parametrize(
    ("text", "witness"),
    [("1.5*x - 0.5", "x=0 is -1/2"), ("0.5*x*y - 0.2*x + 0.7", "x=1, y=0 is -1/5"), ("2 - z", "z=1 is -1"),
     ("(a + 1)**2 - a**2 - 2.5*a", "a=1 is -1/2")],
)  # fmt: skip
def test_compile_refuses_with_a_witness(text, witness):
    with pytest.raises(SemanticsError, match=f"not a distribution: the coefficient of {witness}, below 0"):
        pgcc.compile(pgcc.parse(text))
    raw = pgcc.compile(pgcc.parse(text), normalize=False)
    assert raw.prob({}) > 0
    assert "not proven" not in repr(raw)


@pytest.mark.parametrize("n", [3, 12, 20, 40])
def test_one_negative_coefficient_among_many(n):
    """`sample`, `mode`, `entropy` and `kl` answered without a word."""
    x = pgcc.variables([f"x{i}" for i in range(n)])
    each = Fraction(1, 2**n)
    uniform = pgcc.product([(v + 1) / 2 for v in x])
    wrong = uniform - 2 * each * pgcc.product(x) + 2 * each * pgcc.product(x[: n // 2])
    with pytest.raises(SemanticsError, match="not a distribution"):
        pgcc.compile(wrong)
    right = uniform - each * pgcc.product(x) + each * pgcc.product(x[: n // 2])
    assert pgcc.compile(right).prob(dict.fromkeys(right.variables, 1)) == 0.0


def test_floats_are_given_an_allowance():
    """0.3 − 0.1 − 0.2 is −5.6e-17 of doubles: nothing that a model should be refused for."""
    a, b = pgcc.variables("a b")
    circuit = (0.3 * a * b - 0.1 * a * b) + (-0.2 * a * b) + 1.0 + a
    assert pgcc.check(circuit, normalize=True).nonnegative.proved
    assert pgcc.compile(circuit).prob({"a": 1}) == pytest.approx(0.5)


def test_what_is_known_is_said():
    monotone = pgcc.compile(pgcc.parse("0.4*a*b + 0.6"))
    assert monotone.standing.proved
    assert "nonnegative: proved: there are no negative numbers" in str(monotone.explain())
    kernel = pgcc.compile(pgcc.dpp(L=[[2.0, 1.0], [1.0, 3.0]]))
    assert "determinants" in kernel.standing.reason
    signed = pgcc.compile(pgcc.parse("(a + 1)*(b + 1) - 0.5*a*b"))
    assert "rules" in signed.standing.reason
    assert all("not proven" not in repr(model) for model in (monotone, kernel, signed))
    open_case = pgcc.compile(SIGNED, validate=False)
    assert "not proven to be a distribution" in repr(open_case)
    assert "nonnegative: not proven: it was not tested" in str(open_case.explain())
    assert "not proven" in repr(pickle.loads(pickle.dumps(open_case)))


def test_a_search_that_finds_nothing_says_so():
    """Π (x·y + 1)/2 − ε·Π x·y over 15 pairs is a distribution for ε ≤ 2⁻¹⁵: no rule knows, and 2³⁰ are too many."""
    names = [f"x{i}*y{i}" for i in range(15)]
    halves = " * ".join(f"(0.5*{pair} + 0.5)" for pair in names)
    for epsilon in (Fraction(1, 2**15 + 1), Fraction(1, 2**15)):
        model = pgcc.compile(pgcc.parse(f"{halves} - {epsilon}*{'*'.join(names)}"))
        assert not model.standing.proved
        assert "no rule was found" in model.standing.reason
        assert "coefficients is negative; pgcc.check looks further" in model.standing.reason
        ones = dict.fromkeys(model.circuit.variables, 1)
        expected = (Fraction(1, 2**15) - epsilon) / (1 - epsilon)
        assert model.prob(ones, exact=True) == expected
        assert model.prob(ones) == pytest.approx(float(expected), rel=1e-9, abs=0)
    wrong = pgcc.parse(f"{halves} - {Fraction(1, 2**15 - 1)}*{'*'.join(names)}")
    with pytest.raises(SemanticsError, match="below 0"):
        pgcc.compile(wrong)


def test_parts_of_a_proved_distribution_are_proved():
    model = pgcc.compile(pgcc.parse("(a + 1)*(b + 1)*(c + 1) - 0.5*a*b"))
    assert model.condition({"a": 1}).standing.proved
    assert model.condition(size=1).standing.proved


def test_gradients_of_what_is_no_distribution():
    with pytest.raises(SemanticsError, match=r"above 1|negative"):
        pgcc.grad(SIGNED, {"x": 1})


def test_parts_of_what_is_tolerated():
    """A coefficient of −1e-13 is tolerated of floats. Given x it is all there is: Pr(y | x) = 2 was "proved"."""
    x, y = var("x"), var("y")
    model = pgcc.compile(Circuit(weighted_sum([1.0, -1e-13, 2e-13], [ONE, x, product([x, y])])))
    assert model.standing.proved
    assert not model.standing.certain
    assert "tolerated" in str(model.standing)
    with pytest.raises(SemanticsError, match="below 0"):
        model.condition({"x": 1})
    with pytest.raises(SemanticsError, match="above 1"):
        pgcc.compile(Circuit(weighted_sum([1.0, -1e-13], [ONE, x]))).prob({"x": 0})
    assert pgcc.compile(pgcc.parse("(a + 1)*(b + 1) - 0.5*a*b")).standing.certain
