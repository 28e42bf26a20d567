"""`pgcc cardinality`: how many variables are in."""

from __future__ import annotations

import argparse
import sys
from typing import Any

import numpy as np

from pgcc import plot
from pgcc.cli.asking import check_evidence, check_picture, compile_model, counted, each_answer, is_single, only_evidence
from pgcc.cli.output import print_answers, print_csv


def run(args: argparse.Namespace) -> None:
    """Print a line for each number, or with several pieces of evidence a table with a row for each of them."""
    check_evidence(args)
    check_picture(args)
    model, over = compile_model(args, "rtol", "threads"), counted(args).get("over")

    def answers(evidence: Any) -> list[dict[str, Any]]:
        found = np.atleast_2d(model.cardinality(evidence, over=over, atol=args.atol))
        return [{"pmf": row} for row in found.tolist()]

    if args.plot is not None:
        plot.save(plot.cardinality(model, only_evidence(args), over=over), args.plot)
    found = each_answer(args, model, answers)
    if args.json:
        print_answers(found, as_json=True)
    elif is_single(args):
        (answer,) = found
        sys.stdout.writelines(f"{k}\t{p:.15g}\n" for k, p in enumerate(answer["pmf"]))
    else:
        most = len(model.variables if over is None else over)
        print_csv(range(most + 1), (answer["pmf"] for answer in found))
