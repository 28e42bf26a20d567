"""`pgcc query`: probabilities of evidence, on the command line or in a table."""

from __future__ import annotations

import argparse
from typing import Any

from pgcc.cli.asking import check_evidence, compile_model, each_answer
from pgcc.cli.output import fraction_text, listed, print_answers
from pgcc.ir.numbers import nearest_float
from pgcc.model import Model


def run(args: argparse.Namespace) -> None:
    """Print a line for each piece of evidence."""
    check_evidence(args)
    for name in ("method", "rtol"):
        if args.exact and getattr(args, name) is not None:
            args.parser.error(f"--{name} means nothing with --exact")
    model = compile_model(args, "method", "rtol", "threads")
    print_answers(each_answer(args, model, lambda evidence: _answers(model, evidence, args)), args.json)


def _answers(model: Model, evidence: Any, args: argparse.Namespace) -> list[dict[str, Any]]:
    """The answers for one piece of evidence (a dict) or several rows, as the data that --json prints."""
    if args.log:
        return [{"logprob": x} for x in listed(model.logprob(evidence))]
    if args.exact:
        return [{"exact": fraction_text(x), "prob": nearest_float(x)} for x in listed(model.prob(evidence, exact=True))]
    if args.bound:
        both = map(listed, model.prob(evidence, bound=True))
        return [{"prob": x, "bound": bound} for x, bound in zip(*both, strict=True)]
    return [{"prob": x} for x in listed(model.prob(evidence))]
