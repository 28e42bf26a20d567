"""Exact samples: from the root down where the circuit allows it, otherwise one variable after another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from threading import Lock
from typing import Any

import numpy as np

from pgcc.data.evidence import Evidence
from pgcc.errors import PgccError, SemanticsError, brief
from pgcc.evaluate.parallel import MOST_ROWS, for_chunks
from pgcc.ir.numbers import as_index
from pgcc.kernels.random import STATE, start_streams, uniforms
from pgcc.progress import Bar, progress
from pgcc.queries.distribution import Distribution
from pgcc.validity.standing import LESS_A_CONSTANT, MONOTONE

# Samples that need more bytes than this are drawn in several parts.
_MOST_BYTES = 1 << 34
# With fewer samples for every row of evidence, threads share the rows rather than the samples of each.
_MANY = 4096


def sample(distribution: Distribution, given: Evidence, n: Any, rng: Any = None) -> np.ndarray:
    """rows × n × variables: n samples given each row of evidence, 1 for in and 0 for out.

    Sample i of row r has its own stream of random numbers, so it depends neither on the threads nor on the number of
    other samples and rows.
    """
    count, variables = _as_count(n), len(distribution.variables)
    if given.rows * count * max(1, variables) > _MOST_BYTES:
        rows = f" for each of {given.rows:,} rows of evidence" if given.rows > 1 else ""
        raise PgccError(
            f"{_told(count)} samples of {variables:,} variables{rows} take more than {_MOST_BYTES >> 30} GiB: "
            "draw fewer at a time"
        )
    seed = _as_seed(rng)
    codes = given.chunk(slice(None))
    if distribution.total is None or (codes >= 0).any():  # a total is positive
        distribution.possible(given)
    out = np.empty((given.rows, count, variables), np.int8)
    if not out.size:
        return out
    threads, samples_at_once = distribution.threads, count >= _MANY
    with progress("drawing samples", given.rows * count, "sample") as bar:
        told = _Drawn(bar).more

        def draw_rows(rows: slice) -> None:
            for row in range(rows.start, rows.stop):
                draw(
                    distribution, codes[row], seed, given.first + row, out[row], threads if samples_at_once else 1, told
                )

        for_chunks(given.rows, variables * count, 1 if samples_at_once else threads, draw_rows)
    return out


class _Drawn:
    """The number of samples drawn so far, by all threads."""

    def __init__(self, bar: Bar):
        self._bar, self._lock, self._count = bar, Lock(), 0

    def more(self, count: int) -> None:
        """Report this many more samples."""
        with self._lock:
            self._count += count
            self._bar.at(self._count)


def draw(
    distribution: Distribution,
    codes: np.ndarray,
    seed: int,
    row: int,
    out: np.ndarray,
    threads: int,
    told: Callable[[int], None],
) -> None:
    """Fill `out` with samples given a row of possible evidence: from the root down, or one variable after another."""
    compiled = distribution.compiled
    if distribution.standing == LESS_A_CONSTANT:
        if _often_not_empty(distribution, codes):
            whole = replace(distribution, compiled=compiled.with_empty, standing=MONOTONE)
            _draw_not_empty(whole, codes, seed, row, out, threads)
        else:
            _draw_by_variable(replace(distribution, threads=threads), codes, seed, row, out)
        told(len(out))
        return
    top_down = compiled.sampler if compiled.decomposable else None
    ready = None if top_down is None else top_down.prepare(codes)
    if top_down is None or ready is None:  # the circuit does not allow it, or float64 is not accurate enough
        _draw_by_variable(replace(distribution, threads=threads), codes, seed, row, out)
        told(len(out))
        return

    def draw_some(some: slice) -> None:
        top_down.draw(ready, seed, row, some.start, out[some])
        told(some.stop - some.start)

    for_chunks(len(out), out.shape[1], threads, draw_some, most_rows=min(MOST_ROWS, ready.at_a_time))


def _often_not_empty(distribution: Distribution, codes: np.ndarray) -> bool:
    """Whether half of the sets drawn with the empty one are other ones."""
    compiled, row = distribution.compiled, codes[None]
    logs = [one.values(row, distribution.rtol).logs()[0] for one in (compiled, compiled.with_empty)]
    return bool(logs[0] - logs[1] > np.log(0.5))


def _draw_not_empty(
    distribution: Distribution, codes: np.ndarray, seed: int, row: int, out: np.ndarray, threads: int
) -> None:
    """Draw with the empty set, and draw the empty ones again, each by further streams of its own."""
    draw(distribution, codes, seed, row, out, threads, lambda count: None)
    while len(empty := np.flatnonzero(~out.any(axis=1))):
        seed = int(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0])
        again = np.empty_like(out[: empty[-1] + 1])
        draw(distribution, codes, seed, row, again, threads, lambda count: None)
        out[empty] = again[empty]


def _draw_by_variable(distribution: Distribution, codes: np.ndarray, seed: int, row: int, out: np.ndarray) -> None:
    """Sample one variable after another, by certified Pr(X_i = 1 | the variables before it) of each distinct prefix."""
    states, u = np.empty((len(out), STATE), np.uint64), np.empty(len(out))
    start_streams(np.uint64(seed), row, 0, states)
    prefixes, of = codes[None], np.zeros(len(out), np.int64)  # the distinct ones, and which one a sample has
    for v in np.flatnonzero(codes < 0).tolist():
        uniforms(states, u)
        drawn = u < _posterior(distribution, prefixes, v)[of]
        pairs, of = np.unique(2 * of + drawn, return_inverse=True)
        prefixes = prefixes[pairs // 2]
        prefixes[:, v] = pairs % 2
    np.take(prefixes, of, axis=0, out=out)


def _posterior(distribution: Distribution, prefixes: np.ndarray, v: int) -> np.ndarray:
    """Pr(X_v = 1 | prefix), computed from both probabilities so that nothing cancels."""
    both = np.repeat(prefixes, 2, axis=0)
    both[::2, v], both[1::2, v] = 0, 1
    out, inside = distribution.logprobs(both).reshape(-1, 2).T
    if np.isnan(out + inside).any():
        raise SemanticsError("no samples: the polynomial has negative coefficients and is no distribution")
    top = np.maximum(out, inside)
    return np.exp(inside - top) / (np.exp(inside - top) + np.exp(out - top))


def _told(count: int) -> str:
    return f"{count:,}" if count < 10**12 else brief(count)


def _as_count(n: Any) -> int:
    count = as_index(n)
    if count is None or count < 0:
        raise PgccError(f"n={brief(n)}: the number of samples is an integer, 0 or more", argument="n")
    return count


def _as_seed(rng: Any) -> int:
    """64 bits from a seed, a Generator, or the operating system."""
    if isinstance(rng, np.random.Generator):
        return int(rng.integers(2**64, dtype=np.uint64))
    seed = as_index(rng)
    if rng is not None and (seed is None or seed < 0):
        raise PgccError(
            f"rng={brief(rng)} is no seed: that is an integer, 0 or more (or a numpy Generator)", argument="rng"
        )
    return int(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0])
