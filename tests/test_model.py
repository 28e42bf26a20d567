"""`compile`, `prob`, `logprob`, `explain`: arguments, errors, forms of evidence, concurrency."""

from __future__ import annotations

import concurrent.futures
import math
import multiprocessing
import pickle
from fractions import Fraction

import numpy as np
import pytest

import pgcc
from pgcc.testing import random_circuit

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
            ([["a", "b", "c"]], "entry"),
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


class TestCompile:
    def test_normalises_and_says_so(self) -> None:
        circuit = pgcc.parse("2*z + 6")
        model = pgcc.compile(circuit)
        assert model.prob({"z": 1}) == 0.25
        assert model.prob({"z": 1}, exact=True) == Fraction(1, 4)
        assert "total g(1): 8" in str(model.explain())
        raw = pgcc.compile(circuit, normalize=False)
        assert raw.prob({"z": 1}) == 2.0
        assert raw.prob({"z": 1}, exact=True) == 2

    @pytest.mark.parametrize("text", ["z - 1", "z - z", "0", "-z - 1"])
    def test_refuses_a_total_that_is_not_positive(self, text: str) -> None:
        with pytest.raises(pgcc.SemanticsError, match="total"):
            pgcc.compile(pgcc.parse(text))

    def test_refuses_a_negative_probability_when_it_meets_one(self) -> None:
        model = pgcc.compile(pgcc.parse("1.5*z - 0.5"), validate=False)
        with pytest.raises(pgcc.SemanticsError, match=r"evidence z=1 is 1\.5, above 1"):
            model.prob({"z": 1})
        with pytest.raises(pgcc.SemanticsError, match="evidence z=0"):
            model.prob({"z": 0})
        with pytest.raises(pgcc.SemanticsError, match=r"\(row 1\)"):
            model.logprob([[-1], [0]])
        with pytest.raises(pgcc.SemanticsError, match="negative"):
            model.prob({"z": 0}, exact=True)
        raw = pgcc.compile(pgcc.parse("1.5*z - 0.5"), normalize=False)
        assert raw.prob({"z": 0}) == -0.5
        with pytest.raises(pgcc.PgccError, match="negative"):
            raw.logprob({"z": 0})

    def test_refuses_a_square_by_name(self) -> None:
        for text, name in [("0.5*b*b + 0.5", "b"), ("(a + b)*(a + 1)", "a"), ("(a + c)**2 - c**2 + d", "a")]:
            with pytest.raises(pgcc.SemanticsError, match=f"'{name}'"):
                pgcc.compile(pgcc.parse(text))

    def test_a_square_that_cancels_is_no_square(self) -> None:
        model = pgcc.compile(pgcc.parse("((z + 1)**2 - z**2) / 4 + 1/4"))  # z/2 + 1/2
        assert model.prob({"z": 1}) == pytest.approx(0.5, rel=1e-12)
        # trap 9: in doubles 0.3 − 0.1 − 0.2 is not 0; as text it is
        assert pgcc.compile(pgcc.parse("0.3*z**2 - 0.1*z**2 - 0.2*z**2 + z/2 + 1/2")).prob({"z": 1}) == 0.5
        z, y = pgcc.variables("z y")
        with pytest.raises(pgcc.SemanticsError, match="floats"):
            pgcc.compile((0.3 * z + y) * z - (0.1 * z + y) * z - 0.2 * z * z + 0.5 * z + 0.5)

    def test_validate_false_reads_the_coefficient_all_the_same(self) -> None:
        model = pgcc.compile(pgcc.parse("0.25*z*z + 0.5*z + 0.25"), validate=False)
        for method in ("top", "bottom", "fft", "ball", "auto"):
            assert model.prob({"z": 1}, method=method) == pytest.approx(0.5, rel=1e-12)
        assert model.prob({"z": 1}, exact=True) == Fraction(1, 2)
        assert "not tested" in str(model.explain())

    def test_variables_that_do_not_occur_are_never_in(self) -> None:
        circuit = pgcc.Circuit(pgcc.parse("a/2 + 1/2").root, ["b", "a"])
        model = pgcc.compile(circuit)
        assert model.prob({"b": 1}) == 0.0
        assert model.logprob({"b": 1}) == -math.inf
        assert model.prob({"b": 0, "a": 1}) == 0.5
        np.testing.assert_array_equal(model.prob([[0, 1], [1, 1], [-1, 0]]), [0.5, 0.0, 0.5])

    def test_a_constant(self) -> None:
        model = pgcc.compile(pgcc.parse("3"))
        assert model.prob({}) == 1.0
        np.testing.assert_array_equal(model.prob(np.zeros((4, 0), int)), np.ones(4))

    @pytest.mark.parametrize(
        "arguments",
        [{"method": "magic"}, {"rtol": 0}, {"rtol": 2.0}, {"rtol": "small"}, {"threads": 0}, {"threads": 1.5}],
    )
    def test_bad_arguments(self, arguments: dict) -> None:
        with pytest.raises(pgcc.PgccError):
            pgcc.compile(pgcc.parse("z"), **arguments)

    def test_not_a_circuit(self) -> None:
        with pytest.raises(pgcc.PgccError, match=r"pgcc\.parse"):
            pgcc.compile("z1 + z2")  # type: ignore[arg-type]

    def test_direct_is_refused_where_it_would_be_wrong(self) -> None:
        model = pgcc.compile(pgcc.parse("((z + 1)**2 - z**2)/4 + 1/4"))
        with pytest.raises(pgcc.PgccError, match="decomposable"):
            model.prob({"z": 1}, method="direct")

    def test_repr_and_explain(self, beta: pgcc.Model) -> None:
        assert repr(beta) == "<Model: 3 variables, 14 edges, one number per node>"
        text = str(beta.explain({"z1": 1}))
        assert "strategy: direct" in text
        assert "method direct" in text
        assert beta.explain().as_dict()["decomposable"] is True
        entangled = pgcc.compile(pgcc.parse("((z + 1)**2 - z**2)/4 + 1/4")).explain({"z": 1})
        assert "identity test" in str(entangled)
        assert "'z'" in entangled.reason


class TestMany:
    circuit = random_circuit(7, 12, size=60, negative=False)
    rows = np.random.default_rng(0).choice([0, 1, -1], size=(20_011, 12)).astype(np.int8)

    def test_rows_do_not_depend_on_their_company_or_on_threads(self) -> None:
        model = pgcc.compile(self.circuit)
        values = model.prob(self.rows)
        np.testing.assert_array_equal(values, model.prob(self.rows, threads=2))
        np.testing.assert_array_equal(values, model.prob(self.rows, threads=-1))
        np.testing.assert_array_equal(values[777:1777], model.prob(self.rows[777:1777]))
        assert [model.prob(self.rows[i]) for i in range(0, 20_011, 5000)] == values[::5000].tolist()

    def test_threads_of_the_caller(self) -> None:
        model = pgcc.compile(self.circuit)
        expected = model.prob(self.rows)
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            for values in pool.map(lambda _: model.prob(self.rows, threads=2), range(8)):
                np.testing.assert_array_equal(values, expected)

    def test_concurrent_escalation(self) -> None:
        z = pgcc.variables("a b c")
        circuit = pgcc.parse("((a+b)**2 - (a-b)**2)/4 * c/2 + 1/2")
        assert len(z) == 3
        model = pgcc.compile(circuit)
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            values = list(pool.map(lambda _: model.prob({"a": 1, "c": 1}, method="ball"), range(32)))
        assert values == [0.5] * 32

    def test_pickle(self) -> None:
        model = pickle.loads(pickle.dumps(pgcc.compile(self.circuit, rtol=1e-7)))
        np.testing.assert_array_equal(model.prob(self.rows[:100]), pgcc.compile(self.circuit).prob(self.rows[:100]))

    @pytest.mark.parametrize("method", ["fork", "spawn"])
    def test_worker_processes(self, method: str) -> None:
        model = pgcc.compile(self.circuit)
        expected = model.prob(self.rows, threads=2)  # threads have been used before the fork
        context = multiprocessing.get_context(method)
        with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
            parts = list(pool.map(model.prob, np.array_split(self.rows, 4)))
        np.testing.assert_array_equal(np.concatenate(parts), expected)
