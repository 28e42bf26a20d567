"""`.pgc`: the text of `pgcc.parse`, in UTF-8."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

from pgcc.errors import FormatError
from pgcc.frontend.expression import parse
from pgcc.ir.circuit import Circuit
from pgcc.ir.printer import pgc_text


def read(path: Path) -> Circuit:
    """The circuit in a `.pgc` file."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FormatError(f"{path} is not text in UTF-8: {error.reason} at byte {error.start}") from None
    return parse(text, where=str(path))


def write(circuit: Circuit, file: BinaryIO) -> None:
    """Write the text of a circuit."""
    file.write(pgc_text(circuit).encode())
