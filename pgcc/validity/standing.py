"""What `compile` knows about the signs of a circuit's coefficients: proved nonnegative, refused, or undecided.

It spends no more on this than on compiling. No coefficient of a circuit without negative numbers can be negative. Other
circuits are given to the rules of `check`. If none of these proves them, all coefficients are computed if they are few,
and otherwise a short search looks for a negative one. The search is limited by the number of operations and not by
time, so the same circuit always has the same outcome. The prover is imported only when a circuit needs it.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from pgcc.compiler import Compiled
from pgcc.errors import PgccError, SemanticsError
from pgcc.ir.circuit import Circuit
from pgcc.ir.facts import is_monotone
from pgcc.ir.node import Op
from pgcc.rings.values import Values

# `compile` tries rules up to this many nodes and exact multiplications (the cubes of the rows of determinants).
_MOST_NODES, _MOST_EXACT = 5_000, 50_000
# The most multiplications to spend on all coefficients, or on a search for a negative one.
_MOST_SCANNED, _MOST_SEARCHED = 1 << 24, 1 << 24
# The number of coefficients that a search looks at.
_MOST_ROWS = 50_000
# Floats are judged with a tolerance relative to the total, as in `check`.
_TOLERANCE = Fraction(1, 10**12)
_MOST_EXPONENT = 1 << 14
_NO_CLOCK = float("inf")


@dataclass(frozen=True)
class Standing:
    """Whether it is proved that no coefficient of a model is negative, and how; or what was tried.

    Attributes
    ----------
    proved : bool
        Whether it is proved.
    reason : str
        By what it is proved, or what was tried.
    exactly : bool
        Whether the proof needed no tolerance. In a circuit with floats, a coefficient that is negative by 1e-12 of the
        total is tolerated, yet it may be all there is of some conditional distribution. So if this is False, every
        answer is checked, and every conditional distribution is judged afresh.

    Examples
    --------
    >>> import pgcc
    >>> standing = pgcc.compile(pgcc.parse("0.4*a*b + 0.6")).standing
    >>> standing.proved, standing.reason
    (True, 'there are no negative numbers')
    """

    proved: bool
    reason: str
    exactly: bool = True

    @property
    def certain(self) -> bool:
        """Whether it is proved, without any tolerance, that no coefficient is negative."""
        return self.proved and self.exactly

    def __str__(self) -> str:
        return f"{'proved' if self.proved else 'not proven'}: {self.reason}"


MONOTONE = Standing(True, "there are no negative numbers")
BY_KERNELS = Standing(True, "by its determinants, whose matrices are such that none of their minors is negative")
LESS_A_CONSTANT = Standing(True, "no number is negative but a constant, which the terms without variables exceed")
BY_RULES = Standing(True, "by the rules of pgcc.check")
CONDITIONED = Standing(True, "it is a part of a distribution that was proved")
RAW = Standing(False, "it is taken as the polynomial that it is (normalize=False)")
NOT_ASKED = Standing(False, "it was not tested (validate=False)")


def find_standing(circuit: Circuit, compiled: Compiled, total: Values) -> Standing:
    """What is known about a circuit with this total. It is refused, with a witness, if a negative coefficient is found.

    Examples
    --------
    >>> import pgcc
    >>> model = pgcc.compile(pgcc.parse("(a + 1)*(b + 1) - 0.5*a*b"))
    >>> print(model.standing)
    proved: by the rules of pgcc.check
    """
    known = by_signs(compiled)
    if known is not None:
        return known
    if not compiled.validate:
        return NOT_ASKED
    if _is_small(compiled.circuit) and follows_from_rules(circuit, compiled):
        return BY_RULES
    slack = _slack(compiled.circuit, total)
    if slack is None:
        return Standing(False, "its total is too large or too small a number to search for negative coefficients")
    return _by_coefficients(compiled, slack)


def follows_from_rules(circuit: Circuit, compiled: Compiled) -> bool:
    """Whether the rules of `check` prove the circuit nonnegative, as it was written or after simplification."""
    from pgcc.validity.provenance import prove_nonnegative

    return prove_nonnegative(circuit).proved or prove_nonnegative(compiled.circuit).proved


def by_signs(compiled: Compiled) -> Standing | None:
    """Whether no number is negative, except in determinants that are known to have no negative minors."""
    if compiled.decomposable:  # then it has been lowered to compute the total
        program = compiled.program
        if not (program.signed or program.has_det):
            return MONOTONE
        structures = program.structures
        if all(one.nonnegative for one in structures) and _exceed_the_constant(compiled):
            return LESS_A_CONSTANT
    elif compiled.circuit.facts.dets:
        return None
    else:
        structures = []
    if not all(node.op is Op.DET or is_monotone(node) for node in compiled.circuit.order):
        return None
    if all(structure.nonnegative for structure in structures):
        return BY_KERNELS if structures else MONOTONE
    return None


def _exceed_the_constant(compiled: Compiled) -> bool:
    """Whether only a constant term of the root is negative, and the coefficient of the empty set is still positive."""
    flat = compiled.circuit._flat
    if flat.op[-1] != Op.SUM:
        return False
    below, terms = np.split(flat.doubles > 0.0, [-flat.lengths[-1]])  # of what underflows, nothing is known
    constants = flat.op[flat.child[-flat.lengths[-1] :]] == Op.CONST
    numbers = [number for i, number in flat.data.items() if flat.op[i] == Op.CONST]
    if terms.all() or not (below.all() and (terms | constants).all() and all(number >= 0 for number in numbers)):
        return False
    value, error = compiled.float64.absolute_errors(np.zeros((1, len(compiled.circuit.variables)), np.int8))
    return bool(value[0] > error[0])


def _is_small(circuit: Circuit) -> bool:
    return len(circuit.order) <= _MOST_NODES and sum(_cubes(circuit)) <= _MOST_EXACT


def _cubes(circuit: Circuit) -> list[int]:
    return [(node.matrices[0].shape[0] + len(node.inside)) ** 3 for node in circuit.order if node.op is Op.DET]


def _slack(circuit: Circuit, total: Values) -> Fraction | None:
    """How far below 0 a coefficient of a circuit with floats may be; None if the total is not a finite float."""
    if circuit.facts.exact:
        return Fraction(0)
    exponent = int(total.exponent[0])
    if abs(exponent) > _MOST_EXPONENT:
        return None
    return _TOLERANCE * Fraction(float(total.mantissa[0])) * Fraction(2) ** exponent


def _by_coefficients(compiled: Compiled, slack: Fraction) -> Standing:
    from pgcc.validity.coefficients import scan_coefficients
    from pgcc.validity.search import find_negative

    n, row = len(compiled.circuit.variables), compiled.circuit.edges + sum(_cubes(compiled.circuit)) + 1
    try:
        if row << n <= _MOST_SCANNED:
            scan = scan_coefficients(compiled, slack, _NO_CLOCK)
            if scan.negative is not None:
                raise _refusal(compiled, scan.negative)
            if not scan.undecided:
                tolerated = f", to {float(_TOLERANCE):.0e} of the total, which is tolerated of floats" if slack else ""
                return Standing(True, f"by all {1 << n:,} coefficients{tolerated}", exactly=not slack)
        rows = min(_MOST_ROWS, _MOST_SEARCHED // (row + n))
        found = find_negative(compiled, slack, _NO_CLOCK, np.random.default_rng(0), rows) if rows else None
    except SemanticsError:
        raise
    except PgccError as error:  # what can be computed with any effort may still be too much for a search
        return Standing(False, f"no rule proves it, and a search could not be made ({error})")
    if found is not None and found.row is not None:
        raise _refusal(compiled, found.row)
    looked = f"none of {found.looked_at:,} coefficients is negative" if found else "it is too large for a search"
    return Standing(False, f"no rule was found to prove it, and {looked}; pgcc.check looks further")


def _refusal(compiled: Compiled, row: list[int]) -> SemanticsError:
    from pgcc.validity.verdict import assignment_text, short_text

    value = short_text(compiled.exact.rational(row))
    where = assignment_text(dict(zip(compiled.circuit.variables, row, strict=True)))
    return SemanticsError(
        f"not a distribution: the coefficient of {where} is {value}, below 0",
        advice="normalize=False gives values of the polynomial as it is (prob, logprob), and nothing else",
    )
