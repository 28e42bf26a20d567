"""`.xmlbif`, `.bifxml` and `.xml`: Bayesian networks with names, in XMLBIF.

    <BIF VERSION="0.3"><NETWORK>
    <VARIABLE TYPE="nature"><NAME>lung</NAME><OUTCOME>yes</OUTCOME><OUTCOME>no</OUTCOME></VARIABLE>
    <DEFINITION><FOR>lung</FOR><GIVEN>smoke</GIVEN><TABLE>0.1 0.9 0.01 0.99</TABLE></DEFINITION>
    </NETWORK></BIF>

In a table, the state of the variable itself changes fastest, and then that of the last parent. The text is read as a
sequence of tags and words, not by a parser for all of XML: there is nothing that could expand.
"""

from __future__ import annotations

import html
import math
import re
from functools import partial
from pathlib import Path

from pgcc.formats.io import read_text, shown
from pgcc.formats.networks import Draft, compiled, network_in
from pgcc.formats.words import Words
from pgcc.frontend.network import Network

WORD = re.compile(r"<[^<>]*+>|[^<>\s]++|[<>]")
# Once one of these has begun, it matches whatever follows, so that no text is searched twice.
SKIPPED = re.compile(
    r"<!--(?:[^-]|-(?!->))*+(?:-->)?|<\?(?:[^?]|\?(?!>))*+(?:\?>)?|<!DOCTYPE[^<>\[]*+(?:\[[^\]]*+\]?\s*+)?+>?"
)
TAG = re.compile(r"<(/?\w+)[^<>]*?(/?)>")


def read_network(path: Path) -> Network:
    """The variables with their states, and the tables."""
    text = read_text(path)
    words = Words(path, SKIPPED.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text), WORD)
    if "<!ENTITY" in text:
        raise words.error("entities of one's own are not read")
    return network_in(words, _read)


read = partial(compiled, read_network)


def _read(words: Words, draft: Draft) -> None:
    definitions = []
    while words.next < len(words.words):
        tag = _tag(words, words.word("the end of the network"))
        if tag == "VARIABLE":
            parts = _parts(words, tag)
            draft.add_variable(_only(words, parts, "NAME", "a variable"), parts.get("OUTCOME", []))
        elif tag == "DEFINITION":
            definitions.append(words.next)
            words.until("</DEFINITION>", "a definition")
        elif tag in ("NAME", "PROPERTY"):
            words.until(f"</{tag}>", tag)
        elif tag.removeprefix("/") not in ("BIF", "NETWORK", ""):
            raise words.error(f"expected a variable or a definition, not <{tag}>")
    for place in definitions:
        words.next = place
        parts = _parts(words, "DEFINITION")
        name, parents = _only(words, parts, "FOR", "a definition"), parts.get("GIVEN", [])
        scope = draft.begin_table(name, parents)
        shape = draft.make.shape(scope)
        given = _only(words, parts, "TABLE", f"the definition of {name!r}").split()
        numbers = words.entries(given, place, f"the table of {name!r}")
        if len(given) != math.prod(shape):
            raise words.error(f"the table of {name!r} has {len(given)} entries and needs {math.prod(shape)}")
        draft.add_table(name, scope, numbers.reshape(shape))


def _tag(words: Words, word: str) -> str:
    """The name of a tag, with a / in front if it ends an element; nothing for an empty element."""
    found = TAG.fullmatch(word)
    if not found:
        raise words.error(f"expected a tag of XMLBIF, not {shown(word)}")
    return "" if found[2] else found[1]


def _parts(words: Words, tag: str) -> dict[str, list[str]]:
    """The texts of the elements up to the end of a tag."""
    parts: dict[str, list[str]] = {}
    while (part := _tag(words, words.word(f"the end of <{tag}>"))) != f"/{tag}":
        if not part:
            continue
        text = words.until(f"</{part}>", f"<{part}>")
        if any(word[0] in "<>" for word in text):
            raise words.error(f"<{part}> has other tags in it")
        parts.setdefault(part, []).append(html.unescape(" ".join(text)))
    return parts


def _only(words: Words, parts: dict[str, list[str]], tag: str, where: str) -> str:
    if len(parts.get(tag, ())) != 1:
        raise words.error(f"{where} has one <{tag}>, not {len(parts.get(tag, ()))}")
    return parts[tag][0]
