"""What broke the bounds of `mode` once: assignments that were called the most probable and are not."""

import time
from fractions import Fraction

import numpy as np
import pytest

import pgcc
from pgcc.determinants.mode.climber import Climber
from pgcc.determinants.mode.region import Region
from pgcc.determinants.mode.relaxation import Dual
from pgcc.determinants.mode.trees import are_trees
from pgcc.determinants.mode.upper_bounds import find_bounds
from pgcc.ir.matrix import Matrix
from pgcc.program.det_structure import DetStructure
from pgcc.queries import mode
from pgcc.queries.mode import _Finder

LEAST = Fraction(2) ** -1074  # the least double above 0


def assert_best(model, inside):
    found = model.mode()
    assert [name for name, value in found.assignment.items() if value] == inside
    assert found.exact


@pytest.mark.parametrize(
    ("weights", "best"),
    [((1, Fraction(149, 100), 1), ["x"]), ((Fraction(141, 100), 1, Fraction(149, 100)), ["x", "y"])],
)
def test_weights_that_are_rounded_below_the_range(weights, best):
    # all of them are 2^-1074 as doubles
    x, y = pgcc.variables("x y")
    none, one, both = (w * LEAST for w in weights)
    assert_best(pgcc.compile(none + one * x + both * x * y), best)


def test_roots_that_are_rounded_below_the_range():
    roots = [[Fraction(149, 100) * LEAST, 0], [0, Fraction(141, 100) * LEAST]]
    edge = 2.0**-900
    a, b = (Fraction(2) ** -174 * v for v in pgcc.variables("a b"))
    forest = pgcc.determinant(roots, [[edge, 0], [0, edge]], [[1, -1], [-1, 1]], [a, b])
    structure = DetStructure.of(forest.root)
    assert structure.laplacian is not None
    assert not are_trees(structure)
    assert_best(pgcc.compile(forest), [])  # no edges: 1.49·1.41, and with one edge 1.49 or 1.41


def test_kernels_whose_entries_are_below_the_range():
    # L = VᵀV underflows, and was taken for 0: of items that may be in, none was
    V = [[3e-165, 1e-165, 2e-165], [1e-165, 3e-165, 1e-165]]
    items = [Fraction(10) ** 331 * v for v in pgcc.variables("a b c")]
    model = pgcc.compile(pgcc.determinant([[1, 0], [0, 1]], V, V, items))
    best = max(model.logprob([[i >> j & 1 for j in range(3)] for i in range(8)]))
    assert model.mode().bound >= best
    found = find_bounds(DetStructure.of(model.circuit.root), np.full(3, 331 * np.log(10.0)))
    region = Region(np.array([1, 1, 0], np.int8), None, np.ones(3, bool), 2)
    assert found.hadamard.bound(region) == pytest.approx(np.log(6400.0), rel=1e-9)  # (3·3 − 1·1)²·10²


def test_what_is_left_out_is_bounded_without_the_best_value():
    # the best value is that of a local search in doubles, and may be too large
    dual = Dual(0.0, np.array([1.0, -2.0]), np.zeros(2))
    region = Region(np.full(2, -1, np.int8), None, np.ones(2, bool), 2)
    narrowed, left_out = dual.decide(region, 0.5)
    assert narrowed.codes.tolist() == [1, 0]
    assert left_out == 0.0  # the set {}, beside {0} with the bound 1


def test_what_evidence_bounds_has_its_error():
    # the probability of evidence is known to rtol/2: not even that bounds what agrees with it
    model = pgcc.compile(pgcc.parse("(a + 2)**2 - a**2 - 3"), rtol=0.5)
    finder = _Finder(model._distribution())
    assert finder.above(-1.0) >= -1.0 - np.log1p(-0.25)


def test_the_mode_agrees_with_the_evidence():
    # where no item that is free can be added, one that is observed to be out was
    model = pgcc.compile(pgcc.dpp(factor=[[2.0], [0.0]], names=["a", "b"]))
    assert model.mode({"a": 0}).assignment == {"a": 0, "b": 0}
    model = pgcc.compile(pgcc.dpp(factor=[[2.0, 0.0], [0.0, 3.0], [0.0, 3.0]], names=["a", "b", "c"]))
    assert model.mode("a=0, b=1").assignment == {"a": 0, "b": 1, "c": 0}


def test_local_search_stays_in_its_region():
    # where all that it climbs to is singular in doubles, it went on from the empty set
    B = np.array([[-1.0, 1.0, -1.0, 1.0, -1.0, -1.0], [-1.0 - 1e-9, 1.0, -1.0, 1.0, -1.0 - 2e-9, -1.0 + 1e-9]]) * 1e129
    structure = DetStructure((Matrix(np.diag([6e126, 8e126])), Matrix(B), Matrix(B)))
    region = Region(np.array([-1, -1, -1, -1, -1, 1], np.int8), None, np.ones(6, bool), 2)
    climber = Climber(structure, np.zeros(6), region)
    assert climber.start_from_below()
    climber.search(time.monotonic() + 10.0)
    assert climber.best[5]


def test_pivots_that_are_singular_for_elimination_only():
    # a·d − b·c > 0 in doubles, and no second pivot is left
    a, b = 0.1, 0.3
    G = np.array([[a, b], [b, b * (b / a)]])
    structure = DetStructure((Matrix(np.eye(2)), Matrix(np.eye(2)), Matrix(G)))
    climber = Climber(structure, np.zeros(2), Region(np.full(2, -1, np.int8), None, np.ones(2, bool), 2))
    climber.G = G
    with pytest.raises(np.linalg.LinAlgError):
        np.linalg.inv(G)
    assert not climber._change([0, 1], 1.0)


ADVERSARIES = {
    "plain": lambda rng, B: {"L": B @ B.T},
    "huge": lambda rng, B: {"L": 1e290 * (B @ B.T)},
    "tiny": lambda rng, B: {"L": 1e-290 * (B @ B.T)},
    "unequal": lambda rng, B: {"L": (s := 10.0 ** rng.integers(-60, 60, len(B)))[:, None] * (B @ B.T) * s},
    "equal weights": lambda rng, B: {"L": np.eye(len(B))},
    "duplicates": lambda rng, B: {"factor": np.repeat(B[: len(B) // 2 + 1, :3], 2, axis=0)[: len(B)]},
    "singular": lambda rng, B: {"factor": B[:, :2]},
    "zeros": lambda rng, B: {"L": np.diag([0.0, *np.ones(len(B) - 1)])},
    "marginals": lambda rng, B: {"K": np.eye(len(B)) - np.linalg.inv(np.eye(len(B)) + B @ B.T)},
}


@pytest.mark.parametrize("final", [False, True])
@pytest.mark.parametrize("family", ADVERSARIES)
@pytest.mark.filterwarnings("ignore:the kernel")
def test_modes_against_all_sets(monkeypatch, family, final):
    """With evidence and sizes, possible or not, and where the probability of the evidence is never computed."""
    if final:
        monkeypatch.setattr(mode, "_MOST_BRANCHED", -1)
    monkeypatch.setattr(mode, "_MOST_LISTED", 1)
    rng = np.random.default_rng(sorted(ADVERSARIES).index(family))
    n = 5
    everything = np.array([[i >> j & 1 for j in range(n)] for i in range(1 << n)], np.int8)
    model = pgcc.compile(pgcc.dpp(**ADVERSARIES[family](rng, rng.normal(size=(n, n)))))
    logs = model.logprob(everything)
    for size in (None, 0, 1, 3, n):
        counted = np.ones(len(everything), bool) if size is None else everything.sum(axis=1) == size
        for codes in ([-1] * n, [1] + [-1] * (n - 1), [0, 1] + [-1] * (n - 2), [1, 1, 0, -1, -1], [1] * n):
            agree = counted & ((np.array(codes) < 0) | (everything == codes)).all(axis=1)
            if not (counted & (logs > -np.inf)).any() or not (agree & (logs > -np.inf)).any():
                with pytest.raises(pgcc.errors.SemanticsError):
                    model.mode(codes, size=size)
                with pytest.raises(pgcc.errors.SemanticsError):
                    model.top(2, codes, size=size)
                continue
            given = model if size is None else model.condition(size=size)
            best = given.logprob(everything[agree]).max()
            found, listed = model.mode(codes, size=size), model.top(3, codes, size=size)
            assert found.bound >= best - found.tolerance
            row = np.array(list(found.assignment.values()))
            assert agree[(everything == row).all(axis=1)].all()
            assert found.logprob == pytest.approx(given.logprob(row), rel=1e-9, abs=1e-9)
            if found.exact:
                assert found.logprob >= best - 2.0 * found.tolerance
            assert max(one.bound for one in listed) >= best - found.tolerance
            assert len({tuple(one.assignment.values()) for one in listed}) == len(listed) <= 3
