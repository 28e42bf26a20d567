"""What README and docs show is run: Python as doctests, `$ pgcc …` as commands. Links point somewhere."""

from __future__ import annotations

import doctest
import math
import pickle
import re
import shlex
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

import pgcc
from pgcc.cli import main
from pgcc.ir.node import Op

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
# Notebooks are executed when the site is built.
SITE = sorted(page for page in DOCS.rglob("*.md") if page.relative_to(DOCS).parts[0] not in ("_build", "notebooks"))
PAGES = [ROOT / "README.md", *SITE]
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]


class Block(NamedTuple):
    """A fenced block of a page, and the line where its text starts (from 0)."""

    language: str
    text: str
    line: int


def find_blocks(page: str) -> list[Block]:
    found = re.finditer(r"^```([^\n`]*)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    return [Block(m[1].strip(), m[2], page.count("\n", 0, m.start(2))) for m in found]


NUMBER = re.compile(r"(-?\d+\.\d*(?:e[+-]?\d+)?|-?\d+e[+-]?\d+)")


def same(want: str, got: str) -> bool:
    """Equal, but for `...` and for the last digits of floats, which differ between machines."""
    if want == got or doctest._ellipsis_match(want, got):  # type: ignore[attr-defined]
        return True
    wanted, found = NUMBER.split(want), NUMBER.split(got)
    if wanted[::2] != found[::2]:
        return False
    pairs = zip(wanted[1::2], found[1::2], strict=True)
    return all(math.isclose(float(a), float(b), rel_tol=1e-9, abs_tol=1e-15) for a, b in pairs)


class Checker(doctest.OutputChecker):
    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        got = re.sub(" +$", "", got, flags=re.MULTILINE)  # pandas ends the line of a name with blanks
        return super().check_output(want, got, optionflags) or same(want, got)


def test_the_checker_sees_differences():
    assert same("0.25\t6.7e-16\n", "0.25\t6.71e-16\n")
    assert same("[0.3]", "[0.30000000000000004]")
    assert same("a\n...\n", "a\nb\nc\n")
    assert not same("0.25", "0.26")
    assert not same("3/10", "3/11")
    assert not same("x 0.25", "y 0.25")


@pytest.fixture
def _no_deadlines(page):
    """Examples of hypothesis do not fail where the machine is busy."""
    if "hypothesis" not in page.read_text(encoding="utf-8"):
        yield
        return
    from hypothesis import HealthCheck, settings

    settings.register_profile("pages", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("pages")
    yield
    settings.load_profile("default")


@pytest.mark.usefixtures("_no_deadlines")
@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_python(page):
    parser = doctest.DocTestParser()
    runner = doctest.DocTestRunner(Checker(), verbose=False, optionflags=doctest.ELLIPSIS)
    names: dict[str, object] = {}
    report: list[str] = []
    for block in find_blocks(page.read_text(encoding="utf-8")):
        if block.language == "python":
            if re.search("^>>> import torch$", block.text, re.MULTILINE):
                pytest.importorskip("torch", reason="torch is not installed: the rest of the page is not run")
            test = parser.get_doctest(block.text, names, page.name, str(page), block.line)
            assert test.examples, f"{page.name}, line {block.line}: no >>> in a block of Python"
            runner.run(test, out=report.append, clear_globs=False)
            names.update(test.globs)
    assert not report, "".join(report)


def run(arguments: list[str]) -> int | str | None:
    try:
        return main(arguments)
    except SystemExit as exit:  # --help
        return exit.code


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_console(page, capsys, monkeypatch, tmp_path):
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)  # commands may write files
    for block in find_blocks(page.read_text(encoding="utf-8")):
        if block.language == "console":
            for command, want in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block.text, re.MULTILINE):
                for part in command.split(" && "):
                    program, *arguments = shlex.split(part)
                    assert program == "pgcc"
                    assert run(arguments) == 0, capsys.readouterr().err
                got = capsys.readouterr().out
                assert same(want, got), f"{command}\nprints\n{got}\nand not\n{want}"


def test_there_is_something_to_run():
    languages = [block.language for page in PAGES for block in find_blocks(page.read_text(encoding="utf-8"))]
    assert languages.count("python") >= 20
    assert languages.count("console") >= 5


PAPERS = [ROOT / name for name in ("CHANGELOG.md", "CONTRIBUTING.md", "ROADMAP.md")]


@pytest.mark.parametrize("page", [*PAGES, *PAPERS], ids=lambda page: str(page.relative_to(ROOT)))
def test_links(page):
    text = page.read_text(encoding="utf-8")
    targets = re.findall(r"\[[^\]]*\]\(([^)\s]+)\)|<img[^>]* src=\"([^\"]+)\"|srcset=\"([^\"]+)\"", text)
    for target in ("".join(found) for found in targets):
        if target.startswith(("http:", "https:")):
            assert re.fullmatch(r"https?://[\w.-]+\.[a-z]{2,}(/[^\s]*)?", target), f"{page.name} links to {target}"
        elif not target.startswith("#"):
            assert (page.parent / target.split("#")[0]).exists(), f"{page.name} links to {target}"


def test_every_page_is_in_a_table_of_contents():
    listed = {DOCS / "index.md"}
    for page in SITE:
        for tree in re.findall(r"```\{toctree\}\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
            entries = [line for line in tree.split("\n") if line and not line.startswith(":")]
            listed |= {(page.parent / f"{entry}.md").resolve() for entry in entries}
    assert set(SITE) <= listed


def test_ci_runs_the_command_of_the_readme():
    commands = [
        b.text.strip() for b in find_blocks((ROOT / "README.md").read_text(encoding="utf-8")) if b.language == "bash"
    ]
    assert [command for command in commands if " -m pytest" in command] == commands[1:2]
    assert "README.md" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


# -- the tour of the house --------------------------------------------------------------------------------------------

PACKAGE = Path(pgcc.__file__).parent
TOUR = (DOCS / "guide" / "internals.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    """The text under a heading of the tour, up to the next heading."""
    found = re.search(rf"^#+ {re.escape(title)}\n(.*?)(?=^#|\Z)", TOUR, re.MULTILINE | re.DOTALL)
    assert found is not None, title
    return found[1]


def calls_of(work) -> list[str]:
    """The functions of pgcc that are called, as module.name without "pgcc.", in the order of their first calls."""
    found: dict[str, None] = {}

    def note(frame, event, _):
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(PACKAGE):
            module = ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
            found[f"{module}.{frame.f_code.co_qualname.replace('<locals>.', '')}"] = None

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return [name for name in found if "<" not in name and "kernels" not in name.split(".")]


@pytest.fixture(scope="module")
def calls() -> dict[str, list[str]]:
    text, made = "(0.3*a + 0.7)*(0.5*b + 0.5)", []
    assert f'compile(parse("{text}")).prob({{"a": 1}})' in section("One query, step by step")
    pgcc.compile(pgcc.parse("0.5*x + 0.5")).prob({"x": 1})  # kernels are loaded
    compiling = calls_of(lambda: made.append(pgcc.compile(pgcc.parse(text))))
    made[0].prob({"a": 0})
    return {"compile": compiling, "prob": calls_of(lambda: made[0].prob({"a": 1}))}


@pytest.mark.parametrize("part", ["compile", "prob"])
def test_the_tour_names_what_a_query_calls_in_that_order(calls, part):
    named = re.findall(r"`([a-z_0-9]+(?:\.[A-Za-z_0-9]+)+)`", section(part))
    assert len(named) >= 12
    for name in named:
        assert name in calls[part], f"{name} is not called"
    assert named == sorted(named, key=calls[part].index)


ADDITIONS = ["an operation of the IR", "a number system", "a question", "a file format"]


@pytest.mark.parametrize("what", ADDITIONS)
def test_the_files_to_touch_exist(what):
    files = re.findall(r"`((?:pgcc|tests|docs)/[^`*]+)`", section(f"To add {what}"))
    assert len(files) >= 3
    assert all((ROOT / file).exists() for file in files), files


def test_the_map_has_every_folder():
    listed = set(re.findall(r"^\| `pgcc/([a-z_.]+)/?` \|", section("The map"), re.MULTILINE))
    folders = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert folders <= listed
    assert all((PACKAGE / name).exists() for name in listed)


def test_every_dispatch_over_operations_is_in_the_list():
    """A file that names four of the five operations decides by them."""
    listed = set(re.findall(r"^- `(pgcc/[^`]+)`", section("To add an operation of the IR"), re.MULTILINE))
    found = set()
    for path in PACKAGE.rglob("*.py"):
        named = set(re.findall(r"\bOp\.(CONST|VAR|SUM|PRODUCT|DET)\b", path.read_text(encoding="utf-8")))
        if len(named) >= 4:
            found.add(str(path.relative_to(ROOT)))
    assert found == listed


def test_what_raises_an_error_about_an_operation_is_not_needed_for_answers():
    """A circuit of all operations is pickled, printed, compiled and asked without the files of the second list."""
    needed, others = (
        set(re.findall(r"^- `pgcc/([^`]+)\.py`", part, re.MULTILINE))
        for part in section("To add an operation of the IR").split("These refuse it")
    )

    def work():
        det = "det([[1, 0], [0, 1]], [[1, 0], [0, 1]], [[2, 1], [1, 2]], [a, b])"
        circuit = pickle.loads(pickle.dumps(pgcc.parse(f"0.25*{det} + 0.5*a*b*(c + 1) + 0.125")))
        assert {node.op for node in circuit.order} == set(Op)
        str(circuit)
        circuit._repr_html_()
        model = pgcc.compile(circuit)
        model.prob({"a": 1})
        model.prob({"a": 1}, exact=True)
        model.marginals()

    work()  # everything is imported
    called = {name for name in calls_of(work) if name != "passes.sizes.read_size"}  # it reads an argument
    modules = {name.rsplit(".", n)[0].replace(".", "/") for name in called for n in (1, 2)}
    assert not others & modules
    assert len(needed - modules) == 1  # the definition of the semantics
