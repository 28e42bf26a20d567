"""What notebooks show for models, reports, modes, circuits and estimators: small tables and pictures in HTML.

Text takes the colour of the page around it, lines and backgrounds are translucent, and bars have a colour that is
neither dark nor light, so that everything is readable on any background. Styles are inline, because notebooks that are
not trusted lose style sheets. All names that users have given are escaped.

Nothing here starts long computations. What is not known yet, and would take long, is left for the user to ask for.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from pgcc.data.answers import by_state
from pgcc.draw.labels import shortened
from pgcc.draw.svg import circuit_svg
from pgcc.errors import PgccError, plural
from pgcc.ir.circuit import Circuit
from pgcc.ir.node import Op

if TYPE_CHECKING:
    from pgcc.ir.facts import Facts
    from pgcc.model import Model
    from pgcc.pc import PC
    from pgcc.queries.explain import Explanation
    from pgcc.queries.mode import Mode
    from pgcc.validity.report import Report
    from pgcc.validity.verdict import Verdict

MOST_BARS = 24  # variables whose marginals are shown
MOST_STATES = 4  # states of a variable whose probabilities are written
MOST_NAMES = 40  # members of a most probable set
LONGEST_NAME, LONGEST_TEXT = 40, 300  # characters

# The most multiplications to spend on showing something: a fraction of a second, even if they are interpreted.
AT_ONCE = 50_000
# The same for a model that has computed marginals before, so that nothing is compiled any more.
ONCE_ASKED = 5_000_000
# Structural facts are computed for circuits of up to this many nodes.
FEW_NODES = 2_000

BAR, FAINT, LINE = "#4c8bc9", "rgba(128, 128, 128, 0.16)", "rgba(128, 128, 128, 0.35)"
# One for each state; the same lightness, so that none stands out.
_HUES = (BAR, "#c9824c", "#5aa564", "#a06bc4", "#c45b79", "#8a8f3c")
_DOT = "display: inline-block; width: 0.6em; height: 0.6em; border-radius: 50%"
# With some of the colour of the text: darker on light paper, lighter on dark.
GOOD, BAD, OPEN = (f"color-mix(in srgb, {hue} 70%, currentColor)" for hue in ("#12a05c", "#e0322b", "#c98a00"))


# -- models -----------------------------------------------------------------------------------------------------------


def model_html(model: Model) -> str:
    """A model: the marginals of its variables as bars, how large it is, and how it is evaluated.

    >>> import pgcc
    >>> text = model_html(pgcc.compile(pgcc.parse("0.4*a*b + 0.3*a + 0.3")))
    >>> "Model of 2 variables" in text, ">0.7000<" in text, "model.explain()" in text
    (True, True, True)
    """
    facts = model.circuit.facts
    rows = [
        ("size", _size_text(facts.edges, facts.dets, facts.depth)),
        ("evaluated", _way(model)),
        ("accuracy", f"relative error below {model._asked.rtol:.0e}, certified"),
        ("a distribution", escape(shortened(str(model._standing), LONGEST_TEXT))),
        ("more", _code("model.explain()")),
    ]
    try:
        bars = _marginals(model) if is_cheap(model) else _how_to_ask(model)
    except PgccError as error:
        bars = _note(f"there are no marginals: {error}")
    n = len(model.variables)
    return _card(f"Model of {plural(n, 'variable')}", bars, _facts(rows))


def is_cheap(model: Model) -> bool:
    """Whether the marginals of a model are cheap to compute, by the number of multiplications they take."""
    compiled, n = model._compiled, len(model.variables)
    facts = compiled.circuit.facts
    work = compiled.work
    together = compiled.decomposable and (facts.monotone or bool(facts.dets)) and not _has_sized(compiled.circuit)
    if not together:  # one variable after another, at worst with more bits
        work *= n + 1
    if not compiled.decomposable:  # polynomials of the number of variables that are in
        work *= min(facts.degree, n) + 1
    return work <= (ONCE_ASKED if "reverse" in compiled.seconds else AT_ONCE)


def _has_sized(circuit: Circuit) -> bool:
    return any(node.op is Op.DET and node.size is not None for node in circuit.order)


def _way(model: Model) -> str:
    compiled = model._compiled
    if compiled.decomposable:
        what = "determinants" if compiled.circuit.facts.dets else "one number per node"
        return f"{what}, in float64; more bits where that does not do"
    return "polynomials in t: two factors of a product share a variable"


def _marginals(model: Model) -> str:
    values = np.asarray(model.marginals(names=False))
    if model.circuit.domains is not None:
        return _states(by_state(model.circuit.domains, values.tolist()))
    n = len(values)
    shown = range(n) if n <= MOST_BARS else np.argsort(-values, kind="stable")[:MOST_BARS]
    table = _table(_bar(model.variables[i], float(values[i])) for i in shown)
    said = [f"on average {values.sum():.4g} of {n:,} are 1"]
    if n > MOST_BARS:
        said.insert(0, f"the {MOST_BARS} most probable variables")
        said.append(f"all of them: {_code('model.marginals(names=True)')}")
    return table + _note("; ".join(said), safe=True) if n else _note("it has no variables")


def _states(marginals: dict[str, Any]) -> str:
    """Variables some of which have states."""
    shown = list(marginals.items())[:MOST_BARS]
    table = _table(_stacked(name, p) if isinstance(p, dict) else _bar(name, p) for name, p in shown)
    if len(shown) == len(marginals):
        return table
    return table + _note(f"the first {MOST_BARS} variables; all: {_code('model.marginals(names=True)')}", safe=True)


def _stacked(name: str, states: dict[Any, float]) -> str:
    """A row of a table: the name, a part of a bar for every state, and their numbers."""
    parts = [(str(state), p, _HUES[i % len(_HUES)]) for i, (state, p) in enumerate(states.items())]
    listed = sorted(parts, key=lambda part: -part[1])[:MOST_STATES]
    told = (f"{_part(0.0, hue, _DOT)} {_name(state)} {_probability(p)}" for state, p, hue in listed)
    more = ", …" if len(parts) > MOST_STATES else ""
    return _row(_name(name), _track(_part(p, hue) for _, p, hue in parts), ", ".join(told) + more)


def _bar(name: str, probability: float) -> str:
    """A row of a table: the name, a bar as long as the probability, and the number."""
    return _row(_name(name), _track([_part(probability, BAR, "border-radius: 2px")]), _probability(probability))


def _track(parts: Iterable[str]) -> str:
    size = "display: flex; width: 160px; height: 0.8em; margin-top: 0.3em"
    return f'<div style="{size}; background: {FAINT}; border-radius: 2px; overflow: hidden">{"".join(parts)}</div>'


def _part(probability: float, hue: str, style: str = "") -> str:
    """A part of a bar, as long as the probability."""
    width = 100.0 * min(max(probability, 0.0), 1.0)
    return f'<div style="width: {width:.2f}%; height: 100%; background: {hue}; {style}"></div>'


def _probability(p: float) -> str:
    """Four decimals, so that a column is easy to compare at a glance; more if these would all be 0."""
    return f"{p:.4f}" if p >= 1e-4 or p == 0.0 else f"{p:.3g}"


def _how_to_ask(model: Model) -> str:
    names = ", ".join(map(_name, model.variables[:8])) + (", …" if len(model.variables) > 8 else "")
    asked = f"{_code('model.marginals(names=True)')} computes the marginals, which takes a moment"
    return _note(f"{names}<br>{asked}", safe=True)


# -- verdicts ---------------------------------------------------------------------------------------------------------

_COLOURS = {"proved": GOOD, "refuted": BAD, "not proven": OPEN}
_SIGNS = {"proved": "✓", "refuted": "✗", "not proven": "?"}
_MEANINGS = {
    "multiaffine": "no variable is squared",
    "normalized": "g(1) = 1",
    "nonnegative": "no coefficient is negative",
    "states": "every variable is in exactly one",
}


def report_html(report: Report) -> str:
    """The result of `pgcc.check`: three verdicts, each with its reason and, if it is refuted, a witness.

    >>> import pgcc
    >>> text = report_html(pgcc.check(pgcc.parse("1.5*x - 0.5")))
    >>> "Not a distribution" in text, "−1/2" in text
    (True, True)
    """
    rows = []
    for claim, meaning in _MEANINGS.items():
        verdict = getattr(report, claim)
        if verdict is None:
            continue
        badge = (
            f'<span style="color: {_COLOURS[verdict.state]}; font-weight: 600; white-space: nowrap">'
            f"{_SIGNS[verdict.state]} {verdict.state}</span>"
        )
        reason = f'<div style="min-width: 9em">{escape(shortened(verdict.reason, LONGEST_TEXT))}</div>'
        rows.append(_row(claim, meaning, badge, reason))
    n, edges = len(report.circuit.domains or report.circuit.variables), report.circuit.edges
    size = f"{plural(n, 'variable')}, {_size_text(edges)}"
    more = f"{_code('report.verify()')} checks the proofs; {_code('print(report.certificate)')} shows the rules"
    parts = [_table(rows), _negative_coefficient(report.nonnegative), _note(f"{size}. {more}", safe=True)]
    return _card(report.headline.capitalize(), *parts, colour=_COLOURS[report.state])


def _negative_coefficient(verdict: Verdict) -> str:
    """The witness: a set whose coefficient is negative."""
    if not verdict.refuted:
        return ""
    inside = [name for name, is_in in verdict.witness.items() if is_in]
    number = verdict.as_dict()["value"].replace("-", "−")  # shortened where it is long
    return f"<div>witness: {_set(inside)} has the coefficient {escape(number)}</div>"


# -- most probable sets -----------------------------------------------------------------------------------------------


def mode_html(mode: Mode) -> str:
    """A most probable set: its members, its probability, and whether it is proved to be the best.

    >>> import pgcc
    >>> text = mode_html(pgcc.compile(pgcc.parse("0.4*a*b + 0.3*a + 0.3")).mode())
    >>> "The most probable set" in text, ">0.4<" in text
    (True, True)
    """
    inside, n = mode.inside, len(mode.assignment)
    head = "The most probable set" if mode.rank == 1 else f"Number {mode.rank} of the most probable sets"
    colour = GOOD if mode.exact else OPEN
    factor = math.exp(min(mode.gap, 700.0))
    proof = (
        "proved: nothing is more probable"
        if mode.exact and mode.rank == 1
        else "proved: it is the next one"
        if mode.exact
        else f"within {mode.gap:.4g} nats: no other is more than {factor:.4g} times as probable"
    )
    if mode.condition is not None:
        proof += f", if {mode.condition}"
    rows = [
        ("in", _set(inside)),
        *([] if len(inside) == n else [("out", f"{n - len(inside):,} of {plural(n, 'variable')}")]),
        ("probability", f"{math.exp(mode.logprob):.6g}" if mode.logprob > -700 else f"exp({mode.logprob:.6g})"),
        ("log-probability", f"{mode.logprob:.6g}"),
        ("best?", f'<span style="color: {colour}; font-weight: 600">{proof}</span>'),
    ]
    return _card(head, _facts(rows), colour=colour)


def _set(names: Sequence[str]) -> str:
    if not names:
        return "∅, the empty set"
    chip = f"background: {FAINT}; border-radius: 3px; padding: 0 0.35em; white-space: nowrap"
    chips = [f'<span style="{chip}">{_name(name)}</span>' for name in names[:MOST_NAMES]]
    if len(names) > MOST_NAMES:
        chips.append(f"and {len(names) - MOST_NAMES:,} more")
    return " ".join(chips)


# -- explanations -----------------------------------------------------------------------------------------------------


def explanation_html(explanation: Explanation) -> str:
    """The result of `Model.explain` as tables: facts, the stages of the compiler, and the ladder of number systems.

    >>> import pgcc
    >>> text = explanation_html(pgcc.compile(pgcc.parse("z/2 + 1/2")).explain())
    >>> "How it is computed" in text, "homogenized" in text
    (True, True)
    """
    rows = ((head, escape(text)) for head, text in explanation.facts())
    stages = _listing(
        ("stage", "made from", "what holds of it", "size", "ms"),
        ((s.name, ", ".join(s.inputs.split()), s.result, s.size, f"{1e3 * s.seconds:.2f}") for s in explanation.stages),
    )
    ladder = _listing(("", "how rows are answered"), ((str(i), rung) for i, rung in enumerate(explanation.rungs, 1)))
    others = _note("; ".join(explanation.ladders))
    return _card("How it is computed", _facts(rows), _folded("stages of the compiler", stages),
                 _folded("number systems", ladder + others))  # fmt: skip


# -- circuits ---------------------------------------------------------------------------------------------------------


def circuit_html(circuit: Circuit) -> str:
    """A circuit: its size, the polynomial if that is short, and a picture of the circuit or of a part of it.

    >>> import pgcc
    >>> text = circuit_html(pgcc.parse("0.4*a*b + 0.6"))
    >>> "Circuit over 2 variables" in text, "<svg" in text
    (True, True)
    """
    n = len(circuit.domains or circuit.variables)
    written = str(circuit) if len(circuit.order) <= 40 else ""
    formula = _code(written) if written and "\n" not in written and len(written) <= 120 else ""
    return _card(f"Circuit over {plural(n, 'variable')}", formula, _structure(circuit),
                 circuit_svg(circuit))  # fmt: skip


def pc_html(circuit: PC) -> str:
    """A probabilistic circuit: its size before and after smoothing, and a picture of the circuit or of a part of it.

    >>> from pgcc import pc
    >>> text = pc_html(0.5 * pc.pos("a") * pc.pos("b") + 0.5 * pc.neg("a"))
    >>> "Probabilistic circuit over 2 variables" in text, "4 edges before smoothing, 8 after" in text
    (True, True)
    """
    literals = circuit.literals
    n = len(literals.domains or literals.variables)
    told = ""
    if len(literals.order) <= FEW_NODES and literals._overlap is None:
        told = _note(str(circuit.smoothing))
    head = "Signed probabilistic circuit" if circuit.signed else "Probabilistic circuit"
    return _card(f"{head} over {plural(n, 'variable')}", _structure(literals), told,
                 circuit_svg(literals))  # fmt: skip


def _structure(circuit: Circuit) -> str:
    """The size of a circuit, and its structural properties if they are cheap to find."""
    size = f"{plural(len(circuit.order), 'node')}, {_size_text(circuit.edges)}"
    if len(circuit.order) > FEW_NODES:
        return _note(size)
    return _note(f"{size}: {_kinds(circuit.facts)}")


def _kinds(of: Facts) -> str:
    return ", ".join(kind if getattr(of, kind) else f"not {kind}" for kind in ("decomposable", "smooth", "monotone"))


# -- the pieces -------------------------------------------------------------------------------------------------------

_CARD = f"display: inline-block; max-width: 100%; overflow-x: auto; border: 1px solid {LINE}; border-radius: 6px; \
padding: 0.5em 0.8em; line-height: 1.45"
_TABLE = "border-collapse: collapse; margin: 0.3em 0; border: none; width: auto; font-size: 0.92em"
_CELL = "text-align: left; vertical-align: top; padding: 0.1em 0.9em 0.1em 0; border: none; color: inherit"
_HEAD = f"{_CELL}; font-weight: 600; white-space: nowrap"
_ROW = '<tr style="background: transparent">'


def _card(head: str, *parts: str, colour: str = "inherit") -> str:
    title = f'<div style="font-weight: 700; color: {colour}">{escape(head)}</div>'
    return f'<div class="pgcc" style="{_CARD}">{title}{"".join(parts)}</div>'


def _facts(rows: Iterable[tuple[str, str]]) -> str:
    """A table of names and their descriptions, which are HTML."""
    return _table(_row(escape(head), text) for head, text in rows)


def _table(rows: Iterable[str], head: str = "") -> str:
    return f'<table style="{_TABLE}">{head}<tbody>{"".join(rows)}</tbody></table>'


def _row(head: str, *cells: str) -> str:
    return f'{_ROW}<th scope="row" style="{_HEAD}">{head}</th>{"".join(map(_cell, cells))}</tr>'


def _cell(text: str) -> str:
    return f'<td style="{_CELL}">{text}</td>'


def _listing(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of plain text with a heading row."""
    rule = f"{_CELL}; border-bottom: 1px solid {LINE}"
    head = "".join(f'<th scope="col" style="{rule}; font-weight: 600">{escape(text)}</th>' for text in heads)
    body = (f"{_ROW}{''.join(_cell(escape(text)) for text in row)}</tr>" for row in rows)
    return _table(body, f"<thead><tr>{head}</tr></thead>")


def _folded(head: str, body: str) -> str:
    return f"<details><summary>{escape(head)}</summary>{body}</details>"


def _note(text: str, safe: bool = False) -> str:
    return f'<div style="font-size: 0.92em; opacity: 0.85">{text if safe else escape(text)}</div>'


def _code(text: str) -> str:
    return f'<code style="color: inherit; background: {FAINT}">{escape(text)}</code>'


def _name(name: str) -> str:
    """A user's name, escaped. Only the beginning of a long name is shown, and all of it in a tooltip."""
    if len(name) <= LONGEST_NAME:
        return escape(name)
    return f'<span title="{escape(shortened(name, LONGEST_TEXT))}">{escape(shortened(name, LONGEST_NAME))}</span>'


def _size_text(edges: int, determinants: int = 0, depth: int | None = None) -> str:
    text = plural(edges, "edge") + (f", {plural(determinants, 'determinant')}" if determinants else "")
    return text if depth is None else f"{text}, depth {depth:,}"
