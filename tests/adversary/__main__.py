"""Any number of adversarial numbers: ``python -m tests.adversary 200000 --seed 1``."""

from __future__ import annotations

import argparse
import itertools
import sys
import time

from .generators import GENERATORS
from .questions import QUESTIONS
from .runner import Ledger, run
from .thresholds import small_thresholds


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.adversary", description=__doc__)
    parser.add_argument("numbers", type=int, help="how many numbers are compared with exact ones, at least")
    parser.add_argument("--seed", type=int, default=0, help="of the first case; the next ones follow")
    parser.add_argument("--generator", action="append", choices=list(GENERATORS), help="only these")
    parser.add_argument("--question", action="append", choices=list(QUESTIONS), help="only these")
    parser.add_argument("--thresholds", choices=("both", "as-is", "small"), default="both")
    parser.add_argument("--reasons", action="store_true", help="also say why answers were refused")
    options = parser.parse_args()
    ledger, began = Ledger(), time.perf_counter()
    for seed in itertools.count(options.seed):
        if ledger.numbers >= options.numbers:
            break
        if options.thresholds != "small":
            run([seed], options.generator, options.question, ledger=ledger)
        if options.thresholds != "as-is":
            with small_thresholds():
                run([seed], options.generator, options.question, ledger=ledger, mode="small thresholds")
        print(f"\rseed {seed}: {ledger.numbers:,} numbers, {len(ledger.wrong)} wrong", end="", file=sys.stderr)
    print(file=sys.stderr)
    print(ledger.table())
    print(f"\n{ledger.numbers:,} numbers in {time.perf_counter() - began:.0f} s, seeds from {options.seed}")
    if options.reasons:
        for (question, method, reason), count in ledger.reasons.most_common(40):
            print(f"{count:6} {question} [{method}] {reason}")
    if ledger.wrong:
        print(ledger.complaint())
    return 1 if ledger.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
