"""`pgcc explore`: the page, what it says, what it refuses."""

from __future__ import annotations

import json
import re

from pgcc.explore import contents


def about(page) -> dict:
    text = page.read_text(encoding="utf-8")
    return json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])["about"]


def test_a_page_is_written(run, tmp_path):
    graph = tmp_path / "triangle.edges"
    graph.write_text("a b 2\nb c 1\na c 1\n")
    page = tmp_path / "page.html"
    said = run("explore", graph, "-o", page)
    assert re.fullmatch(rf"wrote {re.escape(str(page))}: 3 variables, \d+ kB; open it in a browser\n", said)
    assert about(page)["title"] == "triangle.edges"
    assert about(page)["graph"]["trees"]
    run("explore", "--expr", "0.3*rain + 0.7", "-o", page, "--force", "--title", "Rain")
    assert (about(page)["title"], about(page)["variables"]) == ("Rain", ["rain"])


def test_mistakes(fail, tmp_path, monkeypatch):
    page = tmp_path / "page.html"
    assert fail("explore", "--expr", "0.5*a + 0.5").startswith("expected the page to write: -o page.html")
    assert fail("explore", "--expr", "a", "-o", page, "more").startswith("unexpected 'more'")
    page.write_text("mine")
    assert fail("explore", "--expr", "a", "-o", page) == f"{page} exists: --force replaces it"
    assert page.read_text() == "mine"
    pdf = tmp_path / "page.pdf"
    assert "is named like a file of another kind: the explorer writes a web page, whose name ends in .html" in fail(
        "explore", "--expr", "a", "-o", pdf
    )
    assert not pdf.exists()
    assert "cannot be written" in fail("explore", "--expr", "a", "-o", tmp_path / "nowhere" / "page.html")
    monkeypatch.setattr(contents, "MOST_ARGUMENTS", 1)
    text = fail("explore", "--expr", "0.5*a*b + 0.5", "-o", tmp_path / "new.html")
    assert text.startswith("the model is too large for a page")
    assert "circuit." not in text  # no Python
