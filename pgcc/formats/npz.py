"""`.npz`: a circuit as a few flat arrays, for large circuits; or (read only) the kernel of a DPP, see `matrices`.

No pickles; every index is checked before it is used.

header          JSON as bytes: {"format": "pgcc circuit", "version": 1, 2 or 3}
variables       JSON as bytes: the names, in order
op              uint8, one per node, children before parents, the root last
first           int64, nodes + 1: the children of node i are child[first[i]:first[i + 1]]
child           int32
label           int32, one per Var: twice the index of its variable, plus 1 for a complement
kind, value     uint8, float64: the numbers; of every Const and of every edge of a Sum, in the order of the nodes,
                and then the entries of the matrices. Kind 0: the float itself; 1: the integer that the value is;
                2: the value is an index into
exact           JSON as bytes: the other exact numbers, as "p/q" or as integers, long ones in hexadecimal
shape           int32, three rows per Det (M0, U, V): rows, columns, and 1 if the matrix is one of float64
size            int32, one per Det: its size, −1 for none. From version 2 on, which is written if some Det has a size
counted         uint8, one per child f_i of every Det: whether its size counts it. From version 3 on, which is written
                if some size does not count all
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, assert_never

import numpy as np

from pgcc.collector import collector_paused
from pgcc.errors import CircuitError, FormatError
from pgcc.formats.io import DAMAGE, Archive, read_bytes, reason_of
from pgcc.formats.matrices import Kernel, check_kind, kernel_in, process_of
from pgcc.ir.circuit import Circuit
from pgcc.ir.matrix import Matrix
from pgcc.ir.node import Node, Op, const, det, product, var, weighted_sum
from pgcc.ir.numbers import Number
from pgcc.ir.spelling import number_text, read_exact

FORMAT = "pgcc circuit"
UNSIZED, SIZED, COUNTED = VERSIONS = 1, 2, 3
SINCE = {"size": SIZED, "counted": COUNTED}  # the first version with these arrays; the others are in all
DTYPES = {
    "header": np.uint8,
    "variables": np.uint8,
    "op": np.uint8,
    "first": np.int64,
    "child": np.int32,
    "label": np.int32,
    "kind": np.uint8,
    "value": np.float64,
    "exact": np.uint8,
    "shape": np.int32,
    "size": np.int32,
    "counted": np.uint8,
}
FLOAT, INTEGER, EXACT = 0, 1, 2
MAX_HEADER = 10_000  # bytes of the JSON header
_WHOLE = 2**53  # integers up to this are float64s


# -- writing --------------------------------------------------------------------------------------


def write(circuit: Circuit, file: BinaryIO) -> None:
    """Write the arrays of a circuit."""
    np.savez_compressed(file, **to_arrays(circuit))  # numbers only: nothing can be pickled


def to_arrays(circuit: Circuit) -> dict[str, Any]:
    """All of a circuit, as arrays of numbers."""
    order = circuit.order
    position = {node: i for i, node in enumerate(order)}
    column = {name: i for i, name in enumerate(circuit.variables)}
    dets = [node for node in order if node.op is Op.DET]
    matrices = [m for node in dets for m in node.matrices]
    sizes = [-1 if node.size is None else node.size for node in dets]
    counted = [counts for node in dets for counts in node.counted]
    version = COUNTED if not all(counted) else SIZED if any(size >= 0 for size in sizes) else UNSIZED
    kind, value, exact = _pooled(_numbers(order, matrices))
    arrays: dict[str, Any] = {
        "header": _json_bytes({"format": FORMAT, "version": version}),
        "variables": _json_bytes(circuit.variables),
        "op": [node.op for node in order],
        "first": np.cumsum([0, *(len(node.children) for node in order)]),
        "child": [position[child] for node in order for child in node.children],
        "label": [2 * column[node.name] + node.is_complement for node in order if node.op is Op.VAR],
        "kind": kind,
        "value": value,
        "exact": _json_bytes(exact),
        "shape": np.array([(*m.shape, m.is_float) for m in matrices], dtype=np.int32).reshape(-1, 3),
        "size": sizes,
        "counted": counted,
    }
    return {name: np.asarray(arrays[name], dtype=DTYPES[name]) for name in _array_names(version)}


def _array_names(version: int) -> list[str]:
    """The arrays of a file."""
    return [name for name in DTYPES if version >= SINCE.get(name, UNSIZED)]


def _json_bytes(data: Any) -> np.ndarray:
    return np.frombuffer(json.dumps(data, ensure_ascii=False).encode(), dtype=np.uint8)


def _numbers(order: Sequence[Node], matrices: Iterable[Matrix]) -> Iterator[Number]:
    for node in order:
        match node.op:
            case Op.SUM:
                yield from node.weights
            case Op.CONST:
                yield node.value
            case Op.VAR | Op.PRODUCT | Op.DET:  # the matrices of determinants come after all nodes
                pass
            case _:
                assert_never(node.op)
    for matrix in matrices:
        yield from chain.from_iterable(matrix.numbers())


def _pooled(numbers: Iterable[Number]) -> tuple[list[int], list[float], list[str]]:
    """The arrays `kind` and `value`, and the texts of the numbers that are no float64."""
    kinds: list[int] = []
    values: list[float] = []
    exact: dict[str, int] = {}
    for number in numbers:
        if type(number) is float:
            kinds.append(FLOAT)
            values.append(number)
        elif type(number) is int and abs(number) <= _WHOLE:
            kinds.append(INTEGER)
            values.append(float(number))
        else:
            kinds.append(EXACT)
            values.append(float(exact.setdefault(number_text(number), len(exact))))
    return kinds, values, list(exact)


# -- reading --------------------------------------------------------------------------------------


def read(
    path: Path,
    kernel: str | None = None,
    symmetric: bool = True,
    nearest: bool = False,
    rank: int | str | None = None,
    names: Iterable[str] | None = None,
) -> Circuit:
    """The circuit in an `.npz` file, or the determinantal point process of a kernel that it holds.

    The options are for kernels, as in `pgcc.formats.matrices.read`.
    """
    check_kind(path, kernel)
    data = read_bytes(path)
    try:
        archive = Archive(data)
        found = kernel_in(archive, kernel) or circuit_in(archive)
    except FormatError as error:
        raise FormatError(f"{path}: {error}") from None
    if isinstance(found, Kernel):
        return process_of(path, found, names, symmetric=symmetric, nearest=nearest, rank=rank)
    if kernel is not None or names is not None or rank is not None or nearest or not symmetric:
        raise FormatError(f"{path} holds a circuit: options of kernels mean nothing for it")
    return found


def circuit_in(archive: Archive) -> Circuit:
    """The circuit of an archive."""
    try:
        with collector_paused():
            return _circuit(_read_arrays(archive))
    except (*DAMAGE, CircuitError) as error:
        raise FormatError(f"it is damaged, or not a circuit in the .npz format: {reason_of(error)}") from None


def _read_arrays(archive: Archive) -> dict[str, np.ndarray]:
    entries = archive.entries
    _need("header" in entries, "it has no header: pgcc did not write it")
    _need(entries["header"].file_size <= MAX_HEADER, "its header is too long")
    header = _json(_checked(archive.array("header"), "header"), dict, "header")
    _need(header.get("format") == FORMAT, "its header is not that of a pgcc circuit")
    version = header.get("version")
    known = type(version) is int and version in VERSIONS
    _need(known, f"it has version {version!r} of the format, and this pgcc reads versions {UNSIZED} to {COUNTED}")
    names = _array_names(version)
    missing = [name for name in names if name not in entries]
    _need(not missing, f"the array {missing[0] if missing else ''!r} is missing")
    return {name: _checked(archive.array(name), name) for name in names}


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


def _circuit(arrays: dict[str, np.ndarray]) -> Circuit:
    op, first, shape = arrays["op"], arrays["first"], arrays["shape"]
    _check_structure(op, first, arrays["child"])
    variables = _json(arrays["variables"], list, "list of variables")
    _need(all(type(name) is str for name in variables), "a variable's name is not text")
    leaves = _labels(arrays["label"], variables, int((op == Op.VAR).sum()))
    child_counts = np.diff(first)[op == Op.DET]
    _check_shapes(shape, child_counts)
    sizes = _sizes(arrays.get("size"), child_counts)
    counted = _counted(arrays.get("counted"), child_counts, sizes)
    counts = np.where(op == Op.SUM, np.diff(first), op == Op.CONST)
    texts = _json(arrays["exact"], list, "list of exact numbers")
    needed = int(counts.sum()) + _entry_count(shape)
    numbers = _read_numbers(arrays["kind"], arrays["value"], texts, needed)
    matrices = _matrices(shape, numbers, int(counts.sum()))
    dets = zip(matrices, matrices, matrices, sizes, counted, strict=True)
    return Circuit(_build(arrays, numbers, leaves, dets), variables)


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


def _labels(label: np.ndarray, variables: list[str], count: int) -> Iterator[Node]:
    _need(len(label) == count, "its variables do not fit its nodes")
    _need(not count or (label.min() >= 0 and label.max() < 2 * len(variables)), "there is no such variable")
    return iter([var(variables[i >> 1], bool(i & 1)) for i in label.tolist()])


def _check_shapes(shape: np.ndarray, child_counts: np.ndarray) -> None:
    _need(shape.shape == (3 * len(child_counts), 3), "its matrices do not fit its determinants")
    _need((shape >= 0).all() and (shape[:, 2] <= 1).all(), "a matrix has no such shape")


def _sizes(size: np.ndarray | None, child_counts: np.ndarray) -> list[int | None]:
    if size is None:
        return [None] * len(child_counts)
    _need(len(size) == len(child_counts), "its sizes do not fit its determinants")
    _need(((size >= -1) & (size <= child_counts // 2)).all(), "a determinant has no such size")
    return [None if k < 0 else k for k in size.tolist()]


def _counted(counted: np.ndarray | None, child_counts: np.ndarray, sizes: list[int | None]) -> list[list[int] | None]:
    """For every Det, which children its size counts; None if it counts all, or there is no size."""
    if counted is None:
        return [None] * len(child_counts)
    last = np.cumsum(child_counts // 2)
    _need(len(counted) == (last[-1] if len(last) else 0), "what is counted does not fit its determinants")
    parts = np.split(counted, last[:-1]) if len(last) else []
    return [part.tolist() if size is not None else None for part, size in zip(parts, sizes, strict=True)]


def _entry_count(shape: np.ndarray) -> int:
    return sum(rows * columns for rows, columns, _ in shape.tolist())


def _read_numbers(kind: np.ndarray, value: np.ndarray, texts: list, needed: int) -> list[Number]:
    _need(len(kind) == len(value) == needed, f"it has {len(value)} numbers, not {needed}")
    _need(np.isfinite(value).all(), "a number is not finite")
    _need(not len(kind) or kind.max() <= EXACT, "a number is of an unknown kind")
    whole = kind != FLOAT
    _need((value[whole] == np.trunc(value[whole])).all() and (abs(value[whole]) <= _WHOLE).all(), "no such integer")
    index = value[kind == EXACT]
    _need(not len(index) or (index.min() >= 0 and index.max() < len(texts)), "there is no such exact number")
    _need(all(type(text) is str for text in texts), "an exact number is not text")
    numbers: list[Number] = value.tolist()
    exact = [read_exact(text) for text in texts]
    for i, number in zip(np.flatnonzero(whole).tolist(), value[whole].tolist(), strict=True):
        numbers[i] = int(number)
    for i, number in zip(np.flatnonzero(kind == EXACT).tolist(), index.tolist(), strict=True):
        numbers[i] = exact[int(number)]
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


def _build(arrays: dict[str, np.ndarray], numbers: list[Number], leaves: Iterator[Node], dets: Iterator) -> Node:
    """The root. All arrays have been checked, so that this loop only builds nodes."""
    first, child = arrays["first"].tolist(), arrays["child"].tolist()
    nodes: list[Node] = []
    used = 0  # numbers
    for i, op in enumerate(arrays["op"].tolist()):
        if op == Op.VAR:
            nodes.append(next(leaves))
            continue
        children = [nodes[c] for c in child[first[i] : first[i + 1]]]
        if op == Op.SUM:
            nodes.append(weighted_sum(numbers[used : used + len(children)], children))
            used += len(children)
        elif op == Op.PRODUCT:
            nodes.append(product(children))
        elif op == Op.CONST:
            nodes.append(const(numbers[used]))
            used += 1
        elif op == Op.DET:
            half = len(children) // 2
            m0, u, v, size, counted = next(dets)
            nodes.append(det(m0, u, v, children[:half], children[half:], size, counted))
        else:
            raise AssertionError(f"the operation {op} is not handled")
    return nodes[-1]
