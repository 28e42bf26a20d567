"""`pgcc warmup`: compile the commonly used kernels once for this machine, on all cores."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from importlib.util import find_spec

import numpy as np

import pgcc
from pgcc.errors import PgccError
from pgcc.evaluate.parallel import count_processors
from pgcc.frontend.combine import mixture
from pgcc.frontend.dpp import dpp
from pgcc.frontend.expression import parse
from pgcc.frontend.spanning_tree import spanning_tree
from pgcc.kernels.folder import folder, writable
from pgcc.model import compile
from pgcc.progress import progress
from pgcc.queries.gradient import grad


def warmup(args: argparse.Namespace) -> int:
    """Ask small questions of every kind, in separate processes that compile and store the kernels they need."""
    if args.jobs is not None and args.jobs < 1:
        args.parser.error(f"--jobs {args.jobs} is not a number of processes (a number ≥ 1)")
    if writable() is None:
        raise PgccError(
            f"compiled kernels cannot be kept in {folder()}: "
            "set PGCC_CACHE_DIR to a folder in which you, and nobody else, may write"
        )
    os.environ["PGCC_TIER"] = "compiled"  # of the processes below
    context = multiprocessing.get_context("spawn")
    with (
        progress("compiling", len(JOBS), "kind of question") as bar,
        ProcessPoolExecutor(
            args.jobs or count_processors(), mp_context=context, initializer=_end_with_parent
        ) as workers,
    ):
        try:
            with _deaf_to_interrupts():
                waiting = {workers.submit(_compile_for, name): name for name in JOBS}
            for done, job in enumerate(as_completed(waiting), 1):
                job.result()
                bar.at(done, note=waiting[job])
        except BaseException:
            for process in multiprocessing.active_children():  # otherwise they would be waited for
                process.kill()
            raise
    print(f"{len(list(folder().glob('*.kernel')))} compiled kernels in {folder()}")
    return 0


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Processes that are started in the body leave Ctrl-C to this one."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end_with_parent() -> None:
    """End this process as soon as the one that started it has ended, if by a signal that nobody can catch."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def wait() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def _compile_for(name: str) -> None:
    JOBS[name]()


# -- small questions of every kind ---------------------------------------------------------------------------


def _ask_circuit() -> None:
    model = compile(parse("(0.1*(a + 1)*(6*b + 1) - 0.4*a*b) * (0.8*c + 0.2)"))
    model.prob({"a": 1})
    model.logprob([[1, 0, -1], [0, 1, 1]])
    model.marginals()


def _ask_more_of_circuit() -> None:
    circuit = parse("(0.3*a + 0.7) * (0.5*b + 0.5) * (0.2*c + 0.8)")
    model = compile(circuit)
    model.sample(3, rng=0)
    model.mode()
    model.cardinality()
    model.pairwise()
    grad(circuit, [[1, 0, -1]])


def _ask_tiny_numbers() -> None:
    model = compile(parse("(1e-200*a + 1) * (1e-200*b + 1)"))
    model.logprob({"a": 1, "b": 1})
    model.marginals({"a": 1})


def _ask_polynomials() -> None:
    model = compile(parse("((a + 1)*(a*b + 1) - a**2*b + 1) / 5"))
    model.prob({"a": 1})
    model.prob({"a": 0})
    model.prob({"a": 1}, method="fft")
    model.cardinality()


def _ask_dpp() -> None:
    model = compile(dpp(L=[[2.0, 0.5, 0.1], [0.5, 1.0, 0.3], [0.1, 0.3, 1.5]]))
    model.prob({"x1": 1})
    model.marginals()


def _ask_more_of_dpp() -> None:
    model = compile(dpp(L=[[2.0, 0.5, 0.1], [0.5, 1.0, 0.3], [0.1, 0.3, 1.5]]))
    model.sample(3, rng=0)
    model.cardinality()
    compile(model.circuit.observe(size=2)).sample(2, rng=0)


def _ask_mixture() -> None:
    model = compile(mixture([0.5, 0.5], [dpp(L=[[2.0, 0.5], [0.5, 1.0]]), dpp(L=[[1.0, 0.2], [0.2, 3.0]])]))
    model.sample(3, rng=0)
    model.logprob([[1, 1]])
    model.pairwise()


def _ask_tree() -> None:
    model = compile(spanning_tree([("a", "b", 1.0), ("b", "c", 2.0), ("a", "c", 0.5)]))
    model.prob([[1, 1, 0]])
    model.marginals()
    model.sample(3, rng=0)


def _fit() -> None:
    rows = _rows()
    pgcc.learn.SimplePGC(2, 1, max_iter=2).fit(rows).score(rows)


def _fit_trees() -> None:
    rows = _rows()
    rows[::3, 0] = -1
    pgcc.learn.MixtureOfTrees(2, max_iter=1).fit(rows).score(rows)


def _rows() -> np.ndarray:
    return (np.random.default_rng(0).random((60, 4)) < 0.4).astype(np.int8)


# Jobs start in this order, one on each core: first the longest, then those that share few kernels with it, then those
# whose kernels are mostly compiled by then. (Two processes that need a kernel at the same time both compile it.)
JOBS: dict[str, Callable[[], None]] = {
    "determinants": _ask_dpp,
    "polynomials in t": _ask_polynomials,
    "learning": _fit,
    "learning trees": _fit_trees,
    "circuits": _ask_circuit,
    "samples, modes and counts": _ask_more_of_circuit,
    "numbers out of range": _ask_tiny_numbers,
    "sets drawn from determinants": _ask_more_of_dpp,
    "mixtures of determinants": _ask_mixture,
    "spanning trees": _ask_tree,
}
if find_spec("sklearn") is None:  # pgcc.learn needs it
    JOBS = {name: job for name, job in JOBS.items() if "learning" not in name}
