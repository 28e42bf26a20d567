"""What a new user waits for: first uses in new processes with an empty cache, and the kernels that they compile.

CPU time, as a multiple of importing numpy and Numba in the same run.
"""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator

from benchmarks.common import ROOT, Table

LOGGING = "import logging; logging.basicConfig(format='%(message)s'); logging.getLogger('pgcc').setLevel('DEBUG')\n"
COMMAND = "import sys; from pgcc.cli import main; sys.exit(main(sys.argv[1:]))"
CIRCUIT = """
import pgcc
m = pgcc.compile(pgcc.parse("(0.1*(z1 + 1)*(6*z2 + 1) - 0.4*z1*z2) * (0.8*z3 + 0.2)"))
m.logprob([[1, 0, 1], [0, 0, 0], [1, 1, -1], [-1, 0, 1], [-1, -1, -1]])
m.marginals()
"""
DPP = """
import pgcc
m = pgcc.compile(pgcc.dpp(L=[[2.0, 0.5, 0.1], [0.5, 1.0, 0.3], [0.1, 0.3, 1.5]]))
m.prob({"x1": 1}); m.marginals(); m.sample(5, rng=0); m.mode()
"""
FIT = """
import numpy as np
from pgcc.learn import SimplePGC
rows = (np.random.default_rng(0).random((300, 6)) < 0.4).astype(np.int8)
SimplePGC(2, 1, max_iter=5).fit(rows).score(rows)
"""
# What is done, the code with its arguments, and how much of it is wanted at most.
USES = [
    ('pgcc query beta.pgc "z2=0, z3=0"', ("-c", LOGGING + COMMAND, "query", "examples/beta.pgc", "z2=0, z3=0"), 3),
    ("circuit: compile, logprob of five rows, marginals", ("-c", LOGGING + CIRCUIT), 10),
    ("DPP of three items: compile, prob, marginals, sample, mode", ("-c", LOGGING + DPP), 15),
    ("pgcc sample roads.edges", ("-c", LOGGING + COMMAND, "sample", "examples/roads.edges"), 15),
    ("SimplePGC(2, 1, max_iter=5).fit on 300 rows, score", ("-c", LOGGING + FIT), 40),
    ("the README's tour as doctest", ("-m", "pytest", "-q", "--doctest-glob=README.md", "README.md"), 120),
]


def run() -> Iterator[Table]:
    base = min(_cpu("-c", "import numpy, numba")[0] for _ in range(3))
    uses = Table(
        "first use: a new process with an empty cache", ["use", "CPU s", "× numba", "wanted", "kernels", "warm, s"]
    )
    compiled: Counter[str] = Counter()
    for name, args, wanted in USES:
        with tempfile.TemporaryDirectory() as folder:
            seconds, log = _cpu(*args, cache=folder)
            warm, _ = _cpu(*args, cache=folder)
        kernels = re.findall(r"^compiled (\S+) in ([\d.]+) s", log, re.MULTILINE)
        for kernel, each in kernels:
            compiled[kernel] = max(compiled[kernel], float(each))
        uses.add(name, seconds, seconds / base, wanted, len(kernels), warm)
    yield uses
    slowest = Table("first use: the kernels that take longest, with those that they call", ["kernel", "seconds"])
    for kernel, each in compiled.most_common(25):
        slowest.add(kernel, each)
    yield slowest


def _cpu(*args: str, cache: str | None = None) -> tuple[float, str]:
    """CPU seconds of a process that succeeds, and what it says on standard error."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    if cache is not None:
        environment["PGCC_CACHE_DIR"] = cache
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, *args], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(done.stdout + done.stderr)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stderr
