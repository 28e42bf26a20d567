"""Tables in files: CSV, and arrays in .npy."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pytest
from operations import count_calls

from pgcc import EvidenceError
from pgcc.data import tables
from pgcc.data.tables import Csv


def read_csv(
    lines: Iterable[str], variables: Sequence[str], rows: int, header: bool | None = True
) -> Iterator[tuple[int, np.ndarray]]:
    """The lines where chunks of so many rows start, and their codes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "_ROWS", rows)
        for place, codes in Csv(lines, "x.csv", variables, header).chunks():
            yield int(place.removeprefix("line ")), codes


# -- tables ---------------------------------------------------------------------------------------


def read(text: str, rows: int = 100) -> list[tuple[int, list]]:
    return [(line, codes.tolist()) for line, codes in read_csv(io.StringIO(text), ("a", "b", "c"), rows)]


def test_csv_columns_go_by_name():
    assert read("c,a\n1,0\n") == [(2, [[0, -1, 1]])]


def test_csv_entries():
    text = 'a,b,c\n1,0,?\n-1,,"1"\n1.0,0.0,nan\nTrue,false, NA \n'
    assert read(text) == [(2, [[1, 0, -1], [-1, -1, 1], [1, 0, -1], [1, 0, -1]])]


def test_csv_in_pieces():
    assert read("a\n1\n0\n\n1\n", rows=2) == [(2, [[1, -1, -1], [0, -1, -1]]), (5, [[1, -1, -1]])]


def test_csv_is_not_read_ahead():
    pieces = read_csv(io.StringIO("a\n" + "1\n" * 10 + "oops\n"), ("a",), 5)
    assert [len(next(pieces)[1]), len(next(pieces)[1])] == [5, 5]
    with pytest.raises(EvidenceError, match="line 12"):
        next(pieces)


def test_csv_line_endings_and_marks():
    assert read("\ufeffa,b\r\n1,0\r\n") == [(2, [[1, 0, -1]])]
    assert read("a\n") == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "x.csv, line 1: expected the names"),
        ("\n1\n", "x.csv, line 2: column '1' is not a variable"),
        ("a,d\n1,1\n", "x.csv, line 1: column 'd' is not a variable"),
        ("a,\n1,1\n", "x.csv, line 1: column '' is not a variable"),
        ("a,b,a\n1,1,1\n", "x.csv, line 1: column 'a' occurs twice"),
        ("a,b\n1,1\n1\n", "x.csv, line 3: 1 entry, but the table has 2 columns"),
        ("a,b\n1,1\n1,7\n", "x.csv, line 3: 'b' is '7': evidence is"),
        ("a\n" + "x" * 200_000 + "\n", "x.csv, line 2: not CSV"),
    ],
)
def test_bad_csv(text, message):
    with pytest.raises(EvidenceError, match=message):
        read(text)


def test_a_table_without_header_is_only_read_when_asked():
    text = io.StringIO("1,0\n")
    with pytest.raises(EvidenceError, match="column '1' is not a variable"):
        list(read_csv(text, ("a", "b"), 10))


def test_a_header_that_looks_like_data_is_data():
    (piece,) = read_csv(io.StringIO("0,1\n1,1\n"), ("0", "1"), 10, header=None)
    assert piece[0] == 1
    assert piece[1].tolist() == [[0, 1], [1, 1]]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_plain_rows_and_others_may_alternate(end):
    rows = ["1,0,?", "0,1,1", " 1,0,", "?,?,?", '"1",0,true', "1,1,1"]
    want = [[1, 0, -1], [0, 1, 1], [1, 0, -1], [-1, -1, -1], [1, 0, 1], [1, 1, 1]]
    for size in (1, 2, 3, 10):
        for head in ([], ["a,b,c"]):
            text = io.StringIO(end.join([*head, *rows]), newline="")
            pieces = list(read_csv(text, ("a", "b", "c"), size, header=None))
            assert [row for _, codes in pieces for row in codes.tolist()] == want
            assert [line for line, _ in pieces] == [1 + len(head) + i for i in range(0, len(rows), size)]


def test_plain_rows_are_not_read_entry_by_entry():
    def read(end):
        text = io.StringIO(f"1,0,?,1,0,1,0,1{end}\n" * 5000)
        pieces = read_csv(text, tuple("abcdefgh"), 1 << 10, header=None)
        assert sum(len(codes) for _, codes in pieces) == 5000

    assert count_calls(lambda: read("")) < 5 * 5000 < count_calls(lambda: read(" "))
