"""The part of a circuit to draw: all of it, its top, or the neighbourhood of a node; and what that leaves out."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from pgcc.draw.labels import labelled_edges
from pgcc.errors import PgccError, plural
from pgcc.ir.circuit import Circuit
from pgcc.ir.names import hint
from pgcc.ir.node import Node, Op

Around = str | Node | Circuit | None

# In a picture of a part: how many levels from its centre, and how many neighbours of a node on either side.
TOP_LEVELS, AROUND_LEVELS = 8, 3
MOST_NEIGHBOURS = 6


@dataclass(frozen=True, eq=False)
class Stub:
    """A placeholder for the neighbours of a node that are left out: children below it, or parents above."""

    node: Node
    count: int
    below: bool

    @property
    def label(self) -> str:
        """The label in the picture."""
        return f"⋯ {self.count:,}"

    @property
    def title(self) -> str:
        """The label in words."""
        more = plural(self.count, "more child", "more children") if self.below else plural(self.count, "more parent")
        return f"{more}, not drawn"


@dataclass(frozen=True)
class Part:
    """The nodes to draw, children first, and stubs for the neighbours that are left out.

    `note` says which part of the circuit it is, in words; it is empty if nothing is left out.
    """

    nodes: list[Node]
    stubs: list[Stub]
    note: str


def check_most(most_nodes: int) -> int:
    """Check the largest number of nodes to draw."""
    if isinstance(most_nodes, bool) or not isinstance(most_nodes, int) or most_nodes < 1:
        raise PgccError(
            f"most_nodes={most_nodes!r} is not a number of nodes to draw (a number ≥ 1)", argument="most_nodes"
        )
    return most_nodes


def whole(circuit: Circuit) -> Part:
    """All nodes, except the complements of determinants that are 1."""
    seen = {circuit.root}
    for node in reversed(circuit.order):
        if node in seen:
            seen.update(_children(node))
    return Part([node for node in circuit.order if node in seen], [], "")


def top(circuit: Circuit, most_nodes: int) -> Part:
    """The root and the nodes nearest below it."""
    nodes = _nearest([circuit.root], most_nodes, TOP_LEVELS, _children)
    note = f"the top {len(nodes):,} of {_size_text(circuit)}"
    return _cut(circuit, nodes, note, {})


def neighbourhood(circuit: Circuit, around: str | Node | Circuit, most_nodes: int) -> Part:
    """A node, or the leaves of a variable, and the nodes nearest above and below."""
    centres = _centres(circuit, around)
    parents = _parents(circuit)
    nodes = _nearest(centres, most_nodes, AROUND_LEVELS, lambda node: [*_children(node), *parents.get(node, {})])
    what = repr(around) if isinstance(around, str) else "a node"
    note = f"{plural(len(nodes), 'node')} around {what}, of {_size_text(circuit)}"
    return _cut(circuit, nodes, note, parents)


def _size_text(circuit: Circuit) -> str:
    return f"{plural(len(circuit.order), 'node')} and {plural(circuit.edges, 'edge')}"


def _children(node: Node) -> list[Node]:
    return [child for child, _ in labelled_edges(node, lambda weight: "")]  # without labels, which take long


def _parents(circuit: Circuit) -> dict[Node, dict[Node, None]]:
    parents: dict[Node, dict[Node, None]] = {}
    for node in circuit.order:
        for child in _children(node):
            parents.setdefault(child, {})[node] = None
    return parents


def _centres(circuit: Circuit, around: str | Node | Circuit) -> list[Node]:
    """The nodes that `around` names, all of them in the circuit."""
    if isinstance(around, str):
        found = [node for node in circuit.order if node.op is Op.VAR and node.name == around]
        if not found:
            raise PgccError(
                f"around={around!r}: no variable of that name occurs in the circuit{hint(around, circuit.variables)}",
                argument="around",
            )
        return found
    centre = around.root if isinstance(around, Circuit) else around
    if not isinstance(centre, Node):
        raise PgccError(
            f"around={around!r}: a picture is around a variable, by its name, or a part of the circuit (a Circuit)",
            argument="around",
        )
    if centre not in set(circuit.order):
        raise PgccError("around=: that is not a part of this circuit", argument="around")
    return [centre]


def _nearest(
    start: Sequence[Node], most_nodes: int, levels: int, neighbours: Callable[[Node], Iterable[Node]]
) -> set[Node]:
    """Nodes by their distance, with some neighbours of each, up to the largest number to draw."""
    distance = dict.fromkeys(start[:most_nodes], 0)
    queue = deque(distance)
    while queue and len(distance) < most_nodes:
        node = queue.popleft()
        if distance[node] == levels:
            break
        new = [one for one in dict.fromkeys(neighbours(node)) if one not in distance][:MOST_NEIGHBOURS]
        for one in new[: most_nodes - len(distance)]:
            distance[one] = distance[node] + 1
            queue.append(one)
    return set(distance)


def _cut(circuit: Circuit, shown: set[Node], note: str, parents: dict[Node, dict[Node, None]]) -> Part:
    """The shown nodes in the order of the circuit, with a stub wherever children (or these parents) are left out."""
    nodes = [node for node in circuit.order if node in shown]
    below = [Stub(node, len(set(_children(node)) - shown), below=True) for node in nodes]
    above = [Stub(node, len(parents.get(node, {}).keys() - shown), below=False) for node in nodes]
    stubs = [stub for stub in (*below, *above) if stub.count]
    return Part(nodes, stubs, note if stubs else "")  # it is connected: no stubs, nothing left out
