"""Modes of deterministic circuits in one pass, against all assignments: networks, decision trees, PSDDs, files."""

import math
import os
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from how_many import some
from hypothesis import given, settings
from hypothesis import strategies as st
from networks import public_bif

import pgcc
from pgcc import pc
from pgcc.compiler import Compiled
from pgcc.errors import SemanticsError
from pgcc.frontend.common_support import find_meeting_terms, is_deterministic
from pgcc.frontend.elimination import Table, eliminate
from pgcc.ir.circuit import Circuit
from pgcc.ir.domains import Domains
from pgcc.ir.node import product as product_node
from pgcc.ir.node import weighted_sum

CIRCUITS = Path(os.environ.get("PGCC_DATA", Path(__file__).parents[3] / "shared" / "data")) / "circuits"
SEEDS = st.integers(0, 2**32 - 1)


def network(rng, zeros=0.3):
    """A random Bayesian network of up to five variables with 1 to 4 states; its variables, and the table of all."""
    n = int(rng.integers(1, 6))
    sizes = rng.integers(1, 5, n).tolist()
    domains = Domains.of({f"v{i}": [f"s{k}" for k in range(size)] for i, size in enumerate(sizes)})
    joint, factors = np.ones(sizes), []
    for i in range(n):
        scope = (*sorted(rng.choice(i, min(i, 2), replace=False).tolist()), i)
        table = rng.dirichlet(np.ones(sizes[i]), [sizes[v] for v in scope[:-1]])
        table = np.round(table, 1) if rng.random() < 0.3 else table  # ties
        table = table * (rng.random(table.shape) > zeros) if rng.random() < 0.5 else table
        factors.append(Table(scope, table))
        shape = [sizes[v] if v in scope else 1 for v in range(n)]
        joint = joint * table.reshape(shape)
    return domains, factors, joint


def logs_of(domains, joint, evidence, over=None):
    """Logarithms of the probabilities of all assignments that agree with the evidence, the largest first."""
    joint = joint / joint.sum()
    for v, (name, domain) in enumerate(domains.items()):
        likelihood = np.ones(len(domain.states))
        if name in evidence:
            said = evidence[name]
            said = said if isinstance(said, dict) else dict.fromkeys(said if isinstance(said, set) else {said}, 1.0)
            likelihood = np.array([said.get(state, 0.0) for state in domain.states])
        joint = joint * likelihood.reshape([-1 if u == v else 1 for u in range(joint.ndim)])
    if over is not None:
        joint = joint.sum(axis=tuple(v for v, name in enumerate(domains) if name not in over))
    with np.errstate(divide="ignore"):
        return np.sort(np.log(joint.ravel()))[::-1]


def evidence_of(rng, domains, soft=True):
    found = {}
    for name, domain in domains.items():
        kind = rng.integers(6)
        if kind == 0:
            found[name] = domain.states[rng.integers(len(domain.states))]
        elif kind == 1 and len(domain.states) > 2:
            found[name] = set(rng.choice(domain.states, 2, replace=False).tolist())
        elif kind == 2 and soft and len(domain.states) > 1:
            found[name] = {state: float(rng.uniform(0.1, 2)) for state in domain.states}
    return found


@settings(max_examples=some(30), deadline=None)
@given(SEEDS)
def test_networks(seed):
    rng = np.random.default_rng(seed)
    domains, factors, joint = network(rng)
    if not joint.sum():
        return
    model = pgcc.compile(eliminate(domains, factors))
    assert model._compiled.max_product is not None
    for _ in range(4):
        evidence = evidence_of(rng, domains)
        logs = logs_of(domains, joint, evidence)
        if logs[0] == -math.inf:
            with pytest.raises(SemanticsError, match="probability 0"):
                model.mode(evidence)
            continue
        found = model.mode(evidence)
        assert found.exact
        assert found.logprob == pytest.approx(logs[0], abs=1e-8)
        assert model.logprob(found.assignment) <= logs_of(domains, joint, {})[0] + 1e-8
        for name, value in evidence.items():
            if not isinstance(value, dict):
                assert found.assignment[name] in (value if isinstance(value, set) else {value})
        listed = model.top(len(logs) + 3, evidence)
        np.testing.assert_allclose([one.logprob for one in listed], logs[logs > -math.inf], atol=1e-8)
        assert all(one.exact for one in listed)
        assert len({tuple(one.assignment.items()) for one in listed}) == len(listed)


@settings(max_examples=some(30), deadline=None)
@given(SEEDS)
def test_some_variables_of_networks(seed):
    rng = np.random.default_rng(seed)
    domains, factors, joint = network(rng)
    if not joint.sum():
        return
    model = pgcc.compile(eliminate(domains, factors))
    over = [name for name in domains if rng.random() < 0.5] or [next(iter(domains))]
    evidence = evidence_of(rng, domains)
    logs = logs_of(domains, joint, evidence, over)
    if logs[0] == -math.inf:
        return
    found = model.mode(evidence, over=over)
    assert found.exact
    assert list(found.assignment) == [name for name in domains if name in over]
    assert found.logprob == pytest.approx(logs[0], abs=1e-8)
    with pytest.MonkeyPatch.context() as patch:  # by search
        patch.setattr("pgcc.queries.mode._MOST_LISTED", 0)
        found = model.mode(evidence, over=over)
    assert found.exact
    assert found.logprob == pytest.approx(logs[0], abs=1e-8)
    assert found.bound >= logs[0] - 1e-12


def test_rows_of_evidence():
    rng = np.random.default_rng(0)
    domains, factors, joint = network(np.random.default_rng(3), zeros=0.0)
    model = pgcc.compile(eliminate(domains, factors))
    rows = [evidence_of(rng, domains, soft=False) for _ in range(200)]
    for row, found in zip(rows, model.mode(rows), strict=True):
        assert found.logprob == pytest.approx(logs_of(domains, joint, row)[0], abs=1e-8)
        assert found.exact


def decision_tree(rng, names):
    """A tree of decisions, each on any variable that is left; now and then it ends in zero."""
    if not names:
        return float(rng.uniform(0.1, 1))
    name = names[rng.integers(len(names))]
    rest = [other for other in names if other != name]
    branches = [leaf(name) * decision_tree(rng, rest) for leaf in (pc.pos, pc.neg) if rng.random() < 0.85]
    if not branches:
        return pc.pos(name) * decision_tree(rng, rest)
    return branches[0] if len(branches) == 1 else 0.4 * branches[0] + 0.6 * branches[1]


@settings(max_examples=some(30), deadline=None)
@given(SEEDS, st.integers(1, 6))
def test_decision_trees(seed, n):
    rng = np.random.default_rng(seed)
    circuit = decision_tree(rng, [f"x{i}" for i in range(n)]).to_pgc()
    model = pgcc.compile(circuit)
    assert model._compiled.max_product is not None
    logs = np.sort(model.logprob(np.array(list(product((0, 1), repeat=len(model.variables))), np.int8)))[::-1]
    listed = model.top(2**n)
    np.testing.assert_allclose([one.logprob for one in listed], logs[np.isfinite(logs)], atol=1e-8)
    assert all(one.exact for one in listed)


def psdd(rng, names):
    """A random circuit over decisions whose primes are exclusive: those of a tree of decisions, shared and unshared."""
    if len(names) == 1:
        p = float(rng.uniform(0.05, 0.95))
        return p * pc.pos(names[0]) + (1 - p) * pc.neg(names[0])
    left, right = names[: len(names) // 2], names[len(names) // 2 :]
    parts = exclusive(rng, left)
    weights = rng.dirichlet(np.ones(len(parts)))
    total = None
    for weight, prime in zip(weights.tolist(), parts, strict=True):
        if rng.random() < 0.15 and total is not None:
            continue  # a false sub
        term = weight * prime * psdd(rng, right)
        total = term if total is None else total + term
    return total


def exclusive(rng, names):
    """Circuits over these variables whose supports divide all assignments."""
    if len(names) == 1:
        return [pc.pos(names[0]), pc.neg(names[0])]
    left, right = names[:1], names[1:]
    rights = exclusive(rng, right)
    both = [a * b for a in exclusive(rng, left) for b in rights]
    while len(both) > 2 and rng.random() < 0.7:
        i, j = sorted(rng.choice(len(both), 2, replace=False).tolist())
        both[i] = 0.3 * both[i] + 0.7 * both.pop(j)
    return both


@settings(max_examples=some(30), deadline=None)
@given(SEEDS, st.integers(2, 7))
def test_psdds(seed, n):
    rng = np.random.default_rng(seed)
    circuit = psdd(rng, [f"x{i}" for i in range(n)]).to_pgc()
    model = pgcc.compile(circuit)
    assert model._compiled.max_product is not None
    assert is_deterministic(circuit)
    rows = np.array(list(product((0, 1), repeat=n)), np.int8)
    logs = model.logprob(rows)
    code = rng.choice([-1, -1, 0, 1], n).astype(np.int8)
    agree = ((code < 0) | (rows == code)).all(axis=1)
    if not np.isfinite(logs[agree]).any():
        return
    expected = np.sort(logs[agree])[::-1]
    assert model.mode(code).logprob == pytest.approx(expected[0], abs=1e-8)
    assert model.mode(code).exact
    k = int(rng.integers(1, 2**n + 1))
    listed = [one.logprob for one in model.top(k, code)]
    np.testing.assert_allclose(listed, expected[np.isfinite(expected)][:k], atol=1e-8)


@settings(max_examples=some(30), deadline=None)
@given(SEEDS)
def test_what_is_proved_is_deterministic(seed):
    """Circuits of all kinds: sums of sums of random products, some of which exclude one another."""
    rng = np.random.default_rng(seed)
    names = ["a", "b", "c", "d"]

    def term(names):
        return math.prod((pc.pos if rng.random() < 0.5 else pc.neg)(name) for name in names)

    def some_of(names):
        terms = [term(names) for _ in range(int(rng.integers(1, 4)))]
        return sum(terms[1:], terms[0])

    terms = [some_of(names[:2]) * some_of(names[2:]) for _ in range(int(rng.integers(1, 4)))]
    circuit = sum(terms[1:], terms[0]).to_pgc()
    compiled = Compiled(circuit)
    most = most_ways(compiled.homogenized, names)
    if is_deterministic(compiled.homogenized):
        assert most <= 1
    model = pgcc.compile(circuit)
    best = model.logprob(np.array(list(product((0, 1), repeat=4)), np.int8)).max()
    assert model.mode().logprob == pytest.approx(best, abs=1e-8)


def most_ways(circuit, names):
    """In how many ways a node of the circuit can be positive at one assignment, at most: by all assignments."""
    most = 0
    for row in product((0, 1), repeat=len(names)):
        values = dict(zip(names, row, strict=True))
        ways = []
        for node, below in zip(circuit.order, circuit._links, strict=True):
            match node.op.name:
                case "CONST":
                    ways.append(int(bool(node.value)))
                case "VAR":
                    ways.append(int(values[node.name] != node.is_complement))
                case "SUM":
                    ways.append(sum(ways[c] for w, c in zip(node.weights, below, strict=True) if w))
                case _:
                    ways.append(math.prod(ways[c] for c in below))
        most = max(most, ways[-1])
    return most


@pytest.mark.parametrize(
    "text", ["0.5*a*b + 0.5*a", "(0.5*a + 0.5*b)*c", "0.2*a + 0.3*b + 0.5", "0.5*(a + 1)*b/2 + 0.5*a*b"]
)
def test_what_is_not_deterministic_is_not_taken_for_it(text):
    circuit = pgcc.parse(text)
    model = pgcc.compile(circuit)
    if (largest := model._compiled.max_product) is not None:  # homogenized: a term without b says that b is out
        assert most_ways(model._compiled.homogenized, circuit.variables) == 1
    assert (largest is None) == (most_ways(model._compiled.homogenized, circuit.variables) > 1)


@settings(max_examples=some(40), deadline=None)
@given(SEEDS)
def test_mixtures_are_not_taken_for_it(seed):
    """Products of independent parts, of which some are literals: their terms meet, or are told apart by a literal."""
    rng = np.random.default_rng(seed)
    n, parts = int(rng.integers(1, 6)), int(rng.integers(2, 5))
    ps = np.round(rng.random((parts, n)), 1) * (rng.random((parts, n)) > 0.4)
    names = pgcc.variables([f"x{i}" for i in range(n)])
    products = [pgcc.product([p * z + (1 - p) for p, z in zip(row, names, strict=True)]) for row in ps.tolist()]
    circuit = pgcc.mixture(rng.dirichlet(np.ones(parts)).tolist(), products)
    compiled = Compiled(circuit)
    meets = most_ways(compiled.homogenized, circuit.variables) > 1
    assert not (meets and is_deterministic(compiled.homogenized))
    assert is_deterministic(compiled.homogenized) or meets
    rows = np.array(list(product((0, 1), repeat=len(circuit.variables))), np.int8)
    model = pgcc.compile(circuit)
    assert model.mode().logprob == pytest.approx(model.logprob(rows).max(), abs=1e-8)


def test_a_file_that_lies(tmp_path):
    """Primes that overlap: the best term has 0.3·0.9·0.9, and the best assignment 0.3·0.9 · 0.9 + 0.7·0.5 · 0.5."""
    path = tmp_path / "lies.psdd"
    path.write_text(
        "psdd 6\nT 0 0 1 -0.10536051565782628\nT 1 2 2 -0.10536051565782628\n"
        "T 2 0 1 -0.6931471805599453\nT 3 2 2 -0.6931471805599453\n"
        "D 4 1 2 0 1 -1.2039728043259361 2 3 -0.35667494393873245\n"
    )
    model = pgcc.compile(pgcc.load(path))
    assert model._compiled.max_product is None
    assert model.mode().logprob == pytest.approx(math.log(0.3 * 0.81 + 0.7 * 0.25), abs=1e-6)


def test_ties_and_tiny_numbers():
    model = pgcc.compile(pgcc.product([pgcc.parse(f"1/2*x{i} + 1/2") for i in range(400)]))
    found = model.mode()
    assert found.exact
    assert found.logprob == pytest.approx(-400 * math.log(2))
    assert len({tuple(one.assignment.values()) for one in model.top(20)}) == 20
    tiny = pgcc.compile(pgcc.product([pgcc.parse(f"1e-300*x{i} + 1e-301*y{i}") for i in range(30)]), normalize=False)
    assert tiny.mode().logprob == pytest.approx(-30 * 300 * math.log(10))
    assert tiny.mode("y0=1").logprob == pytest.approx(-9001 * math.log(10))


def test_a_variable_in_no_term_is_out():
    model = pgcc.compile(pgcc.Circuit(pgcc.parse("0.4*a*b + 0.6*a").root, ["a", "b", "c"]))
    assert model.mode().assignment == {"a": 1, "b": 0, "c": 0}
    with pytest.raises(SemanticsError, match="probability 0"):
        model.mode({"c": 1})


@pytest.mark.parametrize("seed", range(4))
def test_some_variables_of_other_circuits(seed):
    """Mixtures and determinants have no bound by maxima of their own: marginals bound them."""
    rng = np.random.default_rng(seed)
    B = rng.standard_normal((6, 6))
    mixed = pgcc.mixture([0.3, 0.7], [pgcc.dpp(L=B @ B.T), pgcc.dpp(L=B.T @ B)])
    names = pgcc.variables([f"x{i + 1}" for i in range(6)])
    rows = [pgcc.product([p * z + (1 - p) for p, z in zip(r, names, strict=True)]) for r in rng.random((3, 6)).tolist()]
    for circuit in (mixed, pgcc.mixture([0.2, 0.3, 0.5], rows)):
        model = pgcc.compile(circuit)
        over = ["x1", "x3", "x4"]
        best = max(model.logprob(dict(zip(over, values, strict=True))) for values in product((0, 1), repeat=3))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("pgcc.queries.mode._MOST_LISTED", 0)
            found = model.mode(over=over)
        assert found.exact
        assert found.logprob == pytest.approx(best, abs=1e-8)
        assert sorted(found.assignment) == over


def test_a_mixture_of_products():
    """The bound by marginals alone left a gap of a nat after five seconds."""
    rng = np.random.default_rng(0)
    names = pgcc.variables([f"z{i}" for i in range(60)])
    rows = rng.random((20, 60)).tolist()
    products = [pgcc.product([p * z + (1 - p) for p, z in zip(row, names, strict=True)]) for row in rows]
    model = pgcc.compile(pgcc.mixture(rng.dirichlet(np.ones(20)).tolist(), products))
    assert model._compiled.max_product is None
    assert model.mode(time_limit=60).exact


def largest_log(tables, sizes, evidence):
    """The logarithm of the largest entry of a product of tables, by elimination of one variable after another."""
    with np.errstate(divide="ignore"):
        parts = [(list(table.scope), np.log(np.asarray(table.table, float))) for table in tables]
    for v, state in evidence.items():
        parts = [
            ([u for u in scope if u != v], np.take(logs, state, scope.index(v)) if v in scope else logs)
            for scope, logs in parts
        ]
    left = set(range(len(sizes))) - set(evidence)
    while left:
        near = {v: set().union({v}, *(scope for scope, _ in parts if v in scope)) for v in left}
        v = min(left, key=lambda v: math.prod(sizes[u] for u in near[v]))
        left.remove(v)
        scope, total = sorted(near[v]), 0.0
        for own, logs in parts:
            if v in own:
                logs = logs.transpose(np.argsort(own))
                total = total + logs.reshape([sizes[u] if u in own else 1 for u in scope])
        parts = [part for part in parts if v not in part[0]]
        parts.append(([u for u in scope if u != v], total.max(axis=scope.index(v))))
    return float(sum(logs for _, logs in parts))


@pytest.mark.parametrize("name", ["alarm", "insurance", "hepar2"])
def test_public_networks(name):
    [path] = public_bif(name)
    circuit = pgcc.load(path)
    network, model = circuit.network, pgcc.compile(circuit)
    names, sizes = list(network.domains), [len(domain.states) for domain in network.domains.values()]
    rng = np.random.default_rng(0)
    evidence = [{}] + [{int(v): 0 for v in rng.choice(len(names), k, replace=False)} for k in (1, 1, 2, 2, 2)]
    total = float(model._compiled.total(1e-9).logs()[0])
    for seen in evidence:
        expected = largest_log(network.tables, sizes, seen) - total
        if expected == -math.inf:
            continue
        found = model.mode({names[v]: model.states[names[v]][state] for v, state in seen.items()})
        assert found.exact
        assert found.logprob == pytest.approx(expected, abs=1e-9)


def exactly(names):
    """Circuits of exactly 0, 1, … of these variables: wide decisions whose primes are not exhaustive."""
    if len(names) == 1:
        return [pc.neg(names[0]), pc.pos(names[0])]
    left, right = exactly(names[: len(names) // 2]), exactly(names[len(names) // 2 :])
    found = []
    for j in range(len(names) + 1):
        terms = [(1 + i) * left[i] * right[j - i] for i in range(len(left)) if 0 <= j - i < len(right)]
        found.append(sum(terms[1:], terms[0]))
    return found


def test_primes_that_are_not_exhaustive():
    circuit = exactly([f"x{i}" for i in range(24)])[9].to_pgc()
    model = pgcc.compile(circuit)
    assert is_deterministic(circuit)
    found = model.mode()
    assert found.exact
    assert sum(found.assignment.values()) == 9
    assert model.logprob(model.sample(3000, rng=0)).max() <= found.logprob + 1e-9


FILES = ["asia.uai", "jester.psdd", "mnist.psdd", "nltcs.psdd", "nltcs.clt.psdd", "plants.psdd", "random.sdd"]


@pytest.mark.parametrize("name", FILES)
def test_public_circuits(name):
    path = CIRCUITS / name
    if not path.exists():
        pytest.skip(f"there is no {path}: PGCC_DATA is the folder of the circuits that are not ours to copy")
    model = pgcc.compile(pgcc.load(path))
    found = model.mode()
    assert found.exact
    listed = model.top(100)
    logs = [one.logprob for one in listed]
    assert logs == sorted(logs, reverse=True)
    assert logs[0] == pytest.approx(found.logprob)
    assert all(one.exact for one in listed)
    assert model.logprob(model.sample(2000, rng=0)).max() <= logs[0] + 1e-9
    if len(model.variables) <= 16:
        rows = np.array(list(product((0, 1), repeat=len(model.variables))), np.int8)
        np.testing.assert_allclose(logs, np.sort(model.logprob(rows))[::-1][:100], atol=1e-8)


def test_a_term_with_a_factor_0_meets_no_other():
    domains = Domains.of({"w": ["a", "b", "c"]})
    a, zero = domains["w"].leaf(0), pgcc.parse("0").root
    circuit = Circuit(weighted_sum([3, 1], [a, product_node([a, zero])]), domains)
    assert find_meeting_terms(circuit) == (None, None)
    assert is_deterministic(circuit)
