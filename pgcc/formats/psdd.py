"""`.psdd`: probabilistic sentential decision diagrams.

    psdd count                                              the count is advisory: it is wrong in most files
    L id vtree literal
    T id vtree variable log(p)                              also: log(1 − p) log(p)
    D id vtree elements {prime sub log(weight)}*

Children stand before their parents, the root is last, logarithms are natural, variables are counted from 1. Variable i
is called `x{i}`; the columns of data are the variables in numeric order.

A decision is Σ weight · prime · sub; a T is p·x + (1 − p)·x̄. Every PSDD is smooth and decomposable, and the weights of
a decision sum to 1: what is not so is refused.

That primes exclude one another is not checked when a file is read, and is not so in files that hold mixtures; no answer
depends on it. `psdd_writer` writes circuits that are PSDDs.
"""

from __future__ import annotations

import math
import os
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from pgcc.collector import collector_paused
from pgcc.formats.diagrams import DiagramReader
from pgcc.formats.io import shown
from pgcc.formats.logic import variable_names
from pgcc.formats.psdd_writer import LEAST_LOG, write
from pgcc.formats.vtree import Given, vtree_of
from pgcc.ir.circuit import Circuit
from pgcc.ir.facts import find_uneven_sums
from pgcc.ir.numbers import Number

__all__ = ["read", "write"]

# A logarithm of a probability may be this much above 0: files have as few as six digits.
ABOVE_ZERO = 1e-6
# The weights of a decision sum to 1 up to this: a damaged weight shows.
SUM_TOLERANCE = 1e-3
LOGS_OF_ONE = frozenset({"0", "0.0", "-0.0", "0.000000"})
# exp underflows below it; then weights are exact numbers, down to LEAST_LOG.
FLOAT_LOG = -700.0


def read(path: str | os.PathLike[str], vtree: Given = None) -> Circuit:
    """The circuit in a `.psdd` file.

    Parameters
    ----------
    path : str or path-like
    vtree : str, path-like, Vtree or False, optional
        Check the circuit against this vtree; by default against the `.vtree` file of the same name beside it, if any;
        with False against none.

    Raises
    ------
    FormatError
        With the file and the line.

    Examples
    --------
    >>> import tempfile, os
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "two.psdd")
    ...     with open(path, "w") as file:
    ...         _ = file.write("psdd 4\\nL 0 0 1\\nT 1 2 2 -0.5\\nD 2 1 1 0 1 0.0\\n")
    ...     print(read(path))
    x1*(0.6065306597126334*x2 + 0.3934693402873666*~x2)
    """
    path = Path(path)
    with collector_paused():
        return _Reader(path, vtree_of(path, vtree), normalized=True).circuit()


class _Reader(DiagramReader):
    def circuit(self) -> Circuit:
        root = self.root("psdd", {"L": self.literal, "T": self._bernoulli, "D": self._decision})
        self.checker.root(self.nodes.last or 0, self.nodes.last_line)
        circuit = self.nodes.circuit(root, variable_names(self.variables))
        self._check(circuit)
        return circuit

    def _bernoulli(self, words: list[str]) -> None:
        if len(words) != 6:
            self.lines.need_length(words, 5, "T id vtree variable log(p)")
        variable = self.lines.literal(words[3])
        if variable < 0:
            raise self.lines.error(f"a T has a variable 1, 2, …, not the literal {variable}")
        log_p = self._log(words[-1])
        if len(words) == 6 and abs(math.exp(log_p) + math.exp(self._log(words[4])) - 1) > SUM_TOLERANCE:
            raise self.lines.error(f"the probabilities of a T do not sum to 1: their logs are {words[4]}, {words[5]}")
        self.add_leaf(words, variable, self._bernoulli_node(variable, log_p))

    def _bernoulli_node(self, variable: int, log_p: float) -> int:
        """p·x + (1 − p)·x̄"""
        if log_p == 0 or log_p == -math.inf:
            return self.nodes.literal(variable if log_p == 0 else -variable)
        literals = self.nodes.literal(variable), self.nodes.literal(-variable)
        return self.build.weighted_sum((_exp(log_p), -math.expm1(log_p)), literals)

    def _decision(self, words: list[str]) -> None:
        self.lines.need_elements(words, "prime sub log(weight)")
        children = words[4:]
        del children[2::3]  # the weights: primes and subs are left
        keys, nodes = self.nodes.get(children)
        if len(keys) == 2 and words[6] in LOGS_OF_ONE:  # two thirds of all decisions
            node = self.build.product(nodes)
        else:
            elements = list(map(self.build.product, zip(nodes[::2], nodes[1::2], strict=True)))
            node = self._weighted(list(map(self._log, words[6::3])), elements)
        self.nodes.add(words[1], node, decision=True)
        self.checker.decision(words[1], words[2], keys)

    def _weighted(self, logs: list[float], elements: list[int]) -> int:
        """Σ exp(log) · element, without elements of weight 0; a single element of weight 1 is itself the result."""
        weights: list[Any] = list(map(math.exp, logs))
        total = sum(weights)
        if abs(total - 1) > SUM_TOLERANCE:
            raise self.lines.error(f"the weights of a decision sum to 1, and these sum to {total:.6g}")
        if min(logs) < FLOAT_LOG:
            elements = [element for log, element in zip(logs, elements, strict=True) if log != -math.inf]
            weights = [_exp(log) for log in logs if log != -math.inf]
        return elements[0] if weights == [1.0] else self.build.weighted_sum(weights, elements)

    def _log(self, word: str) -> float:
        """The logarithm of a probability."""
        try:
            value = float(word)
        except ValueError:
            raise self.lines.error(f"the logarithm of a probability is a number, not {shown(word)}") from None
        if not value <= ABOVE_ZERO:
            raise self.lines.error(f"the logarithm of a probability is at most 0, not {shown(word)}")
        if LEAST_LOG > value != -math.inf:
            raise self.lines.error(f"log probability {shown(word)} is below {LEAST_LOG:g}: for zero, write -inf")
        return min(value, 0.0)

    def _check(self, circuit: Circuit) -> None:
        """Refuse a circuit that is not smooth, or whose last node lacks a variable of the file."""
        scopes = circuit.scopes
        if len(scopes.names) < len(circuit.variables):
            lost = next(name for name in circuit.variables if name not in set(scopes.names))
            where = self.nodes.last_line
            raise self.lines.error(f"the last node, the root, lacks the variable {lost}: is the file cut off?", where)
        uneven = find_uneven_sums(circuit)
        if len(uneven):
            line = self.nodes.line_of(circuit.order[uneven[0]])
            raise self.lines.error("not a PSDD: the elements of this decision have different variables", line)


def _exp(log: float) -> Number:
    """exp(log), as a float where it is one, else exactly 53 bits of it."""
    if log >= FLOAT_LOG:
        return math.exp(log)
    return _few_bits(Fraction(Decimal(log).exp()))


def _few_bits(value: Fraction) -> Fraction:
    """The nearest number of 53 bits or so: a Fraction of a few hundred bytes, however it was written."""
    shift = value.denominator.bit_length() - value.numerator.bit_length() + 60
    return Fraction(round(value * (1 << shift)), 1 << shift)
