"""`emit`: write a circuit as readable, standalone Python source that needs numpy and numba but not pgcc.

Small circuits become straight-line code, one assignment per instruction: of numbers, which LLVM vectorises over rows,
where the circuit is decomposable, else of polynomials in t. Above `STRAIGHT_LINE` operations, each of which adds
milliseconds to the compile time, and for circuits with determinants, the instructions are written as tables that a
small loop interprets, over numbers or over polynomials. The same circuit always gives the same text.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from pgcc import __version__
from pgcc.codegen import templates
from pgcc.codegen.source import (
    POLYNOMIALS,
    RESERVED,
    STRAIGHT_LINE,
    WIDTH,
    PolynomialStatements,
    Statements,
    check_range,
    identifiers,
    prune,
    used_variables,
    value,
)
from pgcc.compiler import Compiled
from pgcc.errors import PgccError, plural
from pgcc.ir.circuit import Circuit, over_columns
from pgcc.ir.facts import formal_degrees
from pgcc.ir.node import Op
from pgcc.program.program import ARITHMETIC, DET, Program
from pgcc.program.schedule import schedule

# The algebra of a table with at most this many instructions is also written out, as a comment.
_MOST_LISTED = 200
# The polynomial is shown in the header up to this length.
_MOST_SHOWN = 1000
# Polynomials are evaluated for at most so many rows side by side, with about so many coefficients at most (128 MB).
_MOST_ROWS, _MOST_COEFFICIENTS = 1 << 10, 1 << 24
# g(1) is rounded once, from balls of at least 128 bits.
_TOTAL_RTOL = 1e-15


def emit(circuit: Circuit, *, name: str = "evaluate", normalize: bool = True, validate: bool = True) -> str:
    """Write an evaluator as readable, standalone Python source that needs only numpy and numba.

    The module has ``VARIABLES``, ``TOTAL`` (g(1), by which everything is divided), ``prob(evidence)`` and
    ``logprob(evidence)`` for a dict or an array of rows, and ``evaluate(rows, out)`` on int8 rows (1 / 0 / −1). You can
    also run it as a program to answer a query: ``python evaluator.py z1=1 z3=0``. It computes in plain float64 and,
    unlike `pgcc.compile`, certifies nothing: probabilities below 1e-308 underflow, and where terms cancel (with
    negative weights or determinants, including those of plain DPPs) a small probability may even come out negative.

    Parameters
    ----------
    circuit : Circuit
        The circuit to evaluate.
    name : str
        The name of the function that evaluates rows.
    normalize : bool
        Divide by the total g(1), which must be positive.
    validate : bool
        Refuse a circuit in which a variable is squared, as `pgcc.compile` does.

    Returns
    -------
    str
        The source. It is always the same for the same circuit.

    See Also
    --------
    pgcc.compile : compile a circuit to a model
    pgcc.save : write a circuit to a file

    Examples
    --------
    >>> import pgcc
    >>> source = pgcc.emit(pgcc.parse("0.4*a*b + 0.6"))
    >>> print(source[source.index("    for k") : source.index(" / TOTAL")])
        for k in range(BLOCK):
            a = z[0, k]
            b = z[1, k]
            v0 = _leaf(a, 0.0, 1.0, 1.0)
            v1 = _leaf(b, 0.0, 1.0, 1.0)
            v2 = _leaf(a, 1.0, 0.0, 1.0)
            v3 = _leaf(b, 1.0, 0.0, 1.0)
            v4 = 0.4*v0*v1 + 0.6*v2*v3
            p[k] = v4
    """
    if not isinstance(circuit, Circuit):
        raise PgccError(f"emit takes a Circuit, not {type(circuit).__name__}: pgcc.parse makes one from text")
    _check_name(name)
    circuit = over_columns(circuit)  # what is written knows of columns only, and not that one of them is in
    compiled = Compiled(circuit, validate)
    _refuse_sizes(compiled)
    total = _total(compiled) if normalize else 1.0
    # `series` refuses to expand large determinants.
    program = compiled.program if compiled.decomposable else compiled.series.program
    program = prune(program).expect(*ARITHMETIC, DET)
    check_range(program)
    method, body = _form(program, circuit, name, compiled.decomposable)
    parts = [
        _header(circuit, program, method, name, normalize),
        templates.IMPORTS,
        _constants(circuit, total, normalize),
        body,
        templates.QUESTIONS.replace("EVALUATE", name),
    ]
    return "".join(parts)


def _refuse_sizes(compiled: Compiled) -> None:
    """Refuse determinants with a size, which the tables cannot express.

    (Circuits that are not decomposable are fine: their determinants are expanded.)
    """
    if compiled.decomposable and any(node.op is Op.DET and node.size is not None for node in compiled.circuit.order):
        raise PgccError(
            "the circuit has a determinant of a given size (a k-DPP), which emitted source cannot evaluate: ask a "
            "compiled Model; if it is small, emit pgcc.passes.expand_det.expand_det(circuit)"
        )


# -- parts of the source ----------------------------------------------------------------------------------------


def _header(circuit: Circuit, program: Program, method: str, name: str, normalize: bool) -> str:
    n = len(circuit.variables)
    lines = [
        f"Generated by pgcc {__version__}. Needs numpy and numba only.",
        "",
        *_shown(circuit),
        f"Circuit: {plural(n, 'variable')}, {plural(circuit.edges, 'edge')}.",
        f"Method: {method}; {program.instructions} instructions, {program.operations} operations a row.",
        f"Results: {'probabilities, divided by TOTAL = g(1)' if normalize else 'coefficients of g, not normalised'}.",
        "Accuracy: plain float64, rounded at every step, no certificate. Where weights are negative, and in",
        "determinants (those of plain DPPs too), terms cancel: a small probability can come out wrong, or below 0,",
        "where logprob is NaN. What is below 1e-308 underflows. pgcc.compile certifies its results.",
        "",
        'From Python:   prob({"name": 1, "other": 0}), prob(rows), logprob(rows); 1 in, 0 out, -1 unobserved',
        f"               {name}(rows, out) on int8 rows, without checks",
        "From a shell:  python THIS_FILE name=1 other=0",
    ]
    return "".join(f"# {line}".rstrip() + "\n" for line in lines) + "# fmt: off\n\n"


def _shown(circuit: Circuit) -> list[str]:
    """The polynomial as text, if it is short and all its names are safe in a comment."""
    if circuit.edges > _MOST_SHOWN or not all(v.isascii() and v.isidentifier() for v in circuit.variables):
        return []
    text = str(circuit)
    return [*(f"  {line}" for line in text.splitlines()), ""] if len(text) <= _MOST_SHOWN else []


def _constants(circuit: Circuit, total: float, normalize: bool) -> str:
    names = repr(circuit.variables)
    if len(names) > WIDTH:
        names = "(\n" + "".join(f"    {line}\n" for line in _wrapped([f"{v!r}," for v in circuit.variables])) + ")"
    why = "" if normalize else "  # not normalised"
    return f"\nVARIABLES = {names}\nTOTAL = {total!r}{why}\n"


def _form(program: Program, circuit: Circuit, name: str, decomposable: bool) -> tuple[str, str]:
    """What is said of the way that the program is written, and the text."""
    small = program.operations <= STRAIGHT_LINE
    if not decomposable:
        of = "polynomials in t up to t^|A| (A: the variables observed 1)"
        if small and program.instructions * (len(circuit.variables) + 1) <= POLYNOMIALS:
            return f"{of}, straight-line code", _polynomial_form(program, circuit, name, straight=True)
        return f"{of}, instructions in tables", _polynomial_form(program, circuit, name, straight=False)
    if program.has_det or not small:
        return "one number per instruction, instructions in tables", _table_form(program, circuit, name)
    return "one number per instruction, straight-line code", _straight_form(program, circuit, name)


def _straight_form(program: Program, circuit: Circuit, name: str) -> str:
    names = identifiers(circuit.variables)
    codes = [f"{names[column]} = z[{column}, k]" for column in used_variables(program)]
    lines = [*codes, *Statements(program, names, "_leaf").lines, f"p[k] = {value(program.value)} / TOTAL"]
    body = "".join(f"        {line}\n" for line in lines)
    last = templates.STRAIGHT_EVALUATE.replace("COLUMNS", str(len(circuit.variables))).replace("EVALUATE", name)
    return templates.STRAIGHT_HEAD + body + "\n" + templates.TRANSPOSE + last


def _polynomial_form(program: Program, circuit: Circuit, name: str, straight: bool) -> str:
    names = identifiers(circuit.variables)
    codes = [f"{names[column]} = z[{column}]" for column in used_variables(program)]
    lines = [*codes, *PolynomialStatements(program, names, "leaf").lines, f"return {value(program.value)}"]
    body = "".join(f"    {line}\n" for line in lines) if straight else templates.POLYNOMIAL_LOOP
    tables, values = ("", program.instructions) if straight else (_tables(program, circuit), schedule(program).slots)
    lengths = [min(degree, len(names)) + 1 for degree in formal_degrees(circuit.order, circuit._links)]
    rows = min(_MOST_ROWS, max(1, int(_MOST_COEFFICIENTS / (values * np.mean(lengths)))))
    return (
        tables
        + templates.POLYNOMIAL_HEAD.replace("SIDE_BY_SIDE", str(rows))
        + body
        + templates.POLYNOMIAL_EVALUATE.replace("EVALUATE", name)
    )


def _table_form(program: Program, circuit: Circuit, name: str) -> str:
    has_det = program.has_det
    kernel = templates.TABLE_EVALUATE.replace("DET_BRANCH", templates.DET_BRANCH if has_det else "")
    kernel = kernel.replace("DETS_", "det_rank, det_start, det_data, " if has_det else "")
    helpers = templates.DETERMINANTS if has_det else ""
    return _tables(program, circuit) + kernel + "\n" + templates.TRANSPOSE + helpers + _entry(has_det, name)


def _entry(has_det: bool, name: str) -> str:
    """The public function: it passes the tables to the compiled loop as arguments instead of freezing them into it."""
    dets = "DET_RANK, DET_START, DET_DATA, " if has_det else ""
    return (
        f"\n\ndef {name}(rows, out):\n"
        '    """Write the probability of every row of an int8 array (1 in, 0 out, -1 unobserved) to out."""\n'
        "    tables = (OP, TARGET, START, ARGS, FIRST_WEIGHT, WEIGHTS, LEAF_VARIABLE, LEAF_TABLE)\n"
        f"    _run(*tables, {dets}SLOTS, ROOT, TOTAL, rows, out)\n"
    )


def _tables(program: Program, circuit: Circuit) -> str:
    """The program as data, preceded by its algebra as a comment if it is short."""
    shared = schedule(program)
    text = templates.TABLE_HEAD.replace("OPCODES", ", ".join(map(str, (*ARITHMETIC, DET))))
    if program.instructions <= _MOST_LISTED:
        lines = Statements(program, identifiers(circuit.variables), "leaf").lines
        text += "#\n# In words, before values share slots:\n" + "".join(f"#   {line}\n" for line in lines)
    names = ("op", "target", "start", "args", "first_weight", "weights", "leaf_variable", "leaf_table")
    tables = {name.upper(): getattr(shared, name) for name in names}
    if program.has_det:
        tables |= {"DET_RANK": shared.det_shape[:, 0], "DET_START": shared.det_start, "DET_DATA": shared.det_data}
    text += "".join(_array(name, array) for name, array in tables.items())
    return text + f"SLOTS, ROOT = {shared.slots}, {shared.value}\n"


def _array(name: str, array: np.ndarray) -> str:
    kind = "float" if array.dtype.kind == "f" else "int"
    lines = _wrapped([repr(x) for x in array.ravel().tolist()])
    words = lines[0] if len(lines) == 1 else "\n" + "\n".join(lines) + "\n" if lines else ""
    quote = '"' if len(lines) <= 1 else '"""'
    shape = ".reshape(-1, 3)" if array.ndim == 2 else ""
    return f"{name} = _numbers({quote}{words}{quote}, {kind}){shape}\n"


def _wrapped(words: Sequence[str]) -> list[str]:
    """Words filled into lines. (`textwrap` would break words at the spaces in them.)"""
    lines: list[str] = []
    line: list[str] = []
    left = WIDTH
    for word in words:
        if line and left < len(word):
            lines.append(" ".join(line))
            line, left = [], WIDTH
        line.append(word)
        left -= len(word) + 1
    return [*lines, " ".join(line)] if line else lines


def _total(compiled: Compiled) -> float:
    """g(1), rounded once."""
    total = float(compiled.total(_TOTAL_RTOL, "ball").floats()[0])
    if total == 0.0 or math.isinf(total):
        raise PgccError(
            "the total g(1) is out of the range of float64, in which emitted code computes: ask a compiled Model"
        )
    return total


def _check_name(name: str) -> None:
    good = isinstance(name, str) and name.isascii() and name.isidentifier()
    if not good or name in RESERVED or name.startswith("_") or name.isupper():
        raise PgccError(f"name={name!r} cannot be the name of the evaluator: it is not an identifier, or is taken")
