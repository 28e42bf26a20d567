"""The report of `check`: three verdicts on a circuit, their proofs, and a fourth verdict on negative dependence."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from pgcc.errors import ProofError, plural
from pgcc.ir.circuit import Circuit
from pgcc.locks import cached_property
from pgcc.validity.dependence import judge_dependence
from pgcc.validity.proof import Proof, verify
from pgcc.validity.provenance import Certificate
from pgcc.validity.states import judge_states
from pgcc.validity.verdict import NOT_PROVEN, PROVED, REFUTED, Verdict, exact_text, short_text

# of every circuit; of one whose variables have states, also "states"
CLAIMS = ("multiaffine", "normalized", "nonnegative")


@dataclass(frozen=True, eq=False, repr=False)
class Report:
    """The result of `pgcc.check`; print it to read it.

    Attributes
    ----------
    multiaffine, normalized, nonnegative : Verdict
        The verdicts on three claims: no variable is squared; g(1) = 1; no coefficient is negative.
    states : Verdict or None
        The verdict on a fourth claim: every variable with states is in exactly one. None if no variable has several.
    total : Fraction or float
        The total g(1), as a fraction if it was computed exactly.
    certificate : Certificate
        Which rule, applied at which node, proves that no coefficient is negative. `print` it to read it.

    Examples
    --------
    >>> import pgcc
    >>> report = pgcc.check(pgcc.parse("1.5*x - 0.5"))
    >>> report.ok, report.state, report.witness
    (False, 'refuted', {'x': 0})
    """

    circuit: Circuit
    multiaffine: Verdict
    normalized: Verdict
    nonnegative: Verdict
    total: Fraction | float
    certificate: Certificate
    seconds: float = 5.0
    seed: Any = 0
    tolerance: float = 1e-12
    normalize: bool = False
    states: Verdict | None = None

    @property
    def ok(self) -> bool:
        """Whether all three claims are proved, so that the circuit is a probability distribution."""
        return all(verdict.proved for verdict in self._verdicts.values())

    @property
    def state(self) -> str:
        """``"proved"`` if all three claims are, ``"refuted"`` if one of them is, and ``"not proven"`` otherwise."""
        if any(verdict.refuted for verdict in self._verdicts.values()):
            return REFUTED
        return PROVED if self.ok else NOT_PROVEN

    @property
    def witness(self) -> Any:
        """What refutes it: a set with a negative coefficient, a variable that is squared or has states, the total."""
        verdicts = (self.nonnegative, self.multiaffine, self.states, self.normalized)
        return next((verdict.witness for verdict in verdicts if verdict is not None and verdict.refuted), None)

    @property
    def _verdicts(self) -> dict[str, Verdict]:
        states = {} if self.states is None else {"states": self.states}
        return {name: getattr(self, name) for name in CLAIMS} | states

    @cached_property
    def negative_dependence(self) -> Verdict:
        """The verdict on negative dependence, computed when you first ask for it.

        It is proved if the circuit is strongly Rayleigh by construction, and refuted by a pair of variables that is
        positively correlated, at z = 1 or under some positive weights.
        """
        if not (self.multiaffine.proved and self.nonnegative.proved) or not self.total > 0:
            return Verdict(NOT_PROVEN, "it is not known to be a distribution")
        return judge_dependence(self.circuit, self.seconds, np.random.default_rng(self.seed))

    @property
    def proofs(self) -> list[Proof]:
        """The proofs behind each verdict that is proved or refuted, for `pgcc.validity.proof.verify`."""
        verdicts = [*self._verdicts.values(), self.__dict__.get("negative_dependence")]
        return [verdict.proof for verdict in verdicts if verdict is not None and verdict.proof is not None]

    def verify(self) -> dict[str, bool]:
        """Check every proof and refutation again, from what is written down in it alone.

        Every step is verified over exact numbers. Identity tests are repeated with fresh random numbers.

        Returns
        -------
        dict
            For each claim, True if it is proved and False if it is refuted. Claims that are not proven are left out.

        Raises
        ------
        ProofError
            If a proof does not show its verdict.

        Examples
        --------
        >>> import pgcc
        >>> pgcc.check(pgcc.parse("1.5*x - 0.5")).verify()
        {'multiaffine': True, 'normalized': True, 'nonnegative': False}
        """
        found = verify(self.circuit, self.proofs, tolerance=self.tolerance, normalize=self.normalize)
        verdicts = dict(self._verdicts)
        again = None if verdicts.pop("states", None) is None else judge_states(self.circuit)
        if again is not None and self.states is not None and again.state != NOT_PROVEN:
            found["states"] = again.proved
            if again.state != self.states.state:
                raise ProofError(f"states is {self.states.state}, but that is not what a second test shows")
        if "negative_dependence" in self.__dict__:
            verdicts["negative_dependence"] = self.negative_dependence
        for name, verdict in verdicts.items():
            told = None if verdict.state == NOT_PROVEN else verdict.proved
            if found.get(name) is not told or not _is_witness(verdict):
                raise ProofError(f"{name} is {verdict.state}, but that is not what its proof shows")
        return found

    def as_dict(self) -> dict[str, Any]:
        """The report as plain data, for JSON."""
        verdicts = {name: verdict.as_dict() for name, verdict in self._verdicts.items()}
        return {"state": self.state, "ok": self.ok, **verdicts}

    def _repr_html_(self) -> str:
        """What notebooks show: the verdicts, with a witness for each refutation."""
        from pgcc.draw.html import report_html

        return report_html(self)

    def __repr__(self) -> str:
        return f"<Report: {str(self).splitlines()[0]}>"

    @property
    def headline(self) -> str:
        """What it is, in a few words. A total other than 1 is no defect: `compile` divides by it."""
        verdicts = [verdict for name, verdict in self._verdicts.items() if name != "normalized"]
        total = short_text(self.total) if isinstance(self.total, Fraction) else f"{self.total:.6g}"
        factor = f", up to the factor {total}" if self.normalized.refuted else ""
        if any(verdict.refuted for verdict in verdicts) or not self.total > 0:
            return "not a distribution"
        if all(verdict.proved for verdict in verdicts) and self.normalized.state != NOT_PROVEN:
            return f"a distribution{factor}"
        return f"not proven to be a distribution{factor}"

    def __str__(self) -> str:
        n, size = len(self.circuit.domains or self.circuit.variables), self.circuit.edges
        lines = [f"{self.headline}: {plural(n, 'variable')}, {plural(size, 'edge')}"]
        lines += [f"{name}: {verdict}" for name, verdict in self._verdicts.items()]
        return "\n".join(lines)


def _is_witness(verdict: Verdict) -> bool:
    """Whether the witness of a verdict is the one in its proof."""
    if not verdict.refuted or verdict.proof is None:
        return not verdict.refuted
    data = verdict.proof.data
    match verdict.proof.rule:
        case "square":
            return bool(verdict.witness == data["variable"])
        case "negative coefficient":
            return bool(verdict.witness == data["row"] and exact_text(verdict.value) == data["value"])
        case "correlated pair":
            same = all(verdict.witness.get("point", {}).get(name, "1") == w for name, w in data["point"].items())
            return bool(
                same and verdict.witness["pair"] == data["pair"] and exact_text(verdict.value) == data["excess"]
            )
        case "total":
            return not data["exact"] or bool(exact_text(verdict.witness) == data["total"])
    return False
