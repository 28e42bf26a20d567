"""`pgcc fit`: the model it writes, what it says, and what it refuses."""

from __future__ import annotations

import json

import numpy as np
import pytest

import pgcc
from pgcc.cli import fit, main
from pgcc.cli.arguments import parse_arguments
from pgcc.cli.fit import MODELS, read_data
from pgcc.errors import PgccError
from pgcc.learn import ChowLiu


def call(path, *words, **said):
    """`pgcc fit PATH …` as the command line has it: --name value, and --name alone where the value is True."""
    options = [
        word
        for name, value in said.items()
        if value is not None and value is not False
        for word in (f"--{name.replace('_', '-')}", *([] if value is True else [str(value)]))
    ]
    fit.fit(parse_arguments(["fit", str(path), *words, *options]))


@pytest.fixture
def table(tmp_path):
    rows = np.random.default_rng(0).integers(0, 2, (60, 3))
    rows[:, 1] = rows[:, 0]
    path = tmp_path / "data.csv"
    path.write_text("b,x1,x0\n" + "\n".join(",".join(map(str, row)) for row in rows) + "\n")
    return path


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
def test_the_model_is_written(table, tmp_path, capsys, model):
    out = tmp_path / "model.npz"
    options = {} if model in ("chow-liu", "stacked-ensemble") else {"epochs": 2}
    said = {"model": model, "output": str(out), "json": True, "validation": str(table), **options}
    call(table, **said)
    told = json.loads(capsys.readouterr().out)
    circuit = pgcc.load(out)
    rows = read_data(str(table))
    assert circuit.variables == ("b", "x1", "x0") == tuple(rows.names)
    assert pgcc.compile(circuit).logprob(rows.codes(slice(None))).mean() == pytest.approx(told["train"], rel=1e-9)
    for _ in range(2):  # the second time goes on from the first, which is done
        call(table, **said, force=True, checkpoint=str(tmp_path / "run"))
        assert pgcc.load(out) == circuit
    assert told["validation"] == told["train"]
    assert told["rows"] == 60


def test_what_it_says(table, tmp_path, capsys):
    out = tmp_path / "model.npz"
    call(table, output=str(out), max_group=2, components=2, epochs=2)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"wrote {out}: 3 variables")
    assert lines[1].startswith("SimplePGC(max_group=2, max_iter=2, n_components=2), learned from 60 rows")
    with pytest.raises(PgccError, match="exists"):
        call(table, output=str(out))
    call(table, output=str(out), force=True, epochs=1, checkpoint=str(tmp_path / "run.npz"))
    assert (tmp_path / "run.npz").exists()


def test_columns_of_validation_data_go_by_name(table, tmp_path):
    other = tmp_path / "other.csv"
    other.write_text("x0,b,x1\n1,0,0\n")
    assert read_data(str(other), read_data(str(table))).codes(slice(None)).tolist() == [[0, 0, 1]]
    other.write_text("b,x1,z\n1,0,0\n")
    with pytest.raises(PgccError, match="column 'z'"):
        call(table, output=str(tmp_path / "model.npz"), model="chow-liu", validation=str(other))


def test_tables_without_names(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("1,0\n?,1\n")
    rows = read_data(str(path))
    assert (rows.codes(slice(None)).tolist(), rows.names) == ([[1, 0], [-1, 1]], ["x1", "x2"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("a,b\n", "has no rows"),
        ("a,b\n1,2.5\n", "column 'b' of .*data.csv has 1 different value, such as 2.5"),
        ("1,0\n1\n", "1 entry,"),
        (",a\n0,1\n1,1\n", "column 1 of .*data.csv: a variable's name is a non-empty"),
        ('a,"b\nc"\n1,0\n', "column 2 of .*data.csv: a variable's name"),
    ],
)
def test_bad_tables(tmp_path, monkeypatch, text, message):
    path = tmp_path / "data.csv"
    path.write_text(text)
    monkeypatch.setattr(MODELS["simple-pgc"], "fit", lambda *args, **said: pytest.fail("it has begun"))
    with pytest.raises(PgccError, match=message):
        call(path, output=str(tmp_path / "model.npz"))


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"words": ["more"]}, "unexpected 'more'"),
        ({"nonsense": True}, "unknown option --nonsense"),
        ({"model": "tree"}, "invalid choice: 'tree'"),
        ({"epochs": "many"}, "invalid int value: 'many'"),
        ({"output": None}, "expected -o"),
        ({"model": "chow-liu", "components": 3}, "--components means nothing for chow-liu"),
        ({"model": "dpp", "max_group": 3}, "--max-group means nothing for dpp"),
    ],
)
def test_bad_usage(table, tmp_path, said, message):
    words = said.pop("words", [])
    with pytest.raises(PgccError, match=message):
        call(table, *words, **{"output": str(tmp_path / "model.npz"), **said})


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"output": "model.doc"}, "cannot write the format '.doc'"),
        ({"output": "no/such/model.npz"}, "No such file or directory"),
        ({"output": "folder.npz", "force": True}, "Is a directory"),
    ],
)
def test_what_cannot_be_written_is_said_before_the_work(table, tmp_path, monkeypatch, said, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.npz").mkdir()
    monkeypatch.setattr(fit, "read_data", lambda *args: pytest.fail("it has begun"))
    with pytest.raises(PgccError, match=message):
        call(table, **said)


def test_nothing_is_said(fail):
    assert fail("fit") == "expected DATA (see pgcc fit --help)"


def test_a_budget_in_seconds(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("pgcc.learn.ensembles.stacked_ensemble.default_candidates", lambda seed: [ChowLiu()])
    path, out = tmp_path / "data.csv", tmp_path / "model.npz"
    path.write_text("a,b\n" + "1,0\n0,1\n1,1\n" * 20)
    called = ["fit", str(path), "-o", str(out)]
    assert main([*called, "--budget", "20"]) == 0
    assert pgcc.load(out).variables == ("a", "b")
    assert "together, weights cross-fitted" in capsys.readouterr().out
    assert main([*called, "--force", "--model", "simple-pgc", "--budget", "1"]) == 2
    assert "--budget means nothing for simple-pgc" in capsys.readouterr().err
    assert main([*called, "--force", "--model", "stacked-ensemble", "--budget", "0"]) != 0
    assert "--budget" in capsys.readouterr().err
