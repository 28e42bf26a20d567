"""Slow but exact answers, by listing all coefficients."""

from __future__ import annotations

from fractions import Fraction
from itertools import compress, product

import numpy as np

from pgcc.errors import CircuitError
from pgcc.ir.circuit import Circuit
from pgcc.ir.interpret import evaluate


def brute_force(circuit: Circuit) -> dict[frozenset[str], Fraction]:
    """The coefficient of every one of the 2ⁿ monomials, zeros included.

    The values at the corners of the cube are sums over subsets, g(1_S) = Σ_{T⊆S} c_T. Möbius inversion, one variable at
    a time, recovers the coefficients from them. (In a circuit that is not multiaffine, this treats z² as z.)

    >>> import pgcc
    >>> from pgcc.testing import brute_force
    >>> brute_force(pgcc.parse("0.3*a + 0.7"))
    {frozenset(): Fraction(7, 10), frozenset({'a'}): Fraction(3, 10)}
    """
    names = circuit.variables
    if len(names) > 16:
        raise CircuitError(f"brute force over {len(names)} variables would list 2^{len(names)} coefficients")
    corners = np.array(list(product((0, 1), repeat=len(names))), dtype=object).reshape(1 << len(names), len(names))
    zero = np.full(len(corners), Fraction(0), dtype=object)
    values = {name: zero + corners[:, i] for i, name in enumerate(names)}
    c = evaluate(circuit, values, lambda x: zero + x).reshape((2,) * len(names))
    for axis in range(len(names)):
        low, high = np.take(c, 0, axis), np.take(c, 1, axis)
        c = np.stack([low, high - low], axis)
    return {frozenset(compress(names, row)): x for row, x in zip(corners, c.ravel(), strict=True)}
