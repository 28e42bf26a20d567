"""All assignments that agree with a row of codes: every column in or out, and every variable in one of its states."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pgcc.ir.circuit import Circuit


@dataclass(frozen=True)
class Assignments:
    """The assignments that a row of codes leaves, in lexicographic order.

    Attributes
    ----------
    codes : int8 array
        The row of codes.
    choices : list of (columns, codes)
        For each variable that is not known, its columns, and a row of codes for each of its values.
    """

    codes: np.ndarray
    choices: list[tuple[np.ndarray, np.ndarray]]

    @staticmethod
    def of(circuit: Circuit, codes: np.ndarray, among: np.ndarray | None = None) -> Assignments:
        """The assignments of these columns; by default, of all.

        >>> import pgcc
        >>> circuit = pgcc.pc.categorical("w", {"sun": 1, "rain": 2, "snow": 3}).to_pgc() * pgcc.parse("a/2 + 1/2")
        >>> Assignments.of(circuit, np.array([0, -1, -1, -1])).rows(slice(0, 4)).tolist()
        [[0, 1, 0, 0], [0, 1, 0, 1], [0, 0, 1, 0], [0, 0, 1, 1]]
        """
        unit = {} if circuit.domains is None else circuit.domains.unit
        wanted = np.arange(len(codes)) if among is None else among
        units: dict[str, list[int]] = {}
        for column in wanted[codes[wanted] < 0].tolist():
            name = circuit.variables[column]
            units.setdefault(unit.get(name, name), []).append(column)
        in_or_out, choices = np.array([[0], [1]], np.int8), []
        for name, columns in units.items():
            is_block = unit.get(circuit.variables[columns[0]]) == name
            choices.append((np.array(columns), np.eye(len(columns), dtype=np.int8) if is_block else in_or_out))
        return Assignments(codes, choices)

    @property
    def count(self) -> int:
        """How many there are."""
        return math.prod(len(values) for _, values in self.choices)

    def rows(self, some: slice) -> np.ndarray:
        """Rows of codes of these assignments, by their numbers."""
        number = np.arange(some.start, some.stop)
        rows = np.repeat(self.codes[None].astype(np.int8), len(number), axis=0)
        for columns, values in reversed(self.choices):
            number, digit = np.divmod(number, len(values))
            rows[:, columns] = values[digit]
        return rows
