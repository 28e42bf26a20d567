"""`pgcc convert`: a circuit from one format to another."""

from __future__ import annotations

import argparse
from typing import Any

import pgcc
from pgcc.cli.files import check_can_write, read_circuit
from pgcc.cli.output import json_text
from pgcc.errors import plural
from pgcc.ir.circuit import Circuit


def run(args: argparse.Namespace) -> None:
    """Load, save, and tell the sizes."""
    if len(args.words) != 1:
        args.parser.error("expected one file to write" if not args.words else f"unexpected {args.words[1]!r}")
    target = args.words[0]
    check_can_write(target, args.force)
    circuit = read_circuit(args)
    written = circuit.simplify() if args.simplify else circuit
    pgcc.save(written, target)
    source = "--expr" if args.file is None else "standard input" if args.file == "-" else args.file
    sizes = [{"file": source, **_size(circuit)}, {"file": target, **_size(written)}]
    if args.json:
        print(json_text({"read": sizes[0], "written": sizes[1]}))
        return
    for verb, one in zip(("read", "wrote"), sizes, strict=True):
        counts = ", ".join(plural(one[f"{noun}s"], noun) for noun in ("variable", "node", "edge"))
        print(f"{verb} {one['file']}: {counts}")


def _size(circuit: Circuit) -> dict[str, Any]:
    return {"variables": len(circuit.variables), "nodes": len(circuit.order), "edges": circuit.edges}
