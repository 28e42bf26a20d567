"""Is every variable with states in exactly one? By structure, or by a randomised identity test."""

from __future__ import annotations

from pgcc.compiler import Compiled
from pgcc.ir.blocks import has_one_state
from pgcc.ir.circuit import Circuit
from pgcc.rings.identity import find_mixed
from pgcc.rings.residues import MOST_CHANCE
from pgcc.validity.verdict import NOT_PROVEN, PROVED, REFUTED, Verdict, short_text


def judge_states(circuit: Circuit) -> Verdict | None:
    """The verdict on the claim that every term has one column of each variable with states; None if none has several.

    >>> import pgcc
    >>> text = '"w=a"/2 + "w=b"/4 + "w=c"/8 + 1/8'
    >>> print(judge_states(pgcc.parse(text).with_states({"w": "abc"})))
    refuted: 'w' is in none of its states with the coefficients 1/8 in all
    """
    domains = circuit.domains
    if domains is None or not domains.unit:
        return None
    if has_one_state(circuit):
        return Verdict(PROVED, "by structure, every term has exactly one state of each variable")
    compiled = Compiled(circuit, validate=False)
    name, chance = find_mixed(circuit, compiled.lowered[0])
    if name is not None:
        columns = domains[name].columns
        none = compiled.exact.rational([0 if column in columns else -1 for column in circuit.variables])
        several = f"a term has several states of {name!r}, or none"
        reason = f"{name!r} is in none of its states with the coefficients {short_text(none)} in all"
        return Verdict(REFUTED, reason if none else several, name)
    if chance > MOST_CHANCE:
        return Verdict(NOT_PROVEN, "the identity test could not be made (powers are nested too deeply)")
    wrong = f"wrong with probability below {chance:.1e}"
    return Verdict(PROVED, f"by a randomised identity test modulo random primes ({wrong})")
