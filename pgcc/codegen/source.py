"""A program as the text of assignments, one per instruction: `v3 = 0.4*v1*v2 + 0.6*v0`."""

from __future__ import annotations

import keyword
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from pgcc.errors import PgccError
from pgcc.kernels.walk import Operations, number_system, walk_in_python
from pgcc.program.program import DET, LEAF, NAMES, Program
from pgcc.program.reachability import needed_slots

# The most operations that are written out as straight-line code: each adds milliseconds to the compile time.
STRAIGHT_LINE = 2000
# The most coefficients of all values of a row together that are kept at once.
POLYNOMIALS = 200_000
# The length of a line.
WIDTH = 100

# Names that emitted code uses itself, as globals or as locals of straight-line code. Its other names start with "_".
RESERVED = {
    *("np", "njit", "sys", "range", "min", "max", "len", "abs", "float", "int", "print", "isinstance", "enumerate"),
    *("VARIABLES", "TOTAL", "BLOCK", "LEAF", "SUM", "TIMES", "DET", "PROGRAM"),
    *("prob", "logprob", "rows", "out", "z", "p", "k", "first", "count"),
    *("leaf", "constant", "scale", "add", "multiply", "LENGTH", "FFT"),
    *keyword.kwlist,
    *keyword.softkwlist,
}


# -- the algebra ------------------------------------------------------------------------------------------------


def value(slot: int) -> str:
    """The name of the value in a slot."""
    return f"v{slot}"


def used_variables(program: Program) -> list[int]:
    """The columns that leaves read."""
    return sorted({int(v) for v in program.leaf_variable if v >= 0})


class Statements:
    """The number system of text: every instruction of a program that shares no slots becomes an assignment.

    Long ones are split into several (Python limits the depth of expressions, too). `terms` are those of an unfinished
    sum or product, each a weight and the names of its factors.
    """

    def __init__(self, program: Program, names: Sequence[str], leaf: str):
        self.program, self.names, self.leaf, self.weights = program, names, leaf, program.weights.tolist()
        self.lines: list[str] = []
        self.terms: list[tuple[float, list[str]]] = []
        walk_in_python(program, self)

    def leaf_text(self, number: int) -> str:
        out, in_, free = self.program.leaf_table[number].tolist()
        variable = self.program.leaf_variable[number]
        if variable < 0:
            return self.constant(free)
        return f"{self.leaf}({self.names[variable]}, {out!r}, {in_!r}, {free!r})"

    def constant(self, number: float) -> str:
        return repr(number)

    def product(self, to: str) -> Iterator[str]:
        """`to = a*b`, continued as `to *= …` if it gets long."""
        yield from _folded(to, [("*", name) for _, (name,) in self.terms], self.constant(1.0), "*")

    def sum(self, to: str) -> Iterator[str]:
        """`to = 0.5*a + b - c`, continued as `to += …` if it gets long."""
        yield from _folded(to, [_signed(*term) for term in self.terms], self.constant(0.0), "+")


class PolynomialStatements(Statements):
    """The same with values that are polynomials in t: `v4 = add(scale(-0.5, v1), multiply(v0, v0))`."""

    def constant(self, number: float) -> str:
        return f"constant({number!r})"

    def product(self, to: str) -> Iterator[str]:
        yield from _called(to, "multiply", [name for _, (name,) in self.terms], self.constant(1.0))

    def sum(self, to: str) -> Iterator[str]:
        yield from _called(to, "add", [_scaled(*term) for term in self.terms], self.constant(0.0))


def _leaf(system: Statements, i: int, at: int, number: int) -> None:
    system.lines.append(f"{value(at)} = {system.leaf_text(number)}")


def _begin(system: Statements, i: int, at: int) -> None:
    system.terms = []


def _times(system: Statements, at: int, x: int) -> None:
    system.terms.append((1.0, [value(x)]))


def _add(system: Statements, at: int, k: int, x: int) -> None:
    system.terms.append((system.weights[k], [value(x)]))


def _add_product(system: Statements, at: int, k: int, x: int, y: int) -> None:
    system.terms.append((system.weights[k], [value(x), value(y)]))


def _end_product(system: Statements, i: int, at: int) -> None:
    system.lines += system.product(value(at))


def _end_sum(system: Statements, i: int, at: int) -> None:
    system.lines += system.sum(value(at))


def _determinant(system: Statements, i: int, at: int, op: int, args: list[int]) -> None:
    if op != DET:
        raise PgccError(f"internal error: there is no rule to write {NAMES[op]}; please report it")
    k = len(args) // 2
    f, y = (", ".join(map(value, part)) for part in (args[1 : 1 + k], args[1 + k :]))
    system.lines.append(f"{value(at)} = determinant {args[0]} of f = ({f}), y = ({y})")


for _kind in (Statements, PolynomialStatements):
    number_system(
        _kind,
        Operations(_leaf, _begin, _times, _begin, _add, _add_product, _end_product, _end_sum, _determinant),
    )


def _signed(weight: float, factors: list[str]) -> tuple[str, str]:
    """Sign and size of one term: 1*x is written x."""
    numbers = [] if abs(weight) == 1.0 else [repr(abs(weight))]
    return "-" if weight < 0 else "+", "*".join(numbers + factors)


def _scaled(weight: float, factors: list[str]) -> str:
    """One term as calls: 1*x is written x."""
    product = factors[0] if len(factors) == 1 else f"multiply({', '.join(factors)})"
    return product if weight == 1.0 else f"scale({weight!r}, {product})"


def _called(to: str, function: str, arguments: list[str], empty: str) -> Iterator[str]:
    """`to = add(a, b, c)`, continued as `to = add(to, …)` if it gets long."""
    if len(arguments) < 2:
        yield f"{to} = {arguments[0] if arguments else empty}"
        return
    line: list[str] = []
    for argument in arguments:
        if line and sum(map(len, line)) + len(argument) > WIDTH - len(to) - len(function):
            yield f"{to} = {function}({', '.join(line)})"
            line = [to]
        line.append(argument)
    yield f"{to} = {function}({', '.join(line)})"


def _folded(to: str, terms: list[tuple[str, str]], empty: str, operator: str) -> Iterator[str]:
    if not terms:
        yield f"{to} = {empty}"
    space = "" if operator == "*" else " "
    text, more = "", False
    for sign, term in terms:
        if len(text) + len(term) > WIDTH:
            yield text
            text, more = "", True
        if text:
            text += f"{space}{sign}{space}{term}"
        else:
            start = f"{to} {operator}= " if more else f"{to} = "
            text = start + ("-" if sign == "-" else "") + term
    if text:
        yield text


def identifiers(variables: Sequence[str]) -> list[str]:
    """A Python identifier for each variable: distinct, ASCII, and not used for anything else in the source.

    >>> identifiers(["a", "a-b", "a_b", "np", "v0", "3", "lambda", "été"])
    ['a', 'a_b', 'a_b_2', 'x_np', 'x_v0', 'x_3', 'x_lambda', 'x__t_']
    """
    taken: set[str] = set()
    found = []
    for name in variables:
        identifier = re.sub(r"[^A-Za-z0-9_]", "_", name)
        if identifier in RESERVED or re.match(r"_|[0-9]|v[0-9]+$", identifier):
            identifier = f"x_{identifier}"
        unique, count = identifier, 1
        while unique in taken:
            count += 1
            unique = f"{identifier}_{count}"
        taken.add(unique)
        found.append(unique)
    return found


# -- programs ---------------------------------------------------------------------------------------------------


def prune(program: Program) -> Program:
    """The program with only those instructions and leaves that its value depends on, and with slots renumbered.

    No two values may share a slot.
    """
    used = program.select(needed_slots(program, [program.value])[program.target])
    args, leaf = used.args.copy(), used.start[:-1][used.op == LEAF]
    leaves, args[leaf] = np.unique(args[leaf], return_inverse=True)
    new = np.full(program.slots, -1, np.int32)
    new[used.target] = np.arange(used.instructions)
    return replace(
        used,
        args=args,
        leaf_variable=program.leaf_variable[leaves],
        leaf_table=program.leaf_table[leaves],
        leaf_numbers=[program.leaf_numbers[leaf] for leaf in leaves.tolist()],
        magnitude=program.value,
    ).renamed(new, used.instructions)


def check_range(program: Program) -> None:
    """Refuse numbers beyond the range of float64, which would overflow to inf or underflow to 0."""
    leaves = [x for pair in program.leaf_numbers for x in pair]
    floats = [*program.weights.tolist(), *program.leaf_table[:, :2].ravel().tolist(), *program.det_data.tolist()]
    for exact, rounded in zip([*program.numbers, *leaves, *program.det_numbers], floats, strict=True):
        if not math.isfinite(rounded) or (rounded == 0.0) != (exact == 0):
            raise PgccError(
                "a number of the circuit is out of the range of float64 (1e-308 to 1e308), "
                "in which emitted code computes: ask a compiled Model"
            )
