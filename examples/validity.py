"""Is it a distribution? Proved, refuted with a witness, or not proven.

Run with `python examples/validity.py`.
"""

from fractions import Fraction

import pgcc

# Signed, and a distribution all the same (equation 3 of the paper).
print(pgcc.check(pgcc.parse("(0.1*(z1 + 1)*(6*z2 + 1) - 0.4*z1*z2) * (0.8*z3 + 0.2)")))

# A mixture with a negative weight, over 30 variables: 2^30 coefficients, of which few are negative.
weights = {Fraction(11, 10): Fraction(1, 2), Fraction(-1, 10): Fraction(3, 5)}
mixture = 0
for weight, p in weights.items():
    part = weight
    for name in pgcc.variables([f"x{i}" for i in range(30)]):
        part = (p * name + (1 - p)) * part
    mixture = part + mixture
report = pgcc.check(mixture)
print("\nnonnegative:", report.nonnegative.state)
print("as the model says:", pgcc.compile(mixture, normalize=False).prob(report.witness, exact=True) < 0)

# What is built from sound parts is proved by the way it is built, at any size.
kernel = pgcc.dpp(L=[[2, 1, 0], [1, 2, 1], [0, 1, 2]], names=["a", "b", "c"])
report = pgcc.check(kernel * pgcc.parse("0.3*d + 0.7"), normalize=True)
print("\n" + str(report))
print("negative dependence:", report.negative_dependence)
print(report.certificate)
