"""`.edges`, `.edgelist` and `.tsv`: a graph, and its random spanning trees; read only.

    # an edge per line: two nodes, and perhaps a weight, separated by blanks, by tabs or by commas
    a b
    b c 0.5
    c a 1/3

A weight is 1 where there is none, a float where it is a decimal, and exact where it is a whole number or a fraction.
Nodes are text. The `{}` that networkx writes after edges without data is ignored; nothing is evaluated.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pgcc.errors import FormatError
from pgcc.formats.io import errors_in, number_in, read_text, shown
from pgcc.frontend.spanning_tree import arborescence, spanning_forest, spanning_tree
from pgcc.ir.circuit import Circuit
from pgcc.ir.numbers import Number

Edge = tuple[str, str, Number]

_COMMENT = re.compile(r"(^|\s)#.*$")


def read(
    path: Path, directed: bool | None = None, root: str | None = None, orientation: str = "out", killing: Any = None
) -> Circuit:
    """The random spanning tree of a list of edges.

    Parameters
    ----------
    path : Path
    directed : bool, optional
        Whether the edges are directed, from the first node to the second; they are where there is a root.
    root : str, optional
        The root of an arborescence; see `pgcc.arborescence`.
    orientation : "out" or "in"
        Whether its edges point away from the root or towards it.
    killing : number, text of a number, or mapping, optional
        Killing rates, for a rooted forest; see `pgcc.spanning_forest`.

    Raises
    ------
    FormatError
        If the file is damaged, or the graph has no spanning tree.
    """
    if directed and root is None:
        raise FormatError(
            f"{path}: the arborescences of a directed graph have a root", advice="root=NODE says which node it is"
        )
    if root is not None and (killing is not None or directed is False):
        raise FormatError(
            f"{path}: only directed graphs have a root; killing rates are for the forests of undirected ones"
        )
    if root is None and orientation != "out":
        raise FormatError(f"{path}: orientation={orientation!r} means nothing without a root", argument="orientation")
    edges = list(_edges(path))
    if not edges:
        raise FormatError(f"{path} has no edges: a line has two nodes and perhaps a weight")
    with errors_in(path):
        if root is not None:
            return arborescence(edges, root, orientation=orientation)
        if killing is not None:
            return spanning_forest(edges, _rate(killing))
        return spanning_tree(edges)


def _rate(killing: Any) -> Any:
    rate = number_in(killing.strip()) if isinstance(killing, str) else killing
    if rate is None:
        raise FormatError(f"the killing rate is a number, not {shown(killing)}")
    return rate


def _edges(path: Path) -> Iterator[Edge]:
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        kept = _COMMENT.sub("", line).strip()
        if kept:
            yield _edge(kept, f"{path}, line {number}")


def _edge(line: str, where: str) -> Edge:
    words = _words(line)
    if len(words) not in (2, 3):
        hint = ": networkx.write_edgelist(G, path, data=['weight']) writes weights without names" if "{" in line else ""
        raise FormatError(f"{where}: an edge is two nodes and perhaps a weight, not {shown(line)}{hint}")
    for word in words[:2]:
        if not word or not word.isprintable():
            raise FormatError(f"{where}: {shown(word)} is not the name of a node")
    if len(words) == 2:
        return words[0], words[1], 1
    weight = number_in(words[2])
    if weight is None or weight < 0:
        problem = "is negative" if weight is not None else "is not a finite number"
        raise FormatError(f"{where}: the weight {shown(words[2])} {problem} (# starts a comment)")
    return words[0], words[1], weight


def _words(line: str) -> list[str]:
    words = [word.strip() for word in line.split("," if "," in line else "\t" if "\t" in line else None)]
    return words[:-1] if words[-1] == "{}" else words
