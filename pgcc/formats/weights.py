"""Weights of literals: they make a model count a weighted one.

    literal weight                  one line per literal (d4)
    c p weight literal weight 0     the same, as the model counting competition writes it

Both literals of a variable have a weight, or neither: programs disagree on what a missing one means.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pgcc.errors import CircuitError, FormatError
from pgcc.formats.io import as_path, read_text, shown
from pgcc.ir.circuit import Circuit
from pgcc.ir.node import Node, weighted_sum
from pgcc.ir.numbers import Number, as_number

Weights = Mapping[int, Any] | str | os.PathLike[str]

# A weight in text is an exact number. Its length is bounded: at most this many characters, and this exponent.
MAX_CHARACTERS, MAX_EXPONENT = 400, 400


def weighted(circuit: Circuit, weights: Mapping[int, Number]) -> Circuit:
    """The smooth circuit with every literal multiplied by its weight.

    Examples
    --------
    >>> import pgcc
    >>> print(weighted(pgcc.parse("a + ~a").relabel({"a": "x1"}), {1: 3, -1: 4}))
    3*x1 + 4*~x1
    """
    if not weights:
        return circuit
    known = set(circuit.variables)
    for literal in weights:
        if f"x{abs(literal)}" not in known:
            raise FormatError(f"literal {literal} has a weight, and the circuit has no variable x{abs(literal)}")
    return Circuit(circuit.rewrite(lambda leaf: _times(leaf, weights)), circuit.variables)


def _times(leaf: Node, weights: Mapping[int, Number]) -> Node:
    variable = int(leaf.name[1:])
    weight = weights.get(-variable if leaf.is_complement else variable, 1)
    return leaf if weight == 1 else weighted_sum((weight,), (leaf,))


def literal_weights(weights: Weights | None) -> dict[int, Number]:
    """The weights of literals, from a mapping or a file, checked.

    Parameters
    ----------
    weights : mapping or path, optional
        The weight of each literal, ``{1: 0.3, -1: 0.7}``, or a file of lines `literal weight`. A variable without
        weights has 1 and 1.

    Examples
    --------
    >>> literal_weights({1: "0.3", -1: 0.7})
    {1: Fraction(3, 10), -1: 0.7}
    """
    if weights is None:
        return {}
    if not isinstance(weights, Mapping):
        return _complete(_read(as_path(weights, "weights= is a mapping, or the name of a file, which")), f"{weights}: ")
    numbers = {}
    for literal, weight in weights.items():
        if isinstance(literal, bool) or not isinstance(literal, int) or not literal:
            raise FormatError(f"weights are given for the literals ±1, ±2, …, not for {literal!r}")
        try:
            numbers[literal] = as_number(weight)
        except CircuitError as error:
            raise FormatError(f"the weight of literal {literal}: {error}") from None
    return _complete(numbers, "")


def _complete(weights: dict[int, Number], where: str) -> dict[int, Number]:
    for literal in weights:
        if -literal not in weights:
            raise FormatError(f"{where}literal {literal} has a weight and {-literal} has none: give both")
    return weights


def _read(path: Path) -> dict[int, Number]:
    weights: dict[int, Number] = {}
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        words = line.split()
        if words[:3] == ["c", "p", "weight"]:
            words = words[3:-1] if words[-1] == "0" and len(words) == 6 else words[3:]
        elif not words or words[0] == "c":
            continue
        try:
            literal, weight = words
            key, value = int(literal), _number(weight)
        except (ValueError, CircuitError):
            raise FormatError(f"{path}, line {number}: {shown(line.strip())} is not a literal and its weight") from None
        if not key or key in weights:
            raise FormatError(f"{path}, line {number}: literal {key} {'has two weights' if key else 'is no literal'}")
        weights[key] = value
    return weights


def _number(word: str) -> Number:
    """A decimal or a fraction, exactly; `ValueError` if it is neither, or would be very long."""
    _, _, exponent = word.lower().partition("e")
    if len(word) > MAX_CHARACTERS or "_" in word or (exponent and abs(int(exponent)) > MAX_EXPONENT):
        raise ValueError(word)
    return as_number(word)
