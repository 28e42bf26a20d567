"""`pgcc check`: is it a distribution? The exit code says it too."""

from __future__ import annotations

import argparse

import pgcc
from pgcc.cli.exits import Exit
from pgcc.cli.files import read_circuit
from pgcc.cli.output import json_text
from pgcc.validity.verdict import NOT_PROVEN, PROVED, REFUTED

EXITS = {PROVED: Exit.DONE, REFUTED: Exit.REFUTED, NOT_PROVEN: Exit.NOT_PROVEN}


def run(args: argparse.Namespace) -> int:
    """Print the report; 0 if all is proved, 1 if something is refuted, 3 if neither."""
    if args.words:
        args.parser.error(f"expected one FILE, found {args.words[0]!r} too")
    report = pgcc.check(read_circuit(args), time=args.time, tolerance=args.tolerance, normalize=args.normalize)
    if args.json:
        data = report.as_dict()
        if args.dependence:
            data["negative_dependence"] = report.negative_dependence.as_dict()
        print(json_text(data))
        return EXITS[report.state]
    print(report)
    if args.dependence:
        print(f"negative dependence: {report.negative_dependence}")
    if args.certificate:
        print(report.certificate)
    return EXITS[report.state]
