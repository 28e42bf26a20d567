"""Compiled kernels on disk: shared by processes, never stale, and no obstacle where nothing can be kept."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

# A package whose name begins as pgcc's does: a kernel in one module, which calls one in another.
CALLED = """
from pgcc.kernels.policy import kernel

@kernel
def double(x):
    return {factor} * x
"""
CALLING = """
from pgcc.kernels.policy import kernel
from pgcc_like.called import double

@kernel
def total(values):
    found = 0.0
    for i in range(values.size):
        found += double(values[i])
    return found
"""
# Prints the value, and whether the kernel was loaded from disk.
ASK = """
import numpy as np
from pgcc_like.calling import total
print(total(np.arange(4.0)), sum(total.dispatcher.stats.cache_hits.values()))
"""


@pytest.fixture
def place(tmp_path):
    """A folder with the package and an empty cache."""
    (tmp_path / "pgcc_like").mkdir()
    (tmp_path / "pgcc_like" / "__init__.py").touch()
    (tmp_path / "pgcc_like" / "calling.py").write_text(CALLING)
    (tmp_path / "pgcc_like" / "called.py").write_text(CALLED.format(factor=2.0))
    (tmp_path / "cache").mkdir()
    return tmp_path


def start(place: Path, **environment: str) -> subprocess.Popen[str]:
    paths = os.pathsep.join([str(place), *filter(None, sys.path)])
    settings = {"PGCC_CACHE_DIR": str(place / "cache"), "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.Popen(
        [sys.executable, "-c", ASK],
        env={**os.environ, **settings, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def answer(process: subprocess.Popen[str]) -> tuple[float, int]:
    out, err = process.communicate()
    assert process.returncode == 0, err
    value, hits = out.split()
    return float(value), int(hits)


def files(place: Path) -> list[Path]:
    return sorted((place / "cache").iterdir())


@pytest.mark.slow
def test_a_kernel_is_compiled_once(place):
    assert answer(start(place)) == (12.0, 0)
    assert answer(start(place)) == (12.0, 1)
    assert all(path.suffix == ".kernel" for path in files(place))


@pytest.mark.slow
def test_a_kernel_that_it_calls_has_changed(place):
    """In a file of its own, of the same length and age: what Numba's own cache does not see."""
    answer(start(place))
    called = place / "pgcc_like" / "called.py"
    before = called.stat()
    called.write_text(CALLED.format(factor=3.0))
    os.utime(called, (before.st_atime, before.st_mtime))
    assert answer(start(place)) == (18.0, 0)
    called.write_text(CALLED.format(factor=2.0))
    assert answer(start(place)) == (12.0, 1)


@pytest.mark.slow
def test_another_processor(place):
    answer(start(place))
    assert answer(start(place, NUMBA_CPU_NAME="generic")) == (12.0, 0)
    assert answer(start(place)) == (12.0, 1)


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["emptied", "cut", "flipped"])
def test_damaged_files(place, damage):
    answer(start(place))
    for path in files(place):
        data = bytearray(path.read_bytes())
        if damage == "flipped":
            data[len(data) // 2] ^= 1
        path.write_bytes({"emptied": b"", "cut": bytes(data[:-100]), "flipped": bytes(data)}[damage])
    assert answer(start(place)) == (12.0, 0)
    assert answer(start(place)) == (12.0, 1)


@pytest.mark.slow
def test_files_under_each_others_names(place):
    """Each is what some kernel was compiled to, but not the one named: running it would call another function."""
    answer(start(place))
    (place / "pgcc_like" / "calling.py").write_text(CALLING.replace("found = 0.0", "found = 100.0"))
    assert answer(start(place)) == (112.0, 0)
    paths = files(place)
    contents = [path.read_bytes() for path in paths]
    for path, content in zip(paths, [*contents[1:], contents[0]], strict=True):
        path.write_bytes(content)
    assert answer(start(place)) == (112.0, 0)
    assert answer(start(place)) == (112.0, 1)


def test_a_file_belongs_to_its_name(tmp_path, caplog):
    from pgcc.kernels.cache import _read, _write

    path, other = tmp_path / "one-0.kernel", tmp_path / "two-0.kernel"
    _write(path, b"machine code")
    assert _read(path) == b"machine code"
    path.rename(other)
    assert _read(other) is None
    assert not other.exists()
    assert "two-0.kernel" in caplog.text


@pytest.mark.slow
def test_no_folder_can_be_written(place):
    """A file where the folder should be: that is refused whoever asks, unlike a folder without permissions."""
    (place / "cache").rmdir()
    (place / "cache").touch()
    assert answer(start(place)) == (12.0, 0)
    assert answer(start(place)) == (12.0, 0)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other permissions")
@pytest.mark.parametrize("mode", [0o777, 0o770])
def test_a_folder_in_which_others_may_write_is_not_read(place, mode):
    answer(start(place))
    (place / "cache").chmod(mode)
    assert answer(start(place)) == (12.0, 0)


@pytest.mark.slow
def test_processes_at_the_same_time(place):
    assert {answer(process)[0] for process in [start(place) for _ in range(3)]} == {12.0}
    assert answer(start(place)) == (12.0, 1)
    assert all(path.suffix == ".kernel" for path in files(place))


def test_kernels_of_versions_that_are_gone_are_deleted(place):
    old, recent = place / "cache" / "old-0.kernel", place / "cache" / "recent-0.kernel"
    for path in (old, recent):
        path.touch()
    os.utime(old, (0.0, 0.0))
    answer(start(place))
    assert not old.exists()
    assert recent.exists()
