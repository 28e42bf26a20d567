"""`compile`, `prob`, `logprob`, `explain`: arguments, errors, concurrency."""

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

BETA = "(0.1*(z1 + 1)*(6*z2 + 1) - 0.4*z1*z2) * (0.8*z3 + 0.2)"


@pytest.fixture(scope="module")
def beta() -> pgcc.Model:
    return pgcc.compile(pgcc.parse(BETA))


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
