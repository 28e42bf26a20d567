"""The language: five operations, one immutable interned node.

    Const c                       the number c
    Var   z                       a variable of the generating polynomial
    Sum   Σ w_i · child_i         weights are numbers, of any sign
    Product Π child_i
    Det   det [[M0, U·diag(f)], [−Vᵀ, diag(y)]]      children f_1..f_k and their complements y_1..y_k

With y = 1, which is how people write it, Det is det(M0 + U·diag(f)·Vᵀ). Its expansion is
Σ_T c_T · Π_{i∈T} f_i · Π_{i∉T} y_i: affine in every pair (f_i, y_i), so that a y_i of 0 says "child i is in".
With a `size` k only the terms with |T| = k are kept: the coefficient of s^k where f is s·f. That is a k-DPP. If only
some children are `counted`, the terms with |T ∩ counted| = k: the coefficient where f is s·f for these.

A variable has a *complement* ȳ (`Var(z, complement=True)`), which is 1 in every generating polynomial and
only stands in homogenized circuits: z = (1, 0, 1) and ȳ = (0, 1, 1) for observed 1, observed 0, free.

Equal nodes are one object: compare with `is`. Nodes hold no names of parents, no caches, no facts.
"""

from __future__ import annotations

import enum
import weakref
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import chain
from operator import attrgetter
from typing import Any, TypeVar

from pgcc.errors import CircuitError, plural
from pgcc.ir.matrix import Matrix
from pgcc.ir.numbers import Number, as_number
from pgcc.locks import new_lock

T = TypeVar("T", bound=Hashable)


class Op(enum.IntEnum):
    """The five operations."""

    CONST = 0
    VAR = 1
    SUM = 2
    PRODUCT = 3
    DET = 4


class Node:
    """One operation with its children. Made by `const`, `var`, `weighted_sum`, `product` and `det` only."""

    __slots__ = ("__weakref__", "children", "data", "op")

    op: Op
    children: tuple[Node, ...]
    data: Any  # Const: number; Var: (name, complement); Sum: weights; Det: (M0, U, V, size, counted)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a node is immutable: cannot set {name!r}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a node is immutable: cannot delete {name!r}")

    def __copy__(self) -> Node:
        return self

    def __deepcopy__(self, memo: dict) -> Node:
        return self

    def __reduce__(self) -> Any:
        raise TypeError("a node is not pickled by itself (deep circuits would overflow the stack): pickle its Circuit")

    @property
    def value(self) -> Number:
        """The number of a Const."""
        return self.data

    @property
    def name(self) -> str:
        """The variable's name."""
        return self.data[0]

    @property
    def is_complement(self) -> bool:
        """Whether a Var is the complement ȳ of its variable."""
        return self.data[1]

    @property
    def weights(self) -> tuple[Number, ...]:
        """The weights of a Sum, one per child."""
        return self.data

    @property
    def matrices(self) -> tuple[Matrix, Matrix, Matrix]:
        """(M0, U, V) of a Det."""
        return self.data[:3]

    @property
    def size(self) -> int | None:
        """How many of the counted children of a Det are in, if that is fixed."""
        return self.data[3]

    @property
    def counted(self) -> tuple[bool, ...]:
        """Which children of a Det its size counts; all of them by default."""
        return (True,) * (len(self.children) // 2) if self.data[4] is None else self.data[4]

    @property
    def inside(self) -> tuple[Node, ...]:
        """The children f_1..f_k of a Det."""
        return self.children[: len(self.children) // 2]

    @property
    def outside(self) -> tuple[Node, ...]:
        """The complements y_1..y_k of a Det."""
        return self.children[len(self.children) // 2 :]

    def __repr__(self) -> str:
        if self.op is Op.CONST:
            return f"Const({self.value})"
        if self.op is Op.VAR:
            return f"Var({self.name}{', complement' if self.is_complement else ''})"
        return f"{self.op.name.capitalize()}({len(self.children)} children)"


class _Reference(weakref.ref):
    """A weak reference that knows its key, so that a dead node leaves the table."""

    __slots__ = ("key",)

    key: tuple


_interned: dict[tuple, _Reference] = {}
_lock = new_lock()  # re-entrant: making a node may collect garbage, which forgets other nodes


def _forget(reference: _Reference) -> None:
    with _lock:
        if _interned.get(reference.key) is reference:
            del _interned[reference.key]


_slots = vars(Node)  # the descriptors of the slots: they write past `__setattr__`
_set_op, _set_children, _set_data = _slots["op"].__set__, _slots["children"].__set__, _slots["data"].__set__


def _new_node(op: Op, children: tuple[Node, ...], data: Any) -> Node:
    node = Node.__new__(Node)
    _set_op(node, op)
    _set_children(node, children)
    _set_data(node, data)
    return node


def identity(op: Op, children: tuple, data: Any) -> tuple:
    """A key that two nodes share if they are equal; children : the nodes, or anything that identifies them."""
    # The types keep 0.5 and Fraction(1, 2) apart: they are equal in Python, but only one of them was given exactly.
    kinds = tuple(map(type, data)) if op is Op.SUM else (type(data),) if op is Op.CONST else ()
    return (op, children, _ratios(data) if Fraction in kinds else data, kinds)


def intern(op: Op, children: tuple[Node, ...], data: Any) -> Node:
    """The node of data that were checked when a node was first made of them."""
    key = identity(op, children, data)
    with _lock:
        reference = _interned.get(key)
        node = reference() if reference is not None else None
        if node is None:
            node = _new_node(op, children, data)
            reference = _interned[key] = _Reference(node, _forget)
            reference.key = key
    return node


def _ratios(data: Any) -> tuple[tuple[int, int], ...]:
    # To hash a Fraction takes a modular inverse, at birth, at every hit and at death: three times the whole cost.
    return tuple([x.as_integer_ratio() for x in (data if type(data) is tuple else (data,))])


def const(value: Any) -> Node:
    """The number `value`."""
    return intern(Op.CONST, (), as_number(value))


def var(name: str, complement: bool = False) -> Node:
    """The variable called `name`, or its complement."""
    if not isinstance(name, str) or not name or not name.isprintable():
        raise CircuitError(f"a variable's name is a non-empty printable string, not {name!r}")
    return intern(Op.VAR, (), (name, bool(complement)))


def weighted_sum(weights: Iterable[Any], children: Iterable[Node]) -> Node:
    """Σ w_i · child_i."""
    numbers = tuple(map(as_number, weights))
    nodes = _nodes(children)
    if len(numbers) != len(nodes):
        raise CircuitError(
            f"a sum of {plural(len(nodes), 'child', 'children')} needs as many weights, not {len(numbers)}"
        )
    return intern(Op.SUM, nodes, numbers)


def product(children: Iterable[Node]) -> Node:
    """Π child_i."""
    return intern(Op.PRODUCT, _nodes(children), None)


def det(
    M0: Any,
    U: Any,
    V: Any,
    inside: Iterable[Node],
    outside: Iterable[Node] | None = None,
    size: int | None = None,
    counted: Iterable[Any] | None = None,
) -> Node:
    """det [[M0, U·diag(f)], [−Vᵀ, diag(y)]]; with `outside` left out, det(M0 + U·diag(f)·Vᵀ).

    With a `size`, only the terms of its expansion that have that many factors f_i. If `counted` is given, only the f_i
    marked by True (or 1) count.
    """
    f = _nodes(inside)
    y = (ONE,) * len(f) if outside is None else _nodes(outside)
    return intern(Op.DET, f + y, det_data(M0, U, V, len(f), len(y), size, counted))


def det_data(
    M0: Any, U: Any, V: Any, inside: int, outside: int, size: int | None, counted: Iterable[Any] | None
) -> tuple[Matrix, Matrix, Matrix, int | None, tuple[bool, ...] | None]:
    """The data of a determinant: its checked matrices, its size, and which of its `inside` children count."""
    m0 = Matrix(M0)
    u, v = Matrix(U, shape=(0, inside)), Matrix(V, shape=(0, inside))
    r = m0.shape[0]
    if m0.shape != (r, r) or u.shape != (r, inside) or v.shape != (r, inside) or outside != inside:
        raise CircuitError(
            f"a determinant with {plural(inside, 'child', 'children')} needs M0 of shape r×r and U, V of shape "
            f"r×{inside}: got {m0.shape}, {u.shape}, {v.shape}, and {outside} complements"
        )
    which = None if counted is None else _as_counted(counted, inside, size)
    n = inside if which is None else sum(which)
    if size is not None and not is_size(size, n):
        of = plural(n, "child", "children") if which is None else plural(n, "counted child", "counted children")
        raise CircuitError(f"the size of a determinant of {of} is a number from 0 to {n}, not {size}")
    return m0, u, v, size, which


def _as_counted(counted: Iterable[Any], k: int, size: Any) -> tuple[bool, ...] | None:
    """The marks as booleans; None where all children count, which is the default."""
    marks = tuple(counted)
    if size is None and not all(marks):
        raise CircuitError("which children are counted means something for a determinant with a size only")
    if len(marks) != k or any(mark not in (0, 1) for mark in marks):
        raise CircuitError(f"what is counted of {k} children is a list of {k} numbers 0 or 1, not {list(marks)!r}")
    return None if all(marks) else tuple(map(bool, marks))


def is_size(size: Any, n: int) -> bool:
    """Whether it is the size of some subset of n things.

    >>> is_size(2, 3), is_size(4, 3), is_size(True, 3)
    (True, False, False)
    """
    return type(size) is int and 0 <= size <= n


def _nodes(children: Iterable[Node]) -> tuple[Node, ...]:
    nodes = tuple(children)
    for node in nodes:
        if type(node) is not Node:
            raise CircuitError(f"a child of a circuit node must be a node, not {type(node).__name__}")
    return nodes


ZERO = const(0)
ONE = const(1)


def postorder(root: T, below: Callable[[T], Sequence[T]] = attrgetter("children")) -> list[T]:
    """Every node once, children before parents, left to right; iterative, so depth does not matter.

    Parameters
    ----------
    root : Node, or anything hashable
    below : function
        The children of a node.
    """
    order: list[T] = []
    seen = {root}
    path = [(root, iter(below(root)))]  # from the root to here, with the children still to be visited
    while path:
        node, children = path[-1]
        for child in children:
            if child not in seen:  # a node on the path is no child of one below it: there are no cycles
                seen.add(child)
                under = below(child)
                if under:
                    path.append((child, iter(under)))
                    break
                order.append(child)
        else:
            order.append(node)
            path.pop()
    return order


def iter_edges(node: Node) -> Iterator[tuple[Number, Node]]:
    """(weight, child) of a Sum."""
    return zip(node.weights, node.children, strict=True)


def count_uses(order: Iterable[Node]) -> Counter[Node]:
    """The number of edges into every node of a postorder."""
    return Counter(chain.from_iterable(node.children for node in order))


def rebuild(node: Node, children: Sequence[Node]) -> Node:
    """The same operation on other children."""
    if len(children) == len(node.children) and all(map(_is, children, node.children)):
        return node
    if len(children) != len(node.children):
        raise CircuitError(f"{node!r} cannot be rebuilt with {len(children)} children")
    return intern(node.op, tuple(children), node.data)


def _is(a: object, b: object) -> bool:
    return a is b
