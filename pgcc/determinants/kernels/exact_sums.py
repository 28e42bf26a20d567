"""Sums of arrays of doubles without rounding errors, or with known ones."""

from __future__ import annotations

from pgcc.kernels.policy import inlined_kernel, kernel


@kernel
def add_exactly(parts, term):
    """Σ parts += term, entry by entry: what rounding takes from one part goes to the next.

    parts : float64 array, parts × entries, large ones first. term : float64 array.
    Returns the most that was lost of an entry after the last part.
    """
    count, most = parts.shape[0], 0.0
    for i in range(parts.shape[1]):
        rest = term[i]
        for k in range(count):
            parts[k, i], rest = _two_sum(parts[k, i], rest)
        most = max(most, abs(rest))
        for k in range(count - 1, 0, -1):  # where parts cancel, what is below moves up
            parts[k - 1, i], parts[k, i] = _two_sum(parts[k - 1, i], parts[k, i])
    return most


@inlined_kernel
def _two_sum(a, b):
    """a + b and its rounding error (Knuth)."""
    total = a + b
    of_b = total - a
    return total, (a - (total - of_b)) + (b - of_b)
