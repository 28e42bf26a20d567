"""Random circuits of a wanted size, built straight from nodes."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from pgcc.collector import collector_paused
from pgcc.ir.circuit import Circuit, power_node
from pgcc.ir.node import ONE, Node, product, var, weighted_sum

FAN_IN = 4  # terms of a sum; half as many in circuits that would have few sums per region


def random_circuit(edges: int, variables: int, seed: int = 0, signed: bool = False, shared: float = 0.25) -> Circuit:
    """A decomposable circuit of about `edges` edges over a random tree of the variables.

    Every region of the tree (a set of variables) has as many weighted sums as the size asks for; a sum adds products of
    one node from each half of its region, like the circuits of PSDDs and region graphs.

    Parameters
    ----------
    edges, variables : int
    seed : int
    signed : bool
        Give a tenth of the terms a negative weight (then it is a polynomial, seldom a distribution).
    shared : float
        Share of the terms that use a product which another sum of the region uses too.
    """
    rng = np.random.default_rng(seed)
    fan_in, width = _shape(edges, variables, shared)
    names = [f"x{i + 1}" for i in range(variables)]
    with collector_paused():
        regions = [_leaves(name, width, rng) for name in names]
        for left, right in _random_tree(variables, rng):
            last = len(regions) == 2 * variables - 2
            sums = 1 if last else width
            terms = fan_in * width if last else fan_in
            regions.append(_sums(regions[left], regions[right], sums, terms, shared, signed, rng))
        return Circuit(regions[-1][0], names)


def variables_for(edges: int) -> int:
    """How many variables a benchmark gives a circuit of so many edges."""
    return max(5, round(edges**0.5)) if edges < 1_000_000 else 1000


def _shape(edges: int, variables: int, shared: float) -> tuple[int, int]:
    """Terms per sum and sums per region. A term is 3 edges, and a shared one 1; a leaf a·z + b is 2."""
    for fan_in in (FAN_IN, FAN_IN // 2):
        per_width = (variables - 1) * fan_in * (3 - 2 * shared) + 2 * variables
        width = max(2, round(edges / per_width))
        if width >= FAN_IN:
            break
    return fan_in, width


def _random_tree(leaves: int, rng: np.random.Generator) -> list[tuple[int, int]]:
    """Pairs to join, a new number for each join; neighbours only, so that regions are intervals of a random order."""
    row = rng.permutation(leaves).tolist()
    pairs = []
    while len(row) > 1:
        joined = []
        at = 0
        while at < len(row):
            if at + 1 < len(row) and (rng.random() < 0.8 or len(row) == 2):
                pairs.append((row[at], row[at + 1]))
                joined.append(leaves + len(pairs) - 1)
                at += 2
            else:
                joined.append(row[at])
                at += 1
        row = joined
    return pairs


def _leaves(name: str, width: int, rng: np.random.Generator) -> list[Node]:
    z = var(name)
    return [weighted_sum((p, 1.0 - p), (z, ONE)) for p in rng.uniform(0.05, 0.95, width).tolist()]


def _sums(
    left: list[Node], right: list[Node], sums: int, terms: int, shared: float, signed: bool, rng: np.random.Generator
) -> list[Node]:
    """Weighted sums of products of a node on the left and one on the right."""
    total = sums * terms
    pool = max(min(terms, len(left) * len(right)), round(total * (1.0 - shared)))
    # Every node of both halves is used as evenly as a shuffle makes it.
    lefts = rng.permutation(np.arange(pool) % len(left)).tolist()
    rights = rng.permutation(np.arange(pool) % len(right)).tolist()
    products = [product((left[i], right[j])) for i, j in zip(lefts, rights, strict=True)]
    chosen = (np.arange(total) % pool).reshape(sums, terms).tolist()
    weights = rng.dirichlet(np.ones(terms), sums) + 1e-3
    if signed:
        weights = np.where(rng.random(weights.shape) < 0.1, -weights, weights)
    rows = zip(weights.tolist(), chosen, strict=True)
    return [weighted_sum(w, [products[i] for i in row]) for w, row in rows]


def independent(variables: int, p: float = 0.3) -> Circuit:
    """Π (p·z_i + 1 − p)"""
    names = [f"x{i + 1}" for i in range(variables)]
    with collector_paused():
        return Circuit(product([weighted_sum((p, 1.0 - p), (var(name), ONE)) for name in names]), names)


def cancelling(factors: int = 64, seed: int = 0) -> tuple[Circuit, list[Fraction]]:
    """Π (p_i·z_i + 1 − p_i) as a balanced tree in which x·y stands as ((x + y)² − (x − y)²)/4; and the p_i."""
    rng = np.random.default_rng(seed)
    chances = [Fraction(int(p), 1000) for p in rng.integers(1, 1000, factors)]
    names = [f"x{i + 1}" for i in range(factors)]
    row = [weighted_sum((p, 1 - p), (var(name), ONE)) for p, name in zip(chances, names, strict=True)]
    while len(row) > 1:
        row = [_times(row[i], row[i + 1]) for i in range(0, len(row), 2)]
    return Circuit(row[0], names), chances


def _times(x: Node, y: Node) -> Node:
    plus, minus = weighted_sum((1, 1), (x, y)), weighted_sum((1, -1), (x, y))
    quarter = Fraction(1, 4)
    return weighted_sum((quarter, -quarter), (power_node(plus, 2), power_node(minus, 2)))


def random_evidence(rows: int, variables: int, seed: int = 0, free: float = 1 / 3) -> np.ndarray:
    """int8 rows of 1, 0 and, for a share of the entries, −1."""
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 2, (rows, variables), np.int8)
    bits[rng.random((rows, variables), np.float32) < free] = -1
    return bits
