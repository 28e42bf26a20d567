"""Cases that are made to break bounds. Every generator takes a `Picker` and returns a `Case`; its docstring says why.

Distributions have 1 to 7 variables, so that all their coefficients can be listed exactly. Unless a generator says that
what it makes need not be one, its coefficients are not negative, by construction.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import networkx as nx
import numpy as np

import pgcc
from pgcc.ir.circuit import Circuit
from pgcc.ir.domains import Domain, Domains
from pgcc.ir.node import ONE, Node, Op, const, det, product, rebuild, var, weighted_sum
from pgcc.testing import makers, random_circuit, random_pc

from .oracle import ByPoints, Independent, Table, minor, rational
from .states import picked_domains

F = Fraction
Number = int | float | Fraction


@dataclass
class Case:
    """A circuit and what is known of it.

    table : exact, of the raw polynomial (up to a factor, where the circuit was normalised)
    rounded : a relative error of the probabilities that making the circuit is allowed (mixtures of floats round totals)
    """

    circuit: Circuit
    table: Table
    rounded: float = 0.0
    raw: bool = True  # whether the table is that of the circuit's own polynomial, not only of its distribution
    seed: Any = field(default=None, repr=False)


class Picker:
    """Random choices, all from one seed."""

    def __init__(self, seed: Any):
        self.rng = np.random.default_rng(seed)

    def __call__(self, n: int) -> int:
        return int(self.rng.integers(n))

    def between(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high + 1))

    def chance(self, p: float) -> bool:
        return bool(self.rng.random() < p)

    def of(self, things: Sequence) -> Any:
        return things[self(len(things))]

    def fraction(self, most: int = 40) -> F:
        return F(self.between(1, most), self.between(1, most))

    def scale(self, decades: int) -> F:
        return F(10) ** self.between(-decades, decades)

    def number(self, decades: int = 0) -> Number:
        """A positive number, exact or a float."""
        x = self.fraction() * self.scale(decades)
        near = float(x)
        return near if self.chance(0.4) and 1e-300 < near < 1e300 else x

    def names(self, least: int, most: int, letter: str = "z") -> list[str]:
        return [f"{letter}{i}" for i in range(self.between(least, most))]

    def cut(self, things: list) -> tuple[list, list]:
        """Two parts, none of them empty."""
        shuffled = [things[i] for i in self.rng.permutation(len(things))]
        middle = self.between(1, len(things) - 1)
        return shuffled[:middle], shuffled[middle:]


def _case(root: Node | Circuit, names: Sequence[str] | None = None) -> Case:
    circuit = root if isinstance(root, Circuit) else Circuit(root, names)
    return Case(circuit, Table.of(circuit))


def _affine(pick: Picker, name: str, decades: int, shift: Number = 1) -> Node:
    """a·z + b, both of scale `shift` and then up to so many decades apart."""
    a, b = (shift * pick.fraction() * pick.scale(decades) for _ in range(2))
    return weighted_sum([a, b], [var(name), const(1)])


def _tree(pick: Picker, names: list[str], decades: int, shift: Number = 1) -> Node:
    """A decomposable circuit over these names: sums of products of parts, whose scales differ and mostly compensate."""
    if len(names) == 1:
        return _affine(pick, names[0], min(decades, 3), shift)
    terms, weights = [], []
    for _ in range(pick.between(1, 3)):
        a, b = pick.cut(names)
        gap = pick.scale(decades)
        rest = pick.scale(2)
        terms.append(product([_tree(pick, a, decades // 2, gap), _tree(pick, b, decades // 2, shift * rest / gap)]))
        weights.append(pick.number(1))
    return terms[0] if len(terms) == 1 and pick.chance(0.5) else weighted_sum(weights, terms)


# -- circuits without determinants -----------------------------------------------------------------------------------


def scales(pick: Picker) -> Case:
    """Unnormalised weights across 1e±300 which compensate: in another order of multiplication they underflow."""
    names = pick.names(2, 6)
    return _case(_tree(pick, names, pick.of([60, 120, 180, 280])), names)


def flows_order(pick: Picker) -> Case:
    """A tiny factor beside products of tiny and huge ones: adjoint·x·y·z underflows where adjoint·(x·y·z) does not."""
    names = pick.names(3, 6)
    outer, inner = names[0], names[1:]
    k = pick.of([100, 150, 160, 180, 200])
    terms = []
    for _ in range(pick.between(1, 3)):
        exponents = [k] + [0] * (len(inner) - 1)
        if len(inner) > 2 and pick.chance(0.7):
            exponents[1:3] = [k, -k]
        shuffled = [exponents[i] for i in pick.rng.permutation(len(inner))]
        terms.append(product([_affine(pick, n, 0, F(10) ** e) for n, e in zip(inner, shuffled, strict=True)]))
    body = weighted_sum([pick.of([F(1), pick.fraction()]) for _ in terms], terms)
    return _case(product([_affine(pick, outer, 0, F(10) ** -k), body]), names)


def subnormal(pick: Picker) -> Case:
    """Leaves and weights near 1e-320 beside others near 1e300."""
    names = pick.names(2, 5)
    tiny, huge = F(1, 10 ** pick.between(300, 323)), F(10) ** pick.between(280, 305)
    factors = []
    for i, name in enumerate(names):
        shift = (tiny, huge, F(1))[pick(3)] if i > 1 else (tiny, huge)[i]
        a, b = pick.fraction() * shift, pick.fraction() * (shift if pick.chance(0.7) else shift * pick.scale(3))
        factors.append(weighted_sum([a, b], [var(name), const(1)]))
    whole = product(factors)
    if pick.chance(0.6):
        part = product([_affine(pick, name, 2) for name in names])
        whole = weighted_sum([pick.fraction() * pick.of([F(1), tiny]), pick.of([1, tiny])], [whole, part])
    return _case(whole, names)


def cancelling(pick: Picker) -> Case:
    """A small distribution plus W·h − W·h′, where h′ is h written differently: tens to hundreds of bits cancel."""
    names = pick.names(2, 5)
    keep = _tree(pick, names, 2)
    h = product([_affine(pick, name, 1) for name in names])
    wide = F(2) ** pick.between(10, 260) * pick.fraction()
    expanded = _expanded(Circuit(h, names))
    return _case(weighted_sum([1, wide, -wide], [keep, h, expanded]), names)


def _expanded(circuit: Circuit) -> Node:
    """The same polynomial as one sum of monomials."""
    table = Table.of(circuit)
    terms, weights = [], []
    for s in np.ndindex(*table.coefficients.shape):
        x = table.coefficients[s]
        if x:
            weights.append(F(int(x.p), int(x.q)))
            terms.append(product([var(n) for n, i in zip(circuit.variables, s, strict=True) if i]))
    return weighted_sum(weights, terms)


def nearly_zero(pick: Picker) -> Case:
    """(c + ε)·Π(1 + z) − g, where c is the largest coefficient of g: one coefficient nearly or exactly cancels."""
    minus = random_circuit(pick.rng, n=pick.between(2, 5), negative=False)
    table = Table.of(minus)
    top = max(table.coefficients.ravel())
    top = F(int(top.p), int(top.q)) * (1 + F(1, 2 ** pick.between(1, 120)) if pick.chance(0.7) else 1)
    plus = pgcc.product([pgcc.parse(f"{name} + 1") for name in minus.variables])
    return _case(top * plus - minus)


def entangled(pick: Picker) -> Case:
    """Squares that cancel, so that polynomials in t are needed."""
    base = random_circuit(pick.rng, n=pick.between(1, 5), negative=False, exact=True)
    return _case(makers.entangle(base.root, pick), base.variables)


def entangled_scales(pick: Picker) -> Case:
    """((x + y)² − (x − y)²)/4 with x and y of very different sizes, down to subnormal coefficients."""
    names = pick.names(2, 6)
    a, b = pick.cut(names)
    k = pick.of([0, 1, 4, 20, 100, 150])
    low = pick.of([F(1), F(1), F(10) ** -pick.between(290, 318)])
    x = product([_affine(pick, n, pick.of([0, 2, 6])) for n in a])
    y = product([_affine(pick, n, pick.of([0, 2, 6])) for n in b])
    y = weighted_sum([F(10) ** -k], [y]) if k else y
    body = makers.polarize(x, y)
    if pick.chance(0.5):
        keep = product([_affine(pick, n, 1) for n in names])
        body = weighted_sum([low * pick.fraction(), low * pick.fraction()], [body, keep])
    else:
        body = weighted_sum([low], [body])
    return _case(body, names)


def series_floor(pick: Picker) -> Case:
    """Products of long series near the smallest normal number: every one of their terms loses what underflows."""
    names = pick.names(4, 8)
    exponent, half = pick.between(306, 317), len(names) // 2
    cut = pick.between(100, 200)
    halves = [product([_affine(pick, n, 0) for n in part]) for part in (names[:half], names[half:])]
    first, second = (
        weighted_sum([F(10) ** -e * pick.fraction()], [h]) for e, h in zip((cut, exponent - cut), halves, strict=True)
    )
    if pick.chance(0.2):
        return _case(makers.polarize(first, second), names)
    if pick.chance(0.6):  # nothing but one product underflows
        sums = []
        for part, e in ((names[:half], cut), (names[half:], exponent - cut)):
            terms = [product([weighted_sum([_near(pick), _near(pick)], [var(n), ONE]) for n in part]) for _ in range(2)]
            sums.append(weighted_sum([_near(pick) * F(10) ** -e for _ in terms], terms))
        return _case(product(sums), names)
    one = weighted_sum([1, 1], [var(names[0]), const(1)])
    body = weighted_sum([1, -1], [product([first, second, one]), product([first, second, var(names[0])])])
    return _case(body, names)


def _near(pick: Picker) -> F:
    """A number near 1."""
    return F(pick.between(20, 60), pick.between(30, 50))


def shared_sums(pick: Picker) -> Case:
    """u + u, sums in sums, products by 1, zeros, lone children: what simplification rewrites, in several rounds."""
    names = pick.names(3, 6)
    p, q, rest = names[0], names[1], names[2:]
    u = weighted_sum([1, 1], [var(p), var(q)])
    head = weighted_sum([1, 1, 1], [u, u, const(1)])
    parts = [head]
    for name in rest:
        z1 = weighted_sum([1, 1], [var(name), const(1)])
        if pick.chance(0.6):
            parts.append(weighted_sum([1, -1], [product([z1, z1]), product([var(name), var(name)])]))
        else:
            parts.append(weighted_sum([pick.fraction(), 0, pick.fraction()], [z1, u, product([z1])]))
    if pick.chance(0.5):
        many = [product([var(n) for n, i in zip(rest, s, strict=True) if i]) for s in np.ndindex(*(2,) * len(rest))]
        filled = weighted_sum([pick.fraction() for _ in many], many)
        parts = [head, *parts[1 : 1 + pick(2)]] if len(rest) > 1 else parts
        used = {n.name for part in parts for n in Circuit(part).order if n.op is Op.VAR}
        left = [n for n in rest if n not in used]
        if left:
            parts.append(
                _expanded(Circuit(product([_affine(pick, n, 0) for n in left]), left))
                if pick.chance(0.5)
                else product([weighted_sum([1, 1], [var(n), const(1)]) for n in left])
            )
        else:
            parts = [head, filled]
    return _case(product(parts), names)


def rare(pick: Picker) -> Case:
    """A rare part, of probability 1e-3 to 1e-13, that differs in everything from the rest."""
    names = pick.names(2, 6)
    epsilon = F(1, 10 ** pick.between(3, 13))
    common = product([var(n) if pick.chance(0.5) else const(1) for n in names])
    if pick.chance(0.4):
        common = product([_affine(pick, n, pick.of([0, 5])) for n in names])
    wide = product([weighted_sum([F(1, 2), F(1, 2)], [var(n), const(1)]) for n in names])
    return _case(weighted_sum([1 - epsilon, epsilon], [common, wide]), names)


def near_one(pick: Picker) -> Case:
    """Events of probability 1 − 1e-5 to 1 − 1e-15, and others near 1/2: logarithms and log-odds near 0."""
    names = pick.names(1, 5)
    factors = []
    for n in names:
        e = F(1, 10 ** pick.between(5, 15))
        p = pick.of([e, 1 - e, F(1, 2) + e, F(1, 2) - e, F(1, 2)])
        factors.append(weighted_sum([p, 1 - p], [var(n), const(1)]))
    root = product(factors)
    if pick.chance(0.3):
        root = makers.entangle(root, pick)
    return _case(root, names)


def probabilistic(pick: Picker) -> Case:
    """An ordinary probabilistic circuit."""
    return _case(random_pc(pick.rng, n=pick.between(1, 6), exact=pick.chance(0.5)).to_pgc())


def floats(pick: Picker) -> Case:
    """An ordinary monotone circuit of floats."""
    return _case(random_circuit(pick.rng, n=pick.between(1, 6), negative=False, exact=False))


def deep(pick: Picker) -> Case:
    """A chain of sums and products which are shared, with powers of constants: scales of 2^±1000 and more."""
    names = pick.names(2, 5)
    node: Node = const(1)
    for i in range(pick.between(4, 14)):
        power = const(F(2) ** (pick.of([-1, 1]) * pick.between(0, 150)))
        scaled = product([power, node])
        name = names[i] if i < len(names) else None
        if name is None:
            node = weighted_sum([pick.fraction(), pick.fraction()], [scaled, node])
        else:
            node = weighted_sum([pick.number(), pick.number()], [product([scaled, var(name)]), node])
    return _case(node, names)


# -- variables with states -------------------------------------------------------------------------------------------


def _one_of(pick: Picker, domain: Domain, decades: int, shift: Number) -> Node:
    """A sum over the states of a variable, of scale `shift`, and then up to so many decades apart."""
    weights = [shift * pick.fraction() * pick.scale(decades) * (not pick.chance(0.1)) for _ in domain.states]
    return weighted_sum(weights, [domain.leaf(i) for i in range(len(weights))])


def _states_tree(pick: Picker, domains: Domains, names: list[str], decades: int, shift: Number = 1) -> Node:
    """`_tree` over variables with states."""
    if len(names) == 1:
        return _one_of(pick, domains[names[0]], min(decades, 3), shift)
    terms, weights = [], []
    for _ in range(pick.between(1, 3)):
        a, b = pick.cut(names)
        gap, rest = pick.scale(decades), pick.scale(2)
        parts = (
            _states_tree(pick, domains, a, decades // 2, gap),
            _states_tree(pick, domains, b, decades // 2, shift * rest / gap),
        )
        terms.append(product(parts))
        weights.append(pick.number(1))
    return weighted_sum(weights, terms)


def states(pick: Picker) -> Case:
    """Ordinary sums of products over variables with states: one column of each is in."""
    domains = picked_domains(pick)
    return _case(Circuit(_states_tree(pick, domains, list(domains), 1), domains))


def states_scales(pick: Picker) -> Case:
    """The same with weights across 1e±300 which compensate."""
    domains = picked_domains(pick)
    return _case(Circuit(_states_tree(pick, domains, list(domains), pick.of([20, 60, 180, 280])), domains))


def states_even(pick: Picker) -> Case:
    """Two states that are equally probable but for 1e-5 to 1e-15, beside others that are as rare."""
    domains = picked_domains(pick)
    factors = []
    for domain in domains.values():
        e = F(1, 10 ** pick.between(5, 15))
        weights = [pick.of([F(1, 2), F(1, 2) + e, F(1, 2) - e, e, 1 - e, 1]) for _ in domain.states]
        factors.append(weighted_sum(weights, [domain.leaf(i) for i in range(len(weights))]))
    whole = product(factors)
    if pick.chance(0.5):
        whole = weighted_sum([1 - e, e], [whole, _states_tree(pick, domains, list(domains), 2)])
    return _case(Circuit(makers.entangle(whole, pick) if pick.chance(0.2) else whole, domains))


def states_cancelling(pick: Picker) -> Case:
    """What is small plus W·h − W·h′, where terms of h have several states of one variable, or none."""
    domains = picked_domains(pick, 3)
    keep = _states_tree(pick, domains, list(domains), 2)
    h = product([_affine(pick, name, 1) for name in domains.columns if pick.chance(0.7)] or [var(domains.columns[0])])
    wide = F(2) ** pick.between(10, 120) * pick.fraction()
    expanded = _expanded(Circuit(h, domains.columns))
    return _case(Circuit(weighted_sum([1, wide, -wide], [keep, h, expanded]), domains))


def states_entangled(pick: Picker) -> Case:
    """Squares that cancel, over variables with states."""
    domains = picked_domains(pick, 3)
    return _case(Circuit(makers.entangle(_states_tree(pick, domains, list(domains), 2), pick), domains))


def states_signed(pick: Picker) -> Case:
    """c·Π Σ z − g with c just above the largest coefficient of g: one of them nearly or exactly cancels."""
    domains = picked_domains(pick, 3)
    minus = Circuit(_states_tree(pick, domains, list(domains), 1), domains)
    top = max(Table.of(minus).coefficients.ravel())
    top = F(int(top.p), int(top.q)) * (1 + F(1, 2 ** pick.between(1, 100)) if pick.chance(0.7) else 1)
    everything = [
        weighted_sum([1] * len(d.states), [d.leaf(i) for i in range(len(d.states))]) for d in domains.values()
    ]
    return _case(Circuit(weighted_sum([top, -1], [product(everything), minus.root]), domains))


def states_given(pick: Picker) -> Case:
    """What is left of variables with states when some are ruled out, or so many of them are in."""
    domains = picked_domains(pick)
    circuit = Circuit(_states_tree(pick, domains, list(domains), 20), domains)
    name = pick.of(list(domains))
    circuit = circuit.observe({name: set(pick.of([domains[name].states[:2], domains[name].states[-2:]]))})
    names = [n for n, d in (circuit.domains or {}).items() if d.is_block]
    if names and pick.chance(0.5):
        circuit = circuit.observe(size=pick(2), over={n: circuit.domains[n].states[0] for n in names})
    return _case(circuit) if circuit.domains and circuit.variables else states(pick)


# -- determinants ----------------------------------------------------------------------------------------------------


def _gram(pick: Picker, n: int, rank: int, decades: int = 0) -> list[list[F]]:
    rows = [[F(pick.between(-3, 3)) * pick.scale(decades) for _ in range(rank)] for _ in range(n)]
    return [[sum((a * b for a, b in zip(x, y, strict=True)), F(0)) for y in rows] for x in rows]


def _minors(L: Sequence[Sequence[Any]], names: Sequence[str]) -> Table:
    return Table.by_sets(names, lambda s: minor(L, s))


def dpp_exact(pick: Picker) -> Case:
    """L of fractions, of any rank; and its complement, some of a size, tilted, thinned."""
    n = pick.between(1, 5)
    names = [f"x{i}" for i in range(1, n + 1)]
    L = _gram(pick, n, pick.between(1, n + 1), pick.of([0, 0, 2, 30]))
    circuit, table = pgcc.dpp(L=L), _minors(L, names)
    match pick(3):
        case 0:
            return Case(circuit.complement(), table.complement())
        case 1:
            k = pick.between(0, n)
            sized = Table.by_sets(names, lambda s: minor(L, s) if len(s) == k else 0)
            return Case(circuit.observe(size=k), sized) if sized.total > 0 else Case(circuit, table)
        case _:
            return Case(circuit, table)


def dpp_floats(pick: Picker) -> Case:
    """L of doubles, nearly singular or of low rank with noise: no entry may be changed unless a warning says so."""
    n = pick.between(2, 5)
    rank = pick.between(1, n)
    B = pick.rng.standard_normal((n, rank)) * 10.0 ** pick.rng.integers(-4, 5, (n, 1))
    L = B @ B.T
    L = (L + L.T) / 2
    noise = 10.0 ** -pick.rng.integers(6, 16, n) if pick.chance(0.5) else 10.0 ** -pick.between(6, 15)
    L += np.diag(noise * np.diag(L))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        circuit = pgcc.dpp(L=L)
    names = [f"x{i}" for i in range(1, n + 1)]
    table = Table.of(circuit) if said else _minors(L.tolist(), names)
    if pick.chance(0.3):
        return Case(circuit.complement(), table.complement(), raw=False)
    return Case(circuit, table, raw=False)


def dpp_features(pick: Picker) -> Case:
    """Features as a factor, rows nearly equal: L = B·Bᵀ must not be formed in floats."""
    n, rank = pick.between(2, 6), pick.between(1, 4)
    B = pick.rng.standard_normal((n, rank))
    B[-1] = B[0] * (1 + 10.0 ** -pick.between(5, 15))
    B *= 10.0 ** pick.rng.integers(-9, 10, (n, 1))
    exact = [[F(float(x)) for x in row] for row in B]
    L = [[sum((a * b for a, b in zip(x, y, strict=True)), F(0)) for y in exact] for x in exact]
    return Case(pgcc.dpp(factor=B), _minors(L, [f"x{i}" for i in range(1, n + 1)]), raw=False)


def dpp_marginal(pick: Picker) -> Case:
    """A marginal kernel K of fractions, eigenvalues next to 0 and 1 included."""
    n = pick.between(1, 5)
    names = [f"x{i}" for i in range(1, n + 1)]
    v = [F(pick.between(-4, 4)) for _ in range(n)]
    if not any(v):
        v[0] = F(1)
    norm = sum(x * x for x in v)
    low, high = (pick.of([F(0), F(1), F(1, 10**12), 1 - F(1, 10**13), pick.fraction(20) / 20]) for _ in range(2))
    K = [[(low if i == j else 0) + (high - low) * v[i] * v[j] / norm for j in range(n)] for i in range(n)]
    if not 0 <= min(low, high) <= max(low, high) <= 1:
        K = [[F(int(i == j), 2) for j in range(n)] for i in range(n)]

    def weight(s: list[int]) -> Any:
        moved = [[K[i][j] - (1 if i == j and i not in s else 0) for j in range(n)] for i in range(n)]
        return minor(moved, range(n)) * (-1) ** (n - len(s))

    table = Table.by_sets(names, weight)
    return Case(pgcc.dpp(K=K), table) if pick.chance(0.7) else Case(pgcc.dpp(K=K).complement(), table.complement())


def nonsymmetric(pick: Picker) -> Case:
    """L with a skew part, of fractions that are symmetric only as doubles, or quite skew."""
    n = pick.between(2, 5)
    L = _gram(pick, n, n)
    for i in range(n):
        L[i][i] += pick.of([F(0), F(1, 10**9)])
        for j in range(i):
            e = pick.of([F(pick.between(-2, 2)), F(pick.between(-3, 3), 10**17), F(pick.between(-3, 3), 10**25)])
            L[i][j] += e
            L[j][i] -= e
    return Case(pgcc.dpp(L=L, symmetric=False), _minors(L, [f"x{i}" for i in range(1, n + 1)]))


def almost_symmetric(pick: Picker) -> Case:
    """det(I + diag(z)·V) with V of fractions that equal their transposed only as doubles; nearly singular."""
    n = pick.between(2, 4)
    names = [f"v{i}" for i in range(n)]
    a = 1 - F(1, 10 ** pick.between(8, 14))
    V = [[F(1) if i == j else a for j in range(n)] for i in range(n)]
    for i in range(n):
        for j in range(i):
            V[i][j] += F(pick.between(-3, 3), 10**17)
    eye = [[int(i == j) for j in range(n)] for i in range(n)]
    circuit = pgcc.determinant(eye, eye, V, names)
    return _nonnegative(pick, circuit)


def _nonnegative(pick: Picker, circuit: Circuit, slack: F | None = None) -> Case:
    """The circuit plus c·Π(1 + z), if it has negative coefficients: c large enough."""
    table = Table.of(circuit)
    worst = min(table.coefficients.ravel())
    if worst >= 0 and table.total > 0:
        return Case(circuit, table)
    lift = F(int(-worst.p), int(worst.q)) * (1 + (slack or F(1, 2 ** pick.between(0, 60)))) or F(1)
    plus = product([weighted_sum([1, 1], [var(name), const(1)]) for name in circuit.variables])
    return _case(weighted_sum([1, lift], [circuit.root, plus]), circuit.variables)


def _matrix(pick: Picker, rows: int, columns: int, decades: int = 0) -> list[list[F]]:
    return [[F(pick.between(-4, 4)) * pick.scale(decades) for _ in range(columns)] for _ in range(rows)]


def signed_determinant(pick: Picker) -> Case:
    """det(M0 + U·diag(f)·Vᵀ) of any signs, children that are sums, complements; lifted to be nonnegative."""
    k, r = pick.between(1, 4), pick.between(1, 4)
    names = [f"v{i}" for i in range(k)]
    decades = pick.of([0, 0, 3, 40])
    matrices = [_matrix(pick, r, r, decades), _matrix(pick, r, k, decades), _matrix(pick, r, k)]
    if pick.chance(0.5):
        matrices = [[[float(x) for x in row] for row in m] for m in matrices]
    children = [
        var(n) if pick.chance(0.5) else weighted_sum([pick.number(2), pick.number(2)], [var(n), ONE]) for n in names
    ]
    size = pick.between(0, k) if pick.chance(0.2) else None
    return _nonnegative(pick, Circuit(det(*matrices, children, None, size), names))


def cancelling_columns(pick: Picker) -> Case:
    """Rational U and V whose columns are equal up to 2^-30 … 2^-250: what is left of a minor is far below the terms."""
    k = pick.between(2, 3)
    names = [f"v{i}" for i in range(k)]
    gap = F(1, 2 ** pick.between(30, 250))
    base = [F(pick.between(1, 9), pick.between(1, 9)) for _ in range(k)]
    U = [[base[i] * (1 + gap * pick.between(-9, 9)) for _ in range(k)] for i in range(k)]
    V = [[base[i] * (1 + gap * pick.between(-9, 9)) for _ in range(k)] for i in range(k)]
    M0 = [[F(int(i == j)) * pick.of([F(1), gap, gap * gap]) for j in range(k)] for i in range(k)]
    return _nonnegative(pick, pgcc.determinant(M0, U, V, names))


def orthogonal_columns(pick: Picker) -> Case:
    """Huge rational U and V with inner products of size 1: v·u cancels by 2^150 … 2^200, about what balls have bits."""
    k = pick.between(1, 3)
    names = [f"v{i}" for i in range(k)]
    bits = pick.between(150, 200)
    left = pick.between(60, bits - 60)
    U: list[list[F]] = []
    V: list[list[F]] = []
    for i in range(k):
        a = [F(pick.between(1, 40), pick.of([3, 7, 11])) for _ in range(k)]
        b = [F(pick.between(-20, 20), pick.of([3, 7, 13])) for _ in range(k)]
        small = [F(int(i == j) * pick.between(1, 9), pick.of([1, 3])) / 2**bits for j in range(k)]
        U += [[x * 2**left for x in a], [(x + e) * 2**left for x, e in zip(a, small, strict=True)]]
        V += [[-y * 2 ** (bits - left) for y in b], [y * 2 ** (bits - left) for y in b]]
    eye = [[int(i == j) for j in range(2 * k)] for i in range(2 * k)]
    return _nonnegative(pick, pgcc.determinant(eye, U, V, names))


def tiny_beside_determinant(pick: Picker) -> Case:
    """A determinant with negative coefficients, small where everything is free, beside a leaf of 1e-320."""
    k = pick.between(1, 2)
    names = [f"v{i}" for i in range(k)]
    big = F(10) ** pick.between(0, 14)
    U = [[F(int(i == j)) for j in range(k)] for i in range(k)]
    V = [[-(1 - 1 / big) * F(int(i == j)) for j in range(k)] for i in range(k)]
    node = det([[F(int(i == j)) for j in range(k)] for i in range(k)], U, V, [var(n) for n in names])
    leaf = _affine(pick, "w", 0, F(1, 10 ** pick.between(300, 321)))
    lift = product([weighted_sum([1, 1], [var(n), ONE]) for n in names])
    terms = [product([leaf, node]), product([leaf, lift])]
    more = pick.chance(0.5)
    root = (
        weighted_sum([1, 1], terms) if more else weighted_sum([big, 1], [product([leaf, node]), product([leaf, lift])])
    )
    circuit = Circuit(root, [*names, "w"])
    return _nonnegative(pick, circuit)


def nearly_a_variable(pick: Picker) -> Case:
    """Children z + 10^-400, or 10^-400·z + 1: they are not the variable z, though doubles say so."""
    n = pick.between(2, 4)
    names = [f"v{i}" for i in range(n)]
    t = F(1, 10 ** pick.of([320, 330, 400]))
    children = [
        pick.of([var(x), weighted_sum([1, t], [var(x), ONE]), weighted_sum([t, 1], [var(x), ONE])]) for x in names
    ]
    if pick.chance(0.5):
        L = _gram(pick, n, pick.between(1, n))
        eye = [[int(i == j) for j in range(n)] for i in range(n)]
        M0 = eye if pick.chance(0.5) else [[0] * n for _ in range(n)]
        root = det(M0, eye, L, children)
    else:
        graph = nx.cycle_graph(max(n, 3)) if n > 2 else nx.path_graph(3)
        tree = pgcc.spanning_tree(graph)
        renamed = tree.relabel(dict(zip(tree.variables, [f"v{i}" for i in range(len(tree.variables))], strict=True)))
        names = list(renamed.variables)
        children = [pick.of([var(x), weighted_sum([1, t], [var(x), ONE])]) for x in names]
        circuit = Circuit(_substituted(renamed.root, dict(zip(names, children, strict=True))), names)
        table = Table.of(circuit)
        return Case(circuit, table) if table.is_distribution else _case(product([ONE, var("v0")]), ["v0"])
    return _nonnegative(pick, Circuit(root, names))


def underflowing_signs(pick: Picker) -> Case:
    """Entries of 10^-200 … 10^-400 in U and V, whose products lose their signs in doubles; a large factor outside."""
    k = pick.between(1, 3)
    names = [f"v{i}" for i in range(k)]
    e = pick.of([170, 200, 400])
    t = F(1, 10**e)
    U, V = ([[F(pick.between(-2, 2)) * t for _ in range(k)] for _ in range(k)] for _ in range(2))
    M0 = [[F(int(i == j)) * pick.of([t * t, F(0), F(1)]) for j in range(k)] for i in range(k)]
    node = det(M0, U, V, [var(n) for n in names])
    largest = max(abs(x) for x in Table.of(Circuit(node, names)).coefficients.ravel()) or rational(1)
    size = len(str(int(largest.p))) - len(str(int(largest.q)))
    lift = product([weighted_sum([1, 1], [var(n), ONE]) for n in names])
    return _nonnegative(pick, Circuit(weighted_sum([F(10) ** -size, pick.fraction()], [node, lift]), names))


def growing_pivots(pick: Picker) -> Case:
    """Matrices of Wilkinson's kind, on which elimination with pivots loses a bit a row."""
    r, k = pick.of([8, 24, 32, 44, 52]), pick.between(1, 2)
    names = [f"v{i}" for i in range(k)]
    W = np.eye(r) - np.tri(r, k=-1)
    W[:, -2] = 1.0
    # of two columns that grow to 2^r, only the difference counts, which is of size 1
    W[:, -1] = pick.rng.random() * W[:, -2] + np.eye(r)[-1] + pick.rng.random(r) * pick.of([0.0, 2.0**-r])
    U = np.abs(pick.rng.standard_normal((r, k))) / r
    V = np.abs(pick.rng.standard_normal((r, k))) / r
    if pick.chance(0.5):
        V[: r - 1] = 0.0
    circuit = Circuit(det(W, U, V, [var(n) for n in names]), names)
    table = Table.of(circuit)
    if table.is_distribution:
        return Case(circuit, table)
    return _nonnegative(pick, circuit)


def normalised(pick: Picker) -> Case:
    """`normalize` and `mixture`, which divide by totals to 1e-12: of floats, of determinants with growing pivots."""

    def part() -> Case:
        return pick.of([growing_pivots, floats, dpp_floats])(pick)

    first = part()
    if pick.chance(0.5):
        return Case(first.circuit.normalize(), first.table, rounded=2e-12, raw=False)
    second = _renamed(part())
    share = pick.fraction() / 1600
    shares = share, 1 - share
    first = _renamed(first)
    names = list(dict.fromkeys([*first.circuit.variables, *second.circuit.variables]))
    circuit = pgcc.mixture(list(shares), [first.circuit, second.circuit])
    if first.table.total <= 0 or second.table.total <= 0 or len(names) > 7:
        return first
    tables = [_over(c.table, list(circuit.variables)).scaled(1 / c.table.total) for c in (first, second)]
    table = tables[0].scaled(shares[0]).plus(tables[1].scaled(shares[1]))
    return Case(circuit, table, rounded=4e-12, raw=False)


def _renamed(case: Case) -> Case:
    names = {old: f"m{i}" for i, old in enumerate(case.circuit.variables)}
    table = Table([names[n] for n in case.table.names], case.table.coefficients)
    return Case(case.circuit.relabel(names), table)


def _over(table: Table, names: list[str]) -> Table:
    """The same over more variables, which are out."""
    missing = [n for n in names if n not in table.names]
    coefficients = table.coefficients
    for _ in missing:
        coefficients = np.stack([coefficients, coefficients * rational(0)], axis=-1)
    order = [[*table.names, *missing].index(n) for n in names]
    return Table(names, coefficients.transpose(order))


def trees(pick: Picker) -> Case:
    """Spanning trees with weights across 1e±150."""
    n = pick.between(2, 4)
    graph = nx.gnp_random_graph(n, 0.7, seed=pick(1 << 30))
    graph.add_edges_from(zip(range(n - 1), range(1, n), strict=True))
    for edge in graph.edges.values():
        edge["weight"] = pick.number(pick.of([0, 15, 150]))
    circuit = pgcc.spanning_tree(graph)
    weights = {f"{a}-{b}": rational(w["weight"]) for (a, b), w in graph.edges.items()}

    def weight(s: list[int]) -> Any:
        chosen = [circuit.variables[i] for i in s]
        tree = nx.Graph([tuple(map(int, name.split("-"))) for name in chosen])
        spans = len(chosen) == n - 1 == len(tree) - 1 and nx.is_connected(tree)
        found = rational(int(spans))
        for name in chosen:
            found *= weights[name]
        return found

    table = Table.by_sets(circuit.variables, weight)
    if pick.chance(0.3):
        return Case(circuit.complement(), table.complement(), raw=False)
    return Case(circuit, table, raw=False)


def composed(pick: Picker) -> Case:
    """A DPP over groups, each a circuit with scales of its own; several determinants in one circuit."""
    k = pick.between(2, 3)
    groups = [[f"z{i}{j}" for j in range(pick.between(1, 2))] for i in range(k)]
    leaves = [Circuit(_tree(pick, g, pick.of([2, 100])), g) for g in groups]
    dpp = pgcc.dpp(L=_gram(pick, k, pick.between(1, k), pick.of([0, 20])))
    names = [n for g in groups for n in g]
    root = _substituted(dpp.root, {f"x{i + 1}": leaf.root for i, leaf in enumerate(leaves)})
    if pick.chance(0.5):
        other = product([_affine(pick, n, 1) for n in names])
        root = weighted_sum([pick.number(1), pick.number(1)], [root, other])
    return _case(root, names)


def _substituted(root: Node, leaves: dict[str, Node]) -> Node:
    """The circuit with other nodes for its variables. (`compose` asks for totals of 1.)"""
    new: dict[Node, Node] = {}
    for node in Circuit(root).order:
        if node.op is Op.VAR:
            new[node] = leaves[node.name]
        else:
            new[node] = rebuild(node, [new[c] for c in node.children])
    return new[root]


def homogenized_parts(pick: Picker) -> Case:
    """Sums beside their homogenized forms: once all are homogenized, equal nodes stand at several positions."""
    names = [f"z{i}" for i in range(7)]
    a, b, c, x, y, *rest = [names[i] for i in pick.rng.permutation(7)]
    both, single = product((var(a), var(b))), var(c)
    without = [var(name, complement=True) for name in (a, b, c)]
    part = weighted_sum((pick.number(), pick.number()), (both, single))
    terms = product((var(a), var(b), without[2])), product((single, without[0], without[1]))
    homogenized = weighted_sum((pick.number(), pick.number()), terms)
    block = weighted_sum((pick.number(), pick.number()), (product((part, var(x))), product((homogenized, var(y)))))
    free = pick(len(rest) + 1)
    dets = [pgcc.dpp(L=[[pick.fraction()]], names=[name]).root for name in rest[free:]]
    factors = [block, *(_affine(pick, name, 0) for name in rest[:free]), *dets]
    return _case(product([factors[i] for i in pick.rng.permutation(len(factors))]), names)


def entangled_determinant(pick: Picker) -> Case:
    """A determinant inside of squares that cancel."""
    n = pick.between(1, 3)
    L = _gram(pick, n, pick.between(1, n))
    dpp = pgcc.dpp(L=L)
    extra = _affine(pick, "w", pick.of([0, 3, 150]))
    return _case(makers.polarize(dpp.root, extra), [*dpp.variables, "w"])


# -- large ones ------------------------------------------------------------------------------------------------------


def _large(root: Node | Circuit, names: Sequence[str] | None = None) -> Case:
    circuit = root if isinstance(root, Circuit) else Circuit(root, names)
    return Case(circuit, ByPoints(circuit))


def long_series(pick: Picker) -> Case:
    """A product of two series of many coefficients near 1e-314, each term of which may underflow."""
    half = pick.between(8, 40)
    names = [f"z{i}" for i in range(2 * half)]
    exponent = pick.between(308, 316)
    cut = pick.between(120, 190)
    sums = []
    for part, e in ((names[:half], cut), (names[half:], exponent - cut)):
        terms = [product([weighted_sum([_near(pick), _near(pick)], [var(n), ONE]) for n in part]) for _ in range(2)]
        size = sum(1 for _ in part) * 3 // 10  # about the decimal digits of their values
        sums.append(weighted_sum([_near(pick) * F(10) ** (-e - size * pick(2)) for _ in terms], terms))
    return _large(product(sums), names)


def many_points(pick: Picker) -> Case:
    """((x + y)² − (x − y)²)/4 of many variables."""
    names = [f"z{i}" for i in range(pick.between(50, 90))]
    middle = len(names) // 2
    x, y = (product([_affine(pick, n, pick.of([0, 0, 3])) for n in part]) for part in (names[:middle], names[middle:]))
    return _large(makers.polarize(x, y), names)


def many_edges(pick: Picker) -> Case:
    """More than 10,000 edges, which are simplified only as far as it is worth, around sums that are."""
    k = 11
    names = ["p", "q", *(f"z{i}" for i in range(3)), *(f"h{i}" for i in range(k))]
    u = weighted_sum([1, 1], [var("p"), var("q")])
    head = weighted_sum([1, 1, 1], [u, u, ONE])
    squares = []
    for name in names[2:5]:
        z1 = weighted_sum([1, 1], [var(name), ONE])
        squares.append(weighted_sum([1, -1], [product([z1, z1]), product([var(name), var(name)])]))
    monomials = [product([var(f"h{i}") for i in range(k) if s >> i & 1]) for s in range(1 << k)]
    dense = weighted_sum([pick.between(1, 3) for _ in monomials], monomials)
    return _large(product([head, *squares, dense]), names)


def many_terms(pick: Picker) -> Case:
    """Hundreds of edges over a dozen variables, of scales that compensate: blocks, wide tables, shared slots."""
    names = pick.names(9, 14)
    layer = [_affine(pick, n, 1) for n in names]
    while len(layer) > 1:
        shift = pick.scale(pick.of([0, 50]))
        pairs = [layer[i : i + 2] for i in range(0, len(layer), 2)]
        layer = [
            weighted_sum(
                [pick.number(1) for _ in range(3)],
                [
                    product(pair),
                    product([_again(pick, node) for node in pair]),
                    product([_again(pick, x) for x in pair]),
                ],
            )
            for pair in pairs
        ]
        if len(layer) > 1:
            layer[0] = weighted_sum([shift], [layer[0]])
            layer[1] = weighted_sum([1 / shift], [layer[1]])
    return _large(layer[0], names)


def _again(pick: Picker, node: Node) -> Node:
    """The same with other weights in its uppermost sum."""
    if node.op is not Op.SUM:
        return node
    return weighted_sum([pick.number(1) for _ in node.weights], node.children)


def large_dpp(pick: Picker) -> Case:
    """A kernel of doubles of 12 to 30 items, by L, with its complement, or beside a leaf."""
    n = pick.between(12, 30)
    B = pick.rng.standard_normal((n, n)) / np.sqrt(n)
    L = B @ B.T + np.diag(10.0 ** pick.rng.uniform(-6, 1, n))
    circuit = pgcc.dpp(L=(L + L.T) / 2)
    if pick.chance(0.3):
        circuit = circuit.complement()
    elif pick.chance(0.5):
        circuit = Circuit(product([circuit.root, _affine(pick, "w", 3)]), [*circuit.variables, "w"])
    return _large(circuit)


def many_variables(pick: Picker) -> Case:
    """More than a thousand independent variables: long counts, probabilities far below the range of doubles."""
    names = [f"z{i}" for i in range(pick.between(1030, 1100))]
    factors = [(pick.fraction(9) * pick.scale(1), pick.fraction(9)) for _ in names]
    leaves = [weighted_sum(pair, [var(n), ONE]) for pair, n in zip(factors, names, strict=True)]
    return Case(Circuit(product(leaves), names), Independent(names, factors))


# -- what is no distribution -----------------------------------------------------------------------------------------


def not_a_distribution(pick: Picker) -> Case:
    """Some coefficient is negative: every probability outside of [0, 1] has to be refused."""
    names = pick.names(1, 5)
    keep = product([_affine(pick, name, 0) for name in names])
    table = Table.of(Circuit(keep, names))
    spot = tuple(pick(2) for _ in names)
    x = table.coefficients[spot]
    excess = F(int(x.p), int(x.q)) * (1 + pick.of([F(1, 10**9), F(1, 4), F(3)]))
    monomial = product([var(n) for n, i in zip(names, spot, strict=True) if i])
    found = _case(weighted_sum([1, -excess], [keep, monomial]), names)
    return found if found.table.total > 0 else _case(weighted_sum([F(3, 2), F(-1, 2)], [var("z0"), ONE]), ["z0"])


Generator = Callable[[Picker], Case]
LARGE = ("long_series", "many_points", "many_edges", "many_terms", "large_dpp", "many_variables")

GENERATORS: dict[str, Generator] = {
    make.__name__: make
    for make in (
        *(scales, flows_order, subnormal, cancelling, nearly_zero, entangled, entangled_scales, series_floor),
        *(shared_sums, rare, near_one, probabilistic, floats, deep),
        *(states, states_scales, states_even, states_cancelling, states_entangled, states_signed, states_given),
        *(dpp_exact, dpp_floats, dpp_features, dpp_marginal, nonsymmetric, almost_symmetric, signed_determinant),
        *(
            cancelling_columns,
            orthogonal_columns,
            tiny_beside_determinant,
            nearly_a_variable,
            underflowing_signs,
            growing_pivots,
        ),
        *(normalised, trees, composed, homogenized_parts, entangled_determinant, not_a_distribution),
        *(long_series, many_points, many_edges, many_terms, large_dpp, many_variables),
    )
}


def make(name: str, seed: Any) -> Case:
    """The case of a generator with this seed, a distribution unless the generator says otherwise."""
    for attempt in range(100):
        case = GENERATORS[name](Picker([seed, attempt, *name.encode()]))
        if name in LARGE or (case.table.total > 0 and (case.table.is_distribution or name == "not_a_distribution")):
            case.seed = (name, seed, attempt)
            return case
    raise AssertionError(f"{name} made no distribution with seed {seed} in 100 attempts")
