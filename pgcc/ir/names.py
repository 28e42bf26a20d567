"""Names of variables as people type them: found, or refused with a suggestion."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from typing import Any

from pgcc.ir.spelling import MAX_NAME

# Among more names than this no similar one is looked for: every one is compared letter by letter.
_MOST_COMPARED = 10_000


def find_variable(name: Any, known: Mapping[str, Any] | Collection[str]) -> str | None:
    """The variable that a name means: the one of that name, or an undirected edge ``u-v`` that is called ``v-u``.

    An edge may also be given as the pair of its nodes. Only a name that no variable has is read as an edge, and only if
    one variable can be meant. Names longer than text may have are not: each dash is tried, and copies the name.

    >>> find_variable("b", ["a", "b"]), find_variable("2-1", ["1-2", "2-3"]), find_variable("c", ["a", "b"])
    ('b', '1-2', None)
    >>> find_variable((2, 1), ["1-2", "2-3"]), find_variable((2, 1), ["1->2", "2->1"])
    ('1-2', '2->1')
    """
    if isinstance(name, tuple) and len(name) == 2:
        u, v = name
        ways = {edge for edge in (f"{u}->{v}", f"{u}-{v}", f"{v}-{u}") if edge in known}
        return ways.pop() if len(ways) == 1 else None
    if not isinstance(name, str):
        return None
    if name in known:
        return name
    dashes = [i for i, letter in enumerate(name) if letter == "-"] if len(name) <= MAX_NAME else []
    turned = {edge for i in dashes if (edge := f"{name[i + 1 :]}-{name[:i]}") in known}
    return turned.pop() if len(turned) == 1 else None


def hint(name: Any, known: Collection[str], kind: str = "variables") -> str:
    """What to say after "unknown variable": the nearest name there is, or which ones there are.

    >>> hint("rian", ["rain", "wet"]), hint("snow", ["rain", "wet"])
    (": did you mean 'rain'?", ': the variables are rain, wet')
    """
    near = difflib.get_close_matches(str(name), known, 1) if len(known) < _MOST_COMPARED else []
    if near:
        return f": did you mean {near[0]!r}?"
    return f": the {kind} are {some(known)}" if known else f": there are no {kind}"


def some(names: Collection[str]) -> str:
    """The first few of them.

    >>> some(["a", "b"])
    'a, b'
    """
    listed = list(names)
    return ", ".join(listed[:8]) + (", …" if len(listed) > 8 else "")


def default_names(count: int) -> list[str]:
    """The names of variables that were given none: x1, x2, …

    >>> default_names(3)
    ['x1', 'x2', 'x3']
    """
    return [f"x{i}" for i in range(1, count + 1)]
