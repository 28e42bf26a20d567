"""Classifier: a classifier of scikit-learn, whose probabilities are those of the joint model."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import is_classifier
from sklearn.model_selection import cross_val_score
from sklearn.utils.estimator_checks import check_estimator

from pgcc.errors import EvidenceError, PgccError
from pgcc.learn import ChowLiu, Classifier, MixtureOfTrees, load, save


def rows(count=300, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, count)
    X = (rng.random((count, 6)) < 0.15 + 0.7 * (np.arange(6) % 3 == y[:, None])).astype(int)
    return X, y


def test_check_estimator():
    failed = [
        (one["check_name"], one["exception"])
        for one in check_estimator(Classifier(ChowLiu(binarize=0.0)), on_skip=None, on_fail=None)
        if one["status"] not in ("passed", "skipped")
    ]
    assert failed == []


@pytest.mark.parametrize("labels", [["sun", "rain", "snow"], [3, 7, 5], [0.5, -1.0, 2.0], [True, False, True]])
def test_probabilities_of_labels_are_those_of_the_joint_model(labels):
    X, y = rows()
    y = np.array(labels)[y] if labels[0] != 0.5 else np.array(["a", "b", "c"])[y]
    X = np.where(np.random.default_rng(1).random(X.shape) < 0.2, -1, X)
    model = Classifier(MixtureOfTrees(2, max_iter=5)).fit(X, y)
    assert is_classifier(model)
    assert model.classes_.tolist() == sorted(set(y.tolist()))
    found = model.predict_proba(X[:20])
    assert found.sum(axis=1) == pytest.approx(1)
    joint = model.estimator_.model_
    for row, each in zip(X[:20].tolist(), found, strict=True):
        given = {f"x{i + 1}": x for i, x in enumerate(row) if x >= 0}
        states = joint.states["y"]
        exact = [joint.prob({"y": state, **given}) for state in states]
        assert each == pytest.approx(np.array(exact) / sum(exact), rel=1e-9)
    assert (model.predict(X) == model.classes_[model.predict_proba(X).argmax(axis=1)]).all()
    assert model.score(X, y) > 0.6


def test_cross_validation_measures_accuracy():
    X, y = rows()
    assert cross_val_score(Classifier(ChowLiu()), X, y, cv=3).mean() > 0.7


def test_tables_of_labels_and_their_names():
    pd = pytest.importorskip("pandas")
    X, y = rows()
    frame = pd.DataFrame({"colour": np.array(["red", "green", "blue"])[(y + X[:, 0]) % 3], "b": X[:, 1]})
    model = Classifier(ChowLiu()).fit(frame, pd.Series(y, name="kind"), sample_weight=np.ones(len(y)))
    assert model.label_ == "kind"
    assert list(model.estimator_.model_.states) == ["colour", "b", "kind"]
    assert (model.predict(frame[["b", "colour"]]) == model.predict(frame)).all()
    assert model.feature_names_in_.tolist() == ["colour", "b"]
    assert Classifier(ChowLiu()).fit(frame, pd.Series(y, name="b")).label_ == "b'"


def test_it_is_saved(tmp_path):
    X, y = rows()
    for labels in (y, np.array(["a", "b", "c"])[y]):
        model = Classifier(ChowLiu()).fit(X, labels)
        save(model, tmp_path / "model.npz")
        again = load(tmp_path / "model.npz")
        assert (again.predict(X) == model.predict(X)).all()


def test_what_cannot_be_classified():
    X, y = rows()
    for wrong, told in ((None, "requires y"), (y[:5], "5 labels"), (np.zeros(len(y), int), "one class only")):
        with pytest.raises(EvidenceError, match=told):
            Classifier(ChowLiu()).fit(X, wrong)
    with pytest.raises(PgccError, match="takes an estimator of"):
        Classifier("trees").fit(X, y)
    with pytest.raises(PgccError, match="call fit first"):
        Classifier().predict(X)
    with pytest.raises(EvidenceError, match="expecting 6 features"):
        Classifier(ChowLiu()).fit(X, y).predict(X[:, :5])
