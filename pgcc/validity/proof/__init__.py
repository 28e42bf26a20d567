"""The proof checker: the code you have to trust in order to trust a verdict of `pgcc.check`.

It takes a circuit and the proof that the prover wrote down, and verifies every step over exact numbers: rationals
(flint); balls with a proven radius where rationals become too long; intervals of doubles, rounded outwards, for tables
of more than 2¹³ coefficients; and, where a proof rests on the equality of two polynomials, residues modulo a fresh
random prime of more than 128 bits. It uses nothing of the prover; all it uses of pgcc is the circuit and its numbers.
The prover, for its part, has no rules for nodes of its own: it proposes steps, and these rules take them or do not.

This module has the claims and the rules that prove or refute them (`CLAIMS`), `exact_arithmetic` what they compute
with, `coefficient_tables` all coefficients at once, `steps` the rules for nodes (`RULES`), and `determinants` those for
matrices (`DET_RULES`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from flint import fmpq

from pgcc.errors import ProofError
from pgcc.ir.circuit import Circuit
from pgcc.ir.numbers import nearest_float
from pgcc.validity.proof.coefficient_tables import Interval, all_coefficients, as_fraction, as_object
from pgcc.validity.proof.exact_arithmetic import (
    RATIONALS,
    coefficient,
    evaluate,
    has_square,
    is_affine,
    lift_exact,
    same_polynomial,
    scopes_of,
    total,
)
from pgcc.validity.proof.steps import follow

TOTAL_TOLERANCE = 1e-9  # how far from 1 the total of a circuit with float weights may be
_EXACT_TABLE = 13  # variables, up to which tables of coefficients are rationals
_PRECISIONS = (256, 1024, 4096, 16384)  # bits of balls


class Proof(NamedTuple):
    """A proof or refutation of one claim, as plain data about a circuit.

    Attributes
    ----------
    claim : str
        ``"multiaffine"``, ``"normalized"``, ``"nonnegative"`` or ``"negative_dependence"``.
    holds : bool
        True if this proves the claim, False if it refutes it.
    rule : str
        A key of `CLAIMS[claim, holds]`.
    circuit : Circuit
        The circuit that the steps are about: the given one, or another circuit of the same polynomial.
    data : dict
        The data that the rule needs. Steps are tuples (position of a node in `circuit.order`, rule, sign, witness).

    Examples
    --------
    >>> import pgcc
    >>> proof = pgcc.check(pgcc.parse("0.4*a + 0.6")).nonnegative.proof
    >>> proof.claim, proof.holds, proof.rule
    ('nonnegative', True, 'steps')
    """

    claim: str
    holds: bool
    rule: str
    circuit: Circuit
    data: dict[str, Any] = {}  # noqa: RUF012 - never written to


def verify(
    circuit: Circuit, proofs: Iterable[Proof], *, tolerance: float = 1e-12, normalize: bool = False
) -> dict[str, bool]:
    """Check proofs about a circuit, and return what they prove (True) or refute (False) for each claim.

    Parameters
    ----------
    circuit : Circuit
        The circuit that was given to `pgcc.check`.
    proofs : iterable of Proof
        One proof per claim. Those of `nonnegative` and `negative_dependence` may need that of `multiaffine`.
    tolerance, normalize
        As in `pgcc.check`: they define what the claims mean.

    Raises
    ------
    ProofError
        If a step does not hold.

    Examples
    --------
    >>> import pgcc
    >>> from pgcc.validity.proof import verify
    >>> g = pgcc.parse("0.5*x + 0.5")
    >>> verify(g, pgcc.check(g).proofs)
    {'multiaffine': True, 'normalized': True, 'nonnegative': True}
    """
    case = _Case(circuit, Fraction(tolerance), normalize)
    order = ("multiaffine", "nonnegative", "normalized", "negative_dependence")
    given = {proof.claim: proof for proof in proofs}
    for claim in sorted(given, key=lambda name: order.index(name) if name in order else -1):
        proof = given[claim]
        try:
            rules = CLAIMS.get((claim, proof.holds), {})
            if proof.rule not in rules:
                raise ProofError(f"there is no rule {proof.rule!r} by which {claim} could be {_said(proof.holds)}")
            holds = rules[proof.rule](case, proof._replace(circuit=_anew(proof.circuit, circuit)))
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise ProofError(f"the proof that {claim} is {_said(proof.holds)} is damaged ({error!r})") from error
        if not holds:
            raise ProofError(f"{claim} is not {_said(proof.holds)} by {proof.rule}: what it says does not hold")
        case.known[claim] = bool(proof.holds)
    return {claim: case.known[claim] for claim in given}


def _anew(other: Circuit, given: Circuit) -> Circuit:
    """The circuit of a proof: the given one if they are equal, and otherwise rebuilt from its root.

    (Cached attributes such as its order and links cannot be trusted.)"""
    return given if other == given else Circuit(other.root, other.variables)


def _said(holds: bool) -> str:
    return "proved" if holds else "refuted"


@dataclass
class _Case:
    """The circuit, the tolerance, and the claims that are decided so far."""

    circuit: Circuit
    tolerance: Fraction
    normalize: bool
    known: dict[str, bool] = field(default_factory=dict)

    def slacks(self, is_exact: bool) -> Iterator[Any]:
        """How far below 0 a coefficient may be: tolerance·|g(1)| if some numbers are floats; exactly, or in balls."""
        if self.circuit.facts.exact or not self.tolerance:
            return iter([fmpq(0)])
        return (lift_exact(self.tolerance) * abs(found) for found in self.totals(is_exact))

    def totals(self, is_exact: bool) -> Iterator[Any]:
        """g(1), exactly or in ever smaller balls."""
        return (total(self.circuit, bits) for bits in ((0,) if is_exact else _PRECISIONS))


# -- claims ----------------------------------------------------------------------------------------------------------


def _decomposable(case: _Case, proof: Proof) -> bool:
    """No two factors of a product share a variable."""
    return scopes_of(proof.circuit)[1] == 0 and same_polynomial(case.circuit, proof.circuit)


def _identity_test(case: _Case, proof: Proof) -> bool:
    """Only variables that two factors share can be squared, and these are not, except with probability about 2⁻¹²⁰."""
    shared = scopes_of(case.circuit)[1]
    return is_affine(case.circuit, [name for i, name in enumerate(case.circuit.variables) if shared >> i & 1])


def _square(case: _Case, proof: Proof) -> bool:
    """A second difference that is nonzero modulo a prime is nonzero."""
    return has_square(case.circuit, [proof.data["variable"]])


def _total_is(case: _Case, proof: Proof) -> bool:
    """g(1) = 1, up to 1e-9 if some numbers are floats, or with `normalize` g(1) > 0; of a refutation, the opposite.

    Of a ball neither may be certain.
    """
    tolerance = _tolerated(case.circuit)

    def is_so(found: Any) -> Any:
        if case.normalize:
            return found > 0 if proof.holds else found <= 0
        return abs(found - 1) <= tolerance if proof.holds else abs(found - 1) > tolerance

    return any(is_so(found) and _agrees(found, proof) for found in case.totals(proof.data["exact"]))


def _tolerated(circuit: Circuit) -> fmpq:
    return fmpq(0) if circuit.facts.exact else lift_exact(TOTAL_TOLERANCE)


def _agrees(found: Any, proof: Proof) -> bool:
    """If the proof states the total exactly, then it is the total that was found."""
    return not proof.data["exact"] or found == lift_exact(proof.data["total"])


def _positive_coefficient(case: _Case, proof: Proof) -> bool:
    """g(1) > 0 if one coefficient is positive and none is negative."""
    fine = case.normalize and case.known.get("multiaffine") and case.known.get("nonnegative without tolerance")
    return bool(fine and coefficient(case.circuit, proof.data["row"]) > 0)


def _by_steps(case: _Case, proof: Proof) -> bool:
    """Every step follows from those before it, and the last node is the root."""
    walk = follow(proof.circuit, proof.data["steps"])
    proved = walk.signs.get(len(proof.circuit.order) - 1) in (0, 1) and same_polynomial(case.circuit, proof.circuit)
    case.known["nonnegative without tolerance"] = proved
    return proved


def _stable_by_steps(case: _Case, proof: Proof) -> bool:
    """A stable multiaffine polynomial without negative coefficients is strongly Rayleigh (Borcea, Brändén, Liggett)."""
    fine = case.known.get("multiaffine") and case.known.get("nonnegative")
    stable = len(proof.circuit.order) - 1 in follow(proof.circuit, proof.data["steps"]).stable
    return bool(fine and stable and same_polynomial(case.circuit, proof.circuit))


def _all_coefficients(case: _Case, proof: Proof) -> bool:
    """None of the 2ⁿ coefficients is below −slack."""
    if not case.known.get("multiaffine"):
        return False
    circuit, n = case.circuit, len(case.circuit.variables)
    tolerated = proof.data["tolerated"]
    slack = fmpq(0) if tolerated is None else next(case.slacks(tolerated))
    doubtful = 1 << n
    if n > _EXACT_TABLE:
        floor = -math.nextafter(nearest_float(as_fraction(slack)), 0.0) if isinstance(slack, fmpq) else math.nan
        low = all_coefficients(circuit, Interval.lift).low
        rows = np.argwhere(~(low >= floor))
        doubtful = len(rows)
    if doubtful > 1 << _EXACT_TABLE or n <= _EXACT_TABLE:
        return bool(all(x >= -slack for x in all_coefficients(circuit, as_object).ravel()))
    names = circuit.variables
    return all(coefficient(circuit, dict(zip(names, map(int, row), strict=True))) >= -slack for row in rows)


def _negative_coefficient(case: _Case, proof: Proof) -> bool:
    """One coefficient is below −slack, and is the one that the proof names."""
    found = coefficient(case.circuit, proof.data["row"])
    fine = case.known.get("multiaffine") and found == lift_exact(proof.data["value"])
    return bool(fine and any(found < -slack for slack in case.slacks(proof.data["tolerated"])))


def _correlated_pair(case: _Case, proof: Proof) -> bool:
    """g·∂ij g > ∂i g·∂j g at a positive point, times z_i·z_j; derivatives of a multiaffine g are differences."""
    circuit, (i, j) = case.circuit, proof.data["pair"]
    point = {name: lift_exact(proof.data["point"].get(name, 1)) for name in circuit.variables}
    if not case.known.get("multiaffine") or i == j or not {i, j} <= set(point) or min(point.values()) <= 0:
        return False
    both, no_i, no_j, none = (
        evaluate(circuit, {**point, **dict.fromkeys(zeros, fmpq(0))}, RATIONALS) for zeros in ((), (i,), (j,), (i, j))
    )
    excess = both * (both - no_i - no_j + none) - (both - no_i) * (both - no_j)
    return bool(excess > 0 and excess == lift_exact(proof.data["excess"]))


CLAIMS: dict[tuple[str, bool], dict[str, Callable[[_Case, Proof], bool]]] = {
    ("multiaffine", True): {"structure": _decomposable, "identity test": _identity_test},
    ("multiaffine", False): {"square": _square},
    ("normalized", True): {"total": _total_is, "positive coefficient": _positive_coefficient},
    ("normalized", False): {"total": _total_is},
    ("nonnegative", True): {"steps": _by_steps, "all coefficients": _all_coefficients},
    ("nonnegative", False): {"negative coefficient": _negative_coefficient},
    ("negative_dependence", True): {"steps": _stable_by_steps},
    ("negative_dependence", False): {"correlated pair": _correlated_pair},
}
