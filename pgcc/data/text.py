"""Evidence as text: `z1=1, z3=0`, as on a command line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from pgcc.errors import EvidenceError

# Every way to write an observation. The longer ones are how pandas and R write columns with gaps.
CODES = {
    "1": 1, "1.0": 1, "true": 1, "yes": 1,
    "0": 0, "0.0": 0, "false": 0, "no": 0,
    "?": -1, "-1": -1, "-1.0": -1, "nan": -1, "na": -1,
}  # fmt: skip
MEANING = "1 (in), 0 (out) or ? (unobserved)"

# `name = value`; a name with spaces, commas or equals signs stands in quotes, in which \ escapes a quote.
_QUOTED = r"""\s*+ (?: "(?P<double>(?:[^"\\]|\\.)++)" | '(?P<single>(?:[^'\\]|\\.)++)' | (?P<bare>[^\s,="']++) ) \s*+"""
_ITEM = re.compile(_QUOTED + r"""= \s*+ (?P<value>[^\s,="']++) \s*+ (?:,|\Z)""", re.VERBOSE)
_NAME = re.compile(_QUOTED + r"""(?:,|\Z)""", re.VERBOSE)
_ESCAPED = re.compile(r"\\(.)")


def parse_evidence(text: str, variables: Sequence[str] = ()) -> dict[str, int]:
    """Read evidence such as `z1=1, z3=0` as a dict.

    Parameters
    ----------
    text : str
        Items of the form `name=value`, separated by commas. The value is 1, 0, or `?` for unobserved. Names that
        contain spaces, commas, quotes or equals signs are put in quotes. An empty text means no evidence.
    variables : sequence of str
        Names to use in errors, in an example of what evidence looks like.

    Returns
    -------
    dict
        From names to 1, 0 or −1.

    Raises
    ------
    EvidenceError
        If the text has another form, a value is something else, or a name has two values.

    Examples
    --------
    >>> parse_evidence('z1=1, "a, b" = 0, z3=?')
    {'z1': 1, 'a, b': 0, 'z3': -1}
    >>> parse_evidence("z1=1, z1=0")
    Traceback (most recent call last):
    pgcc.errors.EvidenceError: 'z1' is both 1 and 0 in 'z1=1, z1=0'
    """
    found: dict[str, int] = {}
    for item in _items(text, _ITEM, lambda: f"evidence looks like {_example(variables)}"):
        name = _unquoted(item)
        code = CODES.get(item["value"].lower())
        if code is None:
            raise EvidenceError(f"{name!r} is {item['value']!r} in {_short(text)}: evidence is {MEANING}")
        if found.setdefault(name, code) != code:
            raise EvidenceError(f"{name!r} is both {_value(found[name])} and {_value(code)} in {_short(text)}")
    return found


def parse_names(text: str) -> list[str]:
    """Read names such as `z1, "a, b"`, written as in evidence, as a list.

    >>> parse_names('z1, "a, b"')
    ['z1', 'a, b']
    """
    return [_unquoted(item) for item in _items(text, _NAME, lambda: "names look like 'z1, z3'")]


def _items(text: str, form: re.Pattern[str], advice: Callable[[], str]) -> Iterator[re.Match[str]]:
    """The items of a text, one after another."""
    at, end = 0, len(text.rstrip())
    while at < end:
        item = form.match(text, at)
        if item is None:
            raise EvidenceError(f"cannot read {_short(text[at:].strip())}: {advice()}")
        yield item
        at = item.end()


def _example(variables: Sequence[str]) -> str:
    """Example evidence that uses these names.

    >>> _example(["rain", "two words", "wet"]), _example([])
    ("'rain=1, wet=0'", "'z1=1, z3=0'")
    """
    names = [name for name in variables[:100] if _NAME.fullmatch(name)] or ["z1", "z3"]
    return repr(", ".join(f"{name}={value}" for name, value in zip(names, (1, 0), strict=False)))


def _unquoted(item: re.Match[str]) -> str:
    return item["bare"] or _ESCAPED.sub(r"\1", item["double"] or item["single"])


def _value(code: int) -> str:
    return "?" if code < 0 else str(code)


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")
