"""Fixtures that several test files share."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pgcc import cli
from pgcc.kernels.folder import has_kernels
from pgcc.kernels.policy import choose_tier


def pytest_configure(config):
    """Where nothing has been compiled yet, do it once, on all cores: every worker would do it for itself."""
    if getattr(config.option, "numprocesses", None) and not hasattr(config, "workerinput") and not has_kernels():
        subprocess.run([sys.executable, "-m", "pgcc", "warmup"], check=True, stdout=subprocess.DEVNULL)


def pytest_addoption(parser):
    parser.addoption(
        "--adversary", type=int, default=0, metavar="N", help="compare at least N adversarial numbers with exact ones"
    )


@pytest.fixture(autouse=True)
def compiled():
    """Kernels are compiled, however small the work of a test: it is about what large work runs on."""
    before = choose_tier("compiled")
    yield
    choose_tier(before)


@pytest.fixture
def run(capsys):
    """What a command that succeeds prints."""

    def run(*arguments: object) -> str:
        assert cli.main(list(map(str, arguments))) == 0, capsys.readouterr().err
        return capsys.readouterr().out

    return run


@pytest.fixture
def fail(capsys):
    """The one line of error of a command that is refused."""

    def fail(*arguments: object) -> str:
        assert cli.main(list(map(str, arguments))) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        (line,) = captured.err.splitlines()
        return line.removeprefix("pgcc: ")

    return fail
