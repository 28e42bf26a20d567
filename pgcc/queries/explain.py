"""What was compiled, how it is evaluated, and what can be promised of it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from html import escape

import numpy as np

from pgcc.certify import budget
from pgcc.compiler import Compiled
from pgcc.data.evidence import Evidence
from pgcc.ir.circuit import Circuit
from pgcc.ir.node import Op
from pgcc.program.strategy import METHODS
from pgcc.queries.probability import probabilities
from pgcc.rings.values import Values
from pgcc.validity.standing import Standing


@dataclass(frozen=True)
class Explanation:
    """The answer of `Model.explain`; prints as text, `as_dict` gives the same as data."""

    variables: int
    edges: int
    edges_simplified: int
    depth: int
    degree: int
    decomposable: bool
    smooth: bool
    monotone: bool
    determinants: int
    multiaffine: str
    nonnegative: str
    strategy: str
    reason: str
    operations: int
    slots: int
    certificate: str
    total: float
    query: dict[str, float | int | str] | None = None
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict:
        """Plain data, for JSON."""
        return asdict(self)

    def as_html(self, title: str) -> str:
        """A table for notebooks."""
        lines = (line.partition(": ") if ": " in line else ("", "", line) for line in str(self).splitlines())
        rows = "".join(
            f"<tr><th style='text-align:left'>{escape(head)}</th><td style='text-align:left'>{escape(text)}</td></tr>"
            for head, _, text in lines
        )
        return f"<table><caption>{escape(title)}</caption>{rows}</table>"

    def __str__(self) -> str:
        plural = "" if self.variables == 1 else "s"
        kinds = [("decomposable", self.decomposable), ("smooth", self.smooth), ("monotone", self.monotone)]
        lines = [
            f"{self.variables} variable{plural}, {self.edges} edges, depth {self.depth}, formal degree {self.degree}",
            ", ".join(name if holds else f"not {name}" for name, holds in kinds)
            + (f", {self.determinants} determinants" if self.determinants else ""),
            f"multiaffine: {self.multiaffine}",
            f"nonnegative: {self.nonnegative}",
            f"simplified to {self.edges_simplified} edges; program of {self.operations} operations per row "
            f"in {self.slots} slots",
            f"strategy: {self.strategy} ({self.reason})",
            f"accuracy: {self.certificate}",
            "total g(1): not divided by (normalize=False)" if np.isnan(self.total) else _total_text(self.total),
        ]
        lines += [f"note: {note}" for note in self.notes]
        if self.query is not None:
            lines.append("query: " + ", ".join(f"{key} {value}" for key, value in self.query.items()))
        return "\n".join(lines)


def _total_text(total: float) -> str:
    return "total g(1): 1" if total == 1.0 else f"total g(1): {total:.12g}; probabilities are divided by it"


def explain(
    circuit: Circuit,
    compiled: Compiled,
    total: Values | None,
    rtol: float,
    evidence: Evidence | None,
    standing: Standing,
) -> Explanation:
    """Facts, strategy and certificate of a compiled circuit; with evidence, how its first row is answered."""
    facts, simplified = circuit.facts, compiled.circuit.facts
    strategy, reason = _strategy(compiled)
    operations, slots = _size(compiled)
    return Explanation(
        variables=len(circuit.variables),
        edges=facts.edges,
        edges_simplified=simplified.edges,
        depth=facts.depth,
        degree=facts.degree,
        decomposable=simplified.decomposable,
        smooth=simplified.smooth,
        monotone=simplified.monotone,
        determinants=simplified.dets,
        multiaffine=_multiaffine(compiled),
        nonnegative=str(standing),
        strategy=strategy,
        reason=reason,
        operations=operations,
        slots=slots,
        certificate=_certificate(compiled, rtol),
        total=float("nan") if total is None else float(total.floats()[0]),
        query=None if evidence is None else _query(compiled, total, rtol, evidence, standing),
        notes=_notes(circuit),
    )


def _size(compiled: Compiled) -> tuple[int, int]:
    """Operations per row and slots of what runs in float64: the fast form, what comes after determinants included."""
    if not compiled.decomposable:
        return compiled.plain.operations, compiled.plain.slots
    direct = compiled.direct
    if direct.staged is None:
        program = direct.loop.condensed.program
        return program.operations, program.slots
    return direct.staged.head.program.operations + direct.staged.program.operations, direct.staged.program.slots


def _notes(circuit: Circuit) -> tuple[str, ...]:
    """What is to be said of where the matrices of determinants come from."""
    matrices = [m for node in circuit.order if node.op is Op.DET for m in node.matrices]
    return tuple(dict.fromkeys(m.note for m in matrices if m.note))


def _strategy(compiled: Compiled) -> tuple[str, str]:
    if compiled.decomposable:
        return "direct", f"the circuit is decomposable: {METHODS['direct']}{_forms(compiled)}"
    overlap = compiled.circuit.facts.overlap
    assert overlap is not None
    why = f"not decomposable: two factors of a product share {overlap[1]!r}"
    if compiled.circuit.facts.dets:
        return "ball", f"{why}, and there are determinants"
    return "top, bottom or roots, per query", f"{why}; whichever needs the fewest coefficients in t"


def _forms(compiled: Compiled) -> str:
    """By which forms determinants are computed."""
    staged = compiled.direct.staged
    if staged is None:
        return ""
    kinds = {", ".join(one.forms) or "balls only" for one in staged.dets.each}
    return f"; determinants by the cheapest of: {' | '.join(sorted(kinds))}"


def _multiaffine(compiled: Compiled) -> str:
    if compiled.decomposable:
        return "by structure (decomposable)"
    if not compiled.validate:
        return "not tested (validate=False)"
    wrong = f"wrong with probability below {compiled.multiaffinity.chance:.1e}"
    return f"by a randomised identity test modulo random primes ({wrong})"


def _certificate(compiled: Compiled, rtol: float) -> str:
    if compiled.decomposable and compiled.circuit.facts.monotone:
        gamma = compiled.direct.certificate.gamma
        return f"nothing cancels: relative error at most {gamma:.1e} in float64"
    if compiled.decomposable:
        return (
            "signed: each value carries a bound (the same circuit with absolute numbers); "
            f"past {rtol:.0e} it is recomputed with balls"
        )
    return f"each value carries a bound; past {rtol:.0e} it is recomputed with balls"


def _query(
    compiled: Compiled, total: Values | None, rtol: float, evidence: Evidence, standing: Standing
) -> dict[str, float | int | str]:
    answers = probabilities(compiled, evidence, total, rtol=budget.of_value(rtol), bounds=True, proved=standing.proved)
    assert answers.bounds is not None
    answered = " then ".join(method for method, rows in answers.used.items() if rows)
    return {"method": answered, "value": float(answers.numbers[0]), "bound": float(answers.bounds[0])}
