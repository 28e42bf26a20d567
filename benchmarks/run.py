"""Run benchmarks by name: python -m benchmarks [NAME…] [--json FILE]"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import time
from pathlib import Path

if __package__ in (None, ""):  # python benchmarks/run.py
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.common import machine

# Name to module, in the order in which they run.
BENCHMARKS = {
    "speed": "speed",
    "scaling": "scaling",
    "machine": "machine",
    "latency": "latency",
    "first": "first_use",
    "range": "out_of_range",
    "escalation": "escalation",
    "determinants": "determinants",
    "marginals": "marginals",
    "networks": "networks",
    "sampling": "sampling",
    "cardinality": "cardinality",
    "learning": "learning",
    "classifiers": "classifiers",
    "real": "real",
    "explorer": "explorer",
}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure pgcc beside alternatives.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(BENCHMARKS)}; all by default")
    parser.add_argument("--json", metavar="FILE", help="also write the tables as JSON")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"no benchmark {unknown[0]!r}: choose from {', '.join(BENCHMARKS)}")
    header = {"date": time.strftime("%Y-%m-%d %H:%M"), "machine": machine()}
    print(f"{header['date']}, {header['machine']}\n", flush=True)
    tables = []
    for name in options.names or BENCHMARKS:
        for table in importlib.import_module(f"benchmarks.{BENCHMARKS[name]}").run():
            print(table, end="\n\n", flush=True)
            tables.append({"benchmark": name, **table.as_dict()})
    if options.json:
        Path(options.json).write_text(json.dumps({**header, "tables": tables}, indent=1, default=str) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
