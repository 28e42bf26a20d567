"""Circuits of what was learned: mixtures of trees of one structure, from arrays, and mixtures of other circuits."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from pgcc.builders import parents_first
from pgcc.ir.blocks import Blocks
from pgcc.ir.circuit import Circuit, from_flat
from pgcc.ir.flat_builder import FlatBuilder, mixture_of_copies
from pgcc.ir.numbers import Number, ldexp
from pgcc.model import compile
from pgcc.passes.building import sum_of
from pgcc.passes.total import TOLERANCE


def mixture_of_trees(
    weights: np.ndarray,
    parents: Sequence[int],
    probs: np.ndarray,
    names: Sequence[str],
    outs: np.ndarray | None = None,
) -> Circuit:
    """A mixture of tree-shaped networks of one structure, or of products, over columns with these names.

    Parameters
    ----------
    weights : array
        The weight of every component.
    parents : sequence of int
        The parent of every variable; −1 for a root. If all are, the components are products of independent variables.
    probs : array, components × columns × states
        Pr(column = 1 | state of the parent); of a root, only the first state counts.
    names : sequence of str
        The columns; a variable with states has several, of which exactly one is 1.
    outs : array, optional
        Pr(column = 0 | state of the parent), where that is better known than as 1 − probs. No sum is divided by its
        total: `pgcc.compile` divides by that of the mixture.

    Examples
    --------
    >>> import pgcc
    >>> probs = np.array([[[0.5, 0.5], [0.25, 0.75]], [[0.25, 0.25], [0.5, 0.5]]])
    >>> pgcc.compile(mixture_of_trees(np.array([0.5, 0.5]), [-1, 0], probs, ["a", "b"])).prob({"a": 1, "b": 1})
    0.25
    """
    build, blocks = FlatBuilder(), Blocks.of(names)
    components, columns, states = probs.shape
    below: list[list[tuple[int, ...]]] = [[()] * int(blocks.states[first]) for first in blocks.first]
    roots: list[int] = []
    for v in reversed(parents_first(parents)):
        first = int(blocks.first[v])
        several = len(below[v]) if blocks.size[first] > 1 else 1
        places = [first + i for i in range(several)] if several > 1 else [columns + first, first]  # in the table
        leaves = [build.var(names[place % columns], complement=place >= columns) for place in places]
        terms = [build.product((leaf, *more)) if more else leaf for leaf, more in zip(leaves, below[v], strict=True)]
        given = range(1 if parents[v] < 0 else len(below[parents[v]]))
        sums = [build.weighted_sum([place * states + state for place in places], terms) for state in given]
        if parents[v] < 0:
            roots.append(sums[0])
        else:
            below[parents[v]] = [(*factors, one) for factors, one in zip(below[parents[v]], sums, strict=True)]
    table = np.concatenate([probs, 1.0 - probs if outs is None else outs], axis=1).reshape(components, -1)
    root = roots[0]
    if len(roots) > 1:  # 1 · the product
        table = np.append(table, np.ones((components, 1)), axis=1)
        root = build.weighted_sum([table.shape[1] - 1], [build.product(roots[::-1])])
    return from_flat(mixture_of_copies(build.flat(root), table, weights), names)


def mixture_of_learned(weights: Sequence[float], parts: Sequence[Circuit], names: Sequence[str]) -> Circuit:
    """The mixture of circuits over these variables, each divided by its total.

    Totals are computed as by `pgcc.compile`, to nine digits: so is the total of the mixture 1, by which `pgcc.compile`
    divides once more. (`pgcc.mixture` computes them to twelve, in arbitrary precision, for which learning cannot wait.)

    Examples
    --------
    >>> import pgcc
    >>> parts = [pgcc.parse("2*a + 2"), pgcc.parse("0.5*b + 0.5")]
    >>> pgcc.compile(mixture_of_learned([0.5, 0.5], parts, ["a", "b"])).prob({"a": 1})
    0.25
    """
    shares = [_divided(weight, part) for weight, part in zip(weights, parts, strict=True)]
    return Circuit(sum_of(zip(shares, (part.root for part in parts), strict=True)), names)


def _divided(weight: float, part: Circuit) -> Number:
    """weight / total: a float, or an exact m·2^e if it is out of the range of floats."""
    log_total = float(compile(part, normalize=False, rtol=TOLERANCE).logprob({}))
    if abs(log_total) <= TOLERANCE:  # 1, as far as floats tell
        return weight
    exponent = round(log_total / math.log(2.0))
    return ldexp(weight / math.exp(log_total - exponent * math.log(2.0)), -exponent)
