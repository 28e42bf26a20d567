"""One table of exit codes: in the code, in the help and in the documentation."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pgcc import cli
from pgcc.cli import arguments, questions
from pgcc.cli.exits import MEANING, Exit, table

DOCS = Path(__file__).parents[2] / "docs" / "guide" / "cli.md"


def test_every_code_has_a_meaning():
    assert MEANING.keys() == set(Exit)


def test_the_help_has_the_table(capsys):
    with pytest.raises(SystemExit) as exit:
        cli.main(["--help"])
    assert exit.value.code == Exit.DONE
    assert table() in capsys.readouterr().out


def test_the_documentation_has_the_table():
    rows = re.findall(r"^\| (\d+) \| (.*) \|$", DOCS.read_text(), re.MULTILINE)
    assert [int(code) for code, _ in rows] == list(Exit)
    assert [re.sub("`(pgcc[^`]*)`", r"\1", text).replace(r"\|", "|") for _, text in rows] == [
        meaning.replace("'", "") for meaning in MEANING.values()
    ]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["query", "--expr", "x"], Exit.DONE),
        (["check", "--expr", "0.5*x + 0.5"], Exit.DONE),
        (["check", "--expr", "x - 1"], Exit.REFUTED),
        (["query", "nosuch.pgc"], Exit.FAILED),
        (["nosuch"], Exit.FAILED),
        (["query", "--expr", "x", "--nosuch"], Exit.FAILED),
    ],
)
def test_codes(arguments, code, capsys):
    assert cli.main(arguments) == code


@pytest.mark.parametrize(
    ("error", "code"),
    [(KeyboardInterrupt, Exit.INTERRUPTED), (BrokenPipeError, Exit.BROKEN_PIPE), (ZeroDivisionError, 2)],
)
def test_codes_of_what_comes_from_outside(error, code, monkeypatch, capsys):
    def fail(args):
        raise error

    monkeypatch.setattr(questions, "query", fail)
    monkeypatch.setattr(cli, "_discard_output", lambda: None)
    assert cli.main(["query", "--expr", "x"]) == code


def test_commands_are_listed_once():
    listed = re.findall(r"`pgcc (\w+)`", cli.__doc__)
    (commands,) = (a for a in arguments.build_parser()._actions if getattr(a, "choices", None))
    assert sorted(listed) == sorted(commands.choices)
