"""Soft evidence: likelihoods of both values of a variable, by which the probabilities of sets are multiplied.

A row has a pair (λ0, λ1) of likelihoods for every variable i, and its value is the sum of

    coefficient of S · Π_{i∉S} λ0_i · Π_{i∈S} λ1_i

over all sets S that agree with its codes. So λ0_i multiplies ȳ_i, and λ1_i multiplies z_i: in a homogenized program,
the leaves of a row change, and nothing else (`ScaledProgram`). In any other circuit, with both of them positive,

    Π_i λ0_i · g(…, z_i · λ1_i / λ0_i, …)

is the polynomial whose values these are (`weigh`). It is compiled once more (`Reweighted`). Where only one of the two
is positive, the codes observe the variable, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from pgcc.ir.circuit import Circuit
from pgcc.ir.node import weighted_sum
from pgcc.ir.numbers import as_number, exact


class SoftRows(NamedTuple):
    """Rows of int8 evidence, and likelihoods: rows × variables × 2, of out and in; 1 and 1 if nothing is known."""

    codes: np.ndarray
    likelihoods: np.ndarray

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, rows: np.ndarray | slice) -> SoftRows:  # type: ignore[override]
        return SoftRows(np.ascontiguousarray(self.codes[rows]), self.likelihoods[rows])


class Reweighted:
    """A circuit that is compiled anew for rows with other likelihoods.

    Parameters
    ----------
    circuit : Circuit
    compiled : function
        Compiles a circuit.
    """

    def __init__(self, circuit: Circuit, compiled: Callable[[Circuit], Any]):
        self.circuit, self._compiled = circuit, compiled
        self._last: tuple[bytes, Any] = b"", None

    def by(self, likelihoods: np.ndarray) -> Any:
        """The compiled circuit, weighed by the likelihoods of one row; the last one is kept."""
        key, (last, found) = likelihoods.tobytes(), self._last
        if key != last:
            factor, tilted = weigh(self.circuit, likelihoods)
            found = self._compiled(Circuit(weighted_sum((as_number(factor),), (tilted.root,)), tilted.variables))
            self._last = key, found
        return found


def weigh(circuit: Circuit, likelihoods: np.ndarray) -> tuple[Fraction, Circuit]:
    """(f, h), where f·h is the circuit with each coefficient multiplied by the likelihoods, variables × 2, of its set.

    A variable with only one likelihood above 0 is taken as observed: f has it as a factor.

    >>> import pgcc
    >>> factor, weighed = weigh(pgcc.parse("0.4*a*b + 0.6"), np.array([[0.5, 1.5], [0.0, 0.25]]))
    >>> print(factor, weighed)
    1/8 2/5*(3*a*b) + 3/5
    """
    factor, weights = Fraction(1), {}
    for i in np.flatnonzero((likelihoods != 1.0).any(axis=1)).tolist():
        out, inside = map(exact, likelihoods[i].tolist())
        factor *= out or inside
        if out and inside and out != inside:
            weights[circuit.variables[i]] = as_number(inside / out)
    return factor, circuit.tilt(weights)


def runs_of(likelihoods: np.ndarray) -> Iterator[slice]:
    """Rows with the same likelihoods that follow one another.

    >>> list(runs_of(np.array([[[1.0, 2.0]], [[1.0, 2.0]], [[0.5, 1.0]]])))
    [slice(0, 2, None), slice(2, 3, None)]
    """
    starts = np.flatnonzero((likelihoods[1:] != likelihoods[:-1]).any(axis=(1, 2))) + 1
    bounds = [0, *starts.tolist(), len(likelihoods)]
    return (slice(*pair) for pair in pairwise(bounds) if pair[0] < pair[1])
