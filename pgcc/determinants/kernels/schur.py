"""A step of Gaussian elimination of one matrix of doubles, for `bordering`, `sized` and `sampling_sets`.

Other eliminations have loops of their own: of eight matrices at a time (`factors`; in pairs of doubles: `pairs`), and
of two triangles whose growth is recorded (`eliminate_with_growth` of `bordering`).
"""

from __future__ import annotations

from pgcc.kernels.policy import bare_kernel


@bare_kernel
def eliminate_row(matrix, p, pivot):
    """Replace the rows and columns after p by their Schur complement, with this pivot for the entry (p, p).

    Column p becomes the multipliers of row p. A row whose multiplier is 0 stays as it is. (Overflow does not hide in
    that: the matrices here are symmetric up to rounding, so that row j has an entry (j, p) of inf where row p has one
    at j, and its pivot will be refused.)
    """
    top = matrix[p]
    for i in range(p + 1, len(matrix)):
        row = matrix[i]
        factor = row[p] / pivot
        row[p] = factor
        if factor != 0.0:
            for j in range(p + 1, len(matrix)):
                row[j] -= factor * top[j]
