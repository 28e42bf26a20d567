"""Sums, products and powers of terms (`ir.terms`) for front ends: in exact arithmetic of bounded size."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from pgcc.errors import CircuitError
from pgcc.ir.circuit import power_node
from pgcc.ir.numbers import Number, add, as_number, mul, power
from pgcc.ir.spelling import MAX_BITS, bits, power_bits
from pgcc.ir.terms import Term, added, multiplied, node_of

# Probability generating polynomials are multiaffine: powers only occur in parts that cancel.
MAX_EXPONENT = 1000

_LONG = 2048  # shorter numbers cost next to nothing; every double is one


class TermArithmetic:
    """Sums, products and powers of terms, in exact arithmetic of bounded size.

    Parameters
    ----------
    budget : int
        The number of bits that all long numbers together may have. Without it, a short text could ask for hours of
        arithmetic.
    """

    def __init__(self, budget: int = 1 << 26):
        self._budget = budget

    def sum(self, terms: Sequence[Term]) -> Term:
        """Σ terms, with the numbers among them added up, in the position of the first."""
        return added(terms, lambda a, b: self.allowed(add(a, b)))

    def product(self, terms: Sequence[Term]) -> Term:
        """Π terms, with the numbers among them multiplied into one weight."""
        return multiplied(terms, self._times)

    def inverse(self, term: Term) -> Term:
        """1 / term, for a number other than 0."""
        value, node = term
        if node is not None:
            raise CircuitError("only division by a number is possible: a polynomial has no variable in a denominator")
        if not value:
            raise CircuitError("division by zero")
        return as_number(1 / Fraction(value)), None

    def power(self, base: Term, exponent: Term) -> Term:
        """base ** exponent; the exponent is a whole number, and nonnegative unless the base is a number."""
        k, symbolic = exponent
        if symbolic is not None or type(k) is not int:
            raise CircuitError("an exponent is a whole number")
        value, node = base
        if node is None:
            return self._number_power(value, k), None
        if k < 0:
            raise CircuitError("an exponent is not negative: a polynomial has no variable in a denominator")
        if k > MAX_EXPONENT:
            raise CircuitError(f"the exponent is too large: at most {MAX_EXPONENT} for what is not a number")
        if k == 0:
            return 1, None
        return (1, power_node(node_of(base), k)) if k > 1 else base

    def _number_power(self, value: Number, k: int) -> Number:
        if k < 0:
            return self._number_power(self.inverse((value, None))[0], -k)
        if power_bits(value, k) > 2 * MAX_BITS:
            raise CircuitError(f"the power is too large a number: at most {MAX_BITS:,} bits")
        return self.allowed(power(value, k))

    def _times(self, a: Number, b: Number) -> Number:
        return b if type(a) is int and a == 1 else self.allowed(mul(a, b))

    def allowed(self, value: Number) -> Number:
        """The number itself, or an error if it is too long or there have been too many long ones."""
        length = bits(value)
        if length > _LONG:
            self._budget -= length
            if length > MAX_BITS:
                raise CircuitError(f"the number is too large: {length:,} bits, at most {MAX_BITS:,}")
            if self._budget < 0:
                raise CircuitError("there is too much arithmetic with very long numbers")
        return value
