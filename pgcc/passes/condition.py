"""Specialize to evidence: conditioning and marginalizing as rewritings of the circuit.

    Pr(A in, B out, rest)  =  coefficient of t^|A| in g(z_A = t, z_B = 0, z_rest)
    Pr(rest)               =  g(z_names = 1, z_rest)

The coefficient is a circuit over the rest: the component of degree |A| in the variables of A (`pgcc.passes.sizes`),
with 1 in their place. In a decomposable circuit it takes at most one new node for each old one; in others at most
|A| + 1, each a convolution, never 2^|A|.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pgcc.collector import collector_paused
from pgcc.errors import CircuitError, EvidenceError
from pgcc.ir.circuit import Circuit, from_flat
from pgcc.ir.domains import Domains, kept_columns
from pgcc.ir.flat import Flat
from pgcc.ir.flat_builder import weighted_sum_of
from pgcc.ir.node import ONE, ZERO, Node
from pgcc.ir.numbers import Number, nearest_float
from pgcc.ir.operands import list_variables
from pgcc.passes.pipeline import simplify
from pgcc.passes.simplify import LARGE, fold
from pgcc.passes.sizes import component
from pgcc.passes.total import in_doubles, quotient, total

_LEFT = 2.0**-36  # the share of the empty set's probability that stays, where numbers are floats


def condition(circuit: Circuit, observed: Mapping[str, int]) -> Circuit:
    """`Circuit.observe`, of variables that are 1 or 0.

    For every further evidence e', Pr(e') by the new circuit is Pr(evidence, e') by the old one, exactly. How the
    polynomial is written does not matter; it must be multiaffine, and so must be the children of determinants.
    """
    ins = {name for name, value in observed.items() if value == 1}
    outs = observed.keys() - ins
    rest = (circuit.domains or Domains.plain(circuit.variables)).given(observed)
    if not observed:
        return simplify(circuit)
    with collector_paused():
        without = fold(_substitute(circuit, dict.fromkeys(outs, ZERO))) if outs else circuit
        return simplify(Circuit(component(without, ins, range(len(ins), len(ins) + 1), kept=False), rest))


def marginalize(circuit: Circuit, names: Iterable[str]) -> Circuit:
    """`Circuit.marginalize`, of any circuit: z = 1 for the variables that are named."""
    gone = dict.fromkeys(list_variables(circuit, names, "sum out", EvidenceError), ONE)
    rest = kept_columns([name for name in circuit.variables if name not in gone], circuit.variables)
    with collector_paused():
        return simplify(Circuit(_substitute(circuit, gone).root, rest))


def exclude_empty(circuit: Circuit) -> Circuit:
    """`Circuit.exclude_empty`: (g − c) / (g(1) − c), with c = g(0) if that is exact.

    With floats, c is less than g(0) by `_LEFT` of it, so that float64 sees that no coefficient is negative.
    """
    flat = circuit._flat
    c: Number | None = in_doubles(flat, 0.0)
    everything: Number | None = in_doubles(flat, 1.0)
    if circuit.edges <= LARGE or c is None or everything is None:
        c, everything = total(_substitute(circuit, dict.fromkeys(circuit.variables, ZERO))), total(circuit)
    if not c:
        return circuit
    exact = float not in (type(c), type(everything))
    c = c if exact else nearest_float(c) * (1.0 - _LEFT)
    if not 0 < c < everything * (1 - 2**-10):
        raise CircuitError("the empty set has nearly all the probability: without it, there is nothing left")
    share, one = quotient(1, everything - c), Flat.of([ONE])
    return simplify(from_flat(weighted_sum_of([flat, one], [share, -c * share]), circuit.variables))


def _substitute(circuit: Circuit, leaves: Mapping[str, Node]) -> Circuit:
    """The circuit with variables replaced; a complement ȳ of one of them is 1, as in every generating polynomial."""

    def leaf(node: Node) -> Node:
        return node if node.name not in leaves else ONE if node.is_complement else leaves[node.name]

    return Circuit(circuit.rewrite(leaf), circuit.variables)
