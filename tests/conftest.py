"""Fixtures that several test files share."""

from __future__ import annotations

import os
import subprocess
import sys
import zlib

import how_many
import pytest
from hypothesis import is_hypothesis_test, settings
from mutations import digest_of_code

from pgcc import cli
from pgcc.kernels.folder import kept_kernels
from pgcc.kernels.policy import check_types, choose_tier


def pytest_configure(config):
    """Have the types of kernels' arguments checked, choose how many random cases there are, and compile kernels.

    Where nothing has been compiled yet, that is done once, on all cores: every worker would do it for itself.
    """
    check_types(True)
    how_many.thorough = config.option.markexpr != "not slow"
    settings.register_profile("pgcc", max_examples=how_many.some(100))
    settings.load_profile("pgcc")
    if getattr(config.option, "numprocesses", None) and not hasattr(config, "workerinput") and not kept_kernels():
        subprocess.run([sys.executable, "-m", "pgcc", "warmup"], check=True, stdout=subprocess.DEVNULL)


def pytest_addoption(parser):
    parser.addoption(
        "--adversary", type=int, default=0, metavar="N", help="compare at least N adversarial numbers with exact ones"
    )
    parser.addoption(
        "--one-in",
        type=int,
        default=1,
        metavar="N",
        help="of slow tests one in N, others after every change of pgcc",
    )


def pytest_itemcollected(item):
    """Laws of random cases are tried on more of them among the slow tests."""
    function = getattr(item, "function", None)
    if how_many.thorough and (is_hypothesis_test(function) or "family" in getattr(item, "fixturenames", ())):
        item.add_marker("slow")


def pytest_collection_modifyitems(config, items):
    """A sample of the slow tests: all cases of a function, or none."""
    share = config.getoption("--one-in")
    if share > 1:
        seed = digest_of_code()
        left_out = {item for item in items if item.get_closest_marker("slow") and number(seed, item) % share}
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = [item for item in items if item not in left_out]


def number(seed, item) -> int:
    """The same for all cases of a function."""
    return zlib.crc32(f"{seed} {item.nodeid.partition('[')[0]}".encode())


@pytest.fixture(autouse=True)
def compiled():
    """Kernels are compiled, however small the work of a test: it is about what large work runs on.

    With NUMBA_DISABLE_JIT=1, there are no compiled ones: tests of formulas are quicker so (see `mutations`).
    """
    before = choose_tier("interpreted" if os.environ.get("NUMBA_DISABLE_JIT") == "1" else "compiled")
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
