"""Random distributions of every family with all their probabilities, listed without the circuit where they can be."""

import os
from fractions import Fraction
from itertools import chain, combinations

import flint
import networkx as nx
import numpy as np
from how_many import some

import pgcc
from pgcc.testing import brute_force, random_circuit, random_pc

# How many of each family are tried; PGCC_MANY=500 for a very thorough run.
MANY = int(os.environ.get("PGCC_MANY", some(10)))


def subsets(names):
    return map(frozenset, chain.from_iterable(combinations(names, k) for k in range(len(names) + 1)))


def names_of(n, letter="x"):
    return [f"{letter}{i}" for i in range(1, n + 1)]


def minor(matrix, rows):
    """A principal minor, exactly."""
    numbers = [[Fraction(matrix[i][j]) for j in rows] for i in rows]
    found = flint.fmpq_mat([[flint.fmpq(x.numerator, x.denominator) for x in row] for row in numbers]).det()
    return Fraction(int(found.p), int(found.q))


def dpp_table(L, names):
    """det(L_S) for every set S."""
    place = {name: i for i, name in enumerate(names)}
    return {s: minor(L, sorted(place[name] for name in s)) if s else Fraction(1) for s in subsets(names)}


def kernel_table(K, names):
    """Pr(S) = |det(K − I_{not S})|."""
    place, table = {name: i for i, name in enumerate(names)}, {}
    for s in subsets(names):
        moved = [[Fraction(x) for x in row] for row in K]
        for name in set(names) - s:
            moved[place[name]][place[name]] -= 1
        table[s] = abs(minor(moved, range(len(names))))
    return table


def tree_table(graph, circuit):
    """The product of its weights for every set of edges that is a spanning tree."""
    table = {}
    for s in subsets(circuit.variables):
        edges = [tuple(map(int, name.split("-"))) for name in s]
        tree = nx.Graph(edges)
        spans = len(edges) == len(graph) - 1 == len(tree) - 1 and nx.is_connected(tree)
        table[s] = Fraction(int(np.prod([graph.edges[e]["weight"] for e in edges]))) if spans else Fraction(0)
    return table


def normalized(table):
    total = sum(table.values())
    return {s: p / total for s, p in table.items()}


def gram(rng, n, rank):
    B = rng.integers(-3, 4, (n, rank))
    return B, (B @ B.T).tolist()


def monotone(rng):
    return by_listing(random_circuit(rng, n=int(rng.integers(1, 9)), negative=False))


def floats(rng):
    return by_listing(random_circuit(rng, n=int(rng.integers(1, 9)), negative=False, exact=False))


def entangled(rng):
    return by_listing(random_circuit(rng, n=int(rng.integers(1, 6)), negative=False, decomposable=False))


def probabilistic_circuit(rng):
    return by_listing(random_pc(rng, n=int(rng.integers(1, 8))).to_pgc())


def by_listing(circuit):
    return circuit, brute_force(circuit)


def signed(rng):
    """c·Π(1 + z) − g, with c the largest coefficient of g: never negative, and 0 somewhere."""
    minus, table = by_listing(random_circuit(rng, n=int(rng.integers(2, 8)), negative=False))
    top = max(table.values())
    plus = pgcc.product([pgcc.parse(f"{name} + 1") for name in minus.variables])
    return top * plus - minus, {s: top - p for s, p in table.items()}


def dpp_by_l(rng):
    n = int(rng.integers(1, 8))
    L = gram(rng, n, int(rng.integers(1, 8)))[1]
    return pgcc.dpp(L=L), dpp_table(L, names_of(n))


def dpp_by_k(rng):
    """K with eigenvalues in [0, 1], some of them as near to 0 or 1 as floats allow."""
    n = int(rng.integers(1, 7))
    Q, _ = np.linalg.qr(rng.standard_normal((n, n)))
    K = (Q * np.where(rng.random(n) < 0.3, rng.integers(0, 2, n) * 0.999 + 0.0005, rng.random(n))) @ Q.T
    K = (K + K.T) / 2
    return pgcc.dpp(K=K), kernel_table(K.tolist(), names_of(n))


def dpp_by_factor(rng):
    B, L = gram(rng, int(rng.integers(1, 8)), 2)
    return pgcc.dpp(factor=B), dpp_table(L, names_of(len(L)))


def nonsymmetric_dpp(rng):
    n = int(rng.integers(1, 7))
    A = rng.integers(-3, 4, (n, n))
    L = (np.array(gram(rng, n, n)[1]) + A - A.T).tolist()
    return pgcc.dpp(L=L, symmetric=False), dpp_table(L, names_of(n))


def k_dpp(rng):
    L, k = gram(rng, 5, 4)[1], int(rng.integers(0, 4))
    table = {s: p if len(s) == k else Fraction(0) for s, p in dpp_table(L, names_of(5)).items()}
    return pgcc.dpp(L=L).observe(size=k), table


def tree(rng):
    graph = nx.gnp_random_graph(int(rng.integers(2, 6)), 0.6, seed=int(rng.integers(1 << 30)))
    graph.add_edges_from(zip(range(len(graph) - 1), range(1, len(graph)), strict=True))
    for edge in graph.edges.values():
        edge["weight"] = int(rng.integers(1, 6))
    circuit = pgcc.spanning_tree(graph)
    return circuit, tree_table(graph, circuit)


def mixture(rng):
    kernels = [gram(rng, 4, rank)[1] for rank in (3, 4)]
    tables = [normalized(dpp_table(L, names_of(4))) for L in kernels]
    circuit = pgcc.mixture([Fraction(1, 4), Fraction(3, 4)], [pgcc.dpp(L=L) for L in kernels])
    return circuit, {s: tables[0][s] / 4 + 3 * tables[1][s] / 4 for s in tables[0]}


def det_pgc(rng):
    """Groups of one or two variables; a set has the probability of its groups times those of its parts in them."""
    names = names_of(int(rng.integers(1, 7)), "z")
    groups = [names[i : i + 2] for i in range(0, len(names), 2)]
    leaves, circuits = [], []
    for group in groups:
        sets = [s for s in subsets(group) if s]
        weights = rng.multinomial(8, np.ones(len(sets)) / len(sets)).tolist()
        leaves.append({s: Fraction(w, 8) for s, w in zip(sets, weights, strict=True)})
        terms = [f"{w}/8*" + "*".join(s) for s, w in zip(sets, weights, strict=True) if w]
        circuits.append(pgcc.parse(" + ".join(terms)))
    L = gram(rng, len(groups), len(groups))[1]
    by_groups = dpp_table(L, range(len(groups)))
    table = {}
    for s in subsets(names):
        parts = {i: s & frozenset(group) for i, group in enumerate(groups) if s & frozenset(group)}
        inside = [leaves[i].get(part, Fraction(0)) for i, part in parts.items()]
        table[s] = by_groups[frozenset(parts)] * Fraction(np.prod(inside) if inside else 1)
    return pgcc.det_pgc(L, circuits), table


FAMILIES = {
    make.__name__: make
    for make in (
        *(monotone, floats, entangled, probabilistic_circuit, signed, dpp_by_l, dpp_by_k, dpp_by_factor),
        *(nonsymmetric_dpp, k_dpp, tree, mixture, det_pgc),
    )
}


class Table:
    """All probabilities of a small distribution, as exact fractions."""

    def __init__(self, variables, table):
        self.variables, self.p = variables, normalized(table)

    def given(self, evidence):
        """The sets that agree with the evidence, with their probabilities (not divided)."""
        seen = evidence.items()
        return {s: p for s, p in self.p.items() if all((name in s) == bool(value) for name, value in seen)}

    def prob(self, evidence):
        return sum(self.given(evidence).values(), Fraction(0))

    def expectation(self, evidence, function):
        """E[function(set) | evidence]"""
        sets = self.given(evidence)
        return sum((p * function(s) for s, p in sets.items()), Fraction(0)) / sum(sets.values())


def cases(family, many=None, seed=0):
    """(circuit, table, evidence) of random members of a family; the evidence is possible more often than not."""
    rng = np.random.default_rng([seed, *family.encode()])
    for _ in range(MANY if many is None else some(many)):
        circuit, raw = FAMILIES[family](rng)
        if sum(raw.values()) <= 0:
            continue
        table = Table(circuit.variables, raw)
        shuffled = [str(name) for name in rng.permutation(circuit.variables)]
        names = shuffled[: rng.integers(0, len(shuffled) + 1)]
        weights = np.array([float(p) for p in table.p.values()])
        whole = list(table.p)[rng.choice(len(weights), p=weights / weights.sum())]
        drawn = rng.random() < 0.8
        yield circuit, table, {name: int(name in whole) if drawn else int(rng.integers(2)) for name in names}
