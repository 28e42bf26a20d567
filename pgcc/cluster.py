"""Blocks of rows on a Dask cluster: the model is sent once, results come back in order and are the same."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

import numpy as np

from pgcc.errors import PgccError
from pgcc.model import Model

T = TypeVar("T")
# Blocks that wait on every thread of the cluster: the next one is there when one is done, and memory is bounded.
_AHEAD = 3
# Seconds to wait for a scheduler.
_TIMEOUT = 10


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
                yield first, future.result()
        for first, future in waiting:
            yield first, future.result()
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
