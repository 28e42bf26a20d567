"""Circuits of every shape the IR allows, however odd, and how to tell that two are the same polynomial."""

from fractions import Fraction

import numpy as np
from hypothesis import strategies as st

from pgcc.ir.circuit import Circuit
from pgcc.ir.interpret import evaluate
from pgcc.ir.node import const, det, product, var, weighted_sum

NAMES = ["z1", "a-b", "det", "variables", "n1", "n_2", 'say "hi"', "back\\slash", "é", "two words", "#", "0", "x²"]

floats = st.floats(allow_nan=False, allow_infinity=False)
fractions = st.fractions(max_denominator=50).filter(lambda q: abs(q) < 10**6)
exact_numbers = st.one_of(
    st.sampled_from([0, 1, -1, 2, Fraction(1, 3), Fraction(-2, 7)]),
    st.integers(-(10**30), 10**30),
    fractions,
)
numbers = st.one_of(exact_numbers, st.sampled_from([1.0, -1.0, 0.0, -0.0, 0.1, -0.5]), floats)


@st.composite
def matrices(draw, rows, columns, numbers):
    entries = st.lists(st.lists(numbers, min_size=columns, max_size=columns), min_size=rows, max_size=rows)
    if numbers is not exact_numbers and draw(st.booleans()):
        small = st.floats(-4, 4)
        values = draw(st.lists(small, min_size=rows * columns, max_size=rows * columns))
        return np.array(values, dtype=float).reshape(rows, columns)
    return draw(entries)


@st.composite
def any_circuits(draw, steps=6, dets=True, complements=True, numbers=numbers):
    """A circuit of up to `steps` operations on anything made before."""
    listed = draw(st.lists(st.sampled_from(NAMES), unique=True, min_size=1, max_size=4))
    nodes = [var(name) for name in listed] + [const(draw(numbers))]
    if complements:
        nodes.append(var(listed[0], complement=True))
    for _ in range(draw(st.integers(0, steps))):
        kind = draw(st.sampled_from(["sum", "sum", "product", "product"] + ["det"] * dets))
        picked = st.lists(st.sampled_from(nodes), max_size=3)
        if kind == "sum":
            children = draw(picked)
            weights = draw(st.lists(numbers, min_size=len(children), max_size=len(children)))
            nodes.append(weighted_sum(weights, children))
        elif kind == "product":
            nodes.append(product(draw(picked)))
        else:
            inside = draw(st.lists(st.sampled_from(nodes), max_size=2))
            outside = draw(st.none() | st.lists(st.sampled_from(nodes), min_size=len(inside), max_size=len(inside)))
            r, k = draw(st.integers(0, 2)), len(inside)
            m0, u, v = (draw(matrices(r, n, numbers)) for n in (r, k, k))
            nodes.append(det(m0, u, v, inside, outside, draw(st.none() | st.integers(0, k))))
    return Circuit(draw(st.sampled_from(nodes[-3:])), draw(st.permutations(listed)))


def at_points(circuit):
    """The exact values at a few points without structure: equal polynomials agree, and others hardly ever do."""
    n = len(circuit.variables)
    points = [
        [Fraction(101 + 37 * i, 13 + 2 * i) for i in range(n)],
        [Fraction(7 * i * i - 5, 3 + i) for i in range(n)],
    ]
    return [evaluate(circuit, dict(zip(sorted(circuit.variables), point, strict=True))) for point in points]


def same_polynomial(a, b):
    return a.variables == b.variables and at_points(a) == at_points(b)
