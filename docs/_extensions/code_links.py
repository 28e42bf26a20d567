"""Code on pages: a public name, such as `pgcc.dpp` or `Model.prob`, leads to its page of the reference."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from public_names import aliases
from sphinx.addnodes import pending_xref
from sphinx.transforms import SphinxTransform

NAME = re.compile(r"([A-Za-z_][\w.]*)(\(.*)?", re.DOTALL)


class CodeLinks(SphinxTransform):
    """The text stays as it is written; inside of links and headings nothing is linked."""

    default_priority = 600

    def apply(self, **_: Any) -> None:
        if self.env.docname.startswith("reference/api/"):
            return
        for node in list(self.document.findall(nodes.literal)):
            matched = NAME.fullmatch(node.astext())
            target = aliases().get(matched[1]) if matched else None
            inside = (nodes.reference, nodes.title, pending_xref)
            if target is None or any(isinstance(above, inside) for above in ancestors(node)):
                continue
            link = pending_xref("", refdomain="py", reftype="obj", reftarget=target, refexplicit=True, refwarn=False)
            node.replace_self(link)
            link += node


class TidyBlocks(SphinxTransform):
    """Doctests end with an empty line, which is not shown."""

    default_priority = 601

    def apply(self, **_: Any) -> None:
        for block in list(self.document.findall(nodes.literal_block)):
            if block.astext().endswith("\n"):
                text = block.astext().rstrip("\n")
                block.rawsource = text
                block.children = []
                block += nodes.Text(text)


def ancestors(node: nodes.Node) -> list[nodes.Node]:
    found, above = [], node.parent
    while above is not None:
        found.append(above)
        above = above.parent
    return found


def setup(app: Any) -> dict[str, bool]:
    app.add_transform(CodeLinks)
    app.add_transform(TidyBlocks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
