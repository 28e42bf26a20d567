"""Exact evaluation: a circuit in balls (midpoint ± radius, of any precision) and in rationals, by python-flint.

    module              what is in it
    precision           flint's working precision, higher and higher ones, and balls as doubles with bounds
    balls               numbers and matrices as balls; determinants; whether a matrix is definite
    ball_coefficients   one coefficient of det(P + s·Q), in balls
    bounded             exact numbers for passes, which do not become enormous
    pencil              determinants over either ring
    tape                the nodes of a circuit with numbers in a ring, and the one walk over them

Two other evaluators share no code with this one on purpose: `pgcc.ir.interpret`, the specification, and
`pgcc.validity.proof`, the checker of proofs.
"""
