"""`pgcc convert` and `pgcc score`."""

from __future__ import annotations

import io
import json
import math
import sys
from pathlib import Path

import numpy as np
import pytest

import pgcc.progress
from pgcc import cli

G = "0.4*a*b + 0.3*a + 0.3"


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "g.pgc"
    path.write_text(G, encoding="utf-8")
    return path


@pytest.fixture
def data(tmp_path):
    def write(text: str) -> Path:
        path = tmp_path / "rows.csv"
        path.write_text(text, encoding="utf-8")
        return path

    return write


# -- convert ------------------------------------------------------------------------------------------------------


def test_convert_there_and_back(run, model, tmp_path):
    binary, text = tmp_path / "g.npz", tmp_path / "h.pgc"
    assert run("convert", model, binary).splitlines() == [
        f"read {model}: 2 variables, 5 nodes, 5 edges",
        f"wrote {binary}: 2 variables, 5 nodes, 5 edges",
    ]
    run("convert", binary, text)
    assert pgcc.load(text) == pgcc.load(model)


def test_convert_simplifies_if_asked(run, tmp_path):
    target = tmp_path / "g.pgc"
    told = json.loads(run("convert", "--expr", "a + (b + (1 + 1))", target, "--simplify", "--json"))
    assert told["read"]["file"] == "--expr"
    assert told["written"] == {"file": str(target), "variables": 2, "nodes": 4, "edges": 3}
    assert told["read"]["edges"] > 3


def test_convert_a_probabilistic_circuit(run, tmp_path, data):
    source, target = tmp_path / "two.psdd", tmp_path / "two.npz"
    quarter, most = math.log(0.25), math.log(0.75)
    source.write_text(
        f"psdd 7\nL 0 0 1\nL 1 0 -1\nT 2 2 2 {quarter!r}\nL 3 2 -2\nD 4 1 2 0 2 {quarter!r} 1 3 {most!r}\n",
        encoding="utf-8",
    )
    assert "2 variables" in run("convert", source, target)
    rows = data("1,1\n?,0\n")
    assert run("score", source, rows) == run("score", target, rows)
    assert average(run("score", target, rows))[0] == pytest.approx(math.log(1 / 16 * 15 / 16) / 2)


def test_convert_reads_standard_input(run, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO(G))
    assert run("convert", "-", tmp_path / "g.npz").startswith("read standard input: 2 variables")


def test_convert_numbers_the_variables(run, fail, tmp_path):
    text = "0.3*rain*wet + 0.7"
    told = fail("convert", "--expr", text, tmp_path / "out.psdd")
    assert "has 'rain'" in told
    assert "pgcc convert --number" in told  # it recommended Python once
    run("convert", "--expr", text, tmp_path / "out.psdd", "--number")
    assert run("query", tmp_path / "out.psdd", "x1=1, x2=1") == "0.3\n"


def test_convert_errors(fail, model, tmp_path, run):
    assert fail("convert", model) == "expected one file to write (see pgcc convert --help)"
    assert "unexpected 'c.npz'" in fail("convert", model, "b.npz", "c.npz")
    assert fail("convert", model, model) == f"{model} exists: --force replaces it"
    assert "cannot write the format '.doc'" in fail("convert", model, tmp_path / "g.doc")
    assert "there is no such file" in fail("convert", tmp_path / "no.pgc", tmp_path / "g.npz")
    run("convert", model, model, "--force")


# -- score --------------------------------------------------------------------------------------------------------

EXPECTED = [math.log(0.4), math.log(0.3), math.log(0.4)]  # of (1, 1), (1, 0) and (?, 1)


def average(text: str) -> tuple[float, int]:
    words = text.split()
    assert words[:2] == ["average", "log-likelihood"]
    return float(words[2]), int(words[4])


@pytest.mark.parametrize(
    "text",
    ["1,1\n1,0\n?,1\n", "a,b\n1,1\n1,0\n?,1\n", "b,a\n1,1\n0,1\n1,\n", "1, 1\n\n1,0\n,1", "\ufeff1,1\n1,0\n?,1\n"],
    ids=["no header", "header", "other order", "blanks", "byte order mark"],
)
def test_score(run, model, data, text):
    got, rows = average(run("score", model, data(text)))
    assert rows == 3
    assert got == pytest.approx(math.fsum(EXPECTED) / 3, rel=1e-14)


def test_the_first_row_may_have_gaps(run, model, data):
    assert average(run("score", model, data("?,\n")))[0] == 0.0


def test_columns_that_are_missing_are_unobserved(run, model, data):
    assert average(run("score", model, data("b\n1\n")))[0] == pytest.approx(math.log(0.4))


def test_score_rows(run, model, data):
    *rows, last = run("score", model, data("1,1\n1,0\n?,1\n"), "--rows").splitlines()
    assert list(map(float, rows)) == pytest.approx(EXPECTED)
    assert last.startswith("average log-likelihood ")


def test_score_json(run, model, data):
    text = run("score", model, data("1,1\n0,1\n"), "--rows", "--json")
    assert [json.loads(line) for line in text.splitlines()] == [
        {"row": 0, "logprob": pytest.approx(math.log(0.4))},
        {"row": 1, "logprob": None},
        {"rows": 2, "average": None, "total": None, "impossible": 1},
    ]


def test_impossible_rows_are_counted(run, model, data):
    assert run("score", model, data("1,1\n0,1\n")) == "average log-likelihood -inf over 2 rows, 1 of them impossible\n"


def test_score_in_pieces_is_the_same(run, model, data, monkeypatch):
    rows = np.random.default_rng(0).integers(0, 2, (101, 2))
    rows[:, 0] |= rows[:, 1]
    path = data("\n".join(",".join(map(str, row)) for row in rows))
    whole = run("score", model, path, "--json", "--rows")
    monkeypatch.setattr("pgcc.data.tables._AT_A_TIME", 6)
    pieces = run("score", model, path, "--json", "--rows", "--threads", "2")
    for one, other in zip(whole.splitlines(), pieces.splitlines(), strict=True):
        assert json.loads(one) == pytest.approx(json.loads(other), rel=1e-13)


def test_score_an_array(run, fail, model, data, tmp_path, monkeypatch):
    """What `pgcc fit` reads, in pieces, `pgcc score` reads too, to the same numbers as from CSV."""
    rows = np.random.default_rng(0).integers(-1, 2, (50, 2))
    np.save(tmp_path / "rows.npy", rows.astype(np.int8))
    table = data("".join(f"{a},{b}\n" for a, b in rows.tolist()).replace("-1", "?"))
    monkeypatch.setattr("pgcc.data.tables._AT_A_TIME", 14)
    assert run("score", model, tmp_path / "rows.npy", "--rows") == run("score", model, table, "--rows")
    np.save(tmp_path / "rows.npy", rows[:, :1])
    assert "1 column:" in fail("score", model, tmp_path / "rows.npy")
    np.save(tmp_path / "rows.npy", rows + 1)
    assert "is 2: evidence is" in fail("score", model, tmp_path / "rows.npy")
    assert "cannot be read" in fail("score", model, tmp_path / "nothing.npy")


def test_score_reads_standard_input(run, model, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("1,1\n"))
    assert average(run("score", model, "-")) == (pytest.approx(math.log(0.4)), 1)


def test_score_without_normalizing(run, data):
    assert average(run("score", "--expr", "2*a + 2", data("1\n"), "--no-normalize"))[0] == pytest.approx(math.log(2))
    assert average(run("score", "--expr", "2*a + 2", data("1\n")))[0] == pytest.approx(math.log(0.5))


def test_score_errors(fail, model, data):
    assert fail("score", model) == "expected one table of data (see pgcc score --help)"
    assert "unexpected 'y.csv'" in fail("score", model, "x.csv", "y.csv")
    assert fail("score", model, "nosuch.csv") == "nosuch.csv cannot be read: No such file or directory"
    assert fail("score", model, data("")).endswith("rows.csv, line 1: expected the names of the columns")
    assert fail("score", model, data("a,b\n")).endswith("rows.csv has no rows to score")
    assert fail("score", model, data("1,1,1\n")).endswith("rows.csv, line 1: 3 entries, but the table has 2 columns")
    assert fail("score", model, data("1,1\n1\n")).endswith("rows.csv, line 2: 1 entry, but the table has 2 columns")
    assert "rows.csv, line 2: 'b' is '2': evidence is 1 (in)" in fail("score", model, data("1,1\n1,2\n"))
    assert fail("score", model, data("1,2\n")).endswith("line 1: column '1' is not a variable of the circuit")
    assert "cannot both" in fail("score", "-", "-")
    assert "--threads 0 is" in fail("score", model, data("1,1\n"), "--threads", "0")


def test_progress_on_a_terminal(model, data, capsys, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(pgcc.progress, "_DELAY", 0.0)
    monkeypatch.delenv("PGCC_QUIET", raising=False)
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    path = data("1,1\n0,1\n")
    monkeypatch.chdir(path.parent)  # a line of 80 characters has no space for the folders of pytest
    assert cli.main(["score", str(model), path.name]) == 0
    assert f"scoring {path.name}: " in terminal.getvalue()
    assert cli.main(["sample", str(model), "-n", "5"]) == 0
    assert "drawing samples: " in terminal.getvalue()
    assert terminal.getvalue().endswith("\r")  # nothing of it is left


def test_no_progress_elsewhere(run, model, data, capsys):
    run("score", model, data("1,1\n"))
    assert capsys.readouterr().err == ""


def test_a_vtree_that_does_not_fit(run, fail, tmp_path):
    (tmp_path / "b.sdd").write_text("sdd 3\nL 1 0 1\nL 2 2 2\nD 0 1 1 1 2\n")
    (tmp_path / "b.vtree").write_text("vtree 3\nL 0 2\nL 2 1\nI 1 0 2\n")
    assert fail("query", tmp_path / "b.sdd").endswith("; --no-vtree reads the circuit without it")
    assert run("query", tmp_path / "b.sdd", "x1=1, x2=1", "--no-vtree") == "1\n"
