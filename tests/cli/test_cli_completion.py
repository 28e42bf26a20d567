"""`pgcc completion`: what bash completes, by its own means; and the script for zsh."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from pgcc.cli.completion import _commands, bash_script, zsh_script

# Asks for the completion of several lines, whose last words may be empty; the words of an answer stand on one line.
ASK = """
ask() {{ COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _pgcc; echo "${{COMPREPLY[*]}}"; }}
ask pgcc ''
ask pgcc ma
ask pgcc query model.npz --k
ask pgcc query --kernel ''
ask pgcc query --kernel f
ask pgcc query --evidence ''
ask pgcc query mod
ask pgcc fit data.csv --model c
ask pgcc completion ''
ask pgcc nosuch --
ask pgcc query a=1 --meth
ask pgcc query --method b
"""


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash():
    asked = subprocess.run(
        ["bash", "--norc", "-u"], input=bash_script() + ASK.format(), capture_output=True, text=True, check=False
    )
    commands, *others = asked.stdout.splitlines()
    assert {"query", "fit", "completion", "--help", "--version"} < set(commands.split())
    assert others == [
        "marginals",
        "--kernel --killing --keep",
        "L K factor",
        "factor",
        "",  # a file, which bash completes itself
        "",
        "chow-liu",
        "bash zsh",
        "",
        "--method",
        "bottom ball",
    ], asked.stderr


@pytest.mark.skipif(shutil.which("zsh") is None, reason="there is no zsh")
def test_zsh_reads_it():
    subprocess.run(["zsh", "-n"], input=zsh_script(), text=True, check=True)


def test_zsh():
    script = zsh_script()
    assert script.startswith("#compdef pgcc\n")
    assert "'fit:learn a model from data'" in script
    assert "'--kernel[the kind of matrix in a .npy, .csv or .npz FILE (L)]:kernel:(L K factor)'" in script
    assert "'--evidence[" in script
    assert "'1:shell:(bash zsh)'" in script


@pytest.mark.parametrize("script", [bash_script, zsh_script])
def test_every_option_is_there(script):
    text = script()
    for parser in _commands().values():
        assert all(option in text for action in parser._actions for option in action.option_strings)


def test_the_command(run, fail):
    assert run("completion", "bash") == bash_script()
    assert run("completion", "zsh") == zsh_script()
    assert "invalid choice: 'fish'" in fail("completion", "fish")
    assert "are required" in fail("completion")
