"""Random circuits of variables with states, each with the table of all its probabilities, listed by the interpreter."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

import pgcc
from pgcc.frontend.elimination import Table, eliminate
from pgcc.ir.circuit import Circuit
from pgcc.ir.domains import Domains
from pgcc.ir.node import product as product_node
from pgcc.ir.node import var, weighted_sum
from pgcc.testing import brute_force, makers

# What states are called: labels that look like other things among them.
LABELS: list[tuple] = [
    (0, 1),
    (0, 1),
    ("no", "yes"),
    ("yes", "no"),
    ("M", "F"),
    ("False", "True"),
    ("sun", "rain", "snow"),
    ("a=b", "x, y", "é", 'q"u'),
    ("1", "-1", "?"),
    ("nan", "None", "NA", "", "null"),
    (3, 1, 2),
    (-1, 0, 1),
    (0.5, 2, 1e-3),
    (0.0, 1.0),
    (10, 20),
    ("0", "1"),
    ("low", "mid", "high", "top", "over"),
    ("only",),
    ("{", "}", "'", "!="),
    (True, False),
    ("Yes", "No", "maybe"),
    ("1", "2", "3"),
    ("1", "2+"),
    ("2", "1.0", "x", "-1"),
    (1, "a", "1.5"),
    ("0", "no"),
    ("01", "1"),
]


def picked_domains(rng: np.random.Generator, most: int = 4, columns_at_most: int = 11) -> Domains:
    """A few variables with states, not all of them plain."""
    while True:
        n = int(rng.integers(1, most + 1))
        chosen = [LABELS[int(rng.integers(len(LABELS)))] for _ in range(n)]
        names = [("w", "v x", "u", "t=", "s", "r")[i] for i in range(n)]
        columns = sum(len(states) if len(states) > 2 else 1 for states in chosen)  # brute force lists 2**columns
        if columns <= columns_at_most and any(states != (0, 1) for states in chosen):
            plain = [name for name, states in zip(names, chosen, strict=True) if states == (0, 1)]
            domains = Domains.of(dict(zip(names, chosen, strict=True)))
            return Domains({n: Domains.plain([n])[n] if n in plain else d for n, d in domains.items()})


class StateTable:
    """The weight of every assignment, as a tuple of labels in the order of the variables."""

    def __init__(self, domains: Domains, weights: Mapping[tuple, Fraction]):
        self.domains, self.names = domains, list(domains)
        self.weights = dict(weights)

    @classmethod
    def of(cls, circuit: Circuit) -> StateTable:
        domains = circuit.domains or Domains.plain(circuit.variables)
        left = dict(brute_force(circuit))
        weights = {}
        for states in itertools.product(*(range(len(d.states)) for d in domains.values())):
            columns = frozenset(d.columns[i] for d, i in zip(domains.values(), states, strict=True)) - {None}
            labels = tuple(d.states[i] for d, i in zip(domains.values(), states, strict=True))
            weights[labels] = left.pop(columns)
        assert not any(left.values()), "not one-hot"
        return cls(domains, weights)

    @property
    def total(self) -> Fraction:
        return sum(self.weights.values(), Fraction(0))

    def weigh(self, event: Mapping[str, Any]) -> StateTable:
        """The weights given evidence: a label, a set of labels, or likelihoods by label, for each variable."""
        return StateTable(self.domains, {a: w * self.likelihood(a, event) for a, w in self.weights.items()})

    def likelihood(self, assignment: tuple, event: Mapping[str, Any]) -> Fraction:
        found = Fraction(1)
        for name, value in event.items():
            label = assignment[self.names.index(name)]
            if isinstance(value, Mapping):
                found *= Fraction(value.get(label, 0))
            elif isinstance(value, (set, frozenset)):
                found *= int(label in value)
            else:
                found *= int(label == value)
        return found

    def prob(self, event: Mapping[str, Any]) -> Fraction:
        return self.weigh(event).total / self.total

    def marginal(self, name: str, label: Any) -> Fraction:
        return self.prob({name: {label}})

    def counts(self, over: Mapping[str, Any]) -> list[Fraction]:
        """Pr(|…| = k): how many of these variables are in these states."""
        found = [Fraction(0)] * (len(over) + 1)
        for a, w in self.weights.items():
            found[sum(self.likelihood(a, {n: v}) == 1 for n, v in over.items())] += w / self.total
        return found

    def of_size(self, over: Mapping[str, Any], size: int) -> StateTable:
        kept = {
            a: w * (sum(self.likelihood(a, {n: v}) == 1 for n, v in over.items()) == size)
            for a, w in self.weights.items()
        }
        return StateTable(self.domains, kept)

    def event(self, rng: np.random.Generator, kinds: str = "ls", density: float = 0.5) -> dict[str, Any]:
        """Random evidence: labels (l), sets of labels (s) and likelihoods (m, for 'maybe')."""
        found: dict[str, Any] = {}
        for name, domain in self.domains.items():
            if rng.random() > density:
                continue
            kind = kinds[int(rng.integers(len(kinds)))]
            states = list(domain.states)
            if kind == "l":
                found[name] = states[int(rng.integers(len(states)))]
            elif kind == "s" and not domain.is_plain:
                found[name] = {s for s in states if rng.random() < 0.6} or {states[0]}
            elif kind == "m" and len(states) > 1:
                numbers = rng.choice([0.0, 0.25, 1.0, 0.7, 3.0, 1e-300, 1e200], len(states))
                numbers[int(rng.integers(len(states)))] = 0.5
                found[name] = dict(zip(states, numbers.tolist(), strict=True))
        return found

    def evidences(self, rng: np.random.Generator, count: int, kinds: str = "ls") -> Iterator[dict[str, Any]]:
        """Pieces of evidence that are possible."""
        for density in np.linspace(0, 1, count):
            event = self.event(rng, kinds, density)
            if self.prob(event):
                yield event


# -- circuits --------------------------------------------------------------------------------------------------------


def leaf(rng: np.random.Generator, domains: Domains, name: str, zeros: float = 0.2) -> pgcc.pc.PC:
    domain = domains[name]
    weights = rng.integers(1, 9, len(domain.states)) * (rng.random(len(domain.states)) > zeros)
    weights[int(rng.integers(len(weights)))] += 1
    if domain.is_plain:
        return pgcc.pc.bernoulli(name, Fraction(int(weights[1]), int(weights.sum())))
    shares = [Fraction(int(w), int(weights.sum())) for w in weights]
    return pgcc.pc.categorical(name, dict(zip(domain.states, shares, strict=True)))


def random_smooth(rng: np.random.Generator, domains: Domains, depth: int = 3) -> pgcc.pc.PC:
    """A smooth, decomposable sum of products of categorical leaves."""
    names = list(domains)
    if len(names) == 1:
        return leaf(rng, domains, names[0])
    terms, count = [], int(rng.integers(1, 4)) if depth else 1
    for _ in range(count):
        cut = int(rng.integers(1, len(names)))
        shuffled = [names[i] for i in rng.permutation(len(names))]
        parts = [Domains({n: domains[n] for n in names if n in some}) for some in (shuffled[:cut], shuffled[cut:])]
        terms.append(random_smooth(rng, parts[0], depth - 1) * random_smooth(rng, parts[1], depth - 1))
    weights = rng.integers(1, 9, count)
    return pgcc.pc.mixture([Fraction(int(w), int(weights.sum())) for w in weights], terms)


def smooth(rng: np.random.Generator) -> Circuit:
    """Sums of products of categorical leaves."""
    return random_smooth(rng, picked_domains(rng)).to_pgc()


def eliminated(rng: np.random.Generator) -> Circuit:
    """The product of random tables, eliminated."""
    while True:
        domains, factors = picked_domains(rng), []
        sizes = [len(d.states) for d in domains.values()]
        for v in range(len(sizes)):
            scope = sorted({v, *rng.integers(0, len(sizes), 2).tolist()})
            table = rng.choice([0.25, 0.5, 1.0, 3.0, rng.random()], [sizes[i] for i in scope])
            table[rng.random(table.shape) < 0.2] = 0
            factors.append(Table(tuple(scope), table))
        circuit = eliminate(domains, factors)
        circuit = circuit.to_pgc() if isinstance(circuit, pgcc.pc.PC) else circuit
        if StateTable.of(circuit).total:
            return circuit


def monomials(rng: np.random.Generator) -> Circuit:
    """A sum of monomials, some of whose columns never appear."""
    domains = picked_domains(rng)
    terms = []
    for states in itertools.product(*(range(len(d.states)) for d in domains.values())):
        if rng.random() < 0.6 or not terms:
            columns = [d.columns[i] for d, i in zip(domains.values(), states, strict=True)]
            terms.append(product_node([var(c) for c in columns if c]))
    return Circuit(weighted_sum([Fraction(int(rng.integers(1, 20)), 7) for _ in terms], terms), domains)


def cancelling(rng: np.random.Generator) -> Circuit:
    """f + h − h′, where h has several states of one variable in, and h′ is h written differently."""
    circuit = monomials(rng)
    columns = [var(c) for c in circuit.variables]
    both = product_node([columns[i] for i in rng.permutation(len(columns))[:3].tolist()])
    flat = weighted_sum([2, 2], [product_node([both, const_one()]), both])
    again = weighted_sum([4], [both])
    return Circuit(weighted_sum([1, 3, -3], [circuit.root, flat, again]), circuit.domains)


def const_one() -> Any:
    return pgcc.parse("1").root


def entangled(rng: np.random.Generator) -> Circuit:
    """Squares that cancel."""
    circuit = (smooth if rng.random() < 0.5 else monomials)(rng)
    if not circuit.variables:
        return circuit
    return Circuit(makers.entangle(circuit.root, lambda k: int(rng.integers(k))), circuit.domains)


def mixed(rng: np.random.Generator) -> Circuit:
    """Mixtures and products of others."""
    domains = picked_domains(rng, 3, 7)
    a, b = (random_smooth(rng, domains).to_pgc() for _ in range(2))
    both = pgcc.mixture(["0.25", "0.75"], [a, b])
    other = pgcc.pc.categorical("other", {"x": 1, "y": 2, "z": 3, 4: 5}).to_pgc()
    return pgcc.product([both, other]) if StateTable.of(both).total and len(domains) < 4 else both


def conditioned(rng: np.random.Generator) -> Circuit:
    """What is left given evidence."""
    while True:
        circuit = [smooth, eliminated, monomials, entangled][int(rng.integers(4))](rng)
        table = StateTable.of(circuit)
        for event in table.evidences(rng, 3):
            left = circuit.observe(event)
            if left.variables:
                return left


def floats(rng: np.random.Generator) -> Circuit:
    """Floats of any size, and probabilities near 0."""
    circuit = random_smooth(rng, picked_domains(rng)).to_pgc()
    return circuit.tilt({c: float(10.0 ** rng.integers(-40, 41)) for c in circuit.variables})


KINDS = [smooth, eliminated, monomials, cancelling, entangled, mixed, conditioned, floats]


def cases(kind: Any, count: int, seed: int = 0) -> Iterator[tuple[np.random.Generator, Circuit, StateTable]]:
    for i in range(count):
        rng = np.random.default_rng([seed, i, *kind.__name__.encode()])
        circuit = kind(rng)
        yield rng, circuit, StateTable.of(circuit)
