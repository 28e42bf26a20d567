"""Tables as people have them: semicolons, yes and no, two labels, sets of names."""

from __future__ import annotations

import json

import numpy as np
import pytest

from pgcc import cli
from pgcc.errors import EvidenceError
from pgcc.learn import ChowLiu, CircuitMLE, Imputer, SimplePGC, StackedEnsemble, load, save

X = np.array([[1, 0, 1], [0, 0, 1], [1, 1, 0], [1, 1, 1], [0, 1, -1], [1, 0, 0]] * 4)
LABELS = [["male", 0, "yes"], ["female", 0, "yes"], ["male", 1, "no"], ["male", 1, "yes"], ["female", 1, None],
          ["male", 0, "no"]] * 4  # fmt: skip
NOTE = r"x1 \('female' is 0, 'male' is 1\), x3 \('no' is 0, 'yes' is 1\)"


@pytest.mark.parametrize("separator", [";", "\t", ","])
@pytest.mark.parametrize("header", ["", '"a;b"{}"c,d"{}e\n'])
def test_separators(tmp_path, separator, header):
    """Semicolons were said to be entries: '1;0;1' is no observation."""
    path = tmp_path / "data.csv"
    rows = "".join(separator.join("?" if x < 0 else str(x) for x in row) + "\n" for row in X.tolist())
    path.write_text(header.format(separator, separator) + rows)
    model = ChowLiu().fit(path)
    assert list(model.circuit_.variables) == (["a;b", "c,d", "e"] if header else ["x1", "x2", "x3"])
    assert (model.trees_.probs == ChowLiu().fit(X).trees_.probs).all()
    assert model.score(path) == model.score(X)


def test_a_table_with_semicolons_is_evidence(tmp_path, capsys):
    (tmp_path / "rows.csv").write_text("b;a\n1;0\n0;1\n")
    assert cli.main(["query", "--expr", "0.75*a + 0.25*b", "--evidence", str(tmp_path / "rows.csv"), "--json"]) == 0
    assert [json.loads(line)["prob"] for line in capsys.readouterr().out.splitlines()] == [0.25, 0.75]


def frames():
    pandas = pytest.importorskip("pandas")
    names = ["x1", "x2", "x3"]
    yield pandas.DataFrame(LABELS, columns=names)
    yield pandas.DataFrame(LABELS, columns=names).astype({"x1": "category", "x3": "string"})


def tables(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("x1,x2,x3\n" + "".join(",".join("" if x is None else str(x) for x in row) + "\n" for row in LABELS))
    yield from (LABELS, np.array(LABELS, dtype=object), *frames())
    yield path


def test_two_labels_are_taken_for_numbers_and_that_is_said(tmp_path):
    expected = ChowLiu().fit(X)
    for table in tables(tmp_path):
        is_file = not hasattr(table, "__len__")  # there yes and no are 1 and 0 anyway
        with pytest.warns(UserWarning, match=NOTE.partition(", x3")[0] if is_file else NOTE):
            model = ChowLiu().fit(table)
        assert (model.trees_.probs == expected.trees_.probs).all()
        assert model.labels_["x1"] == ("female", "male")
        assert model.score(table) == expected.score(X) == model.score(X)
        assert model.conditional_proba(table, "x2").tolist() == expected.conditional_proba(X, "x2").tolist()
    with pytest.raises(EvidenceError, match="row 0: 'x1' is 'boy', neither 'female' nor 'male'"):
        model.score([["boy", 1, 0]])


@pytest.mark.filterwarnings("ignore:labels in")
def test_labels_of_validation_data_are_those_of_the_data(tmp_path):
    valid = [["male", 1, "no"], ["male", 0, None]]
    for model in (SimplePGC(2, 1, max_iter=2), StackedEnsemble([ChowLiu()]), CircuitMLE(ChowLiu().fit(X).circuit_)):
        model.fit(LABELS, validation=valid)
        there = type(model)(**model.get_params(deep=False)).fit(X, validation=[[1, 1, 0], [1, 0, -1]])
        assert model.score(valid) == there.score([[1, 1, 0], [1, 0, -1]])
        assert model.labels_["x3"] == ("no", "yes")
        with pytest.raises(EvidenceError, match="'x1' is 'boy'"):
            model.fit(LABELS, validation=[["boy", 1, "no"]])
    save(model, tmp_path / "model.npz")
    assert load(tmp_path / "model.npz").score(valid) == model.score(valid)
    assert not hasattr(model.fit(X), "labels_")
    assert (Imputer(ChowLiu()).fit(LABELS).transform([["male", 0, None]])[0, :2] == [1, 0]).all()


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            [["red"], ["green"], ["blue"]],
            "'x1' of the data has the values 'blue', 'green', 'red', …: a variable is 0 or 1",
        ),
        ([["red"], ["red"]], "'x1' of the data has the values 'red': a variable is 0 or 1, or has two labels"),
        ([["red"], [1]], "'red'.*: evidence is"),
        ([[1], [2]], "variable 'x1' is 2"),
    ],
)
def test_what_is_no_pair_of_labels(rows, message):
    with pytest.raises(EvidenceError, match=message):
        ChowLiu().fit(rows)


def test_a_file_of_more_labels(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("a,b\n1,x\n0,y\n1,z\n")
    with pytest.raises(EvidenceError, match=r"'b' of the data has the values 'x', 'y', 'z', ….*get_dummies"):
        ChowLiu().fit(path)


def test_sets_of_names():
    baskets = [{"tea", "milk"}, {"tea"}, frozenset({"milk", "cake"}), set()] * 5
    model = ChowLiu().fit(baskets)
    names = ["cake", "milk", "tea"]
    assert model.feature_names_in_.tolist() == names == list(model.circuit_.variables)
    rows = [[int(name in basket) for name in names] for basket in baskets]
    assert (model.trees_.probs == ChowLiu().fit(rows).trees_.probs).all()
    assert model.score_samples(baskets[:4]).tolist() == model.score_samples(rows[:4]).tolist()
    with pytest.raises(EvidenceError, match="row 1 of the data has the unknown 'teas': did you mean 'tea'"):
        model.score([{"tea"}, {"teas"}])
    with pytest.raises(EvidenceError, match="3 in one of them is no name"):
        ChowLiu().fit([{3}])
    with pytest.raises(EvidenceError, match="without anything in them"):
        ChowLiu().fit([set(), set()])


def test_lists_of_names_are_offered_the_reader_of_sets():
    with pytest.raises(
        EvidenceError, match=r"different lengths: 1, 2\. Rows of names .*\[set\(row\) for row in rows\]"
    ):
        ChowLiu().fit([["tea", "milk"], ["tea"]])
    with pytest.raises(EvidenceError, match=r"different lengths: 1, 2$"):
        ChowLiu().fit([[1, 0], [1]])
