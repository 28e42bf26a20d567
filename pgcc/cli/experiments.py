"""`pgcc experiments`: the tables of the paper, for the data sets in a folder."""

from __future__ import annotations

import argparse
import json
import sys

from pgcc.cli.files import check_can_draw, check_can_write, write_text
from pgcc.draw import plot
from pgcc.learn import experiments
from pgcc.learn.experiments import Result


def run(args: argparse.Namespace) -> None:
    """Train and score, telling of every result on standard error; then print the tables."""
    if args.words:
        args.parser.error(f"expected one folder, found {args.words[0]!r} too")
    if args.output is not None:
        check_can_write(args.output, args.force)
    if args.plot is not None:
        check_can_draw(args.plot, args.force)
    kinds = _listed(args.models) or list(experiments.MODELS)
    unknown = [kind for kind in kinds if kind not in experiments.MODELS]
    if unknown:
        args.parser.error(f"no model {unknown[0]!r}: choose from {', '.join(experiments.MODELS)}")
    sets = experiments.find_sets(args.file, _listed(args.sets) or None)
    results = experiments.run(
        sets, kinds, _tell, recipe=args.recipe, grid=args.grid, threads=args.threads
    )  # fmt: skip
    if args.output is not None:
        write_text(args.output, json.dumps(experiments.as_data(results), indent=1) + "\n")
    if args.plot is not None:
        plot.save(plot.likelihoods(experiments.as_data(results)), args.plot)
    print(experiments.as_tables(results))


def _listed(text: str | None) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()] if text else []


def _tell(result: Result) -> None:
    told = f"{result.data}, {result.model}: test {result.test:.4f}, validation {result.validation:.4f}"
    print(f"{told} ({result.seconds:.1f} s, {result.edges:,} edges)", file=sys.stderr, flush=True)
