"""Layers of regions, and what is learned over them: hidden trees and einsum networks."""

from itertools import product

import numpy as np
import pytest
from sklearn.base import clone

import pgcc
from pgcc.data.evidence import Evidence
from pgcc.errors import PgccError
from pgcc.ir.blocks import Blocks
from pgcc.ir.domains import Domains, as_columns
from pgcc.learn import ChowLiu, EinsumNetwork, HiddenTree
from pgcc.learn.regions import layers as layers_module
from pgcc.learn.regions.einsum_network import random_layers
from pgcc.learn.regions.hidden_tree import rooted_at_centroid, tree_layers
from pgcc.learn.regions.layer_training import LayerEM, LayerLikelihood
from pgcc.learn.regions.layers import Kind
from pgcc.learn.regions.tied_tables import TiedTables
from pgcc.learn.tables.data_split import DataSplit
from pgcc.learn.tables.read_rows import read_rows

PLAIN = ("a", "b", "c", "d", "e", "f")
STATES = as_columns(Domains.of({"w": ["x", "y", "z"], "b": [0, 1], "v": ["p", "q", "r", "s"]}))
PARENTS = np.array([-1, 0, 1, 1, 1, 3])


def tree_over(columns, states=3):
    blocks = Blocks.of(columns)
    return tree_layers(blocks, rooted_at_centroid(PARENTS[: len(blocks.first)]), states)


STRUCTURES = {
    "tree": lambda: (tree_over(PLAIN), PLAIN),
    "tree of states": lambda: (tree_over(STATES), STATES),
    "random": lambda: (random_layers(Blocks.of(PLAIN), 2, 2, 3, np.random.default_rng(0))[0], PLAIN),
    "random of states": lambda: (random_layers(Blocks.of(STATES), 3, 5, 2, np.random.default_rng(1))[0], STATES),
    "one variable": lambda: (tree_over(("a",)), ("a",)),
    "no splits": lambda: (random_layers(Blocks.of(PLAIN), 2, 0, 3, np.random.default_rng(0))[0], PLAIN),
}
EVERY = pytest.mark.parametrize("name", STRUCTURES)


def with_tables(name, seed=0):
    layers, columns = STRUCTURES[name]()
    return layers, columns, layers.normalized(np.random.default_rng(seed).random(layers.size) ** 3)


def all_rows(columns, gaps):
    """All rows, of which some have gaps, or only some states of a variable."""
    blocks = Blocks.of(columns)
    rows = np.array(list(product([0, 1], repeat=len(columns))), np.int8)
    rows = rows[np.all(np.add.reduceat(rows, blocks.first, axis=1) + (blocks.size[blocks.first] == 1) > 0, axis=1)]
    rows = rows[np.all((np.add.reduceat(rows, blocks.first, axis=1) == 1) | (blocks.size[blocks.first] == 1), axis=1)]
    if gaps:
        hidden = np.random.default_rng(2).random((len(rows), len(blocks.first))) < 0.4
        rows = np.where(hidden[:, blocks.block], -1, rows).astype(np.int8)
        rows[0] = np.where(np.arange(len(columns)) == 0, 0, -1)
    return rows


def by_hand(layers, numbers, row):
    """The value at the root, state by state, from the definition."""
    tables, values = layers.tables(numbers), []
    for region in layers.regions:
        below = [values[i] for i in region.below]
        if region.kind is Kind.INDICATOR:
            first = layers.blocks.first[region.at]
            codes = row[first : first + layers.blocks.size[first]]
            ones = codes == 1
            values.append(
                [codes[0] != 1, codes[0] != 0] if len(codes) == 1 else list(ones) if ones.any() else list(codes != 0)
            )
        elif region.kind is Kind.PRODUCT:
            values.append([np.prod([of[s] for of in below]) for s in range(region.width)])
        elif region.kind is Kind.OUTER:
            values.append(
                [a * b for one, other in zip(below[::2], below[1::2], strict=True) for a in one for b in other]
            )
        else:
            table = tables[region.at]
            values.append([sum(x * table[i, j] for i, x in enumerate(below[0])) for j in range(region.width)])
    return values[-1][0]


# -- the layers -----------------------------------------------------------------------------------------------


@EVERY
@pytest.mark.parametrize("gaps", [False, True])
def test_values_are_those_of_the_definition_and_of_the_circuit(name, gaps):
    layers, columns, numbers = with_tables(name)
    rows = all_rows(columns, gaps)
    logs = layers.forward(numbers, layers.encode(rows))[1]
    np.testing.assert_allclose(np.exp(logs), [by_hand(layers, numbers, row) for row in rows], rtol=1e-12)
    model = pgcc.compile(layers.circuit(numbers, columns))
    np.testing.assert_allclose(logs, model.logprob(Evidence.of_codes(columns, rows)), rtol=1e-9, atol=1e-12)
    if not gaps:
        assert np.exp(logs).sum() == pytest.approx(1, rel=1e-12)


@EVERY
def test_flows_are_derivatives_by_logarithms(name):
    layers, columns, numbers = with_tables(name)
    rng = np.random.default_rng(1)
    rows = all_rows(columns, gaps=True)
    weights, batch = rng.random(len(rows)), layers.encode(rows)
    flows = layers.flows(numbers, batch, layers.forward(numbers, batch)[0], weights)
    step = 1e-5
    for j in rng.integers(0, layers.size, 30):
        up, down = (numbers * np.exp(sign * step * (np.arange(layers.size) == j)) for sign in (1, -1))
        slope = weights @ (layers.forward(up, batch)[1] - layers.forward(down, batch)[1]) / (2 * step)
        assert flows[j] == pytest.approx(slope, rel=1e-6, abs=1e-8)
    for table in layers.tables(flows)[-1:]:
        assert table.sum() == pytest.approx(weights.sum(), rel=1e-12)  # every row uses the root once


@EVERY
def test_patterns_and_precision_change_nothing(name, monkeypatch):
    layers, columns, numbers = with_tables(name)
    rows = all_rows(columns, gaps=True)
    rows = rows[np.random.default_rng(0).integers(0, min(20, len(rows)), 300)]
    weights = np.random.default_rng(3).random(len(rows))
    found = []
    for most, kind in ((64, float), (1, float), (64, np.float32)):
        monkeypatch.setattr(layers_module, "_MOST", most)
        batch = layers.encode(rows)
        values, logs = layers.forward(numbers.astype(kind), batch)
        found.append((logs, layers.flows(numbers.astype(kind), batch, values, weights)))
    for (logs, flows), close in zip(found[1:], (1e-12, 1e-4), strict=True):
        np.testing.assert_allclose(logs, found[0][0], rtol=close, atol=close)
        np.testing.assert_allclose(flows, found[0][1], rtol=close, atol=100 * close)


def test_products_of_many_small_numbers():
    """A star of 300 variables, each of probability 1e-30 in all states: single precision has no such product."""
    columns = [f"x{i}" for i in range(300)]
    layers = tree_layers(Blocks.of(columns), np.array([-1] + [0] * 299), 2)
    numbers = layers.normalized(np.ones(layers.size))
    for table in layers.tables(numbers)[:300]:
        table[...] = [[1.0, 1.0], [1e-30, 1e-30]]
    row = np.ones((1, 300), np.int8)
    assert layers.forward(numbers, layers.encode(row))[1][0] == pytest.approx(300 * np.log(1e-30), rel=1e-9)
    data = DataSplit(read_rows(row), read_rows(row), False)
    value, counts = LayerLikelihood(layers, data, 1).expected(numbers.astype(np.float32), row, np.ones(1))
    assert value == pytest.approx(300 * np.log(1e-30), rel=1e-4)
    assert np.isfinite(counts).all()


def test_equal_states_are_one_node():
    layers = tree_over(PLAIN, 4)
    circuit = layers.circuit(layers.normalized(np.ones(layers.size)), PLAIN)
    assert circuit.edges < 60
    assert pgcc.check(circuit).ok


def test_a_tree_without_hidden_states_is_a_product():
    X = np.random.default_rng(0).integers(0, 2, (200, 4))
    model = HiddenTree(1, smoothing=0).fit(X, validation=X)
    assert model.score(X) == pytest.approx(
        sum(p * np.log(p) + (1 - p) * np.log(1 - p) for p in X.mean(axis=0)), abs=1e-9
    )


# -- EM and Adam ------------------------------------------------------------------------------------------------


@EVERY
@pytest.mark.parametrize("gaps", [False, True])
def test_em_never_decreases_the_likelihood(name, gaps):
    layers, columns, _ = with_tables(name)
    rng = np.random.default_rng(4)
    rows = all_rows(columns, gaps)
    rows = read_rows(_labels(columns, rows[rng.integers(1, len(rows), 80) % len(rows)]), columns)
    likelihood = LayerLikelihood(layers, DataSplit(rows, rows, False), 16)
    state = {"counts": rng.random(layers.size), "epoch": np.array(1000)}
    em = LayerEM(likelihood, state["counts"], 0.0, 0, state)
    values = [em.advance() for _ in range(25)]
    assert np.diff(values).min() >= -1e-12
    assert values[-1] > values[0] or name == "one variable"


def _labels(columns, codes):
    """Codes as a table that can be read: rows of dicts for variables with states."""
    if columns is not STATES:
        return codes
    rows = []
    for row in codes:
        one = {}
        for name, domain in STATES.domains.items():
            shown = [s for s, c in zip(domain.states, domain.columns, strict=True) if c and row[STATES.index(c)] == 1]
            unknown = any(c and row[STATES.index(c)] < 0 for c in domain.columns)
            one[name] = None if unknown else shown[0] if shown else domain.states[0]
        rows.append(one)
    return rows


@pytest.mark.parametrize("columns", [PLAIN, STATES, ("a",)])
def test_the_gradient_of_tied_tables(columns):
    layers = tree_over(columns)
    rng = np.random.default_rng(5)
    tied = TiedTables(layers, rng.uniform(0.2, 0.8, len(columns)))
    theta, rows = tied.start(rng), all_rows(columns, gaps=True)
    batch, weights = layers.encode(rows), rng.random(len(rows))

    def value(theta):
        return float(weights @ layers.forward(tied.numbers(theta)[0], batch)[1])

    numbers, kept = tied.numbers(theta)
    assert all(np.allclose(table.sum(axis=0), 1) for table in layers.tables(numbers))
    counts = layers.flows(numbers, batch, layers.forward(numbers, batch)[0], weights)
    found = tied.gradient(numbers, counts, kept)
    for j in rng.integers(0, tied.size, 20):
        step = 1e-5 * (np.arange(tied.size) == j)
        assert found[j] == pytest.approx((value(theta + step) - value(theta - step)) / 2e-5, rel=1e-4, abs=1e-7)


# -- the estimators -----------------------------------------------------------------------------------------------

KINDS = {
    "free": HiddenTree(3, max_iter=12, batch_size=32, verbose=False),
    "tied": HiddenTree(3, "tied", max_iter=6, batch_size=32, verbose=False),
    "einsum": EinsumNetwork(2, 2, 2, max_iter=12, batch_size=32, verbose=False),
}
EACH = pytest.mark.parametrize("kind", KINDS)


def some_rows(rows=300, seed=0):
    rng = np.random.default_rng(seed)
    hidden = rng.integers(0, 2, (rows, 1))
    return (rng.random((rows, 6)) < np.where(hidden, 0.85, 0.2)).astype(np.int8)


@EACH
def test_they_learn_and_their_circuits_say_so(kind):
    X, V = some_rows(1000), some_rows(300, 1)
    model = clone(KINDS[kind]).set_params(max_iter=25, n_iter_no_change=10)
    model = (model.set_params(n_states=8) if kind == "tied" else model).fit(X, validation=V)
    assert model.score(V) > ChowLiu().fit(X).score(V)
    assert model.score(V) == pytest.approx(model.history_["validation"][model.best_epoch_], rel=1e-5)
    assert pgcc.check(model.circuit_).ok
    rows = np.array(list(product([0, 1], repeat=6)))
    assert np.exp(model.score_samples(rows)).sum() == pytest.approx(1)


@EACH
def test_the_same_seed_the_same_model(kind):
    X = some_rows()
    fitted = [clone(KINDS[kind]).set_params(random_state=seed).fit(X) for seed in (7, 7, 8)]
    assert fitted[0].circuit_ == fitted[1].circuit_ != fitted[2].circuit_
    by_generator = clone(KINDS[kind]).set_params(random_state=np.random.default_rng(0)).fit(X)
    V = X[:50]
    assert by_generator.score(V) > -5


@EACH
def test_missing_values_and_states(kind):
    gaps = np.where(np.random.default_rng(0).random((300, 6)) < 0.2, -1, some_rows())
    model = clone(KINDS[kind]).fit(gaps)
    assert np.isfinite(model.score(gaps))
    assert model.score_samples([[-1] * 6]) == pytest.approx([0], abs=1e-9)
    rows = [
        {"sky": "red" if x[0] and x[1] else "blue" if x[2] else "grey", "wet": "yes" if x[3] else "no"} for x in gaps
    ]
    rows[0] = {"wet": "no"}
    labels = clone(KINDS[kind]).fit(rows)
    states = [{"sky": s, "wet": w} for s in ("red", "blue", "grey") for w in ("yes", "no")]
    assert np.exp(labels.score_samples(states)).sum() == pytest.approx(1)


@EACH
def test_ensembles_score_without_a_circuit(kind):
    data = DataSplit(read_rows(some_rows()), read_rows(some_rows(40, 1)), False)
    model = clone(KINDS[kind]).fit(data)
    (plan,) = model._plans(data, 0, None)
    trainer = plan.trainer(None)
    trainer.advance()
    logs = plan.scores(trainer.learned())
    assert data.held_out.counts @ logs / 40 == pytest.approx(trainer.validate(), rel=1e-5)


@EACH
@pytest.mark.parametrize("rows", [1, 2, 9])
def test_few_rows_and_one_column(kind, rows):
    model = clone(KINDS[kind])
    assert np.isfinite(model.fit(some_rows(rows)).score(some_rows(rows)))
    assert np.exp(model.fit(some_rows(rows)[:, :1]).score_samples([[0], [1]])).sum() == pytest.approx(1)


def test_what_is_refused():
    X = some_rows()
    for params, message in (
        ({"n_states": 0}, "n_states=0: expected a whole number"),
        ({"parameters": "loose"}, "choose one of 'free', 'tied'"),
        ({"smoothing": -1}, "smoothing=-1"),
        ({"learning_rate": 0}, "learning_rate=0"),
        ({"batch_size": 1.5}, "batch_size=1.5"),
    ):
        with pytest.raises(PgccError, match=message):
            HiddenTree(**params).fit(X)
    for params in ({"n_sums": 0}, {"depth": -1}, {"n_repetitions": 0}, {"n_sums": 1000}):
        with pytest.raises(PgccError, match="expected a whole number"):
            EinsumNetwork(**params).fit(X)
