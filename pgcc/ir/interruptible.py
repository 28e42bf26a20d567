"""Long calls of LAPACK that Ctrl-C can interrupt."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pgcc.interrupts import interruptible
from pgcc.progress import waiting

# Rows of a matrix below which eigenvalues take no time worth mentioning.
_FEW_ROWS = 400


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
    if len(matrix) < _FEW_ROWS:
        return function(matrix)
    with waiting(f"eigenvalues of a matrix of {len(matrix):,} rows"):
        return interruptible(function, matrix)
