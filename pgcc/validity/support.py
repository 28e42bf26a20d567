"""How improbable can an assignment be? A lower bound on all coefficients of a circuit, if none can be 0."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np

from pgcc.compiler import Compiled
from pgcc.ir.circuit import Circuit
from pgcc.ir.facts import is_monotone
from pgcc.ir.node import Node, Op, var
from pgcc.ir.numbers import UNIT, log_of
from pgcc.program.det_structure import DetStructure

# The most terms of a sum to examine, counted again for every variable by which they are split.
_MOST_TERMS = 20_000


def least_log_coefficient(compiled: Compiled) -> float:
    """The logarithm of a lower bound on all coefficients; −inf if none is known, or if a coefficient may be 0.

    The bound is computed node by node in the homogenized circuit, for all assignments of a node's variables, provided
    that no part can be negative. A product of factors without common variables is at least the product of their bounds.
    A sum is at least any of its terms; if some of its terms have the factor z and others the factor z̄, then for either
    value of z it is at least those that are not 0.

    Examples
    --------
    >>> import pgcc
    >>> from pgcc.compiler import Compiled
    >>> round(math.exp(least_log_coefficient(Compiled(pgcc.parse("(0.1*a + 0.9)*(0.2*b + 0.8)")))), 6)
    0.02
    >>> least_log_coefficient(Compiled(pgcc.parse("0.5*a*b + 0.5")))
    -inf
    """
    if not compiled.decomposable:
        return -math.inf
    circuit = compiled.homogenized
    if not all(DetStructure.of(node).nonnegative if node.op is Op.DET else is_monotone(node) for node in circuit.order):
        return -math.inf  # a sum with negative terms is not at least each of its terms
    least: list[float] = []
    for i, node in enumerate(circuit.order):
        below = [least[c] for c in circuit._links[i]]
        match node.op:
            case Op.CONST:
                least.append(log_of(node.value))
            case Op.VAR:
                least.append(-math.inf)
            case Op.PRODUCT:
                least.append(sum(below))
            case Op.SUM:
                least.append(_of_sum(circuit, i, least))
            case Op.DET:
                least.append(_of_kernel(node))
            case _:
                raise AssertionError(f"no rule for {node.op}")
    bound = least[-1]
    return bound - 1e-9 * (1.0 + abs(bound)) if math.isfinite(bound) else -math.inf  # for rounding here


Literal = tuple[str, bool]  # a variable, and whether it is the complement
Term = tuple[float, frozenset[Literal]]  # the logarithm of a lower bound on it where these literals are 1


def _of_sum(circuit: Circuit, i: int, least: list[float]) -> float:
    terms: list[Term] = []
    for weight, child in zip(circuit.order[i].weights, circuit._links[i], strict=True):
        factors = circuit._links[child] if circuit.order[child].op is Op.PRODUCT else (child,)
        nodes = [circuit.order[factor] for factor in factors]
        literals = frozenset((node.name, node.is_complement) for node in nodes if node.op is Op.VAR)
        rest = sum(least[factor] for factor, node in zip(factors, nodes, strict=True) if node.op is not Op.VAR)
        if rest > -math.inf and weight:
            terms.append((log_of(weight) + rest, literals))
    return _of_terms(terms, [_MOST_TERMS])


def _of_terms(terms: list[Term], room: list[int]) -> float:
    """The least sum of terms over all values of their literals; room : the number of terms that may still be used."""
    room[0] -= len(terms)
    whole = float(np.logaddexp.reduce([log for log, literals in terms if not literals] or [-math.inf]))
    count = Counter(literal for _, literals in terms for literal in literals)
    both = [name for name, complement in count if not complement and (name, True) in count]
    if not both or room[0] < 0:
        return whole
    name = max(both, key=lambda name: count[name, False] + count[name, True])
    sides = (
        [(log, literals - {(name, out)}) for log, literals in terms if (name, not out) not in literals]
        for out in (False, True)
    )
    return max(whole, min(_of_terms(side, room) for side in sides))


def _of_kernel(node: Node) -> float:
    """det(I + diag(z)·L) of variables: a minor of a symmetric L is at least λ^k, where λ > 0 is below its spectrum."""
    structure = DetStructure.of(node)
    k = len(node.inside)
    pairs = zip(node.inside, node.outside, strict=True)
    plain = all(f.op is Op.VAR and not f.is_complement and y is var(f.name, complement=True) for f, y in pairs)
    if not plain or node.size is not None or not (structure.identity_u and structure.identity_m0):
        return -math.inf
    L = structure.floats[2]
    if not all(structure.doubles) or not np.array_equal(L, L.T) or not np.isfinite(L).all():
        return -math.inf
    spectrum = np.linalg.eigvalsh(L)
    low = float(spectrum[0]) - 8 * k * k * UNIT * float(np.abs(spectrum).max(initial=0.0))
    return k * min(0.0, math.log(low)) if low > 0.0 else -math.inf
