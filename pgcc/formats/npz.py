"""`.npz`: a circuit as a few flat arrays, for large circuits; or (read only) the kernel of a DPP, see `matrices`.

No pickles; every index is checked before it is used.

header          JSON as bytes: {"format": "pgcc circuit", "version": 4}
variables       JSON as bytes: the names, in order
op              uint8, one per node, children before parents, the root last
first           int64, nodes + 1: the children of node i are child[first[i]:first[i + 1]]
child           int32
label           int32, one per Var: twice the index of its variable, plus 1 for a complement
value           float64: the numbers; of every edge of a Sum, in the order of the nodes, then of every Const, and then
                the entries of the matrices
is_exact        bool, one per number: whether it is no float, and its value an index into
exact           JSON as bytes: the exact numbers, as "p/q" or as integers, long ones in hexadecimal
shape           int32, three rows per Det (M0, U, V): rows, columns, and 1 if the matrix is one of float64
size            int32, one per Det: its size, −1 for none
counted         bool, one per child f_i of every Det: whether its size counts it
domains         JSON as bytes, only if variables have states: for each, its name, states, and their columns or null
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from itertools import chain, islice, pairwise, repeat
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from pgcc.collector import collector_paused
from pgcc.errors import CircuitError, FormatError
from pgcc.formats.io import DAMAGE, Archive, errors_in, read_bytes, reason_of
from pgcc.formats.matrices import Kernel, kernel_in, process_in
from pgcc.ir.circuit import Circuit, from_flat
from pgcc.ir.domains import Domain, Domains, as_label
from pgcc.ir.flat_builder import FlatBuilder
from pgcc.ir.matrix import Matrix
from pgcc.ir.node import Op, det_data
from pgcc.ir.numbers import Number
from pgcc.ir.operands import new_names
from pgcc.ir.spelling import number_text, read_exact

FORMAT = "pgcc circuit"
VERSION = 4
DTYPES = {
    "header": np.uint8,
    "variables": np.uint8,
    "op": np.uint8,
    "first": np.int64,
    "child": np.int32,
    "label": np.int32,
    "value": np.float64,
    "is_exact": np.bool_,
    "exact": np.uint8,
    "shape": np.int32,
    "size": np.int32,
    "counted": np.bool_,
}
MAX_HEADER = 10_000  # bytes of the JSON header


# -- writing --------------------------------------------------------------------------------------


def write(circuit: Circuit, file: BinaryIO) -> None:
    """Write the arrays of a circuit."""
    np.savez_compressed(file, **to_arrays(circuit))  # numbers only: nothing can be pickled


def to_arrays(circuit: Circuit) -> dict[str, Any]:
    """All of a circuit, as arrays of numbers."""
    flat = circuit._flat
    column = {name: i for i, name in enumerate(circuit.variables)}
    dets = [node for node in circuit.order if node.op is Op.DET]
    matrices = [m for node in dets for m in node.matrices]
    constants, leaves = ([flat.data[i] for i in np.flatnonzero(flat.op == op).tolist()] for op in (Op.CONST, Op.VAR))
    numbers = [*flat.weights, *constants, *chain.from_iterable(chain.from_iterable(m.numbers()) for m in matrices)]
    is_exact = [type(number) is not float for number in numbers]
    texts: dict[str, int] = {}
    for i in np.flatnonzero(is_exact).tolist():
        numbers[i] = texts.setdefault(number_text(numbers[i]), len(texts))
    arrays: dict[str, Any] = {
        "header": _json_bytes({"format": FORMAT, "version": VERSION}),
        "variables": _json_bytes(circuit.variables),
        "op": flat.op,
        "first": flat.start,
        "child": flat.child,
        "label": [2 * column[name] + complement for name, complement in leaves],
        "value": numbers,
        "is_exact": is_exact,
        "exact": _json_bytes(list(texts)),
        "shape": np.array([(*m.shape, m.is_float) for m in matrices], dtype=np.int32).reshape(-1, 3),
        "size": [-1 if node.size is None else node.size for node in dets],
        "counted": [counts for node in dets for counts in node.counted],
    }
    found: dict[str, Any] = {name: np.asarray(arrays[name], dtype=kind) for name, kind in DTYPES.items()}
    if circuit.domains is not None:
        found["domains"] = _json_bytes([[name, d.states, d.columns] for name, d in circuit.domains.items()])
    return found


def _json_bytes(data: Any) -> np.ndarray:
    return np.frombuffer(json.dumps(data, ensure_ascii=False).encode(), dtype=np.uint8)


# -- reading --------------------------------------------------------------------------------------


def _read_archive(path: Path, kernel: str | None) -> Kernel | Circuit:
    """The circuit in an `.npz` file, or the kernel that it holds."""
    data = read_bytes(path)
    with errors_in(path):
        archive = Archive(data)
        return kernel_in(archive, kernel) or circuit_in(archive)


read = partial(process_in, _read_archive)


def circuit_in(archive: Archive) -> Circuit:
    """The circuit of an archive."""
    try:
        with collector_paused():
            arrays = _read_arrays(archive)
            given = archive.array("domains") if "domains" in archive.entries else None
            return _circuit(arrays, None if given is None else _domains(_json(given, list, "list of domains")))
    except (*DAMAGE, CircuitError) as error:
        raise FormatError(f"it is damaged, or not a circuit in the .npz format: {reason_of(error)}") from None


def _read_arrays(archive: Archive) -> dict[str, np.ndarray]:
    entries = archive.entries
    _need("header" in entries, "it has no header: pgcc did not write it")
    _need(entries["header"].file_size <= MAX_HEADER, "its header is too long")
    header = _json(_checked(archive.array("header"), "header"), dict, "header")
    _need(header.get("format") == FORMAT, "its header is not that of a pgcc circuit")
    version = header.get("version")
    _need(version == VERSION, f"it has version {version!r} of the format, and this pgcc reads version {VERSION}")
    missing = [name for name in DTYPES if name not in entries]
    _need(not missing, f"the array {missing[0] if missing else ''!r} is missing")
    return {name: _checked(archive.array(name), name) for name in DTYPES}


def _need(condition: object, message: str) -> None:
    if not condition:
        raise FormatError(message)


def _checked(array: np.ndarray, name: str) -> np.ndarray:
    """The array itself, if it has the type and the number of dimensions that the format prescribes."""
    _need(array.dtype == DTYPES[name], f"the array {name!r} holds {array.dtype}, not {np.dtype(DTYPES[name])}")
    _need(array.ndim == (2 if name == "shape" else 1) and array.flags.c_contiguous, f"{name!r} is no list")
    return array


def _json(array: np.ndarray, kind: type, name: str) -> Any:
    data = json.loads(array.tobytes().decode())
    _need(type(data) is kind, f"the {name} is not a {kind.__name__}")
    return data


def _domains(listed: list) -> Domains:
    """The domains of variables with states."""
    found: dict[str, Domain] = {}
    for name, states, columns in listed:
        _need(type(name) is str and name not in found, "a variable with states has no name of its own")
        _need(type(states) is type(columns) is list and 0 < len(states) == len(columns), f"{name!r} has no states")
        labels = tuple(map(as_label, states))
        _need(len(set(map(str, labels))) == len(labels), f"{name!r} has a state twice")
        unseen = columns.count(None)  # only of two states, or a single one, may one have no column
        _need(unseen <= (len(labels) < 3) and {*map(type, columns)} <= {str, type(None)}, f"{name!r} has no columns")
        found[name] = Domain(labels, tuple(columns))
    return Domains(found)


def _circuit(arrays: dict[str, np.ndarray], domains: Domains | None) -> Circuit:
    op, first, shape = arrays["op"], arrays["first"], arrays["shape"]
    _check_structure(op, first, arrays["child"])
    counts = np.diff(first)
    variables = _json(arrays["variables"], list, "list of variables")
    _need(all(type(name) is str for name in variables), "a variable's name is not text")
    label = arrays["label"]
    _need(len(label) == (op == Op.VAR).sum(), "its variables do not fit its nodes")
    _need(((label >= 0) & (label < 2 * len(variables))).all(), "there is no such variable")
    _need(shape.shape == (3 * (op == Op.DET).sum(), 3), "its matrices do not fit its determinants")
    _need((shape >= 0).all() and (shape[:, 2] <= 1).all(), "a matrix has no such shape")
    weights, constants = int(counts[op == Op.SUM].sum()), int((op == Op.CONST).sum())
    entries = sum(rows * columns for rows, columns, _ in shape.tolist())
    numbers = _read_numbers(arrays, weights + constants + entries)
    matrices = _matrices(shape, numbers, weights + constants)
    _need(domains is None or list(domains.columns) == variables, "its domains are not those of its variables")
    rest = iter(numbers)
    data: dict[Op, Iterator[Any]] = {
        Op.CONST: iter(numbers[weights:]),
        Op.VAR: ((variables[i >> 1], bool(i & 1)) for i in label.tolist()),
        Op.SUM: (tuple(islice(rest, count)) for count in counts[op == Op.SUM].tolist()),
        Op.PRODUCT: repeat(None),
        Op.DET: _determinants(matrices, arrays["size"], arrays["counted"], counts[op == Op.DET] // 2),
    }
    build, child, made = FlatBuilder(), arrays["child"].tolist(), list[int]()
    for kind, (start, stop) in zip(map(list(Op).__getitem__, op.tolist()), pairwise(first.tolist()), strict=True):
        made.append(build.add(kind, tuple([made[c] for c in child[start:stop]]), next(data[kind])))
    names = new_names(variables)
    return from_flat(build.flat(made[-1]), names if domains is None else domains)


def _check_structure(op: np.ndarray, first: np.ndarray, child: np.ndarray) -> None:
    """Children come before parents, and there are as many as the operation has."""
    _need(len(op) > 0, "it has no nodes")
    _need(op.max() <= max(Op), f"{op.max()} is not an operation")
    _need(len(first) == len(op) + 1 and first[0] == 0 and first[-1] == len(child), "its children do not fit its nodes")
    _need((first[1:] >= first[:-1]).all(), "a node has fewer than no children")
    counts = np.diff(first)
    _need(not counts[(op == Op.CONST) | (op == Op.VAR)].any(), "a leaf has children")
    _need(not (counts[op == Op.DET] % 2).any(), "a determinant has an odd number of children")
    parent = np.repeat(np.arange(len(op)), counts)
    _need((child >= 0).all() and (child < parent).all(), "a child does not come before its parent")


def _determinants(
    matrices: Iterator[Matrix], sizes: np.ndarray, counted: np.ndarray, pairs: np.ndarray
) -> Iterator[tuple]:
    """The data of every determinant, of so many pairs of children."""
    _need(len(sizes) == len(pairs), "its sizes do not fit its determinants")
    _need(((sizes >= -1) & (sizes <= pairs)).all(), "a determinant has no such size")
    _need(len(counted) == pairs.sum(), "what is counted does not fit its determinants")
    ends = np.cumsum(pairs).tolist()
    for k, count, end in zip(sizes.tolist(), pairs.tolist(), ends, strict=True):
        m0, u, v = islice(matrices, 3)
        size, which = (None, None) if k < 0 else (k, counted[end - count : end].tolist())
        yield det_data(m0, u, v, count, count, size, which)


def _read_numbers(arrays: dict[str, np.ndarray], needed: int) -> list[Number]:
    value, is_exact = arrays["value"], arrays["is_exact"]
    texts = _json(arrays["exact"], list, "list of exact numbers")
    _need(len(value) == len(is_exact) == needed, f"it has {len(value)} numbers, not {needed}")
    _need(np.isfinite(value).all(), "a number is not finite")
    index = value[is_exact]
    _need(np.isin(index, np.arange(len(texts))).all(), "there is no such exact number")
    _need(all(type(text) is str for text in texts), "an exact number is not text")
    numbers: list[Number] = value.tolist()
    exact = list(map(read_exact, texts))
    for i, number in zip(np.flatnonzero(is_exact).tolist(), index.astype(np.int64).tolist(), strict=True):
        numbers[i] = exact[number]
    return numbers


def _matrices(shape: np.ndarray, numbers: list[Number], start: int) -> Iterator[Matrix]:
    for rows, columns, is_float in shape.tolist():
        entries = numbers[start : start + rows * columns]
        start += rows * columns
        if is_float:
            _need(all(type(x) is float for x in entries), "an entry of a float64 matrix is not a float")
            yield Matrix(np.array(entries, dtype=np.float64).reshape(rows, columns))
        else:
            lines = [entries[i * columns : (i + 1) * columns] for i in range(rows)]
            yield Matrix(lines, shape=(rows, columns))
