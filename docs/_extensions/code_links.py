"""A public name in code font, such as `pgcc.dpp` or `Model.prob`, leads to its page of the reference."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from reference_pages import aliases
from sphinx.addnodes import pending_xref
from sphinx.transforms import SphinxTransform

NAME = re.compile(r"([A-Za-z_][\w.]*)(\(.*)?", re.DOTALL)


class CodeLinks(SphinxTransform):
    """The text stays as it is written; inside of links and headings nothing is linked."""

    default_priority = 600

    def apply(self, **_: Any) -> None:
        if self.env.docname.startswith("reference/"):
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


def ancestors(node: nodes.Node) -> list[nodes.Node]:
    found, above = [], node.parent
    while above is not None:
        found.append(above)
        above = above.parent
    return found


def setup(app: Any) -> dict[str, bool]:
    app.add_transform(CodeLinks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
