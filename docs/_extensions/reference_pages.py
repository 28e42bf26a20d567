"""The reference: a page per public name, written into docs/reference/api before Sphinx looks for pages."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path
from typing import Any

from docutils import nodes
from public_names import PAGED, Section, is_method, methods, pages, resolve, sections, short
from sphinx.addnodes import pending_xref, toctree
from sphinx.util.docutils import SphinxDirective

import pgcc

FOLDER = Path(__file__).parents[1] / "reference" / "api"


def as_rst(line: str) -> str:
    """A line of a docstring without what reStructuredText would misread: |S| is no substitution, `.edges` no name."""
    if line.lstrip().startswith((">>>", "...")):
        return line
    outside = re.split(r"(``.*?``)", line)
    outside[::2] = [re.sub(r"(?<!`)`(\.\w+)`(?!`)", r"``\1``", part.replace("|", r"\|")) for part in outside[::2]]
    return "".join(outside)


def prepare_docstring(_: Any, what: str, name: str, __: Any, ___: Any, lines: list[str]) -> None:
    if what == "data":
        lines[:] = [comment(name), ""]  # Python's text on its type would be there
    lines[:] = map(as_rst, lines)
    if what in ("property", "attribute") and lines:
        lines[0] = lines[0].replace(": ", " – ", 1)  # napoleon takes what stands before a colon for a type


def hide_constructor(_: Any, what: str, name: str, *__: Any) -> tuple[str, str] | None:
    """Nobody makes a model, or what questions return, by calling the class."""
    made_for_you = name == "pgcc.Model" or name in [
        n for one in sections("What questions return") for n in one.qualified
    ]
    return ("", "") if what == "class" and made_for_you else None


def call_attributes_so(_: Any, document: nodes.document) -> None:
    """Sphinx has the heading "Variables" for them, which are something else here."""
    for name in document.findall(nodes.field_name):
        if name.astext() == "Variables":
            name.children = [nodes.Text("Attributes")]


def comment(name: str) -> str:
    """What the source says above a constant of a package."""
    package, _, constant = name.rpartition(".")
    for path in Path(resolve(package).__file__).parent.glob("*.py"):
        found = re.search(rf"^((?:#.*\n)+){constant} = ", path.read_text(encoding="utf-8"), re.MULTILINE)
        if found:
            return " ".join(line.lstrip("# ") for line in found[1].splitlines())
    raise LookupError(f"no comment stands above {name}")


def torch_docstring(name: str) -> str:
    """From the source, which can be read where PyTorch is not installed."""
    tree = ast.parse((Path(pgcc.__file__).parent / "torch.py").read_text(encoding="utf-8"))
    return next(
        ast.get_docstring(node) or ""
        for node in tree.body
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name == name.rpartition(".")[2]
    )


def docstring(name: str) -> str:
    """A docstring, or the comment that a constant has."""
    if name.split(".")[1] == "torch":
        return torch_docstring(name)
    found = resolve(name)
    return inspect.getdoc(found) or "" if callable(found) or isinstance(found, property) else comment(name)


def summary(name: str) -> str:
    """The first sentence of the docstring."""
    text = docstring(name)
    first = " ".join(text.split("\n\n")[0].split())
    end = first.find(". ")
    return as_rst(first if end < 0 else first[: end + 1])


def directive(name: str) -> list[str]:
    """How autodoc is asked for it."""
    owner, _, member = name.rpartition(".")
    if name.split(".")[1] == "torch":
        kind = "class" if member[0].isupper() else "function"
    else:
        found = resolve(name)
        if owner in PAGED:
            kind = "property" if isinstance(inspect.getattr_static(resolve(owner), member), property) else "method"
        elif inspect.isclass(found):
            kind = "exception" if issubclass(found, Exception) else "class"
        else:
            kind = "function" if callable(found) else "data"
    lines = [f".. auto{kind}:: {name}"]
    if kind == "class" and name not in PAGED and not name.startswith("pgcc.torch"):
        lines += [] if issubclass(found, tuple) else ["   :members:", "   :inherited-members: float"]
        # what estimators have from scikit-learn for its pipelines is described there, with links into its pages
        routed = [m for m in dir(found) if m == "set_output" or m.endswith(("_request", "_routing"))]
        lines += [f"   :exclude-members: {', '.join(routed)}"] if routed else []
    elif kind == "class" and name in PAGED:
        attributes = [m for m in dir(resolve(name)) if not m.startswith("_") and not is_method(resolve(name), m)]
        shown = [m for m in attributes if f"{name}.{m}" not in pages()]
        lines += [f"   :members: {', '.join(shown)}"] if shown else []
    elif kind == "class":
        lines += ["   :members:"]
    return lines


def heading(text: str, line: str) -> list[str]:
    return [text, line * len(text), ""]


def table(names: list[str]) -> list[str]:
    """Methods with their first sentences, as text of reStructuredText; they follow their class in the side bar."""
    lines = [".. list-table::", "   :widths: 30 70", "   :class: names", ""]
    for name in names:
        lines += [f"   * - :py:obj:`{name.rpartition('.')[2]} <{name}>`", f"     - {summary(name)}"]
    return [*lines, "", ".. toctree::", "   :hidden:", "", *(f"   {short(n)} <{n}>" for n in names), ""]


def page_of(name: str, section: Section) -> str:
    """The text of a page, in reStructuredText."""
    title = (
        name if name.count(".") == 1 or name.startswith(("pgcc.learn", "pgcc.p", "pgcc.b", "pgcc.t")) else short(name)
    )
    lines = [*heading(title, "="), *directive(name), ""]
    if name in PAGED:
        for group, members in methods(name).items():
            lines += [*heading(group, "-"), *table([f"{name}.{m}" for m in members])]
    lines += [".. rst-class:: in-the-guide", "", f"In the guide: :doc:`{section.guide}`", ""]
    return "\n".join(lines)


class Names(SphinxDirective):
    """```{names} TITLE```: the names of a section of the reference, each with its first sentence."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        (title,) = self.arguments
        listed = [name for one in sections(title) for name in one.qualified]
        if not listed:
            raise self.error(f"there is no section {title!r} in the reference")
        return [self.table(listed), self.toctree(listed)]

    def table(self, listed: list[str]) -> nodes.Node:
        rows = nodes.tbody()
        for name in listed:
            link = pending_xref("", refdomain="py", reftype="obj", reftarget=name, refexplicit=True, refwarn=True)
            link += nodes.literal("", short(name))
            words, _ = self.parse_inline(summary(name))
            cells = nodes.paragraph("", "", link), nodes.paragraph("", "", *words)
            rows += nodes.row("", *(nodes.entry("", cell) for cell in cells))
        group = nodes.tgroup("", nodes.colspec(colwidth=30), nodes.colspec(colwidth=70), rows, cols=2)
        return nodes.table("", group, classes=["names"])

    def toctree(self, listed: list[str]) -> nodes.Node:
        files = [f"reference/api/{name}" for name in listed]
        tree = toctree(
            parent=self.env.docname,
            entries=[(short(name), file) for name, file in zip(listed, files, strict=True)],
            includefiles=files,
            maxdepth=1,
            caption=sections(self.arguments[0])[0].title,
            glob=False,
            hidden=True,
            includehidden=False,
            numbered=0,
            titlesonly=True,
        )
        return nodes.compound("", tree, classes=["toctree-wrapper"])


def write(path: Path, text: str) -> None:
    """Unless it is there: what did not change is not built again."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def write_pages(app: Any) -> None:
    from sphinx.ext.autodoc.mock import mock

    FOLDER.mkdir(parents=True, exist_ok=True)
    with mock(app.config.autodoc_mock_imports):
        wanted = pages()
        for name, one in wanted.items():
            write(FOLDER / f"{name}.rst", page_of(name, one))
    for path in FOLDER.glob("*.rst"):
        if path.stem not in wanted:
            path.unlink()


def setup(app: Any) -> dict[str, bool]:
    app.connect("builder-inited", write_pages)
    app.connect("autodoc-process-docstring", prepare_docstring, priority=100)  # before napoleon
    app.connect("autodoc-process-signature", hide_constructor)
    app.connect("doctree-read", call_attributes_so)
    app.add_directive("names", Names)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
