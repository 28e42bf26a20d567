"""Complete rows of circuits whose sums choose by literals: each has one term left, however large the circuit is.

At a row in which all is observed, a term is 0 if one of its literals is. Networks compiled by elimination, and decision
diagrams, have sums of terms with different literals: of every sum that a walk from the root visits, at most one term is
left, and the value is a product of as many numbers as there are variables, or a few times that.
"""

from __future__ import annotations

import numpy as np

from pgcc.certify.certificate import rounding_bound
from pgcc.evaluate.direct import Float64, split_constants
from pgcc.evaluate.kernels.descent import Literals, follow
from pgcc.evaluate.top_down import Nodes, find_nodes
from pgcc.ir.flat import starts
from pgcc.program.program import SUM, TIMES, Program
from pgcc.rings.kernels.scaled import RADIX
from pgcc.rings.values import Values


class Descent:
    """The evaluator of complete rows; literals : what each node needs not to be 0."""

    def __init__(self, program: Program, nodes: Nodes, literals: Literals):
        self.program, self.nodes, self.literals = program, nodes, literals

    def evaluate(self, evidence: np.ndarray, rtol: float) -> Values:
        """Values for int8 rows of ones and zeros; unknown where more than one term of a sum is left."""
        count = len(evidence)
        mantissa, exponent, factors = np.empty(count), np.empty(count, np.int64), np.empty(count, np.int64)
        follow(*self.nodes, self.literals, self.program.value, evidence, mantissa, exponent, factors)
        # Every factor is rounded, and so is the product with it.
        bounds = np.array([*(rounding_bound(2.0 * k) for k in range(int(factors.max(initial=0)) + 1)), np.inf])
        return Values(mantissa, RADIX * exponent, bounds[factors])


def find_descent(float64: Float64) -> Descent | None:
    """The evaluator of complete rows; None if some sum has terms without literals."""
    program = float64.program
    if program.has_det:
        return None
    nodes = find_nodes(program, split_constants(program))
    literals = _literals(program, nodes)
    kind, first, left, right, _ = nodes.links
    some = np.diff(literals.first) > 0
    decided = some[left] | (some[right] & (right >= 0))
    of_choice = np.repeat((kind == SUM) & (np.diff(first) > 1), np.diff(first))
    return Descent(program, nodes, literals) if decided[of_choice].all() else None


def _literals(program: Program, nodes: Nodes) -> Literals:
    """The literals of leaves a·z and a·ȳ, and of products of them."""
    kind, first, left, _, which = nodes.links
    zero = nodes.numbers.table == 0.0
    code = np.where((which >= 0) & (zero[:, 0] != zero[:, 1]), 2 * which + zero[:, 0], -1)
    of_product = np.repeat(kind == TIMES, np.diff(first)) & (code[left] >= 0)
    owner = np.repeat(np.arange(len(kind)), np.diff(first))[of_product]
    own = np.flatnonzero(code >= 0)
    owner, found = np.concatenate([own, owner]), np.concatenate([code[own], code[left][of_product]])
    order = np.argsort(owner, kind="stable")
    return Literals(starts(np.bincount(owner, minlength=len(kind))), found[order].astype(np.int32))
