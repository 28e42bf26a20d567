"""Every pass keeps the polynomial exactly, never makes the circuit larger, and does what its law says."""

import pickle
import re
import subprocess
import sys
from collections import Counter
from fractions import Fraction
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import sympy
from how_many import some
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from well_formed import verify

from pgcc import passes
from pgcc.collector import collector_paused
from pgcc.exact import bounded
from pgcc.exact.bounded import constant_determinant
from pgcc.ir.circuit import Circuit, variables
from pgcc.ir.flat_builder import FlatBuilder
from pgcc.ir.interpret import evaluate
from pgcc.ir.matrix import Matrix
from pgcc.ir.node import ONE, ZERO, Op, const, det, product, var, weighted_sum
from pgcc.passes import rules
from pgcc.passes.berkowitz import berkowitz
from pgcc.passes.expand_det import expand_det
from pgcc.passes.pipeline import PASSES, simplify
from pgcc.passes.rules import RULES
from pgcc.passes.simplify import _is_folded, fold
from pgcc.passes.total import total
from pgcc.testing import DET_KINDS, brute_force, circuits, random_circuit, random_det

X, Y, Z = var("x"), var("y"), var("z")
HALF, THIRD = Fraction(1, 2), Fraction(1, 3)

anything = st.one_of(
    circuits(dets=True, multiaffine=False, max_size=10),
    circuits(dets=True, multiaffine=False, floats=True, max_size=10),
    circuits(max_variables=4, max_size=8),
    circuits(max_variables=3, dets=True, max_size=5),
    circuits(max_variables=4, floats=True, max_size=8),
)
thorough = settings(max_examples=some(120), deadline=None, suppress_health_check=[HealthCheck.too_slow])


def edges(circuit):
    return sum(len(node.children) for node in circuit.order)


def at_random_points(circuit, seed=0, count=2):
    rng = np.random.default_rng(seed)
    names = sorted(circuit.variables)
    points = [{n: Fraction(int(rng.integers(-99, 99)), int(rng.integers(1, 9))) for n in names} for _ in range(count)]
    return [evaluate(circuit, point) for point in points]


def plus(*terms):
    """Σ w·c from (w, c) pairs and bare nodes"""
    pairs = [t if isinstance(t, tuple) else (1, t) for t in terms]
    return weighted_sum([w for w, _ in pairs], [c for _, c in pairs])


def times(*factors):
    return product(factors)


# -- what holds of every pass ----------------------------------------------------------------------------------


@pytest.mark.parametrize("one", [*PASSES, ("simplify", "all of them", simplify)], ids=lambda p: p[0])
def test_a_pass_keeps_the_polynomial(one):
    run = one[2]

    @thorough
    @given(anything)
    def test(circuit):
        after = verify(run(circuit))
        assert after.variables == circuit.variables
        assert at_random_points(after) == at_random_points(circuit)
        assert edges(after) <= edges(circuit)

    test()


@settings(thorough, max_examples=some(40))
@given(circuits(max_variables=4, dets=True, max_size=6))
def test_the_pipeline_keeps_every_coefficient(circuit):
    assert brute_force(simplify(circuit)) == brute_force(circuit)


@thorough
@given(anything)
def test_the_pipeline_is_idempotent(circuit):
    once = simplify(circuit)
    assert simplify(once) is once


@thorough
@given(anything)
def test_after_the_pipeline_no_rule_applies(circuit):
    simple = simplify(circuit)
    parents = Counter(c for node in simple.order for c in node.children)
    above = {c: node for node in simple.order for c in node.children}
    for node in simple.order:
        if not node.children:
            continue
        assert ONE not in node.children or node.op is not Op.PRODUCT
        assert ZERO not in node.children or node.op is Op.DET
        if node.op is Op.SUM:
            assert all(node.weights)
            assert len(set(node.children)) == len(node.children)
            assert all(c is ONE for c in node.children if c.op is Op.CONST)
        if node.op is Op.PRODUCT:
            assert len(node.children) > 1
            assert all(c.op is not Op.CONST for c in node.children)
        if parents[node] == 1 and node.op in (Op.SUM, Op.PRODUCT):
            assert above[node].op is not node.op, "a nest is left"
    inner = [node for node in simple.order if node.op in (Op.SUM, Op.PRODUCT)]
    keys = [(node.op, Counter(zip(node.children, node.data or node.children, strict=True))) for node in inner]
    assert all(a != b for i, a in enumerate(keys) for b in keys[:i]), "two nodes differ in the order of children only"


def test_the_list_of_passes_is_complete():
    folder = Path(passes.__file__).parent
    for name in sorted(path.stem for path in folder.glob("*.py") if not path.stem.startswith("_")):
        assert re.search(rf"\b{name}\b", passes.__doc__), f"pgcc.passes does not say what {name} is"
    for name in ("observe", "marginalize", "compose", "thin", "tilt", "complement"):
        assert re.search(rf"\b{name}\b", passes.__doc__)
        assert getattr(Circuit, name).__doc__.count("\n") > 1, "the documentation stands at the method"
    modules = [import_module(f"pgcc.passes.{name}") for name in ("condition", "sizes", "compose", "total")]
    forwarded = [
        f
        for m in modules
        for name, f in vars(m).items()
        if getattr(f, "__module__", "") == m.__name__ and hasattr(Circuit, name)
    ]
    assert len(forwarded) >= 7
    assert all(f.__doc__.startswith(f"`Circuit.{f.__name__}`") for f in forwarded), "and nowhere else"


def test_every_rule_is_named_and_has_a_law_and_is_reached():
    reached = set()
    before = {op: list(table) for op, table in rules.APPLY.items()}

    def noting(op, i, apply):
        def applied(draft):
            was = draft.factor, draft.op, list(draft.weights), list(draft.children)
            apply(draft)
            if was != (draft.factor, draft.op, list(draft.weights), list(draft.children)):
                reached.add((op, i))

        return applied

    try:
        for op, table in before.items():
            rules.APPLY[op] = tuple(noting(op, i, apply) for i, apply in enumerate(table))
        for seed in range(60):
            for circuit in (random_det(seed, 3), random_circuit(seed, 4, 10, decomposable=False)):
                fold(circuit - circuit * 1 + 2 * circuit * Circuit(const(3)))
        absent = det([[1]], [[1, 1]], [[1, 1]], [X, plus((0, Y))], [const(2), times(Y, ONE)])
        fold(Circuit(plus(absent, times(X, ZERO), times(X, ONE), times(X, const(2)))))
    finally:
        rules.APPLY.update({op: tuple(table) for op, table in before.items()})
    for op, table in RULES.items():
        for i, rule in enumerate(table):
            assert rule.name
            assert rule.law
            assert (op, i) in reached, f"no test reaches {rule.name!r}"


# -- what each law does ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after"),
    [
        # constants
        (plus(const(2), const(3)), const(5)),
        (times(const(2), const(THIRD)), const(Fraction(2, 3))),
        (times(const(2), X, const(3), Y), plus((6, times(X, Y)))),
        (plus((2, const(3)), X), plus((6, ONE), X)),
        (plus((HALF, times(const(4), X)), Y), plus((2, X), Y)),
        (plus(const(1.0), X), plus((1.0, ONE), X)),
        (plus((0.5, const(0.5)), X), plus((Fraction(1, 4), ONE), X)),
        # zeros and ones
        (plus((0, X), Y), Y),
        (plus((0.0, X), Y, times(const(0.0), X)), Y),
        (plus(ZERO, Y), Y),
        (times(X, ZERO, Y), ZERO),
        (times(X, ONE), X),
        (times(X, const(1.0), Y), times(X, Y)),
        (plus((3, times(plus((0, X)), Y)), Z), Z),
        # lone children, empty operations
        (plus(), ZERO),
        (times(), ONE),
        (plus(X), X),
        (plus((1.0, X)), X),
        (times(X), X),
        (plus((2, plus((3, X)))), plus((6, X))),
        (times(plus((2, X)), plus((3, Y))), plus((6, times(X, Y)))),
        # equal children
        (plus((HALF, X), (THIRD, X)), plus((Fraction(5, 6), X))),
        (plus(X, (-1, X), Y), Y),
        (plus(X, Y, (2, X)), plus((3, X), Y)),
        (plus((Fraction(3, 10), X), (Fraction(-1, 10), X), (Fraction(-1, 5), X)), ZERO),
        (plus(times(X, Y), times(Y, X)), plus((2, times(X, Y)))),
        (times(plus(X, Y), plus(Y, X)), times(plus(X, Y), plus(X, Y))),
        # nests
        (plus(X, plus(Y, (2, Z))), plus(X, Y, (2, Z))),
        (plus(X, (3, plus(Y, (2, Z)))), plus(X, (3, Y), (6, Z))),
        (times(X, times(Y, Z)), times(X, Y, Z)),
        (plus(X, plus(Y, (-1, X))), Y),
        (times(X, X), times(X, X)),
        (times(X, plus((0.1, plus((0.2, Y), (0.3, Z))))), plus((0.1, times(X, plus((0.2, Y), (0.3, Z)))))),
    ],
)
def test_examples(before, after):
    assert simplify(Circuit(before, ["x", "y", "z"])).root is after


def test_floats_that_are_not_computed_with_stay_floats():
    g = Circuit(plus((0.1, times(X, Y)), (0.2, ONE), (0.7, X)))
    assert simplify(g) is g


def test_floats_are_added_exactly():
    """0.3 − 0.1 − 0.2 is not 0 in doubles, nor is it 0 for the dyadic numbers they stand for."""
    left = simplify(Circuit(plus((0.3, X), (-0.1, X), (-0.2, X)))).root
    assert left.weights == (Fraction(0.3) - Fraction(0.1) - Fraction(0.2),)
    assert left.weights[0] != 0


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (det([[2, 1], [1, 3]], [[], []], [[], []], []), const(5)),
        (det([], [], [], []), ONE),
        (det([[0]], [[]], [[]], []), ZERO),
        (det([[2]], [[1, 1]], [[1, 3]], [X, ZERO]), det([[2]], [[1]], [[1]], [X])),
        (det([[2]], [[1, 1]], [[1, 3]], [X, ZERO], [ONE, Y]), times(Y, det([[2]], [[1]], [[1]], [X]))),
        (det([[2]], [[1]], [[3]], [plus((0, X))], [plus((3, Y))]), plus((6, Y))),
        (det([[2]], [[1]], [[3]], [ZERO], [ZERO]), ZERO),
        (det([[0]], [[1]], [[3]], [ZERO], [Y]), ZERO),
        (det([[2]], [[1]], [[3]], [times(const(2), X)]), det([[2]], [[1]], [[3]], [plus((2, X))])),
        (det([[2]], [[1]], [[3]], [const(2.0)]), det([[2]], [[1]], [[3]], [const(2.0)])),
    ],
)
def test_determinants(before, after):
    simple = simplify(Circuit(before, ["x", "y"]))
    assert simple.root is after
    assert at_random_points(simple) == at_random_points(Circuit(before, ["x", "y"]))


def test_float_matrices_stay_floats():
    d = det(np.eye(2), np.eye(2), np.array([[0.3, 0.1], [0.1, 0.4]]), [X, ZERO], [ONE, ONE])
    simple = simplify(Circuit(d)).root
    assert simple.op is Op.DET
    assert all(m.is_float for m in simple.matrices)
    assert [m.shape for m in simple.matrices] == [(2, 2), (2, 1), (2, 1)]


@pytest.mark.slow
@settings(deadline=None)
@given(
    st.integers(0, 5).flatmap(
        lambda n: st.lists(
            st.lists(st.fractions(-3, 3, max_denominator=6), min_size=n, max_size=n), min_size=n, max_size=n
        )
    )
)
def test_constant_determinant(rows):
    assert constant_determinant(Matrix(rows)) == Fraction(str(sympy.Matrix(rows).det()))


def test_complements_are_left_alone():
    """ȳ is 1 in a generating polynomial, but a homogenized circuit means more by it."""
    bar = var("x", complement=True)
    g = Circuit(plus((HALF, times(X, Y)), (HALF, times(bar, Y))))
    assert simplify(g) is g


# -- size and cost, counted --------------------------------------------------------------------------------------


def test_a_shared_nest_is_not_copied():
    """2^60 paths: a copy anywhere would never end."""
    node = plus(X, (2, Y))
    for i in range(60):
        node = times(node, node) if i % 3 == 0 else plus(node, (3, times(node, var(f"w{i}"))), node)
    g = Circuit(node)
    assert edges(simplify(g)) <= edges(g)


def test_a_factor_is_not_copied_into_many_parents():
    """2·x is shared by products that are children of a determinant: each would need a 2 of its own."""
    shared = times(const(2), X)
    many = [times(shared, var(f"w{i}")) for i in range(20)]
    d = det([[1]], [[1] * 20], [[1] * 20], many)
    assert edges(simplify(Circuit(d))) <= edges(Circuit(d))
    deeper = [times(child, var(f"v{i}")) for i, child in enumerate(many)]
    d = det([[1]], [[1] * 20], [[1] * 20], deeper)
    assert edges(simplify(Circuit(d))) <= edges(Circuit(d))
    wide = Circuit(plus(*(times(shared, var(f"w{i}")) for i in range(20))))
    assert edges(simplify(wide)) == 60
    assert all(w == 2 for w in simplify(wide).root.weights)


@pytest.mark.parametrize("shape", ["sums", "weighted sums", "products", "mixed"])
def test_the_work_is_linear(shape, monkeypatch):
    """Doubling the circuit doubles the nodes made and the numbers multiplied."""

    def chain(n):
        node = X
        for i in range(n):
            match shape:
                case "sums":
                    node = plus(node, var(f"w{i}"))
                case "weighted sums":
                    node = plus((Fraction(1, 1 + i % 2), node), (3, var(f"w{i}")))
                case "products":
                    node = times(node, plus((2, var(f"w{i}"))))
                case _:
                    node = times(node, const(2)) if i % 3 else plus((HALF, node), (HALF, plus(const(i), Y)))
        return Circuit(node)

    def work(n):
        circuit, counts = chain(n), Counter()

        def counted(name, function):
            def wrapper(*args):
                counts[name] += sum(len(a) for a in args if isinstance(a, (tuple, list))) + 1
                return function(*args)

            return wrapper

        with monkeypatch.context() as patch:
            for module in ("rules", "simplify"):
                patch.setattr(f"pgcc.passes.{module}.times", counted("times", bounded.times))
            patch.setattr(FlatBuilder, "add", counted("add", FlatBuilder.add))
            simplify(circuit)
        return counts.total()

    assert work(800) <= 2.5 * work(400) + 100
    assert work(400) > 100


def test_numbers_do_not_explode():
    """2**2**40 as nodes by squaring; and a chain of sums whose weights multiply."""
    two = Circuit(const(2))
    tower = two ** (2**40) * variables("x")[0]
    simple = simplify(tower)
    assert edges(simple) <= edges(tower)
    assert max(bounded.bits(node.value) for node in simple.order if node.op is Op.CONST) <= bounded.LARGEST
    assert simplify(simple) is simple
    node = X
    for i in range(2000):
        node = plus((Fraction(1, 1_000_003), node), (0.1, var(f"w{i}")))
    chain = Circuit(node)
    simple = simplify(chain)
    assert edges(simple) < 0.6 * edges(chain)
    assert max(bounded.bits(x) for node in simple.order if node.op is Op.SUM for x in node.weights) <= bounded.LARGEST
    assert simplify(simple) is simple
    big = Circuit(plus(*((Fraction(1, 10**900 + 2 * i + 1), X) for i in range(3)), Y))
    assert at_random_points(simplify(big)) == at_random_points(big)


@pytest.mark.slow
def test_deep_circuits_do_not_recurse():
    with collector_paused():
        node = X
        for i in range(50_000):
            node = plus((HALF, node), (HALF, ONE)) if i % 2 else times(node, Y)
        deep = Circuit(node)
        assert simplify(deep) is deep
        for _ in range(50_000):
            node = plus(node, Y)
        nested = Circuit(node)
    assert edges(simplify(nested)) == edges(deep) + 1


def test_the_variables_stay():
    g = Circuit(plus((0, X), Y), ["z", "x", "y"])
    assert simplify(g).variables == ("z", "x", "y")
    assert simplify(g).root is Y


def test_the_outcome_does_not_depend_on_addresses(tmp_path):
    """Other processes have other addresses and other hash seeds; the circuit is the same."""
    made = [random_circuit(seed, 5, 25, decomposable=bool(seed % 2)) for seed in range(6)]
    (tmp_path / "in.pickle").write_bytes(pickle.dumps(made))
    code = (
        "import pickle, sys, pathlib; from pgcc.passes.pipeline import simplify; here = pathlib.Path(sys.argv[1]);"
        "junk = [object() for _ in range(12345)]; made = pickle.loads((here / 'in.pickle').read_bytes());"
        "(here / 'out.pickle').write_bytes(pickle.dumps([simplify(g) for g in made]))"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)
    assert pickle.loads((tmp_path / "out.pickle").read_bytes()) == [simplify(g) for g in made]


# -- expanding determinants ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", DET_KINDS)
def test_expand_det(kind):
    for seed in range(8):
        g = random_det(seed, 4, kind, complements=bool(seed % 2), exact=seed % 3 > 0, decomposable=seed % 4 > 0)
        expanded = verify(expand_det(g))
        assert expanded.facts.dets == 0
        assert expanded.variables == g.variables
        assert at_random_points(expanded) == at_random_points(g)


def test_expand_det_of_nested_determinants():
    inner = det([[1]], [[1, 2]], [[1, 2]], [X, Y])
    g = Circuit(plus((2, det([[1, 0], [0, 2]], [[1, 1], [0, 1]], [[1, 0], [1, 1]], [inner, Z])), inner))
    expanded = expand_det(g)
    assert expanded.facts.dets == 0
    assert at_random_points(expanded) == at_random_points(g)


def test_expand_det_without_any_is_the_circuit_itself():
    g = random_circuit(0, 3)
    assert expand_det(g) is g


def test_the_expansion_shares_and_skips_zeros():
    """O(n⁴) edges, not n!; and a triangular matrix, whose zeros are known, costs far less."""

    def size(n, below):
        entries = [[var(f"a{i}_{j}") if j >= i or below else ZERO for j in range(n)] for i in range(n)]
        return edges(Circuit(berkowitz([[[x] for x in row] for row in entries])))

    assert size(8, below=True) < 8**4
    assert size(16, below=True) < 20 * size(8, below=True)
    assert size(8, below=False) < size(8, below=True) / 2


def test_a_total_that_more_bits_tell_from_zero():
    """It cancels down to 2**-2068, which 1,024 bits do not show and fractions are too long for."""
    a, b = var("a"), var("b")
    tiny = Fraction(3, 2**2070 + 1)
    root = weighted_sum((tiny, 1, -1), (b, weighted_sum((1e300,), (a,)), weighted_sum((1e300,), (b,))))
    found = total(Circuit(root, ["a", "b"]))
    assert abs(Fraction(found) / tiny - 1) < Fraction(1, 10**12)


@thorough
@given(circuits(dets=True))
def test_what_is_seen_to_be_folded_is(circuit):
    folded = fold(circuit)
    assert not _is_folded(circuit._flat) or (folded.edges, len(folded.order)) == (circuit.edges, len(circuit.order))
    again = fold(folded)
    assert again is folded or not _is_folded(folded._flat)
