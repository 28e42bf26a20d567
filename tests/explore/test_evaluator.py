"""The page's evaluator under Node, beside exact fractions: every number is within the bound that it carries."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import pgcc
from pgcc.compiler import Compiled
from pgcc.explore import contents
from pgcc.explore.packing import pack
from pgcc.ir.circuit import Circuit
from pgcc.ir.node import det
from pgcc.testing import random_circuit, random_det

NODE = shutil.which("node") or shutil.which("nodejs")
pytestmark = pytest.mark.skipif(NODE is None, reason="there is no Node here: the evaluator is tried in a browser only")
WEB = Path(contents.__file__).parent / "web"


def answers_of(circuits: list[Circuit], rows: list[np.ndarray], folder: Path) -> list[dict]:
    """What the page finds for the rows of evidence of every circuit, one after another."""
    queries = []
    for circuit, codes in zip(circuits, rows, strict=True):
        compiled = Compiled(circuit, validate=False)
        program = contents.page_program(compiled)
        queries.append(
            {
                "about": contents.described(compiled, program),
                "packed": pack(contents.program_arrays(program) | contents.state_arrays(compiled)),
                "rows": np.where(codes < 0, 2, codes).tolist(),
            }
        )
    (folder / "package.json").write_text('{"type": "module"}')
    (folder / "queries.json").write_text(json.dumps(queries))
    shutil.copytree(WEB, folder / "web")  # modules by the word of the package.json beside them
    command = [NODE, Path(__file__).with_name("evaluate.mjs"), folder / "web", folder / "queries.json"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def number(scaled: dict) -> tuple[Fraction, Fraction | float]:
    """A scaled number and its bound."""
    unit = Fraction(2) ** (64 * scaled["e"])
    if scaled["x"] is None:  # infinity: nothing is known
        return Fraction(scaled["m"]) * unit, float("inf")
    return Fraction(scaled["m"]) * unit, Fraction(scaled["x"]) * unit


def rows_for(circuit: Circuit, rng: np.random.Generator, count: int = 3) -> np.ndarray:
    rows = rng.integers(-1, 2, (count, len(circuit.variables)))
    rows[0] = -1
    return rows


def check(circuits: list[Circuit], folder: Path, rng: np.random.Generator) -> list[float]:
    """Values and joints are within their bounds; returns the relative bounds of the values."""
    rows = [Compiled(one, validate=False).closed(rows_for(one, rng).astype(np.int8)) for one in circuits]
    answers = iter(answers_of(circuits, rows, folder))
    bounds = []
    for circuit, codes in zip(circuits, rows, strict=True):
        compiled = Compiled(circuit, validate=False)
        exact = compiled.exact
        for row in codes.tolist():
            found = next(answers)
            value, bound = number(found["value"])
            true = exact.rational(row)
            assert abs(value - true) <= bound, (circuit, row)
            bounds.append(float(bound / abs(true) if true else bound))
            for i in [i for i, code in enumerate(row) if code < 0]:
                joint, bound = number(found["joints"][i])
                inside = compiled.closed(np.array([[*row[:i], 1, *row[i + 1 :]]], np.int8))[0].tolist()
                assert abs(joint - exact.rational(inside)) <= bound, (circuit, row, i)
            for k, i in enumerate(compiled.outs.tolist()):
                if row[i] < 0:
                    joint, bound = number(found["joints"][len(row) + k])
                    assert abs(joint - exact.rational([*row[:i], 0, *row[i + 1 :]])) <= bound, (circuit, row, i)
    return bounds


@pytest.mark.parametrize("seed", range(2))
def test_sums_and_products(seed, tmp_path):
    rng = np.random.default_rng(seed)
    circuits = [random_circuit(rng, n=int(rng.integers(1, 7)), decomposable=True) for _ in range(40)]
    bounds = check(circuits, tmp_path, rng)
    assert np.mean(np.array(bounds) < 1e-6) > 0.9


@pytest.mark.parametrize("sized", [False, True])
def test_determinants(sized, tmp_path):
    rng = np.random.default_rng(3)
    circuits = [random_det(rng, n=int(rng.integers(1, 7)), decomposable=True, sized=sized) for _ in range(40)]
    bounds = check(circuits, tmp_path, rng)
    assert np.mean(np.array(bounds) < 1e-6) > 0.9  # the others are singular


@pytest.mark.parametrize("make", [random_circuit, random_det])
def test_being_out_has_a_name(make, tmp_path):
    rng = np.random.default_rng(7)
    circuits = [make(rng, n=int(rng.integers(1, 6)), decomposable=True) for _ in range(30)]
    circuits = [one.with_states({name: ["M", "F"] for name in one.variables[::2]}) for one in circuits]
    bounds = check(circuits, tmp_path, rng)
    assert np.mean(np.array(bounds) < 1e-6) > 0.9


def test_blocks_of_columns(tmp_path):
    rng, circuits = np.random.default_rng(8), []
    for _ in range(10):
        terms = []
        for _ in range(3):
            one = pgcc.pc.bernoulli("x", rng.random())
            for name, states in (("v", "abc"), ("w", ["M", "F"]), ("y", range(4))):
                one = one * pgcc.pc.categorical(
                    name, dict(zip(states, rng.dirichlet(np.ones(len(states))), strict=True))
                )
            terms.append(one)
        circuits.append((0.25 * terms[0] + 0.25 * terms[1] + 0.5 * terms[2]).to_pgc())
    assert all(Compiled(one).blocks is not None for one in circuits)
    assert max(check(circuits, tmp_path, rng)) < 1e-12


def test_singular_at_every_point(tmp_path):
    """Two columns are parallel: with the first in, the determinant is 0 whatever the others are."""
    half = Fraction(1, 2)
    U = [[-half, -1, half, 1], [half, -half, -half, 0], [-half, -half, half, -half]]
    children = [pgcc.parse(text).root for text in ("z1", "-z2/10 - 9/10", "-4*z3/7 - 3/7", "z4")]
    circuit = Circuit(det([[0] * 3] * 3, U, U, children, size=1))
    row = np.array([1, -1, -1, 0])
    (found,) = answers_of([circuit], [row[None]], tmp_path)
    for scaled in (found["value"], *found["joints"][1:3]):
        value, bound = number(scaled)
        assert abs(value) <= bound


def test_sizes(tmp_path):
    rng = np.random.default_rng(4)
    B = rng.normal(size=(40, 20))
    parts = {"x1": pgcc.parse("0.3*a*b + 0.7*a"), "x2": pgcc.parse("0.4*c*d + 0.6"), "x3": pgcc.parse("e")}
    circuits = [
        pgcc.dpp(L=B @ B.T / 10 + 0.1 * np.eye(40)),
        pgcc.mixture([0.5, 0.5], [pgcc.dpp(L=np.eye(3) + 0.5), pgcc.parse("(0.2*x1 + 0.8)*(0.5*x2*x3 + 0.5)")]),
        pgcc.dpp(L=B[:8] @ B[:8].T).observe(size=3),
        pgcc.dpp(L=[[2, 1, 0.5], [1, 2, 1], [0.5, 1, 2]]).compose(parts),
        pgcc.dpp(L=[[1, 2, 0], [-2, 1, 1], [0, -1, 0.5]], symmetric=False),
        pgcc.spanning_tree([("a", "b", 2), ("b", "c", 1), ("a", "c", 1), ("c", "d", 5)]),
    ]
    models = list(map(pgcc.compile, circuits))
    rows = []
    for model in models:
        row = np.where(rng.random(len(model.variables)) < 0.3, model.sample(1, rng=0)[0], -1)
        rows.append(np.stack([np.full_like(row, -1), row]))
    answers = iter(answers_of(circuits, rows, tmp_path))
    for model, codes in zip(models, rows, strict=True):
        for row in codes:
            found = next(answers)
            np.testing.assert_allclose(found["sizes"], model.cardinality(row), rtol=0, atol=1e-9)
            assert np.abs(np.array(found["sizes"]) - model.cardinality(row)).max() <= found["error"] < 1e-6
            moments = model.moments(row)
            assert abs(found["mean"] - moments.mean) <= found["meanError"] + 1e-9
            assert abs(found["deviation"] - moments.variance**0.5) <= found["deviationError"] + 1e-9


def test_sizes_given_improbable_evidence(tmp_path):
    """Of two components the evidence excludes one, and has 1e-522 in the other."""
    product = pgcc.parse("*".join(f"(1e-9*x{i} + 0.999999999)" for i in range(60)))
    nothing = pgcc.parse("*".join(f"(0*x{i} + 1)" for i in range(60)))
    circuit = pgcc.mixture([0.5, 0.5], [product, nothing])
    row = np.array([1] * 58 + [-1] * 2)
    (found,) = answers_of([circuit], [row[None]], tmp_path)
    np.testing.assert_allclose(found["sizes"][58:], [(1 - 1e-9) ** 2, 2e-9, 1e-18], rtol=1e-8)
    assert found["error"] < 1e-10


def test_the_deviation_of_many_variables(tmp_path):
    """The mixture of 200 variables whose deviation was shown as 0, for its error was bounded by 2e31."""
    text = [pgcc.parse("*".join(f"({p}*x{i} + {1 - p})" for i in range(200))) for p in (0.375, 0.75)]
    model = pgcc.compile(pgcc.mixture([0.5, 0.5], text))
    (found,) = answers_of([model.circuit], [np.full((1, 200), -1)], tmp_path)
    # the means of the parts are 75 and 150
    exact = math.sqrt(0.5 * 200 * (0.375 * 0.625 + 0.75 * 0.25) + 37.5**2)
    assert found["mean"] == pytest.approx(112.5, rel=1e-12)
    assert found["deviation"] == pytest.approx(exact, rel=1e-12)
    assert found["deviationError"] < 1e-6
    assert found["error"] < 1e-10
    np.testing.assert_allclose(found["sizes"], model.cardinality(), rtol=1e-10, atol=0)
