"""`.vtree`: the tree of variables that an SDD or a PSDD respects.

    vtree count
    L id variable
    I id left right

It is no circuit by itself. `.psdd` and `.sdd` are checked against the `.vtree` of the same name beside them, if any.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pgcc.errors import FormatError
from pgcc.formats.io import as_path, shown, unpacked_name
from pgcc.formats.logic import Lines


@dataclass(frozen=True)
class Vtree:
    """A binary tree with a variable at every leaf.

    Attributes
    ----------
    path : Path
        Where it was read.
    root : int
        The id of its root.
    variable : dict
        The variable of each leaf, by id.
    children : dict
        (left, right) of each inner node, by id.
    span : dict
        (first, stop) of each node: its leaves, counted from left to right.
    """

    path: Path
    root: int
    variable: dict[int, int]
    children: dict[int, tuple[int, int]]
    span: dict[int, tuple[int, int]]

    def contains(self, above: int, below: int) -> bool:
        """Whether node `below` is `above` or under it."""
        (start, stop), (first, last) = self.span[above], self.span[below]
        return start <= first and last <= stop


def read(path: str | os.PathLike[str]) -> Vtree:
    """The vtree in a file.

    Examples
    --------
    >>> import tempfile, os
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "two.vtree")
    ...     with open(path, "w") as file:
    ...         _ = file.write("vtree 3\\nL 0 2\\nL 1 1\\nI 2 0 1\\n")
    ...     read(path).children
    {2: (0, 1)}
    """
    path = as_path(path, "a vtree, or the name of its file,")
    lines = Lines(path)
    header, body = lines.need_header("vtree", "vtree count")
    lines.integer(header[1], "the count of nodes")
    variable: dict[int, int] = {}
    children: dict[int, tuple[int, int]] = {}
    tops: dict[int, None] = {}  # the nodes that have no parent yet
    for words in body:
        if words[0] == "L":
            lines.need_length(words, 3, "L id variable")
            key = _new_id(lines, words[1], variable, children)
            variable[key] = abs(lines.literal(words[2]))
            if words[2].startswith("-"):
                raise lines.error(f"a variable is 1, 2, …, not {shown(words[2])}")
        elif words[0] == "I":
            lines.need_length(words, 4, "I id left right")
            key = _new_id(lines, words[1], variable, children)
            left, right = (lines.integer(word, "the id of a node") for word in words[2:])
            for child in (left, right):
                if child not in tops:
                    known = child in variable or child in children
                    raise lines.error(f"node {child} {'has two parents' if known else 'is on no line before'}")
                del tops[child]
            children[key] = (left, right)
        else:
            raise lines.error(f"a line of a vtree starts with L or I, not {shown(words[0])}")
        tops[key] = None
    if len(tops) != 1:
        raise lines.error(f"a vtree has one root, and {len(tops)} nodes have no parent: the file is cut off")
    if len(set(variable.values())) != len(variable):
        raise FormatError(f"{path}: a variable stands at two leaves")
    root = next(iter(tops))
    return Vtree(path, root, variable, children, _spans(root, children))


def _new_id(lines: Lines, word: str, *tables: dict[int, int] | dict[int, tuple[int, int]]) -> int:
    key = lines.integer(word, "the id of a node")
    if any(key in table for table in tables):
        raise lines.error(f"node {key} is defined twice")
    return key


def _spans(root: int, children: dict[int, tuple[int, int]]) -> dict[int, tuple[int, int]]:
    """Number the leaves from left to right; iterative, because vtrees may be as deep as they are long."""
    span: dict[int, tuple[int, int]] = {}
    leaves = 0
    stack = [(root, False)]
    while stack:
        key, below_done = stack.pop()
        if key not in children:
            span[key] = (leaves, leaves + 1)
            leaves += 1
        elif below_done:
            left, right = children[key]
            span[key] = (span[left][0], span[right][1])
        else:
            left, right = children[key]
            stack += [(key, True), (right, False), (left, False)]
    return span


# What the option vtree= can be.
Given = str | os.PathLike[str] | Vtree | Literal[False] | None


def vtree_of(path: Path, given: Given) -> Vtree | None:
    """The vtree that was given, or else the file of the same name beside `path`, if there is one; none for False."""
    if isinstance(given, Vtree):
        return given
    if given is False:
        return None
    if given is not None:
        return read(given)
    beside = unpacked_name(path).with_suffix(".vtree")
    return read(beside) if beside.is_file() else None


class VtreeChecker:
    """Checks the nodes of a circuit's file, one by one, against a vtree; without one, it agrees with everything."""

    def __init__(self, lines: Lines, vtree: Vtree | None, *, normalized: bool):
        self.lines, self.vtree = lines, vtree
        self.normalized = normalized  # primes and subs sit right at the children of their decision's vtree node
        self._at: dict[int, int] = {}  # the vtree node of each node

    def leaf(self, key: str, place: str, variable: int) -> None:
        """A node of one variable sits at the leaf of that variable."""
        at = self._place(place)
        if self.vtree is None:
            return
        found = self.vtree.variable.get(at)
        if found != variable:
            what = "an inner node" if found is None else f"the leaf of variable {found}"
            raise self._misfit(f"variable {variable} does not fit {self.vtree.path}: {at} is {what}")
        self._at[int(key)] = at

    def decision(self, key: str, place: str, children: list[int]) -> None:
        """The primes of a decision sit left of its vtree node, its subs right; children : prime, sub, prime, sub, …"""
        at = self._place(place)
        if self.vtree is None:
            return
        if at not in self.vtree.children:
            raise self._misfit(f"a decision does not fit {self.vtree.path}: {at} is a leaf")
        left, right = self.vtree.children[at]
        places = list(map(self._at.get, children))
        if places != [left, right] * (len(places) // 2):  # the fast path; then one by one, for the message
            for side, ids, name in ((left, children[::2], "prime"), (right, children[1::2], "sub")):
                for one in ids:
                    self._need_under(side, one, name)
        self._at[int(key)] = at

    def root(self, key: int, line: int) -> None:
        """The root of a normalized circuit sits at the root of the vtree."""
        if self.vtree is not None and self.normalized and self._at.get(key) != self.vtree.root:
            raise self._misfit(f"the last node does not sit at the root of {self.vtree.path}", line)

    def _misfit(self, message: str, line: int | None = None) -> FormatError:
        return self.lines.error(message, line, advice="vtree=False reads the circuit without it")

    def _place(self, word: str) -> int:
        at = self.lines.integer(word, "the id of a vtree node")
        if self.vtree is not None and at not in self.vtree.span:
            raise self._misfit(f"{self.vtree.path} has no node {at}")
        return at

    def _need_under(self, side: int, key: int, name: str) -> None:
        assert self.vtree is not None
        at = self._at.get(key)
        if at is None and not self.normalized:  # true and false sit nowhere
            return
        fits = at == side if self.normalized else at is not None and self.vtree.contains(side, at)
        if not fits:
            raise self._misfit(f"{name} {shown(str(key))} does not sit at node {side} of {self.vtree.path}")
