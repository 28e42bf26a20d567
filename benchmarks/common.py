"""Timing, tables and child processes for the benchmarks."""

from __future__ import annotations

import json
import math
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("PGCC_DATA", ROOT.parent / "shared" / "data"))


@dataclass
class Table:
    """Figures with a title, and what is required of them in the notes."""

    title: str
    columns: list[str]
    rows: list[list[Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, *cells: Any) -> None:
        self.rows.append(list(cells))

    def __str__(self) -> str:
        cells = [self.columns, *([_text(x) for x in row] for row in self.rows)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = ["  ".join(map(_aligned, row, widths, range(len(row)))) for row in cells]
        lines.insert(1, "  ".join("-" * w for w in widths))
        return "\n".join([self.title, *(f"  {line}".rstrip() for line in lines), *(f"  {note}" for note in self.notes)])

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def _aligned(text: str, width: int, column: int) -> str:
    return text.ljust(width) if column == 0 else text.rjust(width)


def _text(x: Any) -> str:
    if x is None:
        return "–"
    if isinstance(x, bool):
        return "yes" if x else "NO"
    if isinstance(x, float):
        return _number(x)
    return f"{x:,}" if isinstance(x, int) else str(x)


def _number(x: float) -> str:
    """Three significant digits, in plain decimals where they are readable."""
    if x == 0 or not math.isfinite(x):
        return str(x)
    digits = 2 - math.floor(math.log10(abs(x)))
    if digits <= 0:
        return f"{round(x, digits):,.0f}" if abs(x) < 1e9 else f"{x:.3g}"
    return f"{x:.{digits}f}" if digits <= 6 else f"{x:.2e}"


def best(function: Callable[[], Any], repeat: int = 5, budget: float = 20.0) -> float:
    """The fewest seconds that a call took, of `repeat` calls, or what the budget of seconds allows, but 2 at least.

    A first call is not counted: caches fill, and pgcc makes some parts of a model when they are first needed.
    """
    return best_of({"": function}, repeat, budget)[""]


def best_of(
    functions: Mapping[str, Callable[[], Any]],
    repeat: int = 5,
    budget: float = 20.0,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, float]:
    """The same for several that are to be compared: they take turns, so that a noisy minute hits all of them.

    With ``clock=time.process_time`` the time in which others had the core does not count; for one thread only.
    """
    for function in functions.values():
        function()
    fewest = dict.fromkeys(functions, math.inf)
    spent = dict.fromkeys(functions, 0.0)
    for round_ in range(repeat):
        for name, function in functions.items():
            if round_ >= 2 and spent[name] + fewest[name] > budget:
                continue
            start = clock()
            function()
            seconds = clock() - start
            fewest[name], spent[name] = min(fewest[name], seconds), spent[name] + seconds
    return fewest


def per_call(function: Callable[[], Any], seconds: float = 0.2, repeat: int = 5) -> float:
    """Seconds of one call of something short."""
    calls = max(1, int(seconds / repeat / max(best(function, 3), 1e-7)))

    def many() -> None:
        for _ in range(calls):
            function()

    return best(many, repeat) / calls


def fitted_exponent(sizes: list[float], seconds: list[float]) -> float:
    """k in seconds ≈ c · size^k, by least squares on logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def in_child(code: str, *args: str, timeout: float = 600.0) -> Any:
    """Run Python in a process of its own; what it prints last must be JSON, which is returned."""
    done = subprocess.run(
        [sys.executable, "-c", code, *args], cwd=ROOT, capture_output=True, text=True, timeout=timeout, check=False
    )
    if done.returncode:
        raise RuntimeError(f"the child process failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def peak_megabytes() -> float:
    """The most memory this process ever had in RAM.

    Not `getrusage`: its ru_maxrss survives exec, so that a child process starts with the peak of its parent.
    """
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024


@contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    """Raise TimeoutError in the main thread after so many seconds."""
    import signal

    def stop(*_: Any) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def machine() -> str:
    """What this ran on."""
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [line.split(":")[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")]
        model = names[0] if names else model
    return f"{os.cpu_count()} cores ({model}), Python {platform.python_version()}, numpy {np.__version__}"
