"""The commands about a circuit itself: `pgcc check`, `show`, `convert`, `compile` and `explore`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import pgcc
from pgcc import plot
from pgcc.cli.exits import Exit
from pgcc.cli.files import check_can_draw, check_can_write, check_output, read_circuit, write_text
from pgcc.cli.output import json_text
from pgcc.draw.dot import dot_text
from pgcc.errors import plural
from pgcc.explore.page import check_page_name
from pgcc.ir.circuit import Circuit
from pgcc.validity.verdict import NOT_PROVEN, PROVED, REFUTED

_EXITS = {PROVED: Exit.DONE, REFUTED: Exit.REFUTED, NOT_PROVEN: Exit.NOT_PROVEN}


def check(args: argparse.Namespace) -> int:
    """Print the report; 0 if all is proved, 1 if something is refuted, 3 if neither."""
    if args.words:
        args.parser.error(f"expected one FILE, found {args.words[0]!r} too")
    report = pgcc.check(read_circuit(args), time=args.time, tolerance=args.tolerance, normalize=args.normalize)
    if args.json:
        data = report.as_dict()
        if args.dependence:
            data["negative_dependence"] = report.negative_dependence.as_dict()
        print(json_text(data))
        return _EXITS[report.state]
    print(report)
    if args.dependence:
        print(f"negative dependence: {report.negative_dependence}")
    if args.certificate:
        print(report.certificate)
    return _EXITS[report.state]


def show(args: argparse.Namespace) -> None:
    """Print the facts, the strategy and the accuracy of a model, or draw its circuit."""
    if len(args.words) > 1:
        args.parser.error(f"expected at most one piece of evidence, found {args.words[1]!r} too")
    evidence = args.words[0] if args.words else None
    circuit = read_circuit(args)
    if args.plot is None and not args.dot and (args.around is not None or args.most_nodes is not None):
        args.parser.error("--around and --most-nodes need a picture: add --plot PATH or --dot")
    part = {name: given for name in ("around", "most_nodes") if (given := getattr(args, name)) is not None}
    if args.dot:
        print(dot_text(circuit, **part))
        return
    if args.plot is not None:
        check_can_draw(args.plot, args.force)
        plot.save(plot.circuit(circuit, **part), args.plot)
    model = pgcc.compile(circuit, normalize=args.normalize, validate=args.validate)
    explanation = model.explain(evidence)
    if args.json:
        states = {} if circuit.domains is None else {"states": {name: list(s) for name, s in model.states.items()}}
        print(json_text({"names": list(model.variables), **states, **explanation.as_dict()}))
        return
    names = model.variables
    told = names if circuit.domains is None else [_with_states(name, model.states[name]) for name in names[:20]]
    print(f"variables: {', '.join(told[:20])}{', …' if len(names) > 20 else ''}")
    print(explanation)


def _with_states(name: str, states: tuple[Any, ...]) -> str:
    return f"{name} in {{{', '.join(map(str, states[:12]))}{', …' if len(states) > 12 else ''}}}"


def convert(args: argparse.Namespace) -> None:
    """Load, save, and tell the sizes."""
    if len(args.words) != 1:
        args.parser.error("expected one file to write" if not args.words else f"unexpected {args.words[1]!r}")
    target = args.words[0]
    check_can_write(target, args.force)
    circuit = read_circuit(args)
    written = circuit.simplify() if args.simplify else circuit
    if args.number:
        written = written.relabel({name: f"x{i}" for i, name in enumerate(written.variables, 1)})
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
    return {"variables": len(circuit.domains or circuit.variables), "nodes": len(circuit.order), "edges": circuit.edges}


def compile(args: argparse.Namespace) -> None:
    """Write the source to a file, or to standard output."""
    check_output(args)
    source = pgcc.emit(read_circuit(args), normalize=args.normalize, validate=args.validate)
    if args.output is None:
        print(source, end="")
    else:
        write_text(args.output, source)


def explore(args: argparse.Namespace) -> None:
    """Write the page, and tell how large it is."""
    check_output(args, "expected the page to write: -o page.html")
    check_page_name(args.output)
    page = pgcc.compile(read_circuit(args)).explore(title=args.title or _title(args.file))
    write_text(args.output, page.html)
    print(f"wrote {args.output}: {page.size}; open it in a browser")


def _title(file: str | None) -> str | None:
    return None if file in (None, "-") else Path(str(file)).name
