"""Simplification: the passes that `simplify` repeats, in their order, with their laws."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from pgcc.collector import collector_paused
from pgcc.ir.circuit import Circuit
from pgcc.passes.simplify import LARGE, flatten, fold


class Pass(NamedTuple):
    """A rewriting of circuits that keeps the polynomial, its name and its law."""

    name: str
    law: str
    run: Callable[[Circuit], Circuit]


PASSES: list[Pass] = [
    Pass("flatten", "Σ w·(Σ v·c) = Σ (w·v)·c and Π a·(Π b) = Π a·b", flatten),
    Pass("fold", "constants, zeros, ones, equal and lone children: the table `rules.RULES`", fold),
]

# Flattening may bring equal children together, merging them may leave one parent where two were, and so on. Small
# circuits are simplified until nothing changes; in large ones, a further round must remove this share of the edges.
WORTH = 0.02  # of the edges
MOST_ROUNDS = 50


def simplify(circuit: Circuit) -> Circuit:
    """The same polynomial over the same variables by a circuit that is not larger.

    Runs `PASSES` until none changes anything, or, in a large circuit, little. A circuit that is already simple is
    returned itself.

    Parameters
    ----------
    circuit : Circuit
        Any circuit.

    Returns
    -------
    Circuit
        Over the same `variables`, also those that no longer occur.

    Examples
    --------
    >>> import pgcc
    >>> g = simplify(pgcc.parse("0.5*(a + (b - a)*1) + 0*c + 2*(3*a)*b"))
    >>> print(g)
    1/2*b + 6*a*b
    >>> g.variables
    ('a', 'b', 'c')
    """
    with collector_paused():
        unchanged, edges = 0, circuit.edges  # passes in a row that changed nothing
        for number in range(MOST_ROUNDS):
            for one in PASSES:
                before, circuit = circuit, one.run(circuit)
                unchanged = unchanged + 1 if circuit is before else 0
                if unchanged == len(PASSES) or (unchanged and number and edges > LARGE):
                    return circuit
            edges, previous = circuit.edges, edges
            if edges > LARGE and edges > (1 - WORTH) * previous:
                break
        return circuit
