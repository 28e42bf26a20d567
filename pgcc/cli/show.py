"""`pgcc show`: size, facts, strategy and accuracy."""

from __future__ import annotations

import argparse

import pgcc
from pgcc import plot
from pgcc.cli.files import check_can_draw, read_circuit
from pgcc.cli.output import json_text
from pgcc.data.text import parse_evidence
from pgcc.draw.dot import dot_text


def run(args: argparse.Namespace) -> None:
    """Print the facts, the strategy and the accuracy of a model, or draw its circuit."""
    if len(args.words) > 1:
        args.parser.error(f"expected at most one piece of evidence, found {args.words[1]!r} too")
    evidence = parse_evidence(args.words[0]) if args.words else None
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
        print(json_text({"names": list(model.variables), **explanation.as_dict()}))
        return
    names = model.variables
    print(f"variables: {', '.join(names[:20])}{', …' if len(names) > 20 else ''}")
    print(explanation)
