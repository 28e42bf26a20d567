"""Asks questions about cases, and counts: what was asked, right, refused, without a bound, and wrong."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import flint
import numpy as np
from flint import fmpq

import pgcc

from .generators import GENERATORS, LARGE, Case, Picker, make
from .oracle import BITS, Table, ball, rational
from .states import compiled, possible_rows

RTOL = 1e-9
TINIEST = fmpq(1, 2**1074)  # half of it is what rounding to a subnormal double costs
_ROWS = 20  # pieces of evidence for a case
_SHOWN = 25  # wrong answers that are written out


@dataclass(frozen=True)
class Wrong:
    """An answer that is not what was promised."""

    generator: str
    question: str
    method: str
    seed: Any
    mode: str
    what: str

    def __str__(self) -> str:
        return f"{self.generator} {self.question} [{self.method}] seed={self.seed} {self.mode}: {self.what}"


@dataclass
class Ledger:
    """Counts by (generator, question, method)."""

    right: Counter = field(default_factory=Counter)
    refused: Counter = field(default_factory=Counter)
    unbounded: Counter = field(default_factory=Counter)
    wrong: list[Wrong] = field(default_factory=list)
    reasons: Counter = field(default_factory=Counter)

    @property
    def numbers(self) -> int:
        """Numbers that were compared: the right and the wrong ones."""
        return self.right.total() + len(self.wrong)

    def table(self) -> str:
        """One line for every generator, then one for every question and method."""
        return "\n\n".join(self._by(what, key) for what, key in (("generator", 0), ("question, method", slice(1, 3))))

    def _by(self, what: str, key: Any) -> str:
        def summed(counter: Counter) -> Counter:
            found: Counter = Counter()
            for k, n in counter.items():
                part = k[key]
                found[part if isinstance(part, str) else ", ".join(part)] += n
            return found

        wrong = Counter((w.generator, w.question, w.method) for w in self.wrong)
        columns = [summed(c) for c in (self.right, self.unbounded, self.refused, wrong)]
        lines = [f"{what:<44}{'within':>9}{'no bound':>9}{'refused':>9}{'WRONG':>7}"]
        for name in sorted(set().union(*columns)):
            counts = [column[name] for column in columns]
            lines.append(f"{name:<44}{counts[0]:>9}{counts[1]:>9}{counts[2]:>9}{counts[3]:>7}")
        totals = [sum(column.values()) for column in columns]
        lines.append(f"{'in all':<44}{totals[0]:>9}{totals[1]:>9}{totals[2]:>9}{totals[3]:>7}")
        return "\n".join(lines)

    def complaint(self) -> str:
        """What is wrong, a few of every kind."""
        kinds: dict[tuple[str, str], list[Wrong]] = {}
        for w in self.wrong:
            kinds.setdefault((w.generator, w.question), []).append(w)
        shown = [str(ws[0]) + (f"   (and {len(ws) - 1} more)" if len(ws) > 1 else "") for ws in kinds.values()]
        return f"{len(self.wrong)} of {self.numbers} numbers are wrong:\n" + "\n".join(shown)


class Asking:
    """One question about one case: keeps the models, and judges the answers."""

    def __init__(self, case: Case, generator: str, seed: Any, mode: str, ledger: Ledger):
        self.case, self.table, self.circuit = case, case.table, case.circuit
        self.generator, self.seed, self.mode, self.ledger = generator, seed, mode, ledger
        self.question = ""
        self.pick = Picker([seed, *b"questions", *generator.encode()])
        self.rtol = self.pick.of([RTOL, RTOL, RTOL, 1e-12, 1e-4])
        self.slack = 4 * case.rounded

    # -- what is asked -----------------------------------------------------------------------------------------------

    @cached_property
    def model(self) -> Any:
        return compiled(self.circuit, rtol=self.rtol)

    @cached_property
    def raw_model(self) -> Any:
        return compiled(self.circuit, rtol=self.rtol, normalize=False)

    @cached_property
    def rows(self) -> np.ndarray:
        """Evidence: nothing, and random rows, of which many are complete."""
        n = len(self.table.names)
        rows = 5 if self.generator in LARGE else _ROWS
        density = self.pick.rng.random((rows, 1))
        codes = self.pick.rng.integers(0, 2, (rows, n))
        codes[self.pick.rng.random((rows, n)) < density] = -1
        codes[0] = -1
        codes[1::5] = np.maximum(codes[1::5], 0)
        codes[2:4] = np.where(self.pick.rng.random((2, n)) < 0.85, 1, codes[2:4])  # long series
        if self.circuit.domains is not None:
            codes = possible_rows(self.circuit.domains, codes)
        return np.unique(codes, axis=0).astype(np.int8)

    @cached_property
    def possible(self) -> np.ndarray:
        """The rows of positive probability."""
        return np.array([row for row in self.rows.tolist() if self.table.raw(row) > 0], np.int8)

    def evidence(self, codes: Iterable[int]) -> dict[str, int]:
        return {name: int(c) for name, c in zip(self.table.names, codes, strict=True) if c >= 0}

    def told(self, codes: Iterable[int]) -> dict[str, Any]:
        """The evidence as the circuit itself takes it: by states, if it has some."""
        return self.model.told(codes) if self.circuit.domains is not None else self.evidence(codes)

    def closed(self, codes: list[int]) -> list[int]:
        """The codes that the evidence of `told` becomes: where a state is known, its columns are.

        (The derivative by a number of what only as a whole has one state depends on them.)
        """
        if self.circuit.domains is None:
            return codes
        return self.model.model._asked.read(self.model.told(codes)).codes(slice(None))[0].tolist()

    def can_show(self, query: dict[str, int], model: Any = None) -> bool:
        """Whether columns can show this: of a variable with states, one is in."""
        domains = self.circuit.domains
        if domains is None:
            return True
        names = self.model.columns if model is None else model.columns
        kept = self.circuit.domains if model is None else model.domains
        return len(possible_rows(kept, np.array([[query.get(name, -1) for name in names]], np.int8))) > 0

    # -- judging -----------------------------------------------------------------------------------------------------

    def attempt(self, method: str, ask: Callable[[], Any], count: int = 1) -> Any:
        """The answer, or None for a refusal. Any other exception, and the blame of a distribution, are wrong."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return ask()
        except pgcc.SemanticsError as error:
            if self.table.is_distribution:
                self._wrong(method, f"a distribution is refused: {error}")
            else:
                self._count(self.ledger.refused, method, count)
        except pgcc.PgccError as error:
            self.ledger.reasons[self.question, method, str(error)[:60]] += 1
            self._count(self.ledger.refused, method, count)
        except Exception as error:
            self._wrong(method, f"{type(error).__name__}: {error}")
        return None

    def attempt_rows(self, method: str, ask: Callable[[np.ndarray], Any], rows: np.ndarray) -> list[tuple[list, Any]]:
        """Answers row by row; asked together, or one by one where that is refused (what is right may be among them)."""
        if not len(rows):
            return []
        if self.table.is_distribution:
            found = self.attempt(method, lambda: ask(rows), len(rows))
            return [] if found is None else list(zip(rows.tolist(), found, strict=True))
        singles = []
        for row in rows[:8]:
            found = self.attempt(method, lambda row=row: ask(row[None]))
            if found is not None:
                singles.append((row.tolist(), found[0]))
        return singles

    def number(
        self, method: str, value: float, exact: fmpq, relative: float, *, absolute: float = 0.0, about: Any = "",
        probability: bool = True, tiny: bool = True,
    ) -> None:  # fmt: skip
        """Judge a number: within relative·|exact| + absolute of what it should be, and refused if no probability.

        tiny : what is below the range of normal doubles is rounded to a multiple of 2^-1074.
        """
        value = float(value)
        if relative == math.inf:
            self._count(self.ledger.unbounded, method)
            return
        allowed = rational(relative) * abs(exact) + rational(absolute) + (TINIEST if tiny else 0)
        if not math.isfinite(value):
            out_of_range = abs(exact) > rational(1.7e308)
            self._judge(method, out_of_range and not math.isnan(value), value, exact, allowed, about)
        elif probability and not 0 <= exact <= 1:
            self._wrong(method, f"{value!r} is no probability and was not refused; exactly {_shown(exact)} {about}")
        else:
            self._judge(method, abs(rational(value) - exact) <= allowed, value, exact, allowed, about)

    def near(self, method: str, value: float, exact: flint.arb, allowed: flint.arb | float, about: Any = "") -> None:
        """Judge a number whose exact value is a ball."""
        with flint.ctx.workprec(BITS):
            right = math.isfinite(value) and bool(
                abs(flint.arb(float(value)) - exact) <= allowed + flint.arb(2.0**-1074)
            )
        if right:
            self._count(self.ledger.right, method)
        else:
            self._wrong(method, f"{value!r} for {exact.str(17, radius=False)} (allowed {float(allowed):.2g}) {about}")

    def fact(self, method: str, holds: bool, what: Any) -> None:
        """Judge anything else."""
        if holds:
            self._count(self.ledger.right, method)
        else:
            self._wrong(method, str(what))

    def _judge(self, method: str, holds: bool, value: float, exact: fmpq, allowed: fmpq, about: Any) -> None:
        if holds:
            self._count(self.ledger.right, method)
            return
        off = abs(rational(value) - exact) if math.isfinite(value) else None
        error = "" if off is None or not exact else f", off by {_shown(off / abs(exact))}"
        bound = _shown(allowed / abs(exact)) if exact else _shown(allowed)
        self._wrong(method, f"{value!r} for {_shown(exact)}{error}, allowed {bound} {about}")

    def _count(self, counter: Counter, method: str, count: int = 1) -> None:
        counter[self.generator, self.question, method] += count

    def _wrong(self, method: str, what: str) -> None:
        self.ledger.wrong.append(Wrong(self.generator, self.question, method, self.seed, self.mode, what))


def _shown(x: fmpq) -> str:
    return ball(x).str(17, radius=False)


def run(
    seeds: Iterable[int], generators: Iterable[str] | None = None, questions: Iterable[str] | None = None,
    *, numbers: float = math.inf, ledger: Ledger | None = None, mode: str = "as it is",
) -> Ledger:  # fmt: skip
    """Ask all questions about the cases with these seeds, until so many numbers have been compared."""
    from .questions import QUESTIONS

    found = Ledger() if ledger is None else ledger
    chosen = list(QUESTIONS if questions is None else questions)
    most = found.numbers + numbers
    for seed in seeds:
        for generator in GENERATORS if generators is None else generators:
            if found.numbers >= most:
                return found
            ask(generator, seed, chosen, found, mode)
    return found


def ask(generator: str, seed: int, questions: Iterable[str], ledger: Ledger, mode: str = "as it is") -> None:
    """Ask some questions about one case."""
    from .questions import QUESTIONS

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            case = make(generator, seed)
    except pgcc.PgccError as error:
        ledger.refused[generator, "make", "make"] += 1
        ledger.reasons["make", generator, str(error)[:60]] += 1
        return
    asking = Asking(case, generator, seed, mode, ledger)
    asking.question = "compile"
    if asking.attempt("compile", lambda: asking.model) is None:
        return
    for name in questions:
        asking.question = name
        if (case.rounded and name not in _ROUNDED) or name not in _BY_POINTS.get(generator, QUESTIONS):
            continue
        QUESTIONS[name](asking)


# Questions whose answers change by no more than a circuit's probabilities do, relatively.
_ROUNDED = ("prob", "prob without bound", "marginals", "conditional", "pairwise", "cardinality")

# Questions about large circuits: few, for their exact answers are expensive without a table.
_FEW = ("prob", "raw", "logprob", "conditional")
_BY_POINTS = {
    "long_series": ("prob", "raw", "logprob"),
    "many_points": ("prob", "logprob", "cardinality"),
    "many_edges": ("prob",),
    "many_terms": (*_FEW, "marginals", "cardinality"),
    "large_dpp": (*_FEW, "marginals"),
    "many_variables": ("prob", "logprob", "cardinality"),
}

__all__ = ["Asking", "Ledger", "Table", "Wrong", "ask", "run"]
