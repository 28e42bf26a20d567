"""Look for a negative coefficient: local descent over full assignments, from many starts at once.

A coefficient is P − N, where P and N are the sums of the terms with positive and with negative signs. Its own size may
be small or large for many reasons; how close it is to being negative is measured by (P − N) / (P + N), which the
descent lowers by flipping one variable, or two if no single flip helps. Good places to start are where N is large: a
walk from the root down draws terms of the expansion with a negative sign. Random assignments are tried as well.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import accumulate

import numpy as np

from pgcc.compiler import Compiled
from pgcc.errors import PgccError
from pgcc.ir.circuit import Circuit
from pgcc.ir.node import Node, Op
from pgcc.ir.numbers import nearest_float
from pgcc.locks import cached_property
from pgcc.rings.values import Values
from pgcc.validity.coefficients import magnitudes

# Starting points of a descent, and its most steps; rows that are evaluated at a time, and how accurately.
_STARTS, _STEPS = 48, 200
_MOST_ROWS, _RTOL = 1 << 15, 0.25
# The score of an assignment about which nothing is known: no better than any other.
_NOTHING = 1e300


@dataclass
class Search:
    """The result of a search: the row and its exact coefficient, or None; and how many coefficients were tried."""

    row: list[int] | None = None
    value: Fraction | None = None
    looked_at: int = 0
    smallest: Fraction | None = field(default=None, repr=False)  # negative, but within the slack


def find_negative(
    compiled: Compiled, slack: Fraction, seconds: float, rng: np.random.Generator, most: float = np.inf
) -> Search:
    """Search for a coefficient below −slack until one is found, time runs out, or enough coefficients were tried.

    Parameters
    ----------
    compiled : Compiled
        A multiaffine polynomial.
    slack : Fraction
        How far below 0 a coefficient may be.
    seconds : float
        The time for the search.
    rng : numpy Generator
        The source of randomness.
    most : float
        The most coefficients to try.
    """
    return _Descent(compiled, slack, seconds, rng, most).run()


class _Done(Exception):  # noqa: N818 - not an error: one is found, time is up, or enough coefficients were tried
    pass


class _Descent:
    def __init__(self, compiled: Compiled, slack: Fraction, seconds: float, rng: np.random.Generator, most: float):
        self.compiled, self.slack, self.rng, self.most = compiled, slack, rng, most
        self.n = len(compiled.circuit.variables)
        self.draws = TermSampler(compiled.circuit, rng)
        self.result = Search()
        self.seconds, self.end = seconds, np.inf

    def run(self) -> Search:
        try:
            self._scores(np.zeros((1, self.n), np.int8))  # compiling kernels on first use does not count
            self.end = time.monotonic() + self.seconds
            self._scores(np.array([[0] * self.n, [1] * self.n], np.int8))
            while True:
                self._descend(self._starts())
        except _Done:
            return self.result

    def _starts(self) -> np.ndarray:
        """Starting points: half drawn from negative terms, half at random, of all densities."""
        drawn = self.draws.negative_rows(_STARTS // 2)
        density = self.rng.random((_STARTS - len(drawn), 1))
        random = (self.rng.random((len(density), self.n)) < density).astype(np.int8)
        return np.concatenate([drawn, random]) if len(drawn) else random

    def _descend(self, rows: np.ndarray) -> None:
        """Move every start downhill by single flips; those at a local minimum by a double flip, if one helps."""
        scores = self._scores(rows)
        moving = np.ones(len(rows), bool)
        flips = np.eye(self.n, dtype=np.int8)
        for _ in range(_STEPS):
            if not moving.any():
                return
            stuck = moving & ~self._step(rows, scores, np.flatnonzero(moving), flips)
            if stuck.any():
                moving[stuck] = self._step(rows, scores, np.flatnonzero(stuck), self._double_flips())[stuck]

    def _step(self, rows: np.ndarray, scores: np.ndarray, which: np.ndarray, flips: np.ndarray) -> np.ndarray:
        """Move each of these rows by the flip that lowers its score most, in place; which of all rows have moved."""
        moved = np.zeros(len(rows), bool)
        some = max(1, _MOST_ROWS // max(1, len(flips)))
        for first in range(0, len(which), some):
            part = which[first : first + some]
            near = rows[part][:, None, :] ^ flips[None]
            found = self._scores(near.reshape(-1, self.n)).reshape(len(part), len(flips))
            best = found.argmin(axis=1)
            lower = found[np.arange(len(part)), best]
            better = lower < scores[part] - 1e-12 * np.abs(scores[part])
            rows[part[better]] = near[np.flatnonzero(better), best[better]]
            scores[part[better]] = lower[better]
            moved[part[better]] = True
        return moved

    def _double_flips(self) -> np.ndarray:
        """All pairs of variables, or 2,000 random pairs if there are more."""
        i, j = np.triu_indices(self.n, 1)
        if len(i) > 2000:
            chosen = self.rng.choice(len(i), 2000, replace=False)
            i, j = i[chosen], j[chosen]
        flips = np.zeros((len(i), self.n), np.int8)
        flips[np.arange(len(i)), i] = flips[np.arange(len(i)), j] = 1
        return flips

    # -- scores -------------------------------------------------------------------------------------

    def _scores(self, rows: np.ndarray) -> np.ndarray:
        """(P − N) / (P + N) of every row, or a quotient with another denominator (see `_size`).

        Raises _Done at a negative coefficient.
        """
        if time.monotonic() > self.end or self.result.looked_at + len(rows) > self.most:
            raise _Done
        if not len(rows):
            return np.zeros(0)
        rows = np.ascontiguousarray(rows)
        self.result.looked_at += len(rows)
        values = self._evaluate(rows)
        self._verify(rows, values)
        sizes = self._size(rows)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = values.mantissa / sizes.mantissa
            ratio = np.ldexp(ratio, np.clip(values.exponent - sizes.exponent, -1000, 1000).astype(np.int32))
        ratio[~np.isfinite(ratio)] = _NOTHING
        if self._size == self._independent:  # a 0 says nothing, and would draw every descent to it
            ratio[~(values.bound <= _RTOL) | (values.mantissa == 0.0)] = _NOTHING
        return ratio

    def _evaluate(self, rows: np.ndarray) -> Values:
        if self.compiled.decomposable:
            return self.compiled.values(rows, _RTOL, "direct")
        if self.compiled.circuit.facts.dets:
            raise PgccError("determinants in products that share variables")
        return self.compiled.values(rows, _RTOL, "top")

    @cached_property
    def _size(self) -> Callable[[np.ndarray], Values]:
        """P + N where it is as easy as P − N; else what the coefficient would be if all variables were independent."""
        if self.compiled.decomposable:
            size = Compiled(magnitudes(self.compiled.circuit), validate=False)
            if size.decomposable:
                return lambda rows: size.values(rows, _RTOL, "direct")
        return self._independent

    def _independent(self, rows: np.ndarray) -> Values:
        inside, outside = np.log2(self._marginals), np.log2(1.0 - self._marginals)
        exponent, rest = np.divmod(np.where(rows == 1, inside, outside).sum(axis=1), 1.0)
        return Values(np.exp2(rest), exponent.astype(np.int64), np.ones(len(rows)))

    @cached_property
    def _marginals(self) -> np.ndarray:
        """Pr(z_i) of every variable, kept away from 0 and 1."""
        some = np.full((self.n + 1, self.n), -1, np.int8)
        np.fill_diagonal(some, 1)
        values = self._evaluate(some).floats()
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.clip(np.nan_to_num(values[:-1] / values[-1], nan=0.5), 0.02, 0.98)

    def _verify(self, rows: np.ndarray, values: Values) -> None:
        """The most negative of the values that look negative, as fractions."""
        looks = values.floats()
        doubtful = ~(values.bound <= _RTOL)  # as doubles they may be the same beyond their range: −inf ≤ −inf, −0 ≤ −0
        candidates = np.flatnonzero((values.mantissa < 0.0) & ((looks <= -nearest_float(self.slack)) | doubtful))
        for row in candidates[np.argsort(looks[candidates])][:4].tolist():
            codes = rows[row].tolist()
            try:
                value = self.compiled.exact.rational(codes)
            except PgccError:
                return
            if value < -self.slack:
                self.result.row, self.result.value = codes, value
                raise _Done
            if value < 0 and (self.result.smallest is None or value < self.result.smallest):
                self.result.smallest = value


class TermSampler:
    """Draws terms of the expansion of a circuit, each with its share of the absolute total; determinants roughly."""

    TRIES = 8

    def __init__(self, circuit: Circuit, rng: np.random.Generator):
        self.circuit, self.rng = circuit, rng
        self.column = {name: i for i, name in enumerate(circuit.variables)}
        self.logs = _log_totals(circuit)
        self._cumulative: dict[int, list[float]] = {}

    def negative_rows(self, count: int) -> np.ndarray:
        """At most this many assignments, from terms with a negative sign."""
        rows: list[np.ndarray] = []
        for _ in range(self.TRIES * count):
            row, sign = self.draw(greedy=len(rows) % 3 == 2)
            if sign < 0:
                rows.append(row)
            if len(rows) == count:
                break
        return np.array(rows, np.int8).reshape(len(rows), len(self.column))

    def draw(self, greedy: bool) -> tuple[np.ndarray, int]:
        """An assignment and the sign of its term; greedy: below the first choice, always the larger part."""
        row, sign, chosen = np.zeros(len(self.column), np.int8), 1, 0
        stack = [len(self.circuit.order) - 1]
        while stack:
            i = stack.pop()
            node, links = self.circuit.order[i], self.circuit._links[i]
            match node.op:
                case Op.CONST:
                    sign *= -1 if node.value < 0 else 1
                case Op.VAR:
                    row[self.column[node.name]] |= not node.is_complement
                case Op.SUM:
                    k = self._choose(i, greedy and chosen > 0)
                    chosen += 1
                    if k is None:
                        return row, 1
                    sign *= -1 if node.weights[k] < 0 else 1
                    stack.append(links[k])
                case Op.PRODUCT:
                    stack.extend(links)
                case Op.DET:
                    stack.extend(self._draw_subset(node, links))
                case _:
                    raise PgccError(f"it does not know {node!r}")
        return row, sign

    def _choose(self, i: int, greedy: bool) -> int | None:
        shares = self._shares(i)
        if not shares or not shares[-1] > 0.0:
            return None
        if greedy:
            return int(np.argmax(np.diff([0.0, *shares])))
        return min(int(np.searchsorted(shares, self.rng.random() * shares[-1], side="right")), len(shares) - 1)

    def _shares(self, i: int) -> list[float]:
        """Cumulative shares of the terms of a sum."""
        if i not in self._cumulative:
            node = self.circuit.order[i]
            logs = np.array([_log(w) + self.logs[c] for w, c in zip(node.weights, self.circuit._links[i], strict=True)])
            top = logs.max(initial=-np.inf)
            self._cumulative[i] = list(accumulate(np.exp(logs - top).tolist())) if np.isfinite(top) else []
        return self._cumulative[i]

    def _draw_subset(self, node: Node, links: Sequence[int]) -> list[int]:
        """As many of the counted children as the size says, and any number of the others."""
        k, inside = len(node.inside), set()
        for counts in set(node.counted):
            some = [i for i in range(k) if node.counted[i] == counts]
            size = node.size if counts and node.size is not None else int(self.rng.integers(len(some) + 1))
            inside |= {some[i] for i in self.rng.permutation(len(some))[:size].tolist()}
        return [links[j] if j in inside else links[k + j] for j in range(k)]


def _log_totals(circuit: Circuit) -> list[float]:
    """log of every node at z = 1 with absolute numbers; 0 for a determinant."""
    logs: list[float] = []
    for node, children in zip(circuit.order, circuit._links, strict=True):
        match node.op:
            case Op.CONST:
                logs.append(_log(node.value))
            case Op.SUM:
                terms = [_log(w) + logs[c] for w, c in zip(node.weights, children, strict=True)]
                logs.append(float(np.logaddexp.reduce(terms)) if terms else -np.inf)
            case Op.PRODUCT:
                logs.append(sum(logs[c] for c in children))
            case Op.VAR | Op.DET:
                logs.append(0.0)
            case _:
                raise PgccError(f"it does not know {node!r}")
    return logs


def _log(number: int | float | Fraction) -> float:
    size = abs(nearest_float(number))
    return float(np.log(size)) if size else -np.inf
