"""Operations on distributions that put something else in place of variables.

    composition   z_i ↦ f_i                    "i is in" becomes "a set drawn from f_i is in" (Proposition 3)
    thinning      z_i ↦ p·z_i + (1 − p)        every member stays with probability p
    tilting       z_i ↦ w·z_i                  Pr(S) is multiplied by Π_{i∈S} w_i
    complement    z_i ↔ ȳ_i                    members go out, and all other variables come in
    addition      ȳ_i ↦ p·z_i + (1 − p)·ȳ_i    a variable that is out comes in with probability p

The last two need to know which variables are out: the circuit is homogenized, and for that it has to be decomposable.
All of them are one walk over the circuit, through determinants as through sums and products.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pgcc.collector import collector_paused
from pgcc.errors import CircuitError, SemanticsError, brief
from pgcc.ir.circuit import Circuit
from pgcc.ir.domains import kept_columns
from pgcc.ir.node import ONE, Node, Op, var, weighted_sum
from pgcc.ir.numbers import Number, one_minus
from pgcc.ir.operands import (
    check_circuit,
    check_decomposable,
    check_known,
    claim_variables,
    list_variables,
    positive,
    probability,
)
from pgcc.ir.spelling import display_text
from pgcc.passes.building import sum_of
from pgcc.passes.homogenize import homogenize
from pgcc.passes.total import is_one, positive_total


def compose(circuit: Circuit, leaves: Mapping[str, Circuit]) -> Circuit:
    """`Circuit.compose`."""
    if not isinstance(leaves, Mapping):
        raise CircuitError(f"compose takes a mapping from variables to circuits, not {type(leaves).__name__}")
    check_known(circuit, leaves, "replace")
    owners = {name: "the circuit itself" for name in circuit.variables if name not in leaves}
    for name, leaf in leaves.items():
        what = f"the leaf for {name!r}"
        check_circuit(leaf, what)
        claim_variables(owners, leaf, what)
        value = positive_total(leaf, what)
        if not is_one(value):
            raise SemanticsError(
                f"{what} has the total {display_text(value)}, not 1: divide by it, as its method normalize() does"
            )
    names = [v for name in circuit.variables for v in (leaves[name].variables if name in leaves else (name,))]

    def leaf_of(node: Node) -> Node:
        if node.name not in leaves:
            return node
        return ONE if node.is_complement else leaves[node.name].root

    with collector_paused():
        columns = kept_columns(names, circuit.variables, *(leaf.variables for leaf in leaves.values()))
        return Circuit(circuit.rewrite(leaf_of), columns)


# -- thinning and tilting ------------------------------------------------------------------------------------


def thin(circuit: Circuit, p: Any) -> Circuit:
    """`Circuit.thin`: z becomes p·z + (1 − p)·ȳ."""
    kept = _per_variable(circuit, p, "Pr({} stays)", probability)
    refuse_states(circuit, kept, "thin")
    literals = {node.name for node in circuit.order if node.op is Op.VAR and node.is_complement}

    def leaf(node: Node) -> Node:
        stays = kept.get(node.name, 1)
        if node.is_complement or stays == 1:
            return node
        gone = var(node.name, complement=True) if node.name in literals else ONE
        return sum_of([(stays, node), (one_minus(stays), gone)])

    with collector_paused():
        return Circuit(circuit.rewrite(leaf), circuit.variables)


def tilt(circuit: Circuit, weights: Mapping[str, Any]) -> Circuit:
    """`Circuit.tilt`: z becomes w·z."""
    if not isinstance(weights, Mapping):
        raise CircuitError(f"tilt takes a mapping from variables to weights, not {brief(weights)}")
    tilted = _per_variable(circuit, weights, "the weight of {}", positive)

    def leaf(node: Node) -> Node:
        weight = tilted.get(node.name, 1)
        return node if node.is_complement or weight == 1 else weighted_sum((weight,), (node,))

    with collector_paused():
        return Circuit(circuit.rewrite(leaf), circuit.variables)


# -- complement and addition ---------------------------------------------------------------------------------


def complement(circuit: Circuit, names: Iterable[str] | None = None) -> Circuit:
    """`Circuit.complement`: Π z_i · g(1/z), with a complement ȳ_i (which is 1) wherever a variable is out."""
    swapped = set(list_variables(circuit, names, "swap"))
    refuse_states(circuit, swapped, "swap")

    def leaf(node: Node) -> Node:
        return var(node.name, not node.is_complement) if node.name in swapped else node

    return _with_literals(circuit, leaf, "which variables are out can only be told") if swapped else circuit


def add(circuit: Circuit, probabilities: Mapping[str, Number]) -> Circuit:
    """The circuit of the union with independent members: i comes in with probability p_i, if it is not in yet.

    Examples
    --------
    >>> import pgcc
    >>> from fractions import Fraction
    >>> print(add(pgcc.parse("0.4*a*b + 0.6"), {"b": Fraction(1, 2)}))
    2/5*a*b + 3/5*~a*(1/2*b + 1/2*~b)
    """

    def leaf(node: Node) -> Node:
        p = probabilities.get(node.name, 0)
        if not p or not node.is_complement:
            return node
        return sum_of([(p, var(node.name)), (one_minus(p), node)])

    return _with_literals(circuit, leaf, "which variables can still come in can only be told")


def _with_literals(circuit: Circuit, leaf: Any, why: str) -> Circuit:
    """The homogenized circuit, with its literals replaced."""
    check_decomposable(circuit, f"{why} in a decomposable circuit, and here {{}}")
    with collector_paused():
        return Circuit(homogenize(circuit).rewrite(leaf), circuit.variables)


def refuse_states(circuit: Circuit, columns: Iterable[str], verb: str) -> None:
    """Refuse columns of variables with states: one that was in would not be, or not alone."""
    shown = {c: name for name, d in (circuit.domains or {}).items() if not d.is_plain for c in d.columns}
    for column in columns:
        if column in shown:
            raise CircuitError(f"cannot {verb} {shown[column]!r}: it has states, and is neither in nor out")


def restrict(circuit: Circuit, names: Iterable[str]) -> Circuit:
    """`Circuit.restrict`."""
    kept = list_variables(circuit, names, "keep")
    held = set(kept)
    rest = circuit.marginalize([name for name in circuit.variables if name not in held])
    return Circuit(rest.root, kept_columns(kept, circuit.variables))


def _per_variable(circuit: Circuit, given: Any, what: str, read: Any) -> dict[str, Number]:
    """The number that is given for each variable: by name, or one for all."""
    if isinstance(given, Mapping):
        check_known(circuit, given, "change")
        return {name: read(value, what.format(name)) for name, value in given.items()}
    return dict.fromkeys(circuit.variables, read(given, what.format("a member")))
