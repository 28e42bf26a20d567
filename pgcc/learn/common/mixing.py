"""Mixtures of learned circuits, even if their totals can only be computed to nine digits."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence

from pgcc.errors import PrecisionError
from pgcc.frontend.combine import mixture
from pgcc.ir.circuit import Circuit
from pgcc.ir.numbers import Number, ldexp
from pgcc.model import compile
from pgcc.passes.building import sum_of

_RTOL = 1e-9  # the relative error of totals that cannot be computed to 1e-12


def mixture_of_learned(weights: Sequence[float], parts: Sequence[Circuit], names: Sequence[str]) -> Circuit:
    """The mixture of circuits over these variables.

    Weights are divided by the totals of the circuits, as by `pgcc.mixture`. If a total cannot be computed to 1e-12,
    which that function needs, all totals are computed to 1e-9, with a warning: the total of the mixture, by which
    `pgcc.compile` divides, is then 1 to nine digits.

    Examples
    --------
    >>> import pgcc
    >>> parts = [pgcc.parse("2*a + 2"), pgcc.parse("0.5*b + 0.5")]
    >>> pgcc.compile(mixture_of_learned([0.5, 0.5], parts, ["a", "b"])).prob({"a": 1})
    0.25
    """
    try:
        root = mixture(weights, parts).root
    except PrecisionError as error:
        shares = [_divided(weight, _log_total(part)) for weight, part in zip(weights, parts, strict=True)]
        root = sum_of(zip(shares, (part.root for part in parts), strict=True))
        warnings.warn(
            f"the weights of the mixture that was learned are right to {_RTOL:g}, not to 1e-12: {error}", stacklevel=3
        )
    return Circuit(root, names)


def _log_total(part: Circuit) -> float:
    return float(compile(part, normalize=False, rtol=_RTOL).logprob({}))


def _divided(weight: float, log_total: float) -> Number:
    """weight / exp(log_total): a float, or an exact m·2^e if it is out of the range of floats."""
    exponent = round(log_total / math.log(2.0))
    return ldexp(weight / math.exp(log_total - exponent * math.log(2.0)), -exponent)
