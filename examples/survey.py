"""From a CSV of labels to a model: its questions, its gaps, its pictures, and scikit-learn's classifiers beside it.

The survey is made up: 4,000 people say where they live, how long they travel to work, tick at most three of eight ways
to do so, and are content or not; one answer in twelve is missing. `python survey.py 60` learns for 60 seconds.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import pgcc
from pgcc.learn import ChowLiu, Imputer, MixtureOfTrees, StackedEnsemble

WAYS = ["walk", "bicycle", "bus", "tram", "train", "car", "lift", "scooter"]
# What people who live in a city, a suburb, a village, and those who work at night think of each.
LIKED = [
    [2.0, 1.5, 1.0, 2.0, -1.0, -2.0, -2.0, 0.5],
    [-0.5, 1.5, 0.5, -1.0, 2.0, 0.0, -0.5, -0.5],
    [-1.0, -0.5, 0.5, -3.0, -0.5, 2.5, 1.0, -2.0],
    [-1.0, 0.0, -2.0, -1.0, -2.0, 2.0, 2.0, 0.5],
]


def survey(people, rng):
    """The answers of so many people, a row each."""
    kind = rng.integers(0, 4, people)
    liking = np.array(LIKED)[kind] + rng.logistic(size=(people, len(WAYS)))
    ticks = (liking > 0.8) & (liking >= np.sort(liking, axis=1)[:, -3:-2])  # the best three at most
    homes = np.where(kind < 3, kind, rng.integers(0, 3, people))
    bicycle, bus, train, car = ticks[:, [1, 2, 4, 5]].T
    minutes = 15 + 15 * (homes > 0) + 10 * bus + 15 * train + rng.normal(0, 8, people)
    glad = 3.5 + 2 * bicycle - 3 * (car & (homes == 0)) - 0.1 * minutes + rng.logistic(size=people)
    table = pd.DataFrame(ticks.astype(int), columns=WAYS)
    table.insert(0, "home", np.array(["city", "suburb", "village"])[homes])
    table.insert(1, "minutes", np.array(["0-15", "15-30", "30-45", "45+"])[np.digitize(minutes, [15, 30, 45])])
    table["content"] = np.where(glad > 0, "yes", "no")
    return table.mask(rng.random(table.shape) < 1 / 12)


def told(numbers):
    return ", ".join(f"{state} {p:.3f}" for state, p in numbers.items())


rng = np.random.default_rng(7)
folder = Path(tempfile.mkdtemp(prefix="survey-"))
survey(4000, rng).to_csv(folder / "survey.csv", index=False)

# The table, as pandas reads it: labels, ticks (0 and 1) and gaps.
table = pd.read_csv(folder / "survey.csv")
train, test = table[:3000], table[3000:]
print(train.head(3).to_string(index=False))

# A model, within so many seconds. How likely does it find rows that it has not seen?
budget = float(sys.argv[1]) if len(sys.argv) > 1 else 5
learner = StackedEnsemble(budget=budget, random_state=0).fit(train)
print(learner.summary())
shares = {name: train[name].value_counts(normalize=True) for name in table}
alone = sum(np.log(test[name].dropna().map(shares[name])).sum() for name in table) / len(test)
print(f"log-likelihood of a test row: columns alone {alone:.3f}", end=", ")
print(f"a Chow-Liu tree {ChowLiu().fit(train).score(test):.3f}, the ensemble {learner.score(test):.3f}")

# Questions: any evidence, any variable, one model.
model = learner.model_
print("content, in the city by car:", told(model.marginals("home=city, car=1")["content"]))
print("home, long way by train:", told(model.marginals({"train": 1, "minutes": {"30-45", "45+"}})["home"]))
print(f"neither bus nor tram nor train: {model.prob(dict.fromkeys(['bus', 'tram', 'train'], 0)):.3f}")
for home in ("city", "village"):
    print(f"ticks, {home}:", *model.cardinality({"home": home}, over=WAYS)[:5].round(3))
print("the most probable answers of a city cyclist:", model.mode("home=city, bicycle=1"))
print("mutual information with content:", told({n: model.mutual_information("content", n) for n in ("minutes", "car")}))

# Gaps: hide a tenth of the ticks that are known, and fill them in.
complete = test[WAYS].dropna()
hidden = rng.random(complete.shape) < 0.1
filled = {
    "each column's own": SimpleImputer(strategy="most_frequent").fit(train[WAYS]),
    "given the other answers": Imputer(MixtureOfTrees(8)).fit(train[WAYS]),
}
for name, imputer in filled.items():
    right = np.asarray(imputer.transform(complete.mask(hidden)))[hidden] == complete.to_numpy()[hidden]
    print(f"gaps filled, {name}: {right.mean():.1%} right")

# One of many questions is a classifier's. Those of scikit-learn are made for it alone.
others = [name for name in table if name != "content"]
labelled, asked = train.dropna(subset="content"), test.dropna(subset="content")
halves = asked.copy()
halves[others] = halves[others].mask(rng.random((len(asked), len(others))) < 0.5)
encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)  # a gap is one more label
classifiers = {
    "logistic regression": make_pipeline(encoder, LogisticRegression()),
    "gradient boosting": make_pipeline(encoder, HistGradientBoostingClassifier(early_stopping=True, random_state=0)),
}
answers = {"the ensemble": lambda rows: learner.conditional_proba(rows, "content")}
for name, classifier in classifiers.items():
    answers[name] = classifier.fit(labelled[others], labelled["content"])
    answers[name] = lambda rows, by=classifier: by.predict_proba(rows[others])
for name, answer in answers.items():
    cells = []
    for rows in (asked, halves):
        p = answer(rows)
        accuracy = accuracy_score(rows["content"], np.array(["no", "yes"])[p.argmax(axis=1)])
        cells.append(f"log-loss {log_loss(rows['content'], p):.3f}, accuracy {accuracy:.3f}")
    print(f"{name}: {cells[0]}; half of the answers missing: {cells[1]}")

# The model as a file, a page to click in, and pictures.
pgcc.learn.save(learner, folder / "survey.npz")
model.explore(title="A way to work").save(folder / "survey.html")
pgcc.plot.save(pgcc.plot.learning_curve(learner), folder / "learning.svg")
pgcc.plot.save(pgcc.plot.covariance(model), folder / "covariance.svg")
pgcc.plot.save(pgcc.plot.marginals(model, "home=city"), folder / "city.svg")
print("written:", *sorted(path.name for path in folder.iterdir()))
print(f'next: pgcc marginals {folder / "survey.npz"} "home=city, content=yes"')
