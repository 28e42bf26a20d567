"""Determinants with circuits in them: det(M0 + U·diag(f)·Vᵀ) as a single node, or any matrix of circuits, expanded."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pgcc.collector import collector_paused
from pgcc.errors import CircuitError
from pgcc.frontend.kernel import read_matrix
from pgcc.ir.circuit import Circuit
from pgcc.ir.node import const, det, var
from pgcc.ir.numbers import as_number, is_number
from pgcc.ir.operands import need_sequence
from pgcc.passes.berkowitz import berkowitz

MOST_EXPANDED = 64  # rows of a matrix of polynomials: some ten million edges


def determinant(M0: Any, U: Any = None, V: Any = None, children: Iterable[Any] | None = None) -> Circuit:
    """A determinant with circuits in it, as a circuit.

    ``determinant(M0, U, V, children)`` is det(M0 + U·diag(f₁, …, f_k)·Vᵀ), a single node that is computed by matrix
    factorization. ``determinant(matrix)`` is the determinant of a matrix whose entries are circuits, names and numbers.
    It is expanded into sums and products, without divisions, by Berkowitz' algorithm, with about 0.75·n⁴ edges, or far
    fewer if many entries are 0.

    Parameters
    ----------
    M0 : r×r matrix of numbers, or a square matrix of circuits, names and numbers
        The constant part, or the whole matrix.
    U, V : r×k matrices of numbers
        One column per child.
    children : sequence of k circuits, names or numbers
        f₁, …, f_k. They may share variables, but the polynomial is certain to be multiaffine only if they do not;
        otherwise `pgcc.compile` tests whether it is.

    Returns
    -------
    Circuit
        A circuit over the variables of the children, or of the entries, in that order. Its coefficients need not be
        probabilities; `pgcc.dpp` and `pgcc.spanning_tree` build determinants whose coefficients are.

    See Also
    --------
    pgcc.dpp : determinantal point processes
    pgcc.spanning_tree : random spanning trees

    Examples
    --------
    A DPP over two groups, each of which is a circuit of its own:

    >>> import pgcc
    >>> a, b, c = pgcc.variables("a b c")
    >>> I = [[1, 0], [0, 1]]
    >>> d = pgcc.determinant(I, I, [[2, 1], [1, 2]], [(a + b) / 2, c])
    >>> pgcc.compile(d).prob({"a": 1, "b": 0, "c": 1}, exact=True)
    Fraction(3, 16)

    Any polynomials:

    >>> print(pgcc.determinant([["x", 1], [2, "y"]]))
    -2 + y*x
    """
    given = [U is not None, V is not None, children is not None]
    if all(given):
        return _low_rank(M0, U, V, children)
    if any(given):
        missing = [name for name, there in zip(("U", "V", "children"), given, strict=True) if not there]
        raise CircuitError(
            f"a determinant det(M0 + U·diag(children)·Vᵀ) needs {' and '.join(missing)} too; one matrix of circuits "
            "stands alone"
        )
    return _expanded(M0)


def _low_rank(M0: Any, U: Any, V: Any, children: Any) -> Circuit:
    listed = need_sequence(children, "the children of a determinant are a sequence of circuits or names")
    parts = [_part(child, f"child {i} of the determinant") for i, child in enumerate(listed)]
    matrices: list[Any] = [read_matrix(name, m) for m, name in ((M0, "M0"), (U, "U"), (V, "V"))]
    m0, u, v = (m if len(m) else [] for m in matrices)  # without rows there is nothing that says how many columns
    return Circuit(det(m0, u, v, [part.root for part in parts]), _variables(parts))


def _expanded(matrix: Any) -> Circuit:
    entries = read_matrix("the argument of determinant", matrix)
    n, columns = entries.shape
    if n != columns:
        raise CircuitError(f"a determinant needs a square matrix, not {n}×{columns}")
    if n > MOST_EXPANDED:
        raise CircuitError(
            f"the expansion of a determinant with {n} rows would have about {n**4 * 3 // 4:,} edges; the limit is "
            f"{MOST_EXPANDED} rows. In the form det(M0 + U·diag(children)·Vᵀ) there is no limit"
        )
    parts = [[_part(x, f"entry [{i}, {j}]") for j, x in enumerate(row)] for i, row in enumerate(entries.tolist())]
    with collector_paused():
        root = berkowitz([[[part.root] for part in row] for row in parts])
    return Circuit(root, _variables([part for row in parts for part in row]))


def _part(value: Any, what: str) -> Circuit:
    if isinstance(value, Circuit):
        return value
    if isinstance(value, str):
        if _is_numeral(value):
            raise CircuitError(
                f"{what} is the text {value!r}, which would be a variable's name: write Fraction({value!r})"
            )
        return Circuit(var(value))
    if is_number(value):
        return Circuit(const(value))
    raise CircuitError(f"{what} is a circuit, the name of a variable or a number, not {value!r}")


def _is_numeral(text: str) -> bool:
    try:
        as_number(text)
    except CircuitError:
        return False
    return True


def _variables(parts: Iterable[Circuit]) -> list[str]:
    return list(dict.fromkeys(name for part in parts for name in part.variables))
