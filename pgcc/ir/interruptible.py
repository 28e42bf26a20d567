"""Long calls of LAPACK that Ctrl-C can interrupt.

Python delivers an interrupt to the main thread between two of its instructions, so that a call that takes seconds holds
it up. Here the call runs on another thread, which is left to itself when somebody interrupts.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from pgcc.progress import waiting

# Rows of a matrix below which eigenvalues take no time worth mentioning.
_FEW_ROWS = 400
# Seconds between two looks whether there is an interrupt.
_GLANCE = 0.1


def eigh(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`numpy.linalg.eigh`, interruptible.

    >>> values, vectors = eigh(np.array([[2.0, 1.0], [1.0, 2.0]]))
    >>> values.round(12)
    array([1., 3.])
    """
    values, vectors = _run(np.linalg.eigh, matrix)
    return values, vectors


def eigvalsh(matrix: np.ndarray) -> np.ndarray:
    """`numpy.linalg.eigvalsh`, interruptible.

    >>> eigvalsh(np.array([[2.0, 1.0], [1.0, 2.0]])).round(12)
    array([1., 3.])
    """
    return _run(np.linalg.eigvalsh, matrix)


def _run(function: Callable[[np.ndarray], Any], matrix: np.ndarray) -> Any:
    if len(matrix) < _FEW_ROWS or threading.current_thread() is not threading.main_thread():
        return function(matrix)
    results: list[Any] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            results.append(function(matrix))
        except BaseException as error:  # raised again below, where somebody waits for it
            errors.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    with waiting(f"eigenvalues of a matrix of {len(matrix):,} rows"):
        while thread.is_alive():
            thread.join(_GLANCE)
    if errors:
        raise errors[0]
    return results[0]
