"""What files changed once: circuits that came back as other distributions, or not at all."""

from fractions import Fraction
from itertools import product as all_rows

import pytest

import pgcc
from pgcc.errors import FormatError
from pgcc.ir.circuit import Circuit
from pgcc.ir.interpret import probability
from pgcc.ir.node import const, product, var, weighted_sum


def table(circuit):
    rows = all_rows((0, 1), repeat=len(circuit.variables))
    return [probability(circuit, dict(zip(circuit.variables, row, strict=True))) for row in rows]


def literal(i):
    return var(f"x{abs(i)}", i < 0)


def sum_of(*terms):
    weights, nodes = zip(*terms, strict=True)
    return weighted_sum(weights, nodes)


def both(i, j):
    return product((literal(i), literal(j)))


def assert_same_after(circuit, path):
    pgcc.save(circuit, path)
    found = pgcc.load(path)
    for p, q in zip(table(circuit), table(found), strict=True):
        assert abs(p - q) <= Fraction(1, 10**12) * p


COIN = sum_of((0.5, literal(2)), (0.5, literal(-2)))
LONG = Fraction(10**400 + 1, 3 * 10**400)
ABOVE = sum_of((Fraction("1.0004"), both(2, 3)))
WEIGHTS = {
    "above 1": sum_of((0.5, product((literal(1), ABOVE))), (Fraction("0.4998"), product((literal(-1), both(2, 3))))),
    "1e-400": product((sum_of((Fraction(10) ** -400, literal(1)), (1 - Fraction(10) ** -400, literal(-1))), COIN)),
    "1.5·2^-1074": product((sum_of((Fraction(3, 2) / 2**1074, literal(1)), (1.0, literal(-1))), COIN)),
    "product below": product((sum_of((1e-310, sum_of((1e-14, literal(1)))), (1.0, literal(-1))), COIN)),
    "decision below": sum_of((0.5, both(1, 2)), (0.5, both(-1, 2)), (1e-200, sum_of((1e-200, both(1, -2))))),
    "below and above": sum_of((1.0, both(1, 2)), (1e200, sum_of((1e-200, sum_of((1e-200, both(1, -2))))))),
    "1e400": sum_of(
        (1e-200, sum_of((1e-200, sum_of((Fraction(10) ** 400, both(1, 2)))))),
    ),
    "nothing": sum_of((1, both(1, 2)), (1, sum_of((1, sum_of((0, both(1, -2))))))),
    "long": sum_of((LONG, both(1, 2)), (1 - LONG, both(1, -2))),
    "a factor": sum_of((0.5, product((const(Fraction("1.0004")), both(1, 2)))), (Fraction("0.4998"), both(1, -2))),
}


@pytest.mark.parametrize("root", WEIGHTS.values(), ids=WEIGHTS.keys())
def test_a_psdd_keeps_weights_of_any_size(root, tmp_path):
    """Weights above 1 became 1 (off by 4e-4), small ones 0, and some a traceback."""
    names = sorted({node.name for node in Circuit(root).order if node.op.name == "VAR"})
    assert_same_after(Circuit(root, names), tmp_path / "some.psdd")


REFUSED = {
    "total": (sum_of((Fraction("1.0004"), both(1, 2))), r"the total of this circuit is 1\.0004"),
    "total of one": (sum_of((0.5002, literal(1)), (0.5, literal(-1))), r"the total of this circuit is 1\.0002"),
    "near 1": (
        product((sum_of((1 - Fraction(10) ** -400, literal(1)), (Fraction(10) ** -400, literal(-1))), COIN)),
        r"x1 is 0 with a probability of about 1e-400",
    ),
    "below all": (
        sum_of((Fraction(10) ** -1000, both(1, 2)), (1 - Fraction(10) ** -1000, both(-1, 2))),
        r"a weight of about 1e-1000",
    ),
}


@pytest.mark.parametrize(("root", "reason"), REFUSED.values(), ids=REFUSED.keys())
def test_what_a_psdd_cannot_hold_is_refused(root, reason, tmp_path):
    """The first two came back with the total 1, the third with a zero; the last could not be read."""
    names = sorted({node.name for node in Circuit(root).order if node.op.name == "VAR"})
    with pytest.raises(FormatError, match=reason):
        pgcc.save(Circuit(root, names), tmp_path / "some.psdd")
