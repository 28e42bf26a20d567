"""`.pgc`: the text of `pgcc.parse`, in UTF-8."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

from pgcc.formats.io import read_text
from pgcc.frontend.expression import parse
from pgcc.ir.circuit import Circuit
from pgcc.ir.printer import pgc_text


def read(path: Path) -> Circuit:
    """The circuit in a `.pgc` file."""
    return parse(read_text(path), where=str(path))


def write(circuit: Circuit, file: BinaryIO) -> None:
    """Write the text of a circuit."""
    file.write(pgc_text(circuit).encode())
