"""Mistakes of newcomers, whose messages were bad once."""

from __future__ import annotations

from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "beta.pgc"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("qurey beta.pgc", "there is no command 'qurey': did you mean query? (see pgcc --help)"),
        ("help", "there is no command 'help': there are query, marginals, "),
        ("", "expected a COMMAND (see pgcc --help)"),
        ("--versoin", "unknown option --versoin: did you mean --version? (see pgcc --help)"),
        ("query beta.pgc --exakt", "unknown option --exakt: did you mean --exact? (see pgcc query --help)"),
        ("query beta.pgc --Exact", "unknown option --Exact: did you mean --exact? "),
        ("query beta.pgc --given=1", "unknown option --given (see pgcc query --help)"),
        ("query beta.pcg", "beta.pcg: there is no such file"),
        ("query beta", "beta: there is no such file"),
        ("query folder", "folder is a directory, not a circuit"),
        ("query z1=1", "there is no file 'z1=1': expected a FILE, or --expr TEXT, before the evidence"),
        ("query 0.3*rain+0.7 rain=1", "there is no file '0.3*rain+0.7'; use --expr for the polynomial itself"),
        ("sample beta.pgc 10", "to choose the number of samples, write -n 10 (see pgcc sample --help)"),
        ("compile beta.pgc -o folder", "folder cannot be written: Is a directory"),
        ("warmup --jobs 0", "--jobs 0 is not a number of processes (a number ≥ 1)"),
        ("query data.csv tea=1", "To learn a model from data: pgcc fit data.csv"),
    ],
)
def test_messages(fail, tmp_path, monkeypatch, arguments, message):
    (tmp_path / "beta.pgc").write_bytes(EXAMPLE.read_bytes())
    (tmp_path / "data.csv").write_text("tea,cake\n1,0\n0,1\n1,1\n")
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)
    assert message in fail(*arguments.split())


@pytest.mark.parametrize(
    "command", ["query RED.pgc", "query RED", "RED", "convert beta.pgc RED.doc", "score beta.pgc RED"]
)
def test_messages_do_not_control_the_terminal(fail, tmp_path, monkeypatch, command):
    """Nor does data, wherever it is quoted."""
    (tmp_path / "beta.pgc").write_bytes(EXAMPLE.read_bytes())
    monkeypatch.chdir(tmp_path)
    told = fail(*command.replace("RED", "\x1b[31m").split(" "))
    assert "\\x1b[31m" in told
    assert "\x1b" not in told
