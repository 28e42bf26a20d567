"""How time and memory grow with the circuit and with the number of rows."""

from __future__ import annotations

from collections.abc import Iterator

import pgcc
from benchmarks.circuits import random_circuit, random_evidence, variables_for
from benchmarks.common import Table, best, fitted_exponent, in_child

EDGES = (1_000, 10_000, 100_000, 1_000_000)
MILLION = 1_000_000


def run() -> Iterator[Table]:
    yield _time_per_row()
    yield from _compile_time()
    yield _memory()


def _time_per_row() -> Table:
    table = Table(
        "scaling: time per row against edges",
        ["edges", "operations", "slots", "work KB", "µs per row", "ns per edge"],
    )
    sizes, times = [], []
    for edges in EDGES:
        n = variables_for(edges)
        circuit = random_circuit(edges, n)
        model = pgcc.compile(circuit, normalize=False)
        rows = random_evidence(max(1 << 11, (1 << 15) * 10_000 // edges // 32 * 32), n)
        seconds = best(lambda m=model, x=rows: m.prob(x), 15, 10.0) / len(rows)
        program = model._compiled.direct.program
        sizes.append(float(circuit.size))
        times.append(seconds)
        size = program.slots * 32 * 8 / 1024
        table.add(f"{circuit.size:,}", program.operations, program.slots, size, seconds * 1e6, seconds / circuit.size * 1e9)
    table.notes.append(f"fitted exponent {fitted_exponent(sizes, times):.3f} (required ≤ 1.1)")
    return table


def _compile_time() -> Iterator[Table]:
    stages = in_child(_STAGES, str(MILLION), str(variables_for(MILLION)))
    edges = stages.pop("edges")
    table = Table(f"scaling: from nodes to the first answer, {edges:,} edges", ["stage", "seconds", "µs per edge", "peak MB"])
    for name, (seconds, megabytes) in stages.items():
        table.add(name, seconds, seconds / edges * 1e6, megabytes)
    total = sum(seconds for name, (seconds, _) in stages.items() if name not in ("import", "build"))
    table.notes.append(f"compile and first answer, without building: {total:.1f} s (required < 15 s and < 2,000 MB)")
    yield table
    seconds, megabytes = in_child(_WHOLE, str(MILLION), str(variables_for(MILLION)))
    whole = Table(f"scaling: the same as a user calls it, {edges:,} edges", ["pgcc.compile, s", "peak MB"])
    whole.add(seconds, megabytes)
    yield whole


def _memory() -> Table:
    table = Table(
        "scaling: peak memory against rows (1,000 edges, 32 variables)",
        ["rows", "in and out MB", "beyond them MB", "threads=2"],
        notes=["beyond them: what prob() adds to the peak of the process, less its result; required not to grow"],
    )
    for rows in (10_000, 100_000, 1_000_000):
        arrays, one = in_child(_ROWS, str(rows), "1")
        table.add(f"{rows:,}", arrays, one, in_child(_ROWS, str(rows), "2")[1])
    return table


_STAGES = """
import json, sys, time
marks = {}
def stage(name, function):
    start = time.perf_counter()
    result = function()
    marks[name] = time.perf_counter() - start, peak_megabytes()
    return result
start = time.perf_counter()
from benchmarks.circuits import random_circuit, random_evidence
from benchmarks.common import peak_megabytes
import pgcc, pgcc.model
from pgcc.backend.direct import Direct
from pgcc.ir.bulk import collector_paused
from pgcc.lowering.lower import lower
from pgcc.passes.homogenize import homogenize
from pgcc.passes.pipeline import simplify
marks["import"] = time.perf_counter() - start, peak_megabytes()
edges, variables = map(int, sys.argv[1:])
circuit = stage("build", lambda: random_circuit(edges, variables))
simple = stage("simplify", lambda: simplify(circuit))
stage("facts", lambda: simple.facts)
homogeneous = stage("homogenize", lambda: homogenize(simple))
program = stage("lower", lambda: lower(homogeneous))
direct = Direct(program)
stage("schedule", lambda: direct.program)
stage("error analysis", lambda: (direct.gamma, direct.floor))
rows = random_evidence(32, variables)
stage("first evaluation", lambda: direct.evaluate(rows, 1e-9, 1))
marks["edges"] = circuit.size
print(json.dumps(marks))
"""

_WHOLE = """
import json, sys, time
from benchmarks.circuits import random_circuit, random_evidence
from benchmarks.common import peak_megabytes
import pgcc, pgcc.model
circuit = random_circuit(*map(int, sys.argv[1:]))
start = time.perf_counter()
pgcc.compile(circuit)
print(json.dumps([time.perf_counter() - start, peak_megabytes()]))
"""

_ROWS = """
import json, sys
from benchmarks.circuits import random_circuit, random_evidence
from benchmarks.common import peak_megabytes
import numpy as np, pgcc
rows, threads = map(int, sys.argv[1:])
model = pgcc.compile(random_circuit(1000, 32), normalize=False)
model.prob(random_evidence(1000, 32), threads=threads)
evidence = np.tile(random_evidence(1000, 32), (rows // 1000, 1))
before = peak_megabytes()
out = model.prob(evidence, threads=threads)
print(json.dumps([(evidence.nbytes + out.nbytes) / 2**20, peak_megabytes() - before - out.nbytes / 2**20]))
"""
