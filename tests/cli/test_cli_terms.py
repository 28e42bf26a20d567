"""Messages in the command line's own terms: options, and not parameters of Python."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import numpy as np
import pytest

import pgcc
from pgcc.cli import arguments
from pgcc.cli.arguments import build_parser
from pgcc.errors import PgccError

ROOT = Path(pgcc.__file__).parent
COMMANDS = build_parser().commands
OPTIONS = {name: {a.dest for a in parser._actions if a.option_strings} for name, parser in COMMANDS.items()}
SQUARE = "0.5*x*x + 0.5"
# Modules whose arguments the command line does not have, although options have the same names.
PYTHON_ONLY = {"cluster.py", "plot.py"}


def test_errors_carry_the_arguments_that_they_name():
    """Otherwise people at the command line would be told what to write in Python."""
    known = set().union(*OPTIONS.values()) | arguments.OPTIONS.keys()
    forgotten = {f"{where} names {name}" for name, where in _named() if name in known}
    assert not forgotten, forgotten


def _named():
    """Arguments as `name` or as name=value in the texts of errors without an `argument` (and not in their `advice`)."""
    for path in sorted(ROOT.rglob("*.py")):
        for call in ast.walk(ast.parse(path.read_text())):
            if isinstance(call, ast.Call) and ast.unparse(call.func).endswith("Error") and path.name not in PYTHON_ONLY:
                if any(k.arg == "argument" for k in call.keywords):
                    continue
                for text in (part for argument in call.args for part in ast.walk(argument)):
                    if isinstance(text, ast.JoinedStr | ast.Constant):
                        for name in _arguments(text):
                            yield name, f"{path.relative_to(ROOT)}:{call.lineno}"


def _arguments(text: ast.JoinedStr | ast.Constant) -> list[str]:
    parts = text.values if isinstance(text, ast.JoinedStr) else [text]
    written = "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in parts)
    return [a or b for a, b in re.findall(r"`(\w+)`|(?<![\w.'\[…(])([a-z]{2,}[a-z_]*)=(?!=)", written)]


@pytest.mark.parametrize("command", [name for name in COMMANDS if "validate" in OPTIONS[name]])
def test_squares(fail, command):
    words = ["rows.csv"] if command == "score" else []
    text = fail(command, "--expr", SQUARE, *words)
    assert text == "not a generating polynomial: 'x' occurs to a power above 1; --no-validate compiles it all the same"


def test_totals(fail):
    assert fail("query", "--expr", "x - 1").endswith("; --no-normalize keeps the polynomial as it is")


def test_what_a_command_has_not_is_left_out(fail):
    assert fail("query", "--expr", "x", "--rtol", 2).endswith("and 1; --exact gives fractions")
    assert fail("marginals", "--expr", "x", "--rtol", 2).endswith("and 1")
    error = PgccError("a count is still uncertain", advice="atol=1e-10 leaves out the small ones")
    assert (
        COMMANDS["cardinality"].explain(error) == "a count is still uncertain; --atol 1e-10 leaves out the small ones"
    )
    assert COMMANDS["marginals"].explain(error) == "a count is still uncertain"


def test_values(fail):
    assert fail("sample", "--expr", "x", "-n", -1).startswith("-n -1: the number of samples is")
    assert (
        fail("sample", "--expr", "x", "--seed", -1)
        == "--seed -1 is no seed: that is an integer, 0 or more (or a numpy Generator)"
    )
    assert fail("sample", "--expr", "x", "--size", 5).startswith("--size 5: of the 1 variables that are counted")
    assert fail("sample", "--expr", "x", "--over", "x").startswith("--over says what --size counts: it means nothing")
    assert fail("check", "--expr", "x", "--time", -1).startswith("--time -1.0 is no number of seconds")


def test_kernels(fail, run, tmp_path, capsys):
    path = tmp_path / "L.npy"
    np.save(path, [[1.0, 0.5], [0.0, 1.0]])
    assert fail("query", path).endswith("; --nonsymmetric allows kernels that are not")
    assert fail("query", path, "--nonsymmetric", "--nearest").endswith(
        "--nearest: the nearest kernel is only known for symmetric ones"
    )
    np.save(path, [[1.0, 2.0], [2.0, 1.0]])
    assert fail("query", path).endswith("; --nearest takes the nearest kernel that is valid")
    np.save(path, np.ones((3, 2)))
    assert fail("query", path).endswith("; an n×r matrix B with L = B·Bᵀ is not L, but its factor")
    np.savez(tmp_path / "both.npz", L=np.eye(2), K=np.eye(2) / 2)
    assert fail("query", tmp_path / "both.npz").endswith(
        "it has the arrays L and K; --kernel 'L' says which one is meant"
    )
    assert fail("query", tmp_path / "both.npz", "--kernel", "factor").endswith("it has no array 'factor', but L, K")


def test_rank(fail, run, tmp_path, capsys):
    path, B = tmp_path / "L.npy", np.random.default_rng(0).normal(size=(6, 2))
    np.save(path, B @ B.T)
    assert pgcc.cli.main(["query", str(path)]) == 0
    told = capsys.readouterr().err
    assert "The rank 'full' keeps every number, the rank 2 says that this is meant; best is the factor" in told
    assert pgcc.cli.main(["cardinality", str(path), "--rank", "2"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert [line.split("\t")[1] for line in out.splitlines()][3:] == ["0"] * 4
    assert fail("query", path, "--rank", "9").endswith(
        "--rank 9 is neither 'full' nor a number between 0 and 6, that of the items"
    )
    assert "argument --rank: invalid" in fail("query", path, "--rank", "two")
    np.savez(tmp_path / "L.npz", L=B @ B.T)
    assert run("query", tmp_path / "L.npz", "--rank", 2)


def test_keep(fail, run, tmp_path):
    pairs = [(0, 1), (1, 2)]
    tables = "\n".join("4 0.1 0.4 0.3 0.2" for _ in pairs)
    scopes = "\n".join(f"2 {a} {b}" for a, b in pairs)
    path = tmp_path / "chain.uai"
    path.write_text(f"MARKOV\n3\n2 2 2\n{len(pairs)}\n{scopes}\n{tables}\n")
    kept = pgcc.load(path, keep=pgcc.load(path).variables[:2])
    assert run("marginals", path, "--keep", ", ".join(kept.variables)).count("\n") == 2
    assert "cannot keep 'y': the model has no such variable" in fail("query", path, "--keep", "y")
    assert fail("query", path, "--keep", "").endswith("--keep has to name at least one variable")
    assert fail("query", "--expr", "x", "--keep", "x").startswith(
        "options of kernels, graphs and networks mean nothing"
    )


def test_weights(run, tmp_path):
    (tmp_path / "one.nnf").write_text("nnf 3 2 1\nL 1\nL -1\nO 1 2 0 1\n")
    (tmp_path / "w.txt").write_text("1 0.3\n-1 0.7\n")
    assert run("query", tmp_path / "one.nnf", "x1=1", "--weights", tmp_path / "w.txt") == "0.3\n"


def test_edges(fail, tmp_path):
    path = tmp_path / "g.edges"
    path.write_text("a b\nb c\n")
    assert fail("query", path, "--orientation", "in").endswith("--orientation 'in' means nothing without a root")
    assert "only directed graphs have a root; killing rates are for" in fail(
        "query", path, "--root", "a", "--killing", "1"
    )
    path.write_text("a b\nc d\n")
    assert fail("query", path).endswith(
        "there is no spanning tree; --killing RATE makes it rooted forests (pgcc.spanning_forest)"
    )


def test_fit(fail, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a,b\n" + "1,0\n0,1\n1,1\n" * 4)
    into = ["-o", tmp_path / "m.npz"]
    assert fail("fit", path, *into, "--components", 0).startswith("--components 0: expected a whole number")
    assert fail("fit", path, *into, "--epochs", -1).startswith("--epochs -1: ")
    assert fail("fit", path, *into, "--seed", -1) == "--seed -1: expected a whole number, at least 0"
    assert fail("fit", path, *into, "--threads", 0) == "--threads 0: it is a number of threads, −1 for one a processor"
    assert fail("fit", path, *into, "--budget", 0) == "--budget 0.0: expected a finite number > 0"
    assert "--max-group means nothing for stacked-ensemble" in fail("fit", path, *into, "--budget", 9, "--max-group", 2)


def test_what_the_user_wrote_stays(fail):
    """Names of variables may be those of parameters."""
    assert "'size=2'" in fail("sample", "--expr", "0.5*size + 0.5", "size=2")
    text = fail("marginals", "--expr", "size*rank", "size=0, rank=1")
    assert text.startswith("evidence size=0, rank=1 has probability 0")
