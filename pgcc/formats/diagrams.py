"""What the files of SDDs and PSDDs share: a node per line, literals `L`, decisions `D`, and a vtree."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from pgcc.formats.io import shown
from pgcc.formats.logic import Lines, Nodes
from pgcc.formats.vtree import Vtree, VtreeChecker


class DiagramReader:
    """Reads the lines one by one.

    Parameters
    ----------
    path : Path
    vtree : Vtree, optional
        Which the nodes are checked against.
    normalized : bool
        Whether primes and subs sit right at the children of their decision's vtree node.
    """

    def __init__(self, path: Path, vtree: Vtree | None, *, normalized: bool):
        self.lines, self.vtree = Lines(path), vtree
        self.nodes = Nodes(self.lines)
        self.build = self.nodes.build
        self.checker = VtreeChecker(self.lines, vtree, normalized=normalized)
        self.variables: set[int] = set()

    def root(self, name: str, readers: Mapping[str, Callable[[list[str]], None]]) -> int:
        """Read all lines of a file whose first line is `name count`; the others begin with the keys of `readers`."""
        header, body = self.lines.need_header(name, f"{name} count")
        claimed = self.lines.integer(header[1], "the count of nodes")
        for words in body:
            if words[0] not in readers:
                *some, last = readers
                kinds = f"{', '.join(some)} or {last}, not {shown(words[0])}"
                raise self.lines.error(f"a line of the format {name} starts with {kinds}")
            readers[words[0]](words)
        return self.nodes.root(claimed)

    def literal(self, words: list[str]) -> None:
        self.lines.need_length(words, 4, "L id vtree literal")
        literal = self.lines.literal(words[3])
        self.add_leaf(words, abs(literal), self.nodes.literal(literal))

    def add_leaf(self, words: list[str], variable: int, node: int) -> None:
        self.nodes.add(words[1], node)
        self.checker.leaf(words[1], words[2], variable)
        self.variables.add(variable)
