"""This tree against an older commit of it: python -m benchmarks.against COMMIT [--only TEXT] [--json FILE]

Both run the same tasks (`benchmarks/tasks.py`) in processes of their own, in turns, so that a noisy minute hits both.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.common import DATA, ROOT, Table, machine
from benchmarks.tasks import TASKS

# What differs more is shown first.
TOLERANCE = 1.15


class Side:
    """A process that times tasks with the pgcc of one tree."""

    def __init__(self, tree: Path):
        environment = {**os.environ, "PYTHONPATH": str(tree), "PGCC_TIER": "compiled", "PGCC_DATA": str(DATA)}
        script = ROOT / "benchmarks" / "tasks.py"
        self._process = subprocess.Popen(
            [sys.executable, str(script)], cwd=tree, env=environment, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def time(self, name: str, seconds: float) -> float | str:
        """CPU seconds of one call, or the error."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps([name, seconds]), file=self._process.stdin, flush=True)
        answer: float | str = json.loads(self._process.stdout.readline() or '"the process ended"')
        return answer

    def close(self) -> None:
        self._process.kill()


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.against", description=__doc__.splitlines()[0])
    parser.add_argument("commit", help="an older commit of this repository")
    parser.add_argument("--only", default="", metavar="TEXT", help="tasks whose name contains this")
    parser.add_argument("--rounds", type=int, default=4, metavar="N", help="turns of each side (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=0.3, metavar="S", help="per turn (default: %(default)s)")
    parser.add_argument("--json", metavar="FILE", help="also write the figures as JSON")
    options = parser.parse_args(arguments)
    names = [name for name in TASKS if options.only in name]
    with tempfile.TemporaryDirectory() as folder:
        _unpack(options.commit, Path(folder))
        sides = {"before": Side(Path(folder)), "now": Side(ROOT)}
        try:
            found = {name: _compare(sides, name, options.rounds, options.seconds) for name in names}
        finally:
            for side in sides.values():
                side.close()
    print(_table(options.commit, found))
    if options.json:
        Path(options.json).write_text(json.dumps(found, indent=1) + "\n")
    return 0


def _unpack(commit: str, folder: Path) -> None:
    packed = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")


def _compare(sides: dict[str, Side], name: str, rounds: int, seconds: float) -> dict[str, Any]:
    """The fewest seconds of each side, or its error."""
    found: dict[str, Any] = {}
    for _ in range(rounds):
        for side, process in sides.items():
            each = process.time(name, seconds)
            before = found.get(side)
            found[side] = each if before is None or isinstance(each, str) else min(before, each)
        if any(isinstance(each, str) for each in found.values()):
            break
    numbers = all(isinstance(each, float) for each in found.values())
    ratio = found["now"] / found["before"] if numbers else None
    print(name, found, ratio if ratio is None else round(ratio, 2), file=sys.stderr, flush=True)
    return {**found, "ratio": ratio}


def _table(commit: str, found: dict[str, dict[str, Any]]) -> Table:
    table = Table(
        f"against {commit}: milliseconds of CPU per call, {machine()}",
        ["task", "before", "now", "ratio"],
        notes=[f"ratio: now over before; above {TOLERANCE} is slower than tolerated"],
    )
    for name, each in sorted(found.items(), key=lambda item: -(item[1]["ratio"] or 0.0)):
        table.add(name, *(1e3 * x if isinstance(x, float) else x for x in (each["before"], each["now"])), each["ratio"])
    return table


if __name__ == "__main__":
    sys.exit(main())
