"""A few thousand numbers made to break bounds, in every run; ``pytest tests/test_adversary.py --adversary 200000``."""

from __future__ import annotations

import itertools
from contextlib import nullcontext
from unittest.mock import patch

import pytest
from adversary.generators import GENERATORS, LARGE
from adversary.questions import QUESTIONS
from adversary.runner import Ledger, run
from adversary.thresholds import small_thresholds
from flint import fmpq

from pgcc.rings.values import Values

MODES = {"as it is": nullcontext, "small thresholds": small_thresholds}
SMALL = [name for name in GENERATORS if name not in LARGE]


@pytest.fixture(scope="module", params=MODES)
def ledger(request) -> Ledger:
    """One case of every generator, or as many as the option asks for."""
    found, wanted = Ledger(), request.config.getoption("--adversary") // len(MODES)
    with MODES[request.param]():
        for seed in itertools.count():
            run([seed], GENERATORS if request.param == "as it is" else SMALL, ledger=found, mode=request.param)
            if found.numbers >= wanted:
                break
    return found


@pytest.mark.slow
def test_no_number_is_outside_of_its_bound(ledger):
    print(ledger.table())
    assert ledger.numbers > 5000
    assert not ledger.wrong, ledger.complaint()


@pytest.mark.slow
def test_not_everything_was_refused_or_without_a_bound(ledger):
    """Every generator has answers to most questions, and every method certifies something."""
    answered = {(generator, question) for generator, question, _ in ledger.right}
    asked = answered | {key[:2] for counter in (ledger.refused, ledger.unbounded) for key in counter}
    may_refuse = ("gradient", "emitted", "total")  # what leaves the range of doubles
    silent = {pair for pair in asked - answered if pair[0] != "not_a_distribution" and pair[1] not in may_refuse}
    assert not silent, f"asked and never answered: {sorted(silent)}"
    assert {generator for generator, _ in answered} >= {*SMALL} - {"not_a_distribution"}
    assert "not_a_distribution" in {key[0] for key in ledger.refused}  # by `compile`, as a rule
    for question in QUESTIONS:
        generators = {generator for generator, q in answered if q == question}
        assert len(generators) >= (3 if question == "emitted" else len(SMALL) // 3), (question, generators)
    for method in ("auto", "direct", "top", "bottom", "fft", "ball"):
        assert sum(n for (_, q, m), n in ledger.right.items() if q == "prob" and m == method) > 20, method
    for generator in {key[0] for key in ledger.right}:
        right = sum(n for key, n in ledger.right.items() if key[0] == generator and key[2] == "auto")
        lost = sum(
            n for c in (ledger.refused, ledger.unbounded) for key, n in c.items() if key[0::2] == (generator, "auto")
        )
        assert right > 0, generator
        assert generator == "not_a_distribution" or lost <= right / 2, (generator, right, lost)


# -- the adversary itself ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("off", [1e-8, 1e-12])
def test_what_is_off_is_noticed(off):
    """Probabilities that are a little larger than they should be, under bounds that do not say so."""
    floats = Values.floats
    with patch.object(Values, "floats", lambda self: floats(self) * (1 + off)):
        found = run([0], ["probabilistic", "dpp_exact", "entangled"], ["prob"])
    assert len(found.wrong) > found.numbers / 10
    assert {w.generator for w in found.wrong} >= {"probabilistic", "dpp_exact"}


def test_bounds_that_are_infinite_are_counted_and_are_no_answers():
    with patch.object(Values, "float_bounds", lambda self: self.bound + float("inf")):
        found = run([0, 1], ["probabilistic"], ["prob"])
    assert found.unbounded.total() > 20
    assert not any(method != "auto" for _, _, method in found.right)
    assert found.wrong  # "auto" promised a bound


def test_tables_by_listing_and_by_points_agree():
    from adversary.generators import make
    from adversary.oracle import ByPoints, Table

    for name in ("entangled", "dpp_exact", "signed_determinant"):
        case = make(name, 1)
        listed, points = Table.of(case.circuit), ByPoints(case.circuit)
        n = len(listed.names)
        for codes in itertools.product((-1, 0, 1), repeat=n):
            assert points.raw(codes) == listed.raw(codes)
        row = [-1] * (n - 1) + [1]
        if listed.raw(row):
            assert points.counts(row, range(n)) == listed.counts(row, range(n))
        assert sum(listed.coefficients.ravel(), fmpq(0)) == listed.total
