"""Determinants below the IR: values with error bounds, derivatives, counts, samples and modes.

    values       `staged` runs programs with determinants. `forms` chooses the ways to compute each, at `bases` that are
                 known to more digits than doubles have (`large_definite`, `elementary`, `slices` for large matrices).
    derivatives  `reverse_pass`, in float64 with bounds; `cofactors`, for training
    counts       `poisson_binomial`, by eigenvalues (`spectrum`); in exact numbers, `pgcc.exact.pencil`
    samples      `samplers` and `vectors` prepare `sampling_tables`
    modes        `mode/`

The loops over numbers are in `kernels/`: `plan` says what all of them know about a determinant.
"""
