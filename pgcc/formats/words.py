"""The words of a text file, one after the other, and the lines in which they stand: for formats of networks."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import numpy as np

from pgcc.errors import CircuitError, EvidenceError, FormatError
from pgcc.formats.io import DECIMAL, shown

_COUNT = re.compile(r"[0-9]{1,9}", re.ASCII)


class Words:
    """The words of a text, and the place of the next one.

    Parameters
    ----------
    path : Path
        The file, for messages.
    text : str
    pattern : re.Pattern
        What a word is.
    """

    def __init__(self, path: Path, text: str, pattern: re.Pattern[str] = re.compile(r"\S+")):
        self.path, self._text, self._pattern = path, text, pattern
        self.words: list[str] = pattern.findall(text)
        self.next = 0

    def error(self, message: str) -> FormatError:
        """A mistake in the line of the last word that was taken."""
        taken = next(islice(self._pattern.finditer(self._text), max(self.next - 1, 0), None), None)
        line = self._text.count("\n", 0, taken.start() if taken and self.words else None) + 1
        return FormatError(f"{self.path}, line {line}: {message}")

    @contextmanager
    def located(self, advice: str = "") -> Iterator[None]:
        """Mistakes that are found in the body are in this line."""
        try:
            yield
        except (CircuitError, EvidenceError) as error:
            raise self.error(str(error) + advice) from None

    def word(self, what: str) -> str:
        """The next word, which should be `what`."""
        if self.next == len(self.words):
            raise self.error(f"the file ends before {what}")
        self.next += 1
        return self.words[self.next - 1]

    def until(self, end: str, what: str) -> list[str]:
        """The words before the next `end`, which is taken, too."""
        start = self.next
        try:
            stop = self.words.index(end, start)
        except ValueError:
            self.next = len(self.words)
            raise self.error(f"the file ends before the {end!r} of {what}") from None
        self.next = stop + 1
        return self.words[start:stop]

    def count(self, what: str) -> int:
        word = self.word(what)
        if not _COUNT.fullmatch(word):
            raise self.error(f"{what} is a whole number, not {shown(word)}")
        return int(word)

    def member(self, what: str, where: str, variables: int) -> int:
        """The number of a variable."""
        v = self.count(what)
        if v >= variables:
            raise self.error(f"{where} has the variable {v}; they are numbered 0 to {variables - 1}")
        return v

    def numbers(self, count: int, what: str) -> np.ndarray:
        """As many entries of a table."""
        self.promise(count, f"entries of {what}")
        start, self.next = self.next, self.next + count
        return self.entries(self.words[start : self.next], start, what)

    def entries(self, given: Sequence[str], start: int, what: str) -> np.ndarray:
        """The entries of a table, decimals ≥ 0, in words that stand after the place `start`."""
        values = [float(word) if DECIMAL.fullmatch(word) else math.nan for word in given]
        for word, value in zip(given, values, strict=True):
            if not 0 < value < math.inf and (reason := _reason_against(word, value)):
                self.next = self.words.index(word, start) + 1 if word in self.words else start
                raise self.error(f"an entry of {what} {reason} {shown(word)}")
        return np.array(values)

    def promise(self, count: int, what: str, words: int = 1) -> None:
        """Refuse a count of items, each of at least `words` words, that the rest of the file is too short for.

        Memory is only allocated after that.
        """
        left = len(self.words) - self.next
        if count * words > left:
            raise self.error(f"the file ends before all {count} {what}")

    def finish(self, what: str) -> None:
        if self.next < len(self.words):
            extra = self.words[self.next]
            self.next += 1
            raise self.error(f"the {what} is complete, but {shown(extra)} follows")


def _reason_against(word: str, value: float) -> str | None:
    if math.isnan(value):
        return "is a number, not"
    if value < 0:
        return "is negative:"
    is_lost = value == 0 and re.search("[1-9]", re.split("[eE]", word)[0])
    return "is out of the range of floats:" if is_lost or value else None
