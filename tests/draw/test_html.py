"""What notebooks show: the numbers are those that are asked for, names are text, and nothing long is started."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np
import pytest

import pgcc
from pgcc import pc
from pgcc.draw import html
from pgcc.ir.circuit import Circuit
from pgcc.ir.node import ONE, product, var, weighted_sum
from pgcc.learn import Imputer
from pgcc.queries.mode import Mode

HOSTILE = "<img src=x onerror=f()>\"'&</td><script>"
VOID = {"br", "img"}


class Page(HTMLParser):
    """The rows of all tables, and whether every element is closed."""

    def __init__(self, text: str):
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.rows: list[list[str]] = []
        self.text = ""
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data
        if self.rows and {"td", "th"} & set(self.open):
            self.rows[-1][-1] += data


def shown(thing) -> Page:
    return Page(thing._repr_html_())


def row_of(page: Page, head: str) -> list[str]:
    (row,) = [row for row in page.rows if row[0] == head]
    return row


def bars(page: Page) -> dict[str, float]:
    return {row[0]: float(row[2]) for row in page.rows if len(row) == 3 and re.fullmatch(r"[\d.e-]+", row[2])}


def chain(n: int, weight=0.5) -> Circuit:
    """Sums and products over n variables, 4·n edges."""
    node = var("z0")
    for i in range(1, n):
        node = weighted_sum((weight, 1 - weight), (product((node, var(f"z{i}"))), ONE))
    return Circuit(node)


# -- models -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "circuit",
    [
        pgcc.parse("(0.1*(z1 + 1)*(6*z2 + 1) - 0.4*z1*z2) * (0.8*z3 + 0.2)"),
        pgcc.dpp(L=[[1, 2, 0], [2, 6, 0], [0, 0, 4]]),
        pgcc.dpp(L=[[1, 2, 0], [2, 6, 0], [0, 0, 4]]).observe(size=2),
        pgcc.spanning_tree([("a", "b", 2), ("b", "c", 3), ("a", "c", 1)]),
        pgcc.parse("((a + b)**2 - (a - b)**2)/8 + 1/2"),
        pgcc.parse("1e-30*a + 1"),
    ],
)
def test_the_bars_of_a_model_are_its_marginals(circuit):
    model = pgcc.compile(circuit)
    page = shown(model)
    asked = model.marginals(names=True)
    assert bars(page) == pytest.approx(asked, rel=1e-2, abs=5e-5)
    assert all(value > 0 for value in bars(page).values())
    widths = [float(width) for width in re.findall(r'<div style="width: ([\d.]+)%', model._repr_html_())]
    assert widths == pytest.approx([100 * value for value in asked.values()], abs=0.01)
    assert f"on average {sum(asked.values()):.4g} of {len(asked)} are 1" in page.text
    assert "relative error below 1e-09" in row_of(page, "accuracy")[1]
    assert row_of(page, "a distribution")[1] == str(model.standing)


def test_of_many_variables_the_most_probable_are_shown():
    model = pgcc.compile(pgcc.dpp(L=np.diag(np.arange(1.0, 31.0))))
    model.marginals()
    page = shown(model)
    assert list(bars(page)) == [f"x{i}" for i in range(30, 30 - html.MOST_BARS, -1)]
    assert "model.marginals(names=True)" in page.text


def test_variables_with_states_have_bars_of_parts():
    weather = pc.categorical("weather", {"sun": 0.625, "<b>": 0.25, "snow": 0.125})
    model = pgcc.compile((weather * pc.bernoulli("late", 0.25) * pc.categorical("sex", {"M": 0.5, "F": 0.5})).to_pgc())
    page = shown(model)
    assert page.text.startswith("Model of 3 variables")
    assert row_of(page, "weather")[2].split(", ") == [" sun 0.6250", " <b> 0.2500", " snow 0.1250"]
    assert row_of(page, "late")[2] == "0.2500"
    widths = [float(width) for width in re.findall(r'<div style="width: ([\d.]+)%', model._repr_html_())]
    assert [width for width in widths if width] == [62.5, 25.0, 12.5, 25.0, 50.0, 50.0]
    assert "b" not in page.tags
    mode = shown(model.mode("weather='<b>', sex=F"))
    assert row_of(mode, "in")[1] == "weather=<b> sex=F"
    assert row_of(mode, "out")[1] == "1 of 3 variables"
    assert shown(model.circuit).text.startswith("Circuit over 3 variables")
    assert "3 variables" in shown(pgcc.check(model.circuit)).text


def test_of_many_states_the_most_probable_are_written():
    shares = {f"s{i}": (i + 1) / 55 for i in range(10)}
    rows = {f"v{k}": pc.categorical(f"v{k}", shares) for k in range(30)}
    circuit = rows["v0"]
    for k in range(1, 30):
        circuit = circuit * rows[f"v{k}"]
    page = shown(pgcc.compile(circuit.to_pgc()))
    assert row_of(page, "v0")[2].split() == ["s9", "0.1818,", "s8", "0.1636,", "s7", "0.1455,", "s6", "0.1273,", "…"]
    assert len([row for row in page.rows if row[0].startswith("v")]) == html.MOST_BARS
    assert "model.marginals(names=True)" in page.text


NAMES = [f"z{i}" for i in range(8)]
# Monotone; a determinant; one of a size; with cancellations; not decomposable.
LARGE = [
    chain(40),
    pgcc.dpp(L=np.eye(6)),
    pgcc.dpp(L=np.eye(4)).observe(size=3),
    chain(20, 1.5),
    pgcc.parse(f"(({'+'.join(NAMES)})**2 - ({'+'.join(f'{z}**2' for z in NAMES)}))/2 + 1"),
]
# How many multiplications marginals take, at least: those that are asked one by one once for every variable.
COSTS = [4 * 39, 6**3, 5 * 4**3, 20 * 4 * 19, 9 * 3 * 24]


@pytest.mark.parametrize(("circuit", "cost"), list(zip(LARGE, COSTS, strict=True)))
def test_nothing_long_is_started_for_a_large_model(circuit, cost, monkeypatch):
    model = pgcc.compile(circuit, validate=False)
    before = set(model._compiled.seconds)
    monkeypatch.setattr(html, "AT_ONCE", cost - 1)
    monkeypatch.setattr(type(model), "_ask", None)  # no question is asked
    monkeypatch.setattr(type(model), "standing", None)  # and no rule is tried
    page = shown(model)
    assert set(model._compiled.seconds) == before  # no stage is made
    assert not bars(page)
    assert "model.marginals(names=True)" in page.text


def test_what_was_asked_before_is_shown_of_larger_models():
    model = pgcc.compile(pgcc.dpp(L=np.eye(40)))
    assert not bars(shown(model))
    model.marginals()
    assert list(bars(shown(model)).values()) == [0.5] * html.MOST_BARS


def test_a_polynomial_that_has_no_marginals_says_why():
    page = shown(pgcc.compile(pgcc.parse("1.5*z - 0.5"), validate=False))
    assert "there are no marginals: " in page.text
    assert "above 1" in page.text
    assert not bars(page)
    assert "not tested (validate=False)" in page.text


# -- reports, modes, explanations -------------------------------------------------------------------------------------


def test_a_report_shows_verdicts_and_the_witness():
    report = pgcc.check(pgcc.parse("1.5*x*y - 0.25*x - 0.25"))
    page = shown(report)
    assert page.text.startswith("Not a distribution")
    for claim in ("multiaffine", "normalized", "nonnegative"):
        verdict, row = getattr(report, claim), row_of(page, claim)
        assert row[2].endswith(verdict.state)
        assert row[3] == verdict.reason
    witness = report.nonnegative.witness
    inside = " ".join(name for name, value in witness.items() if value) or "∅, the empty set"
    assert f"witness: {inside} has the coefficient −1/4" in page.text
    good = shown(pgcc.check(pgcc.parse("0.4*a*b + 0.6")))
    assert good.text.startswith("A distribution")
    assert "witness" not in good.text
    assert shown(pgcc.check(pgcc.parse("z**2"))).text.startswith("Not a distribution")


def test_a_witness_of_ten_thousand_digits_is_told_in_short():
    report = pgcc.check(pgcc.parse("x - 10**-10000*y"), normalize=True)
    assert report.nonnegative.refuted
    assert "witness: y has the coefficient about −2**−33219" in shown(report).text


def test_a_report_does_not_compute_dependence():
    report = pgcc.check(pgcc.parse("0.4*a*b + 0.6"))
    shown(report)
    assert "negative_dependence" not in report.__dict__


def test_a_mode_shows_its_set_and_whether_it_is_the_best():
    model = pgcc.compile(pgcc.dpp(L=[[1, 2, 0], [2, 6, 0], [0, 0, 4]]))
    first, second = model.top(2)
    page = shown(first)
    assert row_of(page, "in")[1] == "x2 x3"
    assert row_of(page, "out")[1] == "1 of 3 variables"
    assert float(row_of(page, "probability")[1]) == pytest.approx(model.prob("x1=0, x2=1, x3=1"), rel=1e-5)
    assert float(row_of(page, "log-probability")[1]) == pytest.approx(first.logprob, rel=1e-5)
    assert row_of(page, "best?")[1] == "proved: nothing is more probable"
    assert shown(second).text.startswith("Number 2 of the most probable sets")
    open_one = shown(Mode({f"z{i}": i % 2 for i in range(200)}, -1000.0, -999.0))
    assert row_of(open_one, "best?")[1].startswith("within 1 nats: no other is more than 2.718 times as probable")
    assert row_of(open_one, "probability")[1] == "exp(-1000)"
    assert "and 60 more" in row_of(open_one, "in")[1]
    assert "the empty set" in shown(Mode({"a": 0}, -1.0, -1.0)).text


def test_an_explanation_has_everything_that_its_text_has():
    model = pgcc.compile(pgcc.dpp(L=[[1, 2], [2, 6]]))
    explanation = model.explain({"x1": 1})
    page = shown(explanation)
    for field in ("multiaffine", "nonnegative"):
        assert row_of(page, field)[1] == getattr(explanation, field)
    assert row_of(page, "accuracy")[1] == explanation.certificate
    assert [row[0] for row in page.rows if len(row) == 5] == ["stage", *(stage.name for stage in explanation.stages)]
    for rung in explanation.rungs:
        assert rung in page.text
    assert f"value {explanation.query['value']}" in row_of(page, "query")[1]


# -- circuits ---------------------------------------------------------------------------------------------------------


def test_circuits_are_drawn_whole_or_in_part():
    page = shown(pgcc.parse("0.4*a*b + 0.6"))
    assert page.text.startswith("Circuit over 2 variables2/5*a*b + 3/55 nodes, 4 edges: decomposable")
    assert page.tags.count("circle") == 2
    text = shown(chain(1_000)).text
    assert "2,999 nodes, 3,996 edges" in text
    assert "the top 14 of 2,999 nodes" in text


def test_facts_of_large_circuits_are_not_looked_for():
    circuit = chain(1_000)
    circuit._repr_html_()
    assert "facts" not in circuit.__dict__
    assert "scopes" not in circuit.__dict__


def test_probabilistic_circuits():
    circuit = 0.5 * pc.pos("a") * pc.pos("b") + 0.5 * pc.neg("a")
    page = shown(circuit)
    assert page.text.startswith("Probabilistic circuit over 2 variables")
    assert str(circuit.smoothing) in page.text
    assert "~a" in page.text
    assert shown(pc.to_pc(pgcc.parse("1.5*a*b - 0.25*a - 0.25"))).text.startswith("Signed probabilistic circuit")
    shared = pc.pos("a") * (pc.pos("a") + pc.neg("b"))  # not decomposable: there is no smoothing
    assert "not decomposable" in shown(shared).text


# -- estimators -------------------------------------------------------------------------------------------------------


def test_estimators_show_no_markup_of_their_parameters():
    assert "<img" not in Imputer(HOSTILE)._repr_html_()


# -- names ------------------------------------------------------------------------------------------------------------


def hostile_things():
    x = Circuit(var(HOSTILE))
    other = Circuit(var("a" * 500))
    model = pgcc.compile(0.4 * x * other + 0.6)
    wrong = 1.5 * x - 0.5
    square = x * x
    # beyond what is asked at once
    long = pgcc.compile(pgcc.dpp(L=np.eye(40), names=[HOSTILE, *(f"x{i}" for i in range(39))]))
    literal = 0.5 * pc.pos(HOSTILE) + 0.5 * pc.neg(HOSTILE)
    return [model, long, model.mode(), model.explain(), model.explain({HOSTILE: 1}), pgcc.check(wrong),
            pgcc.check(square), pgcc.check(model.circuit), model.circuit, literal]  # fmt: skip


@pytest.mark.parametrize("thing", hostile_things(), ids=lambda thing: type(thing).__name__)
def test_names_are_text(thing):
    page = shown(thing)
    assert not {"img", "script"} & set(page.tags)
    assert "a" * 301 not in thing._repr_html_()


def test_there_is_a_name_to_escape():
    assert sum(HOSTILE in shown(thing).text for thing in hostile_things()) >= 5
