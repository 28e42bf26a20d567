"""`check`: is a circuit a probability distribution? It gives three verdicts, each proved, refuted or not proven."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from pgcc.collector import collector_paused
from pgcc.compiler import Compiled
from pgcc.errors import PgccError, circuit_from, plural
from pgcc.exact.tape import rational_total
from pgcc.ir.circuit import Circuit, over_columns
from pgcc.ir.facts import multiplications
from pgcc.ir.node import Op
from pgcc.kernels.policy import tier
from pgcc.progress import waiting
from pgcc.rings.exact_values import Exact
from pgcc.validity.coefficients import scan_coefficients
from pgcc.validity.proof import TOTAL_TOLERANCE, Proof
from pgcc.validity.proof.exact_arithmetic import can_test, coefficient
from pgcc.validity.provenance import Certificate, prove_nonnegative
from pgcc.validity.report import Report
from pgcc.validity.search import TermSampler, find_negative
from pgcc.validity.states import judge_states
from pgcc.validity.verdict import NOT_PROVEN, PROVED, REFUTED, Verdict, assignment_text, exact_text, short_text

# All coefficients are computed for at most this many variables.
MOST_EXHAUSTIVE = 22
# The total is computed in fractions as long as they are shorter, and determinants no larger, than this.
_MOST_BITS, _MOST_ROWS = 1 << 14, 120
_BALL_RTOL, _MOST_EXPONENT = 1e-13, 1 << 20
# The total of a determinant with a size is not computed to prove it positive if there are more children than this.
_MANY = 40


def check(
    circuit: Circuit, *, time: float = 5.0, tolerance: float = 1e-12, normalize: bool = False, rng: Any = 0
) -> Report:
    """Check that a circuit is a probability distribution: multiaffine, normalized, without negative coefficients.

    Each of the three verdicts is *proved*, *refuted* with a witness, or *not proven*: deciding them in general is
    NP-hard. Exact numbers are judged exactly. If some numbers are floats, the total may be off by 1e-9 and a
    coefficient may be as low as −tolerance·g(1).

    Parameters
    ----------
    circuit : Circuit
        The circuit to check.
    time : float
        Seconds to spend on computing all coefficients (for up to 22 variables), and again on searching for a negative
        one.
    tolerance : float
        See above; it has no effect on circuits without floats.
    normalize : bool
        Judge g / g(1), as `pgcc.compile` would use it: any positive total is then accepted.
    rng : seed or numpy Generator
        The randomness of the search.

    Returns
    -------
    Report

    See Also
    --------
    pgcc.Model.standing : what a model knows about the signs of its probabilities
    pgcc.compile : compile a circuit to a model

    Examples
    --------
    >>> import pgcc
    >>> print(pgcc.check(pgcc.parse("(0.1*(z1 + 1)*(6*z2 + 1) - 0.4*z1*z2) * (0.8*z3 + 0.2)")))
    a distribution: 3 variables, 14 edges
    multiaffine: proved: by structure, no two factors of a product share a variable
    normalized: proved: g(1) = 1
    nonnegative: proved: by the rules of its 12 nodes (see certificate)
    >>> report = pgcc.check(pgcc.parse("1.5*x - 0.5"))
    >>> report.ok, report.witness, report.nonnegative.value
    (False, {'x': 0}, Fraction(-1, 2))
    """
    _check_arguments(circuit, time, tolerance)
    proving = waiting("looking for a proof that it is a distribution")
    with proving, collector_paused(), tier(multiplications(circuit)):
        multiaffine = _judge_multiaffine(circuit)
        total = find_total(circuit)
        nonnegative, certificate = _Nonnegative(circuit, multiaffine, total, float(time), float(tolerance), rng).judge()
    normalized = _judge_total(circuit, total, normalize)
    if normalize and normalized.proved and multiaffine.proved and certificate.proved and _is_long(circuit):
        normalized = replace(normalized, proof=_positive_coefficient(circuit) or normalized.proof)
    shown = total if isinstance(total, Fraction) else total.middle
    how = float(time), rng, float(tolerance), normalize
    return Report(circuit, multiaffine, normalized, nonnegative, shown, certificate, *how, states=judge_states(circuit))


def _check_arguments(circuit: Any, time: Any, tolerance: Any) -> None:
    if not isinstance(circuit, Circuit):
        raise PgccError(f"check takes a Circuit, not {type(circuit).__name__}: {circuit_from(circuit)}")
    if not isinstance(time, (int, float)) or isinstance(time, bool) or not time >= 0:
        raise PgccError(f"time={time!r} is no number of seconds", argument="time")
    if not isinstance(tolerance, (int, float)) or isinstance(tolerance, bool) or not 0 <= tolerance < 1:
        raise PgccError(f"tolerance={tolerance!r} is not between 0 and 1", argument="tolerance")


# -- multiaffine -----------------------------------------------------------------------------------------------------


def _judge_multiaffine(circuit: Circuit) -> Verdict:
    if circuit._overlap is None:
        proof = Proof("multiaffine", True, "structure", circuit)
        return Verdict(PROVED, "by structure, no two factors of a product share a variable", proof=proof)
    compiled = Compiled(circuit, validate=False)
    testable = can_test(circuit, compiled.circuit)
    if compiled.decomposable and testable:
        proof = Proof("multiaffine", True, "structure", compiled.circuit)
        reason = "by structure, after simplification no two factors of a product share a variable"
        return Verdict(PROVED, reason, proof=proof)
    try:
        found = compiled.squares
    except PgccError as error:
        return Verdict(NOT_PROVEN, f"the identity test could not be made ({error})")
    if found.squared:
        name = circuit.variables[found.squared[0]]
        hint = "" if circuit.facts.exact else "; some weights are floats, whose sums do not cancel exactly"
        proof = Proof("multiaffine", False, "square", circuit, {"variable": name})
        return Verdict(REFUTED, f"{name!r} occurs to a power above 1{hint}", name, proof=proof)
    if not testable:
        return Verdict(NOT_PROVEN, "the identity test could not be made (powers are nested too deeply)")
    wrong = f"wrong with probability below {found.chance:.1e}"
    proof = Proof("multiaffine", True, "identity test", circuit)
    return Verdict(PROVED, f"by a randomised identity test modulo random primes ({wrong})", proof=proof)


# -- the total -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Enclosure:
    """g(1) is within `radius` of `middle` and certainly has this `sign` (0: unknown).

    `size` is |g(1)|, which may be outside the range of floats.
    """

    middle: float
    radius: float
    sign: int = 0
    size: Fraction | None = None


def find_total(circuit: Circuit) -> Fraction | Enclosure:
    """g(1), exactly if that is cheap, and otherwise as an enclosure.

    >>> import pgcc
    >>> find_total(pgcc.parse("0.1*x + 0.2"))
    Fraction(3, 10)
    """
    exact = _det_total(circuit) if circuit.facts.dets else rational_total(circuit.order, _MOST_BITS)
    return _enclosed_total(circuit) if exact is None else exact


def _det_total(circuit: Circuit) -> Fraction | None:
    rows = max(node.matrices[0].shape[0] + len(node.inside) for node in circuit.order if node.op is Op.DET)
    if rows > _MOST_ROWS:
        return None
    try:
        return Exact(circuit, homogeneous=False).rational([-1] * len(circuit.variables))
    except PgccError:
        return None


def _enclosed_total(circuit: Circuit) -> Enclosure:
    everything = np.full((1, len(circuit.variables)), -1, np.int8)
    try:
        values = Exact(circuit, homogeneous=False).evaluate(everything, _BALL_RTOL)
    except PgccError:
        return Enclosure(math.nan, math.inf)
    middle = float(values.floats()[0])
    radius = 2 * float(values.bound[0]) * abs(middle) + 1e-300 if math.isfinite(middle) else 0.0
    mantissa, exponent = float(values.mantissa[0]), int(values.exponent[0])
    size = Fraction(abs(mantissa)) * Fraction(2) ** exponent if abs(exponent) <= _MOST_EXPONENT else None
    return Enclosure(middle, radius, int(np.sign(mantissa)), size)


def _judge_total(circuit: Circuit, total: Fraction | Enclosure, normalize: bool) -> Verdict:
    verdict = _judge_positive(total) if normalize else _judge_one(circuit, total)
    exact = {"exact": True, "total": exact_text(total)} if isinstance(total, Fraction) else {"exact": False}
    proof = Proof("normalized", verdict.proved, "total", circuit, exact)
    return verdict if verdict.state == NOT_PROVEN else replace(verdict, proof=proof)


def _judge_one(circuit: Circuit, total: Fraction | Enclosure) -> Verdict:
    tolerance = Fraction(0) if circuit.facts.exact else Fraction(TOTAL_TOLERANCE)
    if isinstance(total, Fraction):
        off = abs(total - 1)
        if off > tolerance:
            divided = "; compile divides by it" if total > 0 else ""
            return Verdict(REFUTED, f"g(1) = {short_text(total)}{divided}", total, total)
        text = "g(1) = 1" if not off else f"g(1) = 1 to {float(off):.1e}; {TOTAL_TOLERANCE:.0e} is tolerated of floats"
        return Verdict(PROVED, text)
    off_most, off_least = abs(total.middle - 1) + total.radius, abs(total.middle - 1) - total.radius
    if off_least > tolerance:
        return Verdict(REFUTED, f"g(1) is about {total.middle:.9g}", total.middle)
    if off_most <= tolerance:
        return Verdict(PROVED, f"g(1) = 1 to {off_most:.1e}; {TOTAL_TOLERANCE:.0e} is tolerated of floats")
    return Verdict(NOT_PROVEN, f"g(1) is 1 to {off_most:.1e}; its fraction is too long to tell")


def _judge_positive(total: Fraction | Enclosure) -> Verdict:
    if isinstance(total, Fraction):
        sign, text = (total > 0) - (total < 0), short_text(total)
    else:
        sign, text = total.sign, f"{total.middle:.9g}"
        if not sign:
            return Verdict(NOT_PROVEN, "it is not known whether g(1) is positive")
    if sign > 0:
        return Verdict(PROVED, "g(1) = 1" if total == 1 else f"after division by g(1) = {text}")
    return Verdict(REFUTED, f"g(1) = {text}: it cannot be divided by", total if isinstance(total, Fraction) else text)


def _is_long(circuit: Circuit) -> bool:
    """Whether a determinant with a size is so large that checking its total takes long."""
    return any(node.op is Op.DET and node.size is not None and sum(node.counted) > _MANY for node in circuit.order)


def _positive_coefficient(circuit: Circuit) -> Proof | None:
    """A proof of g(1) > 0 for a polynomial without negative coefficients, if a few draws find a positive one."""
    draws = TermSampler(circuit, np.random.default_rng(0))
    for _ in range(20):
        row = dict(zip(circuit.variables, draws.draw(greedy=False)[0].tolist(), strict=True))
        if coefficient(circuit, row) > 0:
            return Proof("normalized", True, "positive coefficient", circuit, {"row": row})
    return None


# -- nonnegative -----------------------------------------------------------------------------------------------------


class _Nonnegative:
    """Judge nonnegativity: by provenance, then by all coefficients if there are few enough, then by search."""

    def __init__(
        self, circuit: Circuit, multiaffine: Verdict, total: Fraction | Enclosure,
        seconds: float, tolerance: float, rng: Any,
    ):  # fmt: skip
        self.circuit, self.multiaffine, self.seconds, self.rng = circuit, multiaffine, seconds, rng
        size = abs(total) if isinstance(total, Fraction) else total.size
        exact = circuit.facts.exact or not tolerance
        self.slack = Fraction(0) if exact or size is None else Fraction(tolerance) * size
        self.is_slack_known = exact or size is not None
        self.data = {"tolerated": isinstance(total, Fraction) if self.slack else None}  # whether the total is exact
        self.tolerated = f"; down to -{tolerance:.0e}·g(1) is tolerated of floats" if self.slack else ""

    def judge(self) -> tuple[Verdict, Certificate]:
        """The verdict, and the certificate of what provenance proves."""
        certificate = prove_nonnegative(self.circuit)
        if not certificate.proved:
            simpler = prove_nonnegative(self.circuit.simplify())
            certificate = simpler if simpler.proved and can_test(self.circuit, simpler.circuit) else certificate
        if certificate.proved:
            nodes = len(certificate.circuit.order)
            simplified = "" if certificate.circuit is self.circuit else ", simplified"
            reason = f"by the rules of its {plural(nodes, 'node')}{simplified} (see certificate)"
            return Verdict(PROVED, reason, proof=certificate.proof), certificate
        return self._judge_coefficients(), certificate

    def _judge_coefficients(self) -> Verdict:
        if not self.multiaffine.proved:
            return Verdict(NOT_PROVEN, "no rule proves it, and it is not known to be multiaffine")
        compiled = Compiled(over_columns(self.circuit))
        found = self._scan(compiled) if len(self.circuit.variables) <= MOST_EXHAUSTIVE else None
        return found or self._search(compiled)

    def _scan(self, compiled: Compiled) -> Verdict | None:
        found = scan_coefficients(compiled, self.slack, self.seconds)
        if found.negative is not None:
            return self._refuted(found.negative, compiled.exact.rational(found.negative))
        if found.undecided:
            return None
        few = f" ({found.zeros:,} of them 0 modulo random primes)" if found.zeros else ""
        n = len(self.circuit.variables)
        proof = Proof("nonnegative", True, "all coefficients", self.circuit, self.data)
        return Verdict(PROVED, f"by all {1 << n:,} coefficients{few}{self.tolerated}", proof=proof)

    def _search(self, compiled: Compiled) -> Verdict:
        try:
            found = find_negative(compiled, self.slack, self.seconds, np.random.default_rng(self.rng))
        except PgccError as error:
            return Verdict(NOT_PROVEN, f"no rule proves it, and a search could not be made ({error})")
        if found.row is not None and found.value is not None:
            return self._refuted(found.row, found.value)
        least = f"; the lowest is {short_text(found.smallest)}" if found.smallest is not None else ""
        return Verdict(
            NOT_PROVEN,
            f"no rule proves it, and none of {found.looked_at:,} coefficients is negative{least}{self.tolerated}",
        )

    def _refuted(self, row: list[int], value: Fraction) -> Verdict:
        assignment = dict(zip(self.circuit.variables, row, strict=True))
        text = f"the coefficient of {assignment_text(assignment)} is {short_text(value)}{self.tolerated}"
        if not self.is_slack_known:
            return Verdict(NOT_PROVEN, f"{text}, which is tolerated of floats if the total is large enough")
        data = {**self.data, "row": assignment, "value": exact_text(value)}
        proof = Proof("nonnegative", False, "negative coefficient", self.circuit, data)
        return Verdict(REFUTED, text, assignment, value, proof)
