"""`.npz`: a circuit as pgcc writes it, or the kernel of a determinantal point process."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pgcc.errors import FormatError
from pgcc.formats import kernels, npz
from pgcc.formats.reading import read_bytes
from pgcc.ir.circuit import Circuit

write = npz.write


def read(
    path: Path,
    kernel: str | None = None,
    symmetric: bool = True,
    nearest: bool = False,
    names: Iterable[str] | None = None,
) -> Circuit:
    """The circuit in an `.npz` file; the options are for kernels, as in `pgcc.formats.kernels.read`."""
    kernels.check_kind(path, kernel)
    data = read_bytes(path)
    try:
        archive = npz.Archive(data)
        found = kernels.kernel_in(archive, kernel) or npz.circuit_in(archive)
    except FormatError as error:
        raise FormatError(f"{path}: {error}") from None
    if isinstance(found, kernels.Kernel):
        return kernels.process_of(path, found, names, symmetric, nearest)
    if kernel is not None or names is not None or nearest or not symmetric:
        raise FormatError(f"{path} holds a circuit: options of kernels mean nothing for it")
    return found
