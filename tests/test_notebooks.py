"""The notebooks of the site are complete: the build of the site executes them, here only their form is looked at."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.md"))
TOPICS = {
    "baskets",
    "bayesian_network",
    "not_a_distribution",
    "paper_figures",
    "recommendation",
    "spanning_trees",
    "speed_and_accuracy",
}
each = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def cells(text: str) -> list[str]:
    return re.findall(r"^```\{code-cell\} ipython3\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def test_all_topics_are_there():
    assert {path.stem for path in NOTEBOOKS} == TOPICS


@each
def test_it_says_how_it_is_run_and_what_it_is_about(path):
    text = path.read_text(encoding="utf-8")
    head, page = re.fullmatch(r"---\n(.*?)\n---\n(.*)", text, re.DOTALL).groups()
    assert "format_name: myst" in head
    assert "name: python3" in head
    titles = re.findall(r"^# (.+)$", re.sub(r"^```.*?^```$", "", page, flags=re.MULTILINE | re.DOTALL), re.MULTILINE)
    assert len(titles) == 1
    assert re.search(r"^- ", page.split("```")[0], re.MULTILINE), "what the reader will be able to do"


@each
def test_code_is_python_and_its_claims_are_asserted(path):
    found = cells(path.read_text(encoding="utf-8"))
    assert len(found) >= 6
    for cell in found:
        ast.parse(cell)
        assert ">>>" not in cell
    assert sum("assert " in cell for cell in found) >= 4


@each
def test_links_lead_somewhere(path):
    for target in re.findall(r"\]\(([^)\s]+)\)", path.read_text(encoding="utf-8")):
        assert target.startswith("https:") or (path.parent / target).exists(), target
