"""A model as a web page: its data, the evaluator and the views in a single file that loads nothing else."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from pgcc import __version__
from pgcc.compiler import Compiled
from pgcc.errors import EvidenceError, PgccError, plural
from pgcc.explore.contents import described, page_program, program_arrays, state_arrays
from pgcc.explore.packing import pack
from pgcc.formats.io import as_path, writing
from pgcc.locks import cached_property

# The modules of the page, each after those that it imports.
SCRIPTS = (
    "decode", "scaled", "matrix", "determinant", "evaluator", "series", "sampler", "trees", "mode",
    "jobs", "text", "states", "variables", "sizes", "sets", "circuit", "graph", "app",
)  # fmt: skip
# The height of the page in a notebook, in pixels.
HEIGHT = 760
_HINTS = "Click: in, out, open again", "Click a state: observed, open again (with Shift: ruled out)"


class Explorer:
    """An interactive web page about one model. Made by `Model.explore`.

    It shows itself in a notebook. `save` writes it to a file that you can open in any browser, without a network.

    Attributes
    ----------
    html : str
        The text of the page.

    Examples
    --------
    >>> import pgcc
    >>> page = pgcc.compile(pgcc.parse("0.4*a*b + 0.3*a + 0.3")).explore(title="Two variables")
    >>> page  # doctest: +ELLIPSIS
    <Explorer: Two variables, 2 variables, ... kB>
    >>> "<title>Two variables</title>" in page.html
    True
    """

    def __init__(
        self,
        compiled: Compiled,
        proved: bool,
        title: Any = None,
        groups: Mapping[str, Iterable[str]] | None = None,
        height: int = HEIGHT,
    ):
        names = tuple(compiled.given.domains or compiled.circuit.variables)
        if title is not None and not isinstance(title, str):
            raise PgccError(f"title={title!r} is not text", argument="title")
        if type(height) is not int or height < 100:
            raise PgccError(f"height={height!r} is not a height in pixels: a whole number, 100 or more")
        self._title, self._height = title or f"A model of {plural(len(names), 'variable')}", height
        program = page_program(compiled)
        # "proved": that no coefficient is negative, which searches for modes rely on
        self._about, self._arrays = described(compiled, program), program_arrays(program) | state_arrays(compiled)
        columns, states = self._about["variables"], [one["name"] for one in self._about["states"]]
        number = {name: i for i, name in enumerate(columns)} | {name: len(columns) + k for k, name in enumerate(states)}
        listed = [(head, [number[names[i]] for i in members]) for head, members in _read_groups(groups, names)]
        self._about |= {"title": self._title, "proved": proved, "groups": listed}

    @cached_property
    def data(self) -> dict[str, Any]:
        """The data about the model inside the page, as JSON."""
        return {"about": self._about, "packed": pack(self._arrays)}

    @cached_property
    def html(self) -> str:
        """The text of the page."""
        about, counted = self._about, self._arrays["counted"]
        of_these, of_all = int(counted.sum()), bool(counted.all())
        return _filled(
            _read("page.html"),
            title=escape(self._title),
            subtitle=f"{self._count}, {plural(about['sizes']['nodes'], 'node')}"
            + (f", {plural(len(about['dets']), 'determinant')}" if about["dets"] else ""),
            counted=f"How many {'' if of_all else f'of {of_these} yes/no variables '}are in",
            sizes="" if of_these or of_all else " hidden",
            hint="; ".join(text for text, many in zip(_HINTS, (self._plain, about["states"]), strict=True) if many),
            version=__version__,
            style=_read("style.css"),
            data=_as_script_data(self.data),
            script=page_script(),
        )

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the page to a file, completely or not at all. An existing file is replaced.

        Returns
        -------
        Path

        Examples
        --------
        >>> import pgcc, tempfile
        >>> page = pgcc.compile(pgcc.parse("0.4*a*b + 0.6")).explore()
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     page.save(folder + "/page.html").stat().st_size > 10_000
        True
        """
        target = as_path(path, "the name of a page")
        check_page_name(target)
        with writing(target) as file:
            file.write(self.html.encode())
        return target

    def _repr_html_(self) -> str:
        """What notebooks show: the page in an iframe of its own, which shares nothing with the notebook."""
        style = f"width: 100%; height: {self._height}px; border: 0; border-radius: 12px"
        label = escape(f"Explorer: {self._title}", quote=True)
        return (
            f'<iframe title="{label}" sandbox="allow-scripts" style="{style}" '
            f'srcdoc="{escape(self.html, quote=True)}"></iframe>'
        )

    @property
    def _plain(self) -> int:
        return sum(i < len(self._about["variables"]) for _, members in self._about["groups"] for i in members)

    @property
    def _count(self) -> str:
        return plural(self._plain + len(self._about["states"]), "variable")

    @property
    def size(self) -> str:
        """How many variables the page has, and how many bytes, in words."""
        return f"{self._count}, {len(self.html.encode()) / 1000:,.0f} kB"

    def __repr__(self) -> str:
        return f"<Explorer: {self._title}, {self.size}>"


def check_page_name(path: str | os.PathLike[str]) -> None:
    """Refuse a name that promises something else than a web page, such as ``page.pdf``."""
    suffix = Path(path).suffix
    if suffix.lower() not in ("", ".html", ".htm"):
        raise PgccError(
            f"{path} is named like a file of another kind: the explorer writes a web page, whose name ends in .html "
            f"({Path(path).with_suffix('.html').name}); for a picture, see pgcc.draw and pgcc.plot"
        )


# -- groups of variables -----------------------------------------------------------------------------------------------


def _read_groups(groups: Mapping[str, Iterable[str]] | None, names: tuple[str, ...]) -> list[tuple[str, list[int]]]:
    """Groups as columns of their variables, with the variables of no group last; by default, by how names begin."""
    if groups is None:
        return group_by_beginnings(names)
    if not isinstance(groups, Mapping):
        raise PgccError(f"groups is a dict from titles to names of variables, not {type(groups).__name__}")
    column = {name: i for i, name in enumerate(names)}
    found, seen = [], set()
    for title, members in groups.items():
        listed = [members] if isinstance(members, str) else list(members)
        for name in listed:
            if name not in column:
                raise EvidenceError(f"group {title!r} names {name!r}, which is not a variable of the model")
            if name in seen:
                raise EvidenceError(f"variable {name!r} is in two groups, or twice in one")
            seen.add(name)
        found.append((str(title), [column[name] for name in listed]))
    rest = [i for i, name in enumerate(names) if name not in seen]
    return [*found, ("other variables", rest)] if rest else found


_BEGINNING = re.compile(r"^(.*?[^\W\d_])[\W_]*\d+$|^([^=_.:/\[ ]+)[=_.:/\[ ].+$")
# Fewer variables than this are one list.
FEW = 24
_MOST_IN_GROUP = 100


def group_by_beginnings(names: tuple[str, ...]) -> list[tuple[str, list[int]]]:
    """Group variables whose names begin alike, up to a mark (``colour=red``) or number (``pixel7``); at most 100 each.

    Examples
    --------
    >>> few = group_by_beginnings(("a1", "a2", "b"))
    >>> few
    [('', [0, 1, 2])]
    >>> many = group_by_beginnings(tuple(f"{word}={i}" for word in ("colour", "size") for i in range(20)))
    >>> [(title, len(members)) for title, members in many]
    [('colour', 20), ('size', 20)]
    """
    if len(names) < FEW:
        return [("", list(range(len(names))))]
    found: dict[str, list[int]] = {}
    for i, name in enumerate(names):
        match = _BEGINNING.match(name)
        found.setdefault((match[1] or match[2]) if match else name, []).append(i)
    if len(found) > max(1, len(names) // 3):  # names have little in common
        found = {"": list(range(len(names)))}
    return [portion for title, members in found.items() for portion in _portions(title, members, names)]


def _portions(title: str, members: list[int], names: tuple[str, ...]) -> list[tuple[str, list[int]]]:
    """A group split into parts of a hundred, each titled by its first and last member."""
    if len(members) <= _MOST_IN_GROUP:
        return [(title, members)]
    parts = [members[i : i + _MOST_IN_GROUP] for i in range(0, len(members), _MOST_IN_GROUP)]
    return [(f"{names[part[0]]} … {names[part[-1]]}", part) for part in parts]


# -- one file of many --------------------------------------------------------------------------------------------------


def _read(name: str) -> str:
    return (files("pgcc.explore") / "web" / name).read_text(encoding="utf-8")


def page_script() -> str:
    """The modules of the page joined into one, in order of dependency and without their imports."""
    return "\n".join(as_part(_read(f"{name}.js")) for name in SCRIPTS)


def as_part(module: str) -> str:
    """A module without imports and exports.

    >>> as_part('import { a } from "./b.js";\\nexport const c = a;')
    'const c = a;'
    """
    without = re.sub(r"^import\b[^;]*;\n", "", module, flags=re.MULTILINE)
    return re.sub(r"^export ", "", without, flags=re.MULTILINE)


def _as_script_data(data: Any) -> str:
    """JSON that is safe inside a script element: nothing in it can end the element or begin another."""
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _filled(page: str, **parts: str) -> str:
    """The page with all placeholders ``{{name}}`` filled at once, because a part may contain such marks itself."""
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], page)
