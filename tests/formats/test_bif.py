"""`.bif` and XMLBIF networks: right readings of odd texts, and errors with a line for damaged ones; round trips."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from networks import joint, posteriors, public_bif, random_network

import pgcc
from pgcc.errors import FormatError
from pgcc.formats import bif, uai, xmlbif
from pgcc.frontend.network import Network
from pgcc.ir.domains import Domains

GOOD = """network "trip" {
  property author "nobody; really";
}
variable weather {
  type discrete [ 3 ] { sun, rain, snow };
}
variable bus {
  type discrete [ 2 ] { "on time", late };
  property position = (1, 2);
}
variable mood { type discrete [2] { good, bad }; }
probability ( weather ) {
  table 0.5, 0.25, 0.25;
}
probability ( bus | weather ) {
  (sun) 0.875, 0.125;
  (snow) 0.25, 0.75;
  (rain) 0.5, 0.5;
}
probability ( mood | bus, weather ) {
  ("on time", sun) 1.0, 0.0;
  (late, snow) 1e-1, .9;
  default 0.5, 0.5;
}
"""
TABLES = [
    ((0,), [0.5, 0.25, 0.25]),
    ((0, 1), [[0.875, 0.125], [0.5, 0.5], [0.25, 0.75]]),
    ((1, 0, 2), [[[1, 0], [0.5, 0.5], [0.5, 0.5]], [[0.5, 0.5], [0.5, 0.5], [0.1, 0.9]]]),
]


def read(text: str, tmp_path: Path, name: str = "x.bif") -> Network:
    path = tmp_path / name
    path.write_text(text)
    return (xmlbif if name.endswith("xml") else bif).read_network(path)


def is_good(network: Network) -> bool:
    same = [(t.scope, t.table.tolist()) for t in network.tables] == TABLES
    states = {"weather": ("sun", "rain", "snow"), "bus": ("on time", "late"), "mood": ("good", "bad")}
    return same and {name: domain.states for name, domain in network.domains.items()} == states


def words_of(text: str) -> list[str]:
    return re.findall(r'"[^"]*"|[{}()\[\];,|]|[^\s{}()\[\];,|]+', text)


def test_a_good_text(tmp_path: Path) -> None:
    network = read(GOOD, tmp_path)
    assert is_good(network)
    model, expected = pgcc.compile(network.circuit()), joint(network)
    assert model.prob({"weather": "snow", "mood": "bad"}) == pytest.approx(expected[2, :, 1].sum(), rel=1e-14)
    for name, found in model.marginals({"bus": "on time"}).items():
        np.testing.assert_allclose([*found.values()], posteriors(network, expected * [[[1], [0]]])[name], rtol=1e-12)


ODD = {
    "one line": " ".join(GOOD.split()),
    "a word per line": "\n".join(words_of(GOOD)),
    "windows": GOOD.replace("\n", "\r\n"),
    "byte order mark": "\ufeff" + GOOD,
    "no commas": GOOD.replace(",", " "),
    "no bars": GOOD.replace("|", " "),
    "no spaces": re.sub(r"\s*([{}()\[\];,|])\s*", r"\1", GOOD),
    "quotes": re.sub(r"\b(sun|rain|snow|weather|mood|bus|late)\b", r'"\1"', GOOD),
    "capitals": re.sub(r"\b(network|variable|probability|type|discrete|table|default)\b", lambda m: m[0].upper(), GOOD),
    "comments": GOOD.replace("{\n", "{ // } it's 5\" long\n").replace("0.5,", "0.5 /* one\n half */,"),
    "hashes": "# a network\n" + GOOD.replace(";\n", ";# done\n"),
    "no network": GOOD[GOOD.index("variable") :],
    "tables first": GOOD[GOOD.index("probability") :] + GOOD[: GOOD.index("probability")],
    "semicolons": GOOD.replace("}\n", "};\n"),
    "table for all": GOOD.replace("(sun) 0.875, 0.125;", "table 0.875 0.5 0.25 0.125 0.5 0.75;")
    .replace("(snow) 0.25, 0.75;", "")
    .replace("(rain) 0.5, 0.5;", ""),
    "seven digits": GOOD.replace("0.25, 0.75", "0.2500001, 0.7500003"),
}


@pytest.mark.parametrize("kind", ODD)
def test_odd_clothes(kind: str, tmp_path: Path) -> None:
    network = read(ODD[kind], tmp_path)
    if kind == "seven digits":
        row = network.tables[1].table[2]
        np.testing.assert_allclose(row, np.array([2500001, 7500003]) / 10000004, rtol=1e-15)
    else:
        assert is_good(network)


def test_names_of_every_kind(tmp_path: Path) -> None:
    text = 'variable "a b" { type discrete [ 5 ] { 1.5, -1, <=2, "x; {y}", Asy/Patch }; }\n'
    text += 'probability ( "a b" ) { table 0.1 0.2 0.3 0.2 2e-1; }'
    network = read(text, tmp_path)
    assert network.domains == Domains.of({"a b": ["1.5", "-1", "<=2", "x; {y}", "Asy/Patch"]})
    pgcc.save(network.circuit(), tmp_path / "y.bif")
    assert pgcc.load(tmp_path / "y.bif").network == network


def lacking(what: str, by: str = "") -> str:
    assert GOOD.count(what) >= 1, what
    return GOOD.replace(what, by, 1)


DAMAGE: dict[str, tuple[str, int | None, str]] = {
    "empty": ("", 1, "without variables"),
    "blank": (" \n\n", 3, "without variables"),
    "another format": ("MARKOV\n2\n2 2\n", 1, "expected network, variable or probability, not 'MARKOV'"),
    "a letter": ("Dear Sir or Madam,", 1, "expected network"),
    "no braces": ("network x", 1, "the file ends before the '{'"),
    "network never ends": (GOOD[:40], 2, "the file ends before the '}'"),
    "state missing": (lacking("sun, "), 5, "'weather' has 3 states, but 2 are listed: rain, snow"),
    "state too many": (lacking("sun,", "sun, hail,"), 5, "4 are listed"),
    "state with a space": (lacking('"on time"', "on time"), 8, "stand in quotes"),
    "state twice": (lacking("{ sun,", "{ snow,"), 6, "'weather' has the state 'snow' twice"),
    "no states": (lacking("[ 3 ] { sun, rain, snow }", "[ 0 ] { }"), 6, "'weather' has no states"),
    "no type": (lacking("type discrete [2] { good, bad };"), 11, "'mood' has no states"),
    "count is a word": (lacking("[ 3 ]", "[ three ]"), 5, "whole number, not 'three'"),
    "count is negative": (lacking("[ 3 ]", "[ -3 ]"), 5, "whole number"),
    "count is huge": (lacking("[ 3 ]", "[ 999999999 ]"), 5, "999999999 states, but 3"),
    "continuous": (lacking("discrete", "continuous"), 5, "expected 'discrete', not 'continuous'"),
    "no bracket": (lacking("[ 3 ]", "3"), 5, "expected '['"),
    "a variable twice": (lacking("variable bus", "variable weather"), 10, "'weather' is described twice"),
    "variable without name": (lacking("variable weather", "variable"), 4, "expected a name, not '{'"),
    "variable without block": (lacking("variable mood {", "variable mood"), 11, "expected '{'"),
    "odd part of a variable": (lacking("property position", "position"), 9, "expected the type of variable 'bus'"),
    "unknown child": (lacking("( bus |", "( bsu |"), 15, "unknown variable 'bsu': did you mean 'bus'?"),
    "unknown parent": (lacking("| weather", "| wether"), 15, "unknown variable 'wether': did you mean 'weather'?"),
    "own parent": (lacking("| weather", "| bus"), 15, "'bus' has a variable twice"),
    "parent twice": (lacking("| bus, weather", "| bus, bus"), 20, "has a variable twice: mood, bus, bus"),
    "two tables": (lacking("( bus |", "( weather |"), 15, "has a variable twice"),
    "two tables of one": (GOOD + "probability ( mood ) { table 0.5, 0.5; }", 25, "'mood' has two tables"),
    "no table": (GOOD[: GOOD.index("probability ( mood")], None, "'mood' has no table of probabilities"),
    "cycle": (
        lacking("( weather ) {\n  table 0.5, 0.25, 0.25;", "( weather | mood ) {\n  default 0.5, 0.25, 0.25;"),
        None,
        "no directed cycle: ",
    ),
    "no variables of a table": (lacking("( weather )", "( )"), 12, "probabilities of no variable"),
    "only a bar": (lacking("( weather )", "( | )"), 12, "expected a name, not '|'"),
    "two bars": (lacking("bus, weather )", "bus | weather )"), 20, "expected a name, not '|'"),
    "no parenthesis": (lacking("( weather )", "weather )"), 12, "expected '('"),
    "unknown state": (lacking("(snow)", "(snwo)"), 17, "a parent of 'bus' is 'snwo': did you mean 'snow'?"),
    "states swapped": (lacking("(late, snow)", "(snow, late)"), 22, "a parent of 'mood' is 'snow'"),
    "state too few in a row": (lacking("(late, snow)", "(late)"), 22, "has 1 states, but it has 2 parents"),
    "state too many in a row": (lacking("(snow)", "(snow, snow)"), 17, "has 2 states, but it has 1 parents"),
    "row twice": (lacking("(rain)", "(snow)"), 18, "two rows for the same states"),
    "row missing": (lacking("  (rain) 0.5, 0.5;\n"), 18, "the table of 'bus' has no row for (rain)"),
    "no rows": (lacking("  table 0.5, 0.25, 0.25;\n"), 13, "'weather' has no numbers"),
    "number missing": (lacking("0.875, "), 16, "has 1 numbers and needs 2"),
    "number too many": (lacking("0.875, ", "0.875, 0, "), 16, "has 3 numbers and needs 2"),
    "default too short": (lacking("default 0.5, 0.5", "default 1"), 23, "has 1 numbers and needs 2"),
    "two defaults": (lacking("default 0.5, 0.5", "default 1, 0; default 0.5, 0.5"), 23, "'mood' has two defaults"),
    "table too short": (lacking("table 0.5, 0.25, ", "table 0.5, "), 13, "has 2 numbers and needs 3"),
    "a word for a number": (lacking("0.875", "high"), 16, "is a number, not 'high'"),
    "nan": (lacking("0.875", "nan"), 16, "is a number, not 'nan'"),
    "inf": (lacking("0.875", "inf"), 16, "is a number"),
    "percent": (lacking("0.875", "87.5%"), 16, "is a number"),
    "decimal comma": (lacking("0.875, 0.125", "0,875, 0,125"), 16, "has 4 numbers"),
    "underscore": (lacking("0.875", "0_875"), 16, "is a number"),
    "other digits": (lacking("0.875", "٠.٥"), 16, "is a number"),
    "negative": (lacking("0.875, 0.125", "-0.25, 1.25"), 16, "is negative: '-0.25'"),
    "overflow": (lacking("0.875", "1e999"), 16, "out of the range"),
    "underflow": (lacking("0.875", "1e-999"), 16, "out of the range"),
    "above one": (lacking("0.875, 0.125", "1.5, 0"), 19, "'bus' given weather=sun add up to 1.5: 0.5 more than 1"),
    "sum below one": (
        lacking("0.875, 0.125", "0.875, 0.12"),
        19,
        "given weather=sun add up to 0.995: 0.005 less than 1",
    ),
    "sum above one": (
        lacking("1e-1, .9", "1e-1, .901"),
        24,
        "given bus=late, weather=snow add up to 1.001: 0.001 more",
    ),
    "percents": (lacking("0.5, 0.25, 0.25", "50, 25, 25"), 14, "'weather' add up to 100: 99 more than 1"),
    "zeros": (lacking("0.5, 0.25, 0.25", "0, 0, 0"), 14, "add up to 0: 1 less than 1"),
    "semicolon missing": (lacking("0.875, 0.125;", "0.875, 0.125"), 17, "is a number, not '('"),
    "odd row": (lacking("default", "otherwise"), 23, "expected a row of the table of 'mood', not 'otherwise'"),
    "never ends": (GOOD.rstrip()[:-1], None, "the file ends before the '}'"),
    "ends in a row": (GOOD[: GOOD.index("(rain)") + 3], None, "the file ends before the '}'"),
    "open quotes": (lacking('"on time", late', '"on time, late'), 8, ""),
    "open comment": (lacking("table", "/* table"), 12, "the file ends before the '}'"),
    "a null byte": (lacking("0.875", "0.8\x0075"), 16, "is a number"),
    "huge default": (
        "".join(f"variable v{i} {{ type discrete [ 10 ] {{ {' '.join('abcdefghij')} }}; }}\n" for i in range(12))
        + f"probability ( v0 | {' '.join(f'v{i}' for i in range(1, 12))} ) {{ default {'0.1 ' * 10}; }}",
        13,
        "1,000,000,000,000 entries, far more than the file",
    ),
    "forty parents": (
        "".join(f"variable v{i} {{ type discrete [ 1 ] {{ a }}; }}\n" for i in range(41))
        + f"probability ( v0 | {' '.join(f'v{i}' for i in range(1, 41))} ) {{ default 1; }}",
        42,
        "the table of 'v0' has 40 parents; the limit is 31",
    ),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_damage_is_refused_with_the_line(kind: str, tmp_path: Path) -> None:
    text, line, message = DAMAGE[kind]
    (tmp_path / "damaged.bif").write_text(text)
    with pytest.raises(FormatError) as caught:
        pgcc.load(tmp_path / "damaged.bif")
    assert "damaged.bif, line" in str(caught.value)
    assert message in str(caught.value)
    assert line is None or f", line {line}: " in str(caught.value)


@pytest.mark.parametrize("change", ["left out", "doubled", "cut off"])
def test_every_word_is_missed(change: str, tmp_path: Path) -> None:
    """Without it, or with two of it, the text is refused or means the same."""
    words = words_of(GOOD)
    refused = 0
    for i in range(len(words)):
        kept = {"left out": words[i + 1 :], "doubled": words[i:], "cut off": []}[change]
        try:
            network = read(" ".join(words[: i + (change == "doubled")] + kept), tmp_path)
        except FormatError:
            refused += 1
        else:
            assert is_good(network), (words[max(0, i - 5) : i], words[i])
    assert refused > (0.98 if change == "cut off" else 0.5) * len(words)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["x.bif", "x.xml"])
def test_mutated_files_never_raise_anything_else(name: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    words = words_of(GOOD) if name == "x.bif" else re.findall(r"<[^>]*>|[^<\s]+", XML)
    odd = [
        "",
        "0",
        "3",
        "-1",
        "1e100",
        "nan",
        "x",
        "0.5",
        '"',
        "{",
        "}",
        "(",
        ")",
        "|",
        ";",
        "é",
        "<",
        ">",
        "<FOR>",
        "&x;",
    ]
    for _ in range(3000):
        mutant = list(words)
        for _ in range(rng.integers(1, 4)):
            mutant[int(rng.integers(len(mutant)))] = odd[rng.integers(len(odd))]
        try:
            network = read(" ".join(mutant), tmp_path, name)
        except FormatError:
            continue
        assert all(np.allclose(table.table.sum(axis=-1), 1, rtol=1e-12) for table in network.tables)


# -- XMLBIF ------------------------------------------------------------------------------------------------------------

XML = """<?xml version="1.0" encoding="US-ASCII"?>
<!DOCTYPE BIF [
  <!ELEMENT BIF ( NETWORK )*> <!ATTLIST BIF VERSION CDATA #REQUIRED>
]>
<BIF VERSION="0.3"><NETWORK><NAME>trip</NAME>
<VARIABLE TYPE="nature"><NAME>weather</NAME><OUTCOME>sun</OUTCOME><OUTCOME>rain</OUTCOME><OUTCOME>snow</OUTCOME>
  <PROPERTY>position = (73, 165)</PROPERTY></VARIABLE>
<VARIABLE TYPE="nature"><NAME>bus</NAME><OUTCOME>on time</OUTCOME><OUTCOME>late</OUTCOME></VARIABLE>
<VARIABLE TYPE="nature"><NAME>mood</NAME><OUTCOME>good</OUTCOME><OUTCOME>bad</OUTCOME><PROPERTY/></VARIABLE>
<DEFINITION><FOR>weather</FOR><TABLE>0.5 0.25 0.25</TABLE></DEFINITION>
<DEFINITION><FOR>bus</FOR><GIVEN>weather</GIVEN>
  <TABLE>0.875 0.125 <!-- sun --> 0.5 0.5 0.25 0.75</TABLE></DEFINITION>
<DEFINITION><FOR>mood</FOR><GIVEN>bus</GIVEN><GIVEN>weather</GIVEN>
  <TABLE>1 0 0.5 0.5 0.5 0.5 0.5 0.5 0.5 0.5 0.1 0.9</TABLE></DEFINITION>
</NETWORK></BIF>
"""
BOMB = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;">]>'
XML_DAMAGE = {
    "no xml": ("weather", 1, "expected a tag"),
    "empty": ("", 1, "without variables"),
    "no name": (XML.replace("<NAME>bus</NAME>", ""), 8, "a variable has one <NAME>, not 0"),
    "two names": (XML.replace("<NAME>bus</NAME>", "<NAME>a</NAME><NAME>b</NAME>"), 8, "not 2"),
    "no outcomes": (re.sub("<OUTCOME>(sun|rain|snow)</OUTCOME>", "", XML), 7, "'weather' has no states"),
    "outcome twice": (XML.replace("rain", "sun"), 7, "'weather' has the state 'sun' twice"),
    "variable twice": (XML.replace("<NAME>bus", "<NAME>weather"), 8, "'weather' is described twice"),
    "unknown parent": (XML.replace("<GIVEN>bus", "<GIVEN>bis"), 14, "unknown variable 'bis': did you mean 'bus'?"),
    "two tables": (XML.replace("<FOR>bus</FOR><GIVEN>weather</GIVEN>", "<FOR>weather</FOR>"), 12, "two tables"),
    "no definition": (
        re.sub("<DEFINITION><FOR>mood.*?</DEFINITION>", "", XML, flags=re.DOTALL),
        None,
        "'mood' has no table",
    ),
    "too short": (XML.replace("0.5 0.25 0.25", "0.5 0.5"), None, "'weather' has 2 entries and needs 3"),
    "sum": (XML.replace("0.5 0.25 0.25", "0.5 0.25 0.2"), 10, "'weather' add up to 0.95: 0.05 less than 1"),
    "a word": (XML.replace("0.5 0.25 0.25", "0.5 0.25 x"), 10, "is a number, not 'x'"),
    "an entity": (XML.replace("0.5 0.25 0.25", "0.5 0.25 &lt;"), 10, "is a number, not '<'"),
    "other case": (XML.replace("<FOR>bus</FOR>", "<FOR>bus</for>"), None, "<FOR> has other tags in it"),
    "never ends": (XML[:700], None, "ends before"),
    "tags in tags": (XML.replace("<FOR>bus</FOR>", "<FOR><B>bus</B></FOR>"), None, "has other tags in it"),
    "another tag": (XML.replace("<NETWORK>", "<HTML>"), 5, "expected a variable or a definition, not <HTML>"),
    "a bomb": (
        BOMB + XML[XML.index("<BIF") :].replace("trip", "&b;" * 9).replace("sun", "&b;"),
        None,
        "entities of one's own",
    ),
}


def test_xmlbif(tmp_path: Path) -> None:
    assert is_good(read(XML, tmp_path, "x.xml"))
    assert is_good(read(" ".join(XML.split()), tmp_path, "x.xml"))
    strange = read(XML.replace("snow", "&lt;0 &amp; wet"), tmp_path, "x.xml")
    assert strange.domains["weather"].states[2] == "<0 & wet"
    (tmp_path / "x.xmlbif").write_text(XML)
    assert is_good(pgcc.load(tmp_path / "x.xmlbif").network)


@pytest.mark.parametrize("kind", XML_DAMAGE)
def test_damaged_xmlbif(kind: str, tmp_path: Path) -> None:
    text, line, message = XML_DAMAGE[kind]
    with pytest.raises(FormatError) as caught:
        read(text, tmp_path, "x.xml")
    assert message in str(caught.value)
    assert "x.xml, line" in str(caught.value)
    assert line is None or f", line {line}: " in str(caught.value)


# -- there and back ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(10))
def test_a_network_is_written_and_read(seed: int, tmp_path: Path) -> None:
    network = random_network(6, np.random.default_rng(seed))
    circuit = network.circuit()
    pgcc.save(circuit, tmp_path / "x.bif.gz")
    back = pgcc.load(tmp_path / "x.bif.gz")
    assert (back, back.network) == (circuit, network)
    pgcc.save(circuit, tmp_path / "x.uai")
    numbered = uai.read_network(tmp_path / "x.uai")
    assert numbered.is_bayesian
    for one, other in zip(network.tables, numbered.tables, strict=True):
        assert one.scope == other.scope
        np.testing.assert_array_equal(one.table, other.table)
    for extension in (".uai", ".bif"):  # numbers as states, and plain binary variables
        pgcc.save(pgcc.load(tmp_path / "x.uai"), tmp_path / f"y{extension}")
        assert pgcc.load(tmp_path / f"y{extension}").network == numbered


@given(
    st.lists(
        st.text(st.characters(exclude_categories=["C", "Z"], exclude_characters='"'), min_size=1),
        min_size=1,
        unique=True,
    )
)
def test_any_names_of_states(tmp_path_factory: pytest.TempPathFactory, names: list[str]) -> None:
    path = tmp_path_factory.mktemp("names") / "x.bif"
    network = random_network(2, np.random.default_rng(0), [names, [f" {name}" for name in names]])
    pgcc.save(network.circuit(), path)
    assert pgcc.load(path).network == network


def test_a_markov_network_of_any_arity(tmp_path: Path) -> None:
    text = "MARKOV\n3\n1 3 2\n2\n2 1 2\n1 1\n6 1.0 2.0 0.0 0.1 0.5 7.0\n3 0.5 1.0 1e-09\n"
    (tmp_path / "x.uai").write_text(text)
    pgcc.save(pgcc.load(tmp_path / "x.uai"), tmp_path / "y.uai")
    assert (tmp_path / "y.uai").read_text() == text
    with pytest.raises(FormatError, match="compiled from no Bayesian network"):
        pgcc.save(pgcc.load(tmp_path / "x.uai"), tmp_path / "y.bif")


def test_a_part_of_a_network_is_no_network(tmp_path: Path) -> None:
    (tmp_path / "x.bif").write_text(GOOD)
    for part in ({"keep": ["bus", "mood"]}, {"evidence": {"weather": "snow"}}):
        circuit = pgcc.load(tmp_path / "x.bif", **part)
        with pytest.raises(FormatError, match="a part of one, by keep= or evidence="):
            pgcc.save(circuit, tmp_path / "y.bif")
        with pytest.raises(FormatError):  # of other names, and not with its tables
            pgcc.save(circuit, tmp_path / "y.uai")
    with pytest.raises(FormatError, match="compiled from no Bayesian network"):
        pgcc.save(pgcc.parse("a/2 + 1/2"), tmp_path / "y.bif")


def test_options(tmp_path: Path) -> None:
    path = tmp_path / "x.bif"
    path.write_text(GOOD)
    weights = joint(bif.read_network(path))
    seen = pgcc.load(path, evidence={"weather": {"rain", "snow"}, "mood": "bad"}, keep="bus")
    assert seen.domains == Domains.of({"bus": ["on time", "late"]})
    expected = weights[1:, :, 1].sum(axis=0)
    assert pgcc.compile(seen, normalize=False).prob() == pytest.approx(expected.sum(), rel=1e-14)
    assert pgcc.compile(seen).prob({"bus": "late"}) == pytest.approx(expected[1] / expected.sum(), rel=1e-14)
    (tmp_path / "x.bif.evid").write_text("2 1 1 2 0")
    assert pgcc.load(path, evidence=True) == pgcc.load(path, evidence={"bus": "late", "mood": "good"})
    for options, message in (
        ({"keep": ["busses"]}, "cannot keep 'busses'.*did you mean 'bus'"),
        ({"evidence": {"weather": "snoow"}}, "'weather' is 'snoow': did you mean 'snow'"),
        ({"evidence": {"wether": "snow"}}, "cannot observe 'wether'.*did you mean 'weather'"),
        ({"evidence": tmp_path / "other.evid"}, "other.evid: there is no such file"),
        ({"vtree": 1}, "no option vtree"),
    ):
        with pytest.raises(FormatError, match=message):
            pgcc.load(path, **options)


# -- other people's networks -------------------------------------------------------------------------------------------


def plain_reader(path: Path) -> dict[str, np.ndarray]:
    """Tables of files of one style, by regular expressions: axes of the parents, then of the variable."""
    text = gzip.decompress(path.read_bytes()).decode()
    states = {m[1]: m[2].split(", ") for m in re.finditer(r"variable (\S+) \{\n.*\{ (.*) \};", text)}
    tables = {}
    for m in re.finditer(r"probability \( (\S+)(?: \| (.*))? \) \{\n([^}]*)\}", text):
        parents = m[2].split(", ") if m[2] else []
        table = np.full([len(states[name]) for name in (*parents, m[1])], np.nan)
        for row in m[3].strip().split("\n"):
            of, numbers = re.fullmatch(r"\s*(?:table|\((.*)\)) (.*);", row).groups()
            where = tuple(states[p].index(s) for p, s in zip(parents, (of or "").split(", "), strict=False))
            table[where] = [float(number) for number in numbers.split(", ")]
        tables[m[1]] = table
    return tables


def check_reading(path: Path) -> None:
    network, expected = bif.read_network(path), plain_reader(path)
    assert list(network.domains) == list(expected) or set(network.domains) == set(expected)
    for name, table in zip(network.domains, network.tables, strict=True):
        given = expected[name]
        np.testing.assert_allclose(table.table, given / given.sum(axis=-1, keepdims=True), rtol=1e-15, atol=0)
        exact = np.abs(given.sum(axis=-1) - 1) < 1e-16
        np.testing.assert_array_equal(table.table[exact], given[exact])


@pytest.mark.parametrize("name", ["alarm", "asia", "child", "hepar2", "pigs"])
def test_a_public_network(name: str) -> None:
    for path in public_bif(name):
        check_reading(path)


@pytest.mark.slow
def test_all_public_networks() -> None:
    for path in public_bif():
        check_reading(path)


# -- files of and for other libraries ----------------------------------------------------------------------------------


def test_pyagrum_reads_and_writes_the_same(tmp_path: Path) -> None:
    pyagrum = pytest.importorskip("pyagrum")
    (tmp_path / "x.bif").write_text(GOOD.replace('"on time"', "punctual"))
    circuit = pgcc.load(tmp_path / "x.bif")
    pgcc.save(circuit, tmp_path / "y.bif")
    net = pyagrum.loadBN(str(tmp_path / "y.bif"))
    for extension in (".bif", ".bifxml"):  # with parents in another order
        pyagrum.saveBN(net, str(tmp_path / f"z{extension}"))
        back = pgcc.load(tmp_path / f"z{extension}").network
        assert back.domains == circuit.domains
        np.testing.assert_allclose(joint(back), joint(circuit.network), rtol=1e-6)  # it reads with single precision


def test_pgmpy_reads_and_writes_the_same(tmp_path: Path) -> None:
    readwrite = pytest.importorskip("pgmpy.readwrite", exc_type=ImportError)
    (tmp_path / "x.bif").write_text(GOOD.replace('"on time"', "punctual"))
    circuit = pgcc.load(tmp_path / "x.bif")
    pgcc.save(circuit, tmp_path / "y.bif")
    model = readwrite.BIFReader(str(tmp_path / "y.bif")).get_model()
    readwrite.BIFWriter(model).write(str(tmp_path / "z.bif"))
    readwrite.XMLBIFWriter(model).write(str(tmp_path / "z.xml"))
    for name in ("z.bif", "z.xml"):
        back = pgcc.compile(pgcc.load(tmp_path / name))  # with variables in another order
        for evidence in ("weather=snow, mood=bad", "bus=late", "mood=good, bus=punctual, weather=sun"):
            assert back.prob(evidence) == pytest.approx(pgcc.compile(circuit).prob(evidence), rel=1e-14)
