"""`.sdd`: sentential decision diagrams, logic circuits of the SDD library.

    sdd count                                               the count is advisory
    F id
    T id
    L id vtree literal
    D id vtree elements {prime sub}*

Children stand before their parents and the root is last. The circuit is Σ prime · sub, smooth, with every weight 1, so
that its total is the model count: `pgcc.compile(circuit, normalize=False).prob({}, exact=True)`. Normalized, which is
what `pgcc.compile` does by itself, it is the uniform distribution over the models.

Variable i is called `x{i}`. The variables are those of the vtree if there is one, else x1 … xn with n the largest in
the file.
"""

from __future__ import annotations

import os
from pathlib import Path

from pgcc.collector import collector_paused
from pgcc.formats.diagrams import DiagramReader
from pgcc.formats.logic import smoothed, variable_names
from pgcc.formats.vtree import Given, vtree_of
from pgcc.formats.weights import Weights, literal_weights, weighted
from pgcc.ir.circuit import Circuit


def read(path: str | os.PathLike[str], vtree: Given = None, weights: Weights | None = None) -> Circuit:
    """The circuit in an `.sdd` file.

    Parameters
    ----------
    path : str or path-like
    vtree : str, path-like, Vtree or False, optional
        Check the circuit against this vtree; by default against the `.vtree` file of the same name beside it, if any;
        with False against none.
    weights : mapping or path, optional
        See `pgcc.formats.weights.literal_weights`. The total is then the weighted model count.

    Raises
    ------
    FormatError
        With the file and the line.

    Examples
    --------
    >>> import pgcc, tempfile, os
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "or.sdd")
    ...     with open(path, "w") as file:
    ...         _ = file.write("sdd 5\\nL 1 0 1\\nL 2 0 -1\\nT 3\\nL 4 2 2\\nD 0 1 2 1 3 2 4\\n")
    ...     circuit = read(path)
    >>> print(circuit)
    x1*(x2 + ~x2) + ~x1*x2
    >>> pgcc.compile(circuit, normalize=False).prob({}, exact=True)
    Fraction(3, 1)
    """
    path = Path(path)
    with collector_paused():
        reader = _Reader(path, vtree_of(path, vtree), normalized=False)
        return weighted(reader.circuit(), literal_weights(weights))


class _Reader(DiagramReader):
    def circuit(self) -> Circuit:
        readers = {"F": self._constant, "T": self._constant, "L": self.literal, "D": self._decision}
        root = self.root("sdd", readers)
        largest = max(self.variables, default=0)
        numbers = range(1, largest + 1) if self.vtree is None else self.vtree.variable.values()
        return smoothed(self.nodes.circuit(root, variable_names(numbers)))

    def _constant(self, words: list[str]) -> None:
        self.lines.need_length(words, 2, f"{words[0]} id")
        self.nodes.add(words[1], self.build.one if words[0] == "T" else self.build.zero)

    def _decision(self, words: list[str]) -> None:
        self.lines.need_elements(words, "prime sub")
        keys, nodes = self.nodes.get(words[4:])
        elements = map(self.nodes.conjunction, zip(nodes[::2], nodes[1::2], strict=True))
        self.nodes.add(words[1], self.nodes.disjunction(elements), decision=True)
        self.checker.decision(words[1], words[2], keys)
