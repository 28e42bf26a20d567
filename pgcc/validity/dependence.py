"""Negative dependence: proved by provenance (strongly Rayleigh), refuted by a pair, or neither.

g is strongly Rayleigh iff for all pairs and all real points  g·∂ij g ≤ ∂i g·∂j g. At a positive point that is: under
the distribution with weights Π z_i, the two are not positively correlated.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np

from pgcc.compiler import Compiled
from pgcc.errors import PgccError
from pgcc.ir.circuit import Circuit, over_columns
from pgcc.validity.proof import Proof
from pgcc.validity.stability import prove_stable
from pgcc.validity.verdict import NOT_PROVEN, PROVED, REFUTED, Verdict, exact_text, short_text

# Pairs are evaluated for circuits of up to this size, to this accuracy, at up to this many points.
MOST_VARIABLES, MOST_EDGES = 60, 50_000
_RTOL, _MOST_POINTS = 1e-6, 100


def judge_dependence(circuit: Circuit, seconds: float, rng: np.random.Generator) -> Verdict:
    """The verdict on a multiaffine polynomial without negative coefficients.

    The witness of a refutation is a dict with the ``pair`` and, unless all weights are 1, the ``point``; its value is
    the exact excess g·∂ij g − ∂i g·∂j g there.
    """
    proof = prove_stable(circuit) or prove_stable(circuit.simplify())
    if proof is not None:
        reason = "strongly Rayleigh, by the way it is built: all kinds of negative dependence"
        return Verdict(PROVED, reason, proof=proof)
    n = len(circuit.variables)
    if n > MOST_VARIABLES or circuit.edges > MOST_EDGES:
        return Verdict(NOT_PROVEN, f"pairs are only examined up to {MOST_VARIABLES} variables and {MOST_EDGES:,} edges")
    end, points = time.monotonic() + seconds, 0
    try:
        while points == 0 or (time.monotonic() < end and points < _MOST_POINTS):
            point = _point(circuit, points, rng)
            if (found := _violation(circuit.tilt(point), point)) is not None:
                return replace(found, proof=_refutation(circuit, found, point))
            points += 1
    except PgccError as error:
        return Verdict(NOT_PROVEN, f"the pairs could not be evaluated ({error})")
    pairs = n * (n - 1) // 2
    return Verdict(
        NOT_PROVEN,
        f"no pair of {pairs:,} is positively correlated, nor at {points - 1} random positive points (Rayleigh)",
    )


def _refutation(circuit: Circuit, verdict: Verdict, point: Mapping[str, Fraction]) -> Proof:
    weights = {name: str(w) for name, w in point.items()}
    data = {"pair": verdict.witness["pair"], "point": weights, "excess": exact_text(verdict.value)}
    return Proof("negative_dependence", False, "correlated pair", circuit, data)


def _point(circuit: Circuit, index: int, rng: np.random.Generator) -> dict[str, Fraction]:
    """First all ones, then powers of 2, of ever wider ranges."""
    width = (0, 2, 4, 8)[min(index, 1 + index % 3)]
    exponents = rng.integers(-width, width + 1, size=len(circuit.variables)).tolist()
    return {name: Fraction(2) ** e for name, e in zip(circuit.variables, exponents, strict=True)}


def _violation(circuit: Circuit, point: dict[str, Fraction]) -> Verdict | None:
    n = len(circuit.variables)
    if n < 2:
        return None
    compiled = Compiled(over_columns(circuit))
    pairs = list(combinations(range(n), 2))
    sets = [(), *((i,) for i in range(n)), *pairs]
    rows = np.full((len(sets), n), -1, np.int8)
    for row, chosen in zip(rows, sets, strict=True):
        row[list(chosen)] = 1
    values = compiled.values(rows, _RTOL)
    numbers = values.floats()
    total, single, double = numbers[0], numbers[1 : n + 1], numbers[n + 1 :]
    i, j = np.array(pairs).T
    excess = total * double - single[i] * single[j]
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = np.where(excess > 0.0, excess / (total * double), 0.0)
    k = int(relative.argmax())
    if not relative[k] > 10 * _RTOL:
        return None
    return _verified(compiled, pairs[k], point)


def _verified(compiled: Compiled, pair: tuple[int, int], point: dict[str, Fraction]) -> Verdict | None:
    n = len(compiled.circuit.variables)

    def exact(chosen: tuple[int, ...]) -> Fraction:
        return compiled.exact.rational([1 if i in chosen else -1 for i in range(n)])

    i, j = pair
    total, both, one, other = exact(()), exact(pair), exact((i,)), exact((j,))
    excess = total * both - one * other
    if not excess > 0:
        return None
    names = [compiled.circuit.variables[k] for k in pair]
    plain = all(w == 1 for w in point.values())
    witness: dict[str, object] = {"pair": tuple(names)}
    if plain:
        text = f"Pr({names[0]}, {names[1]}) = {short_text(both / total)} is more than Pr({names[0]})·Pr({names[1]}) = "
        return Verdict(REFUTED, text + short_text(one * other / total**2), witness, excess)
    witness["point"] = {name: str(w) for name, w in point.items()}
    return Verdict(
        REFUTED,
        f"{names[0]} and {names[1]} are positively correlated under the weights of the witness (Rayleigh condition)",
        witness,
        excess,
    )
