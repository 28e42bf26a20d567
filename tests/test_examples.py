"""Every example runs, and says what it should."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import numpy as np
import pytest
from real_data import DATA

import pgcc

EXAMPLES = Path(__file__).parents[1] / "examples"


def run(name: str, capsys: pytest.CaptureFixture[str]) -> str:
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    return capsys.readouterr().out


def test_every_example_is_tested():
    known = {"quickstart.py", "certified.py", "million_rows.py", "circuit.py", "beta.pgc", "beta.csv"}
    known |= {"dpp.py", "spanning_tree.py", "kernel.csv", "roads.edges", "composition.py", "validity.py", "gallery.py"}
    # cafe.pgc is sampled in docs/guide/cli.md; torch_dpp.py is run in test_torch.py, where torch is installed
    known |= {"questions.py", "cafe.pgc", "torch_dpp.py", "diagnosis.py", "cough.bif", "survey.py"}
    assert {path.name for path in EXAMPLES.iterdir() if path.is_file()} == known


def test_beta_is_equation_3():
    text = (EXAMPLES / "beta.pgc").read_text(encoding="utf-8")
    assert "(0.1*(z1 + 1)*(6*z2 + 1) - 0.4*z1*z2) * (0.8*z3 + 0.2)" in text
    model = pgcc.compile(pgcc.load(EXAMPLES / "beta.pgc"))
    table = {"000": 2, "001": 8, "010": 12, "011": 48, "100": 2, "101": 8, "110": 4, "111": 16}  # Figure 1, in percent
    for row, percent in table.items():
        evidence = dict(zip(("z1", "z2", "z3"), map(int, row), strict=True))
        assert model.prob(evidence, exact=True) * 100 == percent


def test_quickstart(capsys):
    out = run("quickstart.py", capsys)
    assert "Pr(z2 = 0, z3 = 0) = 0.04\n" in out
    assert "exactly: 1/25\n" in out
    assert "three rows: [0.48 0.04 1.  ]\n" in out
    assert "Pr(rain = 1) = 0.5\n" in out
    assert "strategy: " in out


def test_diagnosis(capsys):
    lines = run("diagnosis.py", capsys).splitlines()
    joint = np.ones((1,) * 8)  # by brute force: the product of all tables
    network = pgcc.load(EXAMPLES / "cough.bif").network
    for table in network.tables:
        order = np.argsort(table.scope)
        shape = [len(d.states) if v in table.scope else 1 for v, d in enumerate(network.domains.values())]
        joint = joint * table.table.transpose(order).reshape(shape)
    names = list(network.domains)
    of_illness = joint.take(1, names.index("fever")).take(2, names.index("cough") - 1).sum(axis=(0, 1, 3, 4, 5))
    shares = (of_illness / of_illness.sum()).tolist()
    states = network.domains["illness"].states
    assert lines[0] == "illness: " + ", ".join(f"{s} {p:.3f}" for s, p in zip(states, shares, strict=True))
    assert "ask next: rapid_test (0.222 nats)" in lines
    assert "Pr(flu | fever=high, cough=dry) = 0.903" in lines
    assert any(line.startswith("days off, inhaler given: 0 0.838") for line in lines)


@pytest.mark.slow
def test_survey(capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["survey.py", "4"])
    out = run("survey.py", capsys)
    alone, tree, ensemble = map(float, re.findall(r"-\d\.\d{3}", re.search(r"of a test row: .*", out)[0]))
    assert alone < tree < ensemble
    for ticks in re.findall(r"ticks, \w+: (.*)", out):
        assert 0.9 < sum(map(float, ticks.split())) <= 1.002
    own, given = map(float, re.findall(r"(\d+\.\d)% right", out))
    assert given > own
    losses = dict(re.findall(r"^([a-z ]+): log-loss (\S+),", out, re.MULTILINE))
    assert all(float(loss) < np.log(2) for loss in losses.values())
    folder = Path(re.search(r"pgcc marginals (.*)survey.npz", out)[1])
    assert pgcc.learn.load(folder / "survey.npz").model_.prob("home=city") > 0.2
    assert "written: city.svg covariance.svg learning.svg survey.csv survey.html survey.npz" in out


def test_certified(capsys):
    lines = dict(line.split(":", 1) for line in run("certified.py", capsys).splitlines())
    number = r"(-?[\d.]+e[+-]\d+|inf)"
    shape = rf"\s*{number}, relative error at most {number}, in truth {number}"
    alone, certified = (
        [float(x) for x in re.fullmatch(shape, lines[key]).groups()] for key in ("float64 alone", "certified")
    )
    assert alone[2] > 1e-3  # float64 by itself is wrong here,
    assert alone[1] >= alone[2]  # and says so
    assert certified[2] <= certified[1] < 1e-9
    assert "equal" in lines["exact"]


def test_million_rows(capsys):
    out = run("million_rows.py", capsys)
    assert re.search(r"1,000,000 rows of 50 variables in \d+\.\d+ s\n", out)
    assert "the same as by hand: True" in out


def test_circuit(capsys):
    out = run("circuit.py", capsys)
    assert "smooth: no" in out
    assert "13 edges before smoothing, 16 after" in out
    assert "Pr(fever | cough) = 0.2929" in out  # (0.2·0.9·0.8 + 0.4·0.05) / (0.2·0.8 + 0.4)
    if DATA.is_dir():
        assert "nltcs: average log-likelihood -6.0447644580 over 3,236 rows" in out


def test_dpp(capsys):
    out = run("dpp.py", capsys)
    assert "Pr(whales, sharks) = 0.006, and 0.137 if they were independent" in out
    assert "Pr(four books) = 0.0\n" in out
    assert "the same by K: True" in out


def test_spanning_tree(capsys):
    out = run("spanning_tree.py", capsys)
    for line in out.splitlines()[:4]:
        ours, by_resistance = re.findall(r"\d\.\d{4}", line)
        assert ours == by_resistance
    assert "Pr(cork-deal) = 1.0000" in out
    assert "exactly: 6/11\n" in out  # 2·3 of 2·3 + 2·1 + 3·1; the bridge is in every tree
    total, cayley = re.search(r"K_12: ([\d.]+), by Cayley ([\d.]+)", out).groups()
    assert total == cayley
    assert "Pr(a->b) = 2/3\n" in out


def test_composition(capsys):
    out = run("composition.py", capsys)
    assert "inside a dish: 0.533 together, 0.360 if they were independent" in out
    assert "across dishes: 0.333 together, 0.378 if they were independent" in out
    assert "the two formulas of the paper hold: True" in out
    assert "at most two spices: Pr(salt) = 0.4713" in out
    assert "total of the whole menu: 1\n" in out


def test_validity(capsys):
    out = run("validity.py", capsys)
    assert "a distribution: 3 variables, 14 edges" in out
    assert "nonnegative: refuted\nas the model says: True" in out
    assert "after division by g(1) = 21" in out
    assert "negative dependence: proved: strongly Rayleigh" in out


def test_questions(capsys):
    out = run("questions.py", capsys)
    assert "given whales: {'whales': 1.0," in out
    assert "the most probable>" in out
    assert "derivatives" in out
    assert out.count("a reader:") == 3
