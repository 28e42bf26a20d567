"""The value of a complete row: a walk from the root down, along the only term of every sum that the row leaves."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pgcc.kernels.policy import inlined_kernel, kernel
from pgcc.program.program import LEAF, SUM, TIMES

_LOW, _UP, _DOWN = 2.0**-128, 2.0**256, 2.0**-256


class Literals(NamedTuple):
    """What has to be observed for a node not to be 0, as far as its own literals, or those of a product, tell.

    first : by node, where its literals begin in `code`, and where the last ones end. code : 2·variable + its value.
    """

    first: np.ndarray
    code: np.ndarray


@inlined_kernel
def _agrees(literals, s, row):
    """Whether a row agrees with the literals of node s."""
    for j in range(literals.first[s], literals.first[s + 1]):
        code = literals.code[j]
        if row[code >> 1] != (code & 1):
            return False
    return True


@kernel
def follow(links, numbers, literals, root, rows, mantissa, exponent, factors):
    """Values mantissa · 2^(256·exponent) of rows in which all is observed, each a product of so many factors.

    factors[i] is 0 if the value is exactly 0, and −1 if nothing is known: a sum had several terms left.
    """
    kind, first, left, right, which = links
    stack = np.empty(len(kind) + 2, np.int64)
    for i in range(len(rows)):
        row, m, e, count = rows[i], 1.0, 0, 0
        stack[0], top = root, 1
        while top > 0:
            top -= 1
            s = stack[top]
            t, end = first[s], first[s + 1]
            if kind[s] == SUM:
                found = 0
                for term in range(first[s], first[s + 1]):
                    if _agrees(literals, left[term], row) and (right[term] < 0 or _agrees(literals, right[term], row)):
                        t, found = term, found + 1
                if found != 1:
                    m, count = 0.0, -min(found, 1)
                    break
                end = t + 1
                m, e, count = m * numbers.weight[t], e + numbers.weight_exponent[t], count + 1
            elif kind[s] == LEAF:
                value = 0 if which[s] < 0 else row[which[s]]
                m, e, count = m * numbers.table[s, value], e + numbers.table_exponent[s, value], count + 1
            elif kind[s] != TIMES:
                raise ValueError("a walk down cannot follow an instruction of this kind")
            if m == 0.0 or top + 2 * (end - t) > len(stack):
                count = 0 if m == 0.0 else -1
                break
            if abs(m) < _LOW:
                m, e = m * _UP, e - 1
            elif abs(m) > 1.0 / _LOW:
                m, e = m * _DOWN, e + 1
            for term in range(t, end):
                stack[top] = left[term]
                top += 1
                if right[term] >= 0:
                    stack[top] = right[term]
                    top += 1
        mantissa[i], exponent[i], factors[i] = m, e, count
