"""The reference: a page per public name, written into docs/reference/api before Sphinx looks for pages.

`SECTIONS` is the table of contents. `tests/test_site.py` holds it to what is public, so that a new name without a place
here is an error. The methods of `PAGED` classes have pages of their own; those of others are on the page of the class.
"""

from __future__ import annotations

import importlib
import inspect
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref, toctree
from sphinx.util.docutils import SphinxDirective

FOLDER = Path(__file__).parents[1] / "reference" / "api"


@dataclass(frozen=True)
class Section:
    """Names of one module, under a heading of the index."""

    title: str
    module: str
    names: tuple[str, ...]
    guide: str  # the page that explains them

    @property
    def qualified(self) -> list[str]:
        return [f"{self.module}.{name}" for name in self.names]


def section(title: str, module: str, names: str, guide: str) -> Section:
    return Section(title, module, tuple(names.split()), guide)


SECTIONS = [
    section("Write a polynomial", "pgcc", "parse variables from_sympy Circuit", "/guide/polynomials"),
    section("Point processes and trees", "pgcc", "dpp det_pgc determinant", "/guide/dpps"),
    section("", "pgcc", "spanning_tree spanning_forest arborescence", "/guide/trees"),
    section("Combine distributions", "pgcc", "mixture product superpose subsets", "/guide/composition"),
    section("Compile and ask", "pgcc", "compile Model grad", "/guide/questions"),
    section("Is it a distribution?", "pgcc", "check", "/guide/validity"),
    section("Files and source code", "pgcc", "load save emit", "/guide/interop"),
    section(
        "pgcc.pc",
        "pgcc.pc",
        "PC SignedPC pos neg bernoulli true mixture product structure to_pc Structure Offender Smoothing",
        "/guide/circuits",
    ),
    section(
        "pgcc.builders",
        "pgcc.builders",
        "bayesian_network hmm naive_bayes chow_liu chow_liu_from_data chow_liu_parameters cutset_network",
        "/guide/bayesian_networks",
    ),
    section(
        "pgcc.learn",
        "pgcc.learn",
        "SimplePGC DPP ChowLiu MixtureOfTrees PGC CircuitMLE GridSearch Imputer save load",
        "/guide/learning",
    ),
    section("pgcc.plot", "pgcc.plot", "marginals cardinality covariance circuit save", "/gallery/pictures"),
    section("pgcc.torch", "pgcc.torch", "logprob dpp_logprob LogProb", "/guide/interop"),
    section("pgcc.cluster", "pgcc.cluster", "logprobs", "/guide/learning"),
    section(
        "pgcc.testing",
        "pgcc.testing",
        "polynomials circuits pcs kernels graphs evidence assert_valid assert_same_distribution assert_laws "
        "random_circuit random_det random_pc random_evidence brute_force oracle_probability KERNEL_KINDS DET_KINDS",
        "/guide/testing",
    ),
    section("What questions return", "pgcc.queries.mode", "Mode", "/guide/questions"),
    section("", "pgcc.queries.information", "Estimate", "/guide/questions"),
    section("", "pgcc.queries.moments", "Moments", "/guide/questions"),
    section("", "pgcc.queries.gradient", "Gradient", "/guide/questions"),
    section("", "pgcc.queries.explain", "Explanation", "/guide/accuracy"),
    section("", "pgcc.explore.page", "Explorer", "/guide/explorer"),
    section("", "pgcc.validity.standing", "Standing", "/guide/validity"),
    section("", "pgcc.validity.check", "Report", "/guide/validity"),
    section("", "pgcc.validity.verdict", "Verdict", "/guide/validity"),
    section("", "pgcc.validity.proof", "Proof verify", "/guide/validity"),
    section(
        "Errors",
        "pgcc",
        "PgccError ParseError CircuitError SemanticsError EvidenceError PrecisionError FormatError",
        "/start/first_minute",
    ),
    section("", "pgcc.errors", "ProofError SpellingError", "/guide/validity"),
]
MODULES = ("pc", "builders", "plot")  # public names of pgcc that are modules: sections of their own
# Classes whose methods have pages of their own, in groups.
PAGED: dict[str, dict[str, tuple[str, ...]]] = {
    "pgcc.Model": {
        "How probable is it?": ("prob", "logprob", "conditional", "condition"),
        "Variables and pairs": ("marginals", "log_odds", "pairwise", "covariance"),
        "How many?": ("cardinality", "any_of", "parity", "expected_count", "moments"),
        "Sets": ("sample", "mode", "top"),
        "Information": ("entropy", "kl", "mutual_information"),
        "About the model": ("explain", "explore", "standing", "grad"),
    },
    "pgcc.Circuit": {
        "Conditioning and marginalising": ("observe", "marginalize", "restrict", "normalize"),
        "Transforming": ("compose", "thin", "tilt", "complement", "relabel", "simplify", "rewrite"),
        "To other libraries and back": ("to_sympy", "to_networkx", "from_networkx"),
    },
    "pgcc.pc.PC": {
        "Methods": ("to_pgc", "smooth", "structure", "evaluate", "to_networkx", "from_networkx"),
    },
}
REST = "More"  # methods that nobody has put into a group yet


def resolve(name: str) -> Any:
    """The object that a qualified name stands for."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError as error:
            if error.name is not None and not name.startswith(error.name):
                raise  # a package that the module needs
            continue
        for part in parts[cut:]:
            found = getattr(found, part)
        return found
    raise ImportError(name)


def is_method(owner: type, name: str) -> bool:
    """Something to call, or a property that has to be explained by an example."""
    value = inspect.getattr_static(owner, name)
    return isinstance(value, (classmethod, staticmethod)) or inspect.isfunction(value)


def methods(name: str) -> dict[str, list[str]]:
    """The public methods of a class with pages of its own, by group; new ones are in the last."""
    owner, groups = resolve(name), PAGED[name]
    known = {method for group in groups.values() for method in group}
    public = [m for m in dir(owner) if not m.startswith("_") and (is_method(owner, m) or m in known)]
    rest = [m for m in public if m not in known]
    listed = {title: [m for m in group if m in public] for title, group in groups.items()}
    return listed | ({REST: rest} if rest else {})


def pages() -> dict[str, Section]:
    """Every qualified name that has a page, and the section it belongs to."""
    found: dict[str, Section] = {}
    for one in SECTIONS:
        for name in one.qualified:
            found[name] = one
            if name in PAGED:
                found |= {f"{name}.{m}": one for group in methods(name).values() for m in group}
    return found


@cache
def aliases() -> dict[str, str]:
    """What pages call public names, and their qualified names."""
    found = {}
    for name in pages():
        short = name.removeprefix("pgcc.")
        found[name] = name
        if "." in short and not short.startswith(("plot.", "cluster.", "torch.", "testing.")):
            found.setdefault(short, name)
        owner, _, member = name.rpartition(".")
        if owner == "pgcc.Model":
            found[f"model.{member}"] = name
        if owner == "pgcc.Circuit":
            found[f"circuit.{member}"] = name
        if owner in ("pgcc.learn", "pgcc.validity.check", "pgcc.queries.mode"):
            found.setdefault(member, name)
    for name in ("load", "save", "Model", "Circuit", "PC"):
        found.pop(name, None)
    return found | {
        "Model": "pgcc.Model",
        "Circuit": "pgcc.Circuit",
        "PC": "pgcc.pc.PC",
        "PC.to_pgc": "pgcc.pc.PC.to_pgc",
    }


def as_rst(line: str) -> str:
    """A line of a docstring without what reStructuredText would misread: |S| is no substitution, `.edges` no name."""
    if line.lstrip().startswith((">>>", "...")):
        return line
    outside = re.split(r"(``.*?``)", line)
    outside[::2] = [re.sub(r"(?<!`)`(\.\w+)`(?!`)", r"``\1``", part.replace("|", r"\|")) for part in outside[::2]]
    return "".join(outside)


def prepare_docstring(_: Any, what: str, __: str, ___: Any, ____: Any, lines: list[str]) -> None:
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


def summary(name: str) -> str:
    """The first sentence of a docstring, or of the comment that a constant has."""
    if name.split(".")[1] == "torch":
        return ""
    found = resolve(name)
    text = inspect.getdoc(found) or "" if callable(found) or isinstance(found, property) else ""
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


def short(name: str) -> str:
    """Without the modules, as it is listed beside others: parse, Model.prob, SimplePGC."""
    owner, _, member = name.rpartition(".")
    return f"{owner.rpartition('.')[2]}.{member}" if owner in PAGED else member


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


def sections(title: str) -> list[Section]:
    """The section of this title, with those that continue it."""
    found: list[Section] = []
    for one in SECTIONS:
        if one.title == title or (found and not one.title):
            found.append(one)
        elif found:
            break
    return found


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
