"""What is written into a page of the explorer, and what is refused."""

from __future__ import annotations

import base64
import json
import math
import re
import zlib
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
from real_data import DATA

import pgcc
from pgcc.compiler import Compiled
from pgcc.explore import contents, page, tree_graph
from pgcc.explore.packing import as_scaled, pack
from pgcc.program.det_structure import Laplacian
from pgcc.program.program import SUM

SMALL = pgcc.compile(pgcc.parse("0.4*a*b + 0.3*a + 0.3"))


def unpack(packed):
    """The arrays that `pack` was given, flattened, as `decode.js` has them."""
    data = zlib.decompress(base64.b64decode(packed["bytes"]))
    found, at = {}, 0
    for name, kind, size in packed["arrays"]:
        dtype = np.dtype(kind).newbyteorder("<")
        found[name] = np.frombuffer(data, dtype, size, at)
        at += size * dtype.itemsize
    return found


def test_arrays_survive_packing():
    rng = np.random.default_rng(0)
    arrays = {
        "floats": np.array([0.1, -np.inf, 5e-324, 0.0]),
        "integers": rng.integers(-(2**31), 2**31, 1000).astype(np.int32),
        "bytes": np.arange(256, dtype=np.uint8),
        "nothing": np.zeros(0),
    }
    found = unpack(json.loads(json.dumps(pack(arrays))))
    assert list(found) == list(arrays)
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array)
    with pytest.raises(TypeError, match="int64"):
        pack({"long": np.zeros(1, np.int64)})


@pytest.mark.parametrize("number", [1, -0.3, 1e300, 5e-324, Fraction(10) ** 5000, -Fraction(1, 7**900), 2.0**32, 0.0])
def test_scaled_numbers_are_the_numbers(number):
    (m,), (e,) = as_scaled([number])
    assert abs(Fraction(m) * Fraction(2) ** (64 * int(e)) - Fraction(number)) <= abs(Fraction(number)) / 2**52
    assert m == 0 or 2.0**-32 <= abs(m) < 2.0**32


def test_a_page_is_one_file_that_loads_nothing():
    html = SMALL.explore().html
    assert "{{" not in re.sub(r"<script.*</script>", "", html, flags=re.DOTALL)
    assert not re.search(r"""(src|href)\s*=\s*["'](?!#)""", html)
    assert "http://" not in html.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in html
    assert re.search(r"^(import|export)\b", html, re.MULTILINE) is None
    assert "default-src 'none'" in html  # what the page would load is refused


def test_names_of_modules_do_not_meet():
    """The modules are one script in the page: no two of them declare the same name."""
    declared: list[str] = []
    for line in page.page_script().splitlines():
        if found := re.match(r"(?:async )?(?:class|function\*?) (\w+)", line):
            declared.append(found[1])
        elif found := re.match(r"(?:const|let) (.*)", line):
            declared += re.findall(r"(?:^|, )(\w+) =", found[1])
    assert len(declared) > 80
    assert sorted(declared) == sorted(set(declared))


def test_every_script_is_in_the_page():
    folder = page.files("pgcc.explore") / "web"
    modules = sorted(file.name.removesuffix(".js") for file in folder.iterdir() if file.name.endswith(".js"))
    assert sorted(page.SCRIPTS) == modules
    for place, name in enumerate(page.SCRIPTS):
        for imported in re.findall(r'from "\./(\w+)\.js"', (folder / f"{name}.js").read_text()):
            assert imported in page.SCRIPTS[:place] or imported == name, f"{name}.js comes before {imported}.js"


def test_a_name_cannot_end_the_data():
    names = ["</script>", "<!--", "]]>", "\u2028", "&amp;"]
    model = pgcc.compile(pgcc.parse(" + ".join(f'0.2*"{name}"' for name in names if name != "\u2028") + " + 0.2*z"))
    html = model.explore(title="</title><script>").html
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', html, re.DOTALL)
    assert json.loads(data[1])["about"]["variables"] == list(model.variables)
    assert not set("<>&") & set(data[1])
    assert "<title>&lt;/title&gt;&lt;script&gt;</title>" in html


@pytest.mark.slow
def test_plants_is_below_three_megabytes():
    path = DATA / "circuits" / "plants.psdd"
    if not path.exists():
        pytest.skip("plants.psdd is not here")
    assert len(page.explore(Compiled(pgcc.load(path)), proved=True).html.encode()) < 3_000_000


def test_what_is_explored_is_what_is_run():
    model = pgcc.compile(pgcc.parse("(0.1*(z1 + 1)*(6*z2 + 1) - 0.4*z1*z2)*(0.8*z3 + 0.2)"))
    program = contents.page_program(model._compiled)
    assert program.value == program.slots - 1
    assert program.target.tolist() == list(range(program.slots))
    arrays = contents.program_arrays(program)
    np.testing.assert_array_equal(np.cumsum(arrays["start"]), program.start[1:])
    np.testing.assert_array_equal(arrays["weight"] * 2.0 ** (64 * arrays["weightExponent"]), program.weights)
    assert (arrays["start"] == np.diff(program.first_weight))[program.op == SUM].all()  # no terms w·x·y


def test_groups():
    names = tuple(f"pixel{i}" for i in range(30))
    assert page.group_by_beginnings(names) == [("pixel", list(range(30)))]
    assert [title for title, _ in page.group_by_beginnings(tuple(f"v{i}" for i in range(250)))] == [
        "v0 … v99",
        "v100 … v199",
        "v200 … v249",
    ]
    words = tuple(f"{chr(97 + i % 26)}{chr(97 + i // 26)}word" for i in range(60))
    assert page.group_by_beginnings(words) == [("", list(range(60)))]
    explored = SMALL.explore(groups={"first": ["b"]})
    assert explored.data["about"]["groups"] == [("first", [1]), ("other variables", [0])]


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"title": 3}, "title=3 is not text"),
        ({"height": "tall"}, "height='tall' is not a height"),
        ({"groups": ["a"]}, "groups is a dict from titles to names of variables, not list"),
        ({"groups": {"one": ["c"]}}, "group 'one' names 'c', which is not a variable"),
        ({"groups": {"one": ["a"], "two": "a"}}, "variable 'a' is in two groups"),
    ],
)
def test_wrong_arguments(how, message):
    with pytest.raises(pgcc.PgccError, match=message):
        SMALL.explore(**how)


def test_what_cannot_be_explored():
    with pytest.raises(pgcc.PgccError, match="compile it normalized"):
        pgcc.compile(SMALL.circuit, normalize=False).explore()
    with pytest.raises(
        pgcc.PgccError, match=r"needs a decomposable circuit, and here two factors of product .* share 'a'"
    ):
        pgcc.compile(pgcc.parse("((a + 1)*(a + b) - a*a - a*b + b)/4")).explore()
    tiny = pgcc.dpp(L=[[Fraction(1, 10**400), 0], [0, 1]])
    with pytest.raises(pgcc.PgccError, match="beyond the range of doubles"):
        pgcc.compile(tiny).explore()


@pytest.mark.parametrize(
    ("limit", "circuit", "message"),
    [
        ("MOST_VARIABLES", SMALL.circuit, "2 variables are too many for a page, which shows 1 at most"),
        ("MOST_ARGUMENTS", SMALL.circuit, r"would take \d+ operations, and 1 is the limit; circuit.restrict"),
        (
            "MOST_MULTIPLICATIONS",
            pgcc.dpp(L=np.eye(3)),
            r"would take 81 multiplications for the determinants, and 1 is",
        ),
    ],
)
def test_what_is_too_large(limit, circuit, message, monkeypatch):
    model = pgcc.compile(circuit)
    monkeypatch.setattr(contents, limit, 1)
    with pytest.raises(pgcc.PgccError, match=message):
        model.explore()


def test_saving(tmp_path):
    path = SMALL.explore(title="Zwei Größen").save(str(tmp_path / "page.html"))
    assert path.read_text(encoding="utf-8") == SMALL.explore(title="Zwei Größen").html
    with pytest.raises(pgcc.PgccError, match=r"page.pdf is named like a file of another kind.* \(page.html\)"):
        SMALL.explore().save(tmp_path / "page.pdf")
    with pytest.raises(pgcc.PgccError, match="cannot be written"):
        SMALL.explore().save(tmp_path / "nowhere" / "page.html")


# -- graphs ------------------------------------------------------------------------------------------------------------


def graph_of(circuit):
    compiled = pgcc.compile(circuit)._compiled
    return tree_graph.find_graph(contents.page_program(compiled), circuit.variables)


def test_the_graph_of_a_tree_is_found():
    edges = [("new-york", "boston", 2), ("boston", "x", 3), ("x", "new-york", 5), ("x", "y", 7)]
    found = graph_of(pgcc.spanning_tree(edges))
    ends = [{found["nodes"][a], found["nodes"][b]} for a, b in zip(found["tail"], found["head"], strict=True)]
    assert ends == [{a, b} for a, b, _ in edges]
    assert found["weight"] == [2, 3, 5, 7]
    assert found["trees"]
    assert not found["directed"]
    new_york, boston, x, y = (
        [found["x"][i], found["y"][i]] for i in map(found["nodes"].index, ["new-york", "boston", "x", "y"])
    )
    assert math.dist(new_york, boston) == pytest.approx(math.dist(new_york, x), rel=0.2)  # one edge apart
    assert math.dist(y, boston) == pytest.approx(2 * math.dist(new_york, boston), rel=0.2)  # and two
    assert min(found["x"]) == min(found["y"]) == 0 <= max(found["y"]) <= max(found["x"]) == 1


def test_graphs_of_forests_and_arborescences():
    forest = graph_of(pgcc.spanning_forest(nx.path_graph(4), 1.0))
    assert (len(forest["nodes"]), forest["trees"]) == (4, False)
    found = graph_of(pgcc.arborescence([("r", "a"), ("r", "b"), ("a", "b"), ("b", "a")], "r"))
    assert found["directed"]
    ends = [(found["nodes"][a], found["nodes"][b]) for a, b in zip(found["tail"], found["head"], strict=True)]
    assert ends == [("r", "a"), ("r", "b"), ("a", "b"), ("b", "a")]


def test_there_is_no_graph_of_sets():
    assert graph_of(pgcc.dpp(L=np.eye(3) + 0.5)) is None
    assert graph_of(pgcc.dpp(K=np.eye(3) / 2)) is None
    assert graph_of(pgcc.parse("0.5*a + 0.5")) is None


def test_nodes_without_names_are_numbered():
    edges = Laplacian(np.array([0, 1]), np.array([1, 2]), np.ones(2), np.zeros(2), False)
    assert tree_graph.node_names(edges, ["first", "second"], 3) == ["0", "1", "2"]
    assert tree_graph.node_names(edges, ["p-q", "q-r"], 3) == ["p", "q", "r"]
