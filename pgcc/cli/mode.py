"""`pgcc mode`: the most probable sets."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from pgcc.cli.asking import check_evidence, compile_model, counted_with_size, each_answer
from pgcc.cli.output import json_text
from pgcc.queries.mode import Mode


def run(args: argparse.Namespace) -> None:
    """Print a line for every set: the names that are in, its log-probability, and whether it is proved to be best."""
    check_evidence(args)
    model, how = compile_model(args, "rtol", "threads"), counted_with_size(args)
    if args.time_limit is not None:
        how["time_limit"] = args.time_limit

    def answers(evidence: Any) -> list[dict[str, Any]]:
        found = model.top(args.top, evidence, **how) if args.top != 1 else model.mode(evidence, **how)
        rows = [found] if isinstance(evidence, dict) else found
        return [{"sets": row if args.top != 1 else [row]} for row in rows]

    for answer in each_answer(args, model, answers):
        for found in answer.pop("sets"):
            sys.stdout.write(json_text({**answer, **_described(found)}) + "\n" if args.json else _line(found))
        sys.stdout.flush()


def _inside(found: Mode) -> list[str]:
    return [name for name, value in found.assignment.items() if value]


def _described(found: Mode) -> dict[str, Any]:
    numbers = {name: getattr(found, name) for name in ("logprob", "bound", "gap", "exact", "rank")}
    return {"set": _inside(found), **numbers}


def _line(found: Mode) -> str:
    proved = "exact" if found.exact else f"gap {found.gap:.4g}"
    if found.condition is not None:
        proved += f", if {found.condition}"
    return f"{', '.join(_inside(found))}\t{found.logprob:.15g}\t{proved}\n"
