"""Formulas as MathML, which browsers draw themselves: no JavaScript, nothing from the network."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging

logger = logging.getLogger(__name__)


BAR = re.compile(r"<mo([^>]*)>\|</mo>")  # of |A|: no space around it
SYNONYMS = {r"\dots": r"\ldots", r"\dotsc": r"\ldots", r"\dotsb": r"\cdots"}  # what docutils does not know


def convert(node: nodes.Element, as_block: bool) -> str:
    text = re.sub(r"\\dots[bc]?\b", lambda found: SYNONYMS[found[0]], node.astext())
    try:
        return BAR.sub(r'<mo\1 lspace="0" rspace="0">|</mo>', tex2mathml(text, as_block=as_block))
    except MathError as error:
        logger.warning("this formula cannot be written as MathML: %s (%s)", text, error, location=node)
        return f"<code>{text}</code>"


def inline(self: Any, node: nodes.Element) -> None:
    self.body.append(f'<span class="math">{convert(node, as_block=False)}</span>')
    raise nodes.SkipNode


def block(self: Any, node: nodes.Element) -> None:
    self.body.append(f'<div class="math">{convert(node, as_block=True)}</div>\n')
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    app.config.html_math_renderer = "mathml"
    return {"parallel_read_safe": True, "parallel_write_safe": True}
