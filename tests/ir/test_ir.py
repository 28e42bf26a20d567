"""The IR: interning, immutability, operators, pickling, scopes, facts and the verifier."""

import copy
import gc
import itertools
import math
import pickle
import threading
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from how_many import some
from hypothesis import given, settings
from hypothesis import strategies as st
from well_formed import verify

from pgcc.collector import collector_paused
from pgcc.errors import CircuitError
from pgcc.ir import node as node_module
from pgcc.ir import scopes
from pgcc.ir.circuit import Circuit, power_node, variables
from pgcc.ir.interpret import evaluate
from pgcc.ir.matrix import Matrix
from pgcc.ir.node import ONE, ZERO, Node, Op, const, det, postorder, product, rebuild, var, weighted_sum
from pgcc.ir.numbers import add, as_number, mul, nearest_float, power
from pgcc.testing import circuits, random_circuit, random_det

X, Y = var("x"), var("y")


# -- nodes ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        lambda: const(Fraction(1, 3)),
        lambda: const(0.5),
        lambda: var("a"),
        lambda: var("a", complement=True),
        lambda: weighted_sum((1, Fraction(1, 2)), (X, Y)),
        lambda: product((X, Y)),
        lambda: det([[1]], [[1, 2]], [[3, 4]], [X, Y]),
        lambda: det(np.eye(1), np.ones((1, 2)), np.ones((1, 2)), [X, Y]),
    ],
)
def test_equal_nodes_are_one_object(make):
    assert make() is make()


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (const(0.5), const(Fraction(1, 2))),  # only one of them was given exactly
        (const(1), const(1.0)),
        (weighted_sum((1, 1), (X, Y)), weighted_sum((1, 2), (X, Y))),
        (weighted_sum((1, 1), (X, Y)), weighted_sum((1, 1.0), (X, Y))),
        (weighted_sum((1, 1), (X, Y)), weighted_sum((1, 1), (Y, X))),
        (weighted_sum((1, 1), (X, Y)), product((X, Y))),
        (var("a"), var("a", complement=True)),
        (det([[1]], [[1]], [[1]], [X]), det([[1]], [[1]], [[1]], [X], [ZERO])),
        (det([[1]], [[1]], [[1]], [X]), det([[1]], [[1]], np.ones((1, 1)), [X])),
    ],
)
def test_different_nodes_are_different(a, b):
    assert a is not b
    assert a != b


def test_numbers_are_canonical():
    assert const(Fraction(4, 2)) is const(2) is const(True + 1) is const(np.int64(2))
    assert const("0.1") is const(Decimal("0.1")) is const(Fraction(1, 10))
    assert const(np.float64(0.1)) is const(0.1)
    assert type(weighted_sum((np.float32(0.5),), (X,)).weights[0]) is float


def test_a_node_is_immutable():
    for change in (lambda: setattr(X, "op", Op.SUM), lambda: setattr(X, "other", 1), lambda: delattr(X, "data")):
        with pytest.raises(AttributeError, match="immutable"):
            change()
    assert X.op is Op.VAR
    assert copy.copy(X) is X
    assert copy.deepcopy(X) is X
    with pytest.raises(TypeError, match="pickle its Circuit"):
        pickle.dumps(X)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: const(math.nan), "finite"),
        (lambda: const(math.inf), "finite"),
        (lambda: const("one"), "'one'"),
        (lambda: const(1j), "not a real number"),
        (lambda: var(""), "name"),
        (lambda: var("a\nb"), "name"),
        (lambda: var(3), "name"),
        (lambda: weighted_sum((1,), (X, Y)), "2 children needs as many weights, not 1"),
        (lambda: product((X, "y")), "str"),
        (lambda: product((X, 2)), "int"),
        (lambda: det([[1]], [[1, 1]], [[1, 1]], [X]), "1×1|1 child "),
        (lambda: det([[1, 0]], [[1]], [[1]], [X]), "r×r"),
        (lambda: det([[1]], [[1]], [[1]], [X], [ONE, ONE]), "2 complements"),
        (lambda: det([[1]], [[1]], [[math.nan]], [X]), "finite"),
        (lambda: Matrix(np.array([[1.0, np.inf]])), r"\[0, 1\]"),
        (lambda: Matrix([[1, 2], [3]]), "one length"),
        (lambda: Matrix(np.ones(3)), "two dimensions"),
    ],
)
def test_bad_parts_are_refused(make, says):
    with pytest.raises(CircuitError, match=says):
        make()


def test_rebuild_keeps_the_node_when_nothing_changed():
    for node in (weighted_sum((1, 2), (X, Y)), product((X, Y)), det([[1]], [[1, 2]], [[3, 4]], [X, Y])):
        assert rebuild(node, list(node.children)) is node
        swapped = rebuild(node, list(node.children)[::-1])
        assert swapped.children == node.children[::-1]
        assert swapped.data == node.data


def test_postorder_is_children_first_left_to_right_each_once():
    a, b = product((X, Y)), weighted_sum((1, 1), (Y, X))
    root = product((a, b, a))
    assert postorder(root) == [X, Y, a, b, root]


def test_threads_intern_the_same_nodes():
    together = threading.Barrier(8)
    made: list[list[Node]] = []

    def build():
        together.wait()
        nodes = [var(f"thread{i}") for i in range(300)]
        nodes += [product((nodes[i], nodes[i - 1])) for i in range(300)]
        nodes += [weighted_sum((Fraction(1, 3), i), (nodes[i], nodes[-1])) for i in range(300)]
        made.append(nodes)

    threads = [threading.Thread(target=build) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 8
    assert all(a is b for other in made[1:] for a, b in zip(made[0], other, strict=True))


def test_dead_nodes_leave_the_table():
    gc.collect()
    before = len(node_module._interned)
    root = product([weighted_sum((i, 1), (var(f"gone{i}"), ONE)) for i in range(100)])
    assert len(node_module._interned) >= before + 201
    del root
    gc.collect()
    assert len(node_module._interned) <= before


@pytest.mark.slow
def test_a_deep_circuit_dies_without_recursion():
    with collector_paused():
        node = X
        for i in range(300_000):
            node = weighted_sum((1, i), (node, ONE))
    before = len(node_module._interned)
    del node
    gc.collect()
    assert len(node_module._interned) <= before - 300_000


def test_collector_paused_restores_what_was():
    assert gc.isenabled()
    with collector_paused():
        assert not gc.isenabled()
        with collector_paused():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(ValueError, match="inside"), collector_paused():
        raise ValueError("inside")
    assert gc.isenabled()


# -- numbers -------------------------------------------------------------------------------------------------

finite = st.one_of(st.integers(-50, 50), st.fractions(-5, 5, max_denominator=40), st.floats(-4, 4, width=32))


@given(finite, finite)
def test_arithmetic_is_exact(a, b):
    a, b = as_number(a), as_number(b)
    assert add(a, b) == Fraction(a) + Fraction(b)
    assert mul(a, b) == Fraction(a) * Fraction(b)
    assert power(a, 3) == Fraction(a) ** 3


def test_floats_stand_for_what_they_are():
    assert add(0.1, 0.2) == Fraction(0.1) + Fraction(0.2) != Fraction(3, 10)
    assert nearest_float(10**400) == math.inf
    assert nearest_float(-(10**400)) == -math.inf


# -- circuits ------------------------------------------------------------------------------------------------


def value(circuit, **at):
    return evaluate(circuit, {name: Fraction(x) for name, x in at.items()})


def test_operators_mean_what_they_say():
    a, b = variables("a, b")
    for x, y in ((2, 3), (-1, 5)):
        at = {"a": x, "b": y}
        assert value(a + b, **at) == value(b + a, **at) == x + y
        assert value(a - b, **at) == x - y
        assert value(a * b, **at) == x * y
        assert value(3 + a, a=x) == value(a + 3, a=x) == 3 + x
        assert value(3 - a, a=x) == 3 - x
        assert value(a - 3, a=x) == x - 3
        assert value(3 * a, a=x) == value(a * 3, a=x) == 3 * x
        assert value(a / 3, a=x) == Fraction(x, 3)
        assert value(-a, a=x) == -x
        assert value(a * 0.1, a=x) == Fraction(0.1) * x
        assert +a is a


def test_variables_come_in_order_of_first_appearance():
    a, b, c = variables(["a", "b", "c"])
    assert (c * a + b).variables == ("c", "a", "b")
    assert (Circuit(a.root, ["b", "a"]) + c).variables == ("b", "a", "c")
    assert Circuit(product((var("q"), var("p"), var("q")))).variables == ("q", "p")


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 7, 12, 64, 100])
def test_powers(exponent):
    (a,) = variables("a")
    assert value(a**exponent, a=3) == 3**exponent
    assert (a**exponent).edges <= 4 * max(1, exponent.bit_length())
    assert power_node(X, exponent).op in (Op.CONST, Op.VAR, Op.PRODUCT)


@pytest.mark.parametrize(
    ("make", "error", "says"),
    [
        (lambda a: a**-1, CircuitError, "≥ 0"),
        (lambda a: a**0.5, CircuitError, "0.5"),
        (lambda a: a**True, CircuitError, "True"),
        (lambda a: a / 0, CircuitError, "zero"),
        (lambda a: a / a, TypeError, "unsupported"),
        (lambda a: a + "b", TypeError, "unsupported"),
        (lambda a: "b" * a, TypeError, "multiply|unsupported"),
        (lambda a: Circuit("a"), CircuitError, "str"),
        (lambda a: Circuit(a.root, ["b"]), CircuitError, "'a'"),
        (lambda a: Circuit(a.root, ["a", "b", "b"]), CircuitError, "'b' is listed twice"),
        (lambda a: Circuit(a.root, ["a", ""]), CircuitError, "name"),
        (lambda a: a.relabel({"c": "d"}), CircuitError, "'c'"),
        (lambda a: (a * variables("b")[0]).relabel({"a": "b"}), CircuitError, "'b' is listed twice"),
    ],
)
def test_bad_operations_are_refused(make, error, says):
    with pytest.raises(error, match=says):
        make(variables("a")[0])


def test_equality_and_hash():
    a, b = variables("a b")
    assert a + b == a + b
    assert hash(a + b) == hash(a + b)
    assert a + b != b + a
    assert Circuit(a.root, ["a", "b"]) != a
    assert a != 3
    assert len({a * b, a * b, b * a}) == 2


def test_relabel():
    a, b = variables("a b")
    g = 2 * a * b + 3 * a + 5
    renamed = g.relabel({"a": "b", "b": "c"})
    assert renamed.variables == ("b", "c")
    assert value(renamed, b=7, c=11) == value(g, a=7, b=11)
    complement = Circuit(product((var("a"), var("a", complement=True)))).relabel({"a": "z"})
    assert complement.root is product((var("z"), var("z", complement=True)))


def deep(levels):
    with collector_paused():
        node = X
        for i in range(levels):
            node = weighted_sum((1, i % 7), (node, Y)) if i % 2 else product((node, var(f"d{i % 50}")))
        return Circuit(node)


@pytest.mark.slow
def test_pickle_and_deepcopy_of_a_deep_circuit():
    circuit = deep(200_000)
    assert circuit.facts.depth == 200_000
    assert pickle.loads(pickle.dumps(circuit)) == circuit
    small = deep(500)
    assert copy.deepcopy(small) == small


@pytest.mark.parametrize("exact", [True, False])
def test_pickle_of_determinants_keeps_identity(exact):
    circuit = random_det(3, n=4, exact=exact, complements=True)
    again = pickle.loads(pickle.dumps(circuit))
    assert again.root is circuit.root
    assert again.variables == circuit.variables
    assert copy.deepcopy(circuit) == circuit


@pytest.mark.parametrize("entries", [np.array([[0.5, 2.0]]), [[1, Fraction(1, 3)], [0.5, 2]], []])
def test_matrices_of_another_process_are_the_same(entries):
    """Hashes of bytes differ from process to process: they are not sent."""
    sent = Matrix(entries, shape=(0, 2))
    sent._hash += 1  # as another process has it
    read = pickle.loads(pickle.dumps(sent))
    assert read == Matrix(entries, shape=(0, 2))
    assert hash(read) == hash(Matrix(entries, shape=(0, 2)))
    assert not read.floats().flags.writeable


@settings(max_examples=some(60))
@given(circuits(dets=True, multiaffine=False))
def test_pickles_of_any_circuit(circuit):
    again = pickle.loads(pickle.dumps(circuit))
    assert again.root is circuit.root
    assert again.variables == circuit.variables


# -- scopes --------------------------------------------------------------------------------------------------

index_sets = st.sets(st.integers(0, 200), max_size=40)


def as_scope(elements):
    return scopes.from_intervals((m, m + 1) for m in elements)


def as_set(scope):
    return set(scopes.members(scope))


@given(index_sets, index_sets)
def test_scopes_are_sets(a, b):
    s, t = as_scope(a), as_scope(b)
    assert as_set(s) == a
    assert scopes.union(s, t) == as_scope(a | b), "equal sets have one form"
    assert scopes.difference(s, t) == as_scope(a - b)
    assert scopes.from_bits(scopes.as_bits(s)) == s
    assert scopes.size(s) == len(a)
    found = list(scopes.runs(s))
    assert [i for start, stop in found for i in range(start, stop)] == sorted(a)
    assert all(x[1] < y[0] for x, y in pairwise(found)), "runs are maximal"


def test_variables_that_are_not_tracked_are_in_no_scope():
    circuit = Circuit(product((X, Y)))
    found = scopes.Scopes(circuit._flat, only={"y"})
    assert found.names == ["y"]
    assert [as_set(found.distinct[s]) for s in found.of] == [set(), {0}, {0}]


def test_nested_scopes_of_many_variables_stay_small():
    n = 3000
    node = var("z0")
    for i in range(1, n):
        node = product((var(f"z{i}"), node))
    assert all(type(s) is tuple and len(s) <= 2 for s in Circuit(node).scopes.distinct)


# -- facts, by their definitions -----------------------------------------------------------------------------


def variables_below(node):
    return {n.name for n in postorder(node) if n.op is Op.VAR}


def overlapping(groups):
    return sum(map(len, groups)) > len(set().union(*groups))


def naive_decomposable(circuit):
    for node in circuit.order:
        below = [variables_below(c) for c in node.children]
        if node.op is Op.PRODUCT and overlapping(below):
            return False
        k = len(below) // 2
        if node.op is Op.DET and overlapping([f | y for f, y in zip(below[:k], below[k:], strict=True)]):
            return False
    return True


def naive_smooth(circuit):
    sums = [node for node in circuit.order if node.op is Op.SUM]
    return all(variables_below(c) == variables_below(node) for node in sums for c in node.children)


def naive_degree(node):
    below = [naive_degree(c) for c in node.children]
    match node.op:
        case Op.VAR:
            return 0 if node.is_complement else 1
        case Op.SUM:
            return max(below, default=0)
        case Op.DET:
            k = len(below) // 2
            every = itertools.product((0, 1), repeat=k)
            sets = [T for T in every if node.size in (None, sum(itertools.compress(T, node.counted)))]
            return max(sum(below[i] if T[i] else below[k + i] for i in range(k)) for T in sets)
    return sum(below)


def naive_depth(node):
    return 1 + max(map(naive_depth, node.children)) if node.children else 0


def numbers_of(node):
    match node.op:
        case Op.CONST:
            return [node.value]
        case Op.SUM:
            return list(node.weights)
        case Op.DET:
            return [x for m in node.matrices for row in m.numbers() for x in row]
    return []


@settings(max_examples=some(150), deadline=None)
@given(st.one_of(*(circuits(dets=True, multiaffine=m, floats=f, max_size=8) for m in (0, 1) for f in (0, 1))))
def test_facts_are_their_definitions(circuit):
    facts = circuit.facts
    assert facts.edges == circuit.edges == sum(len(node.children) for node in circuit.order)
    assert facts.decomposable == naive_decomposable(circuit)
    assert facts.smooth == naive_smooth(circuit)
    assert facts.degree == naive_degree(circuit.root)
    assert facts.depth == naive_depth(circuit.root)
    assert facts.dets == sum(node.op is Op.DET for node in circuit.order)
    numbers = [x for node in circuit.order for x in numbers_of(node)]
    assert facts.exact == (not any(isinstance(x, float) for x in numbers))
    assert facts.monotone == (facts.dets == 0 and all(x >= 0 for x in numbers))


def test_the_overlap_names_a_shared_variable():
    for seed in range(30):
        circuit = random_circuit(seed, 4, 8, decomposable=False)
        node, name = circuit._overlap
        assert node.op is Op.PRODUCT
        assert sum(name in variables_below(c) for c in node.children) >= 2
    assert random_circuit(0, 4, 8)._overlap is None


def test_facts_of_an_unused_variable():
    circuit = Circuit(X, ["y", "x"])
    assert circuit.facts.decomposable
    assert circuit.facts.degree == 1


# -- the verifier --------------------------------------------------------------------------------------------

make = node_module._new_node  # past the constructors
M = Matrix([[1]])


@pytest.mark.parametrize(
    ("broken", "law"),
    [
        (make(Op.CONST, (X,), 1), "a Const has no children"),
        (make(Op.CONST, (), Fraction(2, 1)), "a Const holds a canonical number"),
        (make(Op.CONST, (), math.inf), "a Const holds a canonical number"),
        (make(Op.CONST, (), True), "a Const holds a canonical number"),
        (make(Op.VAR, (X,), ("x", False)), "a Var has no children"),
        (make(Op.SUM, (X,), (1, 2)), "one weight per child"),
        (make(Op.SUM, (X,), ("1",)), "canonical numbers"),
        (make(Op.PRODUCT, (X,), (1,)), "nothing but children"),
        (make(Op.DET, (X, ONE), (M, M, [[1]], None, None)), "three matrices"),
        (make(Op.DET, (X,), (M, M, M, None, None)), "shapes"),
        (make(Op.DET, (X, ONE), (M, M, Matrix([[1, 2]]), None, None)), "shapes"),
        (make(Op.DET, (X, ONE), (M, M, M, 2, None)), "the size of a Det"),
        (make(Op.DET, (X, ONE), (M, M, M, True, None)), "the size of a Det"),
        (make(Op.DET, (X, ONE), (M, M, M, 1, (False,))), "the size of a Det"),
        (make(Op.DET, (X, ONE), (M, M, M, 1, (True, True))), "the counted children of a Det"),
    ],
)
def test_the_verifier_catches(broken, law):
    with pytest.raises(CircuitError, match=law):
        verify(Circuit(broken, ["x"]))
    with pytest.raises(CircuitError, match=law):
        verify(Circuit(product((Y, broken)), ["x", "y"]))


def test_the_verifier_catches_a_bad_var_a_bad_order_and_a_foreign_variable():
    circuit = Circuit(product((X, Y)))
    circuit.__dict__["order"] = circuit.order[::-1]
    with pytest.raises(CircuitError, match="comes after it"):
        verify(circuit)
    circuit = Circuit(product((X, Y)))
    circuit._variables = ("x",)
    with pytest.raises(CircuitError, match="'y' is not among"):
        verify(circuit)
    circuit = Circuit(X)
    circuit.__dict__["order"] = [make(Op.VAR, (), ("x", 0))]
    with pytest.raises(CircuitError, match="a Var holds a name"):
        verify(circuit)


@settings(max_examples=some(50))
@given(circuits(dets=True, multiaffine=False))
def test_the_verifier_accepts_what_the_constructors_make(circuit):
    assert verify(circuit) is circuit


@pytest.mark.slow
def test_operators_in_a_loop_are_linear():
    g, names = Circuit(ONE, []), [f"z{i}" for i in range(60_000)]
    for z in variables(names):
        g = g * (z + 1)
    assert g.variables == tuple(names)
    assert g.edges > 3 * len(names)
    f = variables("a")[0]
    for _ in range(200):
        f = f + f  # 2^200 operands if each use were followed
    assert f.variables == ("a",)


def test_a_determinant_of_floats_in_lists_is_not_exact():
    assert not Circuit(det([[1]], [[0.5]], [[1]], [X])).facts.exact
    assert Circuit(det([[1]], [[1]], [[1]], [X])).facts.exact
