"""Circuits written to `.nnf`, `.psdd` and `.uai` and read again: the same polynomial. Others are refused."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from any_circuits import at_points
from real_data import DATA

import pgcc
from pgcc.errors import FormatError
from pgcc.formats import vtree

CIRCUITS = DATA / "circuits"
needs_data = pytest.mark.skipif(not CIRCUITS.is_dir(), reason=f"the circuits made by others are not at {CIRCUITS}")


def again(circuit, path):
    pgcc.save(circuit, path)
    return pgcc.load(path)


# -- .nnf: exact ----------------------------------------------------------------------------------

LOGIC = [
    "x1*x2 + x1 + x2",  # or: a variable that a term does not mention is out
    "x1*(x2 + ~x2) + ~x1*x2",
    "x1*(x2*x3 + ~x2*~x3) + ~x1*(x2*~x3 + ~x2*x3)",
    "x1*x2*x3",
    "1*x1",
    "x1*0 + x2",
]


@pytest.mark.parametrize("text", LOGIC)
def test_logic_there_and_back(tmp_path, text):
    g = pgcc.parse(text)
    g = pgcc.Circuit(g.root, sorted(g.variables))
    found = again(g, tmp_path / "logic.nnf")
    assert found.variables == g.variables
    assert at_points(found) == at_points(g)


def test_a_variable_that_is_never_in(tmp_path):
    g = pgcc.Circuit(pgcc.parse("x1").root, ["x1", "x2", "x3"])
    found = again(g, tmp_path / "logic.nnf")
    assert at_points(found) == at_points(g)


@needs_data
def test_the_logic_of_others(tmp_path):
    g = pgcc.load(CIRCUITS / "random.sdd")
    found = again(g, tmp_path / "random.nnf")
    assert found.variables == g.variables
    rows = np.random.default_rng(0).integers(-1, 2, (20, len(g.variables)))
    rows[0] = -1
    counts = [pgcc.compile(one, normalize=False).prob(rows) for one in (g, found)]
    np.testing.assert_allclose(*counts, rtol=1e-12)
    assert counts[0][0] > 0  # models


# -- .psdd: weights become logarithms ------------------------------------------------------------------------

DISTRIBUTIONS = [
    "0.3*x1 + 0.7",
    "x1",
    "(0.25*x1 + 0.75)*(0.5*x2 + 0.5)",
    "0.4*x1*(0.9*x2 + 0.1) + 0.6*(0.2*x2 + 0.8)",
    "x1*(0.2*x2 + 0.1) + 7/10",  # weights that add up to 1 only in all
    "0.5*x1*(0.5*x2*x3 + 0.5*(0.25*x3 + 0.75)) + 0.5*~x1*(0.125*x2*~x3 + 0.875*~x2*x3)",
    "0.5*(0.5*x1*x2 + 0.5*~x1*~x2)*(0.5*x3*x4 + 0.5*~x3*~x4)"
    " + 0.5*(0.5*x1*~x2 + 0.5*~x1*x2)*(0.75*x3*x4 + 0.25*~x3*~x4)",
    "0.5*x1*x2*x3 + 0.25*x1*~x2*x3 + 0.25*~x1*~x2*~x3",
]


@pytest.mark.parametrize("text", DISTRIBUTIONS)
def test_distributions_there_and_back(tmp_path, text):
    g = pgcc.parse(text)
    found = again(g, tmp_path / "some.psdd")
    assert found.variables == g.variables
    n = len(g.variables)
    rows = np.stack(np.meshgrid(*[[-1, 0, 1]] * n), -1).reshape(-1, n)
    ours, theirs = (pgcc.compile(one, normalize=False).prob(rows) for one in (g, found))
    np.testing.assert_allclose(theirs, ours, rtol=1e-14)
    assert set(vtree.read(tmp_path / "some.vtree").variable.values()) == set(range(1, n + 1))


def test_small_probabilities_keep_their_digits(tmp_path):
    for p, rare in ((1 - Fraction("1e-20"), 0), (Fraction("1e-20"), 1)):
        found = again(pgcc.pc.bernoulli("x1", p).to_pgc(), tmp_path / "rare.psdd")
        assert pgcc.compile(found).prob({"x1": rare}) == pytest.approx(1e-20, rel=1e-14)


@needs_data
@pytest.mark.parametrize("name", ["little_4var", "nltcs.clt", "nltcs", "asia.uai"])
def test_the_psdds_of_others(tmp_path, name):
    g = pgcc.load(CIRCUITS / f"{name}.psdd")
    found = again(g, tmp_path / "copy.psdd")
    assert found.variables == g.variables
    rows = np.random.default_rng(0).integers(-1, 2, (20, len(g.variables)))
    ours, theirs = (pgcc.compile(one, normalize=False).logprob(rows) for one in (g, found))
    np.testing.assert_allclose(theirs, ours, rtol=0, atol=1e-12)


def test_a_mixture_in_a_psdd(tmp_path):
    """It is read, since no answer depends on it; it is not written, since it is no PSDD."""
    path = tmp_path / "mixture.psdd"
    path.write_text(
        "psdd 5\nT 0 0 1 -0.1\nT 1 2 2 -0.1\nT 2 0 1 -0.7\nT 3 2 2 -0.7\nD 4 1 2 0 1 -1.203973 2 3 -0.356675\n"
    )
    with pytest.raises(FormatError, match="the elements of a decision exclude one another in a PSDD"):
        pgcc.save(pgcc.load(path), tmp_path / "copy.psdd")


# -- what is refused, and why --------------------------------------------------------------------------------

REFUSED = {
    ("names", ".nnf"): ("a*b", r"an NNF numbers its variables, .* and this circuit has 'a': Circuit.relabel"),
    ("order", ".psdd"): ("x2/2 + x1/2", "a PSDD numbers its variables, .* and this circuit has 'x2'"),
    ("det", ".psdd"): ("det([[1]], [[1]], [[1]], [x1])", "a PSDD has sums and products only, .* a determinant"),
    ("shared", ".nnf"): ("(x1 + x2)*(x1 + 1)", r"an NNF is decomposable, and two factors of .* share 'x1'"),
    ("weights", ".nnf"): ("0.5*x1 + 0.5", "an NNF has no weights, and .* has some that are not 1"),
    ("together", ".nnf"): ("x1*(x2 + ~x2) + x2*(x1 + ~x1)", "exclude one another in an NNF, and two of .* can be true"),
    ("number", ".nnf"): ("3*x1", "an NNF has no weights"),
    ("signs", ".psdd"): ("(x1 + 1)*(x2 + 1)/2 - x1*x2", "a PSDD has no negative weights"),
    ("total", ".psdd"): ("3*x1 + 1", r"a PSDD is normalized, and the total of this circuit is 4: circuit\.normalize"),
    ("mixture", ".psdd"): (
        "0.5*(0.1*x1 + 0.9)*(0.2*x2 + 0.8) + 0.5*(0.3*x1 + 0.7)*(0.4*x2 + 0.6)",
        "the elements of a decision exclude one another in a PSDD, and .* can both be positive",
    ),
    ("vtrees", ".psdd"): (
        "0.5*x1*(0.5*x2*x3 + 0.5*~x2*~x3) + 0.5*(0.5*~x1*x2 + 0.5*x1*~x2)*~x3",
        "the products of a PSDD follow one vtree, and .* splits its variables unlike",
    ),
    ("nothing", ".psdd"): ("1", "a PSDD has at least one variable"),
}


@pytest.mark.parametrize("case", REFUSED, ids=" ".join)
def test_refused(tmp_path, case):
    (_, extension), (text, message) = case, REFUSED[case]
    path = tmp_path / f"some{extension}"
    with pytest.raises(FormatError, match=message):
        pgcc.save(pgcc.parse(text), path)
    assert not path.exists()


def test_deep_circuits(tmp_path):
    """A chain of hundreds: nothing recurses."""
    chain = pgcc.builders.chow_liu([None, *range(299)], [0.5, *[[0.25, 0.75]] * 299], [f"x{i}" for i in range(1, 301)])
    found = again(chain, tmp_path / "chain.psdd")
    rows = np.random.default_rng(0).integers(0, 2, (3, 300))
    np.testing.assert_allclose(pgcc.compile(found).logprob(rows), pgcc.compile(chain).logprob(rows), rtol=1e-12)
    assert math.isclose(pgcc.compile(found, normalize=False).prob({}), 1.0, rel_tol=1e-9)


# -- .uai: tables of the factors --------------------------------------------------------------------------------

NETWORKS = [
    *DISTRIBUTIONS,
    "0.1*(x1 + 1)*(6*x2 + 1) - 0.4*x1*x2",  # weights may be negative, coefficients may not
    "3*(x1 + 2)*(x2*x4 + 5)/7*(x3 + 1)",  # not normalized
    "x1*x2*x3",
]


@pytest.mark.parametrize("text", NETWORKS)
def test_networks_there_and_back(tmp_path, text):
    g = pgcc.parse(text)
    g = pgcc.Circuit(g.root, sorted(g.variables))
    found = again(g, tmp_path / "some.uai")
    assert found.variables == g.variables
    n = len(g.variables)
    rows = np.stack(np.meshgrid(*[[-1, 0, 1]] * n), -1).reshape(-1, n)
    ours, theirs = (pgcc.compile(one, normalize=False).prob(rows) for one in (g, found))
    np.testing.assert_allclose(theirs, ours, rtol=1e-14)


def test_every_factor_has_a_table_of_its_own(tmp_path):
    path = tmp_path / "some.uai"
    pgcc.save(pgcc.parse("(0.4*x1*x2 + 0.3*x1 + 0.3)*(0.25*x3 + 0.75)"), path)
    assert path.read_text().split("\n") == [
        "MARKOV", "3", "2 2 2", "2", "2 0 1", "1 2", "4 0.3 0.0 0.3 0.4", "2 0.75 0.25", "",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("circuit", "message"),
    [
        (pgcc.parse("1.5*x1 - 0.5"), "no negative entries"),
        (pgcc.parse("1"), "at least one variable"),
        (pgcc.parse("0.5*rain + 0.5"), "numbers its variables"),
        (pgcc.dpp(L=[[1, 0.5], [0.5, 1]]), "has a determinant"),
        (pgcc.parse("(x1 + 1)*(x1 + x2)"), "share 'x1'"),
        (pgcc.parse("1e-400*x1 + 1"), "beyond their range"),
        (pgcc.builders.hmm([0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], [0.1, 0.7], length=17), "17: .pgc and .npz keep it"),
    ],
)
def test_what_is_no_network(tmp_path, circuit, message):
    with pytest.raises(FormatError, match=message):
        pgcc.save(circuit, tmp_path / "some.uai")
    assert not (tmp_path / "some.uai").exists()
