"""Mistakes of newcomers in Python, whose messages were bad once."""

from __future__ import annotations

import pytest

import pgcc
from pgcc.learn import ChowLiu

G = pgcc.parse("(0.3*a + 0.7)*(0.5*b + 0.5)")
MODEL = pgcc.compile(G)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pgcc.compile(MODEL), "compile takes a Circuit, not Model: its attribute circuit is one"),
        (lambda: pgcc.check(MODEL), "check takes a Circuit, not Model: its attribute circuit is one"),
        (lambda: pgcc.compile(ChowLiu()), "not ChowLiu: when it has learned, its attribute circuit_ is one"),
        (lambda: pgcc.compile("a"), "not str: pgcc.parse makes one from text, pgcc.load gives one"),
        (lambda: pgcc.compile(pgcc.pc.pos("a")), "its method to_pgc"),
        (lambda: pgcc.grad("a"), "gradients are taken of a Circuit, not of str: pgcc.parse makes one from text"),
        (lambda: pgcc.save(MODEL, "m.npz"), "only a circuit can be saved, not Model: its attribute circuit is one"),
        (
            lambda: G.prob({"a": 1}),
            "a Circuit answers no questions: pgcc.compile makes a Model of it, which has 'prob'",
        ),
        (lambda: MODEL.prob(3), "3 is not evidence: give a dict, text, an array or a DataFrame"),
        (lambda: ChowLiu().fit([1, 0]), r"a table of rows and columns, with at least one of both; not of shape \(2,\)"),
        (lambda: pgcc.mixture([G, G], [0.5, 0.5]), r"the arguments are swapped: mixture\(weights, circuits\)"),
        (lambda: pgcc.load("beta.pcg"), "beta.pcg: there is no such file"),
    ],
)
def test_messages(call, message):
    with pytest.raises(pgcc.PgccError, match=message):
        call()


def test_names_as_keywords():
    with pytest.raises(
        TypeError, match=r"prob has no argument 'a': .*; what is observed comes first, as a dict or as text"
    ):
        MODEL.prob(a=1)


def test_a_circuit_still_has_no_such_attribute():
    assert not hasattr(G, "prob")
    assert not hasattr(G, "nosuch")
