"""Determinantal PGCs: a determinantal point process over groups of variables, each with a circuit of its own.

    g = det(I + L·diag(f_1, …, f_m))        f_i: leaves with disjoint variables and total 1

Within a group, the leaf decides how variables depend on each other, and they may attract each other. Variables of
different groups never do.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pgcc.errors import CircuitError, plural
from pgcc.frontend.dpp import dpp
from pgcc.ir.circuit import Circuit
from pgcc.ir.node import var
from pgcc.ir.operands import check_circuit, check_disjoint, need_sequence
from pgcc.passes.compose import compose
from pgcc.passes.total import normalize


def det_pgc(
    L: Any = None,
    leaves: Iterable[Any] = (),
    *,
    K: Any = None,
    factor: Any = None,
    symmetric: bool = True,
    nearest: bool = False,
    rank: int | str | None = None,
) -> Circuit:
    """A determinantal PGC: a DPP over groups of variables (Zhang, Juba, Van den Broeck 2021, Section 5.2).

    To draw from it, draw a set of groups from the DPP; then, for every group in that set, draw a set of variables from
    its leaf, independently.

    Parameters
    ----------
    L, K, factor : matrix
        The kernel of the DPP, with one row per leaf. Give exactly one of the three, as for `pgcc.dpp`.
    leaves : sequence of circuits and names
        One leaf per row, with no variables in common. A name stands for that variable. A circuit whose total is not 1
        is divided by its total (exactly, or to 1e-12 with floats), so that only the kernel says how likely a group is.
    symmetric, nearest : bool
        As for `pgcc.dpp`.
    rank : int or "full", optional
        As for `pgcc.dpp`.

    Returns
    -------
    Circuit
        A single determinant over the variables of the leaves. Its total is det(I + L), or 1 if you gave K.

    Raises
    ------
    CircuitError
        If the matrix or the leaves do not have the right shape or type.
    SemanticsError
        If the kernel would give a negative probability, two leaves share a variable, or the total of a leaf is not
        positive.

    Notes
    -----
    Write Pr_L for the DPP and Pr_i for leaf i. Two variables X and Y of the same group i have

        Pr(X = 1, Y = 1) = Pr_L(i) · Pr_i(X = 1, Y = 1).

    Two variables of different groups have Pr(X = 1, Y = 1) ≤ Pr(X = 1) · Pr(Y = 1) if L is symmetric.

    See Also
    --------
    pgcc.dpp : determinantal point processes
    pgcc.Circuit.compose : replace variables by distributions
    pgcc.learn.SimplePGC : learn the model of the paper

    Examples
    --------
    >>> import pgcc
    >>> twins, other = pgcc.parse("0.9*a*b + 0.05*a + 0.05*b"), pgcc.parse("c")
    >>> model = pgcc.compile(pgcc.det_pgc([[1, "0.9"], ["0.9", 1]], [twins, other]))
    >>> model.prob({"a": 1, "b": 1}) > model.prob({"a": 1}) * model.prob({"b": 1})
    True
    >>> model.prob({"a": 1, "c": 1}) < model.prob({"a": 1}) * model.prob({"c": 1})
    True
    """
    listed = need_sequence(leaves, "the leaves are a sequence of circuits and names")
    parts = [_leaf(leaf, i) for i, leaf in enumerate(listed)]
    check_disjoint(parts, "leaf")
    rows = _count_rows(next((matrix for matrix in (L, K, factor) if matrix is not None), None))
    if rows is not None and rows != len(parts):
        raise CircuitError(
            f"the kernel has {plural(rows, 'row')}, but the list has {plural(len(parts), 'leaf', 'leaves')}"
        )
    groups = [f"leaf {i}" for i in range(len(parts))]
    process = dpp(L=L, K=K, factor=factor, names=groups, symmetric=symmetric, nearest=nearest, rank=rank)
    return compose(process, dict(zip(groups, map(normalize, parts, groups), strict=True)))


def _count_rows(matrix: Any) -> int | None:
    """The number of rows of a matrix; None for other values, which `dpp` refuses."""
    shape = getattr(matrix, "shape", None)
    if shape:
        return int(shape[0])
    return len(matrix) if isinstance(matrix, (list, tuple)) else None


def _leaf(leaf: Any, i: int) -> Circuit:
    if isinstance(leaf, str):
        return Circuit(var(leaf))
    check_circuit(leaf, f"leaf {i}")
    return leaf
