"""Circuits as text: for people, for `.pgc` files, and single nodes for messages.

Circuits are written in one walk over their postorder, so that neither depth nor sharing matters.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import IntEnum
from itertools import groupby, islice
from typing import assert_never

from pgcc.errors import CircuitError
from pgcc.ir.circuit import Circuit
from pgcc.ir.domains import Domain, Domains, Label
from pgcc.ir.matrix import Matrix
from pgcc.ir.node import ONE, Node, Op, count_uses, iter_edges
from pgcc.ir.numbers import Number
from pgcc.ir.spelling import MAX_NAME, display_text, name_text, number_text

INLINE_LIMIT = 2000  # longer than this, an expression is shown as lines of definitions
SHOWN_LINES = 60  # more lines than this are not shown, only counted
SHOWN_ENTRIES = 64  # larger matrices are not shown, only their shape
BRIEF_CHILDREN, BRIEF_WIDTH = 4, 60  # of a node in a message: children, and characters

PART = 72  # on lines of definitions, a part longer than this gets a line of its own
WIDTH = 100  # and a longer line is broken where there is a
BREAK = "\n"  # which no name and no number contains


class Level(IntEnum):
    """The precedence of a text: it needs parentheses where a higher one is required."""

    SUM = 0  # a + b
    NEGATIVE = 1  # -a, -2*a, -3
    WEIGHTED = 2  # 2*a, 1/2
    PRODUCT = 3  # a*b
    POWER = 4  # a**2
    ATOM = 5  # a, 2, (…), det(…)


Text = tuple[str, Level]


def expression_text(circuit: Circuit) -> str:
    """The polynomial in infix notation, for people.

    Floats are shown by their shortest decimal, and circuits that would fill pages are shortened; `pgc_text` is the
    text that can be read back.

    Examples
    --------
    >>> import pgcc
    >>> a, b = pgcc.variables("a b")
    >>> print(expression_text((a + 1) * (3 * b - 1) / 8 - 0.25 * a * b))
    1/8*(a + 1)*(3*b - 1) - 0.25*a*b
    """
    style = _Display()
    if len(circuit.order) <= INLINE_LIMIT:  # every node takes at least one character
        inline = _inline(circuit, style)
        if inline is not None:
            return inline
    return _shortened(line for statement in _definitions(circuit, style) for line in statement.split("\n"))


def _inline(circuit: Circuit, style: _Style) -> str | None:
    """The whole expression in one line, or None as soon as it is too long."""
    texts: dict[Node, Text] = {}
    for node in circuit.order:
        texts[node] = style.text(node, texts)
        if len(texts[node][0]) > INLINE_LIMIT:
            return None
    return texts[circuit.root][0].replace(BREAK, "")


def _shortened(lines: Iterator[str]) -> str:
    head = list(islice(lines, SHOWN_LINES - 10))
    tail: deque[str] = deque(maxlen=10)
    left = 0
    for line in lines:
        tail.append(line)
        left += 1
    left -= len(tail)
    return "\n".join([*head, *([f"… {left:,} more lines …"] if left else []), *tail])


def pgc_text(circuit: Circuit) -> str:
    """The text of a `.pgc` file, which `pgcc.parse` reads back as the same polynomial over the same variables.

    Shared and deeply nested parts stand on lines `name = expression` of their own, so that the text is about as long
    as the circuit is large. Floats are written in hexadecimal, where `0x1.8p-1` is 0.75: every bit survives. The same
    nodes are read back; where a number would be computed with its neighbours, it is written `const(2)`.

    Examples
    --------
    >>> import pgcc
    >>> a, b = pgcc.variables("a b")
    >>> shared = a + 0.5
    >>> print(pgc_text((shared * b + shared) / 3))
    variables a, b
    n1 = a + 0x1p-1
    1/3*(n1*b + n1)
    """
    for name in circuit.variables:
        if len(name) > MAX_NAME:
            raise CircuitError(f"the name {name[:20]!r}… has {len(name):,} characters: text allows {MAX_NAME:,}")
    domains = circuit.domains or Domains.plain(circuit.variables)
    return "\n".join([*_variable_lines(domains), *_definitions(circuit, _Exact(_leaves(domains)))]) + "\n"


def _variable_lines(domains: Domains) -> Iterator[str]:
    """Several statements `variables a, b, c` add up; variables with states have lines of their own."""
    for plain, group in groupby(domains.items(), lambda item: item[1].is_plain):
        some = list(group)
        if plain:
            names = [name_text(name) for name, _ in some]
            yield from ("variables " + ", ".join(names[start : start + 12]) for start in range(0, len(names), 12))
        for name, domain in [] if plain else some:
            states = list(map(_state_text, domain.states))
            if domain != Domain.of(name, domain.states):
                shown = zip(states, domain.columns, strict=True)
                states = [state if column is None else f"{state}: {name_text(column)}" for state, column in shown]
            yield f"{name_text(name)} in {{{', '.join(states)}}}"


def _state_text(state: Label) -> str:
    """A state as it stands in text: numbers and truth values as in Python, and all else as a name."""
    if isinstance(state, str):
        return name_text(state) if state not in ("True", "False") else f'"{state}"'
    return repr(state)


def _leaves(domains: Domains) -> dict[str, str]:
    """The text of columns that are called by their state: weather=rain."""
    shown = (
        (name, s, c) for name, domain in domains.items() for s, c in zip(domain.states, domain.columns, strict=True)
    )
    return {c: f"{name_text(name)}={_state_text(s)}" for name, s, c in shown if c == f"{name}={s}"}


def _definitions(circuit: Circuit, style: _Style) -> Iterator[str]:
    """Lines `name = expression`, and the root: a node has a line if it is shared or its text is long."""
    texts: dict[Node, Text] = {}
    uses = count_uses(circuit.order)
    prefix = _fresh_prefix([*circuit.variables, *(circuit.domains or ())])
    defined = 0
    for node in circuit.order:
        text, level = style.text(node, texts)
        if node is circuit.root:
            yield _filled(text)
        elif len(text) > PART or (uses[node] > 1 and node.children):
            defined += 1
            name = f"{prefix}{defined}"
            yield f"{name} = {_filled(text)}"
            texts[node] = name, Level.ATOM
        else:
            texts[node] = text, level
        for child in node.children:
            uses[child] -= 1
            if not uses[child]:
                del texts[child]  # never needed again


def _filled(text: str) -> str:
    """One line, or several in parentheses, inside which the end of a line means nothing."""
    if len(text) <= WIDTH:
        return text.replace(BREAK, "")
    lines, room = [""], WIDTH
    for piece in text.split(BREAK):
        if len(piece) > room and lines[-1]:
            lines.append("")
            room = WIDTH
        lines[-1] += piece
        room -= len(piece)
    return "(" + "\n    ".join(line.strip(" ") for line in lines) + ")"


def _fresh_prefix(variables: Iterable[str]) -> str:
    """n, n_, n__, …: the first such that no variable is the prefix and a number."""
    taken = {name.rstrip("0123456789") for name in variables if name[-1].isdecimal()}
    prefix = "n"
    while prefix in taken:
        prefix += "_"
    return prefix


class _Style:
    """The text of a node from the texts of its children.

    Attributes
    ----------
    faithful : bool
        Whether the parser rebuilds the same nodes: `a*(b*c)` and `a + (2*b)` keep their parentheses.
    number : callable
        A number as text.
    """

    faithful: bool
    number: Callable[[Number], str]

    def __init__(self, leaves: Mapping[str, str] | None = None):
        self.leaves = leaves or {}  # the text of variables that are not written by their name

    def text(self, node: Node, texts: dict[Node, Text]) -> Text:
        match node.op:
            case Op.CONST:
                return self.constant(node.value)
            case Op.VAR:
                if not node.is_complement and node.name in self.leaves:
                    return self.leaves[node.name], Level.ATOM
                return ("~" if node.is_complement else "") + name_text(node.name), Level.ATOM
            case Op.SUM:
                return self.sum(node, texts)
            case Op.PRODUCT:
                return self.product(node, texts)
            case Op.DET:
                return self.det(node, texts)
        assert_never(node.op)

    def constant(self, value: Number) -> Text:
        text = self.number(value)
        if text.startswith("-"):
            return text, Level.NEGATIVE
        return text, Level.WEIGHTED if "/" in text else Level.POWER if "**" in text else Level.ATOM

    # -- sums -------------------------------------------------------------------------------------

    def sum(self, node: Node, texts: dict[Node, Text]) -> Text:
        terms = self.terms(node, texts)
        if not terms:
            return "0", Level.ATOM
        first, level = terms[0]
        if len(terms) == 1:
            return first, level
        return BREAK.join([first, *(_signed(term) for term, _ in terms[1:])]), Level.SUM

    def terms(self, node: Node, texts: dict[Node, Text]) -> list[Text]:
        """The terms of a sum, as operands of +."""
        return [
            self.constant(weight)
            if child.op is Op.CONST and _is_one(child.value)
            else texts[child]
            if _is_one(weight)
            else self.term(weight, texts[child])
            for weight, child in iter_edges(node)
        ]

    def term(self, weight: Number, below: Text) -> Text:
        """weight · child, as an operand of +."""
        if type(weight) is int and weight == -1:
            text, _ = self.inside(below, Level.PRODUCT if self.faithful else Level.WEIGHTED)
            return f"-{text}", Level.NEGATIVE
        factor, _ = self.inside(below, Level.PRODUCT)
        coefficient = self.number(weight)
        return f"{coefficient}*{factor}", Level.NEGATIVE if coefficient.startswith("-") else Level.WEIGHTED

    # -- products ---------------------------------------------------------------------------------

    def product(self, node: Node, texts: dict[Node, Text]) -> Text:
        runs = self.runs(node)
        if not runs:
            return "1", Level.ATOM
        # -2*a*b is as good as (-2*a)*b for people, but the parser would make other nodes of it.
        first, level = self.factor(runs[0], texts, Level.POWER if self.faithful else Level.NEGATIVE)
        if len(runs) == 1:
            return first, level
        rest = [self.factor(run, texts, Level.POWER if self.faithful else Level.PRODUCT) for run in runs[1:]]
        return f"{BREAK}*".join([first, *(text for text, _ in rest)]), min(level, Level.PRODUCT)

    def runs(self, node: Node) -> list[tuple[Node, int]]:
        """Equal neighbours are a power. For the parser `x**2` is Product(x, x), but longer powers are trees."""
        children = node.children
        if self.faithful and len(children) != 2:
            return [(child, 1) for child in children]
        return [(child, len(list(group))) for child, group in groupby(children)]

    def factor(self, run: tuple[Node, int], texts: dict[Node, Text], wanted: Level) -> Text:
        child, count = run
        if count == 1:
            return self.inside(texts[child], wanted)
        base, _ = self.inside(texts[child], Level.ATOM)
        return f"{base}**{count}", Level.POWER

    def inside(self, below: Text, wanted: Level) -> Text:
        text, level = below
        return (text, level) if level >= wanted else (f"({text})", Level.ATOM)

    # -- determinants -----------------------------------------------------------------------------

    def det(self, node: Node, texts: dict[Node, Text]) -> Text:
        """det(M0, U, V, [f…]), with the complements [y…] if they are not all 1, then the size and what it counts."""
        lists = [node.inside] if all(y is ONE for y in node.outside) else [node.inside, node.outside]
        arguments = [self.matrix(m) for m in node.matrices]
        arguments += [_bracketed(texts[child][0] for child in children) for children in lists]
        arguments += [] if node.size is None else [f"size={node.size}"]
        arguments += [] if all(node.counted) else [f"counted={_bracketed(str(int(c)) for c in node.counted)}"]
        return f"det({_listed(arguments)})", Level.ATOM

    def matrix(self, matrix: Matrix) -> str:
        return _bracketed(_bracketed(map(self.number, row)) for row in matrix.numbers())


class _Exact(_Style):
    """For files: every number exactly, every node as it is."""

    faithful = True
    number = staticmethod(number_text)

    def sum(self, node: Node, texts: dict[Node, Text]) -> Text:
        text, level = super().sum(node, texts)
        # The parser makes no node of a sum without terms, or of one child alone.
        vanishes = len(node.children) < 2 and all(map(_is_one, node.weights))
        return (f"sum({text if node.children else ''})", Level.ATOM) if vanishes else (text, level)

    def terms(self, node: Node, texts: dict[Node, Text]) -> list[Text]:
        """One number may be plain, 1·Const; others would be added to it, a 0 would go, and weights be multiplied."""
        edges = list(iter_edges(node))
        numbers = (i for i, (w, c) in enumerate(edges) if c.op is Op.CONST and c.value and _is_one(w))
        plain = next(numbers, None) if len(edges) > 1 else None
        return [
            texts[child]
            if i == plain
            else self.inside(self.sealed(child, texts), Level.PRODUCT)
            if _is_one(weight)
            else self.term(weight, self.sealed(child, texts))
            for i, (weight, child) in enumerate(edges)
        ]

    def product(self, node: Node, texts: dict[Node, Text]) -> Text:
        sealed = {child: self.sealed(child, texts) for child in node.children}
        if len(node.children) < 2:
            return f"product({''.join(text for text, _ in sealed.values())})", Level.ATOM
        return super().product(node, sealed)

    def sealed(self, child: Node, texts: dict[Node, Text]) -> Text:
        """A child that is not computed with its neighbours, even if it is a number."""
        text, level = texts[child]
        return (f"const({text})", Level.ATOM) if child.op is Op.CONST else (text, level)


class _Display(_Style):
    """For people: short numbers, few parentheses."""

    faithful = False
    number = staticmethod(display_text)

    def matrix(self, matrix: Matrix) -> str:
        rows, columns = matrix.shape
        return f"[{rows}×{columns} matrix]" if rows * columns > SHOWN_ENTRIES else super().matrix(matrix)


def _is_one(value: Number) -> bool:
    """Whether a factor is the exact 1, which is not written. A float 1.0 is written: it marks the number as a float."""
    return type(value) is int and value == 1


def _signed(term: str) -> str:
    """A term after the first one, with its operator."""
    return f" - {term[1:]}" if term.startswith("-") else f" + {term}"


def _listed(items: Iterable[str]) -> str:
    return f", {BREAK}".join(items)


def _bracketed(items: Iterable[str]) -> str:
    return f"[{_listed(items)}]"


# -- one node, in messages ------------------------------------------------------------------------


def describe(node: Node) -> str:
    """A node in a few words, for messages: its operation and the beginning of its expression.

    >>> import pgcc
    >>> describe(pgcc.parse("a*(0.3*b + 0.7*c*(1 + d))").root)
    'product a*(3/10*b + 7/10*(…))'
    """
    return f"{node.op.name.lower()} {brief_text(node, depth=2)}"


# What stands between the children of a node.
_BETWEEN = {Op.SUM: " + ", Op.PRODUCT: "*", Op.DET: ", "}


def brief_text(node: Node, depth: int) -> str:
    """The beginning of a node's expression, down to `depth` levels of children."""
    match node.op:
        case Op.CONST:
            return _brief_number(node.value)
        case Op.VAR:
            return f"~{name_text(node.name)}" if node.is_complement else name_text(node.name)
    if not depth:
        return "…"
    parts = [_brief_child(child, depth - 1) for child in node.children[:BRIEF_CHILDREN]]
    if node.op is Op.SUM:
        parts = [p if w == 1 else f"{_brief_number(w)}*{p}" for w, p in zip(node.weights, parts, strict=False)]
    parts += ["…"] if len(node.children) > BRIEF_CHILDREN else []
    text = _BETWEEN[node.op].join(parts)
    return text if len(text) <= BRIEF_WIDTH else text[: BRIEF_WIDTH - 1] + "…"


def _brief_child(node: Node, depth: int) -> str:
    return f"({brief_text(node, depth)})" if node.children else brief_text(node, depth)


def _brief_number(value: Number) -> str:
    return f"{value:.4g}" if type(value) is float else display_text(value)
