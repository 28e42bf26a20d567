"""Pictures: what is drawn is what the model says; circuits are drawn whole, in layers, and never slowly."""

from __future__ import annotations

import random
import re
import runpy
import subprocess
import sys
from collections import Counter
from fractions import Fraction
from html import escape
from itertools import combinations, pairwise
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest
from any_circuits import any_circuits
from how_many import some
from hypothesis import given, settings
from hypothesis import strategies as st

import pgcc
from pgcc import plot
from pgcc.collector import collector_paused
from pgcc.draw.labels import labelled_edges, node_label
from pgcc.draw.layout import GAP, MARGIN, _spread, lay_out
from pgcc.draw.part import neighbourhood, top
from pgcc.draw.svg import circuit_svg
from pgcc.ir.circuit import Circuit
from pgcc.ir.node import ONE, Op, const, det, product, var, weighted_sum

ROOT = Path(__file__).parents[2]
SVG = "{http://www.w3.org/2000/svg}"

BETA = pgcc.parse("(0.1*(z1 + 1)*(6*z2 + 1) - 0.4*z1*z2) * (0.8*z3 + 0.2)")

NASTY = ["<&>\"'", "]]>", "</svg>", "$x$", "a" * 300, "多項式の変数の名前がとても長い", "שלום", "🎲", "&amp;", "%s {0}"]


def parts(svg, kind):
    return [g for g in ElementTree.fromstring(svg).iter(f"{SVG}g") if g.get("class") == kind]


def told(part):
    """What a part of the picture says in full: its tooltip, or what is written on it."""
    title = part.find(f"{SVG}title")
    return title.text if title is not None else part.find(f"{SVG}text").text


def reachable(circuit):
    """The nodes that are drawn: complements of a determinant that are 1 are not."""
    found, todo = {circuit.root}, [circuit.root]
    while todo:
        for child, _ in labelled_edges(todo.pop()):
            if child not in found:
                found.add(child)
                todo.append(child)
    return found


def crossings(drawing):
    """By the definition: pairs of pieces between the same layers whose ends are in opposite orders."""
    pieces: dict[float, list[tuple[float, float]]] = {}
    for wire in drawing.wires:
        for (x0, y0), (x1, _) in pairwise(wire.points):
            pieces.setdefault(y0, []).append((x0, x1))
    return sum((a[0] - b[0]) * (a[1] - b[1]) < -1e-9 for layer in pieces.values() for a, b in combinations(layer, 2))


# -- the layout of circuits -----------------------------------------------------------------------


@given(any_circuits())
@settings(max_examples=some(150), deadline=None)
def test_every_node_once_and_every_edge_down(circuit):
    drawing = lay_out(circuit)
    place = {(mark.x, mark.y): mark.node for mark in drawing.marks}
    assert Counter(mark.node for mark in drawing.marks) == Counter(reachable(circuit))
    wired = []
    for wire in drawing.wires:
        wired.append((place[wire.points[0]], place[wire.points[-1]]))
        assert all(above[1] < below[1] for above, below in pairwise(wire.points))
    assert len(set(wired)) == len(wired)
    assert set(wired) == {(node, child) for node in reachable(circuit) for child, _ in labelled_edges(node)}


@given(any_circuits())
@settings(max_examples=some(100), deadline=None)
def test_nothing_overlaps_or_leaves_the_paper(circuit):
    drawing = lay_out(circuit)
    layers: dict[float, list] = {}
    for mark in drawing.marks:
        layers.setdefault(mark.y, []).append(mark)
        assert mark.x - mark.width / 2 >= MARGIN - 1e-9
        assert mark.x + mark.width / 2 <= drawing.width - MARGIN + 1e-9
        assert 0 < mark.y < drawing.height
    for layer in layers.values():
        layer.sort(key=lambda mark: mark.x)
        assert all(a.x + a.width / 2 + GAP <= b.x - b.width / 2 + 1e-6 for a, b in pairwise(layer))
    assert all(0 <= x <= drawing.width for wire in drawing.wires for x, _ in wire.curve)


@given(any_circuits())
@settings(max_examples=some(100), deadline=None)
def test_svg_is_xml_and_tells_every_node(circuit):
    svg = circuit_svg(circuit)
    assert svg == circuit_svg(circuit)
    assert Counter(map(told, parts(svg, "node"))) == Counter(map(node_label, reachable(circuit)))
    assert len(parts(svg, "edge")) == len(lay_out(circuit).wires)


def test_the_running_example():
    svg = circuit_svg(BETA)
    written = Counter(text.text for text in ElementTree.fromstring(svg).iter(f"{SVG}text"))
    assert written == Counter(["×"] * 3 + ["+"] * 4 + ["z1", "z2", "z3", "1", "1/5", "1/10", "-2/5", "6", "4/5"])
    assert svg.count("<circle") == 7
    assert 'fill="#ffffff"' in svg  # paper of its own


def test_trees_are_drawn_without_crossings():
    leaves = [var(f"z{i}") for i in range(27)]
    random.Random(3).shuffle(leaves)
    while len(leaves) > 1:
        leaves = [weighted_sum((1, 2, 3), leaves[i : i + 3]) for i in range(0, len(leaves), 3)]
    assert crossings(lay_out(Circuit(leaves[0]))) == 0


@pytest.mark.parametrize("seed", [0, 3, 4])
def test_sweeps_untangle(seed):
    """A path z0 z1 z2 …, the edges of which come in any order."""
    n = 6
    pairs = [product((var(f"z{i}"), var(f"z{i + 1}"))) for i in random.Random(seed).sample(range(n), n)]
    circuit = Circuit(weighted_sum([1] * n, pairs))
    assert crossings(lay_out(circuit)) <= 2  # 20, 18 and 11 as they come


def test_parallel_edges_are_one_wire():
    a = var("a")
    (square,) = lay_out(Circuit(product((a, a)))).wires
    assert (square.label, square.title) == ("2×", "2×")
    (both,) = lay_out(Circuit(weighted_sum((1, Fraction(1, 3)), (a, a)))).wires
    assert both.label == "1, 1/3"
    (many,) = lay_out(Circuit(weighted_sum([0.5] * 50_000, [a] * 50_000))).wires
    assert len(many.label) < 20
    assert len(many.title) <= 200


def test_determinants():
    circuit = Circuit(det([[1]], [[2, 1]], [[1, 1]], [var("a"), var("b")], [var("c"), ONE], size=1))
    svg = circuit_svg(circuit)
    assert sorted(map(told, parts(svg, "node"))) == ["a", "b", "c", "det 1×2, size 1"]
    assert sorted(wire.label for wire in lay_out(circuit).wires) == ["f1", "f2", "y1"]


@pytest.mark.parametrize("name", NASTY)
def test_names_are_escaped_and_shortened(name):
    svg = circuit_svg(Circuit(var(name)) * 2 + Circuit(var(name, complement=True)))
    shown = set(map(told, parts(svg, "node")))
    expected = {name, f"~{name}", "+"}
    assert shown == {text if len(text) <= 200 else text[:199] + "…" for text in expected}
    assert all(len(text.text) <= 14 for text in ElementTree.fromstring(svg).iter(f"{SVG}text"))


def test_numbers_are_short_and_full_in_the_tooltip():
    third, nearly = 0.1 + 0.2, 1 - 2**-50
    circuit = Circuit(weighted_sum((third, nearly, -(2**5000)), (var("a"), var("b"), const(Fraction(10**30, 7)))))
    wires = {wire.title: wire.label for wire in lay_out(circuit).wires}
    assert wires == {repr(third): "0.3", repr(nearly): "1", "-2**5000": "-2**5000"}
    assert {mark.label for mark in lay_out(circuit).marks} == {"+", "a", "b", "1.43e+29"}


def test_labels_do_not_overlap():
    circuit = Circuit(weighted_sum(range(2, 60), [var(f"z{i}") for i in range(58)]))
    boxes = [(*wire.label_at, len(wire.label) * 5.6) for wire in lay_out(circuit).wires if wire.label_at]
    assert len(boxes) > 20
    for (x0, y0, w0), (x1, y1, w1) in combinations(boxes, 2):
        assert abs(y0 - y1) >= 10 or abs(x0 - x1) >= (w0 + w1) / 2


@given(
    st.lists(st.tuples(st.floats(-100, 100), st.floats(0, 50), st.floats(0, 30)), min_size=1, max_size=8),
    st.floats(-20, 20),
)
@settings(max_examples=some(200), deadline=None)
def test_places_are_the_nearest_ones(rows, shift):
    """Feasible, and no other feasible places are nearer to the wanted ones."""
    wanted, widths, slack = zip(*rows, strict=True)
    x = _spread(wanted, widths)
    least = [(a + b) / 2 + GAP for a, b in pairwise(widths)]
    assert all(b - a >= d - 1e-6 for (a, b), d in zip(pairwise(x), least, strict=True))
    other = np.cumsum([wanted[0] + shift, *(d + s for d, s in zip(least, slack, strict=False))])
    for t in (1e-3, 0.3, 1.0):  # the feasible places are convex
        between = (1 - t) * np.array(x) + t * other
        assert ((np.array(x) - wanted) ** 2).sum() <= ((between - wanted) ** 2).sum() * (1 + 1e-9) + 1e-6


def deep(levels):
    node = var("a")
    for i in range(levels // 2):
        node = weighted_sum((0.5, 1), (product((node, var(f"z{i}"))), ONE))
    return Circuit(node)


def test_of_large_circuits_the_top_is_drawn():
    with collector_paused():
        circuit = deep(10_000)
        svg = circuit_svg(circuit)
    assert "the top 14 of 15,002 nodes and 20,000 edges" in svg  # eight levels of a chain
    wide = Circuit(weighted_sum([1] * 50_000, [var(f"z{i}") for i in range(50_000)]))
    (stub,) = parts(circuit_svg(wide), "stub")
    assert stub.find(f"{SVG}text").text == "⋯ 49,994"
    assert told(stub) == "49,994 more children, not drawn"
    assert list(map(told, parts(circuit_svg(wide), "node"))) == ["+", *(f"z{i}" for i in range(5, -1, -1))]


@given(any_circuits(), st.integers(1, 12))
@settings(max_examples=some(80), deadline=None)
def test_a_part_has_every_edge_between_its_nodes_and_stubs_for_the_rest(circuit, most):
    part = top(circuit, most)
    assert circuit.root in part.nodes
    assert len(part.nodes) <= most
    shown = set(part.nodes)
    for node in part.nodes:
        missing = {child for child, _ in labelled_edges(node)} - shown
        assert [stub.count for stub in part.stubs if stub.node is node] == ([len(missing)] if missing else [])
    assert bool(part.note) == (shown != reachable(circuit))


@given(any_circuits(), st.integers(1, 12), st.data())
@settings(max_examples=some(80), deadline=None)
def test_a_neighbourhood_tells_parents_and_children_that_are_left_out(circuit, most, data):
    centre = data.draw(st.sampled_from([node for node in circuit.order if node in reachable(circuit)]))
    part = neighbourhood(circuit, centre, most)
    shown = set(part.nodes)
    assert centre in shown
    assert len(shown) <= most
    drawn = reachable(circuit)
    for node in part.nodes:
        below = {child for child, _ in labelled_edges(node)} - shown
        above = {one for one in drawn if any(child is node for child, _ in labelled_edges(one))} - shown
        counts = {stub.below: stub.count for stub in part.stubs if stub.node is node}
        assert counts == {side: len(out) for side, out in ((True, below), (False, above)) if out}
    drawing = lay_out(circuit, most, centre)
    assert len(parts(circuit_svg(circuit, most, centre), "node")) <= most
    assert all(above[1] < below[1] for wire in drawing.wires for above, below in pairwise(wire.points))


def test_around_a_variable_or_a_part():
    inner = pgcc.parse("a/3 + 2/3")
    circuit = inner * pgcc.parse("b/2 + 1/2")
    assert escape("4 nodes around 'a', of 7 nodes and 6 edges") in circuit_svg(circuit, 4, "a")
    for centre in (inner, inner.root):
        assert told(parts(circuit_svg(circuit, 1, centre), "node")[0]) == "+"
    with pytest.raises(pgcc.PgccError, match=r"around='z': no variable .* in the circuit: the variables are a, b"):
        plot.circuit(circuit, around="z")
    with pytest.raises(pgcc.PgccError, match="not a part of this circuit"):
        plot.circuit(circuit, around=pgcc.parse("c/2"))
    with pytest.raises(pgcc.PgccError, match=r"around=3: a picture is around a variable, by its name, or a part"):
        plot.circuit(circuit, around=3)
    for wrong in (0, True, 2.5):
        with pytest.raises(pgcc.PgccError, match=r"most_nodes=.* is not a number of nodes to draw"):
            plot.circuit(circuit, most_nodes=wrong)


@pytest.mark.slow
def test_depth_does_not_matter():
    """A chain of 10,000 levels, drawn if somebody wants it."""
    node = var("a")
    for i in range(10_000):
        node = weighted_sum((2,), (node,)) if i % 2 else product((node,))
    drawing = lay_out(Circuit(node), most_nodes=10_001)
    assert len(drawing.marks) == 10_001
    assert {mark.x for mark in drawing.marks} == {MARGIN + 13}


def test_of_a_tangle_as_much_is_drawn_as_can_be_followed():
    nodes = [var("a")]
    for _ in range(79):
        nodes.append(weighted_sum(range(2, len(nodes) + 2), nodes))
    svg = circuit_svg(Circuit(nodes[-1]))
    assert "the top 7 of 80 nodes and 3,160 edges" in svg
    assert len(parts(svg, "edge")) == 7 * 6 / 2 + 1  # all of them, and what the root has more


@pytest.mark.parametrize("node", [const(2), var("z"), weighted_sum((), ()), product(())])
def test_one_node(node):
    (mark,) = lay_out(Circuit(node)).marks
    assert mark.node is node
    assert len(parts(circuit_svg(Circuit(node)), "node")) == 1


# -- matplotlib -----------------------------------------------------------------------------------


def test_without_matplotlib(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    model = pgcc.compile(BETA)
    for draw in (
        lambda: plot.marginals(model),
        lambda: plot.covariance(model),
        lambda: plot.cardinality(counting([0.5, 0.5])),
        lambda: plot.circuit(BETA),
        lambda: plot.save(object(), tmp_path / "a.png"),
    ):
        with pytest.raises(pgcc.PgccError, match="pictures need matplotlib: pip install matplotlib"):
            draw()


def test_no_pyplot():
    pytest.importorskip("matplotlib")
    code = (
        "import sys, pgcc; from pgcc import plot; assert 'matplotlib' not in sys.modules;"
        "plot.circuit(pgcc.parse('a/2 + 1/2')); assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def counting(pmf):
    """A stand-in for a model, of which only sizes are asked; it keeps what it was asked."""

    def cardinality(evidence=None, *, over=None):
        model.asked = over, evidence
        return np.array(pmf)

    names = tuple(f"z{i}" for i in range(len(pmf) - 1))
    model = SimpleNamespace(circuit=SimpleNamespace(variables=names, domains=None), cardinality=cardinality)
    return model


@pytest.fixture
def figure():
    return pytest.importorskip("matplotlib.figure").Figure()


def names_of(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


@pytest.mark.usefixtures("figure")
def test_marginals_upright():
    model = pgcc.compile(BETA)
    ax = plot.marginals(model)
    np.testing.assert_array_equal([bar.get_height() for bar in ax.patches], model.marginals())
    assert np.allclose([bar.get_height() for bar in ax.patches], [0.3, 0.8, 0.8])  # Figure 1 of the paper
    assert names_of(ax.xaxis) == ["z1", "z2", "z3"]
    assert ax.get_ylim() == (0, 1)
    assert ax.get_ylabel() == "probability"


@pytest.mark.usefixtures("figure")
def test_a_tornado_has_the_numbers_of_the_model():
    wet = np.array([[0.1, 0.25], [0.5, 0.75]])
    tables = {"rain": 0.2, "wind": 0.5, "wet": (["rain", "wind"], wet)}
    model = pgcc.compile(pgcc.builders.bayesian_network(tables))
    found = model.sensitivity("rain=1", "wet=1", change=0.25)[:4]
    ax = plot.tornado(model, "rain=1", "wet=1", change=0.25, top=4)
    assert names_of(ax.yaxis) == list(map(str, found))
    ends = [bar.get_x() + bar.get_width() for bar in ax.patches]
    np.testing.assert_allclose(ends, [one.low for one in found] + [one.high for one in found])
    assert ax.lines[0].get_xdata()[0] == model.conditional("rain=1", "wet=1")
    assert ax.get_xlabel() == "Pr(rain=1 | wet=1)"
    with pytest.raises(pgcc.PgccError, match="top=0"):
        plot.tornado(model, "rain=1", top=0)


@pytest.mark.usefixtures("figure")
def test_states_have_bars_and_rows():
    pc = pgcc.pc
    weather = pc.categorical("weather", {"sun": 0.625, "rain": 0.25, "snow": 0.125})
    model = pgcc.compile((weather * pc.bernoulli("late", 0.25) * pc.categorical("sex", {"M": 0.5, "F": 0.5})).to_pgc())
    names = ["weather=sun", "weather=rain", "weather=snow", "late", "sex=M", "sex=F"]
    ax = plot.marginals(model, "weather!=snow, sex=M")
    np.testing.assert_allclose([bar.get_height() for bar in ax.patches], [5 / 7, 2 / 7, 0, 0.25, 1, 0])
    assert [bool(bar.get_hatch()) for bar in ax.patches] == [False] * 4 + [True] * 2  # of a set it is open which
    assert names_of(ax.xaxis) == names
    assert names_of(plot.marginals(model, top=2).xaxis) == ["weather=sun", "sex=M"]
    ax = plot.covariance(model)
    np.testing.assert_array_equal(ax.images[0].get_array(), model.covariance())
    assert names_of(ax.yaxis) == names
    ax = plot.cardinality(model, over={"weather": {"rain", "snow"}, "late": 1})
    assert ax.get_xlabel() == "how many of these 2 are in"
    assert ax.lines[0].get_label() == "mean 0.625"


@pytest.mark.usefixtures("figure")
def test_what_is_observed_is_hatched():
    model = pgcc.compile(BETA)
    ax = plot.marginals(model, {"z1": 1, "z3": 0})
    np.testing.assert_array_equal(
        [bar.get_height() for bar in ax.patches], model.marginals({"z1": 1, "z3": 0}, names=False)
    )
    assert [bool(bar.get_hatch()) for bar in ax.patches] == [True, False, True]
    grey, black, also_grey = (label.get_color() for label in ax.get_xticklabels())
    assert grey == also_grey != black
    assert ax.get_ylabel() == "probability | z1=1, z3=0"


@pytest.mark.usefixtures("figure")
def test_many_marginals_lie():
    model = pgcc.compile(pgcc.dpp(L=np.diag(np.arange(1.0, 21.0))))
    ax = plot.marginals(model, {"x20": 0})
    np.testing.assert_array_equal([bar.get_width() for bar in ax.patches], model.marginals({"x20": 0}, names=False))
    assert names_of(ax.yaxis) == list(model.variables)
    assert ax.get_ylim()[0] > ax.get_ylim()[1]  # the first on top
    top = plot.marginals(model, {"x20": 0}, top=3)
    assert names_of(top.xaxis) == ["x19", "x18", "x17"]
    assert np.allclose([bar.get_height() for bar in top.patches], [19 / 20, 18 / 19, 17 / 18])
    observed = plot.marginals(model, {"x2": 1}, top=13)
    assert names_of(observed.yaxis)[0] == "x2"
    assert [bool(bar.get_hatch()) for bar in observed.patches] == [True] + [False] * 12
    assert len(plot.marginals(model, top=50).patches) == 20


@pytest.mark.usefixtures("figure")
def test_hundreds_of_marginals_have_no_names():
    model = pgcc.compile(pgcc.product([pgcc.parse(f"z{i}/2 + 1/2") for i in range(200)]))
    ax = plot.marginals(model, {"z150": 1})
    assert len(ax.patches) == 200
    assert "z1" not in names_of(ax.yaxis)
    assert ax.figure.get_size_inches()[1] < 20


def test_cardinality(figure):
    pmf = [0.1, 0.2, 0.3, 0.4]
    model, ax = counting(pmf), figure.add_subplot()
    assert plot.cardinality(model, {"z2": 1}, over=["z0", "z1"], ax=ax) is ax
    assert model.asked == (["z0", "z1"], {"z2": 1})
    heights, edges, _ = ax.patches[0].get_data()
    np.testing.assert_array_equal(heights[::2], pmf)
    np.testing.assert_array_equal(heights[1::2], 0)
    np.testing.assert_allclose((edges[::2] + edges[1::2]) / 2, range(4))
    (line,) = ax.lines
    np.testing.assert_allclose(line.get_xdata(), 2.0)
    assert ax.get_legend().get_texts()[0].get_text() == "mean 2"
    assert "z2=1" in ax.get_ylabel()


@pytest.mark.usefixtures("figure")
def test_cardinality_of_a_model():
    model = pgcc.compile(pgcc.parse("(a/4 + 3/4)*(b/4 + 3/4)*(c/4 + 3/4)"))
    heights = plot.cardinality(model, evidence={"a": 1}).patches[0].get_data().values[::2]
    np.testing.assert_allclose(heights, [0, 9 / 16, 6 / 16, 1 / 16], rtol=1e-9)
    heights = plot.cardinality(model, over=["b"]).patches[0].get_data().values[::2]
    np.testing.assert_allclose(heights, [3 / 4, 1 / 4], rtol=1e-9)


@pytest.mark.usefixtures("figure")
def test_a_long_cardinality_shows_where_the_mass_is():
    sizes = np.arange(20_001)
    pmf = np.exp(-(((sizes - 9_000) / 70) ** 2) / 2)
    ax = plot.cardinality(counting(pmf / pmf.sum()))
    left, right = ax.get_xlim()
    assert 8_600 < left < 8_900
    assert 9_100 < right < 9_400
    assert len(ax.patches) == 1


def test_covariance(figure):
    parties = [pgcc.parse("0.5*a1*a2 + 0.5"), pgcc.parse("0.5*b1*b2 + 0.5")]
    model = pgcc.compile(pgcc.det_pgc([[2, 1], [1, 2]], parties))
    ax = figure.add_subplot()
    assert plot.covariance(model, ax=ax) is ax
    drawn = np.asarray(ax.images[0].get_array())
    np.testing.assert_array_equal(drawn, model.covariance())
    assert drawn[0, 1] > 0 > drawn[0, 2]
    low, high = ax.images[0].get_clim()
    assert low == -high
    assert high == np.abs(drawn[~np.eye(4, dtype=bool)]).max()
    assert names_of(ax.xaxis) == names_of(ax.yaxis) == list(model.variables)
    ax = plot.covariance(model, {"a1": 1})
    np.testing.assert_array_equal(np.asarray(ax.images[0].get_array()), model.covariance({"a1": 1}))


@pytest.mark.usefixtures("figure")
@pytest.mark.parametrize("text", ["z/2 + 1/2", "(a + 1)*(b + 1)/4", "a*b"])
def test_covariance_of_independent_or_certain_variables(text):
    ax = plot.covariance(pgcc.compile(pgcc.parse(text)))
    low, high = ax.images[0].get_clim()
    assert low == -high < 0


def test_circuits_by_matplotlib_are_those_of_the_svg(figure):
    ax = figure.add_subplot()
    assert plot.circuit(BETA, ax=ax) is ax
    written = Counter(text.get_text() for text in ax.texts)
    assert written == Counter(text.text for text in ElementTree.fromstring(circuit_svg(BETA)).iter(f"{SVG}text"))
    drawing = lay_out(BETA)
    assert len(ax.patches) == len(drawing.marks) + len(drawing.wires)
    assert ax.get_ylim() == (drawing.height, 0)
    for options in ({"most_nodes": 5}, {"around": "z1", "most_nodes": 4}):
        written = Counter(text.get_text() for text in plot.circuit(BETA, **options).texts)
        svg = ElementTree.fromstring(circuit_svg(BETA, **options))
        assert written == Counter(text.text for text in svg.iter(f"{SVG}text"))
    with pytest.raises(pgcc.PgccError, match=r"not Model: draw model\.circuit"):
        plot.circuit(pgcc.compile(BETA))


@pytest.mark.usefixtures("figure")
def test_all_operations_are_drawn():
    circuit = pgcc.dpp(L=[[1]]) + pgcc.parse("x1*y/2 + 3")
    assert {mark.node.op for mark in lay_out(circuit).marks} == set(Op)
    assert len(plot.circuit(circuit).patches) == len(lay_out(circuit).marks) + len(lay_out(circuit).wires)


@pytest.mark.usefixtures("figure")
@pytest.mark.parametrize("name", ["$x$", "$", "\\frac{", "_hidden", "<&>\"'"])
def test_names_are_taken_literally(name, tmp_path):
    circuit = Circuit(var(name)) * 0.5 + 0.5
    model = pgcc.compile(circuit)
    for i, ax in enumerate([plot.circuit(circuit), plot.marginals(model, {name: 1}), plot.covariance(model)]):
        plot.save(ax, tmp_path / f"{i}.svg")
        texts = ElementTree.parse(tmp_path / f"{i}.svg").getroot().iter(f"{SVG}text")
        assert name in [text.text for text in texts]


@pytest.mark.usefixtures("figure")
def test_questions_that_are_refused():
    model = pgcc.compile(BETA)
    table = np.array([[1, 0, -1], [0, 0, -1]])
    for draw in (plot.marginals, plot.covariance):
        with pytest.raises(pgcc.EvidenceError, match="one piece of evidence, not a table"):
            draw(model, table)
        with pytest.raises(pgcc.EvidenceError, match="did you mean 'z1'"):
            draw(model, {"z11": 1})
    for wrong in (0, -1, True, 1.5, "all"):
        with pytest.raises(pgcc.PgccError, match="is not a number of variables to show"):
            plot.marginals(model, top=wrong)


@pytest.mark.usefixtures("figure")
@pytest.mark.parametrize(("name", "magic"), [("a.png", b"\x89PNG"), ("a.svg", b"<?xml"), ("A.PDF", b"%PDF")])
def test_save(name, magic, tmp_path):
    path = tmp_path / name
    plot.save(plot.circuit(BETA), path)
    first = path.read_bytes()
    assert first.startswith(magic)
    plot.save(plot.circuit(BETA).figure, str(path))
    assert path.read_bytes() == first
    assert [one.name for one in tmp_path.iterdir()] == [name]


@pytest.mark.usefixtures("figure")
def test_what_cannot_be_saved(tmp_path, monkeypatch):
    ax = plot.circuit(BETA)
    for name in ("a.jpg", "a", "a.svg.txt"):
        with pytest.raises(pgcc.FormatError, match=r"it can have \.pdf, \.png or \.svg"):
            plot.save(ax, tmp_path / name)
    with pytest.raises(pgcc.FormatError, match="cannot be written"):
        plot.save(ax, tmp_path / "nowhere" / "a.svg")
    with pytest.raises(pgcc.PgccError, match="not Circuit"):
        plot.save(BETA, tmp_path / "a.svg")
    path = tmp_path / "old.svg"
    path.write_text("old")

    def fail(*args, **kwargs):
        raise RuntimeError("no ink")

    monkeypatch.setattr(ax.figure, "savefig", fail)
    with pytest.raises(RuntimeError, match="no ink"):
        plot.save(ax, path)
    assert path.read_text() == "old"
    assert [one.name for one in tmp_path.iterdir()] == ["old.svg"]


@pytest.mark.usefixtures("figure")
def test_notebooks_show_the_axes_of_a_figure_of_their_own(tmp_path):
    ax = plot.circuit(BETA)
    plot.save(ax, tmp_path / "same.svg")
    assert ax._repr_svg_() == (tmp_path / "same.svg").read_text(encoding="utf-8")


def test_axes_that_were_given_are_shown_by_who_made_them(figure):
    assert not hasattr(plot.circuit(BETA, ax=figure.add_subplot()), "_repr_svg_")


# -- the gallery ----------------------------------------------------------------------------------


@pytest.mark.usefixtures("figure")
def test_gallery(tmp_path, monkeypatch, capsys):
    script = ROOT / "examples" / "gallery.py"
    monkeypatch.setattr(sys, "argv", [str(script), str(tmp_path)])
    runpy.run_path(str(script), run_name="__main__")
    made = {path.name: path for path in tmp_path.iterdir()}
    kept = {path.name: path for path in (ROOT / "docs" / "gallery" / "pictures").iterdir()}
    assert set(made) == set(kept)
    assert len(capsys.readouterr().out.splitlines()) == len(made)
    for path in [*made.values(), *kept.values()]:
        assert path.stat().st_size < 60_000
        assert ElementTree.parse(path).getroot().tag == f"{SVG}svg"


def test_the_page_shows_the_code_that_made_the_pictures():
    page = (ROOT / "docs" / "gallery" / "pictures.md").read_text(encoding="utf-8")
    script = (ROOT / "examples" / "gallery.py").read_text(encoding="utf-8")
    page = page.split("## In a notebook")[0]
    shown = [line.removeprefix(">>> ") for line in page.splitlines() if line.startswith(">>> ")]
    assert len(shown) > 10
    for line in shown:
        assert line.removeprefix("ax = ") in script
    assert set(re.findall(r"pictures/([\w.]+)", page)) == {
        path.name for path in (ROOT / "docs" / "gallery" / "pictures").iterdir()
    }


def test_learning_curves() -> None:
    """Training and validation data of one estimator, the validation data of every member of an ensemble."""
    learn = pytest.importorskip("pgcc.learn")
    rows = [[0, 0], [1, 1], [0, 1]] * 20
    model = learn.MixtureOfTrees(2, max_iter=4).fit(rows)
    train, valid, best = plot.learning_curve(model).lines
    assert train.get_ydata().tolist() == model.history_["train"]
    assert valid.get_ydata().tolist() == model.history_["validation"]
    assert best.get_xdata()[0] == 1 + model.best_epoch_
    stack = learn.StackedEnsemble([model, learn.SimplePGC(1, 1, "paper", max_iter=4)]).fit(rows)
    labels = [text.get_text() for text in plot.learning_curve(stack).get_legend().get_texts()]
    assert len(labels) == len(stack.members_)
    with pytest.raises(pgcc.PgccError, match="ChowLiu has no history_"):
        plot.learning_curve(learn.ChowLiu().fit(rows))
