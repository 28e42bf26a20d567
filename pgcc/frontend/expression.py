"""Polynomials written as text: `pgcc.parse`, and the contents of `.pgc` files.

The language has one statement per line (`#` starts a comment; line breaks inside brackets are ignored):

    variables z1, z2, z3                  optional, first: all variables, in order
    weather in {sun, rain, "light snow"}  a variable with states; in expressions, weather=rain is one of them
    name = expression                     a part that later lines can use; any number of them
    expression                            last: the polynomial. Without it, the last definition is the polynomial

Expressions use + - * / ** and parentheses, with the same precedence as in Python. You can divide by numbers only, and
exponents are whole numbers. Numbers are exact: 0.1 is 1/10, and so is 1e-1; a hexadecimal 0x1f is an integer, and
0x1.8p-1 (C99) is the *float* 0.75. Numbers that meet are computed, exactly: 2*3*z is 6*z, and 0x1p-1*3 the fraction
3/2. Where a file has to say which nodes there are, const(3) is a number that stays by itself, and sum(f, …) and
product(f, …) are one node, however few there are.

A state is a name or a number (a float, if it has a point or an exponent; True and False are what they are in Python).
What shows a state is a variable of the polynomial, "weather=rain", except that two states share one (see
`Circuit.with_states`); weather in {sun: "a", rain: "b", snow} names them: for at most one state, all of them are out.

A name is an identifier, or any printable text in double quotes. ~z is the complement of the variable z: its value is 1,
and it tells an evaluator that z is absent. det(M0, U, V, [f1, f2]) is det(M0 + U·diag(f)·Vᵀ), with matrices as lists of
rows; a fifth argument lists the complements of the children where they are not 1. With size=2 at the end, only the
terms with exactly two of the children are kept; with counted=[1, 0, 1] after it, those with two of the children marked
1.

Text is never executed. The parser uses a table of what may come next and a stack of open brackets. It takes linear
time, however deeply the text is nested, and refuses expressions whose numbers or powers would become too large.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from pgcc.collector import collector_paused
from pgcc.errors import CircuitError, EvidenceError, ParseError, plural
from pgcc.frontend.term_arithmetic import TermArithmetic
from pgcc.frontend.tokens import END, ESCAPE, KINDS, NEWLINE, WORD, read_number
from pgcc.ir.circuit import Circuit
from pgcc.ir.domains import Domain, Domains
from pgcc.ir.node import Node, Op, const, det, product, var, weighted_sum
from pgcc.ir.numbers import Number, nearest_float
from pgcc.ir.spelling import KEYWORDS, MAX_NAME
from pgcc.ir.terms import Term, negated, node_of, sealed

MAX_NESTING = 200_000  # brackets in brackets: each open one takes memory


def parse(text: str, *, where: str = "") -> Circuit:
    """Read a polynomial written as text, and return its circuit.

    Parameters
    ----------
    text : str
        An expression, or lines of the form `name = expression` followed by the polynomial. `+ - * / **` have the same
        precedence as in Python; you can divide by numbers only, and exponents are whole numbers. Decimals are exact:
        `0.1` is 1/10.
    where : str, optional
        What to call the text in error messages, such as the name of its file.

    Returns
    -------
    Circuit
        Its variables are the names that the text uses but does not define, in order of first use. A first line such
        as `variables z1, z2` fixes another order.

    Raises
    ------
    ParseError
        If the text has a mistake. The message shows the line, with a caret under the place, and says what was expected.

    See Also
    --------
    pgcc.variables : circuits for single variables, to combine with Python operators
    pgcc.from_sympy : convert a SymPy expression to a circuit
    pgcc.load : read a circuit from a file

    Examples
    --------
    >>> import pgcc
    >>> print(pgcc.parse("0.1*(z1 + 1)*(6*z2 + 1) - 0.4*z1*z2"))
    1/10*(z1 + 1)*(6*z2 + 1) - 2/5*z1*z2
    >>> g = pgcc.parse('''
    ... fair = (heads + 1)/2      # a part with a name
    ... 0.3*fair + 0.7*"not fair"
    ... ''')
    >>> g.variables
    ('heads', 'not fair')
    >>> pgcc.parse("z1 +* z2")
    Traceback (most recent call last):
    pgcc.errors.ParseError: line 1, column 5: expected a number, a name or '(', found '*'
      z1 +* z2
          ^
    """
    if not isinstance(text, str):
        raise ParseError(f"an expression is text, not {type(text).__name__}", where=where)
    with collector_paused():
        return _Parser(text, where).run()


# -- the state of the parser ----------------------------------------------------------------------


class _Expression:
    """A sum that is being read: its terms, the factors of the last term, and the operators waiting for an operand."""

    __slots__ = ("at", "divide", "factors", "minus", "negative", "powers", "terms", "value")

    def __init__(self) -> None:
        self.terms: list[Term] = []
        self.minus = False  # whether the last term is subtracted
        self.factors: list[Term] = []
        self.divide = False  # whether the last operand is a divisor
        self.negative = False  # whether the last operand has a minus of its own
        self.powers: list[tuple[Term, bool]] = []  # bases that wait for their exponents, each with its own minus
        self.value: Term = (0, None)  # the last operand
        self.at = 0  # the position of the last operand in the text

    def is_empty(self) -> bool:
        return not (self.terms or self.minus or self.factors or self.negative or self.powers)


class _Open:
    """An open bracket, and the expression that continues after it is closed."""

    __slots__ = ("at", "items", "named", "outer", "word")

    def __init__(self, word: str, at: int, outer: _Expression):
        self.word, self.at, self.outer = word, at, outer
        self.items: list[Term | list] = []  # what stands between the commas of '[' and 'det('
        self.named: dict[str, int] = {}  # for named arguments of a det, their positions in `items`


# The named arguments of a det, in this order, after its other arguments.
NAMED = {"size": "the size", "counted": "what is counted"}
CLOSING = {"(": "')'", "[": "',' or ']'"}
CLOSING |= {f"{function}(": "',' or ')'" for function in ("det", "sum", "product", "const")}


class _Parser:
    """Reads one token after another; `self.state` is the table of what may come next."""

    def __init__(self, text: str, where: str):
        self.text, self.where = text, where
        self.at = 0  # the position of the current token
        self.state = START
        self.compute = TermArithmetic(budget=(1 << 22) + 8 * len(text))
        self.expression = _Expression()
        self.open: list[_Open] = []
        self.known: dict[str, Term] = {}  # the values of names that have been used or defined
        self.variables: dict[str, int] = {}  # the variables among them, with the position of their first use
        self.domains: dict[str, Domain] = {}  # of the variables with states
        self.states: list[list[Any]] = []  # that are being listed, each with its column, if one is named
        self.asked = ""  # the variable of which the next word is a state; "" if states are being listed
        self.minus = False  # whether there is a minus before the state, which is a number then
        self.listed = False  # whether there was a `variables` statement
        self.numbers: dict[str, Term] = {}  # numbers that have been read, by their text
        self.statement_at = 0
        self.defining: str | None = None
        self.root_at: int | None = None
        self.result: Term | None = None

    def run(self) -> Circuit:
        for match in WORD.finditer(self.text):
            kind: Any = match.lastindex  # the number of the alternative that matched
            self.at = match.start(kind)
            action = self.state.actions[kind]
            if action is None:
                raise self.unexpected(KINDS[kind], match[kind])
            try:
                action(self, match[kind])
            except (CircuitError, EvidenceError) as error:
                raise self.error(str(error), self.expression.at) from None
            if kind == END:
                break
        if self.result is None:
            raise self.error("there is no expression: expected the polynomial on the last line", len(self.text))
        return Circuit(node_of(self.result), self.all_variables() if self.domains else self.variables)

    # -- statements -------------------------------------------------------------------------------

    def blank(self, word: str) -> None:
        pass

    def begin_statement(self) -> None:
        if self.root_at is not None:
            line, _, _ = self.locate(self.root_at)
            raise self.error(
                f"only the last line can be an expression, but line {line} is one: write 'name = …' there or here"
            )
        self.expression = _Expression()
        self.statement_at = self.expression.at = self.at
        self.state = OPERAND

    def begin_definition(self, word: str) -> None:
        name = self.checked_name(word)
        if name in self.domains:
            self.begin_statement()
            self.begin_named(word)
            return
        if name in self.variables:
            line, _, _ = self.locate(self.variables[name])
            raise self.error(f"{_shown(name)} is a variable on line {line}: a part is defined before it is used")
        if name in self.known:
            raise self.error(f"{_shown(name)} is already defined: every name is given once")
        self.begin_statement()
        self.defining = name
        self.state = DEFINED

    def end_text(self, word: str) -> None:
        if self.open:
            raise self.unexpected("end", word)
        self.end_statement(word)

    def end_statement(self, word: str) -> None:
        if self.open:
            return  # inside brackets the end of a line means nothing
        self.result = sealed(self.finished())
        if self.defining is None:
            self.root_at = self.statement_at
        elif self.defining in self.variables:
            raise self.error(f"{_shown(self.defining)} is used in its own definition", self.statement_at)
        else:
            self.known[self.defining] = self.result
        self.defining = None
        self.state = START

    def continue_line(self, word: str) -> None:
        """Ignore the end of a line inside brackets."""
        if not self.open:
            raise self.unexpected("newline", word)

    def begin_listing(self, word: str) -> None:
        if self.result is not None:
            raise self.error("the variables are listed first, before any other line")
        self.begin_statement()
        self.listed = True
        self.state = LISTING

    def list_variable(self, word: str) -> None:
        name = self.checked_name(word)
        if name in self.variables:
            raise self.error(f"variable {_shown(name)} is listed twice")
        self.known[name] = 1, var(name)
        self.variables[name] = self.at
        self.state = LISTED

    # -- states -----------------------------------------------------------------------------------

    def begin_states(self, word: str) -> None:
        self.states, self.asked = [], ""
        self.state = STATE

    def name_of_state(self, word: str) -> None:
        self.label(_TRUTH.get(word, _unquoted(word)))

    def signed_state(self, word: str) -> None:
        self.minus = word == "-"
        self.state = SIGNED

    def number_of_state(self, word: str) -> None:
        exact = read_number(word)
        value = exact if word.isdecimal() else nearest_float(Fraction(exact))
        self.label(-value if self.minus else value)
        self.minus = False

    def label(self, label: Any) -> None:
        """The state that has been read: one more of those that are listed, or a leaf."""
        if not self.asked:
            self.states.append([label, None])
            self.state = STATED
            return
        domain = self.domains[self.asked]
        node = domain.leaf(domain.number(label, f"variable {self.asked!r}"))
        self.accept((1, None) if node.op is Op.CONST else (1, node))

    def continue_states(self, word: str) -> None:
        """Ignore the end of a line between braces."""
        if self.asked:
            raise self.unexpected("newline", word)

    def column(self, word: str) -> None:
        self.states[-1][1] = self.checked_name(word)
        self.state = STATED

    def end_states(self, word: str) -> None:
        name, (states, columns) = str(self.defining), zip(*self.states, strict=True)
        domain = Domain.of(name, states)
        if any(columns) and columns.count(None) > 1:
            raise self.error("one state can do without a variable of the polynomial, not several")
        self.domains[name] = Domain(domain.states, columns) if any(columns) else domain
        self.variables[name], self.defining = self.at, None
        for column in self.domains[name].columns:
            if column in self.known:
                raise self.error(f"{_shown(str(column))} is already a variable or a definition")
            if column is not None:
                self.known[column] = 1, var(column)
        self.state = LISTED_ALL

    def all_variables(self) -> Domains:
        """The variables, of which some have states."""
        plain = Domains.plain(self.variables)
        return Domains({name: self.domains.get(name, plain[name]) for name in self.variables})

    # -- operands ---------------------------------------------------------------------------------

    def accept(self, value: Term) -> None:
        self.expression.value = value
        self.state = OPERATOR

    def number(self, word: str) -> None:
        self.expression.at = self.at
        if word not in self.numbers:
            self.numbers[word] = self.compute.allowed(read_number(word)), None
        self.accept(self.numbers[word])

    def name(self, word: str) -> None:
        self.expression.at = self.at
        value = self.known.get(word)
        if value is None or word in KEYWORDS:
            value = self.variable(self.checked_name(word))
        self.accept(value)

    def quoted(self, word: str) -> None:
        self.expression.at = self.at
        name = self.checked_name(word)
        self.accept(self.known.get(name) or self.variable(name))

    def variable(self, name: str) -> Term:
        if name in self.domains:
            states = self.domains[name].states
            raise self.error(f"{_shown(name)} has states, which are written {_shown(f'{name}={states[0]}')} and so on")
        if self.listed:
            raise self.error(f"{_shown(name)} is neither defined nor among the listed variables")
        self.variables[name] = self.at
        self.known[name] = value = 1, var(name)
        return value

    def checked_name(self, word: str) -> str:
        name = _unquoted(word)
        if len(name) > MAX_NAME:
            raise self.error(f"the name has {len(name):,} characters: at most {MAX_NAME:,} are allowed")
        if word in KEYWORDS:
            raise self.error(f"'{word}' is a word of the language: {_USAGE[word]}; as a name it stands in quotes")
        if not name.isprintable() or not name:
            raise self.error("a name in quotes has at least one character, and only printable ones")
        if not word.startswith('"') and not name.isidentifier():
            raise self.error(f"{_shown(name)} is not an identifier: such a name stands in double quotes")
        return name

    def begin_complement(self, word: str) -> None:
        self.expression.at = self.at
        self.state = COMPLEMENT

    def complement(self, word: str) -> None:
        name = self.checked_name(word)
        if name not in self.known:
            self.variable(name)
        elif self.known[name] != (1, var(name)):
            raise self.error(f"{_shown(name)} is defined: only a variable has a complement")
        self.accept((1, var(name, complement=True)))

    def unary(self, word: str) -> None:
        self.expression.negative ^= word == "-"

    # -- operators --------------------------------------------------------------------------------

    def begin_exponent(self, word: str) -> None:
        expression = self.expression
        expression.powers.append((expression.value, expression.negative))
        expression.negative = False
        self.state = OPERAND

    def begin_factor(self, word: str) -> None:
        self.end_factor()
        self.expression.divide = word == "/"
        self.state = OPERAND

    def begin_term(self, word: str) -> None:
        self.end_factor()
        self.end_term()
        self.expression.minus = word == "-"
        self.state = OPERAND

    def end_factor(self) -> None:
        expression = self.expression
        value = expression.value
        if expression.negative:
            value = negated(value)
            expression.negative = False
        while expression.powers:  # from the right, as in Python: a**b**c is a**(b**c), and -a**b is -(a**b)
            base, negative = expression.powers.pop()
            value = self.compute.power(base, value)
            if negative:
                value = negated(value)
        expression.factors.append(self.compute.inverse(value) if expression.divide else value)

    def end_term(self) -> None:
        expression = self.expression
        term = self.compute.product(expression.factors)
        expression.terms.append(negated(term) if expression.minus else term)
        expression.factors = []
        expression.divide = False

    def finished(self) -> Term:
        self.end_factor()
        self.end_term()
        return self.compute.sum(self.expression.terms)

    # -- brackets ---------------------------------------------------------------------------------

    def begin_bracket(self, word: str) -> None:
        self.expression.at = self.at
        if len(self.open) == MAX_NESTING:
            raise self.error(f"brackets are nested too deeply: at most {MAX_NESTING:,}")
        self.open.append(_Open("".join(word.split()), self.at, self.expression))
        self.expression = _Expression()
        self.expression.at = self.at
        self.state = OPERAND

    def begin_list(self, word: str) -> None:
        allowed = self.open and self.open[-1].word in ("det(", "[") and self.expression.is_empty()
        if not allowed or [opened.word for opened in self.open[-3:]] == ["det(", "[", "["]:
            raise self.error("a list can only stand in det(M0, U, V, [children]), where a matrix is a list of rows")
        self.begin_bracket(word)

    def end_item(self, word: str) -> None:
        """A comma after an expression."""
        if not self.open or self.open[-1].word == "(":
            raise self.unexpected("comma", word)
        self.open[-1].items.append(self.finished())
        self.next_item(word)

    def next_item(self, word: str) -> None:
        self.expression = _Expression()
        self.expression.at = self.at
        self.state = OPERAND

    def end_bracket(self, word: str) -> None:
        """A closing bracket after an expression."""
        if not self.open or (word == "]") != (self.open[-1].word == "["):
            raise self.unexpected("close", word)
        value = self.finished()
        if self.open[-1].word == "(":
            self.expression = self.open.pop().outer
            self.accept(sealed(value))
        else:
            self.open[-1].items.append(value)
            self.end_items(word)

    def begin_named(self, word: str) -> None:
        """A name before '=': a variable with states, or a named argument of a det; else the '=' is a mistake."""
        if (name := _unquoted(word)) in self.domains:
            self.expression.at, self.asked, self.state = self.at, name, STATE_OF
            return
        opened = self.open[-1] if self.open else None
        if word not in NAMED or opened is None or opened.word != "det(" or not self.expression.is_empty():
            self.quoted(word)
            return
        if word in opened.named:
            raise self.error(f"{NAMED[word]} is given twice")
        opened.named[word] = len(opened.items)
        self.state = EQUALS

    def end_items(self, word: str) -> None:
        """A closing bracket after the last item of a list or a function."""
        if (word == "]") != (self.open[-1].word == "["):
            raise self.unexpected("close", word)
        opened = self.open.pop()
        self.expression = opened.outer
        if opened.word == "[":
            self.open[-1].items.append(opened.items)
            self.state = ITEM
        else:
            self.accept((1, self.called(opened)))

    def end_empty(self, word: str) -> None:
        """A closing bracket where an operand is expected: only right for an empty list, sum or product."""
        may_be_empty = self.open and self.open[-1].word in ("[", "sum(", "product(") and not self.open[-1].items
        if not may_be_empty or not self.expression.is_empty():
            raise self.unexpected("close", word)
        self.end_items(word)

    def called(self, opened: _Open) -> Node:
        """The node that a function makes of its arguments."""
        items: list[Any] = opened.items
        match opened.word:
            case "det(":
                return self.determinant(opened)
            case "sum(":
                edges = [(1, const(weight)) if node is None else (weight, node) for weight, node in items]
                return weighted_sum([weight for weight, _ in edges], [node for _, node in edges])
            case "product(":
                return product(map(node_of, items))
        if len(items) != 1 or items[0][1] is not None:
            raise self.error("const( ) has one number between its parentheses", opened.at)
        return const(items[0][0])

    def determinant(self, opened: _Open) -> Node:
        items = opened.items
        try:
            words, first = list(opened.named), len(items) - len(opened.named)
            if words != list(NAMED)[: len(words)] or list(opened.named.values()) != [*range(first, len(items))]:
                raise CircuitError("the size comes last, and what it counts after it")
            items, named = items[:first], dict(zip(words, items[first:], strict=True))
            size: Any = _entry(named["size"], "the size") if "size" in named else None
            counted = _counted(named["counted"]) if "counted" in named else None
            if len(items) not in (4, 5):
                raise CircuitError(f"this one has {plural(len(items), 'argument')}")
            m0, u, v = (_matrix(item, name) for item, name in zip(items, ("M0", "U", "V"), strict=False))
            inside, *outside = map(_children, items[3:])
            return det(m0, u, v, inside, outside[0] if outside else None, size, counted)
        except CircuitError as error:
            raise self.error(f"{_USAGE['det']}: {error}", opened.at) from None

    # -- errors -----------------------------------------------------------------------------------

    def locate(self, at: int) -> tuple[int, int, str]:
        """Line, column, and the text of the line."""
        text = self.text
        line = 1 + text.count("\n", 0, at) + text.count("\r", 0, at) - text.count("\r\n", 0, at)
        start = 1 + max(text.rfind("\n", 0, at), text.rfind("\r", 0, at))
        end = NEWLINE.search(text, at)
        return line, at - start + 1, text[start : end.start() if end else None]

    def error(self, message: str, at: int | None = None) -> ParseError:
        line, column, source = self.locate(self.at if at is None else at)
        return ParseError(message, _printable(source, column), line, column, self.where)

    def unexpected(self, kind: str, word: str) -> ParseError:
        opened = self.open[-1] if self.open else None
        if kind == "end" and opened:
            return self.error(f"'{opened.word}' is never closed", opened.at)
        expected = self.state.expected
        if opened and self.state in (OPERATOR, ITEM):
            expected = f"{expected + ' or ' if expected else ''}{CLOSING[opened.word]}"
        return self.error(f"expected {expected}, found {_found(kind, word)}{self.hint(kind, word)}")

    def hint(self, kind: str, word: str) -> str:
        if word == "=" or kind == "definition":
            opened = self.open[-1] if self.open else None
            still = f"; '{opened.word}' of line {self.locate(opened.at)[0]} is still open" if opened else ""
            return f" (a definition is a line of its own: name = expression{still})"
        if self.state is OPERATOR and kind == "open":
            return " (write * to multiply; there are no functions but det, sum, product and const)"
        if self.state is OPERATOR and kind in ("name", "quoted", "number", "call", "complement"):
            return " (write * to multiply)"
        if word == "^":
            return " (a power is written **)"
        if word == '"':
            return f' (a name in quotes ends on its line, has at most {MAX_NAME:,} characters, and only \\" and \\\\)'
        return ""


_TRUTH = {"True": True, "False": False}
_USAGE = {
    "det": "a determinant is det(M0, U, V, [children]) or det(M0, U, V, [children], [complements]), then maybe size=k, "
    "and counted=[1, 0, …]",
    "variables": "'variables a, b' lists the variables",
}


def _unquoted(word: str) -> str:
    return ESCAPE.sub(r"\1", word[1:-1]) if word.startswith('"') else word


def _shown(name: str) -> str:
    return repr(name if len(name) <= 60 else name[:60] + "…")


def _found(kind: str, word: str) -> str:
    if kind == "newline":
        return "the end of the line"
    if kind == "end":
        return "the end of the text"
    if kind == "other" and not word.isprintable():
        return f"the character U+{ord(word):04X}"
    return _shown("".join(word.split()) if kind == "call" else word)


def _printable(line: str, column: int) -> str:
    """The line near the mistake, without characters that would move the caret or control the terminal."""
    if line.isprintable():
        return line
    start, end = max(0, column - 200), column + 200
    near = "".join(c if c.isprintable() or c == "\t" else "�" for c in line[start:end])
    return line[:start] + near + line[end:]


def _matrix(item: Term | list, name: str) -> list[list[Number]]:
    """A list of rows of numbers."""
    if not isinstance(item, list) or not all(isinstance(row, list) for row in item):
        raise CircuitError(f"{name} is a matrix, a list of rows")
    return [[_entry(x, f"{name}[{i}, {j}]") for j, x in enumerate(row)] for i, row in enumerate(item)]


def _entry(item: Term | list, name: str) -> Number:
    if isinstance(item, list) or item[1] is not None:
        raise CircuitError(f"{name} is not a number")
    return item[0]


def _counted(item: Term | list) -> list[Number]:
    if not isinstance(item, list):
        raise CircuitError("what is counted is a list of numbers 0 or 1")
    return [_entry(x, f"counted[{i}]") for i, x in enumerate(item)]


def _children(item: Term | list) -> list[Node]:
    if not isinstance(item, list) or any(isinstance(x, list) for x in item):
        raise CircuitError("the children are a list of expressions")
    return [node_of(x) for x in item]


# -- the states -----------------------------------------------------------------------------------

_Action = Callable[[_Parser, str], None]


class _State:
    """A state of the parser: what it expects, in words, and the action for each kind of token that is allowed."""

    __slots__ = ("actions", "expected")

    def __init__(self, expected: str, actions: dict[str, _Action]):
        self.expected = expected
        self.actions = [actions.get(kind) for kind in KINDS]


def _first(action: _Action) -> _Action:
    """The action of the first token of an expression that stands alone: the polynomial itself."""

    def begin(parser: _Parser, word: str) -> None:
        parser.begin_statement()
        action(parser, word)

    return begin


def _goto(state: _State) -> _Action:
    return lambda parser, word: setattr(parser, "state", state)


OPERAND = _State(
    "a number, a name or '('",
    {
        "number": _Parser.number,
        "name": _Parser.name,
        "definition": _Parser.begin_named,
        "quoted": _Parser.quoted,
        "complement": _Parser.begin_complement,
        "sign": _Parser.unary,
        "open": _Parser.begin_bracket,
        "call": _Parser.begin_bracket,
        "close": _Parser.end_empty,
        "bracket": _Parser.begin_list,
        "unbracket": _Parser.end_empty,
        "newline": _Parser.continue_line,
    },
)
START = _State(
    "an expression, or a line 'name = expression'",
    {kind: _first(action) for kind, action in zip(KINDS, OPERAND.actions, strict=True) if action}
    | {
        "newline": _Parser.blank,
        "end": _Parser.blank,
        "definition": _Parser.begin_definition,
        "variables": _Parser.begin_listing,
    },
)
EQUALS = _State("'='", {"equals": _goto(OPERAND)})
DEFINED = _State("'='", {"equals": _goto(OPERAND), "states": _Parser.begin_states})
_STATES: dict[str, _Action] = {
    "name": _Parser.name_of_state,
    "quoted": _Parser.name_of_state,
    "number": _Parser.number_of_state,
}
_STATES |= {"sign": _Parser.signed_state, "newline": _Parser.continue_states}
STATE = _State("a state: a name or a number", _STATES)
STATE_OF = _State("'='", {"equals": _goto(STATE)})
SIGNED = _State("a number", {"number": _Parser.number_of_state})
COLUMN = _State("the name of a variable", {"name": _Parser.column, "quoted": _Parser.column})
_BETWEEN_STATES: dict[str, _Action] = {"comma": _goto(STATE), "colon": _goto(COLUMN), "brace": _Parser.end_states}
STATED = _State("',' or '}'", _BETWEEN_STATES | {"newline": _Parser.continue_states})
OPERATOR = _State(
    "an operator",
    {
        "sign": _Parser.begin_term,
        "factor": _Parser.begin_factor,
        "power": _Parser.begin_exponent,
        "close": _Parser.end_bracket,
        "unbracket": _Parser.end_bracket,
        "comma": _Parser.end_item,
        "newline": _Parser.end_statement,
        "end": _Parser.end_text,
    },
)
ITEM = _State(
    "",
    {
        "comma": _Parser.next_item,
        "close": _Parser.end_items,
        "unbracket": _Parser.end_items,
        "newline": _Parser.blank,
    },
)
COMPLEMENT = _State("the name of a variable", {"name": _Parser.complement, "quoted": _Parser.complement})
LISTING = _State("the name of a variable", {"name": _Parser.list_variable, "quoted": _Parser.list_variable})
LISTED_ALL = _State("the end of the line", {"newline": _goto(START), "end": _goto(START)})
LISTED = _State("','", {"comma": _goto(LISTING), "newline": _goto(START), "end": _goto(START)})
