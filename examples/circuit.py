"""A probabilistic circuit by hand, its structure, and the log-likelihood of data; then one that was learned."""

import os
from pathlib import Path

import numpy as np

import pgcc
from pgcc import pc

# Flu brings fever and cough. Without flu nothing is said about the cough: it is 0.4 with one and 0.4 without.
flu = 0.2 * pc.pos("flu") * pc.bernoulli("fever", 0.9) * pc.bernoulli("cough", 0.8)
well = 0.4 * pc.neg("flu") * pc.bernoulli("fever", 0.05)
model = flu + well

print(model.structure())
print(model.smoothing)

compiled = pgcc.compile(model.to_pgc())
seen = {"cough": 1}
print("Pr(fever | cough) =", round(compiled.prob({"fever": 1, **seen}) / compiled.prob(seen), 4))

rows = np.array([[1, 1, 1], [0, 0, -1], [-1, -1, 1]])  # flu, fever, cough; -1 is unobserved
print("log-likelihoods:", compiled.logprob(rows).round(4))

# A circuit that others learned from data on 16 disabilities of the elderly, and the people it has not seen.
data = Path(os.environ.get("PGCC_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
if data.is_dir():
    nltcs = pgcc.compile(pgcc.load(data / "circuits" / "nltcs.psdd"))
    people = np.loadtxt(data / "sets" / "nltcs" / "nltcs.test.data", delimiter=",", dtype=np.int8)
    average = nltcs.logprob(people, threads=-1).mean()
    print(f"nltcs: average log-likelihood {average:.10f} over {len(people):,} rows")
