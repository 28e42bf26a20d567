"""Grid search and `pgcc experiments`: small data sets in the format of the shared ones."""

import json

import numpy as np
import pytest

import pgcc
from pgcc.errors import EvidenceError, PgccError
from pgcc.learn import PGC, ChowLiu, CircuitMLE, GridSearch, MixtureOfTrees, SimplePGC, encoding
from pgcc.learn.encoding import tabulate
from pgcc.learn.experiments import Result, as_tables, find_sets, t_test, two_sided_p
from pgcc.learn.published import BABY_REGISTRIES, COLUMNS, TWENTY_DATASETS, published


def rows(n, seed):
    x = np.random.default_rng(seed).integers(0, 2, (n, 4))
    x[:, 1] |= x[:, 0]
    return x


@pytest.fixture
def folder(tmp_path):
    for name in ("amzn_gifts", "coins"):
        (tmp_path / name).mkdir()
        for i, part in enumerate(("train", "valid", "test")):
            np.savetxt(tmp_path / name / f"{name}.{part}.data", rows(60, i), fmt="%d", delimiter=",")
    (tmp_path / "unfinished").mkdir()
    return tmp_path


def test_published_numbers_are_found_by_the_names_of_files():
    for names, prefix in ((TWENTY_DATASETS, ""), (BABY_REGISTRIES, "amzn_")):
        for name, line in names.items():
            assert published(prefix + name) is line
            columns = line.columns
            assert list(columns) == list(COLUMNS)
            assert tuple(columns.values()) == line[: len(COLUMNS)]
            assert all(value < 0 for value in columns.values())  # logarithms of probabilities
    assert published("coins") is None
    assert published("amzn_coins") is None


def test_the_table_marks_the_best_of_the_published_numbers():
    """The paper prints SimplePGC of dna and of apparel in bold."""
    results = [Result(name, "MT", -1e3, -1e3, 1.0, 1) for name in ("dna", "amzn_apparel")]
    for line in as_tables(results).splitlines():
        if line.startswith(("dna", "apparel")):
            assert line.split()[len(COLUMNS)].endswith("*")
            assert line.count("*") == 1


def test_p_values():
    """Quantiles of Student's t from tables."""
    for t, freedom, p in (
        (1.812, 10, 0.1),
        (2.228, 10, 0.05),
        (1.645, 10**6, 0.1),
        (12.706, 1, 0.05),
        (3.169, 10, 0.01),
    ):
        assert two_sided_p(t, freedom) == pytest.approx(p, rel=2e-3)
        assert two_sided_p(-t, freedom) == two_sided_p(t, freedom)
    assert two_sided_p(0.0, 5) == 1.0


def test_p_values_by_scipy():
    stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(0)
    for _ in range(200):
        t, freedom = rng.normal() * 3, int(rng.integers(1, 3000))
        assert two_sided_p(t, freedom) == pytest.approx(2 * stats.t.sf(abs(t), freedom), rel=1e-9)


def test_t_tests_are_wrong_as_often_as_they_may_be():
    """Under the null hypothesis a tenth of them find a difference."""
    found = [t_test(np.random.default_rng(seed).normal(-6, 2, 50), -6.0) for seed in range(1000)]
    assert 70 <= sum(x != "=" for x in found) <= 135
    assert t_test(np.full(10, -1.0), -2.0) == "="  # no spread, nothing to test with
    assert t_test(np.array([-1.0]), -2.0) == "="


def test_sets_are_found(folder):
    assert [one.name for one in find_sets(folder)] == ["amzn_gifts", "coins"]
    assert [one.name for one in find_sets(folder, ["gifts"])] == ["amzn_gifts"]
    with pytest.raises(PgccError, match="no data set 'dna'"):
        find_sets(folder, ["dna"])
    with pytest.raises(PgccError, match="is not a folder"):
        find_sets(folder / "nowhere")
    with pytest.raises(PgccError, match="has no data sets"):
        find_sets(folder / "unfinished")
    (folder / "coins" / "coins.test.data").write_text("0,1,2,1\n")
    with pytest.raises(PgccError, match="rows of 0 and 1"):
        find_sets(folder, ["coins"])[0].part("test")
    (folder / "coins" / "coins.test.data").write_text("0,1,x,1\n")
    with pytest.raises(PgccError, match=r"coins\.test\.data"):
        find_sets(folder, ["coins"])[0].part("test")


def test_the_command(folder, tmp_path, capsys):
    from pgcc import cli

    out = tmp_path / "results.json"
    assert cli.main(["experiments", str(folder), "--models", "DPP,SimplePGC", "--sets", "gifts", "-o", str(out)]) == 0
    captured = capsys.readouterr()
    assert "amzn_gifts, DPP: test" in captured.err
    header, line = captured.out.splitlines()
    assert header.split()[:3] == ["Amazon", "Baby", "Registries"]
    assert line.split()[:6] == ["gifts", "-3.51", "-3.39", "-3.42", "-3.48", "-3.47"]
    found = json.loads(out.read_text())
    assert [result["model"] for result in found["results"]] == ["DPP", "SimplePGC"]
    assert set(found["results"][0]["versus"]) == {"DPP", "Strudel", "EiNet", "MT", "SimplePGC"}
    assert cli.main(["experiments", str(folder), "-o", str(out)]) == 2
    assert "exists: --force" in capsys.readouterr().err
    assert cli.main(["experiments", str(folder), "--models", "XYZ"]) == 2
    assert "no model 'XYZ'" in capsys.readouterr().err


@pytest.mark.filterwarnings("error")
def test_sets_whose_files_differ(folder, fail, monkeypatch):
    """It is said, with the file, before the first model is trained."""
    path = folder / "coins" / "coins.test.data"
    with monkeypatch.context() as patch:
        patch.setattr("pgcc.learn.experiments.run_one", lambda *args, **said: pytest.fail("it has begun"))
        path.write_text("1,0\n")
        assert f"{path} has 2 columns" in fail("experiments", folder, "--models", "DPP")
    path.write_text("")
    with pytest.raises(PgccError, match=f"{path}: rows of 0 and 1"):
        find_sets(folder, ["coins"])[0].part("test")


def test_tables_mark_the_best():
    lines = as_tables(
        [Result("dna", "PGC", -79.0, -79.5, 1.0, 10, {"DPP": ">"}), Result("coins", "PGC", -1.0, -1.25, 1.0, 10)]
    ).splitlines()
    assert "-79.50* >" in lines[1]
    assert "-80.82*" not in lines[1]
    assert lines[-1].split() == ["coins", "–", "–", "–", "–", "–", "-1.25*"]


def test_grid_search_keeps_the_best():
    X, valid = rows(300, 1), rows(200, 2)
    search = GridSearch(MixtureOfTrees(), {"components": [1, 2, 4]}, threads=2).fit(X, valid)
    assert [r["validation"] for r in search.results_] == sorted(
        (r["validation"] for r in search.results_), reverse=True
    )
    again = MixtureOfTrees(**{**MixtureOfTrees().get_params(), **search.best_params_}).fit(X, valid)
    assert search.score(valid) == pytest.approx(again.score(valid), abs=1e-12)
    assert search.score(valid) == pytest.approx(search.results_[0]["validation"], abs=1e-12)
    assert pgcc.compile(search.circuit_).prob({}) == pytest.approx(1.0)


def test_candidates_share_work_and_are_as_if_fitted_alone(monkeypatch):
    """To the last bit, on any number of threads."""
    X, valid, encoded = rows(300, 1), rows(200, 2), []
    grid = {"max_group": [1, 2, 3], "components": [1, 2]}
    monkeypatch.setattr(encoding, "tabulate", lambda *a: encoded.append(a) or tabulate(*a))
    one, two = (GridSearch(SimplePGC(epochs=3), grid, threads=n).fit(X, valid) for n in (1, 2))
    assert len(encoded) == 2 * 2 * 3  # searches, tables, sizes of groups
    assert one.results_ == two.results_
    assert one.circuit_ == two.circuit_
    for result in one.results_:
        alone = SimplePGC(result["max_group"], result["components"], epochs=3).fit(X, valid)
        assert alone.history_["validation"][alone.best_epoch_] == result["validation"]
        if result is one.results_[0]:
            assert alone.circuit_ == one.circuit_
            assert (alone.parameters_ == one.best_estimator_.parameters_).all()


def test_columns_of_a_circuit_are_found_by_name():
    pd = pytest.importorskip("pandas")
    X = np.array([[1, 1, 0], [1, 0, 0], [1, 1, 0], [1, 0, 0], [0, 1, 1], [1, 1, 0]])
    circuit = CircuitMLE(pgcc.parse("(0.5*a + 0.5)*(0.5*b + 0.5)*(0.5*c + 0.5)"), smoothing=0)
    named = GridSearch(circuit, {"smoothing": [0.0]}).fit(pd.DataFrame(X, columns=["c", "a", "b"]), X)
    assert named.circuit_.variables == ("c", "a", "b")
    np.testing.assert_allclose(named.model_.marginals(), X.mean(axis=0), atol=1e-9)
    by_place = PGC([circuit, ChowLiu()]).fit(X, X)
    assert by_place.circuit_.variables == ("x0", "x1", "x2")
    with pytest.raises(EvidenceError, match="have the columns"):
        GridSearch(circuit, {"smoothing": [0.0]}).fit(pd.DataFrame(X, columns=["c", "a", "z"]), X)


def test_grid_search_refuses():
    with pytest.raises(PgccError, match="has no parameter 'depth'"):
        GridSearch(ChowLiu(), {"depth": [1]}).fit(rows(20, 0))
    with pytest.raises(PgccError, match="are a list"):
        GridSearch(ChowLiu(), {"smoothing": 1.0}).fit(rows(20, 0))
    with pytest.raises(PgccError, match="an estimator"):
        GridSearch("trees").fit(rows(20, 0))


def test_the_picture():
    pytest.importorskip("matplotlib")
    from pgcc import plot

    results = [{"data": "dna", "model": "PGC", "test": -79.5}, {"data": "dna", "model": "MT", "test": -81.0}]
    ax = plot.likelihoods({"results": results, "published": {"dna": published("dna").columns}})
    gains = {line.get_label(): line.get_xdata()[0] for line in ax.lines if not line.get_label().startswith("_")}
    assert gains["PGC"] == pytest.approx(-79.5 + 80.82)
    assert gains["SimplePGC (paper)"] == 0.0
