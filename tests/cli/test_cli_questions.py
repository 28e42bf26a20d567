"""pgcc marginals, cardinality and sample."""

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest

import pgcc

EXAMPLE = str(Path(__file__).parents[2] / "examples" / "beta.pgc")
MODEL = pgcc.compile(pgcc.load(EXAMPLE))
NASTY = '0.25*"a, b" + 0.75'


def table(text):
    header, *rows = csv.reader(io.StringIO(text))
    return header, np.array(rows, float)


def test_marginals(run):
    lines = [line.split("\t") for line in run("marginals", EXAMPLE, "z1=1").splitlines()]
    assert [name for name, _ in lines] == ["z1", "z2", "z3"]
    np.testing.assert_allclose([float(p) for _, p in lines], MODEL.marginals({"z1": 1}, names=False), rtol=1e-14)
    assert run("marginals", "--expr", NASTY) == "a, b\t0.25\n"


def test_marginals_of_several(run, tmp_path):
    header, rows = table(run("marginals", EXAMPLE, "z1=1", "z1=0"))
    assert header == ["z1", "z2", "z3"]
    expected = MODEL.marginals([{"z1": 1}, {"z1": 0}], names=False)
    np.testing.assert_allclose(rows, expected, rtol=1e-14)
    path = tmp_path / "rows.csv"
    path.write_text("z1\n1\n0\n")
    assert table(run("marginals", EXAMPLE, "--evidence", path))[1].tolist() == rows.tolist()
    header, rows = table(run("marginals", "--expr", NASTY, '"a, b"=1', ""))
    assert header == ["a, b"]
    assert rows.tolist() == [[1.0], [0.25]]


def test_marginals_given_a_size(run):
    found = run("marginals", EXAMPLE, "--size", "1..2", "--over", "z1, z2")
    expected = MODEL.condition(size=(1, 2), over=["z1", "z2"]).marginals()
    np.testing.assert_allclose([float(line.split("\t")[1]) for line in found.splitlines()], expected, rtol=1e-12)


def test_covariance(run):
    header, *rows = csv.reader(io.StringIO(run("marginals", EXAMPLE, "--covariance")))
    assert header == ["", "z1", "z2", "z3"]
    assert [row[0] for row in rows] == ["z1", "z2", "z3"]
    np.testing.assert_allclose(np.array([row[1:] for row in rows], float), MODEL.covariance(), atol=1e-14)


def test_json(run):
    (line,) = run("marginals", EXAMPLE, "z1=1", "--json").splitlines()
    found = json.loads(line)
    assert found["evidence"] == {"z1": 1}
    assert list(found["marginals"].values()) == MODEL.marginals({"z1": 1}, names=False).tolist()
    found = json.loads(run("marginals", EXAMPLE, "--covariance", "--json"))
    assert found["covariance"]["z1"]["z2"] == MODEL.covariance()[0, 1]
    assert json.loads(run("cardinality", EXAMPLE, "--json"))["pmf"] == MODEL.cardinality().tolist()


def test_cardinality(run):
    lines = [line.split("\t") for line in run("cardinality", EXAMPLE).splitlines()]
    assert [k for k, _ in lines] == ["0", "1", "2", "3"]
    np.testing.assert_allclose([float(p) for _, p in lines], [0.02, 0.22, 0.6, 0.16], rtol=1e-12)
    header, rows = table(run("cardinality", EXAMPLE, "z1=1", "z1=0", "--over", "z1,z3"))
    assert header == ["0", "1", "2"]
    np.testing.assert_allclose(rows, [[0, 0.2, 0.8], [0.2, 0.8, 0]], atol=1e-14)
    assert run("cardinality", EXAMPLE, "--atol", "1e-12").count("\n") == 4


def test_sample(run, tmp_path):
    text = run("sample", EXAMPLE, "-n", 50, "--seed", 3)
    header, rows = table(text)
    assert header == ["z1", "z2", "z3"]
    assert rows.tolist() == MODEL.sample(50, rng=3).tolist()
    path = tmp_path / "out.csv"
    assert run("sample", EXAMPLE, "-n", 50, "--seed", 3, "-o", path, "--threads", 2) == ""
    assert path.read_text() == text
    header, rows = table(run("sample", EXAMPLE, "z1=1", "-n", 20, "--seed", 1, "--size", 2))
    assert (rows[:, 0] == 1).all()
    assert (rows.sum(axis=1) == 2).all()
    sets = [json.loads(line)["set"] for line in run("sample", EXAMPLE, "-n", 5, "--seed", 3, "--json").splitlines()]
    assert sets == [[f"z{i + 1}" for i in np.flatnonzero(row)] for row in MODEL.sample(5, rng=3)]


def test_pictures(run, fail, tmp_path):
    pytest.importorskip("matplotlib")
    for command in (["marginals"], ["marginals", "--covariance"], ["cardinality"], ["show"]):
        path = tmp_path / f"{'-'.join(command)}.svg"
        run(command[0], EXAMPLE, *command[1:], "--plot", path)
        assert "<svg" in path.read_text()
        assert "exists: --force" in fail(command[0], EXAMPLE, *command[1:], "--plot", path)
        run(command[0], EXAMPLE, *command[1:], "--plot", path, "--force")
    assert "one piece of evidence" in fail("marginals", EXAMPLE, "z1=1", "z1=0", "--plot", tmp_path / "x.svg")
    assert ".pdf" in fail("marginals", EXAMPLE, "--plot", tmp_path / "x.doc")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["marginals", EXAMPLE, "z1=1", "--over", "z1"], "means nothing alone"),
        (["mode", EXAMPLE, "--over", "z1", "--top", "2"], "means nothing alone"),
        (["query", EXAMPLE, "z1=1", "--marginals"], "there is a command, pgcc marginals"),
        (["marginals", EXAMPLE, "z9=1"], "unknown variable 'z9'"),
        (["marginals", "--expr", "0.4*a*b + 0.6", "a=1, b=0"], "probability 0"),
        (["marginals", EXAMPLE, "--size", "two"], "neither a number"),
        (["marginals", EXAMPLE, "--size", "9"], "9"),
        (["cardinality", EXAMPLE, "--over", "z1 z2"], "names look like"),
        (["cardinality", EXAMPLE, "--over", "z1, z1"], "twice"),
        (["cardinality", EXAMPLE, "--atol", "-1"], "atol"),
        (["sample", EXAMPLE, "z1=1", "z2=1"], "one piece of EVIDENCE"),
        (["sample", EXAMPLE, "-n", "-3"], "-3"),
        (["sample", EXAMPLE, "--size", "4"], "4"),
    ],
)
def test_what_is_refused(fail, arguments, message):
    assert message in fail(*arguments)


def test_nothing_is_printed_before_an_error(fail, tmp_path):
    assert "No such file" in fail("marginals", EXAMPLE, "--evidence", tmp_path / "nowhere.csv")
    assert "unknown variable" in fail("cardinality", EXAMPLE, "z9=1", "z1=0")


def test_mode(run):
    name, log, proved = run("mode", EXAMPLE).rstrip("\n").split("\t")
    assert (name, proved) == ("z2, z3", "exact")
    assert float(log) == pytest.approx(MODEL.mode().logprob)
    answers = [json.loads(line) for line in run("mode", EXAMPLE, "z1=1", "z1=0", "--top", "2", "--json").splitlines()]
    assert [answer["evidence"]["z1"] for answer in answers] == [1, 1, 0, 0]
    assert [answer["rank"] for answer in answers] == [1, 2, 1, 2]
    assert [answer["set"] for answer in answers[1::2]] != [answer["set"] for answer in answers[::2]]
    assert json.loads(run("mode", EXAMPLE, "--size", "1", "--time-limit", "5", "--json"))["set"] == ["z2"]


def test_evidence_from_an_array(run, tmp_path):
    np.save(tmp_path / "rows.npy", np.array([[1, -1, -1], [0, -1, -1]], np.int8))
    _, rows = table(run("marginals", EXAMPLE, "--evidence", tmp_path / "rows.npy"))
    np.testing.assert_allclose(rows, MODEL.marginals([{"z1": 1}, {"z1": 0}], names=False), rtol=1e-14)


def test_a_number_of_samples_in_scientific_notation(run, fail):
    assert len(run("sample", EXAMPLE, "-n", "1e2", "--seed", 1).splitlines()) == 101
    for wrong in ("1.5", "inf", "x"):
        assert f"argument -n: invalid whole_number value: '{wrong}'" in fail("sample", EXAMPLE, "-n", wrong)


def test_what_is_no_distribution_cannot_be_sampled(fail):
    """Nor with --no-validate, which the message recommended once."""
    assert "--no-validate" not in fail("sample", "--expr", "2*a - b")
    assert "and is no distribution" in fail("sample", "--expr", "2*a - b", "--no-validate")
