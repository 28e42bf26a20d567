"""The largest coefficient of a determinant: bounds on all sets of a region, and exchanges of items."""

import math
from itertools import combinations, product

import numpy as np
import pytest
from how_many import some
from hypothesis import example, given, settings
from hypothesis import strategies as st

import pgcc
from pgcc.determinants.mode.climber import exchanges, log_coefficient
from pgcc.determinants.mode.region import Region
from pgcc.determinants.mode.trees import heaviest_arcs
from pgcc.determinants.mode.upper_bounds import find_bounds
from pgcc.program.det_structure import DetStructure


def kernel(rng, n):
    B = rng.standard_normal((n, n)) * rng.uniform(0.3, 1.5)
    return B @ B.T


def all_rows(n):
    return np.array(list(product((0, 1), repeat=n)), np.int8)


FAMILIES = {
    "L": lambda rng: pgcc.dpp(L=kernel(rng, 7)),
    "factor": lambda rng: pgcc.dpp(factor=rng.standard_normal((7, 3))),
    "K": lambda rng: pgcc.dpp(K=np.linalg.solve(np.eye(6) + (L := kernel(rng, 6)), L), symmetric=False),
    "nonsymmetric": lambda rng: pgcc.dpp(L=kernel(rng, 6) + (A := rng.standard_normal((6, 6))) - A.T, symmetric=False),
    "projection": lambda rng: pgcc.dpp(K=(Q := np.linalg.qr(rng.standard_normal((6, 3)))[0]) @ Q.T, rank=3),
}


@settings(max_examples=some(15), deadline=None)
@given(st.integers(0, 2**32 - 1), st.booleans(), st.sampled_from(list(FAMILIES)))
@example(366541, False, "factor")
def test_bounds_of_regions(seed, sized, family):
    """Every bound is one for all sets of a region, at any point: that it is near the best is no part of the proof."""
    rng = np.random.default_rng(seed)
    structure = DetStructure.of(FAMILIES[family](rng).root)
    n = structure.children
    weight, counted = rng.standard_normal(n), rng.random(n) < 0.8
    codes = rng.choice([-1, -1, -1, 0, 1], n).astype(np.int8)
    ins, room = int((codes[counted] == 1).sum()), int((codes[counted] < 0).sum())
    region = Region(codes, int(ins + rng.integers(0, room + 1)) if sized else None, counted, structure.rank)
    sets = [row == 1 for row in all_rows(n) if ((codes < 0) | (row == codes)).all()]
    sets = [one for one in sets if region.size is None or int(one[counted].sum()) == region.size]
    sets = [one for one in sets if one.sum() <= structure.rank]  # the others are impossible, but for rounding errors
    logs = [log_coefficient(structure, one) + weight[one].sum() for one in sets]
    bounds = find_bounds(structure, weight)
    assert bounds.relaxation is not None
    dual = bounds.relaxation.at(region.project(rng.random(n)), rng.standard_normal(n))
    best = max(logs, default=-math.inf)
    assert dual is None or dual.bound(region) >= best - 1e-9
    if bounds.hadamard is not None:
        assert bounds.hadamard.bound(region) >= best - 1e-9
    narrowed = dual and dual.decide(region, best)[0]
    assert (
        not dual
        or not sets
        or any(
            log >= best - 1e-9 and ((narrowed.codes < 0) | (one == narrowed.codes)).all()
            for one, log in zip(sets, logs, strict=True)
        )
    )


def test_exchanges_are_quotients_of_coefficients():
    rng = np.random.default_rng(0)
    structure = DetStructure.of(
        pgcc.dpp(L=kernel(rng, 6) + (A := rng.standard_normal((6, 6))) - A.T, symmetric=False).root
    )
    inside = np.array([1, 0, 1, 0, 0, 0], bool)
    G, log = exchanges(structure, inside)
    for size in (1, 2, 3):
        for items in map(list, combinations(range(6), size)):
            other = inside.copy()
            other[items] ^= True
            ratio = math.exp(log_coefficient(structure, other) - log)
            assert np.linalg.det(G[np.ix_(items, items)]) == pytest.approx(ratio, rel=1e-9)


@pytest.mark.parametrize("more", [0, 1 << 80])  # beside it, a double would lose the weights themselves
@pytest.mark.parametrize("seed", range(20))
def test_arcs_against_all(seed, more):
    rng = np.random.default_rng(seed)
    arcs = [
        (a, b, more + int(rng.integers(0, 6)), i)
        for i, (a, b) in enumerate(product(range(4), range(5)))
        if rng.random() < 0.6
    ]
    best = None
    for chosen in product(*([arc for arc in arcs if arc[0] == node and arc[1] != node] for node in range(4))):
        heads = {arc[0]: arc[1] for arc in chosen}
        if all(leads(heads, node) for node in heads):
            best = max(best or -1, sum(arc[2] for arc in chosen))
    found = heaviest_arcs(4, arcs)
    assert (found is None) == (best is None)
    if found is not None:
        assert sum(arc[2] for arc in arcs if arc[3] in found) == best


def leads(heads, node):
    for _ in range(5):
        if node == 4:
            return True
        node = heads[node]
    return node == 4
