"""Random circuits. Every random choice is a call of `Pick`, which draws from a numpy Generator or from hypothesis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from pgcc.ir.circuit import Circuit
from pgcc.ir.node import ONE, Node, Op, const, det, postorder, rebuild, var, weighted_sum
from pgcc.ir.node import product as product_node
from pgcc.pc import PC

Pick = Callable[[int], int]  # k -> one of 0..k-1; 0 is the simplest choice
Scope = int  # a set of variables, as bits

# -- bulk makers, on a numpy Generator -----------------------------------------------------------------------


def random_circuit(
    rng: np.random.Generator | int,
    n: int,
    size: int = 20,
    decomposable: bool = True,
    negative: bool = True,
    exact: bool = True,
) -> Circuit:
    """A random multiaffine circuit over z1..zn: a DAG with shared nodes and sums that are not smooth.

    Parameters
    ----------
    rng : numpy Generator or int
        The source of randomness; an int is a seed.
    n, size : int
        The number of variables, and the approximate number of sums and products.
    decomposable : bool
        If False, the polynomial is still multiaffine, but it is written with squares that cancel.
    negative : bool
        If False, no number is negative and the total g(1) is 1: a probability distribution. (A circuit that is not
        decomposable needs negative numbers to cancel squares; its polynomial is still a distribution.)
    exact : bool
        If False, the weights are floats (and the total is 1 only up to rounding).

    Examples
    --------
    >>> from pgcc.testing import brute_force, random_circuit
    >>> g = random_circuit(0, n=4, negative=False)
    >>> g.facts.decomposable, g.facts.monotone, sum(brute_force(g).values())
    (True, True, Fraction(1, 1))
    """
    maker = Maker(_numpy_pick(rng), z_names(n), negative, exact)
    return finish(maker, size, decomposable)


# The kinds of determinants that `pgcc.testing.random_det` makes.
DET_KINDS = ("psd", "kernel", "low rank", "nonsymmetric", "singular")


def random_det(
    rng: np.random.Generator | int,
    n: int = 5,
    kind: str | None = None,
    decomposable: bool = True,
    exact: bool = True,
    complements: bool = False,
    alone: bool = False,
    sized: bool | None = None,
) -> Circuit:
    """A random multiaffine circuit over z1..zn that contains a determinant.

    Parameters
    ----------
    rng : numpy Generator or int
        The source of randomness; an int is a seed.
    n : int
        The number of variables.
    kind : str, optional
        ``"psd"`` det(I + L·diag f) with L = B·Bᵀ; ``"kernel"`` det(I − K + K·diag f) with K not symmetric;
        ``"low rank"`` det(I + Bᵀ·diag f·B); ``"nonsymmetric"``: all three matrices arbitrary; ``"singular"``
        det(B·diag f·Bᵀ), as for spanning trees. By default, a random kind.
    decomposable : bool
        If False, the children are written with squares that cancel.
    exact : bool
        If False, the matrices are float64.
    complements : bool
        Whether the complements y_i of the determinant may be circuits other than 1.
    alone : bool
        Whether the determinant is the root. Otherwise it may be inside a sum or a product.
    sized : bool, optional
        Whether the determinant has a size. By default, it sometimes has.

    Examples
    --------
    >>> from pgcc.testing import random_det
    >>> random_det(0, n=4, kind="psd").facts.dets
    1
    """
    maker = Maker(_numpy_pick(rng), z_names(n), True, exact)
    root = det_circuit(maker, kind, decomposable, complements, sized)
    return Circuit(root if alone else around(maker, root), maker.names)


def random_evidence(rng: np.random.Generator | int, circuit: Circuit) -> dict[str, int]:
    """Random partial evidence: every variable is 1, 0 or unobserved, with probability 1/3 each.

    >>> from pgcc.testing import random_circuit, random_evidence
    >>> seen = random_evidence(1, random_circuit(0, n=9))
    >>> set(seen.values()) <= {0, 1}
    True
    """
    return pick_evidence(_numpy_pick(rng), circuit)


def pick_evidence(pick: Pick, circuit: Circuit) -> dict[str, int]:
    """Random evidence: each variable unobserved, 1 or 0."""
    drawn = {name: pick(3) for name in circuit.variables}
    return {name: 2 - k for name, k in drawn.items() if k}


def _numpy_pick(rng: np.random.Generator | int) -> Pick:
    generator = np.random.default_rng(rng)
    return lambda k: int(generator.integers(k))


# -- the maker -----------------------------------------------------------------------------------------------


def z_names(n: int) -> list[str]:
    return [f"z{i}" for i in range(1, n + 1)]


class Maker:
    """Grows a pool of nodes with their scopes. Every new node takes its children from the pool.

    If weights are nonnegative, every node is 1 at z = 1: leaves are z or p·z + 1 − p, and sums are convex.
    """

    def __init__(self, pick: Pick, names: Sequence[str], negative: bool, exact: bool):
        self.pick, self.names, self.negative, self.exact = pick, list(names), negative, exact
        self.pool: list[tuple[Node, Scope]] = []
        self.waiting: dict[int, None] = {}  # positions in the pool that have no parent yet
        self.all: Scope = (1 << len(self.names)) - 1

    def weights(self, k: int) -> list[Any]:
        """k numbers with Σ|w| = 1 (to rounding, for floats)."""
        sizes = [1 + self.pick(9) for _ in range(k)]
        signs = [-1 if self.negative and self.pick(3) == 2 else 1 for _ in range(k)]
        total = sum(sizes)
        return [s * (Fraction(w, total) if self.exact else w / total) for w, s in zip(sizes, signs, strict=True)]

    def leaf(self, i: int) -> Node:
        """z_i, or p·z_i + q."""
        return self.affine(i) if self.pick(2) else var(self.names[i])

    def affine(self, i: int) -> Node:
        """p·z_i + q"""
        return weighted_sum(self.weights(2), (var(self.names[i]), ONE))

    def add(self, node: Node, scope: Scope) -> None:
        self.waiting[len(self.pool)] = None
        self.pool.append((node, scope))

    def take(self) -> tuple[Node, Scope]:
        """A node of the pool: half of the time, the oldest one that has no parent yet."""
        position = next(iter(self.waiting)) if self.waiting and self.pick(2) else self.pick(len(self.pool))
        self.waiting.pop(position, None)
        return self.pool[position]

    def grow_sum(self) -> None:
        """A weighted sum of nodes whose scopes may differ, sometimes with a constant."""
        terms = [self.take() for _ in range(2 + self.pick(3))]
        if self.pick(6) == 5:
            terms.append((ONE, 0))
        scope = 0
        for _, s in terms:
            scope |= s
        self.add(weighted_sum(self.weights(len(terms)), [node for node, _ in terms]), scope)

    def disjoint(self, tries: int) -> tuple[list[Node], Scope]:
        """Nodes of the pool with disjoint scopes, and the union of these."""
        factors, scope = [], 0
        for _ in range(tries):
            position = self.pick(len(self.pool))
            node, s = self.pool[position]
            if not s & scope:
                self.waiting.pop(position, None)
                factors.append(node)
                scope |= s
        return factors, scope

    def grow_product(self) -> None:
        """A product of nodes with disjoint scopes; if only one was found, with a leaf of another variable."""
        factors, scope = self.disjoint(2 + self.pick(4))
        missing = self.all & ~scope
        if len(factors) < 2 and missing:
            i = missing.bit_length() - 1
            factors.append(self.leaf(i))
            scope |= 1 << i
        self.add(product_node(factors), scope)

    def grow_full_product(self, tries: int) -> None:
        """A product over all variables, with p·z + q for those that the pool did not give."""
        factors, scope = self.disjoint(tries)
        missing = [self.affine(i) for i in range(len(self.names)) if not scope >> i & 1]
        self.add(product_node(factors + missing), self.all)

    def grow(self, size: int) -> Node:
        """A root over about `size` sums and products, in which every subset of the variables has a monomial."""
        for i in range(len(self.names)):
            self.add(self.leaf(i), 1 << i)
        for _ in range(size):
            self.grow_product() if self.pick(5) < 3 else self.grow_sum()
        self.grow_full_product(tries=len(self.names))
        self.grow_full_product(tries=0)
        tops = [self.pool[p][0] for p in self.waiting]
        return weighted_sum(self.weights(len(tops)), tops)


def finish(maker: Maker, size: int, decomposable: bool) -> Circuit:
    root = maker.grow(size)
    return Circuit(root if decomposable else entangle(root, maker.pick), maker.names)


def any_node(maker: Maker, size: int, dets: bool) -> Node:
    """A random DAG, with no structural guarantees."""
    pick = maker.pick
    numbers: list[Any] = [1, 0, -1, 2, Fraction(1, 3), Fraction(-5, 2)]
    if not maker.exact:
        numbers = [1.0, 0.0, -1.0, 2.0, 0.1, -0.3]
    pool = [var(name) for name in maker.names] + [const(x) for x in numbers[: 1 + pick(len(numbers))]]
    for _ in range(size):
        children = [pool[-1 - pick(len(pool))] for _ in range(pick(4))]
        kind = pick(5 if dets else 4)
        if kind == 4 and children:
            matrices = _matrices(maker, pick(len(DET_KINDS)), len(children))
            outside = [pool[-1 - pick(len(pool))] for _ in children]
            pool.append(det(*matrices, children, outside, *_size(maker, len(children), None)))
        elif kind % 2:
            pool.append(product_node(children))
        else:
            pool.append(weighted_sum([numbers[pick(len(numbers))] for _ in children], children))
    return pool[-1]


# -- circuits that are multiaffine and not decomposable --------------------------------------------------------


def entangle(root: Node, pick: Pick, most: int = 6) -> Node:
    """The same polynomial, with at least one and at most `most` nodes written with squares that cancel."""
    order = postorder(root)
    names = [node for node in order if node.op is Op.VAR]
    inner = [node for node in order if node.op is Op.PRODUCT or node.op is Op.SUM] or order
    chosen = {inner[pick(len(inner))] for _ in range(1 + pick(most))}
    new: dict[Node, Node] = {}
    for node in order:
        new[node] = rebuild(node, [new[c] for c in node.children])
        if node in chosen:
            new[node] = _disguise(new[node], pick, names)
    return new[root]


def _disguise(f: Node, pick: Pick, names: list[Node]) -> Node:
    """f, written so that some product is not decomposable."""
    if f.op is Op.PRODUCT and len(f.children) > 1 and pick(2):
        middle = 1 + pick(len(f.children) - 1)
        return polarize(_one_or_product(f.children[:middle]), _one_or_product(f.children[middle:]))
    p, q = names[pick(len(names))], names[pick(len(names))]
    q = weighted_sum((1, 1), (q, f)) if pick(4) == 3 else q
    match pick(3):
        case 0:
            return _times_one(f, weighted_sum((1, 1), (q, f)))
        case 1:
            return _plus_square(f, q)
        case _:
            return _plus_difference(f, p, q)


def _one_or_product(factors: Sequence[Node]) -> Node:
    return factors[0] if len(factors) == 1 else product_node(factors)


def polarize(x: Node, y: Node) -> Node:
    """x·y as ((x + y)² − (x − y)²)/4"""
    plus, minus = weighted_sum((1, 1), (x, y)), weighted_sum((1, -1), (x, y))
    quarter = Fraction(1, 4)
    return weighted_sum((quarter, -quarter), (product_node((plus, plus)), product_node((minus, minus))))


def _times_one(f: Node, q: Node) -> Node:
    """f as f·(q + 1) − f·q"""
    return weighted_sum((1, -1), (product_node((f, weighted_sum((1, 1), (q, ONE)))), product_node((f, q))))


def _plus_square(f: Node, q: Node) -> Node:
    """f as f + (q + 1)² − q² − 2q − 1"""
    q1 = weighted_sum((1, 1), (q, ONE))
    return weighted_sum((1, 1, -1, -2, -1), (f, product_node((q1, q1)), product_node((q, q)), q, ONE))


def _plus_difference(f: Node, p: Node, q: Node) -> Node:
    """f as f + (p + q)·(p − q) − p² + q²"""
    mixed = product_node((weighted_sum((1, 1), (p, q)), weighted_sum((1, -1), (p, q))))
    return weighted_sum((1, 1, -1, 1), (f, mixed, product_node((p, p)), product_node((q, q))))


# -- determinants --------------------------------------------------------------------------------------------


def det_circuit(
    maker: Maker, kind: str | None, decomposable: bool, complements: bool, sized: bool | None = None
) -> Node:
    groups = _groups(maker)
    inside = [_child(maker, group, decomposable) for group in groups]
    outside = [_child(maker, g, decomposable) if complements and maker.pick(2) else ONE for g in groups]
    which = maker.pick(len(DET_KINDS)) if kind is None else DET_KINDS.index(kind)
    return det(*_matrices(maker, which, len(groups)), inside, outside, *_size(maker, len(groups), sized))


def _size(maker: Maker, k: int, sized: bool | None) -> tuple[int | None, list[int] | None]:
    """A size for a determinant of k children and which of them it counts, or no size.

    If `sized` is None, one determinant in three has a size. Half of the sizes count all children.
    """
    if sized is None:
        sized = maker.pick(3) == 2
    if not sized:
        return None, None
    counted = [maker.pick(2) for _ in range(k)] if maker.pick(2) else None
    return maker.pick(1 + (k if counted is None else sum(counted))), counted


def _groups(maker: Maker) -> list[list[str]]:
    """The variables, cut into consecutive groups."""
    groups: list[list[str]] = [[]]
    for name in maker.names:
        if groups[-1] and maker.pick(4) != 3:
            groups.append([])
        groups[-1].append(name)
    return groups


def _child(maker: Maker, group: list[str], decomposable: bool) -> Node:
    own = Maker(maker.pick, group, maker.negative, maker.exact)
    node = own.leaf(0) if len(group) == 1 else own.grow(maker.pick(3))
    return node if decomposable else entangle(node, maker.pick, 2)


def around(maker: Maker, root: Node) -> Node:
    """The determinant on its own, times a weight, or in a sum with a product of leaves."""
    leaves = product_node([maker.leaf(i) for i in range(len(maker.names))])
    shape = maker.pick(3)
    return root if shape == 0 else weighted_sum(maker.weights(shape), [root, leaves][:shape])


def _matrices(maker: Maker, kind: int, k: int) -> tuple[Any, Any, Any]:
    """M0, U, V of the kind, for k children."""
    r = 1 + maker.pick(k)
    B, C = _random_matrix(maker, r, k), _random_matrix(maker, r, k)
    one_k, one_r = np.identity(k, dtype=object), np.identity(r, dtype=object)
    third = Fraction(1, 3) if maker.exact else 0.375
    match DET_KINDS[kind]:
        case "psd":
            found = one_k, one_k, B.T @ B
        case "kernel":
            K = (B.T @ C) * third
            found = one_k - K, one_k, K.T
        case "low rank":
            found = one_r, B, B
        case "singular":
            found = one_r * 0, B, B
        case _:
            found = _random_matrix(maker, r, r), B, C
    m0, u, v = (m.tolist() if maker.exact else m.astype(float) for m in found)
    return m0, u, v


def _random_matrix(maker: Maker, rows: int, columns: int) -> np.ndarray:
    """A matrix of small numbers, some of them zero."""
    entries = [maker.pick(5) - 2 for _ in range(rows * columns)]
    scale = Fraction(1, 2) if maker.exact else 0.5
    return np.array([e * scale for e in entries], dtype=object).reshape(rows, columns)


# -- probabilistic circuits ------------------------------------------------------------------------------------------


def random_pc(rng: np.random.Generator | int, n: int, size: int = 12, exact: bool = True) -> PC:
    """A random decomposable probabilistic circuit over z1..zn: a DAG with shared nodes that is hardly ever smooth.

    Parameters
    ----------
    rng : numpy Generator or int
        The source of randomness; an int is a seed.
    n, size : int
        The number of variables, and the approximate number of sums and products. Some variables may not occur.
    exact : bool
        If False, the weights are floats.

    Examples
    --------
    >>> from pgcc.testing import random_pc
    >>> report = random_pc(0, n=4).structure()
    >>> report.decomposable, report.smooth
    (True, False)
    """
    return make_pc(_numpy_pick(rng), n, size, exact)


def make_pc(pick: Pick, n: int, size: int, exact: bool) -> PC:
    """The circuit of `random_pc`, by the choices of any `Pick`."""
    maker = Maker(pick, z_names(n), negative=False, exact=exact)
    for i, name in enumerate(maker.names):
        for complement in (False, True):
            maker.add(var(name, complement), 1 << i)
    if pick(4) == 3:
        maker.add(ONE, 0)
    for _ in range(size):
        _grow_pc_product(maker) if pick(5) < 3 else maker.grow_sum()
    tops = [maker.pool[p][0] for p in maker.waiting if maker.pool[p][0].children] or [maker.pool[-1][0]]
    return PC(weighted_sum(maker.weights(len(tops)), tops), maker.names)


def _grow_pc_product(maker: Maker) -> None:
    factors, scope = maker.disjoint(2 + maker.pick(4))
    if factors:
        maker.add(product_node(factors), scope)
