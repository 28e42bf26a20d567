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

from pgcc.formats.io import shown
from pgcc.formats.logic import Lines, Nodes, decomposable, literal_node, variable_names
from pgcc.formats.psdd_writer import LEAST_LOG, write
from pgcc.formats.vtree import Vtree, VtreeChecker, vtree_of
from pgcc.ir.bulk import collector_paused
from pgcc.ir.circuit import Circuit
from pgcc.ir.facts import find_uneven_sums
from pgcc.ir.node import Node, product, weighted_sum
from pgcc.ir.numbers import Number

__all__ = ["read", "write"]

# A logarithm of a probability may be this much above 0: files have as few as six digits.
ABOVE_ZERO = 1e-6
# The weights of a decision sum to 1 up to this: a damaged weight shows.
SUM_TOLERANCE = 1e-3
LOGS_OF_ONE = frozenset({"0", "0.0", "-0.0", "0.000000"})
# exp underflows below it; then weights are exact numbers, down to LEAST_LOG.
FLOAT_LOG = -700.0


def read(path: str | os.PathLike[str], vtree: str | os.PathLike[str] | Vtree | None = None) -> Circuit:
    """The circuit in a `.psdd` file.

    Parameters
    ----------
    path : str or path-like
    vtree : str, path-like or Vtree, optional
        Check the circuit against this vtree; by default against the `.vtree` file of the same name beside it, if any.

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
        return _Reader(path, vtree_of(path, vtree)).circuit()


class _Reader:
    def __init__(self, path: Path, vtree: Vtree | None):
        self.lines = Lines(path)
        self.nodes = Nodes(self.lines)
        self.checker = VtreeChecker(self.lines, vtree, normalized=True)
        self.variables: set[int] = set()

    def circuit(self) -> Circuit:
        header, body = self.lines.need_header("psdd", "psdd count")
        claimed = self.lines.integer(header[1], "the count of nodes")
        readers = {"L": self._literal, "T": self._bernoulli, "D": self._decision}
        last = 0
        for words in body:
            reader = readers.get(words[0])
            if reader is None:
                raise self.lines.error(f"a line of a PSDD starts with L, T or D, not {shown(words[0])}")
            reader(words)
            last = self.lines.number
        root = self.nodes.root(claimed)
        self.checker.root(self.nodes.last or 0, last)
        return self._checked(decomposable(Circuit(root, variable_names(self.variables)), self.nodes), last)

    def _literal(self, words: list[str]) -> None:
        self.lines.need_length(words, 4, "L id vtree literal")
        literal = self.lines.literal(words[3])
        self._add_leaf(words, abs(literal), literal_node(literal))

    def _bernoulli(self, words: list[str]) -> None:
        if len(words) != 6:
            self.lines.need_length(words, 5, "T id vtree variable log(p)")
        variable = self.lines.literal(words[3])
        if variable < 0:
            raise self.lines.error(f"a T has a variable 1, 2, …, not the literal {variable}")
        log_p = self._log(words[-1])
        if len(words) == 6 and abs(math.exp(log_p) + math.exp(self._log(words[4])) - 1) > SUM_TOLERANCE:
            raise self.lines.error(f"the probabilities of a T do not sum to 1: their logs are {words[4]}, {words[5]}")
        self._add_leaf(words, variable, _bernoulli(variable, log_p))

    def _add_leaf(self, words: list[str], variable: int, node: Node) -> None:
        self.nodes.add(words[1], node)
        self.checker.leaf(words[1], words[2], variable)
        self.variables.add(variable)

    def _decision(self, words: list[str]) -> None:
        if len(words) < 4:
            self.lines.need_length(words, 4, "D id vtree elements …")
        count = self.lines.integer(words[3], "the number of elements", low=1)
        if len(words) != 4 + 3 * count:
            self.lines.need_length(words, 4 + 3 * count, f"D id vtree {count} " + "{prime sub log(weight)}*")
        primes, subs = words[4::3], words[5::3]
        get = self.nodes.get
        if count == 1 and words[6] in LOGS_OF_ONE:  # two thirds of all decisions
            node = product((get(words[4]), get(words[5])))
        else:
            elements = list(map(product, zip(map(get, primes), map(get, subs), strict=True)))
            node = self._weighted(list(map(self._log, words[6::3])), elements)
        self.nodes.add(words[1], node, decision=True)
        self.checker.decision(words[1], words[2], primes, subs)

    def _weighted(self, logs: list[float], elements: list[Node]) -> Node:
        """Σ exp(log) · element; an element of weight 0 is none, and one of weight 1 is all."""
        total = sum(map(math.exp, logs))
        if abs(total - 1) > SUM_TOLERANCE:
            raise self.lines.error(f"the weights of a decision sum to 1, and these sum to {total:.6g}")
        terms = [(_exp(log), element) for log, element in zip(logs, elements, strict=True) if log != -math.inf]
        weights, children = zip(*terms, strict=True)
        return children[0] if weights == (1.0,) else weighted_sum(weights, children)

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

    def _checked(self, circuit: Circuit, last: int) -> Circuit:
        """The circuit if it is smooth, and its last node has all variables of the file."""
        scopes = circuit.scopes
        if len(scopes.names) < len(circuit.variables):
            lost = next(name for name in circuit.variables if name not in set(scopes.names))
            raise self.lines.error(f"the last node, the root, lacks the variable {lost}: is the file cut off?", last)
        uneven = find_uneven_sums(circuit)
        if len(uneven):
            line = self.nodes.line_of(circuit.order[uneven[0]]) or 0
            raise self.lines.error("not a PSDD: the elements of this decision have different variables", line)
        return circuit


def _bernoulli(variable: int, log_p: float) -> Node:
    """p·x + (1 − p)·x̄"""
    if log_p == 0 or log_p == -math.inf:
        return literal_node(variable if log_p == 0 else -variable)
    return weighted_sum(
        (_exp(log_p), -math.expm1(log_p)),
        (literal_node(variable), literal_node(-variable)),
    )


def _exp(log: float) -> Number:
    """exp(log), as a float where it is one, else exactly 53 bits of it."""
    if log >= FLOAT_LOG:
        return math.exp(log)
    return _few_bits(Fraction(Decimal(log).exp()))


def _few_bits(value: Fraction) -> Fraction:
    """The nearest number of 53 bits or so: a Fraction of a few hundred bytes, however it was written."""
    shift = value.denominator.bit_length() - value.numerator.bit_length() + 60
    return Fraction(round(value * (1 << shift)), 1 << shift)
