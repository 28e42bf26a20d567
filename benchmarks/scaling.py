"""How time and memory grow with the circuit and with the number of rows."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pgcc
from benchmarks.circuits import random_circuit, random_evidence, variables_for
from benchmarks.common import Table, best_of, fitted_exponent, in_child

EDGES = (1_000, 10_000, 100_000, 1_000_000)
MILLION = 1_000_000


def run() -> Iterator[Table]:
    yield _time_per_row()
    yield from _compile_time()
    yield _memory()


def _time_per_row() -> Table:
    table = Table(
        "scaling: CPU time per row against edges",
        ["edges", "operations", "slots", "work KB", "µs per row", "ns per edge"],
    )
    sizes, times = [], []
    for edges in EDGES:
        n = variables_for(edges)
        circuit = random_circuit(edges, n)
        model = pgcc.compile(circuit, normalize=False)
        rows = random_evidence(max(1 << 11, (1 << 15) * 10_000 // edges // 32 * 32), n)
        seconds = best_of({"": lambda m=model, x=rows: m.prob(x)}, 15, 10.0, time.process_time)[""] / len(rows)
        program = model._compiled.float64.loop.condensed
        sizes.append(float(circuit.edges))
        times.append(seconds)
        size = program.slots * 32 * 8 / 1024
        per_edge = seconds / circuit.edges * 1e9
        table.add(f"{circuit.edges:,}", program.operations, program.slots, size, seconds * 1e6, per_edge)
    table.notes.append(f"fitted exponent {fitted_exponent(sizes, times):.3f} (required ≤ 1.1)")
    return table


def _compile_time() -> Iterator[Table]:
    stages = in_child(_STAGES, str(MILLION), str(variables_for(MILLION)))
    edges = stages.pop("edges")
    title = f"scaling: from nodes to the first answer, {edges:,} edges"
    table = Table(title, ["stage", "seconds", "CPU seconds", "CPU µs per edge", "peak MB"])
    for name, (seconds, cpu, megabytes) in stages.items():
        table.add(name, seconds, cpu, cpu / edges * 1e6, megabytes)
    counted = [stage for name, stage in stages.items() if name not in ("import", "load kernels", "build")]
    seconds, cpu = sum(stage[0] for stage in counted), sum(stage[1] for stage in counted)
    table.notes.append(f"compile and first answer: {seconds:.1f} s, CPU {cpu:.1f} s (required < 15 s and < 2,000 MB);")
    table.notes.append("CPU seconds leave out the time in which others had the core")
    yield table
    seconds, cpu, megabytes = in_child(_WHOLE, str(MILLION), str(variables_for(MILLION)))
    whole = Table(f"scaling: the same as a user calls it, {edges:,} edges", ["pgcc.compile, s", "CPU s", "peak MB"])
    whole.add(seconds, cpu, megabytes)
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
    start, cpu = time.perf_counter(), time.process_time()
    result = function()
    marks[name] = time.perf_counter() - start, time.process_time() - cpu, peak_megabytes()
    return result
start, cpu = time.perf_counter(), time.process_time()
from benchmarks.circuits import random_circuit, random_evidence
from benchmarks.common import peak_megabytes
import pgcc, pgcc.model
from pgcc.evaluate.direct import Float64
from pgcc.collector import collector_paused
from pgcc.program.lower import lower
from pgcc.passes.homogenize import homogenize
from pgcc.passes.pipeline import simplify
marks["import"] = time.perf_counter() - start, time.process_time() - cpu, peak_megabytes()
edges, variables = map(int, sys.argv[1:])
# Numba loads (or, after a change of source, compiles) the kernels: a cost of the process, not of the circuit.
stage("load kernels", lambda: pgcc.compile(random_circuit(100, 5)).prob(random_evidence(32, 5)))
circuit = stage("build", lambda: random_circuit(edges, variables))
simple = stage("simplify", lambda: simplify(circuit))
stage("scopes", lambda: simple._overlap)
homogeneous = stage("homogenize", lambda: homogenize(simple))
program = stage("lower", lambda: lower(homogeneous))
direct = stage("condense, error analysis", lambda: Float64(program))
rows = random_evidence(32, variables)
stage("first evaluation", lambda: direct.evaluate(rows, 1e-9))
marks["edges"] = circuit.edges
print(json.dumps(marks))
"""

_WHOLE = """
import json, sys, time
from benchmarks.circuits import random_circuit, random_evidence
from benchmarks.common import peak_megabytes
import pgcc, pgcc.model
circuit = random_circuit(*map(int, sys.argv[1:]))
start, cpu = time.perf_counter(), time.process_time()
pgcc.compile(circuit)
print(json.dumps([time.perf_counter() - start, time.process_time() - cpu, peak_megabytes()]))
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
