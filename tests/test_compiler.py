"""The page `compiler`: stages are made once and from what they say, and rows climb ladders as the rungs say."""

from __future__ import annotations

import re
from types import SimpleNamespace

import numpy as np
import pytest

import pgcc
from pgcc.certify import budget
from pgcc.compiler import (
    BY_METHOD,
    COUNTS,
    GRADIENTS,
    MARGINALS,
    STAGES,
    VALUES,
    Compiled,
    Rung,
    climb,
    left_the_range,
    needs_fewest,
)
from pgcc.evaluate.differentiation import Differentiator
from pgcc.evaluate.differentiation_at_points import PointDifferentiator
from pgcc.methods import METHODS
from pgcc.rings.values import Values

KINDS = {True: "0.4*a*b + 0.3*a + 0.3", False: "((a + b)**2 - (a - b)**2)/8 + 1/2"}


@pytest.mark.parametrize("decomposable", [True, False])
def test_every_stage_can_be_made_from_its_inputs(decomposable):
    compiled = Compiled(pgcc.parse(KINDS[decomposable]))
    assert compiled.decomposable is decomposable
    for name, stage in STAGES[decomposable].items():
        made = getattr(compiled, name)
        assert getattr(compiled, name) is made
        assert compiled.seconds[name] >= 0.0
        assert all(hasattr(compiled, given) for given in stage.inputs.split())
    assert set(compiled.seconds) == set(STAGES[decomposable])


def test_stages_are_made_when_they_are_asked_for():
    compiled = Compiled(pgcc.parse(KINDS[True]))
    assert list(compiled.seconds) == ["circuit"]
    assert compiled.program is compiled.program
    assert list(compiled.seconds) == ["circuit", "homogenized", "program"]
    with pytest.raises(AttributeError, match="no stage 'scales'"):
        compiled.scales  # noqa: B018


@pytest.mark.parametrize("decomposable", [True, False])
def test_ladders_run_stages_that_there_are(decomposable):
    rungs = [*VALUES[decomposable], *MARGINALS[decomposable], *COUNTS[decomposable]]
    assert {rung.stage for rung in rungs} <= set(STAGES[decomposable])
    assert {rung.method for rung in VALUES[decomposable]} <= set(METHODS)
    assert set(BY_METHOD) == set(METHODS)
    holder = Differentiator if decomposable else PointDifferentiator
    assert all(hasattr(holder, rung.stage) for rung in GRADIENTS[decomposable])


class Ring:
    """Certain of some rows, by their first code; the others are beyond its range, or lost to rounding."""

    def __init__(self, certain: set[int], lost: set[int] | None = None):
        self.certain, self.lost, self.asked = certain, lost, []

    def evaluate(self, rows: np.ndarray, rtol: float) -> Values:
        codes = rows[:, 0].tolist()
        self.asked.append(codes)
        bound = np.array([rtol if code in self.certain else np.inf for code in codes])
        lost = None if self.lost is None else np.array([code in self.lost for code in codes])
        return Values(np.array(codes, float), np.zeros(len(codes), np.int64), bound, lost)


def test_each_rung_takes_what_those_below_could_not_promise():
    rings = SimpleNamespace(low=Ring({1, 2}, lost={4}), middle=Ring({3}), none=None, high=Ring({4, 5}))
    ladder = [
        Rung("low", "low", "all rows"),
        Rung("middle", "middle", "rows out of range", left_the_range),
        Rung("none", "none", "nothing"),
        Rung("high", "high", "the rest"),
    ]
    rows = np.array([[1], [4], [3], [2], [5]], np.int8)
    values, used = climb(ladder, rings, rows, 1e-9)
    assert values.floats().tolist() == [1, 4, 3, 2, 5]
    assert (values.bound <= 1e-9).all()
    assert (rings.low.asked, rings.middle.asked, rings.high.asked) == ([[1, 4, 3, 2, 5]], [[3, 5]], [[4, 5]])
    assert used == {"low": 5, "middle": 2, "none": 0, "high": 2}


def test_a_ladder_stops_where_everything_is_certain():
    rings = SimpleNamespace(low=Ring({1, 2}), high=Ring({1, 2}))
    ladder = [Rung("low", "low", ""), Rung("high", "high", "")]
    assert climb(ladder, rings, np.array([[1], [2]], np.int8), 1e-9)[1] == {"low": 2, "high": 0}
    assert rings.high.asked == []
    assert len(climb(ladder, rings, np.zeros((0, 1), np.int8), 1e-9)[0].bound) == 0


def test_shares_of_the_error_budget_leave_something_for_rounding():
    assert budget.of_value(1.0) + budget.of_total(1.0) < 1.0
    assert 2 * budget.of_quotient(1.0) < 1.0
    assert (1.0 + budget.of_product(1.0)) ** 2 < 2.0
    assert 4 * budget.of_information(1.0) < 1.0
    assert budget.of_search(1e-14) >= 1e-15
    assert budget.of_counts(1.0) < 1.0
    assert 2 * 7 * budget.of_cuts(1.0, 7) < 1.0  # a tail at either end
    assert budget.of_pruning(1.0) + 4 * budget.of_search(1.0) < 1.0


def without_times(text: str) -> str:
    return re.sub(r"\d\S* ms", "ms", text)


def test_explain_tells_the_stages_that_were_made():
    model = pgcc.compile(pgcc.parse(KINDS[True]))
    told = model.explain()
    assert [stage.name for stage in told.stages] == [n for n in STAGES[True] if n in model._compiled.seconds]
    assert "stage: program ← homogenized: at most one instruction per node" in str(told)
    assert "rung 1: direct by float64: all rows" in str(told)
    assert "ladder: counts by counting, then exact_counting" in str(told)
    again = pgcc.compile(pgcc.parse(KINDS[True])).explain()
    assert without_times(str(told)) == without_times(str(again))
    made = [stage for stage in STAGES[True] if stage in model._compiled.seconds]
    assert len(re.findall(r"^stage: .* \d\S* ms\)$", str(told), re.MULTILINE)) == len(made)
    assert told.as_dict()["stages"][0]["name"] == "circuit"


def test_the_choice_of_a_method_by_degree():
    """Of a row with |A| ones, "bottom" needs |A| + 1 coefficients."""
    observed, top = np.array([3, 3, 0, 100, 100]), np.array([1, 9, 1, 60, 2])
    rows = (np.arange(100) < observed[:, None]).astype(np.int8)
    compiled = SimpleNamespace(
        circuit=pgcc.parse("a").simplify(), series=SimpleNamespace(lengths=lambda some: top[: len(some)])
    )
    taken = {rung.method: needs_fewest(compiled, rung, rows, None) for rung in VALUES[False][:2]}
    np.testing.assert_array_equal(taken["top"], [True, False, True, True, True])
    np.testing.assert_array_equal(taken["bottom"], ~taken["top"])
