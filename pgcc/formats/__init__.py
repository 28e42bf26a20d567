"""Circuits in files: `load` and `save`, by the extension of the file's name."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from pgcc.errors import FormatError
from pgcc.formats.atomic import replacing
from pgcc.formats.reading import as_path
from pgcc.ir.circuit import Circuit

# One line for every format: a module with `read(path) -> Circuit` and `write(circuit, file)`, either of which may be
# missing. It is imported when it is first needed.
FORMATS = {
    ".pgc": "pgcc.formats.pgc",
    ".npz": "pgcc.formats.archive",
    ".psdd": "pgcc.formats.psdd",
    ".sdd": "pgcc.formats.sdd",
    ".nnf": "pgcc.formats.nnf",
    ".ddnnf": "pgcc.formats.nnf",
    ".uai": "pgcc.formats.uai",
    ".npy": "pgcc.formats.kernels",
    ".csv": "pgcc.formats.kernels",
    ".edges": "pgcc.formats.edges",
    ".edgelist": "pgcc.formats.edges",
    ".tsv": "pgcc.formats.edges",
}


def load(path: str | os.PathLike[str], **options: Any) -> Circuit:
    """The circuit in a file; its extension says which format it has.

    Parameters
    ----------
    path : str or path-like
        `.pgc` is the text that `pgcc.parse` reads; `.npz` is binary, for large circuits. Models of others: `.psdd`,
        `.sdd`, `.nnf` (c2d) and `.ddnnf` (d4), `.uai` (binary Bayesian and Markov networks). Kernels of `pgcc.dpp`:
        `.npy`, `.csv`, and `.npz` with an array L, K or factor. Graphs, for `pgcc.spanning_tree`: `.edges`, `.edgelist`
        and `.tsv`, with two nodes and perhaps a weight per line.
    **options
        What the format has: ``vtree=`` (`.psdd`, `.sdd`), ``weights=`` (`.sdd`, `.nnf`), ``variables=`` (`.nnf`),
        ``keep=`` (`.uai`: the variables to keep, the others are summed out), ``kernel=`` "L", "K" or "factor",
        ``symmetric=``, ``nearest=`` and ``names=`` (kernels), ``root=`` and ``orientation=`` (graphs: arborescences)
        and ``killing=`` (graphs: rooted forests).

    Raises
    ------
    FormatError
        If there is no such file, or it is damaged, or its extension is unknown.
    ParseError
        If the text of a `.pgc` file has a mistake.

    Examples
    --------
    >>> import pgcc, tempfile, os
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "coin.pgc")
    ...     pgcc.save(pgcc.parse("z/2 + 1/2"), path)
    ...     print(pgcc.load(path))
    1/2*z + 1/2
    """
    path = as_path(path)
    read = _function(path, "read")
    if path.is_dir():
        raise FormatError(f"{path} is a directory, not a circuit")
    known = inspect.signature(read).parameters
    unknown = [name for name in options if name not in known]
    if unknown:
        raise FormatError(f"{path}: the format {path.suffix} has no option {unknown[0]!r}")
    try:
        return read(path, **options)
    except FileNotFoundError as error:
        raise FormatError(f"{error.filename or path}: there is no such file") from None
    except OSError as error:
        raise FormatError(f"{path} cannot be read: {error.strerror or error}") from None


def save(circuit: Circuit, path: str | os.PathLike[str]) -> None:
    """Write a circuit to a file that `load` reads back as the same polynomial over the same variables.

    The file appears whole or not at all: on an error, what was there before is still there. A pipe, or a device such as
    /dev/null, is written into.

    Parameters
    ----------
    circuit : Circuit
    path : str or path-like
        `.pgc` for text, `.npz` for large circuits.

    Examples
    --------
    >>> import pgcc
    >>> pgcc.save(pgcc.parse("z/2 + 1/2"), "coin.doc")
    Traceback (most recent call last):
    pgcc.errors.FormatError: coin.doc: cannot write the format '.doc'; known are .npz, .pgc
    """
    if not isinstance(circuit, Circuit):
        raise FormatError(f"only a circuit can be saved, not {type(circuit).__name__}")
    path = as_path(path)
    write = _function(path, "write")
    try:
        with replacing(path) as file:
            write(circuit, file)
    except OSError as error:
        raise FormatError(f"{path} cannot be written: {error.strerror or error}") from None


def check_can_save(path: str | os.PathLike[str]) -> None:
    """Refuse a name whose format `save` does not write: before a long work, not after it."""
    _function(as_path(path), "write")


def _function(path: Path, name: str) -> Callable:
    """`read` or `write` of the format that the file's name promises."""
    known = FORMATS.get(path.suffix.lower())
    function = getattr(import_module(known), name, None) if known else None
    if function is None:
        able = ", ".join(e for e, module in sorted(FORMATS.items()) if hasattr(import_module(module), name))
        what = f"the format {path.suffix!r}" if path.suffix else "a file without an extension"
        raise FormatError(f"{path}: cannot {name} {what}; known are {able}")
    return function
