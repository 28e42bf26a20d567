"""Rows of data, packed at two bits per entry: the distinct rows and an index if these are few, otherwise all rows.

Long tables are kept in unnamed temporary files, which disappear however the process ends.
"""

from __future__ import annotations

import hashlib
import mmap
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import IO, Any, NamedTuple, Self

import numpy as np

from pgcc.errors import EvidenceError, PgccError, brief
from pgcc.interrupts import end_if_unwanted
from pgcc.ir.domains import domains_of
from pgcc.locks import cached_property

# If the distinct rows have more than FEW entries (rows × variables), all rows are kept. BLOCK: the entries of a block.
FEW, BLOCK = 1 << 24, 1 << 21
# The largest number of bytes of packed rows to hold in memory; more are kept in a file.
_IN_MEMORY = 1 << 25
# The number of rows that are shuffled at a time, and, if there are more, the length of the runs of neighbours to draw.
_WINDOW, _NEIGHBOURS = 1 << 20, 1 << 8
# Without validation data, one row in ten is held out for validation; none if there are fewer than ten.
_HELD_OUT = 10


# -- packing ------------------------------------------------------------------------------------------------

_UNPACKED = ((np.arange(256)[:, None] >> np.array([6, 4, 2, 0]) & 3) - 1).astype(np.int8)


def pack(codes: np.ndarray) -> np.ndarray:
    """Pack four codes into a byte, the first in the highest bits, so that rows and their bytes sort in the same order.

    >>> pack(np.array([[-1, 0, 1, 1, 1]], np.int8)).tolist()
    [[26, 128]]
    """
    rows, n = codes.shape
    entries = np.zeros((rows, n + -n % 4), np.uint8)
    entries[:, :n] = codes + np.int8(1)
    return entries[:, ::4] << 6 | entries[:, 1::4] << 4 | entries[:, 2::4] << 2 | entries[:, 3::4]


def unpack(packed: np.ndarray, n: int) -> np.ndarray:
    """The codes of packed rows of n variables.

    >>> unpack(np.array([[26, 128]], np.uint8), 5).tolist()
    [[-1, 0, 1, 1, 1]]
    """
    return np.ascontiguousarray(_UNPACKED[packed].reshape(len(packed), -1)[:, :n])


def _keys(packed: np.ndarray) -> np.ndarray:
    """Packed rows as sort keys: integers if eight bytes are enough (they sort faster), otherwise bytes."""
    width = packed.shape[1]
    if width > 8:
        return np.ascontiguousarray(packed).view(f"V{width}").reshape(-1)
    wide = np.zeros((len(packed), 8), np.uint8)
    wide[:, 8 - width :] = packed
    return wide.view(">u8").reshape(-1).astype(np.uint64)


def _unpack_keys(keys: np.ndarray, width: int) -> np.ndarray:
    """Packed rows from their sort keys."""
    if width > 8:
        return keys.view(np.uint8).reshape(-1, width)
    return np.ascontiguousarray(keys.astype(">u8").view(np.uint8).reshape(-1, 8)[:, 8 - width :])


# -- rows ---------------------------------------------------------------------------------------------------


class Block(NamedTuple):
    """Some rows, and how often each occurs."""

    packed: np.ndarray
    counts: np.ndarray
    n: int

    @property
    def codes(self) -> np.ndarray:
        """The rows as int8 codes."""
        return unpack(self.packed, self.n)


@dataclass(frozen=True, eq=False)
class Rows:
    """A table of data.

    Only the rows and their order matter for learning, not where they came from or in which chunks they were read.

    Attributes
    ----------
    names : sequence of str
        The names of the columns, which know the domains of variables with states (`pgcc.ir.domains.Columns`).
    packed : array
        The distinct rows in ascending order if they are few, otherwise all rows (and `where` is None).
    where : array, optional
        For every row, the index of its distinct row in `packed`.
    weights : array, optional
        The weight of every row; 1 if they have none.

    Examples
    --------
    >>> rows = pack_rows(["a", "b"], [np.array([[1, 0], [0, 1]], np.int8), np.array([[1, 0]], np.int8)])
    >>> len(rows), rows.codes([0, 1, 2]).tolist(), len(rows.packed)
    (3, [[1, 0], [0, 1], [1, 0]], 2)
    """

    names: Sequence[str]
    packed: np.ndarray
    where: np.ndarray | None
    weights: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.packed if self.where is None else self.where)

    @property
    def n(self) -> int:
        """The number of columns."""
        return len(self.names)

    @property
    def variables(self) -> list[str]:
        """The names of the variables."""
        return list(domains_of(self.names) or self.names)

    def codes(self, which: np.ndarray | list[int] | slice) -> np.ndarray:
        """The rows with these indices, as int8 codes."""
        return unpack(self.packed[which if self.where is None else self.where[which]], self.n)

    def chunks(self) -> Iterator[np.ndarray]:
        """All rows in order, in chunks."""
        for part in slices(len(self), self.n):
            yield self.codes(part)

    @cached_property
    def counts(self) -> np.ndarray:
        """How often each of the packed rows occurs: the sum of the weights of these rows."""
        if self.where is None:
            return np.broadcast_to(1.0, len(self.packed)) if self.weights is None else self.weights
        return tally(self.where, len(self.packed), self.weights)

    @cached_property
    def total(self) -> float:
        """The number of rows, or the sum of their weights."""
        return float(self.counts.sum())

    @property
    def epoch(self) -> int:
        """How many rows `draw` draws."""
        return max(len(self), round(self.total))

    def draw(self, size: int, rng: np.random.Generator, times: int = 1) -> Iterator[np.ndarray]:
        """The indices of all rows in random order, so many times, in mini-batches of `size`; the last may be smaller.

        If rows have weights, they are drawn in proportion: as often as that says, rounded up or down at random.
        """
        order = None
        if self.weights is not None:
            heights = np.cumsum(self.weights) * (self.epoch / self.weights.sum())
            order = np.searchsorted(heights, np.arange(self.epoch) + 0.999 * rng.random(), "right")
        for drawn in batches(times * self.epoch, size, rng):
            yield drawn % self.epoch if order is None else order[drawn % self.epoch]

    def weighted(self, weights: Any) -> Rows:
        """The rows with these weights, without those of weight 0."""
        try:
            found = np.asarray(weights, float)
        except (TypeError, ValueError):
            found = np.full(0, np.nan)
        if found.shape != (len(self),) or not np.isfinite(found).all() or (found < 0).any():
            raise EvidenceError(f"sample_weight: expected {len(self):,} finite numbers ≥ 0, not {brief(weights)}")
        if not found.any():
            raise EvidenceError("sample_weight: every weight is zero")
        rows = replace(self, weights=found)
        return rows if found.all() else rows.select(found > 0)

    def blocks(self) -> list[Block]:
        """All rows in blocks, for sums over rows. Blocks are always the same, and so is the rounding of sums."""
        return [Block(self.packed[part], self.counts[part], self.n) for part in slices(len(self.packed), self.n)]

    def select(self, mask: np.ndarray) -> Rows:
        """The rows for which the mask is True."""
        some = pack_rows(self.names, (self.codes(part)[mask[part]] for part in slices(len(self), self.n)))
        return some if self.weights is None else replace(some, weights=self.weights[mask])

    def fingerprint(self) -> str:
        """A hash of the rows and their order."""
        digest = hashlib.sha256(f"{len(self)} {self.n}".encode())
        for array in (self.packed, self.where, self.weights):
            if array is not None:
                digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()


def slices(rows: int, n: int) -> Iterator[slice]:
    """Slices of rows of n variables, one block each."""
    step = max(1, BLOCK // n)
    for first in range(0, rows, step):
        yield slice(first, min(first + step, rows))


def tally(where: np.ndarray, size: int, weights: np.ndarray | None = None) -> np.ndarray:
    """How often each of 0 … size − 1 occurs, or the sum of the weights where it does.

    >>> tally(np.array([1, 1, 3], np.uint8), 4).tolist()
    [0.0, 2.0, 0.0, 1.0]
    """
    counts = np.zeros(size)
    for part in slices(len(where), 1):
        counts += np.bincount(where[part], None if weights is None else weights[part], size)
    return counts


def pack_rows(names: Sequence[str], chunks: Iterable[np.ndarray], what: str = "the data") -> Rows:
    """Pack rows from chunks of codes; memory does not grow with the number of chunks."""
    distinct = _DistinctKeys(max(1, FEW // len(names)))
    with _GrowingArray() as growing:
        for codes in chunks:
            packed = pack(codes)
            growing.append(packed)
            distinct.add(_keys(packed))
        rows = growing.array()
    if not len(rows):
        raise EvidenceError(f"{what} have no rows")
    few = distinct.found()
    if few is None:
        return Rows(names, rows, None)
    kind = np.min_scalar_type(len(few))
    with _GrowingArray() as where:
        for part in slices(len(rows), len(names)):
            where.append(np.searchsorted(few, _keys(rows[part])).astype(kind))
        return Rows(names, _unpack_keys(few, rows.shape[1]), where.array())


class _DistinctKeys:
    """Collects the distinct keys, in ascending order, as long as there are at most `most`."""

    def __init__(self, most: int):
        self._most, self._many, self._new = most, False, 0
        self._sorted: list[np.ndarray] = []  # the distinct keys so far, followed by those of new chunks

    def add(self, keys: np.ndarray) -> None:
        if not self._many and len(keys):
            self._sorted.append(_sorted_unique(keys))
            self._new += len(self._sorted[-1])
            if self._new > max(len(self._sorted[0]), self._most):
                self.found()

    def found(self) -> np.ndarray | None:
        """All distinct keys, or None if there are more than `most`."""
        if self._many:
            return None
        merged = _sorted_unique(np.concatenate(self._sorted))
        self._sorted, self._new, self._many = [merged], 0, len(merged) > self._most
        return None if self._many else merged


def _sorted_unique(keys: np.ndarray) -> np.ndarray:
    """The distinct keys in ascending order. (np.unique hashes numbers, which takes 30 times as long.)"""
    keys = np.sort(keys)
    return keys[np.concatenate([[True], keys[1:] != keys[:-1]])]


class _GrowingArray:
    """An array to append to: in memory while it is short, then in a temporary file."""

    def __init__(self) -> None:
        self._parts: list[np.ndarray] = []
        self._file: IO[bytes] | None = None
        self._bytes = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._file is not None:
            self._file.close()

    def append(self, part: np.ndarray) -> None:
        self._parts.append(np.ascontiguousarray(part))
        self._bytes += part.nbytes
        if self._bytes > _IN_MEMORY:
            self._write()

    def _write(self) -> None:
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(prefix="pgcc-")  # noqa: SIM115 (closed by __exit__)
            for part in self._parts:
                self._file.write(part.data)
            self._file.flush()
        except OSError as error:
            raise PgccError(
                f"the data cannot be kept in a temporary file in {tempfile.gettempdir()}: {error.strerror or error}; "
                "the environment variable TMPDIR names another folder"
            ) from None
        self._last = self._parts[-1]
        self._parts = []

    def array(self) -> np.ndarray:
        """The whole array; a file is memory-mapped, and disappears with the array."""
        if self._file is None:
            return np.concatenate(self._parts) if self._parts else np.zeros((0, 1), np.uint8)
        mapped = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)
        return np.frombuffer(mapped, self._last.dtype).reshape(-1, *self._last.shape[1:])


# -- random choices -----------------------------------------------------------------------------------------


def shuffled(rows: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """The indices of all rows in random order, one window after another.

    Up to a million rows, all orders are equally likely. With more, a window shuffles runs of neighbouring rows that are
    drawn from the whole table: memory is bounded, and the disk is read in runs.
    """
    if rows <= _WINDOW:
        yield rng.permutation(rows)
        return
    runs = rng.permutation(-(-rows // _NEIGHBOURS))
    for first in range(0, len(runs), _WINDOW // _NEIGHBOURS):
        some = runs[first : first + _WINDOW // _NEIGHBOURS]
        numbers = (some[:, None] * _NEIGHBOURS + np.arange(_NEIGHBOURS)).reshape(-1)
        yield rng.permutation(numbers[numbers < rows])


def batches(rows: int, size: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """The indices of all rows in random order, in mini-batches of `size`; the last may be smaller.

    >>> [len(batch) for batch in batches(10, 4, np.random.default_rng(0))]
    [4, 4, 2]
    """
    rest = np.zeros(0, np.int64)
    for window in shuffled(rows, rng):
        order = np.concatenate([rest, window])
        whole = len(order) - len(order) % size
        for first in range(0, whole, size):
            end_if_unwanted()
            yield order[first : first + size]
        rest = order[whole:]
    if len(rest):
        yield rest


def hold_out(rows: Rows, seed: int) -> tuple[Rows, Rows]:
    """Split off a random tenth of the rows for validation; if there are fewer than ten rows, use all for both."""
    if len(rows) < _HELD_OUT:
        return rows, rows
    rng, out = np.random.default_rng([seed, len(rows)]), np.zeros(len(rows), bool)
    for first in range(0, len(rows), _WINDOW):
        size = min(_WINDOW, len(rows) - first)
        out[first + rng.permutation(size)[: size // _HELD_OUT]] = True
    return rows.select(~out), rows.select(out)
