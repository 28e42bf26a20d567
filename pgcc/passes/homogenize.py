"""Homogenize and smooth: give every child of a sum a factor for each variable of the sum that it misses.

*Homogenize*: the factor is ȳ_i, which is 1 in every generating polynomial.

    g(z)  ↦  ĝ(z, ȳ) = Σ_S g_S · Π_{i∈S} z_i · Π_{i∉S} ȳ_i

The result agrees with g at ȳ = 1, and any marginal is then one evaluation at numbers: (z_i, ȳ_i) = (1, 0), (0, 1),
(1, 1) for observed 1, observed 0, free.

*Smooth*: the factor is z_i + ȳ_i, which says "either value". That is what a variable means that a probabilistic circuit
(over literals z_i, ȳ_i) does not mention.

Products of factors are shared: they are built from the aligned blocks of a binary tree over the variables, never one
per edge.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from pgcc.collector import collector_paused
from pgcc.errors import CircuitError
from pgcc.ir.circuit import Circuit, from_flat
from pgcc.ir.flat import Flat, spread, starts
from pgcc.ir.node import Node, Op, const, postorder, product, var, weighted_sum
from pgcc.ir.numbers import mul
from pgcc.ir.operands import check_decomposable
from pgcc.ir.scopes import Scope, difference, from_intervals, runs, size


def homogenize(circuit: Circuit) -> Circuit:
    """The homogenized circuit of a decomposable one; its root mentions every variable of the circuit.

    Examples
    --------
    >>> import pgcc
    >>> print(homogenize(pgcc.parse("0.4*a*b + 0.6")))
    2/5*a*b + 3/5*~a*~b
    """
    return _padded(circuit, lambda name: var(name, complement=True))


def smooth(circuit: Circuit) -> Circuit:
    """The smooth circuit of a decomposable probabilistic circuit: every sum's children have the same variables.

    Examples
    --------
    >>> import pgcc
    >>> print(smooth(pgcc.parse("0.4*a*b + 0.6*~a")))
    2/5*a*b + 3/5*~a*(b + ~b)
    """
    return _padded(circuit, lambda name: weighted_sum((1, 1), (var(name), var(name, complement=True))))


def _padded(circuit: Circuit, filler: Callable[[str], Node]) -> Circuit:
    with collector_paused():
        fillers = Fillers(circuit, filler)
        padding = _Padding(circuit._flat, fillers)
        return from_flat(padding.padded(), circuit.variables) if len(padding.lacking) else circuit


class Fillers:
    """The products of factors that children of a decomposable circuit's sums miss.

    Parameters
    ----------
    circuit : Circuit
    filler : function
        The factor of a variable by its name; by default its complement.

    Attributes
    ----------
    everything : int
        The number of the scope of all variables of the circuit.
    """

    def __init__(self, circuit: Circuit, filler: Callable[[str], Node] = lambda name: var(name, complement=True)):
        check_decomposable(circuit)
        self.scopes, self.filler = circuit.scopes, filler
        occurring = set(self.scopes.names)
        self.names = [*self.scopes.names, *(v for v in circuit.variables if v not in occurring)]
        self.everything = self.scopes.number(from_intervals([(0, len(self.names))] if self.names else []))
        self._absent: dict[Scope, Node] = {}
        self._missing: dict[tuple[int, int], Node | None] = {}

    def missing(self, have: int, want: int) -> Node | None:
        """Π of the factors of the variables of scope `want` that scope `have` lacks; None if there are none."""
        if have == want:
            return None
        key = (have, want)
        if key not in self._missing:
            lacking = difference(self.scopes.distinct[want], self.scopes.distinct[have])
            self._missing[key] = self.absent(lacking) if size(lacking) else None
        return self._missing[key]

    def missing_from_pairs(self, below: tuple[int, ...]) -> list[Node | None]:
        """For every child f_1..f_k, y_1..y_k of a determinant (given by positions): the factors of the variables that
        its partner has (y_i for f_i, f_i for y_i) and it lacks; None if there are none."""
        k = len(below) // 2
        of = [self.scopes.of[c] for c in below]
        both = [self.scopes.union(of[i], of[k + i])[0] for i in range(k)]
        return [self.missing(scope, both[i % k]) for i, scope in enumerate(of)]

    def absent_from_root(self) -> Node | None:
        """Π of the factors of the circuit's variables that its root lacks; None if there are none."""
        return self.missing(self.scopes.of[-1], self.everything)

    def absent(self, scope: Scope) -> Node:
        """Π of the factors of a scope, of shared blocks."""
        gadget = self._absent.get(scope)
        if gadget is None:
            blocks = [self._block(k, level) for start, stop in runs(scope) for k, level in aligned_blocks(start, stop)]
            gadget = self._absent[scope] = _product(blocks)
        return gadget

    def _block(self, k: int, level: int) -> Node:
        """Π of the factors i in [k·2^level, (k+1)·2^level)"""
        if level == 0:
            return self.filler(self.names[k])
        key = (k << level, (k + 1) << level)
        block = self._absent.get(key)
        if block is None:
            block = product((self._block(2 * k, level - 1), self._block(2 * k + 1, level - 1)))
            self._absent[key] = block
        return block


class _Padding:
    """A flat circuit in which no child of a sum, or of a determinant, misses a variable that it should have.

    The edges of the old circuit are known by number, and there is a further one, which leads to the root. New nodes
    come after the old ones: those of `Fillers`, and then the padded children, child · missing.

    Attributes
    ----------
    parent, child : int arrays
        Of every edge, the positions of the nodes that it joins.
    lacking : int array
        The edges whose child misses a variable.
    """

    def __init__(self, flat: Flat, fillers: Fillers):
        self.old, self.fillers = flat, fillers
        self.parent = np.append(np.repeat(np.arange(len(flat.op)), flat.lengths), len(flat.op))
        self.child = np.append(flat.child, len(flat.op) - 1).astype(np.int64)
        self.have, self.want = self._scopes()
        self.lacking = np.flatnonzero(self.have != self.want)

    def _scopes(self) -> tuple[np.ndarray, np.ndarray]:
        """For every edge, the scope of its child, and the scope that the child should have."""
        flat, scopes = self.old, self.fillers.scopes
        of = np.array(scopes.of)
        have = of[self.child]
        want = have.copy()
        want[-1] = self.fillers.everything
        for op in map(Op, np.unique(flat.op).tolist()):
            if op is Op.SUM:
                terms = np.flatnonzero((flat.op == op)[flat.parent])
                want[terms] = of[flat.parent[terms]]
            elif op is Op.DET:
                for i in np.flatnonzero(flat.op == op).tolist():
                    edges = slice(flat.start[i], flat.start[i + 1])
                    inside, outside = have[edges].reshape(2, -1).tolist()
                    want[edges] = 2 * [scopes.union(f, y)[0] for f, y in zip(inside, outside, strict=True)]
            elif op not in (Op.CONST, Op.VAR, Op.PRODUCT):
                raise CircuitError(f"{op.name} cannot be homogenized")
        return have, want

    def padded(self) -> Flat:
        """The new circuit: every new node comes before the first that has it as a child; nodes without parents go."""
        nodes, missing = self._filler_nodes()
        old, products = self._with_new_children(missing, len(self.old.op) + len(nodes))
        fillers = Flat.of(nodes, self.position)
        everything = Flat.joined(old, fillers, self._products(products))
        root = self.new_child[-1]
        time = self._times(everything, len(nodes), products)
        alive = everything.uses > 0
        alive[root] = True
        # among nodes of the same time, the order is: variables, fillers, padded children, the node that reads them
        rank = np.repeat([3, 1, 2], [len(old.op), len(nodes), len(products)])
        rank[everything.op == Op.VAR] = 0
        order = np.argsort(4 * time + rank, kind="stable")
        return everything.arranged(order[alive[order]])

    def _filler_nodes(self) -> tuple[list[Node], np.ndarray]:
        """New nodes with the factors that children lack; and the position of its node for each edge to such a child."""
        count = len(self.fillers.scopes.distinct)
        distinct, which = np.unique(self.have[self.lacking] * count + self.want[self.lacking], return_inverse=True)
        missing = [self.fillers.missing(*divmod(both, count)) for both in distinct.tolist()]
        known = {data: i for i, data in self.old.data.items() if self.old.op[i] == Op.VAR}
        below = postorder(product(node for node in missing if node is not None))[:-1]
        nodes = [node for node in below if node.op is not Op.VAR or node.data not in known]
        self.position = {node: known[node.data] for node in below if node.op is Op.VAR and node.data in known}
        self.position.update((node, len(self.old.op) + i) for i, node in enumerate(nodes))
        return nodes, np.array([self.position[node] for node in missing if node is not None])[which]

    def _with_new_children(self, missing: np.ndarray, first: int) -> tuple[Flat, np.ndarray]:
        """The old nodes with new children; and (child, missing) of products, which have positions from `first` on."""
        flat, lacking, weights = self.old, self.lacking, list(self.old.weights)
        parent, child = self.parent[lacking], self.child[lacking]
        ones = [i for i, data in flat.data.items() if type(data) is int and data == 1]
        replaced = np.isin(child, ones)  # 1·missing is missing
        constant = (flat.op[child] == Op.CONST) & np.append(flat.op == Op.SUM, False)[parent]
        for edge in lacking[constant & ~replaced].tolist():  # w·c = (w·c)·1
            i, c = int(self.parent[edge]), int(self.child[edge])
            k = int(flat.first_weight[i] + edge - flat.start[i])
            weights[k] = mul(weights[k], flat.data[c])
        replaced |= constant
        padded, which = np.unique(child[~replaced] * first + missing[~replaced], return_inverse=True)
        self.new_child = self.child.copy()
        self.new_child[lacking[replaced]] = missing[replaced]
        self.new_child[lacking[~replaced]] = first + which
        products = np.stack(np.divmod(padded, first), axis=1)
        return replace(flat, child=self.new_child[:-1].astype(np.int32), weights=weights), products

    def _products(self, products: np.ndarray) -> Flat:
        """child · missing, where (a·b)·missing is a·b·missing."""
        flat, (child, missing) = self.old, products.T
        opened = flat.op[child] == Op.PRODUCT
        lengths = np.where(opened, flat.lengths[child], 1)
        factor = np.repeat(child, lengths)
        factor[np.repeat(opened, lengths)] = flat.child[spread(flat.start[child[opened]], lengths[opened])]
        owner = np.append(np.repeat(np.arange(len(products)), lengths), np.arange(len(products)))
        order = np.argsort(owner, kind="stable")
        op = np.full(len(products), Op.PRODUCT, np.uint8)
        return Flat(op, starts(lengths + 1), np.append(factor, missing)[order].astype(np.int32), [], {})

    def _times(self, flat: Flat, fillers: int, products: np.ndarray) -> np.ndarray:
        """When each node is needed: the least position of an old node that needs it."""
        n = len(self.old.op)
        time = np.full(len(flat.op), n)
        time[:n] = np.arange(n)
        np.minimum.at(time, self.new_child[self.lacking], self.parent[self.lacking])
        np.minimum.at(time, products[:, 1], time[n + fillers :])
        start, child, when = flat.start.tolist(), flat.child.tolist(), time.tolist()
        for i in reversed(range(n, n + fillers)):
            for c in child[start[i] : start[i + 1]]:
                when[c] = min(when[c], when[i])
        return np.array(when)


def aligned_blocks(start: int, stop: int) -> list[tuple[int, int]]:
    """[start, stop) as O(log) aligned blocks (k, level) = [k·2^level, (k+1)·2^level).

    >>> aligned_blocks(3, 8)
    [(3, 0), (1, 2)]
    """
    blocks = []
    while start < stop:
        level = min((start & -start).bit_length() - 1 if start else 63, (stop - start).bit_length() - 1)
        blocks.append((start >> level, level))
        start += 1 << level
    return blocks


def _product(nodes: list[Node]) -> Node:
    return nodes[0] if len(nodes) == 1 else product(nodes) if nodes else const(1)
