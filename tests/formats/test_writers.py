"""Circuits written to `.nnf`, `.sdd`, `.psdd` and `.uai` and read again: the same polynomial. Others are refused."""

from __future__ import annotations

import math
from collections import Counter
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


# -- .nnf and .sdd: exact ----------------------------------------------------------------------------------

LOGIC = [
    "x1*x2 + x1 + x2",  # or: a variable that a term does not mention is out
    "x1*(x2 + ~x2) + ~x1*x2",
    "x1*(x2*x3 + ~x2*~x3) + ~x1*(x2*~x3 + ~x2*x3)",
    "x1*x2*x3",
    "1*x1",
    "x1*0 + x2",
]


@pytest.mark.parametrize("extension", [".nnf", ".sdd"])
@pytest.mark.parametrize("text", LOGIC)
def test_logic_there_and_back(tmp_path, text, extension):
    g = pgcc.parse(text)
    g = pgcc.Circuit(g.root, sorted(g.variables))
    found = again(g, tmp_path / f"logic{extension}")
    assert found.variables == g.variables
    assert at_points(found) == at_points(g)


@pytest.mark.parametrize("extension", [".nnf", ".sdd"])
def test_a_variable_that_is_never_in(tmp_path, extension):
    g = pgcc.Circuit(pgcc.parse("x1").root, ["x1", "x2", "x3"])
    found = again(g, tmp_path / f"logic{extension}")
    assert at_points(found) == at_points(g)


@needs_data
@pytest.mark.parametrize("extension", [".nnf", ".sdd"])
def test_the_logic_of_others(tmp_path, extension):
    g = pgcc.load(CIRCUITS / "random.sdd")
    found = again(g, tmp_path / f"random{extension}")
    assert found.variables == g.variables
    rows = np.random.default_rng(0).integers(-1, 2, (20, len(g.variables)))
    rows[0] = -1
    counts = [pgcc.compile(one, normalize=False).prob(rows) for one in (g, found)]
    np.testing.assert_allclose(*counts, rtol=1e-12)
    assert counts[0][0] > 0  # models


@needs_data
def test_the_sdd_of_others_is_canonical(tmp_path):
    """libsdd writes compressed, trimmed SDDs as well: there are as many nodes of each kind."""
    theirs, ours = CIRCUITS / "random.sdd", tmp_path / "random.sdd"
    pgcc.save(pgcc.load(theirs), ours)
    kinds = [Counter(line[0] for line in path.read_text().splitlines() if line[0] in "TFLD") for path in (theirs, ours)]
    assert kinds[0] == kinds[1]


def truth_table(lines, n):
    """(the literals and decisions of an SDD file by id, as sets of assignments; the primes of every decision)"""
    everything = frozenset(range(1 << n))
    value, decisions = {}, []
    for kind, key, *rest in (line.split() for line in lines):
        if kind in "TF":
            value[key] = everything if kind == "T" else frozenset()
        elif kind == "L":
            literal = int(rest[1])
            value[key] = frozenset(a for a in everything if (a >> (abs(literal) - 1) & 1) == (literal > 0))
        else:
            primes, subs = [value[p] for p in rest[2::2]], [value[s] for s in rest[3::2]]
            value[key] = frozenset().union(*(p & s for p, s in zip(primes, subs, strict=True)))
            decisions.append((primes, subs))
    return value[key], decisions


@pytest.mark.parametrize("seed", range(60))
def test_random_logic_as_an_sdd(tmp_path, seed):
    """Against truth tables: the function; primes that are a partition; subs that differ."""
    rng, n = np.random.default_rng(seed), 5

    def vtree_over(variables):
        if len(variables) == 1:
            return int(variables[0])
        k = int(rng.integers(1, len(variables)))
        return vtree_over(variables[:k]), vtree_over(variables[k:])

    def logic(tree):
        """A random function and its negation: either a product, or a decision by a function and its negation."""
        if isinstance(tree, int):
            both = [f"x{tree}", f"~x{tree}"]
            rng.shuffle(both)
            return both if rng.random() < 0.8 else [f"(x{tree} + ~x{tree})", f"0*x{tree}"]
        (p, q), (s, t), (u, v) = logic(tree[0]), logic(tree[1]), logic(tree[1])
        return [f"({p}*{s} + {q}*{u})", f"({p}*{t} + {q}*{v})"]

    g = pgcc.parse(logic(vtree_over(rng.permutation(n) + 1))[0])
    g = pgcc.Circuit(g.root, [f"x{i}" for i in range(1, n + 1)])
    found = again(g, tmp_path / "some.sdd")
    assert at_points(found) == at_points(g)
    models, decisions = truth_table((tmp_path / "some.sdd").read_text().splitlines()[1:], n)
    assert pgcc.compile(g, normalize=False).prob({}, exact=True) == len(models)
    for primes, subs in decisions:
        assert sum(map(len, primes)) == len(frozenset().union(*primes)) == 1 << n
        assert all(primes)
        assert len(set(subs)) == len(subs)


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
@pytest.mark.parametrize("name", ["little_4var", "nltcs.clt", "asia.uai"])
def test_the_psdds_of_others(tmp_path, name):
    g = pgcc.load(CIRCUITS / f"{name}.psdd")
    found = again(g, tmp_path / "copy.psdd")
    assert found.variables == g.variables
    rows = np.random.default_rng(0).integers(-1, 2, (20, len(g.variables)))
    ours, theirs = (pgcc.compile(one, normalize=False).logprob(rows) for one in (g, found))
    np.testing.assert_allclose(theirs, ours, rtol=0, atol=1e-12)


@needs_data
def test_a_mixture_in_a_psdd_of_others(tmp_path):
    """It is read, since no answer depends on it; it is not written, since it is no PSDD."""
    with pytest.raises(FormatError, match="the elements of a decision exclude one another in a PSDD"):
        pgcc.save(pgcc.load(CIRCUITS / "nltcs.psdd"), tmp_path / "copy.psdd")


# -- what is refused, and why --------------------------------------------------------------------------------

REFUSED = {
    ("names", ".nnf"): ("a*b", r"an NNF numbers its variables, .* and this circuit has 'a': circuit\.relabel"),
    ("order", ".psdd"): ("x2/2 + x1/2", "a PSDD numbers its variables, .* and this circuit has 'x2'"),
    ("det", ".psdd"): ("det([[1]], [[1]], [[1]], [x1])", "a PSDD has sums and products only, .* a determinant"),
    ("shared", ".nnf"): ("(x1 + x2)*(x1 + 1)", r"an NNF is decomposable, and two factors of .* share 'x1'"),
    ("weights", ".nnf"): ("0.5*x1 + 0.5", "an NNF has no weights, and .* has some that are not 1"),
    ("order", ".sdd"): ("x2 + x1", "an SDD numbers its variables, .* and this circuit has 'x2'"),
    ("det", ".sdd"): ("det([[1]], [[1]], [[1]], [x1])", "an SDD has sums and products only, .* a determinant"),
    ("weights", ".sdd"): ("0.5*x1 + 0.5", "an SDD has no weights, and .* has some that are not 1"),
    ("together", ".sdd"): ("x1*(x2 + ~x2) + x2*(x1 + ~x1)", "exclude one another in an SDD, and two of .* can be true"),
    ("vtrees", ".sdd"): (
        "x1*(x2*x3 + ~x2*~x3) + (x1*x2 + ~x1*~x2)*x3*0 + ~x1*(x2 + ~x2)*(x3 + ~x3)",
        "the products of an SDD follow one vtree, and those of this circuit divide x1, x2, x3 in ways that exclude",
    ),
    ("nothing", ".sdd"): ("1", "an SDD has at least one variable"),
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


def test_a_deep_sdd(tmp_path):
    """Equivalences x1 = x2 = … = x400: the vtree is as deep as it is long."""
    n = 400
    chain = pgcc.parse(" + ".join(["*".join(f"x{i}" for i in range(1, n + 1)), "1"]))
    chain = pgcc.Circuit(chain.root, [f"x{i}" for i in range(1, n + 1)])
    found = again(chain, tmp_path / "chain.sdd")
    assert pgcc.compile(found, normalize=False).prob({}, exact=True) == 2
    assert pgcc.compile(found, normalize=False).prob({"x7": 1, "x300": 0}) == 0.0


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
