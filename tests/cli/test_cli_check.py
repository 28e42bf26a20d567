"""`pgcc check`: text, JSON and exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from check_cases import invalid_mixture

import pgcc
from pgcc.cli import main

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(capsys, *arguments):
    code = main(["check", *map(str, arguments)])
    out, err = capsys.readouterr()
    return code, out, err


def test_proved(capsys):
    code, out, err = run(capsys, EXAMPLES / "beta.pgc")
    assert (code, err) == (0, "")
    assert out.splitlines()[0].startswith("a distribution: 3 variables")
    assert all(": proved" in line for line in out.splitlines()[1:])


def test_refuted(capsys):
    code, out, err = run(capsys, "--expr", "1.5*x - 0.5")
    assert (code, err) == (1, "")
    assert "nonnegative: refuted: the coefficient of x=0 is -1/2" in out


def test_not_proven(capsys):
    x = " * ".join(f"(0.5*z{i} + 0.5)" for i in range(30))
    y = " * ".join(f"(0.4*z{i} + 0.6)" for i in range(30))
    code, out, _ = run(capsys, "--time", "0.2", "--expr", f"1.001*({x}) - 0.001*({y})")
    assert code == 3
    assert "nonnegative: not proven" in out


def test_errors_stay_2(capsys):
    for arguments in (["missing.pgc"], ["--expr", "1 +"], ["--expr", "x", "y"], ["--expr", "x", "--time", "-1"]):
        code, out, err = run(capsys, *arguments)
        assert code == 2
        assert out == ""
        assert err.startswith("pgcc: ")
        assert err.count("\n") >= 1


def test_json(capsys):
    code, out, _ = run(capsys, "--json", "--dependence", "--expr", "0.5*a*b + 0.5")
    data = json.loads(out)
    assert code == 0
    assert data["state"] == "proved"
    assert data["ok"] is True
    assert data["negative_dependence"]["state"] == "refuted"
    assert data["negative_dependence"]["witness"]["pair"] == ["a", "b"]
    code, out, _ = run(capsys, "--json", "--expr", "1.5*x - 0.5")
    data = json.loads(out)
    assert code == 1
    assert data["nonnegative"] == {
        "state": "refuted", "reason": "the coefficient of x=0 is -1/2", "witness": {"x": 0}, "value": "-1/2",
    }  # fmt: skip
    code, out, _ = run(capsys, "--json", "--expr", "x/3")
    assert json.loads(out)["normalized"]["witness"] == "1/3"


def test_kernels_need_normalize(capsys):
    assert run(capsys, EXAMPLES / "kernel.csv")[0] == 1
    code, out, _ = run(capsys, EXAMPLES / "kernel.csv", "--normalize", "--dependence", "--certificate")
    assert code == 0
    assert "strongly Rayleigh" in out
    assert "positive semidefinite kernel (1):" in out or "Gram determinant (1):" in out


def test_a_mixture_in_a_file(capsys, tmp_path):
    circuit, _ = invalid_mixture(3, n=24)
    pgcc.save(circuit, tmp_path / "mixture.npz")
    code, out, _ = run(capsys, tmp_path / "mixture.npz")
    assert code == 1
    assert "nonnegative: refuted" in out


@pytest.mark.parametrize("option", ["--time", "--tolerance"])
def test_options_take_numbers(capsys, option):
    code, _, err = run(capsys, option, "x", "--expr", "x")
    assert code == 2
    assert "invalid float value" in err
