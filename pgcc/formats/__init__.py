"""Circuits in files: `load` and `save` choose the format by the file extension."""

from __future__ import annotations

import gzip
import inspect
import os
from collections.abc import Callable
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

from pgcc.errors import FormatError, circuit_from, printable
from pgcc.formats.io import as_path, is_replaceable, reading, unpacked_name, writing
from pgcc.ir.circuit import Circuit
from pgcc.progress import waiting


class Format(NamedTuple):
    """A file format: the module of `pgcc.formats` that implements it, and what such a file contains.

    The module has `read(path, **options) -> Circuit`; the parameters of `read` are the options of `load`. If the format
    can be written too, the module has `write(circuit, file)`, which may return the contents of further files, by
    extension, to be written next to it. The module is imported when it is first needed.
    """

    module: str
    what: str
    is_written: bool = False


# To add a format: a module with `read`, a line here, and its name in the documentation of `load`.
FORMATS = {
    ".pgc": Format("pgc", "the text that `pgcc.parse` reads", is_written=True),
    ".npz": Format("npz", "a circuit as binary arrays, or the kernel of a DPP (read only)", is_written=True),
    ".psdd": Format("psdd", "a probabilistic sentential decision diagram", is_written=True),
    ".sdd": Format("sdd", "a sentential decision diagram"),
    ".nnf": Format("nnf", "a d-DNNF of c2d or d4", is_written=True),
    ".ddnnf": Format("nnf", "a d-DNNF of c2d or d4"),
    ".uai": Format("uai", "a Bayesian or Markov network", is_written=True),
    ".bif": Format("bif", "a Bayesian network with names", is_written=True),
    ".xmlbif": Format("xmlbif", "a Bayesian network with names"),
    ".bifxml": Format("xmlbif", "a Bayesian network with names"),
    ".xml": Format("xmlbif", "a Bayesian network with names"),
    ".npy": Format("matrices", "the kernel of a DPP, as a numpy array"),
    ".csv": Format("matrices", "the kernel of a DPP, as text"),
    ".edges": Format("edges", "a graph, for its random spanning trees"),
    ".edgelist": Format("edges", "a graph, for its random spanning trees"),
    ".tsv": Format("edges", "a graph, for its random spanning trees"),
}


def load(path: str | os.PathLike[str], **options: Any) -> Circuit:
    """Read a circuit from a file, whose extension says which format it has.

    Parameters
    ----------
    path : str or path-like
        A `.pgc` file holds text as `pgcc.parse` reads it; `.npz` is binary, for large circuits. Models of other
        programs: `.psdd`, `.sdd`, `.nnf` (c2d) and `.ddnnf` (d4). Bayesian networks with names: `.bif`, and `.xmlbif`,
        `.bifxml` and `.xml` (XMLBIF); Bayesian and Markov networks with numbers: `.uai`. (Probabilities that add up to
        1 only within 0.0005, since few digits were printed, are divided by their sum; others are refused.) Kernels for
        `pgcc.dpp`: `.npy`, `.csv`, and `.npz` with an array L, K or factor. Graphs for `pgcc.spanning_tree`: `.edges`,
        `.edgelist` and `.tsv`, with two nodes and optionally a weight per line. Any of them may be packed by gzip:
        `alarm.bif.gz`. (A table of data is not a circuit; use `pgcc fit` or the estimators of `pgcc.learn` to learn one
        from it.)
    **options
        The options of the format: ``vtree=`` (`.psdd`, `.sdd`), ``weights=`` (`.sdd`, `.nnf`), ``variables=`` (`.nnf`),
        ``keep=`` (networks: the variables to keep; the others are summed out), ``evidence=`` (networks: a dict of what
        was observed, as ``{"HR": "HIGH", "CO": {"LOW", "NORMAL"}}``, or the name of an `.evid` file, or True for the
        one beside; often the circuit is far smaller), ``kernel=`` "L", "K" or "factor", ``symmetric=``, ``nearest=``,
        ``rank=`` and ``names=`` (kernels), ``root=`` and ``orientation=`` (graphs: arborescences) and ``killing=``
        (graphs: rooted forests).

    Raises
    ------
    FormatError
        If the file does not exist or is damaged, or its extension is unknown.
    ParseError
        If the text of a `.pgc` file has a mistake.

    See Also
    --------
    pgcc.save : write a circuit to a file
    pgcc.compile : compile a circuit to a model
    pgcc.learn.load : read an estimator from a file

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
    if path.is_dir():
        raise FormatError(f"{path} is a directory, not a circuit")
    if unpacked_name(path).suffix.lower() not in FORMATS and not path.exists():
        raise FormatError(f"{path}: there is no such file")
    read = _function(path, "read")
    known = inspect.signature(read).parameters
    unknown = [name for name in options if name not in known]
    if unknown:
        advice = "circuit.relabel renames the variables" if unknown[0] == "names" else None
        message = f"{path}: the format {path.suffix} has no option {unknown[0]}="
        raise FormatError(message, argument=unknown[0], advice=advice)
    with reading(path), waiting(printable(f"reading {path}")):
        return read(path, **options)


def save(circuit: Circuit, path: str | os.PathLike[str]) -> None:
    """Write a circuit to a file that `load` reads back as the same polynomial over the same variables.

    The file is written completely or not at all: if there is an error, an existing file stays as it was. You can also
    write to a pipe, or to a device such as /dev/null.

    Parameters
    ----------
    circuit : Circuit
        The circuit to write.
    path : str or path-like
        The extension chooses the format, and `.gz` after it packs the file. `.pgc` (text) and `.npz` (for large
        circuits) can hold any circuit, and are read as the same one, node for node. `.nnf` can hold circuits whose
        coefficients are 0 and 1 and whose terms can be shown to exclude one another. `.psdd` can hold normalized
        circuits without determinants or negative weights, whose products follow one vtree (which is written to a
        `.vtree` file next to it) and whose sums have terms that can be shown to exclude one another; the weights become
        logarithms, with one or two rounding errors. `.uai` can hold products of factors of at most 16 variables each,
        without determinants or negative coefficients, and gets a table for each factor. These three formats number
        their variables, so the names must be x1, x2, … Circuits that were compiled from a network are written as that
        network: `.bif` with all names (Bayesian networks), `.uai` with numbers in place of names and states.

    Raises
    ------
    FormatError
        If the format is unknown or cannot hold the circuit; the message says why.

    See Also
    --------
    pgcc.load : read a circuit from a file
    pgcc.learn.save : write an estimator to a file
    pgcc.emit : write an evaluator as Python source

    Examples
    --------
    >>> import pgcc
    >>> pgcc.save(pgcc.parse("z/2 + 1/2"), "coin.doc")
    Traceback (most recent call last):
    pgcc.errors.FormatError: coin.doc: cannot write the format '.doc'; known are .bif, .nnf, .npz, .pgc, .psdd, .uai
    """
    if not isinstance(circuit, Circuit):
        hint = "pgcc.learn.save writes estimators" if hasattr(circuit, "get_params") else circuit_from(circuit)
        raise FormatError(f"only a circuit can be saved, not {type(circuit).__name__}: {hint}")
    path = as_path(path)
    write = _function(path, "write")
    with writing(path) as file:
        if unpacked_name(path) == path:
            beside = write(circuit, file)
        else:
            beside = write(circuit, content := BytesIO())
            file.write(gzip.compress(content.getvalue(), mtime=0))
    for extension, content in (beside or {}).items():
        if is_replaceable(path):
            with writing(unpacked_name(path).with_suffix(extension)) as file:
                file.write(content)


def check_can_save(path: str | os.PathLike[str]) -> None:
    """Refuse a file name whose format `save` cannot write. Call it before a long computation, not after."""
    _function(as_path(path), "write")


def _function(path: Path, name: str) -> Callable:
    """The function `read` or `write` of the format that the file extension names."""
    able = {extension: one for extension, one in FORMATS.items() if name == "read" or one.is_written}
    path = unpacked_name(path)
    extension = path.suffix.lower()
    if extension not in able:
        what = f"the format {path.suffix!r}" if path.suffix else "a file without an extension"
        raise FormatError(f"{path}: cannot {name} {what}; known are {', '.join(sorted(able))}")
    return getattr(import_module(f"pgcc.formats.{able[extension].module}"), name)
