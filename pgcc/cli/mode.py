"""`pgcc mode`: the most probable sets."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from pgcc.cli.asking import check_evidence, compile_model, counted, each_answer
from pgcc.cli.output import json_text
from pgcc.queries.mode import Mode


def run(args: argparse.Namespace) -> None:
    """Print a line for every set: the names that are in, its log-probability, and whether it is proved to be best."""
    check_evidence(args)
    model, given = compile_model(args, "rtol", "threads"), counted(args)
    if "over" in given and "size" not in given:
        args.parser.error("--over says what --size counts: it means nothing alone")
    limit = {} if args.time_limit is None else {"time_limit": args.time_limit}

    def answers(evidence: Any) -> list[dict[str, Any]]:
        found = (
            model.top(args.top, evidence, **given, **limit) if args.top != 1 else model.mode(evidence, **given, **limit)
        )
        rows = [found] if isinstance(evidence, dict) else found
        return [{"sets": row if args.top != 1 else [row]} for row in rows]

    for answer in each_answer(args, model, answers):
        for found in answer.pop("sets"):
            sys.stdout.write(json_text({**answer, **_described(found)}) + "\n" if args.json else _line(found))
        sys.stdout.flush()


def _described(found: Mode) -> dict[str, Any]:
    inside = [name for name, value in found.assignment.items() if value]
    return {
        "set": inside,
        "logprob": found.logprob,
        "bound": found.bound,
        "gap": found.gap,
        "exact": found.exact,
        "rank": found.rank,
    }


def _line(found: Mode) -> str:
    inside = ", ".join(name for name, value in found.assignment.items() if value)
    proved = "exact" if found.exact else f"gap {found.gap:.4g}"
    return f"{inside}\t{found.logprob:.15g}\t{proved}\n"
