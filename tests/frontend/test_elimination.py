"""Variable elimination: the circuits are the products of the tables, by brute force, for any numbers of states."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pgcc
from pgcc.errors import CircuitError, EvidenceError
from pgcc.frontend.elimination import Table, WidthError, _Elimination, eliminate
from pgcc.frontend.elimination_order import find_orders
from pgcc.ir.circuit import Circuit
from pgcc.ir.domains import Domain, Domains
from pgcc.ir.node import Op


@st.composite
def networks(draw: Any, most: int = 5, zeros: bool = True) -> tuple[Domains, list[Table]]:
    """Random tables over a few variables of one to five states, many of whose entries are 0."""
    sizes = draw(st.lists(st.integers(1, 5), min_size=1, max_size=most))
    domains = Domains.of({f"v{i}": [f"s{k}" for k in range(size)] for i, size in enumerate(sizes)})
    factors = []
    for _ in range(draw(st.integers(0, 2 * len(sizes)))):
        scope = draw(st.lists(st.integers(0, len(sizes) - 1), unique=True, max_size=3))
        rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
        table = rng.choice([0.25, 0.5, 1.0, 3.0, rng.random()], [sizes[v] for v in scope])
        if zeros and scope:
            table[rng.random(table.shape) < draw(st.sampled_from([0.0, 0.4, 0.8]))] = 0
        factors.append(Table(tuple(scope), table))
    return domains, factors


def joint(domains: Domains, factors: list[Table]) -> np.ndarray:
    """The product of all tables, with an axis for every variable."""
    sizes = [len(domain.states) for domain in domains.values()]
    product = np.ones(sizes)
    for factor in factors:
        axes = np.argsort(factor.scope)
        shape = [size if v in factor.scope else 1 for v, size in enumerate(sizes)]
        product = product * factor.table.transpose(axes).reshape(shape)
    return product


def table_of(circuit: Circuit, domains: Domains) -> np.ndarray:
    """The values of a circuit over literals, at every assignment; of every sum, one term counts at most."""
    ones = np.ones([len(domain.states) for domain in domains.values()])
    literals: dict[tuple[str, bool], np.ndarray] = {}
    for axis, domain in enumerate(domains.values()):
        for i, column in enumerate(domain.columns):
            if column is not None:
                here = np.moveaxis(ones * 0, axis, 0)
                here[i] = 1
                literals[column, False] = np.moveaxis(here, 0, axis)
                literals[column, True] = 1 - literals[column, False]
    at: dict[Any, np.ndarray] = {}
    for node in circuit.order:
        below = [at[child] for child in node.children]
        match node.op:
            case Op.CONST:
                at[node] = ones * float(node.value)
            case Op.VAR:
                at[node] = literals[node.name, node.is_complement]
            case Op.PRODUCT:
                at[node] = np.prod(below, axis=0)
            case _:
                terms = np.array([float(w) * child for w, child in zip(node.weights, below, strict=True)])
                assert (np.count_nonzero(terms, axis=0) <= 1).all()
                at[node] = terms.sum(axis=0)
    return at[circuit.root]


def check(circuit: Circuit, domains: Domains, expected: np.ndarray) -> None:
    np.testing.assert_allclose(table_of(circuit, domains), expected, rtol=1e-12, atol=0)
    assert circuit.variables == domains.columns
    assert circuit.facts.decomposable


@given(networks())
def test_the_circuit_is_the_product_of_the_tables(network: tuple[Domains, list[Table]]) -> None:
    domains, factors = network
    check(eliminate(domains, factors), domains, joint(domains, factors))


@given(networks(), st.data())
def test_variables_that_are_not_kept_are_summed_out(network: tuple[Domains, list[Table]], data: st.DataObject) -> None:
    domains, factors = network
    keep = data.draw(st.lists(st.sampled_from(list(domains)), unique=True, min_size=1))
    kept = Domains({name: domain for name, domain in domains.items() if name in keep})
    gone = tuple(i for i, name in enumerate(domains) if name not in keep)
    check(eliminate(domains, factors, keep), kept, joint(domains, factors).sum(axis=gone))


@given(networks(), st.data())
def test_evidence_leaves_the_part_that_agrees(network: tuple[Domains, list[Table]], data: st.DataObject) -> None:
    domains, factors = network
    expected, left, evidence = joint(domains, factors), dict(domains), {}
    for axis, (name, domain) in reversed(list(enumerate(domains.items()))):
        states = sorted(data.draw(st.sets(st.sampled_from(range(len(domain.states))), min_size=1)))
        labels = {domain.states[i] for i in states}
        evidence[name] = labels.pop() if len(labels) == 1 and data.draw(st.booleans()) else labels
        expected = expected.take(states, axis)
        left[name] = Domain(tuple(domain.states[i] for i in states), tuple(domain.columns[i] for i in states))
        if len(states) == 1 < len(domain.states):
            expected = expected.take(0, axis)
            del left[name]
    circuit = eliminate(domains, factors, evidence=evidence)
    kept = Domains({name: left[name] for name in domains if name in left})
    check(circuit, kept, expected)
    assert (circuit.domains or Domains.plain(circuit.variables)) == kept


def test_models_ask_in_states() -> None:
    domains = Domains.of({"weather": ["sun", "rain", "snow"], "wet": ["no", "yes"]})
    factors = [Table((0,), np.array([0.5, 0.25, 0.25])), Table((0, 1), np.array([[1, 0], [0.25, 0.75], [0.5, 0.5]]))]
    model = pgcc.compile(eliminate(domains, factors))
    assert model.prob({"weather": "rain", "wet": "yes"}) == pytest.approx(0.1875)
    assert pgcc.compile(eliminate(domains, factors), normalize=False).prob({}) == pytest.approx(1)


def test_equal_rows_of_a_table_are_one_node() -> None:
    """Ten states of the parent, two different rows for every child: two sums each."""
    rng = np.random.default_rng(0)
    domains = Domains.of({"parent": range(10), "a": range(4), "b": range(3), "c": range(2)})
    rows = np.arange(10) % 2
    factors = [Table((0, 1 + k), rng.random((2, 4 - k))[rows]) for k in range(3)]
    circuit = eliminate(domains, [Table((0,), rng.random(10)), *factors])
    assert sum(node.op is Op.SUM for node in circuit.order) == 7


def test_a_deterministic_chain_has_no_sums_of_one_term() -> None:
    domains = Domains.of({f"v{i}": range(3) for i in range(6)})
    shift = np.roll(np.eye(3), 1, axis=1)
    circuit = eliminate(domains, [Table((v, v + 1), shift) for v in range(5)])
    assert [len(node.children) for node in circuit.order if node.op is Op.SUM] == [3]


def test_products_that_lose_digits_are_refused() -> None:
    """Both tables are in range, and their product is subnormal where it matters."""
    domains = Domains.of({"a": ["x", "y"]})
    factors = [Table((0,), np.array([1.0, 2.0**-990 * 1.2345])), Table((0,), np.array([2.0**-990, 2.0**-70 / 3]))]
    with pytest.raises(CircuitError, match="differ too much"):
        eliminate(domains, factors)


def test_bad_names_and_states() -> None:
    domains = Domains.of({"weather": ["sun", "rain", "snow"]})
    with pytest.raises(CircuitError, match="cannot keep 'whether': the model has no such variable: did you mean"):
        eliminate(domains, [], keep="whether")
    with pytest.raises(CircuitError, match="cannot observe 'wind': the model has no such variable"):
        eliminate(domains, [], evidence={"wind": "sun"})
    with pytest.raises(EvidenceError, match="'weather' is 'rainy': did you mean 'rain'"):
        eliminate(domains, [], evidence={"weather": "rainy"})


def test_too_many_live_terms_are_refused_with_the_width() -> None:
    rng = np.random.default_rng(0)
    domains = Domains.of({f"v{i}": range(4) for i in range(14)})
    factors = [Table((i, j), rng.random((4, 4))) for i in range(14) for j in range(i)]
    with pytest.raises(WidthError, match=r"induced width .* 13: .* live terms \(the limit is") as caught:
        eliminate(domains, factors)
    assert caught.value.width == 13


def grid(n: int, states: int, rng: np.random.Generator) -> tuple[Domains, list[Table]]:
    """A square of variables with random tables between neighbours."""
    pairs = [(v, v + 1) for v in range(n * n) if v % n < n - 1] + [(v, v + n) for v in range(n * (n - 1))]
    return Domains.of({f"v{i}": range(states) for i in range(n * n)}), [
        Table(pair, rng.random((states, states))) for pair in pairs
    ]


def test_orders_have_every_variable_and_those_that_are_summed_out_first() -> None:
    _, factors = grid(6, 3, np.random.default_rng(0))
    orders = find_orders([3] * 36, [factor.scope for factor in factors], set(range(0, 36, 2)))
    assert len(orders) > 4
    for order in orders:
        variables = list(order.neighbours)
        assert sorted(variables) == list(range(36))
        assert all(v % 2 for v in variables[:18])
        later = {v: set(variables[i:]) for i, v in enumerate(variables)}
        assert all(set(near) <= later[v] for v, near in order.neighbours.items())
        assert order.cells == pytest.approx(sum(3.0 ** (1 + len(near)) for near in order.neighbours.values()))
    assert [order.cells for order in orders] == sorted(order.cells for order in orders)


def test_the_smallest_circuit_of_several_orders_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []
    run = _Elimination.run

    def noted(self: _Elimination, order: Any) -> Any:
        tried.append(len((flat := run(self, order)).child))
        return flat

    monkeypatch.setattr(_Elimination, "run", noted)
    domains, factors = grid(6, 3, np.random.default_rng(0))
    circuit = eliminate(domains, factors)
    assert len(tried) > 1
    assert len(circuit._flat.child) == min(tried)


def test_a_dense_grid_is_refused_before_it_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_Elimination, "run", None)
    with pytest.raises(WidthError, match="too many live terms"):
        eliminate(*grid(15, 3, np.random.default_rng(0)))
