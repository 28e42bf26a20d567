"""Random circuits with what `pgcc.check` should say of them, by slow and exact means that share nothing with it."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

import pgcc
from pgcc.ir.circuit import Circuit
from pgcc.ir.interpret import evaluate
from pgcc.ir.node import ONE, product, var, weighted_sum
from pgcc.testing import brute_force, random_circuit, random_det


def check(circuit: Circuit, **options: Any) -> Any:
    """`pgcc.check`, whose every verdict is verified by the checker of proofs."""
    report = pgcc.check(circuit, **options)
    states = {name: getattr(report, name).state for name in ("multiaffine", "normalized", "nonnegative")}
    settled = {name: state == "proved" for name, state in states.items() if state != "not proven"}
    assert report.verify() == settled
    return report


class Powers:
    """A polynomial with all its monomials: {((name, power), …): coefficient}."""

    def __init__(self, terms: dict[Any, Fraction]):
        self.terms = {m: x for m, x in terms.items() if x}

    @staticmethod
    def lift(value: Fraction) -> Powers:
        return Powers({frozenset(): value})

    def __add__(self, other: Powers) -> Powers:
        keys = {*self.terms, *other.terms}
        return Powers({m: self.terms.get(m, Fraction(0)) + other.terms.get(m, Fraction(0)) for m in keys})

    def __mul__(self, other: Powers) -> Powers:
        out: dict[Any, Fraction] = {}
        for m, x in self.terms.items():
            for n, y in other.terms.items():
                powers = dict(m)
                for name, power in n:
                    powers[name] = powers.get(name, 0) + power
                key = frozenset(powers.items())
                out[key] = out.get(key, Fraction(0)) + x * y
        return Powers(out)


def expand(circuit: Circuit) -> dict[Any, Fraction]:
    """Every monomial with its coefficient."""
    values = {name: Powers({frozenset({(name, 1)}): Fraction(1)}) for name in circuit.variables}
    return evaluate(circuit, values, Powers.lift).terms


def random_case(seed: int, most: int = 10) -> Circuit:
    """One of many kinds of circuits; about half of them are no distributions."""
    rng = np.random.default_rng(seed)
    n, kind, exact = int(rng.integers(1, most + 1)), seed % 8, bool(rng.integers(3))
    size = int(rng.integers(1, 25))
    match kind:
        case 0:
            return random_circuit(rng, n, size, negative=False, exact=exact)
        case 1:
            return random_circuit(rng, n, size, decomposable=False, negative=False)
        case 2:
            return random_circuit(rng, n, size, decomposable=False)
        case 3:
            return random_det(rng, min(n, 4), exact=exact, decomposable=bool(rng.integers(2)))
        case 4:
            return squared(rng, min(n, 4))
        case 5:
            return perturbed(rng, n, size, exact)
        case 6:
            return nearly(rng, min(n, 7))
    return random_circuit(rng, n, size, exact=exact)


def squared(rng: np.random.Generator, n: int) -> Circuit:
    """A product of two circuits over the same variables: it has squares, but for constants."""
    a, b = (random_circuit(rng, n, 2, negative=bool(rng.integers(2))) for _ in range(2))
    return a * b if rng.integers(2) else a * b - a * b + a


def perturbed(rng: np.random.Generator, n: int, size: int, exact: bool) -> Circuit:
    """A distribution, and a little of a monomial less, shared out so that the total stays 1."""
    g = random_circuit(rng, n, size, negative=False, exact=exact)
    monomial = product([var(name) for name in g.variables if rng.integers(2)] or [ONE])
    weight = Fraction(1, int(rng.integers(2, 2000)))
    return Circuit(weighted_sum([1 + weight, -weight], [g.root, monomial]), g.variables)


def nearly(rng: np.random.Generator, n: int) -> Circuit:
    """A distribution minus exactly its smallest coefficient, or a tiny bit more: the last place to be wrong."""
    g = random_circuit(rng, n, 8, negative=False)
    chosen, least = min(brute_force(g).items(), key=lambda item: (item[1] == 0, item[1]))
    extra = Fraction(int(rng.integers(2)), 10**18)
    monomial = product([var(name) for name in g.variables if name in chosen] or [ONE])
    return Circuit(weighted_sum([1, -least - extra], [g.root, monomial]), g.variables)


def truth(circuit: Circuit, seed: int) -> dict[str, bool]:
    """What is so, with the tolerances that `check` states."""
    exact = circuit.facts.exact
    if seed % 8 == 4:
        terms = expand(circuit)
        multiaffine = all(power == 1 for m in terms for _, power in m)
        coefficients = list(terms.values())
    else:
        coefficients, multiaffine = list(brute_force(circuit).values()), True
    total = sum(coefficients, Fraction(0))
    slack = Fraction(0) if exact else Fraction(1e-12) * abs(total)
    off = Fraction(0) if exact else Fraction(1e-9)
    return {
        "multiaffine": multiaffine,
        "normalized": abs(total - 1) <= off,
        "nonnegative": min(coefficients, default=Fraction(0)) >= -slack,
    }


def witness_holds(circuit: Circuit, report: Any) -> bool:
    """Whether the witness of a negative coefficient is one, by the interpreter."""
    verdict = report.nonnegative
    return not verdict.refuted or pgcc.testing.oracle_probability(circuit, verdict.witness) == verdict.value < 0


def invalid_mixture(seed: int, n: int | None = None, exact: bool = True) -> tuple[Circuit, dict[str, int]]:
    """Σ w_i·Π_j (p_ij·z_j + 1 − p_ij) with negative weights, total 1, and an assignment where it is negative.

    The negative weights are just large enough for that, up to a factor below 2. For odd seeds the others all but agree,
    so that the polynomial is negative near the planted assignment and hardly anywhere else.
    """
    rng = np.random.default_rng(seed)
    n = int(rng.integers(12, 41)) if n is None else n
    names = [f"z{i}" for i in range(1, n + 1)]
    positives, negatives = int(rng.integers(2, 8)), int(rng.integers(1, 3))
    probs = rng.integers(10, 91, size=(positives + negatives, n))
    target = rng.integers(0, 2, size=n)
    needle = seed % 2 == 1
    if needle:
        probs[:] = np.clip(probs[-1] + rng.integers(-2, 3, size=probs.shape), 10, 90)
    for i in range(negatives):
        base = probs[negatives + rng.integers(positives)]
        pull = rng.integers(5, 10, size=n) if needle else rng.integers(0, 15, size=n) * (rng.random(n) < 0.7)
        probs[i] = np.clip(base + np.where(target, pull, -pull), 2, 98)
    chances = [[Fraction(int(p), 100) for p in row] for row in probs]
    at_target = [math.prod(p if x else 1 - p for p, x in zip(row, target, strict=True)) for row in chances]
    share = [Fraction(int(w)) for w in rng.integers(5, 100, size=positives)]
    above = sum(w * x for w, x in zip(share, at_target[negatives:], strict=True))
    excess = 1 + Fraction(int(rng.integers(1, 20 if needle else 100)), 100)
    below = [-excess * above / (negatives * x) for x in at_target[:negatives]]
    below = [w.limit_denominator(10**6) - Fraction(1, 10**6) for w in below]
    total = sum(below) + sum(share)
    if total <= 0:
        return invalid_mixture(seed + 1_000_003, n, exact)
    weights = [w / total if exact else float(w / total) for w in (*below, *share)]
    leaf = [[_bernoulli(name, int(p), exact) for name, p in zip(names, row, strict=True)] for row in probs]
    root = weighted_sum(weights, [product(row) for row in leaf])
    return Circuit(root, names), dict(zip(names, target.tolist(), strict=True))


def _bernoulli(name: str, percent: int, exact: bool) -> Any:
    p, q = (Fraction(percent, 100), Fraction(100 - percent, 100)) if exact else (percent / 100, 1 - percent / 100)
    return weighted_sum([p, q], [var(name), ONE])
