"""Strongly Rayleigh: proofs by the way a circuit is built, and as what was made of a stable polynomial.

Stable: no zeros where all variables have positive imaginary parts. The rules of `STABLE`, which are those of the
checker, go from the children of a node to the node. A node that none of them is about may still be an *image* of a
stable polynomial h: the part of one size, or of two consecutive ones, or what swapping in and out makes of either. Such
an h is looked for among products of coins and determinants (`_unsized`); the checker verifies that the node is its
image, however that was written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any

from flint import fmpq

from pgcc.errors import PgccError
from pgcc.exact.balls import fraction
from pgcc.exact.pencil import RATIONALS
from pgcc.exact.tape import Layouts, make_tape, rational_total, run_tape
from pgcc.ir.circuit import Circuit
from pgcc.ir.node import ONE, Node, Op, det, postorder, product, var, weighted_sum
from pgcc.passes.compose import complement
from pgcc.passes.pipeline import simplify
from pgcc.passes.sizes import component, degree_range
from pgcc.validity.proof import Proof
from pgcc.validity.proof.exact_arithmetic import Part, is_image
from pgcc.validity.proof.steps import Step, Walk, has_forms
from pgcc.validity.provenance import DETERMINANTS, Witnesses

# An image is looked for in circuits of at most this many edges times variables, with fractions of at most so many bits.
_MOST_WORK, _MOST_BITS = 3_000_000, 1 << 14


# The checker's rules to try, by operation: what each needs, and the law behind it, is said there (`proof.steps`).
STABLE: dict[Op, tuple[str, ...]] = {
    Op.CONST: ("stable number",),
    Op.VAR: ("stable variable",),
    Op.SUM: ("linear form", "multiple"),
    Op.PRODUCT: ("stable product",),
    Op.DET: ("symmetric determinant",),
}
IMAGE = "image of a stable polynomial"


def prove_stable(circuit: Circuit) -> Proof | None:
    """A proof that it is strongly Rayleigh, if a rule says so. (It has to be multiaffine.)

    >>> import pgcc
    >>> coins, pair = pgcc.parse("(1 + 2*a)*(1 + 3*b)*(1 + 5*c)"), pgcc.parse("0.5*a*b + 0.5")
    >>> [prove_stable(g) is not None for g in (coins, coins.observe(size=2), pair)]
    [True, True, False]
    """
    steps = _stable_steps(circuit, _find_image)
    return None if steps is None else Proof("negative_dependence", True, "steps", circuit, {"steps": steps})


def _stable_steps(circuit: Circuit, find_image: Callable[[Circuit], Any] | None) -> list[Step] | None:
    """The steps that show that the root is stable, or None; find_image : finds the witness of an image."""
    walk = Walk(circuit)
    steps: list[Step] = []
    witnesses = Witnesses(walk)
    needed = _needed(circuit) if find_image is not None else set()
    for i, node in enumerate(circuit.order):
        found = next((one for one in _proposed(node, witnesses) if walk.takes(i, one[0], None, one[1])), None)
        if found is None and i in needed and find_image is not None:
            witness = find_image(Circuit(node))
            found = None if witness is None else (IMAGE, witness)
        if found is not None:
            walk.stable.add(i)
            steps.append((i, found[0], None, found[1]))
    return steps if len(circuit.order) - 1 in walk.stable else None


def _proposed(node: Node, witnesses: Witnesses) -> Iterator[tuple[str, Any]]:
    """(rule, witness) of the steps that may show that a node is stable; the checker's rules decide."""
    for rule in STABLE[node.op]:
        if node.op is not Op.DET:
            yield rule, None
        elif has_forms(node):
            yield from ((rule, [name, witness]) for name in DETERMINANTS for witness in witnesses.of(name, node))


def _needed(circuit: Circuit) -> set[int]:
    """The nodes that have to be stable for the root to be so by the rules for products and multiples."""
    found: set[int] = set()
    todo = [len(circuit.order) - 1]
    while todo:
        i = todo.pop()
        node = circuit.order[i]
        if i not in found and (node.op is Op.PRODUCT or (node.op is Op.SUM and len(node.children) == 1)):
            todo.extend(circuit._links[i])
        found.add(i)
    return found


# -- images ----------------------------------------------------------------------------------------------------------


def _find_image(circuit: Circuit) -> Any:
    """(h, the steps that show it stable, its parts, whether in and out are swapped) for the checker; None if there is
    none, or none is found."""
    if len(circuit.variables) * circuit.edges > _MOST_WORK:
        return None
    for swapped in (False, True):
        try:
            found = _image_of(circuit, simplify(complement(circuit)) if swapped else circuit, swapped)
        except (PgccError, ArithmeticError):  # not decomposable, or numbers are too long
            continue
        if found is not None:
            return found
    return None


def _image_of(circuit: Circuit, upright: Circuit, swapped: bool) -> Any:
    """The witness for a circuit that is `upright`, or is so after 0 and 1 are swapped."""
    steps = _stable_steps(upright, None) if swapped else None
    h, parts = (upright, None) if steps is not None else _unsized(upright) or (None, None)
    if h is None or not is_image(circuit, h, parts, swapped):
        return None
    steps = steps or _stable_steps(h, None)
    return None if steps is None else (h, steps, parts, swapped)


def _unsized(circuit: Circuit) -> tuple[Circuit, list[Part]] | None:
    """h = Π det_d · Π (1 + w_i·z_i), and the sizes of which this circuit has the parts, with their factors."""
    least, most = degree_range(circuit, circuit.variables)
    sized = {(n.matrices, n.children): n for n in circuit.order if n.op is Op.DET and n.size is not None}
    dets = [det(*n.matrices, n.inside, n.outside) for n in sized.values() if all(n.counted)]
    below = {n.name for d in dets for n in postorder(d) if n.op is Op.VAR}
    coins = [name for name in circuit.variables if name not in below]
    weights = _weights_of_coins(circuit, coins)
    if most - least not in (0, 1) or weights is None:
        return None
    h = _product_of(dets, coins, weights)
    if dets and coins:  # the weights are known up to a factor, which decides how many coins are in
        mine, its = (_totals(_part(g, least), coins) for g in (circuit, h))
        j = next((j for j in mine if mine.get(j + 1) and its.get(j) and its.get(j + 1)), None)
        if j is None:
            return None
        factor = mine[j + 1] / mine[j] * its[j] / its[j + 1]
        h = _product_of(dets, coins, [factor * w for w in weights])
    sizes = range(least, most + 1)
    parts = [(k, total / _total(_part(h, k))) for k in sizes if (total := _total(_part(circuit, k)))]
    return None if any(w < 0 for _, w in parts) else (h, parts)


def _product_of(dets: Sequence[Node], coins: Sequence[str], weights: Sequence[Fraction]) -> Circuit:
    forms = [weighted_sum([1, w], [ONE, var(name)]) for name, w in zip(coins, weights, strict=True)]
    return Circuit(product([*dets, *forms]))


def _part(circuit: Circuit, size: int, over: Iterable[str] | None = None) -> Circuit:
    over = frozenset(circuit.variables if over is None else over)
    return Circuit(component(circuit, over, range(size, size + 1)), circuit.variables)


def _totals(circuit: Circuit, names: Sequence[str]) -> dict[int, Fraction]:
    """By the number of these variables that are in; what is 0 is left out."""
    low, high = degree_range(circuit, names)
    found = {j: _total(_part(circuit, j, names)) for j in range(low, high + 1)}
    return {j: total for j, total in found.items() if total}


def _total(circuit: Circuit) -> Fraction:
    found = rational_total(circuit.order, _MOST_BITS)
    if found is None:
        raise OverflowError
    return found


def _weights_of_coins(circuit: Circuit, coins: Sequence[str]) -> list[Fraction] | None:
    """Their weights, up to a factor, if the circuit is a polynomial in e_j(w·z), elementary symmetric in the coins.

    Then what changes as a coin comes in, beside m others, is w times something that is the same for all coins. The
    least m is taken for which there is a change; only a few terms are other than 0.
    """
    least = max(degree_range(circuit, coins)[0] - 1, 0)
    if len(coins) < 2 or least > len(coins) - 2:
        return [Fraction(1)] * len(coins)
    tape = make_tape(circuit.order, RATIONALS, Layouts())

    def value(inside: Iterable[str]) -> fmpq:
        at = (
            {name: fmpq(1) for name in circuit.variables}
            | dict.fromkeys(coins, fmpq(0))
            | dict.fromkeys(inside, fmpq(1))
        )
        return run_tape(tape, {(name, out): fmpq(1) if out else x for name, x in at.items() for out in (False, True)})

    first, *rest = coins
    weights = [Fraction(1)]
    for name in rest:
        others = [x for x in rest if x != name][:least]
        start = value(others)
        mine, firsts = value([*others, name]) - start, value([*others, first]) - start
        if mine <= 0 or firsts <= 0:
            return None
        weights.append(fraction(mine / firsts))
    return weights
