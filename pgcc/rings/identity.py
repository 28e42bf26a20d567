"""Is a circuit multiaffine? A randomised identity test modulo random primes, on exact coefficients.

A polynomial is affine in z_i iff its second difference in z_i vanishes. This is tested for every value of a program and
every z_i, at random points modulo several random primes p. A nonzero difference vanishes in all rounds with a
probability that `chance_of_zero` bounds. So "it has a square" is certain, and "it has none" is wrong, for any value and
any variable, with at most the sum of these probabilities. Where formal powers are too high, the test shows nothing:
z^p = z modulo p, and 3^M = 1 if M is a multiple of p − 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pgcc.errors import SemanticsError
from pgcc.ir.circuit import Circuit
from pgcc.ir.domains import Domains
from pgcc.ir.facts import overlaps
from pgcc.ir.node import Node, Op
from pgcc.ir.scopes import members, size
from pgcc.kernels.policy import tier
from pgcc.kernels.simd import LANES
from pgcc.program.program import Program
from pgcc.rings.residues import MOST_CHANCE, ROUNDS, LongResidues, Residues, rounds_of_test

# The scopes of multiaffine sums are kept up to this total length. The degree of other sums is not capped.
_MOST_SCOPE = 10_000_000
# Variables that are tested in one walk over the instructions: each has two points of its own, and all share one point.
_VARIABLES = 63


@dataclass(frozen=True)
class Multiaffinity:
    """The result of the identity test.

    Attributes
    ----------
    instructions : bool array
        For every instruction, whether its value has no square of any variable.
    squared : list of int
        The columns of the variables that are squared in the root.
    chance : float
        A bound on the probability that a value has a square although the test found none.
    """

    instructions: np.ndarray
    squared: list[int]
    chance: float


def find_squares(program: Program, suspects: Sequence[int]) -> Multiaffinity:
    """Test every value of a program (as `lower` makes it) for squares of the suspect variables.

    Raises
    ------
    SemanticsError
        If no square is found, but degrees are so high that the test shows nothing.
    """
    affine, squared = np.ones(program.slots, bool), np.zeros(len(suspects), bool)
    step = max(1, min(_VARIABLES, len(suspects), 2**23 // max(1, program.slots)))  # bounds the memory
    columns = 2 * step + 1
    with tier(ROUNDS * len(program.args) * (2 * len(suspects) + 1)):
        chosen, chance = rounds_of_test(program, len(program.op) * len(suspects))
        for modular in chosen:
            base = modular.random(program.n_variables)
            work: np.ndarray = np.zeros((program.slots, columns + -columns % LANES), modular.kind)
            for first in range(0, len(suspects), step):
                some = slice(first, first + step)
                modular.run(_points(modular, base, list(suspects[some]), work.shape[1]), work)
                k = len(squared[some])
                second = work[:, :1] - 2 * work[:, 1 : 2 * k : 2] + work[:, 2 : 2 * k + 1 : 2]  # below 2⁵² in doubles
                found = second % modular.prime != 0
                affine &= ~found.any(axis=1)
                squared[some] |= found[program.value]
    if not squared.any() and chance > MOST_CHANCE:
        raise SemanticsError(
            "whether a variable occurs to a power above 1 cannot be tested: powers are nested too deeply, or their "
            "numbers are too long",
            advice="validate=False compiles it all the same",
        )
    return Multiaffinity(affine[program.target], np.array(suspects)[squared].tolist(), chance)


def squares_of(circuit: Circuit, lowered: tuple[Program, list[Node]]) -> Multiaffinity:
    """Test a circuit, given its program. Only variables that occur in two factors of a product can be squared."""
    column = {name: i for i, name in enumerate(circuit.variables)}
    return find_squares(lowered[0], [column[name] for name in overlaps(circuit)])


def refuse_squares(circuit: Circuit, found: Multiaffinity) -> None:
    """Raise an error that names a squared variable, if there is one."""
    if not found.squared:
        return
    name = circuit.variables[found.squared[0]]
    hint = (
        ""
        if circuit.facts.exact
        else " (some weights are floats, whose sums do not cancel exactly: write them as fractions or as text)"
    )
    raise SemanticsError(
        f"not a generating polynomial: {name!r} occurs to a power above 1{hint}",
        advice="validate=False compiles it all the same",
    )


def multiaffine_sums(
    circuit: Circuit, lowered: tuple[Program, list[Node]], found: Multiaffinity | None
) -> list[tuple[int, list[int]]]:
    """The instructions of sums known to be multiaffine although they are not decomposable, with their variables.

    found : None if the circuit was not tested.
    """
    if found is None:
        return []
    nodes = lowered[1]
    # by node, because the magnitude of a sum is truncated like its value
    affine = {nodes[i] for i in np.flatnonzero(found.instructions).tolist()}
    scopes = _sum_scopes(circuit, affine)
    return [(i, scopes[node]) for i, node in enumerate(nodes) if node in scopes]


def _sum_scopes(circuit: Circuit, some: set[Node]) -> dict[Node, list[int]]:
    """The scopes, as columns, of the sums among `some` nodes that have a product of entangled factors below them."""
    scopes = circuit.scopes
    column = {name: i for i, name in enumerate(circuit.variables)}
    columns = [column[name] for name in scopes.names]
    entangled: list[bool] = []  # by node: whether factors of a product below it share variables
    found: dict[Node, list[int]] = {}
    space = _MOST_SCOPE
    for i, node in enumerate(circuit.order):
        entangled.append(not scopes.disjoint[i] or any(entangled[c] for c in circuit._links[i]))
        if entangled[i] and node.op is Op.SUM and node in some:
            scope = scopes.distinct[scopes.of[i]]
            space -= size(scope)
            if space < 0:
                break
            found[node] = [columns[m] for m in members(scope)]
    return found


def find_mixed(circuit: Circuit, program: Program) -> tuple[str | None, float]:
    """A variable with states of which some term has not exactly one column; and a bound on the chance of missing one.

    Every term has one column of each block iff g(λ_b·z_c: c in b) = Π λ_b · g(z), as polynomials in z and in the λ_b.

    >>> import pgcc
    >>> from pgcc.program.lower import lower
    >>> both = pgcc.parse('"w=a"*"w=b"/2 + "w=c"/2').with_states({"w": ["a", "b", "c"]})
    >>> find_mixed(both, lower(both))
    ('w', 0.0)
    """
    domains = circuit.domains or Domains({})
    blocks: dict[str, list[int]] = {}
    for column, name in domains.unit.items():
        blocks.setdefault(name, []).append(domains.at[column])
    with tier(2 * ROUNDS * LANES * len(program.args)):
        # The difference has twice the degree of g, and each round misses it with twice the probability.
        mixed, chance = _is_mixed(program, list(blocks.values()))
        if mixed:
            *others, last = blocks
            return next((one for one in others if _is_mixed(program, [blocks[one]])[0]), last), 0.0
    return None, min(1.0, 2**ROUNDS * chance)


def _is_mixed(program: Program, blocks: list[list[int]]) -> tuple[bool, float]:
    """Whether a term has not exactly one column of each block."""
    chosen, chance = rounds_of_test(program, 1)
    for modular in chosen:
        points = np.repeat(modular.random(program.n_variables)[:, None], LANES, axis=1)
        factor = 1
        for block, by in zip(blocks, modular.random(len(blocks)).tolist(), strict=True):
            factor = factor * int(by) % modular.prime
            for column in block:
                points[column, 1] = int(points[column, 0]) * int(by) % modular.prime
        work: np.ndarray = np.zeros((program.slots, LANES), modular.kind)
        modular.run(points, work)
        value, scaled = work[program.value, :2].tolist()
        if (int(scaled) - factor * int(value)) % modular.prime:
            return True, 0.0
    return False, chance


def refuse_mixed(circuit: Circuit, program: Program) -> None:
    """Raise an error that names a variable with states that is not in exactly one, if there is one."""
    name, chance = find_mixed(circuit, program)
    if name is not None or chance > MOST_CHANCE:
        which = "whether every variable" if name is None else repr(name)
        claim = "is in exactly one state cannot be tested" if name is None else "is not always in exactly one state"
        raise SemanticsError(
            f"{which} {claim}: terms of the polynomial may have several, or none",
            advice="validate=False compiles it all the same",
        )


def _points(modular: Residues | LongResidues, base: np.ndarray, variables: list[int], columns: int) -> np.ndarray:
    """Column 0 is the base; columns 2j + 1 and 2j + 2 are one and two steps away from it in variable j."""
    points = np.repeat(base[:, None], columns, axis=1)
    steps, at = modular.random(len(variables)), 2 * np.arange(len(variables))
    for k in (1, 2):
        points[variables, at + k] = (base[variables] + k * steps) % modular.prime
    return points
