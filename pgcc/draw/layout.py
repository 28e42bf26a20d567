"""A circuit drawn as a layered graph: where everything stands, and what is written on it.

Sugiyama's method. A node stands in the layer of its longest path from the root, so that every edge goes down; an edge
that passes layers bends once in each. Sweeps of barycentres order the layers so that few edges cross, and the places in
a layer are those nearest to the neighbours' (least squares) that keep order and distance. All of it is deterministic.
"""

from __future__ import annotations

from bisect import bisect, bisect_left, insort
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from unicodedata import east_asian_width

from pgcc.draw.labels import LOOKS, labelled_edges, node_label, shortened
from pgcc.draw.part import Around, Part, Stub, check_most, neighbourhood, top, whole
from pgcc.ir.circuit import Circuit
from pgcc.ir.node import Node
from pgcc.ir.numbers import Number
from pgcc.ir.spelling import display_text

Point = tuple[float, float]
Edge = tuple[int, int]  # parent and child

# Sizes in pixels.
NOTE_HEIGHT = 22.0  # of the line that says which part is drawn
RADIUS = 13.0  # of sums and products; half the height of boxes
GAP = 14.0  # between neighbours in a layer
MARGIN = 12.0
LETTER, SMALL_LETTER = 7.0, 5.6  # the width of a letter of a node, of an edge
STEPS = 64.0, 160.0  # from a layer to the next: at least, and at most in wide drawings

SWEEPS = 12
LONGEST_LABEL, LONGEST_NUMBER, LONGEST_TITLE = 14, 6, 200  # characters
BENDS_PER_NODE = 40  # a drawing with more is too tangled to read


# -- what is written on nodes and edges -----------------------------------------------------------


def _brief_number(value: Number) -> str:
    text = display_text(value)
    return text if len(text) <= LONGEST_NUMBER or "**" in text else f"{float(value):.3g}"


def text_width(text: str, letter: float) -> float:
    return letter * sum(2 if east_asian_width(character) in "WF" else 1 for character in text)


def _together(labels: Sequence[str]) -> str:
    """The label of parallel edges, which are drawn as one."""
    if len(labels) == 1:
        return labels[0]
    return ", ".join(label or "1" for label in labels) if any(labels) else f"{len(labels)}×"


# -- the layout -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Mark:
    """A drawn node, or a placeholder for omitted ones: its centre and width, its label, and the label in full."""

    node: Node | Stub
    x: float
    y: float
    width: float
    label: str
    title: str


@dataclass(frozen=True)
class Wire:
    """An edge, or several parallel ones: where it passes the layers, from the parent down to the child.

    `label_at` is the middle of the label, or None where there is no room for it. `cut`: it leads to omitted nodes.
    """

    points: tuple[Point, ...]
    label: str
    title: str
    label_at: Point | None
    cut: bool = False

    @property
    def curve(self) -> list[Point]:
        """The start, then three control points for every cubic Bézier segment; all begin and end vertically."""
        path = [self.points[0]]
        for (x0, y0), (x1, y1) in pairwise(self.points):
            middle = (y0 + y1) / 2
            path += [(x0, middle), (x1, middle), (x1, y1)]
        return path


@dataclass(frozen=True)
class Drawing:
    """A circuit laid out on `width` × `height` pixels, y downwards, with a line at the bottom if it is a part."""

    marks: list[Mark]
    wires: list[Wire]
    width: float
    height: float
    note: str = ""


def lay_out(circuit: Circuit, most_nodes: int = 80, around: Around = None) -> Drawing:
    """Where nodes and edges of a circuit are drawn.

    A circuit with more nodes than the limit, or whose edges would be a tangle, is drawn in part: its top, of half as
    many nodes, or fewer. With `around`, the neighbourhood of that node or variable is drawn, by the same limits.
    """
    if around is None and len(circuit.order) <= check_most(most_nodes):
        graph = _DrawnGraph(whole(circuit))
        if graph.bends <= BENDS_PER_NODE * most_nodes:
            return _place(graph)
    count = max(1, most_nodes // 2) if around is None else check_most(most_nodes)
    while True:
        graph = _DrawnGraph(top(circuit, count) if around is None else neighbourhood(circuit, around, count))
        if count <= 1 or graph.bends <= BENDS_PER_NODE * most_nodes:
            return _place(graph)
        count //= 2


def _place(graph: _DrawnGraph) -> Drawing:
    labels = [shortened(_label(one), LONGEST_LABEL) for one in graph.drawn]
    grid = _Grid(graph.depths, list(graph.edges), list(map(_width, graph.drawn, labels)))
    x = grid.places()
    width = MARGIN + max(place + wide / 2 for place, wide in zip(x, grid.widths, strict=True))
    step = min(max(STEPS[0], width / 12), STEPS[1])
    y = [MARGIN + RADIUS + step * depth for depth in grid.depths]
    marks = [
        Mark(one, x[i], y[i], grid.widths[i], labels[i], shortened(_title(one), LONGEST_TITLE))
        for i, one in enumerate(graph.drawn)
    ]
    paths = [tuple((x[i], y[i]) for i in path) for path in grid.paths]
    cut = [any(isinstance(graph.drawn[end], Stub) for end in edge) for edge in graph.edges]
    wires = _wires(paths, list(graph.edges.values()), cut)
    height, note = max(y) + RADIUS + MARGIN, graph.part.note
    if not note:
        return Drawing(marks, wires, width, height)
    aside = max(0.0, text_width(note, SMALL_LETTER) + 2 * MARGIN - width) / 2  # room for the note
    marks = [replace(mark, x=mark.x + aside) for mark in marks]
    wires = [_moved(wire, aside) for wire in wires]
    return Drawing(marks, wires, width + 2 * aside, height + NOTE_HEIGHT, note)


def _moved(wire: Wire, aside: float) -> Wire:
    at = None if wire.label_at is None else (wire.label_at[0] + aside, wire.label_at[1])
    return replace(wire, points=tuple((x + aside, y) for x, y in wire.points), label_at=at)


def _label(one: Node | Stub) -> str:
    return one.label if isinstance(one, Stub) else node_label(one, _brief_number)


def _title(one: Node | Stub) -> str:
    return one.title if isinstance(one, Stub) else node_label(one)


def _width(one: Node | Stub, label: str) -> float:
    if isinstance(one, Node) and LOOKS[one.op].is_round:
        return 2 * RADIUS
    return max(2 * RADIUS, text_width(label, LETTER) + RADIUS)


class _DrawnGraph:
    """What is drawn, parents first, and the edges between: (parent, child) to the label, shortened and in full."""

    def __init__(self, part: Part):
        self.part = part
        above = [stub for stub in part.stubs if not stub.below]
        below = [stub for stub in part.stubs if stub.below]
        self.drawn: list[Node | Stub] = [*above, *reversed(part.nodes), *below]
        number = {one: i for i, one in enumerate(self.drawn)}
        self.edges: dict[Edge, tuple[str, str]] = {(number[stub], number[stub.node]): ("", "") for stub in above}
        for node in reversed(part.nodes):
            for child, (briefs, fulls) in _edges_below(node).items():
                if child in number:
                    labels = shortened(_together(briefs), LONGEST_LABEL), shortened(_together(fulls), LONGEST_TITLE)
                    self.edges[number[node], number[child]] = labels
        self.edges |= {(number[stub.node], number[stub]): ("", "") for stub in below}
        self.depths = _depths(len(self.drawn), self.edges)
        for stub in above:  # beside what it leads to, not at the top of the picture
            self.depths[number[stub]] = self.depths[number[stub.node]] - 1

    @property
    def bends(self) -> int:
        """The number of layers that each edge passes, added up over all edges."""
        return sum(self.depths[v] - self.depths[u] for u, v in self.edges)


def _edges_below(node: Node) -> dict[Node, tuple[list[str], list[str]]]:
    """Every child once, with the labels of all edges to it, shortened and in full."""
    below: dict[Node, tuple[list[str], list[str]]] = {}
    for (child, brief), (_, full) in zip(labelled_edges(node, _brief_number), labelled_edges(node), strict=True):
        briefs, fulls = below.setdefault(child, ([], []))
        briefs.append(brief)
        fulls.append(full)
    return below


def _depths(count: int, edges: Iterable[Edge]) -> list[int]:
    """The longest path from the root (0) to every node; the edges are listed parents first."""
    depths = [0] * count
    for u, v in edges:
        depths[v] = max(depths[v], depths[u] + 1)
    return depths


class _Grid:
    """Nodes 0, 1, … and then bends, in layers; edges join neighbouring layers only.

    Attributes
    ----------
    depths, widths : list
        Of every node and bend: its layer, and its width.
    paths : list
        The parent, the bends and the child of every edge.
    above, below : list
        The neighbours of every node and bend.
    layers : list
        The order of every layer, from left to right.
    """

    def __init__(self, depths: Sequence[int], edges: Sequence[Edge], widths: Sequence[float]):
        self.depths = list(depths)
        self.paths: list[list[int]] = []
        rank = [-i for i in range(len(depths))]  # from left to right: the order of the circuit's text
        for u, v in edges:
            bends = range(len(self.depths), len(self.depths) + depths[v] - depths[u] - 1)
            self.paths.append([u, *bends, v])
            self.depths += range(depths[u] + 1, depths[v])
            rank += [rank[v]] * len(bends)
        self.widths = [*widths, *[0.0] * (len(self.depths) - len(widths))]
        self.above: list[list[int]] = [[] for _ in self.depths]
        self.below: list[list[int]] = [[] for _ in self.depths]
        for path in self.paths:
            for u, v in pairwise(path):
                self.above[v].append(u)
                self.below[u].append(v)
        self.layers: list[list[int]] = [[] for _ in range(max(depths) + 1)]
        for i in sorted(range(len(self.depths)), key=rank.__getitem__):
            self.layers[self.depths[i]].append(i)
        self._untangle()

    def _untangle(self) -> None:
        """Orders every layer by the mean place of the neighbours above, then below, …; the best order is kept."""
        best, fewest = [list(layer) for layer in self.layers], self._crossings()
        for sweep in range(SWEEPS):
            for beside, layer, neighbours in self._sweep(downwards=sweep % 2 == 0):
                place = {i: float(p) for p, i in enumerate(beside)}
                means = {i: _mean(place, neighbours[i], p) for p, i in enumerate(layer)}
                if sweep % 4 >= 2:
                    layer.reverse()  # reverses the order of nodes with equal means: it may be better
                layer.sort(key=means.__getitem__)
            self._swap_neighbours()
            if (crossings := self._crossings()) < fewest:
                best, fewest = [list(layer) for layer in self.layers], crossings
        self.layers = best

    def _swap_neighbours(self) -> None:
        """Go through every layer once: two neighbours change places if that makes fewer of their edges cross."""
        place = {i: p for layer in self.layers for p, i in enumerate(layer)}
        for layer in self.layers:
            for p in range(len(layer) - 1):
                u, v = layer[p], layer[p + 1]
                sides = [
                    (sorted(place[i] for i in near[u]), sorted(place[i] for i in near[v]))
                    for near in (self.above, self.below)
                ]
                if sum(_inversions(a, b) - _inversions(b, a) for a, b in sides) > 0:
                    layer[p], layer[p + 1] = v, u
                    place[u], place[v] = p + 1, p

    def _sweep(self, downwards: bool) -> Iterator[tuple[list[int], list[int], list[list[int]]]]:
        """(the previous layer, the layer, for every node its neighbours in the direction of the previous one)"""
        layers, neighbours = (self.layers, self.above) if downwards else (self.layers[::-1], self.below)
        for beside, layer in pairwise(layers):
            yield beside, layer, neighbours

    def _crossings(self) -> int:
        """Edges cross where the order of their lower ends is not that of the upper ones: inversions."""
        count = 0
        for upper, lower in pairwise(self.layers):
            place = {i: p for p, i in enumerate(lower)}
            passed: list[int] = []
            for i in upper:
                ends = [place[child] for child in self.below[i]]
                count += sum(len(passed) - bisect(passed, end) for end in ends)
                for end in ends:
                    insort(passed, end)
        return count

    def places(self) -> list[float]:
        """x of every node and bend, near to its neighbours; the leftmost one begins at the margin."""
        x = dict.fromkeys(range(len(self.depths)), 0.0)
        for sweep in range(SWEEPS):
            for _, layer, neighbours in self._sweep(downwards=sweep % 2 == 1):
                wanted = [_mean(x, neighbours[i], x[i]) for i in layer]
                x.update(zip(layer, _spread(wanted, [self.widths[i] for i in layer]), strict=True))
        left = min(x[i] - wide / 2 for i, wide in enumerate(self.widths)) - MARGIN
        return [place - left for place in x.values()]


def _inversions(a: Sequence[int], b: Sequence[int]) -> int:
    """How many pairs of an end in a and one in b, which is sorted, stand the other way round."""
    return sum(bisect_left(b, end) for end in a)


def _mean(place: dict[int, float], of: Sequence[int], otherwise: float) -> float:
    return sum(place[i] for i in of) / len(of) if of else otherwise


def _spread(wanted: Sequence[float], widths: Sequence[float]) -> list[float]:
    """The places nearest to the wanted ones, in the same order and without overlap: isotonic regression."""
    distances = [(a + b) / 2 + GAP for a, b in pairwise(widths)]
    offsets = list(accumulate(distances, initial=0.0))
    blocks: list[tuple[float, int]] = []  # pools of touching nodes: the sum of their wanted places, their number
    for target, offset in zip(wanted, offsets, strict=True):
        total, count = target - offset, 1
        while blocks and blocks[-1][0] * count >= total * blocks[-1][1]:
            before, more = blocks.pop()
            total, count = total + before, count + more
        blocks.append((total, count))
    means = [total / count for total, count in blocks for _ in range(count)]
    return [mean + offset for mean, offset in zip(means, offsets, strict=True)]


def _wires(paths: Sequence[tuple[Point, ...]], labels: Sequence[tuple[str, str]], cut: Sequence[bool]) -> list[Wire]:
    """Edges with labels on the first piece of each: in three rows between two layers, as far as there is space."""
    rows: dict[float, list[Point]] = {}  # y to the stretches that are taken, from left to right

    def room(start: Point, end: Point, label: str) -> Point | None:
        half = text_width(label, SMALL_LETTER) / 2 + 1
        for t in (0.5, 0.28, 0.72):
            x = start[0] + (end[0] - start[0]) * t * t * (3 - 2 * t)  # on the curve
            y = round(start[1] + (end[1] - start[1]) * t * (1.5 - 1.5 * t + t * t), 6)
            taken = rows.setdefault(y, [])
            i = bisect(taken, (x, x))
            if (i == 0 or taken[i - 1][1] <= x - half) and (i == len(taken) or x + half <= taken[i][0]):
                taken.insert(i, (x - half, x + half))
                return x, y
        return None

    return [
        Wire(points, label, title, room(points[0], points[1], label) if label else None, ends)
        for points, (label, title), ends in zip(paths, labels, cut, strict=True)
    ]
