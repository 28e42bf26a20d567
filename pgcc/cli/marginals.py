"""`pgcc marginals`: the probability of every variable."""

from __future__ import annotations

import argparse
import sys
from typing import Any

import numpy as np

from pgcc import plot
from pgcc.cli.asking import (
    check_evidence,
    check_picture,
    compile_model,
    counted_with_size,
    each_answer,
    is_single,
    only_evidence,
)
from pgcc.cli.output import print_answers, print_csv
from pgcc.model import Model


def run(args: argparse.Namespace) -> None:
    """Print a line for each variable, or with several pieces of evidence a table with a row for each of them."""
    check_evidence(args)
    check_picture(args)
    model, given = compile_model(args, "rtol", "threads"), counted_with_size(args)
    if given:
        model = model.condition(**given)

    def answers(evidence: Any) -> list[dict[str, Any]]:
        found = model.covariance(evidence) if args.covariance else model.marginals(evidence, names=False)
        return [_named(model.variables, row) for row in (found[None] if isinstance(evidence, dict) else found)]

    if args.plot is not None:
        _draw(args, model)
    found = each_answer(args, model, answers)
    if args.json:
        print_answers(found, as_json=True)
    elif args.covariance:
        for answer in found:
            rows = answer["covariance"].items()
            print_csv(["", *model.variables], ([name, *row.values()] for name, row in rows))
    elif is_single(args):
        (answer,) = found
        sys.stdout.writelines(f"{name}\t{p:.15g}\n" for name, p in answer["marginals"].items())
    else:
        print_csv(model.variables, (answer["marginals"].values() for answer in found))


def _named(names: tuple[str, ...], found: np.ndarray) -> dict[str, Any]:
    if found.ndim == 1:
        return {"marginals": dict(zip(names, found.tolist(), strict=True))}
    rows = (dict(zip(names, row, strict=True)) for row in found.tolist())
    return {"covariance": dict(zip(names, rows, strict=True))}


def _draw(args: argparse.Namespace, model: Model) -> None:
    draw = plot.covariance if args.covariance else plot.marginals
    plot.save(draw(model, only_evidence(args)), args.plot)
