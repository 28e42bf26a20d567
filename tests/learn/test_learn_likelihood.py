"""Likelihoods and gradients of mixtures of determinantal PGCs, against the definition and against differences."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from how_many import some
from hypothesis import given, settings
from hypothesis import strategies as st

import pgcc
from pgcc.evaluate.distinct import number_rows
from pgcc.learn.kernels.dense import invert, invert_eight, multiply
from pgcc.learn.mixtures import initialization
from pgcc.learn.mixtures.encoding import encode
from pgcc.learn.mixtures.initialization import IndependentGroups
from pgcc.learn.mixtures.mixture_likelihood import MixtureLikelihood, component_scores, log_likelihoods, log_weights
from pgcc.learn.mixtures.partition import count_pairs, partition_variables, positive_dependence
from pgcc.learn.mixtures.simple_pgc import simple_pgc_circuit

GROUPS = [[0, 2], [1], [3, 4, 5], [6]]
CODES = sum(2 ** len(group) - 1 for group in GROUPS)


def parameters_of(seed: int, components: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(components, len(GROUPS) ** 2 + CODES + 1))


def table_of(seed: int, rows: int, gaps: bool) -> np.ndarray:
    return np.random.default_rng(seed).integers(-1 if gaps else 0, 2, size=(rows, 7)).astype(np.int8)


def by_definition(parameters: np.ndarray, x: np.ndarray) -> float:
    """log Σ_c π_c · det(L_A) / det(I + L) · Π leaf, summed over all ways to fill the gaps."""
    m, total = len(GROUPS), 0.0
    gaps = np.flatnonzero(x < 0)
    for fill in product((0, 1), repeat=len(gaps)):
        full = x.copy()
        full[gaps] = fill
        for weight, row in zip(np.exp(log_weights(parameters)), parameters, strict=True):
            B, logits, mass, active = row[: m * m].reshape(m, m), row[m * m : -1], weight, []
            for g, group in enumerate(GROUPS):
                table, logits = np.exp(logits[: 2 ** len(group) - 1]), logits[2 ** len(group) - 1 :]
                code = sum(int(full[v]) << j for j, v in enumerate(group))
                if code:
                    active.append(g)
                    mass *= table[code - 1] / table.sum()
            L = B @ B.T
            total += mass * np.linalg.det(L[np.ix_(active, active)]) / np.linalg.det(np.eye(m) + L)
    return float(np.log(total))


@given(st.integers(0, 10**6), st.integers(1, 4), st.booleans())
@settings(max_examples=some(25), deadline=None)
def test_likelihood_is_the_definition(seed, components, gaps):
    parameters, X = parameters_of(seed, components), table_of(seed, 12, gaps)
    data = encode(X, GROUPS)
    found = log_likelihoods(data.table, parameters)[data.where]
    assert found == pytest.approx([by_definition(parameters, x) for x in X], rel=1e-9)


def test_probabilities_add_up_to_one():
    everything = np.array(list(product((0, 1), repeat=7)), np.int8)
    for seed in range(5):
        logs = log_likelihoods(encode(everything, GROUPS).table, parameters_of(seed, 3))
        assert np.exp(logs).sum() == pytest.approx(1, rel=1e-12)


@pytest.mark.parametrize("components", [1, 3])
@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("smoothed", [False, True])
def test_gradient_is_the_limit_of_differences(components, gaps, smoothed):
    parameters, data = parameters_of(3, components), encode(table_of(4, 40, gaps), GROUPS)
    prior = np.random.default_rng(5).random(CODES) if smoothed else np.zeros(CODES)
    m, leaf = len(GROUPS), data.table.leaf

    def objective(p):
        logits = np.split(p[:, m * m : -1], leaf[1:-1], axis=1)
        log_leaf = np.concatenate([z - np.log(np.exp(z).sum(axis=1, keepdims=True)) for z in logits], axis=1)
        return log_likelihoods(data.table, p)[data.where].sum() + (log_leaf * prior).sum()

    value, gradient = MixtureLikelihood(data.table, components).gradient(parameters, data.where, prior)
    assert value == pytest.approx(log_likelihoods(data.table, parameters)[data.where].sum(), rel=1e-12)
    for at in np.ndindex(*parameters.shape):
        step = np.zeros_like(parameters)
        step[at] = 1e-5
        slope = (objective(parameters + step) - objective(parameters - step)) / 2e-5
        assert gradient[at] == pytest.approx(slope, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("components", [3, 20])
def test_gradient_does_not_depend_on_threads(components):
    parameters, data = parameters_of(7, components), encode(table_of(8, 100, True), GROUPS)
    one, three = (MixtureLikelihood(data.table, components, t).gradient(parameters, data.where) for t in (1, 3))
    assert one[0] == three[0]
    assert (one[1] == three[1]).all()


def test_a_parameter_that_is_not_a_number_is_not_hidden():
    parameters, data = parameters_of(1, 5), encode(table_of(2, 20, False), GROUPS)
    parameters[2, 5] = np.nan
    assert np.isnan(MixtureLikelihood(data.table, 5).gradient(parameters, data.where)[0])


def test_counts_of_equal_rows():
    parameters, X = parameters_of(1, 2), table_of(2, 10, True)
    once, thrice = encode(X, GROUPS), encode(np.concatenate([X, X, X]), GROUPS)
    value, gradient = MixtureLikelihood(once.table, 2).gradient(parameters, once.where)
    gradient = gradient.copy()
    more, larger = MixtureLikelihood(thrice.table, 2).gradient(parameters, thrice.where)
    assert more == pytest.approx(3 * value)
    assert larger == pytest.approx(3 * gradient)


@pytest.mark.parametrize("components", [2, 5])
def test_an_impossible_row_teaches_nothing(components):
    parameters = parameters_of(1, components)
    parameters[:, :16] = 0.0  # L = 0: nothing is ever in
    data = encode(np.array([[1, 0, 0, 0, 0, 0, 0]], np.int8), GROUPS)
    assert log_likelihoods(data.table, parameters)[0] == -np.inf
    assert component_scores(data.table, parameters).tolist() == [[-np.inf]] * components
    value, gradient = MixtureLikelihood(data.table, components).gradient(parameters, data.where)
    assert value == -np.inf
    assert np.isfinite(gradient).all()


@given(st.integers(0, 10**6), st.integers(0, 20))
@settings(max_examples=some(25), deadline=None)
def test_invert(seed, n):
    factor = np.random.default_rng(seed).normal(size=(n, n + 1))
    A = factor @ factor.T + np.eye(n)
    swept = A.ravel().copy()
    assert invert(swept, n, np.empty(n)) == pytest.approx(np.linalg.slogdet(A)[1], rel=1e-12, abs=1e-12)
    assert -np.triu(swept.reshape(n, n)) == pytest.approx(np.triu(np.linalg.inv(A)), rel=1e-9, abs=1e-12)


def side_by_side(matrices: np.ndarray) -> np.ndarray:
    """Packed upper triangles of eight matrices, entry by entry, between two numbers that nobody should touch."""
    n = matrices.shape[1]
    return np.concatenate([[7.0], matrices[:, *np.triu_indices(n)].T.ravel(), [7.0]])


@given(st.integers(0, 10**6), st.integers(0, 20))
@settings(max_examples=some(25), deadline=None)
def test_invert_eight(seed, n):
    factor = np.random.default_rng(seed).normal(size=(8, n, n + 1))
    A = factor @ factor.transpose(0, 2, 1) + 0.01 * np.eye(n)
    swept, logdet = side_by_side(A), np.empty(10)
    logdet[[0, 9]] = 7.0
    invert_eight(swept, 1, n, np.empty(8 * 3 * n), logdet, 1)
    assert swept[0] == swept[-1] == logdet[0] == logdet[9] == 7.0
    assert logdet[1:9] == pytest.approx(np.linalg.slogdet(A)[1], rel=1e-9, abs=1e-9)
    inverse = side_by_side(np.linalg.inv(A))[1:-1]
    assert -swept[1:-1] == pytest.approx(inverse, rel=1e-6, abs=1e-9 * abs(inverse).max(initial=1))


def test_invert_what_is_singular_or_out_of_range():
    A = np.stack([np.eye(20)] * 8)
    A[1], A[2, 3, 3], A[4, 19, 19] = 1.0, 0.0, -1.0
    A[5] *= 1e-250
    A[6] *= 1e250
    A[7, 2, 2] = np.nan
    swept, logdet = side_by_side(A), np.empty(8)
    invert_eight(swept, 1, 20, np.empty(8 * 60), logdet, 0)
    assert logdet == pytest.approx(
        [0, -np.inf, -np.inf, 0, -np.inf, -5000 * np.log(10), 5000 * np.log(10), np.nan], nan_ok=True
    )
    lanes = swept[1:-1].reshape(-1, 8)
    assert (lanes[:, [1, 2, 4]] == 0).all()
    assert np.isfinite(lanes[:, :7]).all()


@pytest.mark.parametrize("n", [0, 1, 3, 4, 5, 17])
def test_multiply(n):
    a, b = np.random.default_rng(n).normal(size=(2, n, n))
    out = np.empty((n, n))
    multiply(a, b, out)
    assert out == pytest.approx(a @ b)


def test_a_circuit_of_many_groups_has_the_same_likelihood():
    """Circuits compute determinants by other means; more than 64 children, and rows with much and with little known."""
    rng, m = np.random.default_rng(5), 70
    groups = [[2 * g, 2 * g + 1] for g in range(m)]
    parameters = np.concatenate([rng.normal(size=(2, m * m)) / m**0.5, rng.normal(size=(2, 3 * m + 1))], axis=1)
    X = (rng.random((40, 2 * m)) < 0.05).astype(np.int8)
    X[20:][rng.random((20, 2 * m)) < np.linspace(0.05, 0.95, 20)[:, None]] = -1
    data, names = encode(X, groups), [f"x{i}" for i in range(2 * m)]
    circuit = simple_pgc_circuit([[names[i] for i in group] for group in groups], names, data.table.leaf, parameters)
    expected = log_likelihoods(data.table, parameters)[data.where]
    assert pgcc.compile(circuit).logprob(X) == pytest.approx(expected, rel=1e-11)


# -- the start ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gaps", [False, True])
def test_the_start_is_what_em_converges_to(gaps, monkeypatch):
    """With diagonal kernels, a sum of products of independent groups: EM, without smoothing, never loses likelihood."""
    monkeypatch.setattr(initialization, "_NOISE", 0.0)
    monkeypatch.setattr(initialization, "_PSEUDO_ROWS", 0.0)
    data, values = encode(table_of(1, 300, gaps), GROUPS), []
    for iterations in (1, 2, 5, 40):
        monkeypatch.setattr(initialization, "_ITERATIONS", iterations)
        parameters = initialization.start_by_em(IndependentGroups(data, len(GROUPS)), 3, np.random.default_rng(0))
        values.append(float(data.counts @ log_likelihoods(data.table, parameters)))
    assert values == sorted(values)
    assert values[-1] > values[0] + 5


def test_frequencies_of_codes():
    data = encode(np.array([[1, 1, 0], [1, 1, 0], [1, 0, 0], [0, 0, 1]], np.int8), [[0, 1], [2]])
    found = IndependentGroups(data, 2).code_frequencies()
    assert found == pytest.approx([(1 + 1 / 3) / 4, (1 / 3) / 4, (2 + 1 / 3) / 4, 1.0])


# -- equal rows ---------------------------------------------------------------------------------------------


@given(st.integers(0, 10**6), st.integers(1, 40), st.integers(1, 20), st.sampled_from([np.int8, np.int64]))
@settings(max_examples=some(50), deadline=None)
def test_distinct_rows(seed, rows, columns, kind):
    X = np.random.default_rng(seed).integers(-1, 2, (rows, columns)).astype(kind)
    X = X[np.random.default_rng(seed).integers(0, rows, 3 * rows)]
    first, number = number_rows(X)
    assert sorted(X[first].tolist()) == np.unique(X, axis=0).tolist()
    assert (np.diff(first) > 0).all()
    assert (X[first][number] == X).all()


# -- the partition ------------------------------------------------------------------------------------------


def weights_of(n: int, **pairs: float) -> np.ndarray:
    w = np.zeros((n, n))
    for name, value in pairs.items():
        w[int(name[1]), int(name[2])] = value
    return w


@pytest.mark.parametrize(
    ("weights", "most", "groups"),
    [
        (weights_of(4), 3, [[0], [1], [2], [3]]),  # no positive weight
        (weights_of(3, w01=-1.0, w12=0.0), 3, [[0], [1], [2]]),
        (weights_of(4, w01=3, w12=2, w23=1), 1, [[0], [1], [2], [3]]),
        (weights_of(4, w01=3, w12=2, w23=1), 2, [[0, 1], [2, 3]]),  # 1-2 has no room, 2-3 has
        (weights_of(4, w01=3, w23=2, w12=1), 3, [[0, 1], [2, 3]]),  # two pairs do not fit into three
        (weights_of(4, w01=3, w23=2, w12=1), 4, [[0, 1, 2, 3]]),
        (weights_of(3, w01=1, w12=1, w02=1), 2, [[0, 1], [2]]),  # of equal weights the first
        (weights_of(3, w01=3, w02=2, w12=1), 3, [[0, 1, 2]]),  # a pair within a group changes nothing
        (weights_of(5, w04=5, w13=4, w01=3, w24=2), 3, [[0, 2, 4], [1, 3]]),
        (weights_of(1), 5, [[0]]),
    ],
)
def test_partition(weights, most, groups):
    assert partition_variables(weights, most) == groups


def test_weights_are_those_of_the_paper():
    X = np.array([[1, 1, 0], [1, 1, 0], [1, 0, 0], [0, 0, 1]], np.int8)
    w = positive_dependence(count_pairs(X, np.ones(len(X))))
    assert w[0, 1] == pytest.approx(0.5 * np.log(0.5 / (0.75 * 0.5)))
    assert w[0, 2] == w[1, 2] == 0.0  # never together
    gaps = np.concatenate([X, [[-1, 1, -1], [1, -1, 1]]]).astype(np.int8)
    known = positive_dependence(count_pairs(gaps, np.ones(len(gaps))))  # from rows in which both are known
    assert known[0, 1] == pytest.approx(w[0, 1])


@given(st.integers(0, 10**6), st.integers(1, 12), st.integers(1, 5))
@settings(max_examples=some(50), deadline=None)
def test_every_partition_is_one(seed, n, most):
    w = np.random.default_rng(seed).normal(size=(n, n))
    groups = partition_variables(w, most)
    assert sorted(v for group in groups for v in group) == list(range(n))
    assert max(map(len, groups)) <= most
    assert groups == sorted(map(sorted, groups))
