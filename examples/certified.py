"""Right, or it says so: a circuit in which nearly everything cancels.

A product x·y can be written ((x + y)² − (x − y)²)/4. Written so at every level of a tree, a product of 64 factors
cancels numbers that are many orders of magnitude larger than what is left of them.
"""

import math
from fractions import Fraction

import pgcc


def multiply(x: pgcc.Circuit, y: pgcc.Circuit) -> pgcc.Circuit:
    """x·y as a difference of squares."""
    return ((x + y) ** 2 - (x - y) ** 2) / 4


def tree(factors: list[pgcc.Circuit]) -> pgcc.Circuit:
    """Their product, as a balanced tree."""
    while len(factors) > 1:
        factors = [multiply(*factors[i : i + 2]) for i in range(0, len(factors), 2)]
    return factors[0]


n = 64
chances = [Fraction(i + 1, n + 1) for i in range(n)]
zs = pgcc.variables([f"z{i}" for i in range(n)])
model = pgcc.compile(tree([p * z + (1 - p) for p, z in zip(chances, zs, strict=True)]))

evidence = {f"z{i}": i % 2 for i in range(n)}
truth = math.prod(p if i % 2 else 1 - p for i, p in enumerate(chances))

# One strategy, taken at its word, here the paper's (FFT products): float64 is lost, and the bound says so.
value, bound = model.prob(evidence, method="fft", bound=True)
print(f"float64 alone: {value:.6e}, relative error at most {bound:.1e}, in truth {abs(value / truth - 1):.1e}")

# Left to itself, pgcc sees that bound and recomputes with more bits.
value, bound = model.prob(evidence, bound=True)
print(f"certified:     {value:.6e}, relative error at most {bound:.1e}, in truth {abs(value / truth - 1):.1e}")

assert model.prob(evidence, exact=True) == truth
print("exact:         equal to the product of fractions")
