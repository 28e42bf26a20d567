"""Evidence as text: `z1=1, z3=0`, as on a command line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pgcc.errors import EvidenceError
from pgcc.ir.domains import Domain

# Every way to write an observation. The longer ones are how pandas and R write columns with gaps.
CODES = {
    "1": 1, "1.0": 1, "true": 1, "yes": 1,
    "0": 0, "0.0": 0, "false": 0, "no": 0,
    "?": -1, "-1": -1, "-1.0": -1, "nan": -1, "na": -1,
}  # fmt: skip
CELLS = {"": -1, **CODES}  # in a table, an empty cell is unobserved
MEANING = "1 (in), 0 (out) or ? (unobserved)"

# `name = value`, `name != value` or `name in {value, value}`; a name or value with spaces, commas or equals signs
# stands in quotes, in which \ escapes a quote.
_TEXT = r"""(?: "(?P<{0}double>(?:[^"\\]|\\.){2})" | '(?P<{0}single>(?:[^'\\]|\\.){2})' | (?P<{0}bare>{1}) )"""
_BARE = r"""(?:[^\s,="'!]|!(?!=))++"""
_QUOTED = r"\s*+" + _TEXT.format("", _BARE, "++") + r"\s*+"
_SET = r"""\{ (?P<set>(?:[^{}"']|"(?:[^"\\]|\\.)*+"|'(?:[^'\\]|\\.)*+')*+) \}"""
_VALUE = _TEXT.format("value_", r"""[^\s,="']++""", "*+")  # a state may be called ""
_ITEM = re.compile(rf"{_QUOTED} (?: (?P<not>!?+) = \s*+ {_VALUE} | in \s*+ {_SET} ) \s*+ (?:,|\Z)", re.VERBOSE)
_NAME = re.compile(r"\s*+" + _TEXT.format("", _BARE, "*+") + r"\s*+(?:,|\Z)", re.VERBOSE)
_COUNTED = re.compile(rf"{_QUOTED} (?: = \s*+ {_VALUE} | in \s*+ {_SET} )?+ \s*+ (?:,|\Z)", re.VERBOSE)
_ESCAPED = re.compile(r"\\(.)")


def parse_evidence(text: str, variables: Sequence[str] = (), domains: Mapping[str, Domain] | None = None) -> dict:
    """Read evidence such as `z1=1, z3=0` or `weather!=rain` as a dict.

    Parameters
    ----------
    text : str
        Items of the form `name=value`, `name!=value` or `name in {value, value}`, separated by commas. The value is 1,
        0, or `?` for unobserved, or a state of the variable. Names and values that contain spaces, commas, quotes or
        equals signs are put in quotes. An empty text means no evidence.
    variables : sequence of str
        Names to use in errors, in an example of what evidence looks like.
    domains : dict, optional
        The variables with states.

    Returns
    -------
    dict
        From names to 1, 0 or −1; of a variable with states, to its state or the set of those that are possible.

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
    >>> parse_evidence("w!=rain, w!=sun", domains={"w": Domain.of("w", ["sun", "rain", "snow"])})
    {'w': 'snow'}
    """
    found: dict[str, int] = {}
    possible: dict[str, set[int]] = {}
    for item in _items(text, _ITEM, lambda: f"evidence looks like {example(variables, domains)}"):
        name = _unquoted(item)
        values = _values(item)
        domain = (domains or {}).get(name)
        if domain is None and domains and name not in domains:
            found[name] = -1  # an unknown variable, which is refused by name
        elif domain is None or domain.is_plain:
            code = _code(name, values, bool(item["not"]), text)
            if found.setdefault(name, code) != code:
                raise EvidenceError(f"{name!r} is both {_value(found[name])} and {_value(code)} in {_short(text)}")
        else:
            everything = set(range(len(domain.states)))
            unknown = len(values) == 1 and is_missing(values[0], domain)
            named = everything if unknown else {domain.number(value, f"variable {name!r}") for value in values}
            left = possible.setdefault(name, set(everything))
            left &= everything - named if item["not"] else named
            if not left:
                raise EvidenceError(f"{_short(text)} leaves {name!r} no state")
    return found | {name: domains[name].among(left) for name, left in possible.items() if domains}


def is_missing(value: Any, domain: Domain) -> bool:
    """Whether a value says that the state is unknown, and is no label of a state."""
    if value is None or type(value).__name__ in ("NAType", "NaTType") or value != value:
        return True
    if not isinstance(value, str):
        return bool(value == -1) and -1 not in domain.numbers
    return CELLS.get(value.strip().lower(), 0) < 0 and value not in map(str, domain.states)


def _code(name: str, values: Sequence[str], negated: bool, text: str) -> int:
    """The code that the values of a plain variable mean."""
    if not values:
        raise EvidenceError(f"{_short(text)} leaves {name!r} no value")
    codes = {CODES.get(value.lower(), value) for value in values}
    for value in codes - {0, 1, -1}:
        raise EvidenceError(f"{name!r} is {value!r} in {_short(text)}: evidence is {MEANING}")
    (code,) = codes if len(codes) == 1 else (-1,)
    return 1 - int(code) if negated and code != -1 else int(code)


def parse_names(text: str) -> list[str]:
    """Read names such as `z1, "a, b"`, written as in evidence, as a list.

    >>> parse_names('z1, "a, b"')
    ['z1', 'a, b']
    """
    return [_unquoted(item) for item in _items(text, _NAME, lambda: "names look like 'z1, z3'")]


def parse_counted(text: str) -> dict[str, list[str] | None]:
    """Read what to count, such as `late, weather=rain`, as a dict from names to states; None where none is named.

    >>> parse_counted("late, weather=rain, 'the wind' in {strong, 'very strong'}")
    {'late': None, 'weather': ['rain'], 'the wind': ['strong', 'very strong']}
    """
    found: dict[str, list[str] | None] = {}
    for item in _items(text, _COUNTED, lambda: "what is counted looks like 'z1, weather=rain'"):
        name, is_state = _unquoted(item), item.lastgroup not in ("bare", "double", "single")
        found[name] = [*(found.get(name) or []), *_values(item)] if is_state else None
    return found


def _items(text: str, form: re.Pattern[str], advice: Callable[[], str]) -> Iterator[re.Match[str]]:
    """The items of a text, one after another."""
    at, end = 0, len(text.rstrip())
    while at < end:
        item = form.match(text, at)
        if item is None:
            raise EvidenceError(f"cannot read {_short(text[at:].strip())}: {advice()}")
        yield item
        at = item.end()


def example(variables: Sequence[str], domains: Mapping[str, Domain] | None = None) -> str:
    """Example evidence that uses these names.

    >>> example(["rain", "two words", "wet"], {"wet": Domain.of("wet", ["no", "yes"])}), example([])
    ("'rain=1, wet=no'", "'z1=1, z3=0'")
    """
    names = [name for name in variables[:100] if _NAME.fullmatch(name)] or ["z1", "z3"]
    states = {name: domain.states[0] for name, domain in (domains or {}).items() if not domain.is_plain}
    return repr(", ".join(f"{name}={states.get(name, value)}" for name, value in zip(names, (1, 0), strict=False)))


def _unquoted(item: re.Match[str], part: str = "") -> str:
    bare, double, single = item[f"{part}bare"], item[f"{part}double"], item[f"{part}single"]
    return bare if bare is not None else _ESCAPED.sub(r"\1", single if double is None else double)


def _values(item: re.Match[str]) -> list[str]:
    """The values that an item names."""
    return parse_names(item["set"]) if item["set"] is not None else [_unquoted(item, "value_")]


def _value(code: int) -> str:
    return "?" if code < 0 else str(code)


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")
