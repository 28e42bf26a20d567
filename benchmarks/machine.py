"""What the machine allows, and how much of it the kernel uses."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import pgcc
from benchmarks import kernels
from benchmarks.circuits import random_circuit, random_evidence, variables_for
from benchmarks.common import Table, best
from pgcc.program.condense import Condensed
from pgcc.program.program import SUM, TIMES
from pgcc.rings.float64.loop import Loop, aligned

BLOCK = 256  # rows
EDGES = (100, 1_000, 10_000, 100_000, 1_000_000)
_L1, _L2, _MEMORY = 1 << 12, 1 << 17, 1 << 26  # doubles: 32 KB, 1 MB, 512 MB


def run() -> Iterator[Table]:
    peaks = _peaks()
    table = Table("machine: what one core allows, measured", ["what", "10⁹ per second"])
    for name, rate in peaks.items():
        table.add(name, rate / 1e9)
    yield table
    yield _achieved(peaks)


def _peaks() -> dict[str, float]:
    small = _numbers(16 * 9, 1e-9)
    peaks = {"multiply-adds (registers)": _rate(lambda: kernels.multiply_adds(small, 100_000), 100_000 * 16 * 8)}
    near = _numbers(_L1)
    peaks["w·x·y terms (nearest cache)"] = _rate(lambda: kernels.dot_products(near, 300), 300 * _L1 / 2)
    for name, size in (("L1", _L1), ("L2", _L2), ("memory", _MEMORY)):
        data = _numbers(size)
        rounds = max(1, (1 << 22) // size)
        peaks[f"bytes read, {name}"] = _rate(lambda d=data, r=rounds: kernels.read(d, r), rounds * size * 8)
    return peaks


def _numbers(size: int, number: float = 0.5) -> np.ndarray:
    """Doubles from the start of a cache line on: the best case, which is the kernel's."""
    data = aligned(size)
    data[:] = number
    return data


def _rate(function, amount: float) -> float:
    function()
    return amount / best(function, 20, 5.0)


def _achieved(peaks: dict[str, float]) -> Table:
    table = Table(
        "machine: what the kernel does with it (one core, packing of evidence included)",
        ["edges", "work KB", "10⁹ mul-adds/s", "of peak", "GB/s", "of L1", "of L2", "10⁹ terms/s", "of peak"],
        notes=[
            "mul-adds: 1 per term w·x, 2 per term w·x·y (one a multiplication), 1 per factor of a product; none for",
            "values of two variables, which are looked up. GB/s: values read and written by instructions, wherever",
            "they lie. terms: additions into sums.",
        ],
    )
    flops, l1, l2 = peaks["multiply-adds (registers)"], peaks["bytes read, L1"], peaks["bytes read, L2"]
    terms_peak = peaks["w·x·y terms (nearest cache)"]
    for edges in EDGES:
        n = variables_for(edges)
        full = pgcc.compile(random_circuit(edges, n), normalize=False)._compiled.program
        loop = Loop(full, [full.value], BLOCK)
        program, rows = loop.condensed, random_evidence(max(BLOCK, 30_000_000 // edges // BLOCK * BLOCK), n)
        seconds = best(lambda loop=loop, rows=rows: loop.values(rows), 15, 5.0) / len(rows)
        adds, values, terms = _counts(program)
        table.add(
            f"{edges:,}", program.slots * BLOCK * 8 / 1024,
            adds / seconds / 1e9, _share(adds / seconds, flops),
            values * 8 / seconds / 1e9, _share(values * 8 / seconds, l1), _share(values * 8 / seconds, l2),
            terms / seconds / 1e9, _share(terms / seconds, terms_peak),
        )  # fmt: skip
    return table


def _share(part: float, whole: float) -> str:
    return f"{part / whole:.0%}"


def _counts(program: Condensed) -> tuple[int, int, int]:
    """Multiply-adds, values read or written, and terms of sums, per row of a condensed program."""
    lengths, weights = np.diff(program.start), np.diff(program.first_weight)
    factors = int(lengths[program.op == TIMES].sum())
    read, terms = int(lengths[program.op == SUM].sum()), int(weights[program.op == SUM].sum())
    return read + factors, read + factors + len(program.op), terms
