"""Run work on a Dask cluster, or in this process through the same interface, with the same results.

Models and data are sent to the workers once. If a worker dies, its data are sent again and its work is repeated.
"""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial, reduce
from operator import add
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np

from pgcc.errors import PgccError, brief
from pgcc.interrupts import end_if_unwanted
from pgcc.model import Model

T = TypeVar("T")
# Blocks queued for each thread of the cluster: enough that threads never wait, and few enough to bound memory.
_AHEAD = 3
# Seconds to wait for a scheduler, and for a worker where there is none.
_TIMEOUT = 10
# How often work that was lost with a worker is submitted again.
_RETRIES = 3
_NO_WORKERS = "the Dask cluster has no workers: start some (dask worker ADDRESS)"
# The number of prepared blocks to keep in this process. If there are more blocks, each is prepared whenever it is used,
# so that memory is bounded.
_PREPARED = 8


class Lost(NamedTuple):
    """The result of a part whose workers were lost repeatedly."""

    reason: str


class Crew:
    """This process, or the workers of a cluster: results are the same, to the last bit."""

    is_here: ClassVar[bool] = True

    def send(self, thing: Any) -> Any:
        """Send an object that every task needs. Pass the return value as a `common` argument to refer to it."""
        return thing

    def keep(self, prepare: Callable[[Any], Any], blocks: Sequence[Any]) -> Sequence[Any]:
        """Send blocks, each of which is prepared where it is stored. They can be `parts` of any number of calls."""
        return [prepare(block) for block in blocks] if len(blocks) <= _PREPARED else _PreparedBlocks(prepare, blocks)

    def as_completed(
        self, function: Callable[..., Any], parts: Sequence[Any], *common: Any
    ) -> Iterator[tuple[int, Any]]:
        """function(part, *common) and the number of the part, as each part is finished; `Lost` if it never is."""
        return enumerate(function(part, *common) for part in parts)

    def total(self, function: Callable[..., Any], parts: Sequence[Any], *common: Any) -> Any:
        """Σ function(part, *common), added up in an order that depends only on the number of parts."""

        def term(part: Any) -> Any:
            end_if_unwanted()
            return function(part, *common)

        return _add_in_pairs(map(term, parts), add)


HERE = Crew()


def crew(cluster: Any = None) -> AbstractContextManager[Crew]:
    """The workers of the cluster with this address (or client); without one, this process.

    Examples
    --------
    >>> with crew() as workers:
    ...     workers.total(pow, workers.keep(abs, [-1, -2, -3]), 2)
    14
    """
    return nullcontext(HERE) if cluster is None else _connected(cluster)


def _add_in_pairs(terms: Iterable[T], plus: Callable[[T, T], T]) -> T:
    """Pairwise summation of neighbours, then of neighbouring sums, and so on, with O(log n) sums in memory at a time.

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


class _PreparedBlocks(Sequence[Any]):
    """Blocks that are prepared each time they are used."""

    def __init__(self, prepare: Callable[[Any], Any], blocks: Sequence[Any]):
        self._prepare, self._blocks = prepare, blocks

    def __len__(self) -> int:
        return len(self._blocks)

    def __getitem__(self, i: Any) -> Any:
        return self._prepare(self._blocks[i])


class _Remote:
    """An object in the memory of workers; `send` sends it again if they lose it."""

    def __init__(self, send: Callable[[], Any]):
        self._send = send
        self.future = send()

    def renew(self, every: bool) -> None:
        """Send the object again if it is lost, or in any case if `every` is true."""
        if every or self.future.status != "finished":
            self.future = self._send()


class _DaskWorkers(Crew):
    """The workers of a Dask cluster. Data and work that are lost with a worker are sent and done again."""

    is_here = False

    def __init__(self, client: Any):
        self._client = client

    def send(self, thing: Any) -> Any:
        return _Remote(lambda: self._scatter(thing, broadcast=True))

    def keep(self, prepare: Callable[[Any], Any], blocks: Sequence[Any]) -> Sequence[Any]:
        def send(i: int) -> Any:
            workers = list(self._client.nthreads())
            neighbour = [workers[i * len(workers) // len(blocks)]] if workers else None
            return self._submit(prepare, self._scatter(blocks[i], workers=neighbour))

        # one by one: blocks may lie on disk, and all of them need not fit into the memory of this process
        return [_Remote(partial(send, i)) for i in range(len(blocks))]

    def stream(self, function: Callable[..., T], parts: Iterable[Any], *common: Any) -> Iterator[T]:
        """function(part, *common) of parts that arrive one by one, in their order, with a few queued at a time."""
        waiting: deque[tuple[Any, Any]] = deque()
        most = max(1, _AHEAD * sum(self._client.nthreads().values()))

        def first() -> T:
            part, future = waiting.popleft()
            return self._with_retries(partial(self._submit, function, part, *common), future, part, *common)

        for part in parts:
            waiting.append((part, self._submit(function, part, *common)))
            if len(waiting) >= most:
                yield first()
        while waiting:
            yield first()

    def as_completed(
        self, function: Callable[..., Any], parts: Sequence[Any], *common: Any
    ) -> Iterator[tuple[int, Any]]:
        """A part that is lost repeatedly, such as one that is too large for any worker, is `Lost`."""
        losses = [0] * len(parts)
        pending = {self._submit(function, part, *common): i for i, part in enumerate(parts)}
        try:
            while pending:
                for future in self._done_or_lost(pending):
                    i = pending.pop(future)
                    try:
                        found = _result_of(future)
                    except _LostError as error:
                        losses[i] += 1
                        if losses[i] <= _RETRIES:
                            self._renew(losses[i], *common)
                            pending[self._submit(function, parts[i], *common)] = i
                            continue
                        found = Lost(str(error))
                    yield i, found
        finally:
            self._client.cancel(list(pending))

    def total(self, function: Callable[..., Any], parts: Sequence[Any], *common: Any) -> Any:
        """The workers that hold the terms add them up, so that only the sum is sent back."""

        def sum_up() -> Any:
            terms = (self._submit(function, part, *common) for part in parts)
            return _add_in_pairs(terms, partial(self._submit, add))

        return self._with_retries(sum_up, sum_up(), *parts, *common)

    # -- losses and retries -----------------------------------------------------------------------------------

    def _submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        known = [one.future if isinstance(one, _Remote) else one for one in arguments]
        return self._client.submit(function, *known, pure=False)

    def _scatter(self, thing: Any, **where: Any) -> Any:
        try:
            return self._client.scatter(thing, hash=False, **where)
        except TimeoutError:
            raise PgccError(_NO_WORKERS) from None

    def _with_retries(self, submit: Callable[[], Any], future: Any, *needed: Any) -> Any:
        """The result of a future, which is submitted again if it is lost."""
        for losses in range(1, _RETRIES + 2):
            try:
                self._done_or_lost([future])
                return _result_of(future)
            except _LostError as error:
                if losses > _RETRIES:
                    raise PgccError(f"the cluster lost a worker {losses} times: {error}") from None
                self._renew(losses, *needed)
                future = submit()
        raise AssertionError

    def _renew(self, losses: int, *needed: Any) -> None:
        """Send lost objects again; after a second loss, all of them."""
        self._wait_for_workers()
        for one in needed:
            if isinstance(one, _Remote):
                one.renew(every=losses > 1)

    def _done_or_lost(self, futures: Iterable[Any]) -> list[Any]:
        """The futures that are done or lost, at least one; an error if the cluster runs out of workers meanwhile."""
        from distributed import wait

        futures = list(futures)
        while True:
            done = [future for future in futures if future.status != "pending"]
            if done:
                return done
            try:
                wait(futures, timeout=_TIMEOUT, return_when="FIRST_COMPLETED")
            except TimeoutError:
                self._wait_for_workers()
            except CancelledError:
                pass

    def _wait_for_workers(self) -> None:
        try:
            self._client.wait_for_workers(1, timeout=_TIMEOUT)
        except TimeoutError:
            raise PgccError(_NO_WORKERS) from None
        except OSError as error:
            raise PgccError(f"the Dask scheduler does not answer any more: {error}") from None


class _LostError(Exception):
    """The worker that had a result, or the data for it, is gone."""


def _result_of(future: Any) -> Any:
    from distributed import KilledWorker

    try:
        return future.result()
    except (KilledWorker, CancelledError) as error:
        raise _LostError(str(error)) from None


def logprobs(address: Any, model: Model, blocks: Iterable[tuple[T, Any]]) -> Iterator[tuple[T, np.ndarray]]:
    """Compute log Pr of the rows of every block on the workers of a Dask cluster.

    Parameters
    ----------
    address : str or distributed.Client
        The address of the scheduler, such as ``tcp://10.0.0.1:8786``, or a client.
    model : Model
        The model to evaluate. Its circuit is sent to every worker once and compiled there once.
    blocks : iterable of (label, rows of evidence)
        The rows, in blocks: evidence as any question takes it, such as arrays of 1 (in), 0 (out) and −1 (unobserved).

    Yields
    ------
    (label, log-probabilities), in the order of the blocks.

    See Also
    --------
    pgcc.Model.logprob : the same on one machine

    Examples
    --------
    >>> import numpy as np
    >>> import pgcc
    >>> from pgcc.cluster import logprobs
    >>> model = pgcc.compile(pgcc.parse("0.4*a*b + 0.6"))
    >>> blocks = [("first", np.array([[1, 1]], np.int8)), ("second", np.array([[0, -1]], np.int8))]
    >>> dict(logprobs("tcp://10.0.0.1:8786", model, blocks))  # doctest: +SKIP
    {'first': array([-0.91629073]), 'second': array([-0.51082562])}
    """
    with _connected(address) as workers:
        yield from workers.stream(_logprobs, blocks, workers.send(model))


def _logprobs(block: tuple[T, np.ndarray], model: Model) -> tuple[T, np.ndarray]:
    label, codes = block
    return label, model.logprob(codes)


@contextmanager
def _connected(address: Any) -> Iterator[_DaskWorkers]:
    client, own = _client(address)
    try:
        workers = _DaskWorkers(client)
        workers._wait_for_workers()
        yield workers
    finally:
        if own:
            client.close()


def _client(address: Any) -> tuple[Any, bool]:
    """A client, and whether we have to close it."""
    try:
        from distributed import Client
    except ImportError:
        raise PgccError("clusters need Dask: pip install distributed") from None
    if isinstance(address, Client):
        if address.asynchronous or address.status != "running":
            raise PgccError(f"cluster={brief(address)}: expected a connected, synchronous client")
        return address, False
    if not (isinstance(address, str) and address) and not hasattr(address, "scheduler_address"):
        raise PgccError(f"cluster={brief(address)}: expected the address of a Dask scheduler, or a client")
    try:
        return Client(address, timeout=_TIMEOUT), True
    except (OSError, ValueError, TypeError, TimeoutError) as error:
        reason = str(error)
    # A client that failed closes itself when it is collected. If that happens while another one starts, Dask waits for
    # itself: so it happens here.
    gc.collect()
    raise PgccError(f"no Dask scheduler answers at {address!r}: {reason}")
