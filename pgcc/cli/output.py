"""Answers as text and as JSON."""

from __future__ import annotations

import csv
import io
import json
import math
import sys
from collections.abc import Iterable
from fractions import Fraction
from itertools import chain, islice
from typing import Any


def print_answers(answers: Iterable[dict[str, Any]], as_json: bool) -> None:
    """Print a line for each answer."""
    write = json_text if as_json else answer_text
    sys.stdout.writelines(f"{write(answer)}\n" for answer in answers)


def answer_text(answer: dict[str, Any]) -> str:
    """The numbers of an answer, as text."""
    if "exact" in answer:
        return answer["exact"]
    # More digits than these are noise to people; --json has every bit.
    return "\t".join(f"{answer[key]:.15g}" for key in ("prob", "logprob") if key in answer) + (
        f"\t{answer['bound']:.2g}" if "bound" in answer else ""
    )


def csv_header(names: Iterable[Any]) -> str:
    """The header of a CSV table, which reads back as the same names: names with blanks around them are quoted.

    >>> csv_header(["a", "b"]), csv_header(["a", " b"])
    ('a,b\\n', '"a"," b"\\n')
    """
    line, texts = io.StringIO(), list(map(str, names))
    blank = any(name != name.strip() for name in texts)
    csv.writer(line, lineterminator="\n", quoting=csv.QUOTE_ALL if blank else csv.QUOTE_MINIMAL).writerow(texts)
    return line.getvalue()


def print_csv(header: Iterable[Any], rows: Iterable[Iterable[Any]]) -> None:
    """Names and numbers, a line for each row; nothing before the first row is known."""
    write, rest = csv.writer(sys.stdout, lineterminator="\n").writerow, iter(rows)
    first = list(islice(rest, 1))
    sys.stdout.write(csv_header(header))
    for row in chain(first, rest):
        write([f"{x:.15g}" if isinstance(x, float) else x for x in row])


def json_text(data: dict[str, Any]) -> str:
    """One line of JSON."""
    return json.dumps(_finite(data), allow_nan=False)


def _finite(data: Any) -> Any:
    """JSON has no infinities and no NaN: they become null."""
    if isinstance(data, dict):
        return {key: _finite(value) for key, value in data.items()}
    if isinstance(data, list):
        return list(map(_finite, data))
    return None if isinstance(data, float) and not math.isfinite(data) else data


def listed(result: Any) -> list[Any]:
    """A number, a list or an array as a list of Python numbers."""
    if isinstance(result, (float, Fraction)):
        return [result]
    return result if isinstance(result, list) else result.tolist()


def fraction_text(value: Fraction) -> str:
    """A fraction of any length."""
    limit = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)  # there is no limit on the digits that people ask for
    try:
        return str(value)
    finally:
        sys.set_int_max_str_digits(limit)
