"""Conversion between circuits and SymPy, which is imported only when it is needed."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, assert_never

from pgcc.collector import collector_paused
from pgcc.errors import CircuitError
from pgcc.exact.balls import fraction
from pgcc.exact.bounded import interpolation_weights
from pgcc.exact.pencil import RATIONALS, Determinant, Layout
from pgcc.frontend.term_arithmetic import TermArithmetic
from pgcc.ir.circuit import Circuit
from pgcc.ir.interpret import bordered
from pgcc.ir.node import ONE, Node, Op, det, iter_edges, var
from pgcc.ir.numbers import Number, as_number, exact, is_number
from pgcc.ir.spelling import MAX_BITS
from pgcc.ir.terms import Term, node_of, sealed

if TYPE_CHECKING:
    import sympy

# Determinants of at most this many children are expanded, into up to 2^6 terms; larger ones stay determinants.
EXPANDED_CHILDREN = 6


def from_sympy(expr: sympy.Expr, variables: Iterable[str | sympy.Symbol] | None = None) -> Circuit:
    """Convert a SymPy expression to a circuit.

    The expression has to be a polynomial in its symbols with real, rational coefficients.

    Parameters
    ----------
    expr : sympy.Expr
        An expression of symbols, numbers, sums, products, whole powers and determinants. A `Float` in double precision
        becomes that float; one of higher precision becomes the rational number it stands for.
    variables : iterable of str or Symbol, optional
        All variables, in order. By default, the symbols of the expression sorted by name, with z2 before z10. (SymPy
        does not keep the order in which they were written.)

    Raises
    ------
    CircuitError
        If the expression contains anything else; the message shows what.

    See Also
    --------
    pgcc.parse : read a circuit from text
    pgcc.variables : circuits for single variables, to combine with Python operators
    pgcc.Circuit.to_sympy : convert a circuit back to SymPy

    Examples
    --------
    >>> import pgcc, sympy
    >>> x, y = sympy.symbols("x y")
    >>> print(pgcc.from_sympy(x*y/2 + sympy.Rational(1, 2)))
    1/2 + 1/2*x*y
    >>> pgcc.from_sympy(sympy.sin(x) + y)
    Traceback (most recent call last):
    pgcc.errors.CircuitError: not a polynomial: sin(x) is not a number, symbol, sum, product or whole power
    """
    import sympy

    if is_number(expr):
        expr = sympy.sympify(expr)
    elif isinstance(expr, sympy.Poly):
        expr = expr.as_expr()
    if not isinstance(expr, sympy.Expr):
        hint = " (text is read by pgcc.parse)" if isinstance(expr, str) else ""
        raise CircuitError(f"expected a SymPy expression, not {type(expr).__name__}{hint}")
    with collector_paused():
        reader = _ExpressionReader()
        root = node_of(reader.read(expr))
        names = sorted(reader.symbols, key=_natural) if variables is None else _symbol_names(variables)
        return Circuit(root, names)


def _symbol_names(variables: Iterable[str | sympy.Symbol]) -> list[str]:
    if isinstance(variables, str):
        raise CircuitError("the variables are a list of names or symbols, not one string")
    return [v if isinstance(v, str) else str(getattr(v, "name", v)) for v in variables]


def _natural(name: str) -> list[tuple[int, int, str]]:
    """A sort key in which numbers inside names count as numbers."""
    parts = re.split(r"([0-9]{1,18})", name)
    return [(0, int(part), part) if i % 2 else (1, 0, part) for i, part in enumerate(parts)]


class _ExpressionReader:
    """Converts sub-expressions to terms, innermost first, each object once."""

    def __init__(self) -> None:
        import sympy

        self.compute = TermArithmetic()
        self.symbols: dict[str, sympy.Symbol] = {}
        self.done: dict[int, Term] = {}  # by identity: comparing expressions would recurse
        self.entries: dict[int, list[sympy.Expr]] = {}  # of the matrices of determinants, by identity
        # One line for every kind of expression.
        self.kinds: list[tuple[type, Callable[[Any], Term]]] = [
            (sympy.Symbol, self.symbol),
            (sympy.Rational, lambda e: (self.compute.allowed(as_number(Fraction(int(e.p), int(e.q)))), None)),
            (sympy.Float, lambda e: (self.compute.allowed(_float_value(e)), None)),
            (sympy.Add, lambda e: self.compute.sum(self.below(e.args))),
            (sympy.Mul, lambda e: self.compute.product(self.below(e.args))),
            (sympy.Pow, lambda e: self.compute.power(*map(sealed, self.below(e.args)))),
            (sympy.Determinant, self.determinant),
        ]

    def read(self, root: sympy.Expr) -> Term:
        stack = [root]
        while stack:
            pending = [part for part in self.parts(stack[-1]) if id(part) not in self.done]
            if pending:
                stack.extend(pending)
            else:
                expr = stack.pop()
                self.done[id(expr)] = self.term(expr)
        return self.done[id(root)]

    def parts(self, expr: sympy.Expr) -> Sequence[sympy.Expr]:
        """The sub-expressions of an expression that have to be read before it."""
        import sympy

        if isinstance(expr, (sympy.Add, sympy.Mul, sympy.Pow)):
            return expr.args
        if not isinstance(expr, sympy.Determinant):
            return ()
        if not isinstance(expr.args[0], sympy.ImmutableDenseMatrix):
            raise CircuitError(f"not a polynomial: {_shown(expr)} is not the determinant of an explicit matrix")
        # Terms are found by the identity of expressions, but a matrix creates its entries on every access: keep them.
        return self.entries.setdefault(id(expr), expr.args[0].flat())

    def term(self, expr: sympy.Expr) -> Term:
        for kind, convert in self.kinds:
            if isinstance(expr, kind):
                try:
                    return convert(expr)
                except CircuitError as error:
                    raise CircuitError(f"{_shown(expr)}: {error}") from None
        raise CircuitError(f"not a polynomial: {_shown(expr)} is not a number, symbol, sum, product or whole power")

    def below(self, parts: Iterable[sympy.Expr]) -> list[Term]:
        return [self.done[id(part)] for part in parts]

    def symbol(self, symbol: sympy.Symbol) -> Term:
        if not symbol.is_commutative:
            raise CircuitError("variables have to commute")
        if self.symbols.setdefault(symbol.name, symbol) != symbol:
            raise CircuitError("there are two different symbols with this name; only their assumptions tell them apart")
        return 1, var(symbol.name)

    def determinant(self, expr: sympy.Determinant) -> Term:
        """det(M0 + Σ f·e_i·e_jᵀ): a child for every entry that is not a number."""
        matrix = expr.args[0]
        n = matrix.shape[0]
        terms = self.below(self.entries[id(expr)])
        numbers = [value if node is None else 0 for value, node in terms]
        places = [i for i, (_, node) in enumerate(terms) if node is not None]
        unit = [[int(i == j) for j in range(n)] for i in range(n)]
        U = [[unit[row][p // n] for p in places] for row in range(n)]
        V = [[unit[row][p % n] for p in places] for row in range(n)]
        M0 = [numbers[row * n : (row + 1) * n] for row in range(n)]
        return 1, det(M0, U, V, [node_of(terms[p]) for p in places])


def _float_value(value: sympy.Float) -> Number:
    """A float if a double can hold the value, and otherwise the exact rational."""
    sign, mantissa, exponent, _ = value._mpf_
    if not mantissa and exponent:
        raise CircuitError("weights are finite")
    if abs(exponent) > MAX_BITS:
        raise CircuitError(f"the number is too large or too small: at most {MAX_BITS:,} bits")
    rational = (-1 if sign else 1) * int(mantissa) * Fraction(2) ** int(exponent)
    try:
        double = float(rational)
    except OverflowError:
        return as_number(rational)
    return double if double == rational else as_number(rational)


def _shown(expr: Any) -> str:
    """An expression in an error message: short, even if it is deep or its numbers are enormous."""
    if expr.is_Number:
        return f"a SymPy {type(expr).__name__}"
    try:
        text = str(expr)
    except (RecursionError, ValueError):  # ValueError: Python refuses to print integers of very many digits
        text = type(expr).__name__
    return text if len(text) <= 80 else f"{text[:77]}…"


def to_sympy(circuit: Circuit) -> sympy.Expr:
    """Convert the polynomial to a SymPy expression.

    The result is exact: a float becomes the rational number it stands for. Complements become 1. A determinant with
    many children stays a `sympy.Determinant`, which `doit()` expands.

    Examples
    --------
    >>> import pgcc
    >>> to_sympy(pgcc.parse("(x + 1)*(y + 3)/8"))
    (x + 1)*(y + 3)/8
    """
    try:
        return _converted(circuit)
    except RecursionError:
        raise CircuitError(f"SymPy cannot hold an expression as deep as this circuit ({circuit.facts.depth})") from None


def _converted(circuit: Circuit) -> sympy.Expr:
    import sympy

    symbols = {name: sympy.Symbol(name) for name in circuit.variables}
    at: dict[Node, sympy.Expr] = {}
    for node in circuit.order:
        match node.op:
            case Op.CONST:
                at[node] = _rational(node.value)
            case Op.VAR:
                at[node] = sympy.Integer(1) if node.is_complement else symbols[node.name]
            case Op.SUM:
                at[node] = sympy.Add(*(sympy.Mul(_rational(w), at[child]) for w, child in iter_edges(node)))
            case Op.PRODUCT:
                at[node] = sympy.Mul(*(at[child] for child in node.children))
            case Op.DET:
                at[node] = _determinant(node, at)
            case _:
                assert_never(node.op)
    return at[circuit.root]


def _rational(value: Number) -> sympy.Rational:
    import sympy

    fraction = exact(value)
    return sympy.Rational(fraction.numerator, fraction.denominator)


def _determinant(node: Node, at: dict[Node, sympy.Expr]) -> sympy.Expr:
    import sympy

    if len(node.inside) <= EXPANDED_CHILDREN:
        return _expanded(node, at)
    f, y = [at[child] for child in node.inside], [at[child] for child in node.outside]
    if node.size is None:
        return _unexpanded(node, f, y)
    points = range(min(sum(node.counted), node.matrices[0].shape[0]) + 1)  # values of s, one for each power
    weights = interpolation_weights(points, node.size) if node.size in points else [Fraction(0)] * len(points)
    terms = zip(weights, points, strict=True)
    at_s = {s: [s * x if counts else x for x, counts in zip(f, node.counted, strict=True)] for s in points}
    return sympy.Add(*(_rational(w) * _unexpanded(node, at_s[s], y) for w, s in terms if w))


def _unexpanded(node: Node, f: list[sympy.Expr], y: list[sympy.Expr]) -> sympy.Expr:
    import sympy

    small = all(child is ONE for child in node.outside)
    matrix = _small_matrix(node, f) if small else bordered(node, f, y, _rational)
    return sympy.Determinant(sympy.ImmutableDenseMatrix(matrix)) if matrix else sympy.Integer(1)


def _expanded(node: Node, at: dict[Node, sympy.Expr]) -> sympy.Expr:
    """Σ_T c_T · Π_{i∈T} f_i · Π_{i∉T} y_i, c_T the determinant where f is 1 in T and 0 outside, y the reverse."""
    import sympy

    determinant, terms = Determinant(Layout(node), RATIONALS), []
    for chosen in itertools.product((0, 1), repeat=len(node.inside)):
        coefficient = determinant.at(*([RATIONALS.lift(int(c == x)) for c in chosen] for x in (1, 0)))
        picked = [(y, f)[c] for f, y, c in zip(node.inside, node.outside, chosen, strict=True)]
        terms.append(sympy.Mul(_rational(fraction(coefficient)), *(at[child] for child in picked)))
    return sympy.Add(*terms)


def _small_matrix(node: Node, f: list[sympy.Expr]) -> list[list[sympy.Expr]]:
    """M0 + U·diag(f)·Vᵀ"""
    import sympy

    M0, U, V = (m.exact() for m in node.matrices)
    r = range(len(M0))
    return [
        [sympy.Add(_rational(M0[i][j]), *(_rational(U[i][k] * V[j][k]) * f[k] for k in range(len(f)))) for j in r]
        for i in r
    ]
