"""From a polynomial to probabilities: the running example of the paper, in one minute."""

from pathlib import Path

import numpy as np

import pgcc

# A distribution over binary variables is a polynomial: the coefficient of z2*z3 is Pr(z1 = 0, z2 = 1, z3 = 1).
circuit = pgcc.load(Path(__file__).with_name("beta.pgc"))
print("the circuit:", circuit)

model = pgcc.compile(circuit)
print("Pr(z2 = 0, z3 = 0) =", round(model.prob({"z2": 0, "z3": 0}), 12))
print("exactly:", model.prob({"z2": 0, "z3": 0}, exact=True))

# Many rows at once: 1 is in, 0 is out, -1 is unobserved.
rows = np.array([[0, 1, 1], [-1, 0, 0], [-1, -1, -1]])
print("three rows:", model.prob(rows).round(12))

# Circuits are built with Python operators, too.
rain, sprinkler = pgcc.variables("rain sprinkler")
wet = pgcc.compile(2 * rain * sprinkler + 3 * rain + 4 * sprinkler + 1)  # not normalised: divided by 10
print("Pr(rain = 1) =", wet.prob({"rain": 1}))

print(model.explain())
