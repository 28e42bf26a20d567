"""Imputer: what is filled in agrees with what the model says of it, and nothing else is changed."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import sklearn
from sklearn import pipeline

from pgcc.errors import EvidenceError, PgccError
from pgcc.learn import ChowLiu, Imputer, MixtureOfTrees
from pgcc.learn.imputer import STRATEGIES

NAN = np.nan


def rows(n=200, seed=0):
    """Three columns: the second goes with the first, the third has one of both."""
    rng = np.random.default_rng(seed)
    a = rng.random(n) < 0.3
    b = a ^ (rng.random(n) < 0.1)
    return np.stack([a, b, a ^ b], axis=1).astype(float)


GAPS = np.array([[1, NAN, NAN], [NAN, 0, NAN], [0, 1, 1], [NAN, NAN, NAN], [1, NAN, NAN]])


@pytest.fixture(scope="module")
def fitted():
    return Imputer(MixtureOfTrees(2)).fit(rows())


def by_hand(imputer, row):
    """The probability of every completion of a row."""
    found = {}
    for values in product((0, 1), repeat=3):
        if all(np.isnan(known) or known == value for known, value in zip(row, values, strict=True)):
            found[values] = float(np.exp(imputer.estimator_.score_samples([values])[0]))
    total = sum(found.values())
    return {values: p / total for values, p in found.items()}


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_what_is_known_stays(fitted, strategy):
    filled = fitted.set_params(strategy=strategy, random_state=0).transform(GAPS)
    known = ~np.isnan(GAPS)
    assert (filled[known] == GAPS[known]).all()
    assert not np.isnan(filled).any()
    assert (fitted.transform(GAPS) == filled).all()
    assert strategy == "mean" or set(np.unique(filled)) <= {0, 1}


def test_values_by_hand(fitted):
    filled = {strategy: fitted.set_params(strategy=strategy, random_state=0).transform(GAPS) for strategy in STRATEGIES}
    for i, row in enumerate(GAPS):
        possible = by_hand(fitted, row)
        means = sum(p * np.array(values) for values, p in possible.items())
        np.testing.assert_allclose(filled["mean"][i], means, rtol=1e-9)
        assert (filled["most_frequent"][i] == (means >= 0.5)).all()
        assert possible[tuple(filled["mode"][i].astype(int))] == pytest.approx(max(possible.values()), rel=1e-9)
        assert tuple(filled["sample"][i].astype(int)) in possible


def test_samples_have_the_distribution(fitted):
    drawn = fitted.set_params(strategy="sample", random_state=1).transform(np.repeat(GAPS[1:2], 4000, axis=0))
    for values, p in by_hand(fitted, GAPS[1]).items():
        assert (drawn == values).all(axis=1).mean() == pytest.approx(p, abs=0.03)


def test_kinds_of_data(fitted):
    fitted.set_params(strategy="most_frequent")
    whole = np.array([[1, -1, 0], [-1, 0, 1]])
    filled = fitted.transform(whole)
    assert filled.dtype == whole.dtype
    for kind in (np.float32, np.int8):
        assert fitted.transform(whole.astype(kind)).dtype == kind
    assert fitted.transform(whole.tolist()).dtype == np.float64
    assert (fitted.transform([[1, None, 0], [None, 0, 1]]) == filled).all()
    assert fitted.set_params(strategy="mean").transform(whole).dtype == np.float64
    assert (Imputer(ChowLiu()).fit_transform(rows()) == rows()).all()


def test_output_is_what_is_asked_for(fitted):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(GAPS, columns=["a", "b", "c"], index=list("vwxyz"))
    imputer = Imputer(ChowLiu()).fit(frame)
    assert imputer.get_feature_names_out().tolist() == ["a", "b", "c"] == imputer.feature_names_in_.tolist()
    assert isinstance(imputer.transform(frame), np.ndarray)
    table = imputer.set_output(transform="pandas").transform(frame)
    assert list(table.columns) == ["a", "b", "c"]
    assert list(table.index) == list("vwxyz")
    assert (imputer.set_output().set_output(transform="default").transform(frame) == table.to_numpy()).all()
    with sklearn.config_context(transform_output="pandas"):
        assert list(fitted.transform(GAPS).columns) == ["x0", "x1", "x2"]
        assert isinstance(imputer.transform(frame), np.ndarray)  # what was said of it goes before
    assert fitted.get_feature_names_out(["p", "q", "r"]).tolist() == ["p", "q", "r"]
    with pytest.raises(ValueError, match="is not equal to feature_names_in_"):
        imputer.get_feature_names_out(["a", "b", "d"])


def test_a_pipeline_of_data_frames():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(GAPS, columns=["a", "b", "c"])
    pipe = pipeline.make_pipeline(Imputer(ChowLiu()), ChowLiu()).set_output(transform="pandas").fit(frame)
    assert pipe[-1].feature_names_in_.tolist() == ["a", "b", "c"]
    assert np.isfinite(pipe.score(frame))


def test_options_of_fit_go_to_the_model(tmp_path):
    imputer = Imputer(MixtureOfTrees(2, max_iter=2)).fit(rows(), validation=rows(20, 1), checkpoint=tmp_path / "run")
    assert (tmp_path / "run").exists()
    assert imputer.estimator_.circuit_ == MixtureOfTrees(2, max_iter=2).fit(rows(), validation=rows(20, 1)).circuit_
    assert not hasattr(imputer.estimator, "circuit_")  # a copy was fitted


def test_refusals():
    with pytest.raises(PgccError, match="strategy='median': choose one of 'most_frequent'"):
        Imputer(strategy="median").fit(rows())
    with pytest.raises(PgccError, match="takes an estimator"):
        Imputer("trees").fit(rows())
    with pytest.raises(PgccError, match="random_state='dice'"):
        Imputer(ChowLiu(), strategy="sample", random_state="dice").fit_transform(GAPS)
    with pytest.raises(PgccError, match="call fit first"):
        Imputer().transform(GAPS)
    with pytest.raises(EvidenceError, match=r"X has 2 features, but .* is expecting 3"):
        Imputer(ChowLiu()).fit(rows()).transform(GAPS[:, :2])
