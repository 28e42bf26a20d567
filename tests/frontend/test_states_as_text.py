"""Variables with states in text: declared, named in expressions, and written to files."""

import pickle

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from state_tables import KINDS, cases

import pgcc
from pgcc.errors import ParseError
from pgcc.ir.circuit import Circuit
from pgcc.ir.domains import Domain, Domains
from pgcc.ir.node import product, var, weighted_sum
from pgcc.ir.printer import pgc_text

label = st.one_of(
    st.sampled_from(
        ["yes", "no", "True", "False", "det", "variables", "in", "a=b", 'q"u', "\\", "", "{", "1", "-1", "é"]
    ),
    st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=5),
    st.integers(-(10**20), 10**20),
    st.floats(allow_nan=False, allow_infinity=False),
    st.booleans(),
)
name = st.one_of(
    st.sampled_from(["n", "n1", "n2", "in", "det", "size", "w x", "w=a", "é"]), st.text("ab_=", min_size=1)
)


@st.composite
def domains(draw):
    """Domains of a few variables, some with columns of other names, as after conditioning."""
    found = {}
    for one in draw(st.lists(name, min_size=1, max_size=4, unique=True)):
        states = draw(st.lists(label, min_size=1, max_size=4, unique_by=str))
        if draw(st.integers(0, 3)) == 0:
            found[one] = Domains.plain([one])[one]
        elif draw(st.integers(0, 3)) == 0:
            columns = tuple(f"{one}:{i}" for i in range(len(states) - 1)) + (
                (f"{one}:",) if draw(st.booleans()) else (None,)
            )
            found[one] = Domain(Domain.of(one, states).states, columns)
        else:
            found[one] = Domain.of(one, states)
    try:
        return Domains(found)
    except pgcc.CircuitError:  # the same column twice
        return Domains.of({"w": ["a", "b", "c"]})


@settings(deadline=None, max_examples=150)
@given(domains(), st.integers(0, 2**32 - 1))
def test_text_holds_the_same_circuit(domains, seed):
    rng = np.random.default_rng(seed)
    pool = [var(c, bool(rng.integers(2))) for c in domains.columns for _ in range(2)] or [pgcc.parse("2").root]
    for _ in range(6):
        some = [pool[i] for i in rng.integers(0, len(pool), 3).tolist()]
        pool.append(product(some) if rng.random() < 0.5 else weighted_sum([2, 0.1, 1], some))
    circuit = Circuit(pool[-1], domains)
    again = pgcc.parse(pgc_text(circuit))
    assert again == circuit
    assert dict(again.domains or Domains.plain(again.variables)) == dict(domains)
    assert [[*map(type, d.states)] for d in (again.domains or {}).values()] == [
        [*map(type, d.states)] for d in (circuit.domains or {}).values()
    ]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_what_is_copied_has_the_same_states(kind, tmp_path):
    for _, circuit, _ in cases(kind, 3, seed=20):
        for again in (pickle.loads(pickle.dumps(circuit)), Circuit.from_networkx(circuit.to_networkx())):
            assert again == circuit
            assert again.domains == circuit.domains
        pgcc.save(circuit, tmp_path / "a.pgc")
        assert pgcc.load(tmp_path / "a.pgc") == circuit
        assert nx.is_directed_acyclic_graph(circuit.to_networkx())


def test_leaves_are_named_by_state():
    text = "weather in {sun, rain, 'x'}".replace("'", '"') + "\nwet in {no, yes}\nonly in {here}\n"
    g = pgcc.parse(text + "0.5*weather=sun*wet=yes + -weather=rain*wet=no + only=here + wet")
    by_column = pgcc.parse('0.5*"weather=sun"*wet + -"weather=rain"*~wet + 1 + wet')
    assert g.root is by_column.root
    assert g.domains == Domains.of({"weather": ["sun", "rain", "x"], "wet": ["no", "yes"], "only": ["here"]})
    numbers = pgcc.parse('u in {-1, 0.5, 0x1.8p-1, 10, "10a", True}\nu=-1 + u=0.5 + u=10 + u=True')
    assert numbers.domains["u"].states == (-1, 0.5, 0.75, 10, "10a", True)
    assert pgcc.parse('"x\\"" in {a, b, c}\n"x\\""=b').variables == ('x"=a', 'x"=b', 'x"=c')
    assert pgcc.parse("w in {a,\n  b, # the second\n c}\nw=a").domains == Domains.of({"w": "abc"})


@pytest.mark.parametrize(
    ("text", "message", "column"),
    [
        ("w in {a, b, a}\n1", "variable 'w' has the state 'a' twice", 1),
        ("w in {}\n1", "expected a state: a name or a number, found '}'", 7),
        ("w in {a b}\n1", "expected ',' or '}', found 'b'", 9),
        ("w in {a, b\n", "expected ',' or '}', found the end of the text", 1),
        ("w in {a, b, c} + 1\n", "expected the end of the line, found '+'", 16),
        ("w in {sun, rain, snow}\nw=sun + w=rian", "did you mean 'rain'", 9),
        ("w in {a, b, c}\nw + 1", "'w' has states, which are written 'w=a'", 1),
        ("w in {a, b, c}\nw=\na", "found the end of the line", 3),
        ("w in {a, b, c}\nvariables w\nw=a", "'w' is listed twice", 11),
        ("w in {a: c, b, d}\nc", "one state can do without", 17),
        ("variables c\nw in {a: c, b}\nc", "'c' is already a variable", 14),
        ("w in {1e999, 1}\n1", "inf is no name of a state", 1),
        ("w in {-a, 1}\n1", "expected a number, found 'a'", 8),
        ("w in {a, b}\nw=-b", "expected a number, found 'b'", 4),
        (f"w in {{{'9' * 5000}, 1}}\n1", "too long", 1),
    ],
)
def test_mistakes_are_shown_where_they_are(text, message, column):
    with pytest.raises(ParseError) as caught:
        pgcc.parse(text)
    assert message in str(caught.value)
    assert f"column {column}" in str(caught.value)
