"""Evidence in every form: dicts, text, arrays, lists and DataFrames."""

from __future__ import annotations

import math

import numpy as np
import pytest

import pgcc

pandas = pytest.importorskip("pandas")

BETA = "(0.1*(z1 + 1)*(6*z2 + 1) - 0.4*z1*z2) * (0.8*z3 + 0.2)"


@pytest.fixture(scope="module")
def beta() -> pgcc.Model:
    return pgcc.compile(pgcc.parse(BETA))


class TestEvidence:
    def test_dicts(self, beta: pgcc.Model) -> None:
        for given in (
            {"z2": 0, "z3": 0},
            {"z2": False, "z3": np.int64(0)},
            {"z1": None, "z2": 0.0, "z3": 0},
            {"z1": -1, "z2": 0, "z3": 0},
            {"z1": math.nan, "z2": 0, "z3": 0},
        ):
            assert beta.prob(given) == pytest.approx(0.04, rel=1e-12)
        assert beta.prob() == beta.prob({}) == beta.prob(None) == pytest.approx(1.0, rel=1e-14)

    @pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64, np.float32, np.float64, object])
    def test_arrays(self, beta: pgcc.Model, dtype: type) -> None:
        rows = np.array([[0, 1, 1], [-1, 0, 0], [-1, -1, -1]]).astype(dtype)
        np.testing.assert_allclose(beta.prob(rows), [0.48, 0.04, 1.0], rtol=1e-12)
        np.testing.assert_allclose(beta.logprob(rows), np.log([0.48, 0.04, 1.0]), atol=1e-12)

    def test_floats_with_nan(self, beta: pgcc.Model) -> None:
        rows = np.array([[0, 1, 1], [np.nan, 0, 0]])
        np.testing.assert_allclose(beta.prob(rows), [0.48, 0.04], rtol=1e-12)

    def test_booleans_and_unsigned(self, beta: pgcc.Model) -> None:
        rows = np.array([[0, 1, 1], [1, 1, 1]])
        for dtype in (bool, np.uint8, np.uint64):
            np.testing.assert_allclose(beta.prob(rows.astype(dtype)), [0.48, 0.16], rtol=1e-12)

    def test_booleans_of_other_bytes(self, beta: pgcc.Model) -> None:
        # numpy takes every byte but 0 for True; so may do a file of booleans
        rows = np.array([[2, 0, 255], [1, 128, 0]] * 600, np.uint8)[:, : len(beta.variables)]
        for some in (rows, rows[:2]):
            np.testing.assert_array_equal(beta.prob(some.view(bool)), beta.prob((some != 0).astype(np.int8)))

    def test_lists_fortran_order_and_strides(self, beta: pgcc.Model) -> None:
        rows = [[0, 1, 1], [-1, 0, 0]]
        np.testing.assert_allclose(beta.prob(rows), [0.48, 0.04], rtol=1e-12)
        np.testing.assert_allclose(beta.prob(np.asfortranarray(rows)), [0.48, 0.04], rtol=1e-12)
        wide = np.repeat(np.array(rows), 2, axis=1)[:, ::2]
        np.testing.assert_allclose(beta.prob(wide), [0.48, 0.04], rtol=1e-12)

    def test_one_row_gives_one_number(self, beta: pgcc.Model) -> None:
        assert beta.prob([0, 1, 1]) == pytest.approx(0.48, rel=1e-12)
        assert isinstance(beta.logprob(np.array([0, 1, 1])), float)

    def test_no_rows(self, beta: pgcc.Model) -> None:
        assert beta.prob(np.zeros((0, 3), int)).shape == (0,)
        assert beta.logprob([]).shape == (0,)

    def test_list_of_dicts(self, beta: pgcc.Model) -> None:
        np.testing.assert_allclose(beta.prob([{"z2": 0, "z3": 0}, {}]), [0.04, 1.0], rtol=1e-12)

    def test_data_frames(self, beta: pgcc.Model) -> None:
        frame = pandas.DataFrame({"z3": [1, 0], "z2": [1, 0]})  # any order; z1 unobserved
        np.testing.assert_allclose(beta.prob(frame), [0.64, 0.04], rtol=1e-12)
        frame = pandas.DataFrame({"z3": [1, 0, 1], "z1": [0, 0, 1], "z2": [0, 1, 0]})
        np.testing.assert_allclose(beta.prob(frame), beta.prob(frame[["z1", "z2", "z3"]].to_numpy()), rtol=1e-12)
        frame = pandas.DataFrame({"z1": [0, None], "z2": [1, 0], "z3": [True, False]})
        np.testing.assert_allclose(beta.prob(frame), [0.48, 0.04], rtol=1e-12)
        frame = pandas.DataFrame({"z1": pandas.array([0, pandas.NA], dtype="Int64"), "z2": [1, 0], "z3": [1, 0]})
        np.testing.assert_allclose(beta.prob(frame), [0.48, 0.04], rtol=1e-12)
        assert beta.prob(pandas.Series({"z2": 0, "z3": 0})) == pytest.approx(0.04, rel=1e-12)

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ({"nobody": 1}, "unknown variable 'nobody'"),
            ({"z_1": 1}, "did you mean 'z1'"),
            ({"z1": 2}, "variable 'z1' is 2"),
            ({"z1": "1"}, "variable 'z1' is '1'"),
            ({"z1": 0.5}, "variable 'z1' is 0.5"),
            ({1: 1}, "unknown variable 1"),
            ([{"z1": 1}, {"zz": 0}], r"unknown variable 'zz' \(row 1\)"),
            ([[0, 1, 2]], "row 0, variable 'z3' is 2"),
            (np.array([[0, 1, 1], [0, 1, -2]]), "row 1, variable 'z3' is -2"),
            (np.array([[0, 1, 255]], np.uint8), "row 0, variable 'z3' is 255"),
            (np.array([[0, 1, 0.5]]), "row 0, variable 'z3' is 0.5"),
            (np.array([[0, 1, np.inf]]), "row 0, variable 'z3' is inf"),
            ([[0, 1]], "3 variables"),
            ([[[0, 1, 1]]], "3 variables"),
            ([[0, 1, 1], [0, 1]], "different lengths"),
            ([["a", "b", "c"]], "row 0, variable 'z1' is 'a'"),
            ("z1", "names without values"),
            ("z1=2", "'z1' is '2'"),
            ("zz1=1", "did you mean 'z1'"),
            (["z1=1", "zz=1"], r"unknown variable 'zz' \(row 1\)"),
            ("z1=1 z2=1", "looks like"),
            (3, "3 is not evidence"),
            ({"z1"}, "not evidence"),
            (pandas.DataFrame({"other": [1]}), "column 'other'"),
            (pandas.DataFrame([[1, 0]], columns=["z1", "z1"]), "column 'z1' occurs twice"),
            (pandas.DataFrame({"z1": ["yes"]}), "row 0, variable 'z1' is 'yes'"),
        ],
    )
    def test_mistakes_name_the_variable_or_the_row(self, beta: pgcc.Model, given: object, message: str) -> None:
        with pytest.raises(pgcc.EvidenceError, match=message):
            beta.prob(given)

    @pytest.mark.parametrize("kind", [np.int64, np.int8])
    def test_a_mistake_in_a_late_chunk_names_its_row(self, beta: pgcc.Model, kind: type) -> None:
        rows = np.zeros((300_000, 3), kind)
        rows[299_999, 1] = 7
        with pytest.raises(pgcc.EvidenceError, match="row 299999, variable 'z2' is 7"):
            beta.prob(rows)

    @pytest.mark.parametrize("row", [0, 31, 255, 256, 1999])
    @pytest.mark.parametrize("code", [2, -2, 127, -128])
    def test_a_mistake_among_codes_is_found_in_any_block(self, beta: pgcc.Model, row: int, code: int) -> None:
        rows = np.ones((2000, 3), np.int8)
        rows[row, 2] = code
        for question in (beta.prob, beta.logprob):
            with pytest.raises(pgcc.EvidenceError, match=f"row {row}, variable 'z3' is {code}"):
                question(rows)
