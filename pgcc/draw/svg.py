"""A circuit drawn as a layered graph, in SVG."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from pgcc.draw.labels import LOOKS
from pgcc.draw.layout import MARGIN, RADIUS, Mark, Wire, lay_out
from pgcc.draw.part import Around, Stub
from pgcc.ir.circuit import Circuit

INK, LINE, NEGATIVE = "#222222", "#8a8a8a", "#b3261e"


def circuit_svg(circuit: Circuit, most_nodes: int = 80, around: Around = None) -> str:
    """The circuit drawn as a layered graph, as the text of an SVG picture.

    Parameters
    ----------
    circuit : Circuit
        The circuit to draw.
    most_nodes : int
        If the circuit has more nodes than this, only its top is drawn.
    around : str, Circuit or Node, optional
        Draw the neighbourhood of this variable, or of this part of the circuit, instead of the top.

    Examples
    --------
    >>> import pgcc
    >>> print(circuit_svg(pgcc.parse("a*b/2 + 1/2"), most_nodes=4))  # doctest: +ELLIPSIS
    <svg ...>the top 2 of 5 nodes and 4 edges</text>
    </svg>
    """
    drawing = lay_out(circuit, most_nodes, around)
    note = [_text(drawing.width / 2, drawing.height - MARGIN, drawing.note, 10, LINE)] if drawing.note else []
    parts = [*map(_wire_svg, drawing.wires), *map(_mark_svg, drawing.marks), *note]
    return _svg(drawing.width, drawing.height, parts)


def _svg(width: float, height: float, parts: Sequence[str]) -> str:
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.1f} {height:.1f}"'
    font = 'font-family="Helvetica, Arial, sans-serif" text-anchor="middle"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} style="max-width: 100%; height: auto" {font}>'
    paper = '<rect width="100%" height="100%" rx="6" fill="#ffffff"/>'  # of its own: notebooks may be dark
    return "\n".join([head, paper, *parts, "</svg>"])


def _text(x: float, y: float, text: str, size: int = 12, colour: str = INK, more: str = "") -> str:
    """Centred: the baseline is 0.35 of the size below the middle. (Not every program knows `dominant-baseline`.)"""
    where = f'x="{x:.1f}" y="{y + 0.35 * size:.1f}"'
    return f'<text {where} font-size="{size}" fill="{colour}"{more}>{escape(text)}</text>'


def _wire_svg(wire: Wire) -> str:
    start, *rest = (f"{x:.1f} {y:.1f}" for x, y in wire.curve)
    dashes = ' stroke-dasharray="3 3"' if wire.cut else ""
    path = f'<path d="M {start} C {" ".join(rest)}" fill="none" stroke="{LINE}"{dashes}/>'
    text = ""
    if wire.label_at is not None:
        halo = ' stroke="#ffffff" stroke-width="3" paint-order="stroke"'
        text = _text(*wire.label_at, wire.label, 10, wire_colour(wire), halo)
    title = f"<title>{escape(wire.title)}</title>" if wire.title else ""
    return f'<g class="edge">{title}{path}{text}</g>'


def wire_colour(wire: Wire) -> str:
    """The colour of an edge's label: negative weights stand out."""
    return NEGATIVE if wire.label.startswith("-") else INK


def _mark_svg(mark: Mark) -> str:
    title = f"<title>{escape(mark.title)}</title>" if mark.title != mark.label else ""
    if isinstance(mark.node, Stub):
        return f'<g class="stub">{title}{_text(mark.x, mark.y, mark.label, 11, LINE)}</g>'
    look = LOOKS[mark.node.op]
    style = f'fill="{look.fill}" stroke="{INK if look.is_outlined else "none"}"'
    x, y = mark.x - mark.width / 2, mark.y - RADIUS
    shape = (
        f'<circle cx="{mark.x:.1f}" cy="{mark.y:.1f}" r="{RADIUS:.1f}" {style}/>'
        if look.is_round
        else f'<rect x="{x:.1f}" y="{y:.1f}" width="{mark.width:.1f}" height="{2 * RADIUS:.1f}" rx="4" {style}/>'
    )
    return f'<g class="node">{title}{shape}{_text(mark.x, mark.y, mark.label)}</g>'
