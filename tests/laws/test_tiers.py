"""Kernels that are interpreted and kernels that are compiled give the same answers, and a seed the same samples."""

from __future__ import annotations

import subprocess
import sys
import threading

import numpy as np
import pytest
from families import FAMILIES, cases

import pgcc
from pgcc.kernels import policy
from pgcc.kernels.policy import choose_tier, kernel, tier


@pytest.fixture
def ask():
    """Ask a question in one tier."""

    def ask(name, question):
        before = choose_tier(name)
        try:
            return question()
        finally:
            choose_tier(before)

    return ask


def near(found, expected):
    np.testing.assert_allclose(np.asarray(found, float), np.asarray(expected, float), rtol=1e-9, atol=0)


@pytest.mark.parametrize("family", FAMILIES)
def test_answers(family, ask):
    """Right in both tiers, and the same to the last bit."""
    for circuit, table, evidence in cases(family, many=3, seed=16):
        true = table.prob(evidence)
        sizes = [sum(p for s, p in table.p.items() if len(s) == k) for k in range(len(table.variables) + 1)]
        answers = []
        for name in ("interpreted", "compiled"):
            model = ask(name, lambda circuit=circuit: pgcc.compile(circuit))
            found = ask(name, lambda model=model, evidence=evidence: [model.prob(evidence), *model.cardinality()])
            near(found, [true, *sizes])
            if true:
                found += list(ask(name, lambda model=model, evidence=evidence: model.marginals(evidence, names=False)))
                found.append(ask(name, lambda model=model, evidence=evidence: model.logprob(evidence)))
                expected = [table.expectation(evidence, lambda s, v=v: int(v in s)) for v in table.variables]
                near(found[1 + len(sizes) : -1], expected)
            answers.append(found)
        np.testing.assert_array_equal(*answers)


def test_rows_of_a_table(ask):
    """A few rows that are interpreted, and many that are compiled."""
    rng = np.random.default_rng(0)
    transition = rng.dirichlet(np.ones(4), 4)
    chain = pgcc.builders.hmm(transition[0], transition, rng.random(4), 60)
    A = rng.normal(size=(12, 12))
    for circuit in (chain, pgcc.dpp(L=A @ A.T / 6), pgcc.dpp(factor=A[:, :5])):
        rows = np.where(rng.random((30, len(circuit.variables))) < 0.2, 1, -1)
        found = [
            ask(
                name,
                lambda circuit=circuit, rows=rows: (lambda m: [m.prob(rows), m.logprob(rows), m.marginals(rows)])(
                    pgcc.compile(circuit)
                ),
            )
            for name in ("interpreted", "compiled")
        ]
        for one, other in zip(*found, strict=True):
            np.testing.assert_array_equal(one, other)


def test_what_is_learned(ask):
    """numpy's exp and log are not those of the C library, which compiled kernels call."""
    from pgcc.learn import DPP, MixtureOfTrees, SimplePGC

    rng = np.random.default_rng(0)
    X = (rng.random((200, 8)) < 0.3).astype(np.int8)
    X[:, 3] |= X[:, 1]
    holes = np.where(rng.random(X.shape) < 0.1, -1, X)
    for make, rows in (
        (lambda: DPP(max_iter=3), X),
        (lambda: SimplePGC(2, 2, max_iter=3), X),
        (lambda: MixtureOfTrees(2, max_iter=3), holes),
    ):
        one, other = (
            ask(name, lambda make=make, rows=rows: make().fit(rows).score_samples(rows))
            for name in ("interpreted", "compiled")
        )
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("family", FAMILIES)
def test_samples(family, ask):
    for circuit, _, _ in cases(family, many=3, seed=17):
        one, other = (
            ask(name, lambda circuit=circuit: pgcc.compile(circuit).sample(12, rng=3))
            for name in ("interpreted", "compiled")
        )
        np.testing.assert_array_equal(one, other)


# -- which tier runs -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("was_compiled", [False, True])
def test_small_work_is_interpreted_until_patience_ends(ask, monkeypatch, was_compiled):
    """Patience is for each kernel: after a first `fit`, a first DPP waited half a minute for kernels of its own."""
    patience = policy.TO_LOAD if was_compiled else policy.TO_COMPILE

    @kernel
    def one():
        return 1

    def is_interpreted(work):
        with tier(work):
            return one._is_interpreted()

    kept = frozenset([one.py_func.__qualname__] if was_compiled else ["forward"])
    monkeypatch.setattr(policy, "kept_kernels", lambda: kept)
    monkeypatch.setattr(policy, "_seconds", 0.0)
    assert ask("interpreted", lambda: is_interpreted(1e9))
    assert ask("auto", lambda: is_interpreted(patience.work))
    assert not ask("auto", lambda: is_interpreted(patience.work + 1))
    assert not ask("auto", one._is_interpreted)  # any work
    assert not ask("compiled", lambda: is_interpreted(1))
    monkeypatch.setattr(policy, "_seconds", patience.seconds)
    assert not ask("auto", lambda: is_interpreted(1))


def test_threads_wait_until_everything_is_registered(monkeypatch):
    """A kernel that one thread compiles while another one still tells Numba about vectors would not know them."""
    started, told = threading.Event(), threading.Event()

    def register():
        started.set()
        told.wait(0.2)
        told.set()

    @kernel
    def one():
        return 1

    @kernel
    def two():
        return 2

    monkeypatch.setattr(policy, "_registrations", [register])
    thread = threading.Thread(target=lambda: one.dispatcher)
    thread.start()
    started.wait()
    assert two.dispatcher is two.dispatcher
    assert told.is_set()
    thread.join()


FIRST_MINUTE = """
import sys
import pgcc
model = pgcc.compile(pgcc.parse("(0.1*(z1 + 1)*(6*z2 + 1) - 0.4*z1*z2) * (0.8*z3 + 0.2)"))
model.prob({"z2": 0, "z3": 0}), model.logprob([[1, 0, 1]] * 5), model.marginals(), model.sample(3, rng=0), model.mode()
model = pgcc.compile(pgcc.dpp(L=[[2.0, 0.5, 0.1], [0.5, 1.0, 0.3], [0.1, 0.3, 1.5]]))
model.prob({"x1": 1}), model.marginals(), model.sample(3, rng=0), model.mode(), model.cardinality()
assert "numba" not in sys.modules
"""


def test_small_questions_do_not_import_numba():
    done = subprocess.run([sys.executable, "-c", FIRST_MINUTE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
