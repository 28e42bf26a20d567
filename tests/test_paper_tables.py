"""`python -m benchmarks.paper`: the tables of the paper, on small data sets in the format of the shared ones."""

import json

import numpy as np
import pytest

from benchmarks import paper
from benchmarks.paper import Result, as_tables, find_sets, t_test, two_sided_p
from benchmarks.published import BABY_REGISTRIES, COLUMNS, TWENTY_DATASETS, published
from pgcc.errors import PgccError, PrecisionError


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
    pytest.importorskip("scipy")
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


def test_t_tests_are_wrong_as_often_as_they_may_be():
    """Under the null hypothesis a tenth of them find a difference."""
    pytest.importorskip("scipy")
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


@pytest.fixture
def refuse(capsys):
    """What a command says that is refused."""

    def refuse(*arguments):
        with pytest.raises(SystemExit) as stopped:
            paper.main(list(map(str, arguments)))
        assert stopped.value.code == 2
        return capsys.readouterr().err

    return refuse


def test_the_command(folder, tmp_path, capsys, refuse):
    out = tmp_path / "results.json"
    assert paper.main([str(folder), "--models", "DPP,Strudel,EiNet,SimplePGC", "--sets", "gifts", "-o", str(out)]) == 0
    captured = capsys.readouterr()
    assert "amzn_gifts, DPP: test" in captured.err
    header, line = captured.out.splitlines()
    assert header.split()[:3] == ["Amazon", "Baby", "Registries"]
    assert line.split()[:6] == ["gifts", "-3.51", "-3.39", "-3.42", "-3.48", "-3.47"]
    found = json.loads(out.read_text())
    assert [result["model"] for result in found["results"]] == ["DPP", "Strudel", "EiNet", "SimplePGC"]
    compared = {"DPP", "Strudel", "EiNet", "MT", "SimplePGC"} if paper.has_scipy() else set()
    assert set(found["results"][0]["versus"]) == compared
    assert "exists: --force" in refuse(folder, "-o", out)
    assert "no model 'XYZ'" in refuse(folder, "--models", "XYZ")


@pytest.mark.filterwarnings("error")
def test_sets_whose_files_differ(folder, refuse, monkeypatch):
    """It is said, with the file, before the first model is trained."""
    path = folder / "coins" / "coins.test.data"
    with monkeypatch.context() as patch:
        patch.setattr(paper, "run_one", lambda *args, **said: pytest.fail("it has begun"))
        path.write_text("1,0\n")
        assert f"{path} has 2 columns" in refuse(folder, "--models", "DPP")
    path.write_text("")
    with pytest.raises(PgccError, match=f"{path}: rows of 0 and 1"):
        find_sets(folder, ["coins"])[0].part("test")


def test_tables_mark_the_best():
    lines = as_tables(
        [
            Result("dna", "StackedEnsemble", -79.0, -79.5, 1.0, 10, {"DPP": ">"}),
            Result("coins", "StackedEnsemble", -1.0, -1.25, 1.0, 10),
        ]
    ).splitlines()
    assert "-79.50* >" in lines[1]
    assert "-80.82*" not in lines[1]
    assert lines[-1].split() == ["coins", "–", "–", "–", "–", "–", "-1.25*"]


def test_the_picture():
    pytest.importorskip("matplotlib")
    results = [
        {"data": "dna", "model": "StackedEnsemble", "test": -79.5},
        {"data": "dna", "model": "MT", "test": -81.0},
    ]
    ax = paper.picture({"results": results, "published": {"dna": published("dna").columns}})
    gains = {line.get_label(): line.get_xdata()[0] for line in ax.lines if not line.get_label().startswith("_")}
    assert gains["StackedEnsemble"] == pytest.approx(-79.5 + 80.82)
    assert gains["SimplePGC (paper)"] == 0.0


def test_results_that_could_not_be_kept(tmp_path, monkeypatch, refuse):
    monkeypatch.setattr(paper, "find_sets", lambda *args: pytest.fail("it has begun"))
    assert "No such file" in refuse(tmp_path, "-o", tmp_path / "no" / "results.json")
    assert "cannot have the extension '.doc'" in refuse(tmp_path, "--plot", tmp_path / "picture.doc")


def test_other_models_go_on(monkeypatch):
    class Set:
        name = "coins"

        def check(self):
            pass

    def run_one(data, kind, **options):
        if kind != "MT":
            raise PrecisionError(f"{kind} is too large")
        return paper.Result("coins", kind, -1.0, -1.0, 1.0, 1)

    monkeypatch.setattr(paper, "run_one", run_one)
    with pytest.warns(UserWarning, match="coins, DPP failed, and is left out: DPP is too large"):
        assert [result.model for result in paper.run([Set()], ["DPP", "MT"])] == ["MT"]
    with pytest.warns(UserWarning, match="left out"), pytest.raises(PrecisionError, match="DPP is too large"):
        paper.run([Set()], ["DPP"])
