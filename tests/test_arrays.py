"""Arrays of other libraries wherever arrays go: tensors, sparse matrices, DataFrames, DLPack."""

from __future__ import annotations

import networkx
import numpy as np
import pandas as pd
import pytest

import pgcc
from pgcc.arrays import MOST_ENTRIES, as_array
from pgcc.errors import CircuitError, EvidenceError
from pgcc.learn import SimplePGC

L = np.array([[1.0, 0.5, 0.0], [0.5, 2.0, 0.25], [0.0, 0.25, 3.0]])
ROWS = np.array([[1, 0, 1], [0, 0, 0], [1, 1, 0]])


class Exchanged:
    """An array that speaks DLPack, and nothing else."""

    def __init__(self, array: np.ndarray):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class Wrapped:
    """An array with `__array__`."""

    def __init__(self, array: np.ndarray):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return self.array


def tensor(array):
    return pytest.importorskip("torch", reason="torch is not installed").from_numpy(array)


def sparse(array):
    return pytest.importorskip("scipy.sparse", reason="scipy is not installed").csr_array(array)


def sparse_tensor(array):
    return tensor(array).to_sparse()


def compressed_tensor(array):
    return tensor(array).to_sparse_csr()


HOLDERS = [np.asarray, pd.DataFrame, Wrapped, Exchanged, tensor, sparse, sparse_tensor, compressed_tensor]
everywhere = pytest.mark.parametrize("hold", HOLDERS, ids=lambda hold: hold.__name__)
pytestmark = pytest.mark.filterwarnings("ignore:Sparse CSR tensor support")


@everywhere
def test_one_place_reads_them_all(hold):
    found = as_array(hold(L), "L")
    assert type(found) is np.ndarray
    np.testing.assert_array_equal(found, L)


@everywhere
@pytest.mark.parametrize("form", ["L", "K", "factor"])
def test_kernels(hold, form):
    matrix = L / 4 if form == "K" else L
    assert pgcc.dpp(**{form: hold(matrix)}, names=list("abc")) == pgcc.dpp(**{form: matrix}, names=list("abc"))


@everywhere
def test_determinants(hold):
    M0, U = np.eye(3), 2.0 * np.eye(3)
    made = pgcc.determinant(hold(M0), hold(U), hold(L), ["a", "b", "c"])
    assert made == pgcc.determinant(M0, U, L, ["a", "b", "c"])
    groups = [pgcc.parse("a"), pgcc.parse("b"), pgcc.parse("c/2 + d/2")]
    assert pgcc.det_pgc(hold(L), groups) == pgcc.det_pgc(L, groups)


@everywhere
def test_evidence_and_data(hold):
    model = pgcc.compile(pgcc.dpp(L, names=["0", "1", "2"]))
    given = hold(ROWS)
    if isinstance(given, pd.DataFrame):
        given.columns = model.variables
    np.testing.assert_array_equal(model.logprob(given), model.logprob(ROWS))
    np.testing.assert_array_equal(model.marginals(given), model.marginals(ROWS))


@pytest.mark.parametrize("hold", [tensor, sparse])
def test_learning(hold):
    X = np.random.default_rng(0).integers(0, 2, (40, 3))
    settings = {"max_group": 2, "n_components": 1}
    assert SimplePGC(**settings).fit(hold(X)).score(hold(X)) == SimplePGC(**settings).fit(X).score(X)


def test_sparse_evidence_is_made_dense_in_chunks():
    """Rows of many variables: the dense table would be a thousand times larger."""
    many = sparse(np.eye(3, dtype=np.int64)[np.arange(5000) % 3])
    model = pgcc.compile(pgcc.dpp(L))
    single = model.prob(np.eye(3, dtype=int))
    np.testing.assert_allclose(model.prob(many), single[np.arange(5000) % 3], rtol=1e-12)
    with pytest.raises(EvidenceError, match=r"evidence of shape \(2, 2\) does not fit"):
        model.prob(sparse(np.eye(2)))
    with pytest.raises(EvidenceError, match=r"row 0, variable 'x1' is 2"):
        model.prob(sparse(2 * np.eye(3)))


@everywhere
def test_builders(hold):
    transition, emission = np.array([[0.75, 0.25], [0.5, 0.5]]), np.array([0.5, 0.25])
    made = pgcc.builders.hmm([0.5, 0.5], hold(transition), emission, 3)
    assert made == pgcc.builders.hmm([0.5, 0.5], transition, emission, 3)


def test_numbers_in_tensors():
    weights = tensor(np.array([0.25, 0.75]))
    parts = [pgcc.parse("a"), pgcc.parse("b")]
    assert pgcc.mixture(weights, parts) == pgcc.mixture([0.25, 0.75], parts)
    made = pgcc.builders.naive_bayes(weights, tensor(np.array([[0.5], [0.25]])))
    assert made == pgcc.builders.naive_bayes([0.25, 0.75], [[0.5], [0.25]])


def test_tensors_that_carry_gradients_are_refused():
    kernel = tensor(L).requires_grad_()
    with pytest.raises(CircuitError, match=r"L is a tensor that requires gradients.*pgcc\.torch"):
        pgcc.dpp(L=kernel)
    with pytest.raises(EvidenceError, match="the evidence is a tensor that requires gradients"):
        pgcc.compile(pgcc.dpp(L)).prob(kernel)
    assert pgcc.dpp(L=kernel.detach()) == pgcc.dpp(L=L)
    import torch

    with pytest.raises(CircuitError, match=r"L, of type Tensor, has no numpy array: .*BFloat16"):
        pgcc.dpp(L=tensor(L).to(torch.bfloat16))


def test_sparse_kernels_that_do_not_fit():
    pytest.importorskip("scipy.sparse", reason="scipy is not installed")
    import scipy.sparse

    n = MOST_ENTRIES  # as many rows as a dense matrix may have entries
    with pytest.raises(CircuitError, match="would be a dense matrix of 67,108,864×67,108,864 entries"):
        pgcc.dpp(L=scipy.sparse.coo_array((n, n)))


def test_vectors_are_no_matrices():
    with pytest.raises(CircuitError, match="U has to be a matrix: it has 1 dimension, not 2"):
        pgcc.determinant(np.eye(1), np.ones(1), np.eye(1), ["a"])


# -- adjacency matrices --------------------------------------------------------------------------------------

WEIGHTS = np.array([[0.0, 2.0, 1.0], [2.0, 0.0, 3.0], [1.0, 3.0, 0.0]])


@everywhere
def test_graphs_by_adjacency(hold):
    by_graph = networkx.from_numpy_array(WEIGHTS)
    assert pgcc.spanning_tree(hold(WEIGHTS)) == pgcc.spanning_tree(by_graph)
    assert pgcc.spanning_forest(hold(WEIGHTS), killing=0.5) == pgcc.spanning_forest(by_graph, killing=0.5)
    directed = np.triu(WEIGHTS)
    directed[2, 1] = 0.5
    expected = pgcc.arborescence(networkx.from_numpy_array(directed, create_using=networkx.DiGraph), 0)
    assert pgcc.arborescence(hold(directed), 0) == expected


def test_whole_numbers_stay_exact():
    tree = pgcc.spanning_tree(WEIGHTS.astype(int))
    assert pgcc.compile(tree).prob({"0-1": 1}, exact=True).denominator == 11
    assert pgcc.spanning_tree(WEIGHTS > 0) == pgcc.spanning_tree(networkx.complete_graph(3))
    assert pgcc.spanning_tree(WEIGHTS, weight=None) == pgcc.spanning_tree(networkx.complete_graph(3))


def test_a_frame_names_the_nodes():
    towns = ["ayr", "bray", "cork"]
    frame = pd.DataFrame(WEIGHTS, index=towns, columns=towns)
    assert pgcc.spanning_tree(frame).variables == ("ayr-bray", "ayr-cork", "bray-cork")
    frame.index = pd.Index(["ayr", "cork", "bray"])
    with pytest.raises(CircuitError, match="row 1 of the adjacency matrix is called 'cork', but column 1 is 'bray'"):
        pgcc.spanning_tree(frame)


def test_matrices_that_are_no_graph():
    with pytest.raises(CircuitError, match=r"not the shape \(2, 3\); edges are given as tuples"):
        pgcc.spanning_tree(WEIGHTS[:2])
    with pytest.raises(CircuitError, match=r"the edge from 0 to 1 has the weight 2\.0, and the one back 0"):
        pgcc.spanning_tree(np.triu(WEIGHTS))
    with pytest.warns(UserWarning, match="self-loops are in no tree and are ignored: 0-0"):
        assert len(pgcc.spanning_tree(WEIGHTS + np.diag([1, 0, 0])).variables) == 3
    with pytest.raises(CircuitError, match="the weight of edge '0-1' is negative"):
        pgcc.spanning_tree(-WEIGHTS)


# -- polars: columns have names, rows have no labels --------------------------------------------------------------


def test_columns_of_polars_are_read_by_name():
    pl = pytest.importorskip("polars")
    model = pgcc.compile(pgcc.parse("0.3*a*b + 0.5*a + 0.2*b"))
    frame = pl.DataFrame({"b": [1, 0, None], "a": [0, 1, 1]})
    assert model.variables == ("a", "b")
    np.testing.assert_allclose(model.prob(frame), [0.2, 0.5, 0.8], rtol=1e-12)
    np.testing.assert_allclose(model.prob(frame.select("a")), [0.2, 0.8, 0.8], rtol=1e-12)
    np.testing.assert_allclose(model.prob(frame.with_columns(pl.all() == 1)), [0.2, 0.5, 0.8], rtol=1e-12)
    assert model.marginals(frame).shape == (3, 2)
    with pytest.raises(EvidenceError, match="column 'c' of the table is not a variable"):
        model.prob(pl.DataFrame({"c": [1]}))
    with pytest.raises(EvidenceError, match="row 1, variable 'a' is 'yes'"):
        model.prob(pl.DataFrame({"a": [None, "yes"]}))


def test_kernels_and_graphs_of_polars():
    pl = pytest.importorskip("polars")
    kernel = pl.DataFrame({"tea": [2.0, 0.5], "milk": [0.5, 1.0]})
    assert pgcc.dpp(L=kernel).variables == ("tea", "milk")
    assert pgcc.dpp(factor=kernel).variables == ("x1", "x2")
    assert pgcc.spanning_tree(pl.DataFrame({"ayr": [0, 1], "bray": [1, 0]})).variables == ("ayr-bray",)
