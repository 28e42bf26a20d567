"""One learned distribution as a classifier of any column, beside classifiers of scikit-learn made for that column."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from threadpoolctl import threadpool_limits

from benchmarks.common import DATA, Table
from pgcc.learn import StackedEnsemble

# Data sets, with the columns to predict: spread over the columns, so as not to choose by their names or answers.
SETS = {"nltcs": (2, 6, 10, 14), "jester": (10, 35, 60, 85)}
# The share of entries that are missing, in training and in test data.
MISSING = (0.0, 0.3)
# Seconds for one ensemble, which predicts all columns.
BUDGET = float(os.environ.get("PGCC_BENCHMARK_BUDGET", "15"))
KINDS = ("ensemble", "logistic", "boosting")


def run() -> Iterator[Table]:
    table = Table(
        f"classifiers: log-loss (and accuracy) of test rows, one column given the others; {BUDGET:g} s an ensemble",
        ["set", "column", "missing", *(f"{kind} {what}" for what in ("log-loss", "accuracy") for kind in KINDS)],
    )
    table.notes += [
        "ensemble: one StackedEnsemble a set, conditional_proba for each column. logistic: LogisticRegression of the",
        "indicators of 0, of 1 and of missing. boosting: HistGradientBoostingClassifier, early stopping, its own gaps.",
    ]
    for name, columns in SETS.items():
        paths = [DATA / "sets" / name / f"{name}.{part}.data" for part in ("train", "valid", "test")]
        if not all(path.exists() for path in paths):
            table.notes.append(f"skipped {name}: no {paths[0]} (set PGCC_DATA)")
            continue
        parts = [np.loadtxt(path, delimiter=",", dtype=np.int8) for path in paths]
        for missing in MISSING:
            rng = np.random.default_rng(0)
            train, valid, test = (np.where(rng.random(part.shape) < missing, np.nan, part) for part in parts)
            with threadpool_limits(1):
                ensemble = StackedEnsemble(budget=BUDGET, verbose=False).fit(train, validation=valid)
                for column in columns:
                    truth = parts[2][:, column]
                    answers = [ensemble.conditional_proba(test, column)[:, 1]]
                    answers += _discriminative(np.vstack([train, valid]), test, column)
                    losses = [float(log_loss(truth, p)) for p in answers]
                    right = [float(accuracy_score(truth, p > 0.5)) for p in answers]
                    table.add(name, column, missing, *losses, *right)
    yield table


def _discriminative(train: np.ndarray, test: np.ndarray, column: int) -> list[np.ndarray]:
    """Pr(column = 1 | the other columns) by classifiers that learn from the rows whose label is known."""
    known = ~np.isnan(train[:, column])
    inputs, labels, asked = np.delete(train[known], column, 1), train[known, column], np.delete(test, column, 1)
    encoder = OneHotEncoder(categories=[np.array([0, 1, np.nan])] * inputs.shape[1])
    made: list[Callable[[], object]] = [
        lambda: make_pipeline(encoder, LogisticRegression(max_iter=1000)),
        lambda: HistGradientBoostingClassifier(early_stopping=True, random_state=0),
    ]
    return [make().fit(inputs, labels).predict_proba(asked)[:, 1] for make in made]  # type: ignore[attr-defined]
