"""Tables as people have them: semicolons, and sets of names. (Labels: `test_labels`.)"""

from __future__ import annotations

import json

import numpy as np
import pytest

from pgcc import cli
from pgcc.errors import EvidenceError
from pgcc.learn import ChowLiu

X = np.array([[1, 0, 1], [0, 0, 1], [1, 1, 0], [1, 1, 1], [0, 1, -1], [1, 0, 0]] * 4)


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
