"""Proofs for determinants taken apart at points: Σ_j w_j·D(s_j) = Σ_d (Σ_j w_j·s_j^d)·[s^d] D.

`Circuit.observe(size=k)` writes a part of a determinant so where no size says it (see `passes.sizes`). If every child
of D(s) is Σ_m s^m·f_m with nonnegative f_m, and D has nonnegative coefficients as a polynomial in its children, so has
every [s^d] D; and the combination is nonnegative if Σ_j w_j·s_j^d is, for every degree d.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from pgcc.ir.circuit import Circuit
from pgcc.ir.node import Node, Op
from pgcc.ir.numbers import Number
from pgcc.passes.sizes import counting_points

# 1: no coefficient is negative; −1: none is positive; 0: all are 0; None: not proven.
Sign = int | None


def sign_of_combination(
    circuit: Circuit, i: int, signs: Sequence[Sign], rule_of: Callable[[Node], list[Any] | None]
) -> tuple[Sign, Any]:
    """The common sign of the coefficients of node i, if it is such a combination, and the rule for D; or (None, None).

    signs : of the nodes before it. rule_of : why a determinant has nonnegative coefficients in its children, or None.
    """
    node, links = circuit.order[i], circuit._links
    dets = [circuit.order[c] for c in links[i]] if node.op is Op.SUM else []
    if len(dets) < 2 or any(d.op is not Op.DET or d.data != dets[0].data for d in dets):
        return None, None
    points, half, degrees = counting_points(len(dets)), len(dets[0].inside), list[int]()
    for p in range(2 * half):
        degree = _degree_of_child(circuit, [links[c][p] for c in links[i]], points, signs)
        if degree is None:
            return None, None
        degrees.append(degree)
    rule = rule_of(dets[0])
    most = sum(map(max, degrees[:half], degrees[half:]))
    sign = _common_sign(node.weights, points, most) if rule is not None else None
    return (sign, rule) if sign is not None else (None, None)


def _degree_of_child(
    circuit: Circuit, at_points: Sequence[int], points: Sequence[int], signs: Sequence[Sign]
) -> int | None:
    """The degree m of Σ_m s^m·f_m, nonnegative f_m, if that is what these nodes are at the points."""
    if len({*at_points}) == 1:
        return 0 if signs[at_points[0]] in (0, 1) else None
    forms = [_form(circuit, c) for c in at_points]
    if any(form.keys() != forms[0].keys() for form in forms):
        return None
    degree = 0
    for part in forms[0]:
        power = _power([form[part] for form in forms], points)
        if power is None or signs[part] not in (0, 1):
            return None
        degree = max(degree, power)
    return degree


def _form(circuit: Circuit, c: int) -> dict[int, Fraction]:
    """A node as a combination of others, by position; the weights of one that occurs twice add up."""
    node, form = circuit.order[c], dict[int, Fraction]()
    if node.op is not Op.SUM:
        return {c: Fraction(1)}
    for w, part in zip(node.weights, circuit._links[c], strict=True):
        form[part] = form.get(part, Fraction(0)) + Fraction(w)
    return form


def _power(weights: Sequence[Fraction], points: Sequence[int]) -> int | None:
    """m, if weights are a·points^m with a > 0. (The first two points are 1 and 2.)"""
    a, ratio = weights[0], weights[1] / weights[0] if weights[0] > 0 else Fraction(0)
    power = ratio.numerator.bit_length() - 1
    fits = ratio > 0 and all(w == a * s**power for w, s in zip(weights, points, strict=True))
    return power if fits else None


def _common_sign(weights: Sequence[Number], points: Sequence[int], most: int) -> Sign:
    """Of Σ_j w_j·s_j^d for d = 0 … most: 1 or −1, 0 if all are 0, None if there are both."""
    terms, found = [Fraction(w) for w in weights], set[int]()
    for _ in range(most + 1):
        total = sum(terms)
        found.add((total > 0) - (total < 0))
        terms = [x * s for x, s in zip(terms, points, strict=True)]
    found.discard(0)
    return None if len(found) > 1 else found.pop() if found else 0
