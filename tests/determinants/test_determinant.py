"""`pgcc.determinant`, and its two expansions against SymPy and flint."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from itertools import chain, permutations, product

import flint
import numpy as np
import pytest
import sympy

import pgcc
from pgcc.ir.circuit import Circuit
from pgcc.ir.interpret import evaluate, probability
from pgcc.ir.node import ZERO, const, var
from pgcc.passes.berkowitz import berkowitz


def expand(A):
    return berkowitz([[[x] for x in row] for row in A])


def names_of(n: int) -> list[list[str]]:
    return [[f"a{i}_{j}" for j in range(n)] for i in range(n)]


def symbols(n: int) -> list[list]:
    return [[var(name) for name in row] for row in names_of(n)]


def expanded(node, names: list[str]) -> flint.fmpz_mpoly:
    """The polynomial of a circuit with integer weights, multiplied out by flint."""
    ring = flint.fmpz_mpoly_ctx.get(names, "lex")
    values = dict(zip(names, ring.gens(), strict=True))
    return evaluate(Circuit(node, names), values, lambda q: ring.constant(int(q)))


def leibniz(n: int) -> flint.fmpz_mpoly:
    """Σ sign(p) · Π a[i][p(i)]"""
    names = list(chain(*names_of(n)))
    ring = flint.fmpz_mpoly_ctx.get(names, "lex")
    terms = {}
    for p in permutations(range(n)):
        inversions = sum(p[i] > p[j] for i in range(n) for j in range(i + 1, n))
        powers = [0] * (n * n)
        for i in range(n):
            powers[i * n + p[i]] = 1
        terms[tuple(powers)] = (-1) ** inversions
    return ring.from_dict(terms)


@pytest.mark.parametrize("n", range(1, 8))
def test_symbolic_entries(n):
    names = list(chain(*names_of(n)))
    assert expanded(expand(symbols(n)), names) == leibniz(n)


@pytest.mark.parametrize("n", [2, 3, 4])
def test_against_sympy(n):
    text = [[f"a{i}_{j}" if (i + j) % 3 else str(i - 2 * j) for j in range(n)] for i in range(n)]
    matrix = sympy.Matrix(n, n, lambda i, j: sympy.sympify(text[i][j]))
    entries = [[var(x) if x[0] == "a" else const(x) for x in row] for row in text]
    circuit = Circuit(expand(entries))
    assert sympy.expand(circuit.to_sympy() - matrix.det(method="berkowitz")) == 0


def test_numbers_and_zeros():
    assert expand([]).value == 1
    rng = random.Random(0)
    for n in range(1, 7):
        rows = [[rng.choice([0, 0, 1, -2, 3, Fraction(1, 2)]) for _ in range(n)] for _ in range(n)]
        node = expand([[const(x) for x in row] for row in rows])
        exact = flint.fmpq_mat(n, n, [flint.fmpq(*Fraction(x).as_integer_ratio()) for row in rows for x in row]).det()
        assert not node.children
        assert Fraction(node.value) == Fraction(int(exact.p), int(exact.q))
    zero = [[var("a"), ZERO], [ZERO, ZERO]]
    assert evaluate(Circuit(expand(zero), ["a"]), {"a": Fraction(5)}) == 0


def test_sparse_matrices():
    """A tridiagonal determinant obeys d_k = a_k·d_{k−1} − b·c·d_{k−2}."""
    n = 6
    A = [[var(f"a{i}_{j}") if abs(i - j) <= 1 else ZERO for j in range(n)] for i in range(n)]
    rng = random.Random(1)
    values = {f"a{i}_{j}": Fraction(rng.randint(-5, 5)) for i in range(n) for j in range(n)}
    before, now = Fraction(0), Fraction(1)
    for k in range(n):
        away = values[f"a{k}_{k - 1}"] * values[f"a{k - 1}_{k}"] if k else 0
        before, now = now, values[f"a{k}_{k}"] * now - away * before
    assert evaluate(Circuit(expand(A)), values) == now


def growth() -> float:
    small, large = (Circuit(expand(symbols(n))).edges for n in (8, 24))
    return math.log(large / small) / math.log(24 / 8)


@pytest.mark.slow
def test_the_size_grows_as_the_paper_says():
    assert 3.5 < growth() < 4.2


@pytest.mark.parametrize("place", [0, 5, 11])
def test_an_arrow_is_expanded_from_its_sparse_end(place):
    A = [[x if i == j or place in (i, j) else ZERO for j, x in enumerate(row)] for i, row in enumerate(symbols(12))]
    assert Circuit(expand(A)).edges < 1000


# -- the public function -------------------------------------------------------------------------------------


def test_low_rank_form():
    I = np.eye(2)  # noqa: E741
    d = pgcc.determinant(I, I, np.array([[2.0, 1.0], [1.0, 2.0]]), ["a", "b"])
    assert d == pgcc.dpp([[2.0, 1.0], [1.0, 2.0]], names=["a", "b"])
    a, b, c = pgcc.variables("a b c")
    d = pgcc.determinant([[1, 0], [0, 1]], [[1, 0], [0, 1]], [[2, 1], [1, 2]], [(a + b) / 2, c])
    assert d.variables == ("a", "b", "c")
    model = pgcc.compile(d)
    assert model.prob({"a": 1, "b": 0, "c": 1}, exact=True) == Fraction(3, 16)
    total = sum(model.prob(np.array(list(product((0, 1), repeat=3)), dtype=np.int8), exact=True))
    assert total == 1
    assert probability(pgcc.determinant([[1]], [[1]], [[1]], [3]), {}) == 4


def test_children_may_share_variables():
    d = pgcc.determinant([[0, 1], [1, 0]], [[1, 0], [0, 1]], [[1, 0], [0, 1]], ["a", "a"])  # a² − 1
    with pytest.raises(pgcc.SemanticsError, match="'a'"):
        pgcc.compile(d)


def test_a_matrix_of_polynomials():
    x, y = pgcc.variables("x y")
    d = pgcc.determinant([[1 + x, 0.5 * x, 0], ["y", 1 + y, Fraction(1, 3)], [0, 2, 1]])
    assert d.variables == ("x", "y")
    at = {"x": Fraction(3), "y": Fraction(5)}
    assert evaluate(d, at) == 4 * (6 - Fraction(2, 3)) - Fraction(3, 2) * 5
    assert probability(pgcc.determinant([]), {}) == 1
    assert pgcc.determinant(np.array([[1.0, 2.0], [3.0, 4.0]])).root.value == -2
    assert pgcc.determinant([["x"]]).root is var("x")


def test_larger_matrices_of_polynomials():
    n = 13
    d = pgcc.determinant([[f"a{i}" if i == j else Fraction(1, 1 + i + j) for j in range(n)] for i in range(n)])
    values = {f"a{i}": Fraction(i, 3) for i in range(n)}
    entries = [values[f"a{i}"] if i == j else Fraction(1, 1 + i + j) for i in range(n) for j in range(n)]
    exact = flint.fmpq_mat(n, n, [flint.fmpq(*q.as_integer_ratio()) for q in entries]).det()
    assert evaluate(d, values) == Fraction(int(exact.p), int(exact.q))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([["x", 1], [1]],), "row 1 of the argument of determinant has 1 entry, but row 0 has 2"),
        (([["x", 1]],), "needs a square matrix, not 1×2"),
        ((5,), "has to be a matrix, such as a list of rows, not 5"),
        (("ab",), "has to be a matrix, such as a list of rows, not 'ab'"),
        (([[None]],), r"entry \[0, 0\] is a circuit, the name of a variable or a number, not None"),
        (([["0.5"]],), r"entry \[0, 0\] is the text '0.5', .* Fraction\('0.5'\)"),
        (([["x"] * 65] * 65,), "the limit is 64 rows"),
        (([[1]], [[1]]), "needs V and children too"),
        (([[1]], None, None, ["a"]), "needs U and V too"),
        (([[1]], [[1]], [[1]], ["a", "b"]), "with 2 children needs M0 of shape r×r and U, V of shape r×2"),
        (([[1]], [[1]], [[1, 2]], ["a"]), "U, V of shape r×1"),
        (([[1, 2]], [[1]], [[1]], ["a"]), "M0 of shape r×r"),
        (([[1], [1, 2]], [[1]], [[1]], ["a"]), "row 1 of M0 has 2 entries, but row 0 has 1"),
        (([[1]], 3, [[1]], ["a"]), "U has to be a matrix, such as a list of rows, not 3"),
        (([[float("nan")]], [[1]], [[1]], ["a"]), "nan"),
        (([[1]], [[1]], [[1]], [None]), "child 0 of the determinant is a circuit"),
        (([[1]], [[1]], [[1]], "a"), "a sequence of circuits or names, not 'a'"),
        (([[1]], [[1]], [[1]], 7), "a sequence of circuits or names, not 7"),
        (([["x", 1j], [1, 1]],), r"entry \[0, 1\] .* not 1j"),
    ],
)
def test_malformed(arguments, message):
    with pytest.raises(pgcc.PgccError, match=message):
        pgcc.determinant(*arguments)


# -- mixtures and compositions -------------------------------------------------------------------------------


def table(weight, names: list[str]) -> dict[tuple[int, ...], Fraction]:
    """The probability of every row by a function of the set that is in."""
    rows = list(product((0, 1), repeat=len(names)))
    raw = {row: Fraction(weight({x for x, inside in zip(names, row, strict=True) if inside})) for row in rows}
    total = sum(raw.values())
    return {row: p / total for row, p in raw.items()}


def minor(L, members) -> Fraction:
    """Leibniz' sum"""
    total = Fraction(0)
    for p in permutations(range(len(members))):
        inversions = sum(p[i] > p[j] for i in range(len(p)) for j in range(i + 1, len(p)))
        entries = (Fraction(L[members[i]][members[p[i]]]) for i in range(len(p)))
        total += (-1) ** inversions * math.prod(entries, start=Fraction(1))
    return total


def check_table(circuit: pgcc.Circuit, expected: dict[tuple[int, ...], Fraction]) -> None:
    """All full rows, and every query on the first four variables."""
    n = len(circuit.variables)
    rows = np.array(list(expected), dtype=np.int8)
    model = pgcc.compile(circuit)
    np.testing.assert_allclose(model.prob(rows), [float(p) for p in expected.values()], rtol=1e-12, atol=0)
    some = np.full((81, n), -1, dtype=np.int8)
    some[:, :4] = list(product((1, 0, -1), repeat=4))
    sums = [
        float(sum(p for row, p in expected.items() if all(a in (-1, b) for a, b in zip(asked, row, strict=True))))
        for asked in some.tolist()
    ]
    np.testing.assert_allclose(model.prob(some), sums, rtol=1e-12, atol=0)


def test_a_dpp_a_tree_and_a_product_over_the_same_variables():
    edges = [("p", "q", 2), ("q", "r", 1), ("r", "p", 3), ("r", "s", 1), ("s", "p", 2)]
    tree = pgcc.spanning_tree(edges)
    names = list(tree.variables)
    L = [[3 if i == j else 1 for j in range(5)] for i in range(5)]
    d = pgcc.dpp(L, names=names)
    chances = [Fraction(k, 7) for k in range(1, 6)]
    independent = math.prod(
        (p * z + (1 - p) for p, z in zip(chances, pgcc.variables(names), strict=True)), start=Circuit(const(1))
    )

    def tree_weight(inside) -> int:
        parts = {node: {node} for node in "pqrs"}
        for u, v, _ in (edges[names.index(x)] for x in inside):
            if parts[u] is parts[v]:
                return 0
            joined = parts[u] | parts[v]
            parts.update(dict.fromkeys(joined, joined))
        return math.prod(edges[names.index(x)][2] for x in inside) if len(inside) == 3 else 0

    by_tree = table(tree_weight, names)
    by_dpp = table(lambda inside: minor(L, [names.index(x) for x in inside]), names)
    by_product = table(
        lambda inside: math.prod(p if x in inside else 1 - p for x, p in zip(names, chances, strict=True)), names
    )
    trees, sets = probability(tree, {}), probability(d, {})
    mixed = tree * (Fraction(1, 2) / trees) + d * (Fraction(1, 3) / sets) + independent / 6
    check_table(mixed, {row: by_tree[row] / 2 + by_dpp[row] / 3 + by_product[row] / 6 for row in by_tree})


def test_a_determinant_over_circuits():
    """det(I + diag(f)·L) = Σ_S det(L_S)·Π_{i∈S} f_i, each f over variables of its own, one of them a DPP itself."""
    L = [[2, 1, 0], [1, 3, 1], [0, 1, 1]]
    I = [[int(i == j) for j in range(3)] for i in range(3)]  # noqa: E741
    a, b, c, d = pgcc.variables("a b c d")
    inner = [[1, Fraction(1, 2)], [Fraction(1, 2), 1]]
    children = [a * b / 2 + a / 4 + Fraction(1, 4), (c + d) / 2, pgcc.dpp(inner, names=["e", "f"])]
    leaves = [
        lambda s: {"ab": Fraction(1, 2), "a": Fraction(1, 4), "": Fraction(1, 4)}.get(
            "".join(sorted(s & {"a", "b"})), 0
        ),
        lambda s: Fraction(len(s & {"c", "d"}) == 1, 2),
        lambda s: minor(inner, [i for i, x in enumerate("ef") if x in s]),
    ]
    scopes = [{"a", "b"}, {"c", "d"}, {"e", "f"}]

    def weight(inside) -> Fraction:
        total = Fraction(0)
        for chosen in product((0, 1), repeat=3):
            members = [i for i in range(3) if chosen[i]]
            if all(chosen[i] or not inside & scopes[i] for i in range(3)):
                total += minor(L, members) * math.prod((leaves[i](inside) for i in members), start=Fraction(1))
        return total

    circuit = pgcc.determinant(I, I, L, children)
    assert circuit.variables == tuple("abcdef")
    check_table(circuit, table(weight, list("abcdef")))
