"""What the text formats of logic circuits (.nnf, .sdd, .psdd, .vtree) share: lines of words, nodes, literals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from pgcc.errors import FormatError
from pgcc.formats.io import read_text, shown
from pgcc.ir.circuit import Circuit, from_flat
from pgcc.ir.flat_builder import FlatBuilder
from pgcc.ir.node import Node, Op
from pgcc.ir.operands import check_decomposable
from pgcc.ir.printer import describe
from pgcc.ir.spelling import display_text
from pgcc.passes.homogenize import homogenize, smooth

# A variable costs memory and time even if no node mentions it. A file may declare this many variables, or as many as it
# is long enough to mention: past 10,000, each takes six bytes.
MANY_VARIABLES, BYTES_PER_VARIABLE = 10_000, 6


class Lines:
    """The lines of a file that are neither empty nor comments (`c …`), as words; `number` is the current line."""

    def __init__(self, path: Path):
        self.path = path
        self.number = 0
        self._text = read_text(path)
        self.size = len(self._text)

    def __iter__(self) -> Iterator[list[str]]:
        # int() would take "1_0" and "١" for numbers: such lines are refused.
        is_simple = self._text.isascii() and "_" not in self._text
        for number, line in enumerate(self._text.split("\n"), start=1):
            self.number = number
            words = line.split()
            if not words or words[0] == "c":
                continue
            if not is_simple and ("_" in line or not line.isascii()):
                raise self.error(f"{shown(line.strip())} is not made of ASCII words and numbers")
            yield words

    def error(self, message: str, line: int | None = None, advice: str | None = None) -> FormatError:
        """An error that names the file and the line; by default the current one."""
        number = self.number if line is None else line
        place = f"{self.path}, line {number}" if number else f"{self.path}"
        return FormatError(f"{place}: {message}", advice=advice)

    def integer(self, word: str, what: str, low: int = 0) -> int:
        """A whole number ≥ low."""
        try:
            value = int(word)
        except ValueError:
            raise self.error(f"{what} is a whole number, not {shown(word)}") from None
        if value < low:
            raise self.error(f"{what} is at least {low}, not {value}")
        return value

    def literal(self, word: str, most: int | None = None) -> int:
        """±i for variable i, counted from 1."""
        value = self.integer(word, "a literal", low=-self.most_variables)
        if value == 0:
            raise self.error("a literal is ±1, ±2, …, not 0")
        if abs(value) > self.most_variables or (most is not None and abs(value) > most):
            raise self.error(f"literal {shown(word)}: there are at most {most or self.most_variables} variables")
        return value

    @property
    def most_variables(self) -> int:
        """How many variables a file of this size may have."""
        return max(MANY_VARIABLES, self.size // BYTES_PER_VARIABLE)

    def need_length(self, words: list[str], count: int, form: str) -> None:
        """A line has as many words as its form."""
        if len(words) != count:
            kind = "is cut off" if len(words) < count else "is too long"
            raise self.error(f"this line {kind}: it has {len(words)} words, and `{form}` has {count}")

    def need_elements(self, words: list[str], element: str) -> None:
        """A decision, `D id vtree count …`, has as many elements of this form as it says, and one at least."""
        if len(words) < 4:
            self.need_length(words, 4, "D id vtree elements …")
        count = self.integer(words[3], "the number of elements", low=1)
        self.need_length(words, 4 + len(element.split()) * count, f"D id vtree {count} {{{element}}}*")

    def need_header(self, name: str, form: str) -> tuple[list[str], Iterator[list[str]]]:
        """The first line, which starts with `name`, and the lines after it."""
        lines = iter(self)
        words = next(lines, None)
        if words is None:
            raise FormatError(f"{self.path} is empty: its first line should be `{form}`")
        if words[0] != name:
            raise self.error(f"the first line should be `{form}`, not {shown(' '.join(words))}")
        self.need_length(words, len(form.split()), form)
        return words, lines


class Nodes:
    """The nodes of a file by their ids. Only ids that were defined on an earlier line can be used: no cycles.

    A node is its position in a flat circuit: `Node`s are made when somebody asks for them.
    """

    def __init__(self, lines: Lines):
        self.lines, self.build = lines, FlatBuilder()
        self.by_id: dict[int, int] = {}
        self.last: int | None = None
        self._line: list[int] = []  # the line of each definition, in the order of by_id
        self._unused: set[int] = set()  # decisions that nothing has used yet
        self._last_is_decision = False

    def add(self, word: str, node: int, *, decision: bool = False) -> None:
        """Define a node."""
        key = self.lines.integer(word, "the id of a node")
        if key in self.by_id:
            raise self.lines.error(f"node {key} is defined twice")
        self.by_id[key] = node
        self._line.append(self.lines.number)
        self.last = key
        self._last_is_decision = decision
        if decision:
            self._unused.add(key)

    @property
    def last_line(self) -> int:
        """The line of the last node."""
        return self._line[-1]

    def get(self, words: list[str]) -> tuple[list[int], list[int]]:
        """These ids, and the nodes that have them."""
        try:
            keys = list(map(int, words))
            found = list(map(self.by_id.__getitem__, keys))
        except (ValueError, KeyError):
            raise self._unknown(words) from None
        self._unused.difference_update(keys)
        return keys, found

    def _unknown(self, words: list[str]) -> FormatError:
        """What is wrong with the first of these ids that no node has."""
        word = next(word for word in words if self.lines.integer(word, "the id of a node") not in self.by_id)
        return self.lines.error(f"there is no node {shown(word)} on the lines before")

    def root(self, claimed: int) -> int:
        """The last node.

        `claimed` is the number of nodes in the header. Headers are wrong in many files, so that a file with fewer nodes
        counts as cut off only if its nodes say so too: the last one is no decision, or some decision is not used.
        """
        if self.last is None:
            raise self.lines.error("the file ends before its first node")
        self._unused.discard(self.last)
        if len(self.by_id) < claimed and (self._unused or not self._last_is_decision):
            reason = f"does not use node {min(self._unused)}" if self._unused else "is no decision"
            raise self.lines.error(
                f"the file is cut off: it has {len(self.by_id)} of {claimed} nodes, and the last one {reason}"
            )
        return self.by_id[self.last]

    def literal(self, literal: int) -> int:
        """x_i for i, and its complement for −i."""
        return self.build.var(f"x{abs(literal)}", complement=literal < 0)

    def conjunction(self, children: Sequence[int]) -> int:
        """Π children"""
        kept = [child for child in children if child != self.build.one]
        if self.build.zero in kept:
            return self.build.zero
        return self.build.product(kept) if len(kept) > 1 else kept[0] if kept else self.build.one

    def disjunction(self, children: Iterable[int]) -> int:
        """Σ children, which exclude one another."""
        kept = [child for child in children if child != self.build.zero]
        if len(set(kept)) < len(kept):
            raise self.lines.error("two children of this or are equal, and the children of an or exclude one another")
        return self.build.weighted_sum([1] * len(kept), kept) if len(kept) > 1 else kept[0] if kept else self.build.zero

    def circuit(self, root: int, variables: list[str]) -> Circuit:
        """The circuit with this root, which has to be decomposable."""
        circuit = from_flat(self.build.flat(root), variables)
        if circuit._overlap is not None:
            product, name = circuit._overlap
            line = self.line_of(product)
            raise self.lines.error(f"two factors of this product share the variable {name}", line)
        return circuit

    def line_of(self, part: Node) -> int:
        """The line of the first node that is `part`, or has it as a child; 0 if there is none."""
        all_nodes = self.build.nodes()
        nodes = zip(self._line, map(all_nodes.__getitem__, self.by_id.values()), strict=True)
        return next((line for line, node in nodes if node is part or part in node.children), 0)


def variable_names(numbers: Iterable[int]) -> list[str]:
    """x1, x2, … in numeric order."""
    return [f"x{number}" for number in sorted(numbers)]


def over_literals(circuit: Circuit, form: str) -> Circuit:
    """The circuit over literals, smooth, with x̄ for every variable that a term does not mention; to be written.

    Raises
    ------
    FormatError
        If the format, called `form`, cannot have it.
    """
    n = len(circuit.variables)
    if circuit.variables != tuple(variable_names(range(1, n + 1))):
        wrong = next(name for i, name in enumerate(circuit.variables, 1) if name != f"x{i}")
        raise FormatError(
            f"{form} numbers its variables, which are x1, x2, … when it is read, and this circuit has {wrong!r}: "
            "Circuit.relabel renames them, and pgcc convert --number numbers them"
        )
    if any(node.op is Op.DET for node in circuit.order):
        raise FormatError(
            f"{form} has sums and products only, and this circuit has a determinant: .pgc and .npz keep it"
        )
    check_decomposable(circuit, f"{form} is decomposable, and {{}}: .pgc and .npz keep it", FormatError)
    return homogenize(circuit)


def refuse_weights(circuit: Circuit, form: str) -> None:
    """Refuse numbers other than 0 and 1 in a circuit to be written in a format of logic, called `form`."""
    for node in circuit.order:
        if node.op is Op.CONST and node.value not in (0, 1):
            raise FormatError(f"{form} has no numbers, and this circuit has the constant {display_text(node.value)}")
        if node.op is Op.SUM and any(weight not in (0, 1) for weight in node.weights):
            raise FormatError(
                f"{form} has no weights, and {describe(node)} has some that are not 1: .psdd, .pgc and .npz keep them"
            )


def signed_number(literal: Node) -> int:
    """±i for x_i or its complement."""
    number = int(literal.name[1:])
    return -number if literal.is_complement else number


def smoothed(circuit: Circuit) -> Circuit:
    """The circuit, smooth and with every variable in its root."""
    done = circuit.facts.smooth and len(circuit.scopes.names) == len(circuit.variables)
    return circuit if done and circuit.root.op is not Op.CONST else smooth(circuit)
