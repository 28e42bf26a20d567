"""Work on a Dask cluster: models and data are sent once, results come back in order and are the same as here."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial, reduce
from operator import add
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from pgcc.errors import PgccError
from pgcc.model import Model

T = TypeVar("T")
# Blocks that wait on every thread of the cluster: the next one is there when one is done, and memory is bounded.
_AHEAD = 3
# Seconds to wait for a scheduler.
_TIMEOUT = 10
# Blocks that are kept prepared here: of more, each is prepared whenever it is asked for, and memory is bounded.
_PREPARED = 8


class Unfinished(NamedTuple):
    """What a function comes to that did not come to its end: the part from which it goes on."""

    part: Any


class Crew(Protocol):
    """Whoever does the work: this process, or the workers of a cluster. What comes out is the same."""

    def send(self, thing: Any) -> Any:
        """A thing that all work needs, once; what is returned stands for it in `map`."""

    def keep(self, prepare: Callable[[Any], Any], blocks: Sequence[Any]) -> Sequence[Any]:
        """Blocks, each prepared by who will work on it; what is returned are parts for `map`, again and again."""

    def map(self, function: Callable[..., Any], parts: Sequence[Any], *common: Any) -> Iterator[Any]:
        """function(part, *common) of every part, in their order."""

    def pursue(self, function: Callable[..., Any], parts: Sequence[Any], *common: Any) -> Iterator[tuple[int, Any]]:
        """function(part, *common) of every part, and again where it is `Unfinished`, as it comes.

        Yields the number of the part, and what it has come to: a result, or the part that goes on.
        """

    def total(self, function: Callable[..., Any], parts: Sequence[Any], *common: Any) -> Any:
        """Σ function(part, *common); what is added to what depends on the number of parts only."""


@contextmanager
def crew(cluster: Any = None, threads: int = 1) -> Iterator[Crew]:
    """Workers of the cluster with this address (or client), or without one so many threads of this process.

    Examples
    --------
    >>> with crew() as workers:
    ...     workers.total(pow, workers.keep(abs, [-1, -2, -3]), 2)
    14
    """
    if cluster is None:
        yield _Here(threads)
        return
    client, own = _client(cluster)
    try:
        yield _There(client)
    finally:
        if own:
            client.close()


class _Here:
    def __init__(self, threads: int):
        self._threads = threads

    def send(self, thing: Any) -> Any:
        return thing

    def keep(self, prepare: Callable[[Any], Any], blocks: Sequence[Any]) -> Sequence[Any]:
        return [prepare(block) for block in blocks] if len(blocks) <= _PREPARED else _Prepared(prepare, blocks)

    def map(self, function: Callable[..., Any], parts: Sequence[Any], *common: Any) -> Iterator[Any]:
        if self._threads == 1:
            yield from (function(part, *common) for part in parts)
        else:
            with ThreadPoolExecutor(self._threads) as pool:
                yield from pool.map(lambda part: function(part, *common), parts)

    def pursue(self, function: Callable[..., Any], parts: Sequence[Any], *common: Any) -> Iterator[tuple[int, Any]]:
        return enumerate(self.map(_finish, parts, function, *common))

    def total(self, function: Callable[..., Any], parts: Sequence[Any], *common: Any) -> Any:
        return _add_in_pairs(self.map(function, parts, *common), add)


def _finish(part: Any, function: Callable[..., Any], *common: Any) -> Any:
    """To the end at once: here nobody waits for what is in between."""
    while isinstance(found := function(part, *common), Unfinished):
        part = found.part
    return found


def _add_in_pairs(terms: Iterable[T], plus: Callable[[T, T], T]) -> T:
    """The sum of neighbours, of neighbouring sums, and so on; few sums are there at a time.

    >>> _add_in_pairs("abcde", lambda x, y: f"({x}{y})")
    '(((ab)(cd))e)'
    """
    sums: list[tuple[int, T]] = []  # of 2^level terms each, with falling levels
    for term in terms:
        level = 0
        while sums and sums[-1][0] == level:
            term, level = plus(sums.pop()[1], term), level + 1
        sums.append((level, term))
    return reduce(lambda right, left: plus(left, right), (term for _, term in reversed(sums)))


class _Prepared(Sequence[Any]):
    """Blocks that are prepared whenever they are asked for."""

    def __init__(self, prepare: Callable[[Any], Any], blocks: Sequence[Any]):
        self._prepare, self._blocks = prepare, blocks

    def __len__(self) -> int:
        return len(self._blocks)

    def __getitem__(self, i: Any) -> Any:
        return self._prepare(self._blocks[i])


class _There:
    def __init__(self, client: Any):
        self._client = client

    def send(self, thing: Any) -> Any:
        return self._client.scatter(thing, broadcast=True, hash=False)

    def keep(self, prepare: Callable[[Any], Any], blocks: Sequence[Any]) -> Sequence[Any]:
        workers, parts = list(self._client.nthreads()), []
        for i, block in enumerate(blocks):  # one by one: they may lie on disk, and are not all in memory here
            neighbour = workers[i * len(workers) // len(blocks)]
            sent = self._client.scatter(block, workers=[neighbour], hash=False)
            parts.append(self._client.submit(prepare, sent, pure=False))
        return parts

    def map(self, function: Callable[..., Any], parts: Sequence[Any], *common: Any) -> Iterator[Any]:
        futures = deque(self._client.submit(function, part, *common, pure=False) for part in parts)
        try:
            while futures:
                yield _result(futures[0])
                futures.popleft()
        finally:
            self._client.cancel(list(futures))

    def pursue(self, function: Callable[..., Any], parts: Sequence[Any], *common: Any) -> Iterator[tuple[int, Any]]:
        """What is unfinished stays with its worker, too: only a copy of it comes here."""
        from distributed import as_completed

        if not parts:
            return
        submit = partial(self._client.submit, pure=False)
        sent = self._client.scatter(list(parts), hash=False)
        number = {submit(function, part, *common): i for i, part in enumerate(sent)}
        going = as_completed(list(number))
        try:
            for future in going:
                i, found = number.pop(future), _result(future)
                if isinstance(found, Unfinished):
                    following = submit(_go_on, future, function, *common)
                    number[following] = i
                    going.add(following)
                yield i, found.part if isinstance(found, Unfinished) else found
        finally:
            self._client.cancel(list(number))

    def total(self, function: Callable[..., Any], parts: Sequence[Any], *common: Any) -> Any:
        """Added up by the workers, where the terms are: one sum comes back."""
        submit = partial(self._client.submit, pure=False)
        terms = (submit(function, part, *common) for part in parts)
        return _result(_add_in_pairs(terms, partial(submit, add)))


def _go_on(before: Unfinished, function: Callable[..., Any], *common: Any) -> Any:
    return function(before.part, *common)


def _result(future: Any) -> Any:
    from distributed import KilledWorker

    try:
        return future.result()
    except (KilledWorker, CancelledError) as error:
        raise PgccError(f"the cluster lost a worker and what it held: start again ({error})") from None


def logprobs(address: Any, model: Model, blocks: Iterable[tuple[T, np.ndarray]]) -> Iterator[tuple[T, np.ndarray]]:
    """log Pr of the rows of every block, computed by the workers of a cluster.

    Parameters
    ----------
    address : str or distributed.Client
        Of the scheduler, such as ``tcp://10.0.0.1:8786``.
    model : Model
        Sent to every worker once, as its circuit; a worker compiles it once.
    blocks : iterable of (label, rows of codes)

    Yields
    ------
    (label, log-probabilities), in the order of the blocks.
    """
    client, own = _client(address)
    try:
        sent = client.scatter(model, broadcast=True)
        most = max(1, _AHEAD * sum(client.nthreads().values()))
        waiting: deque[tuple[T, Any]] = deque()
        for label, codes in blocks:
            waiting.append((label, client.submit(_logprob, sent, codes, pure=False)))
            if len(waiting) >= most:
                first, future = waiting.popleft()
                yield first, _result(future)
        for first, future in waiting:
            yield first, _result(future)
    finally:
        if own:
            client.close()


def _client(address: Any) -> tuple[Any, bool]:
    """A client, and whether it is ours to close."""
    try:
        from distributed import Client
    except ImportError:
        raise PgccError("clusters need Dask: pip install 'pgcc[dask]'") from None
    if isinstance(address, Client):
        return address, False
    try:
        return Client(address, timeout=_TIMEOUT), True
    except (OSError, ValueError, TimeoutError) as error:
        raise PgccError(f"no Dask scheduler answers at {address!r}: {error}") from None


def _logprob(model: Model, codes: np.ndarray) -> np.ndarray:
    return model.logprob(codes)
