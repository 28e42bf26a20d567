"""Complete rows by a walk from the root down: equal to the product of the tables, and to the other rungs."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings

import pgcc
from pgcc import compiler
from pgcc.compiler import LARGE_VALUES, VALUES, Compiled, climb
from pgcc.data.evidence import Evidence
from pgcc.frontend.elimination import Table, eliminate
from pgcc.ir.domains import Domains
from pgcc.kernels.policy import tier
from pgcc.queries.probability import probabilities
from pgcc.rings.values import Values
from tests.frontend.test_elimination import joint, networks


def complete_rows(domains: Domains) -> np.ndarray:
    """The codes of all assignments, the last variable fastest."""
    sizes = [len(domain.states) for domain in domains.values()]
    states = np.array(np.unravel_index(np.arange(math.prod(sizes)), sizes)).T
    columns = {
        column: states[:, v] == i
        for v, domain in enumerate(domains.values())
        for i, column in enumerate(domain.columns)
        if column
    }
    return np.array([columns[column] for column in domains.columns], np.int8).reshape(-1, len(states)).T.copy()


def walked(compiled: Compiled, rows: np.ndarray) -> Values:
    """The values by a walk alone."""
    with tier(len(rows)):
        return climb(LARGE_VALUES[:1], compiled, rows, 1e-9)[0]


@settings(deadline=None)
@given(networks())
def test_complete_rows_are_products_of_the_tables(network: tuple[Domains, list[Table]]) -> None:
    domains, factors = network
    if not domains.columns:
        return
    found = walked(Compiled(eliminate(domains, factors)), complete_rows(domains))
    known = np.isfinite(found.bound)
    np.testing.assert_allclose(found.floats()[known], joint(domains, factors).ravel()[known], rtol=1e-13, atol=0)
    assert (found.bound[known] < 1e-13).all()


def test_networks_have_a_walk_down() -> None:
    rng = np.random.default_rng(0)
    domains = Domains.of({f"v{i}": range(2 + i % 3) for i in range(6)})
    sizes = [len(domain.states) for domain in domains.values()]
    factors = [Table((i, j), rng.random((sizes[i], sizes[j]))) for i in range(6) for j in range(i)]
    compiled = Compiled(eliminate(domains, factors))
    assert np.isfinite(walked(compiled, complete_rows(domains)).bound).all()


@pytest.mark.parametrize(
    "text",
    ["(0.5*a + 0.5)*(0.5*b + 0.5) + a*b", "0.5*(0.5*a + 0.5)*(0.25*b + 0.75) + 0.5*(0.25*a + 0.75)*(0.5*b + 0.5)"],
)
def test_other_sums_are_left_to_other_rungs(text: str) -> None:
    compiled = Compiled(pgcc.parse(text))
    rows = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], np.int8)
    found, expected = walked(compiled, rows), climb(VALUES[True], compiled, rows, 1e-9)[0]
    known = np.isfinite(found.bound)
    assert not known.all()
    np.testing.assert_allclose(found.floats()[known], expected.floats()[known], rtol=1e-14)


def test_large_circuits_walk_and_small_shares_of_rows_climb(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler, "_LARGE", 0)
    rng = np.random.default_rng(1)
    domains = Domains.of({"a": range(3), "b": range(2), "c": range(4)})
    factors = [Table((0,), rng.random(3)), Table((0, 1), rng.random((3, 2))), Table((1, 2), rng.random((2, 4)))]
    factors[1].table[1, 0] = 0
    circuit = eliminate(domains, factors)
    model, rows = pgcc.compile(circuit), complete_rows(domains)
    table = joint(domains, factors).ravel()
    assert model._compiled.is_large
    rows[3, domains.columns.index("b") :] = -1  # of the fourth row, only the variable a is observed
    expected = table / table.sum()
    expected[3] = table.reshape(3, -1)[0].sum() / table.sum()
    given = Evidence.of_codes(model._compiled.circuit.variables, rows)
    for logs in (False, True):
        found = probabilities(model._asked, given, logs=logs).numbers
        np.testing.assert_allclose(np.exp(found) if logs else found, expected, rtol=1e-12)
    assert (found == -np.inf).sum() == 4


def test_values_may_leave_the_range_of_doubles() -> None:
    domains = Domains.of({f"v{i}": range(3) for i in range(30)})
    rng = np.random.default_rng(0)
    scale = 10.0 ** rng.integers(-90, 90, 30)
    factors = [Table((i,), scale[i] * np.array([0.25, 0.5, 1.0])) for i in range(30)]
    factors += [Table((i, i + 1), rng.choice([0.5, 1.0, 2.0], (3, 3))) for i in range(29)]
    compiled = Compiled(eliminate(domains, factors))
    states = rng.integers(0, 3, (20, 30))
    rows = (states[:, :, None] == np.arange(3)).reshape(20, -1).astype(np.int8)
    found = walked(compiled, rows)
    for row, m, e, bound in zip(states, found.mantissa, found.exponent.tolist(), found.bound, strict=True):
        exact = math.prod(Fraction(float(f.table[tuple(row[list(f.scope)])])) for f in factors)
        assert abs(Fraction(float(m)) * Fraction(2) ** e / exact - 1) < 1e-12
        assert bound < 1e-12
