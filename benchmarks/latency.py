"""The command line as a whole process, and single queries in a running one."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pgcc
from benchmarks.circuits import random_circuit, variables_for
from benchmarks.common import ROOT, Table, best_of, per_call

REPEAT = 10
BETA = "(0.1*(z1 + 1)*(6*z2 + 1) - 0.4*z1*z2) * (0.8*z3 + 0.2)\n"


def run() -> Iterator[Table]:
    yield _process()
    yield _single_queries()


def _process() -> Table:
    table = Table(
        "latency: a whole process, warm cache", ["process", "seconds", "ratio"], notes=["required: ratio ≤ 3"]
    )
    if importlib.util.find_spec("pgcc.cli") is None:
        table.notes = ["skipped: pgcc.cli is not there yet"]
        return table
    with tempfile.TemporaryDirectory() as folder:
        example = ROOT / "examples" / "beta.pgc"
        if not example.exists():
            example = Path(folder) / "beta.pgc"
            example.write_text(BETA)
        query = "import sys; from pgcc.cli import main; sys.exit(main(sys.argv[1:]))"
        seconds = best_of(
            {
                "python -c 'import numpy, numba'": _process_of("import numpy, numba"),
                "pgcc query beta.pgc 'z2=0, z3=0'": _process_of(query, "query", str(example), "z2=0, z3=0"),
            },
            REPEAT,
            60.0,
        )
    base = min(seconds, key=lambda name: name.startswith("pgcc"))
    for name, each in seconds.items():
        table.add(name, each, each / seconds[base])
    return table


def _process_of(code: str, *args: str) -> Callable[[], None]:
    command = [sys.executable, "-c", code, *args]

    def call() -> None:
        subprocess.run(command, cwd=ROOT, check=True, capture_output=True)

    return call


def _single_queries() -> Table:
    table = Table("latency: one query in a running process", ["edges", "prob(dict), µs", "exact=True, µs"])
    for edges in (100, 1_000, 10_000):
        model = pgcc.compile(random_circuit(edges, variables_for(edges)))
        seconds = per_call(lambda m=model: m.prob({"x1": 1}))
        table.add(f"{edges:,}", seconds * 1e6, per_call(lambda m=model: m.prob({"x1": 1}, exact=True)) * 1e6)
    return table
