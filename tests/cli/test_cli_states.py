"""Variables with states on the command line: evidence, answers, samples and modes in their labels."""

from __future__ import annotations

import json

import numpy as np
import pytest

import pgcc

# Late people are those whom rain or snow held up; the name of a state with a comma stands in quotes.
NETWORK = """network weather { }
variable weather { type discrete [ 3 ] { sun, rain, snow }; }
variable late { type discrete [ 2 ] { no, yes }; }
variable sex { type discrete [ 2 ] { M, F }; }
probability ( weather ) { table 0.5, 0.375, 0.125; }
probability ( late | weather ) { (sun) 0.875, 0.125; (rain) 0.75, 0.25; (snow) 0.25, 0.75; }
probability ( sex ) { table 0.5, 0.5; }
"""


@pytest.fixture
def network(tmp_path):
    path = tmp_path / "weather.bif"
    path.write_text(NETWORK)
    return path


def test_queries_take_states_and_sets_of_them(run, network):
    assert run("query", network, "weather=rain", "weather in {rain, snow}", "weather!=sun, late=yes").split() == [
        "0.375", "0.5", "0.1875",
    ]  # fmt: skip
    (told,) = map(json.loads, run("query", network, "weather!=rain, late=yes", "--json").splitlines())
    assert told == {"evidence": {"weather": ["sun", "snow"], "late": "yes"}, "prob": 0.15625}


def test_marginals_are_told_by_state(run, network):
    assert run("marginals", network, "weather!=snow").splitlines() == [
        "weather=sun\t0.571428571428571", "weather=rain\t0.428571428571429", "weather=snow\t0",
        "late=no\t0.821428571428571", "late=yes\t0.178571428571429", "sex=M\t0.5", "sex=F\t0.5",
    ]  # fmt: skip
    told = json.loads(run("marginals", network, "weather=snow", "--json"))
    assert told["marginals"]["late"] == {"no": 0.25, "yes": 0.75}
    head, *rows = run("marginals", network, "weather=snow", "weather=sun").splitlines()
    assert head == "weather=sun,weather=rain,weather=snow,late=no,late=yes,sex=M,sex=F"
    assert rows == ["0,0,1,0.25,0.75,0.5,0.5", "1,0,0,0.875,0.125,0.5,0.5"]
    assert run("marginals", network, "--covariance").splitlines()[0] == f",{head}"


def test_states_are_counted(run, network):
    assert run("cardinality", network, "--over", "late, weather=rain").split() == [
        "0", "0.46875", "1", "0.4375", "2", "0.09375",
    ]  # fmt: skip
    several = run("cardinality", network, "late=yes", "late=no", "--over", "weather in {rain, snow}, late")
    assert several.splitlines()[0] == "0,1,2"  # one of rain and snow at most
    assert run("mode", network, "--size", "2", "--over", "weather=snow, late").startswith("weather=snow, late=yes")


def test_samples_and_modes_are_labels(run, network):
    head, *rows = run("sample", network, "weather!=sun", "-n", "20", "--seed", "1").splitlines()
    assert head == "weather,late,sex"
    assert {row.split(",")[0] for row in rows} == {"rain", "snow"}
    assert set(json.loads(run("sample", network, "--json"))["assignment"]) == {"weather", "late", "sex"}
    assert run("mode", network, "late=yes, sex=F").startswith("weather=")
    (best, second) = map(json.loads, run("mode", network, "sex=M", "--top", "2", "--json").splitlines())
    assert best["assignment"] == {"weather": "sun", "late": "no", "sex": "M"}
    assert second["assignment"] == {"weather": "rain", "late": "no", "sex": "M"}
    assert np.exp(second["logprob"]) == pytest.approx(0.375 * 0.75 / 2)


def test_labels_with_commas_are_quoted_in_tables(run, tmp_path, monkeypatch):
    circuit = pgcc.pc.categorical("size", {"small": "1/2", "large, red": "1/4", "huge": "1/4"}).to_pgc()
    monkeypatch.setattr("pgcc.cli.questions.read_circuit", lambda args: circuit)
    sample = run("sample", "g.bif", "size='large, red'").splitlines()
    assert sample == ["size", '"large, red"']


def test_tables_have_labels(run, fail, network, tmp_path):
    table = tmp_path / "rows.csv"
    table.write_text("late,weather\nyes,snow\n,rain\nno,?\n")
    told = run("query", network, "--evidence", table).split()
    assert list(map(float, told)) == pytest.approx([0.09375, 0.375, 0.75])
    rows = list(map(json.loads, run("mode", network, "--evidence", table, "--json").splitlines()))
    assert [row["assignment"]["weather"] for row in rows] == ["snow", "rain", "sun"]
    run("sample", network, "-n", "10", "--seed", "1", "-o", tmp_path / "sample.csv")
    assert "over 10 rows" in run("score", network, tmp_path / "sample.csv")
    table.write_text("late,weather\nyes,snow\nno,rian\n")
    assert "line 3: variable 'weather' is 'rian': did you mean 'rain'?" in fail("score", network, table)


def test_arrays_have_numbers_of_states(run, fail, network, tmp_path):
    model = pgcc.compile(pgcc.load(network))
    rows = np.array([[0, 1, 0], [2, 1, -1], [1, -1, 1]])
    np.save(tmp_path / "rows.npy", rows)
    told = run("query", network, "--evidence", tmp_path / "rows.npy").split()
    assert list(map(float, told)) == pytest.approx([0.03125, 0.09375, 0.1875])
    assert list(map(float, run("score", network, tmp_path / "rows.npy", "--rows").split()[:3])) == pytest.approx(
        model.logprob(rows).tolist()
    )
    np.save(tmp_path / "rows.npy", rows[:, :2])
    assert "has 2 columns: one for each of the 3 variables" in fail("score", network, tmp_path / "rows.npy")
    np.save(tmp_path / "rows.npy", np.where(rows == 1, 6, rows))
    assert "row 2, variable 'weather' is 6" in fail("score", network, tmp_path / "rows.npy")


def test_what_is_shown(run, network):
    assert run("show", network).startswith("variables: weather in {sun, rain, snow}, late in {no, yes}, sex in {M, F}")
    assert json.loads(run("show", network, "weather=rain", "--json"))["states"]["sex"] == ["M", "F"]
    assert "3 variables" in run("convert", network, network.with_suffix(".npz"))
    assert "3 variables" in run("explore", network, "-o", network.with_suffix(".html"))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["query", "weather=rian"], "variable 'weather' is 'rian': did you mean 'rain'?"),
        (["query", "wether=rain"], "unknown variable 'wether': did you mean 'weather'?"),
        (["query", "weather=rain, weather=sun"], "leaves 'weather' no state"),
        (["cardinality"], "--over 'weather=snow' counts a state"),
        (["cardinality", "--over", "weather=rain;late"], "'rain;late'"),
    ],
)
def test_mistakes_are_told_in_their_terms(arguments, said, fail, network):
    command, *rest = arguments
    assert said in fail(command, network, *rest)
