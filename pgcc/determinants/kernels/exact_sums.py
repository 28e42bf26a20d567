"""Sums of arrays as unevaluated sums of several doubles per entry (floating-point expansions), for `slices`."""

from __future__ import annotations

from pgcc.kernels.policy import inlined_kernel, kernel


@kernel
def add_exactly(parts, term):
    """Add a term to Σ parts, entry by entry; the rounding error of every part is added to the next part.

    parts : float64 array, parts × entries, the largest part first. term : float64 array.
    Returns the largest rounding error of the last part, which is dropped.
    """
    count, most = parts.shape[0], 0.0
    for i in range(parts.shape[1]):
        rest = term[i]
        for k in range(count):
            parts[k, i], rest = _two_sum(parts[k, i], rest)
        most = max(most, abs(rest))
        for k in range(count - 1, 0, -1):  # renormalize: where large parts have cancelled, smaller ones move up
            parts[k - 1, i], parts[k, i] = _two_sum(parts[k - 1, i], parts[k, i])
    return most


@inlined_kernel
def _two_sum(a, b):
    """a + b and its rounding error (Knuth)."""
    total = a + b
    of_b = total - a
    return total, (a - (total - of_b)) + (b - of_b)
