"""The reference of the site: every public name has a page, an example that runs, and something to see also.

The site itself is built, with warnings as errors, by `python -m sphinx -W --keep-going docs docs/_build`.
"""

from __future__ import annotations

import builtins
import doctest
import importlib
import inspect
import re
import symtable
import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pytest

DOCS = Path(__file__).parents[1] / "docs"
sys.path.insert(0, str(DOCS / "_extensions"))
reference = importlib.import_module("public_names")

PUBLIC_MODULES = ["pgcc", "pgcc.pc", "pgcc.builders", "pgcc.learn", "pgcc.testing", "pgcc.plot"]
PAGES = [name for name in reference.pages() if find_spec("torch") or not name.startswith("pgcc.torch")]
CONSTANTS = {"pgcc.testing.KERNEL_KINDS", "pgcc.testing.DET_KINDS"}
DOCUMENTED = [name for name in PAGES if name not in CONSTANTS]


def public_names(module: ModuleType) -> set[str]:
    """What ``__all__`` says, or else what is defined there and has no underscore."""
    listed = getattr(module, "__all__", None)
    if listed is None:
        listed = [n for n, v in vars(module).items() if getattr(v, "__module__", None) == module.__name__]
    return {name for name in listed if not name.startswith("_")} - set(reference.MODULES)


@pytest.mark.parametrize("module", PUBLIC_MODULES)
def test_every_public_name_has_a_page(module: str) -> None:
    pages = {name.rpartition(".")[2] for name in PAGES if name.rpartition(".")[0] == module}
    helpers = {"format_of"}  # of the command line
    assert public_names(reference.resolve(module)) - helpers == pages


def test_every_method_has_a_page() -> None:
    for owner in reference.PAGED:
        found = reference.resolve(owner)
        named = {name for name in vars(found) if not name.startswith("_") and reference.is_method(found, name)}
        assert {f"{owner}.{name}" for name in named} <= set(PAGES)


def test_methods_of_groups_exist() -> None:
    for owner, groups in reference.PAGED.items():
        for method in (method for group in groups.values() for method in group):
            assert hasattr(reference.resolve(owner), method), f"{owner}.{method}"


def test_the_index_has_every_section_once() -> None:
    index = (DOCS / "reference" / "index.md").read_text(encoding="utf-8")
    shown = re.findall(r"```\{names\} (.*)\n", index)
    assert shown == [section.title for section in reference.SECTIONS if section.title]


@pytest.mark.parametrize("name", DOCUMENTED)
def test_a_page_has_an_example(name: str) -> None:
    text = inspect.getdoc(reference.resolve(name)) or ""
    assert ">>> " in text, f"the docstring of {name} has no example"


def names_in(table: symtable.SymbolTable) -> tuple[set[str], set[str]]:
    """The global names that a piece of code reads, and those that it defines."""
    symbols = table.get_symbols()
    if table.get_type() == "module":
        read = {s.get_name() for s in symbols if s.is_referenced()}
        defined = {s.get_name() for s in symbols if s.is_assigned() or s.is_imported()}
    else:
        read = {s.get_name() for s in symbols if s.is_global() and s.is_referenced()}
        defined = {s.get_name() for s in symbols if s.is_declared_global() and s.is_assigned()}
    for child in table.get_children():
        inner = names_in(child)
        read, defined = read | inner[0], defined | inner[1]
    return read, defined


def undefined_names(text: str) -> set[str]:
    """The names that the examples of a docstring use, but neither import nor define in the same statement or before."""
    known, missing = set(dir(builtins)), set()
    for example in doctest.DocTestParser().get_examples(text):
        read, defined = names_in(symtable.symtable(example.source, "<example>", "exec"))
        known |= defined
        missing |= read - known
    return missing


def docstrings(name: str) -> list[str]:
    """The docstring of a public name and, for a class, those of the public members that pgcc defines."""
    found = reference.resolve(name)
    bases = [base for base in getattr(found, "__mro__", ()) if base.__module__.startswith("pgcc")]
    members = [value for base in bases for m, value in vars(base).items() if not m.startswith("_")]
    return [value.__doc__ or "" for value in (found, *members)]


@pytest.mark.parametrize("name", DOCUMENTED)
def test_an_example_runs_as_copied(name: str) -> None:
    """Doctests run the examples among the names of their module, which a reader does not have."""
    missing = set().union(*map(undefined_names, docstrings(name)))
    assert not missing, f"the example of {name} uses {sorted(missing)}, which it does not import"


def test_undefined_names_are_seen() -> None:
    assert undefined_names(">>> hmm(2)") == {"hmm"}
    assert undefined_names(">>> model.prob()\n>>> model = 1") == {"model"}
    assert undefined_names(">>> [f(x) for x in range(3)]") == {"f"}
    assert undefined_names(">>> def g(x):\n...     return pos(x)") == {"pos"}
    assert not undefined_names(
        ">>> import pgcc\n>>> a, b = pgcc.variables('a b')\n>>> print(f'{a}', [a for a in 'ab'])"
    )


def see_also(text: str) -> list[str]:
    """The names under "See Also"."""
    found = re.search(r"^See Also\n-+\n(.*?)(?=^\w[\w ]*\n-+\n|\Z)", text, re.MULTILINE | re.DOTALL)
    if found is None:
        return []
    heads = [line.partition(" : ")[0] for line in found[1].splitlines() if line and not line.startswith(" ")]
    return [name.strip() for head in heads for name in head.split(",")]


@pytest.mark.parametrize("name", DOCUMENTED)
def test_a_page_says_what_to_see_also(name: str) -> None:
    """Every name there has a page, too; errors and what questions return may do without."""
    names = see_also(inspect.getdoc(reference.resolve(name)) or "")
    optional = name.split(".")[1] in ("queries", "validity", "explore", "errors", "testing") or name.endswith("Error")
    assert names or optional, f"the docstring of {name} has no section See Also"
    owner = name.rpartition(".")[0]
    for other in names:
        assert {other, f"pgcc.{other}", f"{owner}.{other}"} & set(reference.pages()), f"{name} says to see {other}"


def test_pages_of_the_guide_that_explain_names_exist() -> None:
    for section in reference.SECTIONS:
        assert (DOCS / f"{section.guide[1:]}.md").exists(), section.guide


def test_what_reads_like_a_public_name_in_the_guide_is_one() -> None:
    """`pgcc.x` in code font leads to the reference: misspelt, it would lead nowhere."""
    for page in DOCS.rglob("*.md"):
        if page.relative_to(DOCS).parts[0] not in ("_build", "notebooks"):
            for name in re.findall(r"`(pgcc(?:\.\w+)+)(?:\(.*?)?`", page.read_text(encoding="utf-8")):
                if not name.startswith("pgcc.torch"):
                    reference.resolve(name)


@pytest.mark.parametrize("picture", sorted(DOCS.glob("**/_static/*.svg")), ids=lambda path: path.name)
def test_our_pictures_have_a_label(picture: Path) -> None:
    root = ElementTree.parse(picture).getroot()
    assert root.get("role") == "img"
    assert root.get("aria-label") or root.find("{http://www.w3.org/2000/svg}title") is not None


def test_every_name_has_a_summary() -> None:
    pytest.importorskip("sphinx", reason="pip install '.[docs]'")
    summary = importlib.import_module("reference_pages").summary
    assert [name for name in reference.pages() if not summary(name)] == []
    assert summary("pgcc.testing.KERNEL_KINDS") == "The kinds of kernels that `pgcc.testing.kernels` makes."
    assert summary("pgcc.torch.LogProb").startswith("A circuit as a PyTorch layer")


def test_special_signs_of_docstrings_survive() -> None:
    pytest.importorskip("sphinx", reason="pip install '.[docs]'")
    as_rst = importlib.import_module("reference_pages").as_rst
    assert as_rst("Pr(|S| = k), ``|A|``") == r"Pr(\|S\| = k), ``|A|``"
    assert as_rst("a `.edges` file and `parse`") == "a ``.edges`` file and `parse`"
    assert as_rst(">>> a | b") == ">>> a | b"
