"""`pgcc completion`: what bash completes, by its own means; and the script for zsh."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from pgcc.cli.arguments import build_parser

# Asks for the completion of a line, whose last word may be empty; the words of an answer stand on one line.
ASK = 'ask() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _shtab_pgcc; echo "${COMPREPLY[*]}"; }\n'


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash(run, tmp_path):
    (tmp_path / "beta.pgc").touch()
    lines = {
        "pgcc ma": "marginals",
        "pgcc query model.npz --k": "--kernel --killing --keep",
        "pgcc query --kernel ''": "L K factor",
        "pgcc query --kernel f": "factor",
        "pgcc query --evidence b": "beta.pgc",
        "pgcc query b": "beta.pgc",
        "pgcc fit data.csv --model c": "chow-liu continuous-mixture",
        "pgcc query a=1 --meth": "--method",
        "pgcc query --method b": "bottom ball",
        "pgcc nosuch --": "--help --version",
    }
    asked = subprocess.run(
        ["bash", "--norc"],
        input=run("completion", "bash") + ASK + "".join(f"ask {line}\n" for line in lines),
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert asked.stdout.splitlines() == list(lines.values()), asked.stderr


@pytest.mark.skipif(shutil.which("zsh") is None, reason="there is no zsh")
def test_zsh_reads_it(run):
    subprocess.run(["zsh", "-n"], input=run("completion", "zsh"), text=True, check=True)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_command_and_option_is_there(run, shell):
    script = run("completion", shell)
    for name, parser in build_parser().commands.items():
        assert name in script
        options = {option for action in parser._actions for option in action.option_strings}
        assert all(option in script or option[2:] in script for option in options)


def test_other_shells(fail):
    assert "invalid choice: 'powershell'" in fail("completion", "powershell")
    assert "are required" in fail("completion")
