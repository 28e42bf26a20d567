"""What was compiled, how it is evaluated, and what accuracy is guaranteed."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from pgcc.compiler import COUNTS, GRADIENTS, MARGINALS, STAGES, VALUES, Compiled
from pgcc.data.evidence import Evidence
from pgcc.errors import plural
from pgcc.evaluate.direct import Float64
from pgcc.ir.circuit import Circuit
from pgcc.ir.node import Op
from pgcc.kernels.policy import seconds_interpreted
from pgcc.methods import METHODS
from pgcc.program.program import Program
from pgcc.queries.distribution import Distribution
from pgcc.queries.probability import describe_shortcut, probabilities
from pgcc.validity.standing import Standing


@dataclass(frozen=True)
class Made:
    """A stage of the compiler that has run: its inputs, what it makes, the size of its result, and the time it took."""

    name: str
    inputs: str
    result: str
    size: str
    seconds: float

    def __str__(self) -> str:
        figures = ", ".join(filter(None, [self.size, f"{1e3 * self.seconds:.1f} ms"]))
        return f"{self.name} ← {', '.join(self.inputs.split())}: {self.result} ({figures})"


@dataclass(frozen=True)
class Explanation:
    """What `Model.explain` returns. Print it to read it; `as_dict` gives the same as data.

    Examples
    --------
    >>> import pgcc
    >>> told = pgcc.compile(pgcc.parse("0.4*a*b + 0.6")).explain({"a": 1})
    >>> told.decomposable, told.strategy, told.query["method"]
    (True, 'direct', 'direct')
    """

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
    stages: tuple[Made, ...] = ()
    shortcut: str = ""
    rungs: tuple[str, ...] = ()
    ladders: tuple[str, ...] = ()

    def as_dict(self) -> dict:
        """The explanation as plain data, for JSON."""
        return asdict(self)

    def _repr_html_(self) -> str:
        """What notebooks show: the explanation as tables."""
        from pgcc.draw.html import explanation_html

        return explanation_html(self)

    def facts(self) -> list[tuple[str, str]]:
        """What is known about the circuit, in words, each with what it is about."""
        kinds = [("decomposable", self.decomposable), ("smooth", self.smooth), ("monotone", self.monotone)]
        structure = ", ".join(name if holds else f"not {name}" for name, holds in kinds)
        if self.determinants:
            structure += f", {plural(self.determinants, 'determinant')}"
        size = f"{plural(self.variables, 'variable')}, {plural(self.edges, 'edge')}, depth {self.depth}"
        work = f"{self.operations} operations per row in {self.slots} slots"
        return [
            ("circuit", f"{size}, formal degree {self.degree}"),
            ("structure", structure),
            ("multiaffine", self.multiaffine),
            ("nonnegative", self.nonnegative),
            ("program", f"simplified to {self.edges_simplified} edges; {work}"),
            ("strategy", f"{self.strategy} ({self.reason})"),
            ("accuracy", self.certificate),
            ("total g(1)", _total_text(self.total)),
            *([("shortcut", self.shortcut)] if self.shortcut else []),
            *(("note", note) for note in self.notes),
            *([("query", ", ".join(f"{key} {value}" for key, value in self.query.items()))] if self.query else []),
        ]

    def __str__(self) -> str:
        lines = [
            *self.facts(),
            *(("stage", stage) for stage in self.stages),
            *((f"rung {i}", rung) for i, rung in enumerate(self.rungs, 1)),
            *(("ladder", ladder) for ladder in self.ladders),
        ]
        return "\n".join(f"{head}: {text}" for head, text in lines)


def _total_text(total: float) -> str:
    if np.isnan(total):
        return "not divided by (normalize=False)"
    return "1" if total == 1.0 else f"{total:.12g}; probabilities are divided by it"


def explain(distribution: Distribution, evidence: Evidence | None, standing: Standing) -> Explanation:
    """The facts, plan and certificate of a compiled circuit; given evidence, also how its first row is answered."""
    circuit, compiled, total, rtol = (
        distribution.circuit, distribution.compiled, distribution.total, distribution.rtol
    )  # fmt: skip
    facts, simplified = circuit.facts, compiled.circuit.facts
    strategy, reason = _strategy(compiled)
    operations, slots = _size(compiled)
    query = None if evidence is None else _query(distribution, evidence)
    return Explanation(
        variables=len(circuit.variables),
        edges=facts.edges,
        edges_simplified=simplified.edges,
        depth=facts.depth,
        degree=facts.degree,
        decomposable=compiled.decomposable,
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
        query=query,
        notes=_notes(circuit),
        stages=_stages(compiled),
        shortcut=describe_shortcut(distribution),
        rungs=tuple(f"{rung.method} by {rung.stage}: {rung.which}" for rung in VALUES[compiled.decomposable]),
        ladders=tuple(
            f"{name} by {', then '.join(rung.stage for rung in ladder[compiled.decomposable])}"
            for name, ladder in (("marginals", MARGINALS), ("counts", COUNTS), ("gradients", GRADIENTS))
        ),
    )


def _stages(compiled: Compiled) -> tuple[Made, ...]:
    """The stages made so far, in the order of `pgcc.compiler`."""
    return tuple(
        Made(stage.name, stage.inputs, stage.result, _told(getattr(compiled, stage.name)), compiled.seconds[stage.name])
        for stage in STAGES[compiled.decomposable].values()
        if stage.name in compiled.seconds
    )


def _told(result: Any) -> str:
    """The size of the result of a stage."""
    match result:
        case Circuit():
            return f"{len(result.order)} nodes, {result.edges} edges"
        case (Program() as program, _) | (Program() as program):
            return f"{program.instructions} instructions, {program.operations} operations, {program.slots} slots"
        case Float64():
            operations, slots = result.size
            return f"{operations} operations, {slots} slots"
        case None:
            return "none"
    return ""


def _size(compiled: Compiled) -> tuple[int, int]:
    """Operations per row, and slots, of the float64 program."""
    if compiled.decomposable:
        return compiled.float64.size
    program, _ = compiled.lowered
    return program.operations, program.slots


def _notes(circuit: Circuit) -> tuple[str, ...]:
    """Remarks on the matrices of determinants, from the functions that made them."""
    matrices = [m for node in circuit.order if node.op is Op.DET for m in node.matrices]
    return tuple(dict.fromkeys(m.note for m in matrices if m.note))


def _strategy(compiled: Compiled) -> tuple[str, str]:
    overlap = compiled.circuit._overlap
    if overlap is None:
        return "direct", f"the circuit is decomposable: {METHODS['direct']}{_forms(compiled)}"
    why = f"not decomposable: two factors of a product share {overlap[1]!r}"
    if compiled.circuit.facts.dets:
        return "ball", f"{why}, and there are determinants"
    return "top or bottom, per query", f"{why}; whichever needs the fewest coefficients in t"


def _forms(compiled: Compiled) -> str:
    """The forms in which determinants are computed."""
    staged = compiled.float64.staged
    if staged is None:
        return ""
    kinds = {", ".join(one.forms) or "balls only" for one in staged.dets.each}
    return f"; determinants by the cheapest of: {' | '.join(sorted(kinds))}"


def _multiaffine(compiled: Compiled) -> str:
    if compiled.decomposable:
        return "by structure (decomposable)"
    if compiled.tested is None:
        return "not tested (validate=False)"
    wrong = f"wrong with probability below {compiled.tested.chance:.1e}"
    return f"by a randomised identity test modulo random primes ({wrong})"


def _certificate(compiled: Compiled, rtol: float) -> str:
    if compiled.decomposable and compiled.circuit.facts.monotone:
        gamma = compiled.float64.certificate.gamma
        return f"nothing cancels: relative error at most {gamma:.1e} in float64"
    if compiled.decomposable:
        return (
            "signed: each value carries a bound (the same circuit with absolute numbers); "
            f"past {rtol:.0e} it is recomputed with balls"
        )
    return f"each value carries a bound; past {rtol:.0e} it is recomputed with balls"


def _query(distribution: Distribution, evidence: Evidence) -> dict[str, float | int | str]:
    before = seconds_interpreted()
    answers = probabilities(distribution, evidence, bounds=True)
    assert answers.bounds is not None
    return {
        "method": " then ".join(method for method, rows in answers.used.items() if rows),
        "value": float(answers.numbers[0]),
        "bound": float(answers.bounds[0]),
        "kernels": "interpreted" if seconds_interpreted() > before else "compiled",
    }
