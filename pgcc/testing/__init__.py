"""Tools for testing code built on pgcc: strategies, assertions, random circuits, and slow but exact answers.

- `hypothesis` strategies, which shrink: `polynomials`, `circuits`, `pcs`, `kernels`, `graphs`, `evidence`.
- Assertions: `assert_valid`, `assert_same_distribution`, `assert_laws`.
- Fast makers for bulk tests, from a numpy Generator: `random_circuit`, `random_det`, `random_pc`, `random_evidence`.
- Answers by definition: `brute_force`, `oracle_probability`.
"""

from pgcc.ir.interpret import probability as oracle_probability
from pgcc.testing.assertions import assert_laws, assert_same_distribution, assert_valid
from pgcc.testing.makers import (
    DET_KINDS,
    random_circuit,
    random_det,
    random_evidence,
    random_pc,
)
from pgcc.testing.makers import entangle as entangle
from pgcc.testing.makers import polarize as polarize
from pgcc.testing.oracle import brute_force
from pgcc.testing.strategies import KERNEL_KINDS, circuits, evidence, graphs, kernels, pcs, polynomials

__all__ = [
    "DET_KINDS",
    "KERNEL_KINDS",
    "assert_laws",
    "assert_same_distribution",
    "assert_valid",
    "brute_force",
    "circuits",
    "evidence",
    "graphs",
    "kernels",
    "oracle_probability",
    "pcs",
    "polynomials",
    "random_circuit",
    "random_det",
    "random_evidence",
    "random_pc",
]
