"""Whatever holds an array → a numpy array: the one place that knows other libraries' arrays, tensors and frames.

None of them is imported: objects are known by what they can do.

    DataFrames                       .to_numpy()
    sparse matrices (scipy)          .toarray(), refused where the dense one would not fit
    tensors (torch)                  .detach(), .cpu(), .to_dense(); refused if they carry gradients
    any other array (JAX, xarray …)  __array__, or else DLPack
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pgcc.errors import CircuitError, PgccError

MOST_ENTRIES = 1 << 26  # of a dense matrix: half a gigabyte


def check_size(rows: int, columns: int, what: str) -> None:
    """Refuse matrices that do not fit in memory, before they are made."""
    if rows * columns > MOST_ENTRIES:
        raise CircuitError(
            f"{what} would be a dense matrix of {rows:,}×{columns:,} entries, and the limit is {MOST_ENTRIES:,}"
        )


def is_frame(given: Any) -> bool:
    """Whether it is a DataFrame, of pandas or polars."""
    return hasattr(given, "columns") and hasattr(given, "to_numpy")


def is_pandas(frame: Any) -> bool:
    """Whether a DataFrame is one of pandas, or behaves like it: its rows have labels."""
    return hasattr(frame, "iloc")


def need_pandas() -> Any:
    """The module pandas, of which tables with names are made."""
    try:
        import pandas
    except ImportError:
        raise PgccError(
            "tables with names are pandas DataFrames, and pandas is not installed: pip install pandas"
        ) from None
    return pandas


def is_sparse(given: Any) -> bool:
    """Whether it is a sparse matrix or array of scipy."""
    return hasattr(given, "toarray") and hasattr(given, "tocsr")


def as_array(given: Any, what: str, error: type[PgccError] = CircuitError) -> np.ndarray | None:
    """The array in an array, tensor, sparse matrix or DataFrame; None for anything else, such as nested lists.

    Parameters
    ----------
    given : object
    what : str
        What to call it in messages.
    error : class
        What to raise for a tensor that carries gradients, or has numbers that numpy does not know.

    Examples
    --------
    >>> as_array(memoryview(b"ab"), "L") is None
    True
    >>> as_array(np.float32([1, 2]), "L").tolist()
    [1.0, 2.0]
    """
    if isinstance(given, np.ndarray):
        return np.asarray(given)  # np.matrix as what it holds
    if is_frame(given):
        return given.to_numpy()
    if is_sparse(given):
        if len(given.shape) == 2:
            check_size(given.shape[0], given.shape[1], what)
        return given.toarray()
    if hasattr(given, "detach") and hasattr(given, "cpu"):
        given = _plain_tensor(given, what, error)
    try:
        if hasattr(given, "__array__"):
            return np.asarray(given)
        if hasattr(given, "__dlpack__"):
            return np.from_dlpack(given)
    except (TypeError, RuntimeError, BufferError) as reason:
        raise error(f"{what}, of type {type(given).__name__}, has no numpy array: {reason}") from None
    return None


def _plain_tensor(tensor: Any, what: str, error: type[PgccError]) -> Any:
    """A tensor in memory that the processor reads, dense."""
    if getattr(tensor, "requires_grad", False):
        raise error(
            f"{what} is a tensor that requires gradients, which would be lost here: pgcc.torch differentiates "
            "log-probabilities, and .detach() says that no gradient is wanted"
        )
    strided = tensor.to_dense() if getattr(tensor, "is_sparse", False) or _is_compressed(tensor) else tensor
    return strided.cpu()


def _is_compressed(tensor: Any) -> bool:
    """Whether a tensor is sparse by compressed rows or columns."""
    return str(getattr(tensor, "layout", "")).startswith("torch.sparse_")
