"""Messages in the command line's own terms: what the library calls ``validate=False`` is ``--no-validate`` here.

The library writes its parameters as ``name=value``, or as `name` in backticks. An option of a command sets the
parameter that its `dest` names, so the parser of the command tells which option that is. Advice that mentions something
the command does not have is left out.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Collection

# Parameters of the library whose option has another name (its dest), or that have no option (None).
PARAMETERS: dict[str, str | None] = {
    "n_components": "components",
    "max_iter": "epochs",
    "n_init": "restarts",
    "random_state": "seed",
    "rng": "seed",
    "n_jobs": "threads",
    "names": None,
    "learning_rate": None,
}
# Other Python expressions and what they are called here (None: the advice is left out).
PHRASES: dict[str, str | None] = {
    "explain()": "pgcc show",
    "pgcc.check": "pgcc check",
    "pgcc.compile": "pgcc query",
    "factor=B": "--kernel factor",
    "but pgcc.spanning_forest": "but --killing RATE has rooted forests",
    "pgcc.passes": None,
    "circuit.restrict": None,
    "a numpy Generator": None,
    ", or None for one": "",
}

# Text in quotes, and evidence that a message repeats, is the user's own and stays unchanged.
_USERS = re.compile(r"""(?<!\w)'(?:[^'\\]|\\.)*'(?!\w)|(?<!\w)"(?:[^"\\]|\\.)*"(?!\w)|\bevidence [^:;]*=[01]\b""")
_PARAMETER = re.compile(r"`(\w+)`|(?<![\w.\-])([a-z][a-z_]*)=(\([^)]*\)|\x00+|[^\s,;:)=\x00][^\s,;:)]*|)(?!=)")
_ADVICE = re.compile(r"(; |: |\. )")


def in_own_terms(text: str, parser: argparse.ArgumentParser, elsewhere: Collection[str] = ()) -> str:
    """Translate a message of the library for the user of this command.

    Parameters
    ----------
    text : str
        The message. Only its first line is translated; the lines that follow show the user's own text.
    parser : ArgumentParser
        The parser of the command.
    elsewhere : collection of str
        The parameters that other commands have options for.

    Examples
    --------
    >>> parser = argparse.ArgumentParser()
    >>> _ = parser.add_argument("--no-validate", dest="validate", action="store_false")
    >>> _ = parser.add_argument("--rtol")
    >>> in_own_terms("'x' occurs to a power above 1; validate=False compiles it all the same", parser)
    "'x' occurs to a power above 1; --no-validate compiles it all the same"
    >>> in_own_terms("rtol=2.0 is not between 1e-15 and 1; exact=True gives fractions", parser, ["exact"])
    '--rtol 2.0 is not between 1e-15 and 1'
    """
    text, newline, rest = text.partition("\n")
    hidden = _USERS.sub(lambda found: "\0" * len(found[0]), text)
    known = {*PARAMETERS, *elsewhere}
    kept: list[str] = []
    at, left_out = 0, False
    for i, piece in enumerate(_ADVICE.split(hidden)):
        said = _translate(text[at : at + len(piece)], piece, parser, known)
        at += len(piece)
        if i % 2 == 0:  # odd pieces are the separators between them
            left_out = said is None and i > 0
            if left_out:
                kept.pop()
        if not left_out:
            kept.append(text[at - len(piece) : at] if said is None else said)
    return "".join(kept) + newline + rest


def _translate(text: str, hidden: str, parser: argparse.ArgumentParser, known: Collection[str]) -> str | None:
    """Translate a part of a message; None if it mentions something that the command does not have."""
    found: list[tuple[int, int, str]] = []
    for phrase, own in PHRASES.items():
        for place in re.finditer(re.escape(phrase), hidden):
            if own is None:
                return None
            found.append((*place.span(), own))
    for place in _PARAMETER.finditer(hidden):
        if any(start <= place.start() < end for start, end, _ in found):
            continue
        name, value = place[1] or place[2], text[place.start(3) : place.end(3)] if place[2] else ""
        option = _option(name, value, parser)
        if option is not None:
            found.append((*place.span(), option))
        elif name in known:
            return None
    for start, end, own in sorted(found, reverse=True):
        text = text[:start] + own + text[end:]
    return text


def _option(name: str, value: str, parser: argparse.ArgumentParser) -> str | None:
    """The option that sets the parameter to this value, as one types it; None if the command has none."""
    dest = PARAMETERS.get(name) or name
    for action in parser._actions:
        if action.dest != dest or not action.option_strings:
            continue
        if action.nargs != 0:
            return f"{action.option_strings[-1]} {value}".strip()
        if value in ("", str(action.const)):
            return action.option_strings[-1]
    return None
