"""What the machine allows, and how much of it the kernel uses."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import pgcc
from benchmarks import kernels
from benchmarks.circuits import random_circuit, random_evidence, variables_for
from benchmarks.common import Table, best
from pgcc.backend.kernels.linear import pack_codes, run_linear
from pgcc.backend.loop import aligned
from pgcc.lowering.program import DOT, MORE, SUM, TIMES, Program

BLOCK = 128  # rows
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
    small = np.full(16 * 9, 1e-9)
    peaks = {"multiply-adds (registers)": _rate(lambda: kernels.multiply_adds(small, 100_000), 100_000 * 16 * 8)}
    near = np.full(_L1, 0.5)
    peaks["w·x·y terms (nearest cache)"] = _rate(lambda: kernels.dot_products(near, 300), 300 * _L1 / 2)
    for name, size in (("L1", _L1), ("L2", _L2), ("memory", _MEMORY)):
        data = np.full(size, 0.5)
        rounds = max(1, (1 << 22) // size)
        peaks[f"bytes read, {name}"] = _rate(lambda d=data, r=rounds: kernels.read(d, r), rounds * size * 8)
    return peaks


def _rate(function, amount: float) -> float:
    function()
    return amount / best(function, 20, 5.0)


def _achieved(peaks: dict[str, float]) -> Table:
    table = Table(
        "machine: what the kernel does with it (one core, evidence already packed)",
        ["edges", "work KB", "10⁹ mul-adds/s", "of peak", "GB/s", "of L1", "of L2", "10⁹ terms/s", "of peak"],
        notes=[
            "mul-adds: 1 per term of a SUM, 2 per term of a DOT (one a multiplication), 1 per factor of a product.",
            "GB/s: values read and written by instructions, wherever they lie. terms: additions into sums.",
        ],
    )
    flops, l1, l2 = peaks["multiply-adds (registers)"], peaks["bytes read, L1"], peaks["bytes read, L2"]
    terms_peak = peaks["w·x·y terms (nearest cache)"]
    for edges in EDGES:
        n = variables_for(edges)
        program = pgcc.compile(random_circuit(edges, n), normalize=False)._compiled.direct.program
        seconds = kernel_seconds(program, random_evidence(max(BLOCK, 30_000_000 // edges // BLOCK * BLOCK), n))
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


def kernel_seconds(program: Program, evidence: np.ndarray) -> float:
    """Seconds per row of the float64 kernel alone."""
    blocks = len(evidence) // BLOCK
    codes = np.zeros((blocks, program.n_variables * BLOCK), np.uint8)
    pack_codes(evidence.reshape(-1).view(np.uint8), program.n_variables, 0, BLOCK, codes)
    work, out = aligned(program.slots * BLOCK), np.empty((1, blocks * BLOCK))
    roots = np.array([program.value])
    return best(lambda: run_linear(*program.arrays, codes, BLOCK, work, roots, out), 15, 5.0) / len(evidence)


def _counts(program: Program) -> tuple[int, int, int]:
    """Multiply-adds, values read or written, and terms of sums, per row."""
    lengths = np.diff(program.start)
    read = {kind: int(lengths[program.op == kind].sum()) for kind in (DOT, MORE, SUM, TIMES)}
    pairs = read[DOT] + read[MORE]
    adds = pairs + read[SUM] + read[TIMES]
    return adds, sum(read.values()) + len(program.op), pairs // 2 + read[SUM]
