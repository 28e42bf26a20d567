"""Evidence about variables with states in every form that people have it: all of them mean the same."""

from __future__ import annotations

import contextlib

import numpy as np
import pandas as pd
import pytest
from how_many import some
from state_tables import KINDS, cases

import pgcc
from pgcc.errors import EvidenceError

by_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
MANY = some(8)


def quoted(label):
    escaped = str(label).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def as_text(table, event):
    items = []
    for name, value in event.items():
        if isinstance(value, set):
            items.append(f"{quoted(name)} in {{{', '.join(map(quoted, value))}}}")
        else:
            items.append(f"{quoted(name)} = {quoted(value)}")
    return ", ".join(items)


def rows_of(table, events):
    """A row of labels for each piece of evidence, with None for what is not observed."""
    return [[event.get(name) for name in table.names] for event in events]


def numbers_of(table, events):
    rows = []
    for row in rows_of(table, events):
        domains = table.domains.values()
        found = [np.nan if x is None else d.numbers[d.states.index(x)] for x, d in zip(row, domains, strict=True)]
        rows.append(found)
    return np.array(rows, float).reshape(len(events), len(table.names))


@by_kind
def test_one_piece(kind):
    for rng, circuit, table in cases(kind, MANY, seed=30):
        model = pgcc.compile(circuit)
        for density in (0.3, 0.6, 1.0):
            event = table.event(rng, "ls", density)
            p = float(table.prob(event))
            assert model.prob(event) == pytest.approx(p, rel=1e-9, abs=1e-300)
            listed = {n: list(v) if isinstance(v, set) else v for n, v in event.items()}
            assert model.prob(listed) == pytest.approx(p, rel=1e-9, abs=1e-300)
            assert model.prob(as_text(table, event)) == pytest.approx(p, rel=1e-9, abs=1e-300)
            labels = {n: v for n, v in event.items() if not isinstance(v, set)}
            q = float(table.prob(labels))
            assert model.prob(pd.Series(labels, dtype=object)) == pytest.approx(q, rel=1e-9, abs=1e-300)
            others = {
                n: set(table.domains[n].states) - {v} for n, v in labels.items() if len(table.domains[n].states) > 1
            }
            if others:
                text = ", ".join(f"{quoted(n)} != {quoted(labels[n])}" for n in others)
                assert model.prob(text) == pytest.approx(float(table.prob(others)), rel=1e-9, abs=1e-300)


@by_kind
def test_tables(kind):
    for rng, circuit, table in cases(kind, MANY, seed=31):
        model, names = pgcc.compile(circuit), table.names
        events = [table.event(rng, "l", density) for density in (0, 0.2, 0.5, 0.8, 1, 1)]
        exact = np.array([float(table.prob(event)) for event in events])
        rows, numbers = rows_of(table, events), numbers_of(table, events)
        frame = pd.DataFrame(rows, columns=names, dtype=object)
        shuffled = [names[i] for i in rng.permutation(len(names))]
        categories = pd.DataFrame(index=range(len(rows)))
        for j, name in enumerate(names):
            states = [*table.domains[name].states]
            order = [states[i] for i in rng.permutation(len(states))]
            categories[name] = pd.Categorical([row[j] for row in rows], categories=[*order, "unused"])
        forms = {
            "dicts": events,
            "numbers": numbers,
            "frame": frame,
            "frame, other order": frame[shuffled],
            "frame with nan": frame.where(frame.notna(), np.nan),
            "frame with NA": frame.where(frame.notna(), pd.NA),
            "frame of numbers": pd.DataFrame(numbers, columns=names),
            "inferred": frame.infer_objects(),
            "categories": categories,
            "labels": np.array(rows, object).reshape(len(rows), len(names)),
            "fortran": np.asfortranarray(numbers),
            "lists": numbers.tolist(),
        }
        if all(isinstance(s, str) for d in table.domains.values() for s in d.states):
            forms["strings"] = frame.astype("string")
        with contextlib.suppress(TypeError, ValueError):
            forms["nullable"] = frame.convert_dtypes()
        many = [table.event(rng, "lsm", 0.6) for _ in range(6)]
        np.testing.assert_allclose(model.prob(many), [float(table.prob(e)) for e in many], rtol=1e-9, atol=1e-300)
        whole = [i for i, event in enumerate(events) if len(event) == len(names)]
        for form, given in forms.items():
            found = model.prob(given)
            if form not in ("dicts", "lists", "numbers", "labels", "fortran"):
                assert isinstance(found, pd.Series)
            np.testing.assert_allclose(found, exact, rtol=1e-9, atol=1e-300, err_msg=form)
        if whole:
            ints = numbers[whole]
            if (ints == ints.round()).all():
                np.testing.assert_allclose(model.prob(ints.astype(np.int64)), exact[whole], rtol=1e-9, atol=1e-300)
        missing = frame.drop(columns=names[:1])
        part = [float(table.prob({n: v for n, v in e.items() if n != names[0]})) for e in events]
        np.testing.assert_allclose(model.prob(missing), part, rtol=1e-9, atol=1e-300)


@by_kind
def test_answers_are_evidence_again(kind):
    for rng, circuit, table in cases(kind, MANY, seed=32):
        model, names = pgcc.compile(circuit), table.names
        weights = {labels: float(w / table.total) for labels, w in table.weights.items()}
        drawn = model.sample(20, rng=1)
        expected = [weights[tuple(row)] for row in drawn.tolist()]
        framed = model.sample(20, rng=1, names=True)
        assert list(framed.columns) == names
        numbers = model.sample(20, rng=1, names=False)
        for again in (drawn, framed, numbers, framed.to_dict("records")):
            np.testing.assert_allclose(model.prob(again), expected, rtol=1e-9)
        mode = model.mode()
        assert model.logprob(mode.assignment) == pytest.approx(mode.logprob, rel=1e-8, abs=1e-8)
        event = next(iter(table.evidences(rng, 3, "l")))
        frame = pd.DataFrame([event], index=["x"]).reindex(columns=names).astype(object)
        marginals = model.marginals(frame)
        assert list(marginals.index) == ["x"]
        single = model.marginals(event)
        axis = [(n, s) for n, d in table.domains.items() for s in d.states if len(d.states) > 1]
        for n, s in axis:
            if table.domains[n].is_plain:
                assert marginals.loc["x", n] == single[n]
            else:
                assert marginals.loc["x", f"{n}={s}"] == pytest.approx(single[n][s], rel=1e-9)
        rows = model.sample(3, evidence=frame, rng=2)
        assert model.prob(rows.astype(object)).gt(0).all()


@pytest.mark.parametrize("labels", [("1", "2", "3"), ("1.0", "2.0", "3.0"), ("01", "2", "3+"), (1, "two", "3")])
def test_a_number_means_the_label_that_is_written_so(labels):
    """Of states "1", "2" and "3", as a table is read from a file of numbers, 1 was the second."""
    weights = dict(zip(labels, ["0.5", "0.3", "0.2"], strict=True))
    model = pgcc.compile(pgcc.pc.categorical("w", weights).to_pgc())
    for one in (1, 1.0, np.int64(1), np.float32(1)):
        assert model.prob({"w": one}) == 0.5
        assert model.prob(np.array([[one]]))[0] == 0.5
        assert model.prob(pd.DataFrame({"w": [one]}))[0] == 0.5
    drawn = model.sample(20, rng=0, names=False)
    np.testing.assert_array_equal(model.prob(drawn), model.prob(model.sample(20, rng=0, names=True)))


def test_minus_one_is_a_state_where_a_state_is_called_so():
    """As a double, beside gaps, it was taken for unknown."""
    model = pgcc.compile(pgcc.pc.categorical("w", {"1": "0.5", "-1": "0.3", "?": "0.2"}).to_pgc())
    for minus in (-1, -1.0, np.int8(-1), "-1"):
        assert model.prob({"w": minus}) == 0.3
        assert model.prob(pd.DataFrame({"w": [minus, None]})).tolist() == [0.3, 1.0]
    np.testing.assert_allclose(model.prob(np.array([[-1.0], [np.nan], [1.0], [0.0]])), [0.3, 1.0, 0.5, 0.2])


def test_an_array_of_labels_is_a_set_of_them():
    model = pgcc.compile(pgcc.pc.categorical("w", {"a": "0.5", "b": "0.3", "c": "0.2"}).to_pgc())
    for both in (np.array(["a", "c"]), pd.Series(["a", "c"]), np.array([0, 2])):
        assert model.prob({"w": both}) == 0.7
    with pytest.raises(EvidenceError, match="the states are"):
        model.prob({"w": np.array([[0, 2]])})


def test_truth_values_are_no_numbers_of_states():
    model = pgcc.compile(pgcc.pc.categorical("w", {"a": "0.5", "b": "0.3", "c": "0.2"}).to_pgc())
    for table in (np.array([[True], [False]]), pd.DataFrame({"w": [True, False]}), [[True], [False]]):
        with pytest.raises(EvidenceError, match=r"'w' is (True|False): the states are a, b, c"):
            model.prob(table)


def test_masked_labels_are_unobserved():
    model = pgcc.compile(pgcc.pc.categorical("w", {"a": "0.5", "b": "0.3", "c": "0.2"}).to_pgc())
    assert model.prob(np.ma.array([["b"], ["a"]], mask=[[False], [True]])).tolist() == [0.3, 1.0]


def test_a_variable_with_a_single_state_has_samples():
    model = pgcc.compile(pgcc.pc.categorical("w", {"only": 1}).to_pgc())
    assert model.sample(2, names=True)["w"].tolist() == ["only", "only"]
    assert model.sample(2, np.zeros((3, 1))).shape == (3, 2, 1)


def test_mistakes():
    model = pgcc.compile(pgcc.parse("w in {sun, rain, snow}\n0.5*w=sun + 0.25*w=rain + 0.25*w=snow"))
    for given, message in [
        ({"w": "rian"}, "did you mean 'rain'"),
        ({"w": 3}, "the states are sun, rain, snow"),
        ({"w": True}, "the states are"),
        ({"w": 0.5}, "the states are"),
        ({"w": set()}, "no state is possible"),
        ({"w": {"sun": 0}}, "all likelihoods are 0"),
        ({"w": {"sun": -1}}, "0 or more"),
        ({"w": {"rain": 0.5, 1: 0.25}}, "the state 'rain' has two likelihoods"),
        ({"w": {"sun": "x"}}, "0 or more"),
        ({"w": {"sun": float("inf")}}, "0 or more"),
        ({"w": object()}, "the states are"),
        ({"w": ["sun", ["rain"]]}, "variable 'w' is"),
        ({"W": "sun"}, "unknown variable"),
        ("w=sun, w=rain", "no state"),
        ("w!=sun, w!=rain, w!=snow", "no state"),
        ("w in {}", "cannot read|no state|possible"),
        ("w in {sun", "cannot read"),
        ("w", "names without values"),
        (pd.DataFrame({"w": ["sun", "hail"]}), "row 1, variable 'w' is 'hail'"),
        (pd.DataFrame({"w": ["sun", ["rain"]]}), "row 1|label"),
        (np.array([["sun"], ["hail"]]), "row 1, variable 'w' is 'hail'"),
        (np.array([[0], [3]]), "row 1, variable 'w' is 3"),
        (np.array([[0.5]]), "row 0, variable 'w' is 0.5"),
        (np.array([[1j]]), "row 0"),
        (np.array([[0, 1]]), "shape"),
    ]:
        with pytest.raises(EvidenceError, match=message):
            model.prob(given)
