"""Probabilistic circuits: what they mean, their structure, and the way to generating polynomials and back."""

from __future__ import annotations

import math
import pickle
from fractions import Fraction
from itertools import combinations, product

import networkx as nx
import numpy as np
import pytest
from how_many import some
from operations import count_calls

import pgcc
from pgcc import pc
from pgcc.errors import CircuitError, EvidenceError
from pgcc.ir.circuit import Circuit
from pgcc.ir.node import Node, Op, const, det, var, weighted_sum
from pgcc.ir.node import product as product_node
from pgcc.pc import PC, SignedPC, bernoulli, mixture, neg, pos, to_pc, true
from pgcc.testing import oracle_probability, random_circuit, random_pc

# -- the meaning, by brute force ----------------------------------------------------------------------------------


def node_tables(circuit: Circuit, names: tuple[str, ...]) -> dict[Node, np.ndarray]:
    """Every node at every assignment, by the definition: x = value and x̄ = 1 − value."""
    corners = np.array(list(product((0, 1), repeat=len(names))), dtype=object).reshape(1 << len(names), len(names))
    column = {name: corners[:, i] + Fraction(0) for i, name in enumerate(names)}
    at: dict[Node, np.ndarray] = {}
    for node in circuit.order:
        if node.op is Op.CONST:
            at[node] = np.full(len(corners), Fraction(node.value), dtype=object)
        elif node.op is Op.VAR:
            at[node] = 1 - column[node.name] if node.is_complement else column[node.name]
        elif node.op is Op.SUM:
            at[node] = sum(Fraction(w) * at[c] for w, c in zip(node.weights, node.children, strict=True))
        else:
            at[node] = np.prod([at[c] for c in node.children], axis=0)
    return at


def table(circuit: PC) -> np.ndarray:
    """The normalized distribution, one axis per variable."""
    values = node_tables(circuit.literals, circuit.variables)[circuit.root]
    return (values / values.sum()).reshape((2,) * len(circuit.variables))


def answer(distribution: np.ndarray, row: np.ndarray) -> Fraction:
    return np.sum(distribution[tuple(slice(None) if code < 0 else int(code) for code in row)])


def some_rows(rng: np.random.Generator, n: int) -> np.ndarray:
    """Every query where there are at most 81, else 24 random ones."""
    if n <= 4:
        return np.array(list(product((-1, 0, 1), repeat=n)), np.int8).reshape(3**n, n)
    return rng.integers(-1, 2, (24, n), np.int8)


SIZES = [1, 2, 3, 4, 3, 4, 5, 4, 6, 3, 4, 7, 2, 4, 5, 3, 4, 10, 4, 8]


def unsmooth_pcs(count: int, seed: int):
    """(n, circuit) of random decomposable circuits that are not smooth."""
    rng = np.random.default_rng(seed)
    made = 0
    while made < count:
        one = random_pc(rng, SIZES[made % len(SIZES)], size=int(rng.integers(2, 16)))
        assert one.literals.facts.decomposable
        missing = len(one.literals.scopes.names) < len(one.variables)
        if missing or not one.literals.facts.smooth:
            made += 1
            yield one


CASES = some(260)


@pytest.mark.parametrize("part", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_random_unsmooth_circuits(part):
    rng = np.random.default_rng(part)
    naive_wrong = naive_asked = 0
    for one in unsmooth_pcs(CASES, seed=100 + part):
        n, distribution = len(one.variables), table(one)
        rows = some_rows(rng, n)
        want = np.array([answer(distribution, row) for row in rows], dtype=object)
        g = one.to_pgc()
        got = pgcc.compile(g).prob(rows)
        np.testing.assert_allclose(got, want.astype(float), rtol=1e-9, atol=0)
        # Without smoothing the same circuit means something else.
        naive = pgcc.compile(one.literals).prob(rows)
        naive_asked += 1
        naive_wrong += not np.allclose(naive, want.astype(float), rtol=1e-9, atol=0)
    assert naive_asked == CASES
    assert naive_wrong >= 0.99 * naive_asked  # in fact all


@pytest.mark.slow
def test_random_unsmooth_circuits_exactly():
    for one in unsmooth_pcs(60, seed=7):
        distribution, g = table(one), one.to_pgc()
        total = oracle_probability(g, {})
        for row in some_rows(np.random.default_rng(0), len(one.variables))[:40]:
            evidence = {name: int(code) for name, code in zip(one.variables, row, strict=True) if code >= 0}
            assert oracle_probability(g, evidence) / total == answer(distribution, row)


def test_evaluate_is_the_definition():
    for one in unsmooth_pcs(60, seed=8):
        values = node_tables(one.literals, one.variables)[one.root]
        for corner, value in list(zip(product((0, 1), repeat=len(one.variables)), values, strict=True))[:32]:
            assert one.evaluate(dict(zip(one.variables, corner, strict=True))) == value


def test_floats():
    for seed in range(20):
        one = random_pc(seed, 5, exact=False)
        model = pgcc.compile(one.to_pgc())
        assert np.allclose(model.prob(np.array(list(product((0, 1), repeat=5)))), table(one).ravel().astype(float))


# -- there and back -----------------------------------------------------------------------------------------------


def marginals(circuit: Circuit) -> list[Fraction]:
    names = circuit.variables
    queries = product((-1, 0, 1), repeat=len(names))
    return [
        oracle_probability(circuit, {v: c for v, c in zip(names, query, strict=True) if c >= 0}) for query in queries
    ]


def test_from_a_pc_and_back():
    for one in unsmooth_pcs(60, seed=9):
        if len(one.variables) > 3:
            continue
        g = one.to_pgc()
        back = to_pc(g)
        assert type(back) is PC
        assert back.variables == one.variables
        assert (table(back) == table(one)).all()
        assert marginals(back.to_pgc()) == marginals(g)


@pytest.mark.slow
@pytest.mark.parametrize("negative", [False, True])
def test_from_a_pgc_and_back(negative):
    signed = 0
    for seed in range(40):
        g = random_circuit(seed, n=3, negative=negative)
        p = to_pc(g)
        signed += type(p) is SignedPC
        assert p.structure().smooth
        assert marginals(p.to_pgc()) == marginals(g)
        assert [p.evaluate(dict(zip(g.variables, x, strict=True))) for x in product((0, 1), repeat=3)] == [
            oracle_probability(g, dict(zip(g.variables, x, strict=True))) for x in product((0, 1), repeat=3)
        ]
    assert (signed > 20) == negative


def test_a_smooth_circuit_is_left_alone():
    one = 0.5 * pos("a") * bernoulli("b", 0.25) + 0.5 * neg("a") * bernoulli("b", 0.5)
    assert one.to_pgc().root is one.root
    assert one.smooth() == one
    assert one.smoothing.edges_before == one.smoothing.edges_after


def test_variables_that_do_not_occur_have_either_value():
    one = PC(var("a"), ["a", "b"])
    assert pgcc.compile(one.to_pgc()).prob({"b": 1}) == 0.5


def test_smoothing_shares_its_gadgets():
    n = 2000  # x1 + x̄1·(x2 + x̄2·(…)): every term misses what stands below
    one = pos(f"x{n}")
    for i in reversed(range(n)):
        one = 0.5 * pos(f"x{i}") + 0.5 * neg(f"x{i}") * one
    cost = one.smoothing
    assert cost.edges_before < 4 * n + 1
    assert cost.edges_after < 2 * n * math.log2(n)
    assert str(cost) == f"{cost.edges_before:,} edges before smoothing, {cost.edges_after:,} after"
    assert one.smooth().structure().smooth


# -- building -----------------------------------------------------------------------------------------------------


def test_operators_give_plain_sums():
    one = 0.3 * pos("a") * bernoulli("b", 0.2) + 0.7 * neg("a") * neg("b")
    root = one.root
    assert (root.op, root.weights) == (Op.SUM, (0.3, 0.7))
    assert [child.op for child in root.children] == [Op.PRODUCT, Op.PRODUCT]
    assert one.variables == ("a", "b")
    assert repr(one) == "<PC: 2 variables, 8 edges>"
    assert one.edges == 8


def test_weights_commute():
    a, b = pos("a"), pos("b")
    at = {"a": 1, "b": 1}
    for one, want in [
        (2 * a * b, 2),
        (a * 2 * b, 2),
        (a * (2 * b), 2),
        ((2 * a) * (3 * b), 6),
        (2 * (3 * a), 6),
        (a / 4, Fraction(1, 4)),
        (sum([a, a / 2]), Fraction(3, 2)),
        (mixture([2, "0.5"], [3 * a, b]), Fraction(13, 2)),
        (pc.product([2 * a, 3 * b]), 6),
        (2 * true() * a, 2),
        (0 * a, 0),
    ]:
        assert one.evaluate(at) == want


def test_weights_stay_as_they_were_given():
    third = Fraction(1, 3)
    assert (third * pos("a") + 0.1 * neg("a")).root.weights == (third, 0.1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: -0.5 * pos("a"), "not negative: -0.5"),
        (lambda: pos("a") / -2, "not negative"),
        (lambda: -pos("a"), "not negative"),
        (lambda: pos("a") - neg("a"), "nothing can be subtracted"),
        (lambda: float("nan") * pos("a"), "finite"),
        (lambda: float("inf") * pos("a"), "finite"),
        (lambda: pos("a") / 0, "division"),
        (lambda: pos("a") + 0.5, r"0\.5\*true\(\)"),
        (lambda: 0.5 + pos("a"), "stands alone"),
        (lambda: bernoulli("a", 1.5), "between 0 and 1"),
        (lambda: bernoulli("a", -0.5), "between 0 and 1"),
        (lambda: bernoulli("a", float("nan")), "finite"),
        (lambda: pos(""), "name"),
        (lambda: mixture([0.5, -0.5], [pos("a"), neg("a")]), "not negative: -0.5"),
        (lambda: mixture([0.5], [pos("a"), neg("a")]), "as many weights"),
        (lambda: mixture([], []), "of no circuits"),
        (lambda: pc.product([pos("a"), 2]), "is a PC, not int"),
        (lambda: PC(weighted_sum((-1,), (var("a"),))), "no negative numbers, but sum -1"),
        (lambda: PC(const(-1)), "no negative numbers"),
        (lambda: PC(det([[1]], [[1]], [[1]], [var("a")])), "determinant"),
        (lambda: PC(var("a"), ["b"]), "'a' occurs"),
        (lambda: to_pc(pgcc.parse("a*(a + 1)")), "not decomposable: two factors of product .* share 'a'"),
        (lambda: to_pc(Circuit(det([[1]], [[1]], [[1]], [var("a")]))), "determinant"),
        (lambda: to_pc(pos("a")), "takes a Circuit, not PC"),
        (lambda: (pos("a") * neg("a")).to_pgc(), "two factors of product a[*]~a share 'a'"),
        (lambda: (pos("a") * pos("a")).smooth(), "share 'a'"),
    ],
)
def test_refused(make, message):
    with pytest.raises(CircuitError, match=message):
        make()


def test_a_pc_is_not_a_circuit():
    with pytest.raises(pgcc.PgccError, match="compile takes a Circuit, not PC"):
        pgcc.compile(pos("a"))
    with pytest.raises(TypeError):
        pos("a") * pgcc.parse("a")
    with pytest.raises(TypeError):
        pos("a") + "a"


def test_evaluate_wants_every_variable():
    one = pos("a") * pos("b")
    with pytest.raises(EvidenceError, match="'b' has no value"):
        one.evaluate({"a": 1})
    with pytest.raises(EvidenceError, match="'b' is -1"):
        one.evaluate({"a": 1, "b": -1})


def test_signed_circuits():
    signed = to_pc(pgcc.parse("a - b/2"))
    assert type(signed) is SignedPC
    assert type(signed * pos("c")) is type(pos("c") * signed) is SignedPC
    assert (pos("a") - signed).evaluate({"a": 1, "b": 0}) == 0
    assert (-signed).evaluate({"a": 1, "b": 0}) == -1


def test_equality_and_pickle():
    one = 0.3 * pos("a") + 0.7 * neg("a")
    again = 0.3 * pos("a") + 0.7 * neg("a")
    assert one == again
    assert hash(one) == hash(again)
    assert one != pos("a")
    assert one != 1
    assert pickle.loads(pickle.dumps(one)) == one


@pytest.mark.slow
def test_long_chains_are_linear():
    def build(n):
        one = pos("x0")
        for i in range(1, n):
            one = one * (0.5 * pos(f"x{i}"))
        assert len(one.variables) == n
        assert one.to_pgc().facts.smooth

    few, many = (count_calls(lambda n=n: build(n)) for n in (500, 5000))
    assert many < 15 * few
    build(20_000)


# -- networkx -----------------------------------------------------------------------------------------------------


def test_networkx_round_trip():
    for one in unsmooth_pcs(60, seed=10):
        back = PC.from_networkx(one.to_networkx())
        assert back.variables == one.variables
        assert (table(back) == table(one)).all()


def test_networkx_keeps_a_circuit_without_parallel_edges():
    one = 0.3 * pos("a") * bernoulli("b", 0.2) + 0.7 * neg("a") * true() * neg("b")
    assert PC.from_networkx(one.to_networkx()) == one


def test_parallel_edges():
    x = pos("x")
    again = PC.from_networkx((x * x * x + 2 * x * x).to_networkx())
    assert again.evaluate({"x": 1}) == 3
    same = PC.from_networkx((0.25 * x + 0.5 * x).to_networkx())
    assert same == 0.25 * x + 0.5 * x
    thrice = PC.from_networkx(PC(product_node([var("x")] * 3)).to_networkx())
    assert thrice.evaluate({"x": 1}) == 1
    assert not thrice.literals.facts.decomposable


def graph(nodes: dict[str, dict], edges: list[tuple]) -> nx.DiGraph:
    G = nx.DiGraph()
    for name, data in nodes.items():
        G.add_node(name, **data)
    for parent, child, *weight in edges:
        G.add_edge(parent, child, **({"weight": weight[0]} if weight else {}))
    return G


A = {"kind": "literal", "variable": "a", "value": 1}
SUM, PRODUCT = {"kind": "sum"}, {"kind": "product"}


def test_every_kind():
    B = {"kind": "bernoulli", "variable": "b", "p": 0.25}
    G = graph({"r": SUM, "p": PRODUCT, "a": A, "b": B, "c": {"kind": "constant", "value": 2}},
              [("r", "p", 3), ("p", "a"), ("p", "b"), ("p", "c")])  # fmt: skip
    assert PC.from_networkx(G).evaluate({"a": 1, "b": 1}) == Fraction(3, 2)


@pytest.mark.parametrize(
    ("G", "message"),
    [
        (nx.Graph([(1, 2)]), "DiGraph, not Graph"),
        (nx.MultiDiGraph([(1, 2)]), "DiGraph, not MultiDiGraph"),
        ({"a": 1}, "DiGraph, not dict"),
        (nx.DiGraph(), "no nodes"),
        (graph({"a": A, "b": A}, []), "2 roots, 'a' and 'b' among them"),
        (graph({"s": SUM, "t": SUM}, [("s", "t", 1), ("t", "s", 1)]), "cycle through node '[st]'"),
        (graph({"s": SUM}, [("s", "s", 1)]), "cycle through node 's'"),
        (graph({"s": SUM, "a": A, "t": SUM, "u": SUM}, [("s", "a", 1), ("t", "u", 1), ("u", "t", 1)]), "cycle"),
        (graph({"s": {}}, []), "node 's' has no attribute 'kind'"),
        (graph({"s": {"kind": "max"}}, []), "node 's' is of the unknown kind 'max'"),
        (graph({"s": {"kind": ["sum"]}}, []), "node 's' is of the unknown kind"),
        (graph({"s": SUM}, []), "node 's' is a sum without children"),
        (graph({"s": PRODUCT}, []), "node 's' is a product without children"),
        (graph({"s": SUM, "a": A}, [("s", "a")]), "edge from 's' to 'a' has no attribute 'weight'"),
        (graph({"s": SUM, "a": A}, [("s", "a", -1)]), "edge from 's' to 'a' has the negative weight -1"),
        (graph({"s": SUM, "a": A}, [("s", "a", float("nan"))]), "node 's': nan is not"),
        (graph({"s": SUM, "a": A}, [("s", "a", None)]), "node 's': None"),
        (graph({"a": A, "s": A}, [("a", "s")]), "node 'a' is a literal and has an edge to 's'"),
        (graph({"a": {"kind": "literal", "value": 1}}, []), "node 'a' has no attribute 'variable'"),
        (graph({"a": {"kind": "literal", "variable": "a"}}, []), "node 'a' has no attribute 'value'"),
        (graph({"a": {**A, "value": 2}}, []), "node 'a': the value of a literal is 1 or 0"),
        (graph({"a": {**A, "value": [1]}}, []), "node 'a': the value of a literal is 1 or 0"),
        (graph({"a": {**A, "variable": 7}}, []), "node 'a': a variable's name"),
        (graph({"n": {"kind": "bernoulli", "variable": "b"}}, []), "node 'n' has no attribute 'p'"),
        (graph({"n": {"kind": "bernoulli", "variable": "b", "p": 2}}, []), "node 'n': .* between 0 and 1"),
        (graph({"c": {"kind": "constant", "value": -2}}, []), "node 'c' has the negative"),
    ],
)
def test_bad_graphs(G, message):
    with pytest.raises(CircuitError, match=message):
        PC.from_networkx(G)


def test_signed_graphs():
    signed = to_pc(pgcc.parse("a - b/2"))
    with pytest.raises(CircuitError, match="negative weight"):
        PC.from_networkx(signed.to_networkx())
    assert SignedPC.from_networkx(signed.to_networkx()) == signed


# -- structure, against the definitions ---------------------------------------------------------------------------


def naive_scopes(circuit: Circuit) -> dict[Node, frozenset[str]]:
    scope: dict[Node, frozenset[str]] = {}
    for node in circuit.order:
        scope[node] = frozenset({node.name} if node.op is Op.VAR else ()).union(*(scope[c] for c in node.children))
    return scope


def naive_structure(circuit: Circuit, names: tuple[str, ...]) -> dict[str, bool]:
    scope, at = naive_scopes(circuit), node_tables(circuit, names)
    sums = [node for node in circuit.order if node.op is Op.SUM]
    products = [node for node in circuit.order if node.op is Op.PRODUCT]
    decomposable = all(not scope[a] & scope[b] for p in products for a, b in combinations(p.children, 2))
    splits = [(scope[p], sorted(sorted(scope[c]) for c in p.children if scope[c])) for p in products]
    splits = [(s, parts) for s, parts in splits if len(parts) > 1]
    return {
        "decomposable": decomposable,
        "smooth": all(scope[c] == scope[s] for s in sums for c in s.children),
        "structured_decomposable": decomposable and all(p == q for (s, p), (t, q) in combinations(splits, 2) if s == t),
        "deterministic": all(
            sum((w * at[c]).astype(bool).astype(int) for w, c in zip(s.weights, s.children, strict=True)).max() <= 1
            for s in sums
        ),
    }


def any_pcs():
    """Random circuits with every mixture of properties."""
    rng = np.random.default_rng(3)
    for i in range(150):
        yield random_pc(rng, 1 + i % 4, size=1 + i % 5)
        yield random_pc(rng, 1 + i % 4, size=1 + i % 5).smooth()
        yield tangled_pc(rng, 1 + i % 3, 1 + i % 4)
        yield decision_pc(rng, [f"x{k}" for k in range(1 + i % 5)])


def tangled_pc(rng: np.random.Generator, n: int, size: int) -> PC:
    """Anything at all, mostly not decomposable, sometimes with zero weights."""
    pool = [f(f"x{i}") for i in range(n) for f in (pos, neg)] + [true(), 0 * true()]
    for _ in range(size):
        parts = [pool[k] for k in rng.integers(len(pool), size=2)]
        weights = rng.integers(0, 3, 2).tolist()
        pool.append(mixture(weights, parts) if rng.random() < 0.5 else pc.product(parts))
    return pool[-1]


def decision_pc(rng: np.random.Generator, names: list[str]) -> PC:
    """x·(…) + x̄·(…): deterministic."""
    if not names:
        return true()
    k = int(rng.integers(len(names)))
    rest = names[:k] + names[k + 1 :]
    low, high = (decision_pc(rng, rest[: int(rng.integers(len(rest) + 1))]) for _ in range(2))
    return 0.25 * pos(names[k]) * high + 0.75 * neg(names[k]) * low


def test_structure_against_the_definitions():
    counts = dict.fromkeys(["yes", "no", "unknown"], 0)
    for one in any_pcs():
        report, want = one.structure(), naive_structure(one.literals, one.variables)
        for name in ("decomposable", "smooth", "structured_decomposable"):
            assert getattr(report, name) == want[name], (name, one.literals)
            assert (name in report.offenders) != want[name]
        assert report.deterministic in (None, want["deterministic"]), one.literals
        assert ("deterministic" in report.offenders) == (report.deterministic is not True)
        counts[{True: "yes", False: "no", None: "unknown"}[report.deterministic]] += 1
        assert set(report.scope) == naive_scopes(one.literals)[one.root]
    assert counts["yes"] > 100
    assert counts["no"] > 100
    assert counts["unknown"] < 0.3 * sum(counts.values()), counts


def test_offenders_are_offenders():
    for one in any_pcs():
        scope, found = naive_scopes(one.literals), one.structure().offenders
        if "decomposable" in found:
            node, name = found["decomposable"].node, found["decomposable"].variable
            assert sum(name in scope[c] for c in node.children) >= 2
        if "smooth" in found:
            node, name = found["smooth"].node, found["smooth"].variable
            assert name in scope[node]
            assert any(name not in scope[c] for c in node.children)


def test_determinism_that_takes_a_look_inside():
    same = 0.5 * pos("a") * pos("b") + 0.5 * neg("a") * neg("b")
    other = 0.5 * pos("a") * neg("b") + 0.5 * neg("a") * pos("b")
    xor = 0.3 * same * pos("c") + 0.7 * other * pos("c")
    assert xor.structure().deterministic is True
    overlapping = 0.3 * same * pos("c") + 0.7 * (pos("a") * pos("b")) * pos("c")
    report = overlapping.structure()
    assert report.deterministic is False
    assert "can both be positive" in report.offenders["deterministic"].why


def test_negative_weights_leave_determinism_open():
    report = to_pc(pgcc.parse("a/2 + b/2 - a*b/4")).structure()
    assert report.deterministic is True  # a·b̄, ā·b and a·b
    assert to_pc(pgcc.parse("(a + 1)/2 - (a + 2)/4")).structure().deterministic is None


def test_structured():
    a, b, c = (bernoulli(x, 0.5) for x in "abc")
    report = (0.5 * pc.product([a, b * c]) + 0.5 * pc.product([a * b, c])).structure()
    assert report.decomposable
    assert not report.structured_decomposable
    assert "splits its variables unlike product" in report.offenders["structured_decomposable"].why
    assert (0.5 * a * (b * c) + 0.5 * a * (0.5 * b * c)).structure().structured_decomposable


def test_the_report_prints_well():
    report = (0.5 * pos("a") * pos("b") + 0.5 * neg("a")).structure()
    assert str(report).splitlines() == [
        "2 variables, 5 nodes, 4 edges",
        "decomposable: yes",
        "smooth: no (sum 0.5*(a*b) + 0.5*~a: its term ~a does not mention 'b')",
        "structured-decomposable: yes",
        "deterministic: yes",
    ]
    assert pc.structure((0.5 * pos("a")).literals) == (0.5 * pos("a")).structure()
    with pytest.raises(CircuitError, match="determinant"):
        pc.structure(Circuit(det([[1]], [[1]], [[1]], [var("a")])))


def chain(n):
    one = pos("x0")
    for i in range(1, n):
        one = 0.5 * pos(f"x{i}") * one + 0.5 * neg(f"x{i}")
    return one


def wide(n):
    return mixture([0.5, 0.5], [pc.product([bernoulli(f"x{i}", p) for i in range(n)]) for p in (0.25, 0.5)])


def many_parts(n):
    return mixture([1] * n, [pc.product([bernoulli(f"x{i}", (1 + k) / (n + 1)) for i in range(8)]) for k in range(n)])


@pytest.mark.slow
@pytest.mark.parametrize(("make", "size"), [(chain, 10_000), (wide, 10_000), (many_parts, 1000)])
def test_structure_takes_work_that_grows_as_the_circuit_does(make, size):
    few, many = make(size // 10), make(size)
    assert count_calls(many.structure) < 20 * count_calls(few.structure)
    report = many.structure()
    assert report.decomposable
    assert report.deterministic is (make is chain)
