"""`hypothesis` strategies, drawn from small integers and lists so that failing examples shrink to short ones."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from pgcc.errors import PgccError
from pgcc.ir.circuit import Circuit
from pgcc.ir.node import Node, var, weighted_sum
from pgcc.passes.building import product_of
from pgcc.pc import PC, mixture, pos, true
from pgcc.testing.makers import (
    Maker,
    Pick,
    any_node,
    around,
    det_circuit,
    finish,
    make_pc,
    pick_evidence,
    z_names,
)

if TYPE_CHECKING:
    import networkx
    from hypothesis.strategies import SearchStrategy

Made = TypeVar("Made")
# The kinds of kernels that `pgcc.testing.kernels` makes.
KERNEL_KINDS = ("psd", "projection", "nonsymmetric", "marginal")


def strategies() -> Any:
    """The module `hypothesis.strategies`, imported when a strategy is first made."""
    try:
        import hypothesis.strategies
    except ImportError as error:  # pragma: no cover - hypothesis is there when the tests run
        message = "the strategies of pgcc.testing need hypothesis: pip install hypothesis"
        raise ImportError(message) from error
    return hypothesis.strategies


def _by_picks(make: Callable[[Pick], Made]) -> SearchStrategy[Made]:
    """A strategy for what a maker makes, whose choices become small integers."""
    st = strategies()

    @st.composite
    def one(draw: Any) -> Made:
        return make(lambda k: draw(st.integers(0, k - 1)))

    return one()


# -- circuits --------------------------------------------------------------------------------------------------------


def circuits(
    max_variables: int = 6,
    decomposable: bool | None = None,
    dets: bool = False,
    floats: bool = False,
    negative: bool = True,
    multiaffine: bool = True,
    max_size: int = 12,
) -> SearchStrategy[Circuit]:
    """A `hypothesis` strategy for small random circuits, with shared sub-circuits.

    Parameters
    ----------
    max_variables, max_size : int
        The largest number of variables, and the approximate largest number of sums and products.
    decomposable : bool, optional
        True for decomposable circuits only, False for others only, None for both.
    dets : bool
        Whether circuits may contain determinants, some of them with a size.
    floats : bool
        Whether the numbers are floats; otherwise they are exact.
    negative : bool
        Whether numbers may be negative.
    multiaffine : bool
        If False, any DAG at all, with squares, zeros, constants, and empty sums and products; `decomposable` and
        `negative` are then ignored.

    Examples
    --------
    >>> from hypothesis import given
    >>> from pgcc.testing import circuits
    >>> @given(circuits(decomposable=True))
    ... def test(g):
    ...     assert g.facts.decomposable
    >>> test()
    """

    def one(pick: Pick) -> Circuit:
        names = z_names(1 + pick(max_variables))
        maker = Maker(pick, names, negative, exact=not floats)
        if not multiaffine:
            return Circuit(any_node(maker, 1 + pick(max_size), dets), names)
        split = bool(pick(2)) if decomposable is None else not decomposable
        if dets and len(names) > 1 and pick(2):
            return Circuit(around(maker, det_circuit(maker, None, not split, complements=False)), names)
        return finish(maker, pick(max_size + 1), decomposable=not split)

    return _by_picks(one)


def evidence(circuit: Circuit) -> SearchStrategy[dict[str, int]]:
    """A `hypothesis` strategy for partial evidence about a circuit: a dict from names to 0 or 1.

    >>> import pgcc
    >>> from hypothesis import find
    >>> from pgcc.testing import evidence
    >>> find(evidence(pgcc.parse("0.5*a*b*c + 0.5")), lambda e: len(e) == 2)
    {'b': 1, 'c': 1}
    """
    return _by_picks(lambda pick: pick_evidence(pick, circuit))


def polynomials(max_variables: int = 4, valid: bool = True, max_terms: int = 6) -> SearchStrategy[Circuit]:
    """A `hypothesis` strategy for multiaffine polynomials with exact coefficients, as sums of monomials.

    Parameters
    ----------
    max_variables, max_terms : int
        The largest number of variables z1, z2, … (not all of which need occur), and of monomials.
    valid : bool
        Whether the polynomial has to be a probability distribution: nonnegative coefficients that add up to 1. If
        False, coefficients are any small fractions, and all of them may be 0.

    Examples
    --------
    >>> from hypothesis import find
    >>> from pgcc.testing import brute_force, polynomials
    >>> print(find(polynomials(), lambda g: 0 < brute_force(g)[frozenset()] < 1))
    1/2 + 1/2*z1
    >>> print(find(polynomials(valid=False), lambda g: min(brute_force(g).values()) < 0))
    -1
    """
    st = strategies()
    values = st.integers(1, 9) if valid else st.tuples(st.integers(-9, 9), st.integers(1, 4)).map(_fraction)

    @st.composite
    def one(draw: Any) -> Circuit:
        names = z_names(draw(st.integers(1, max_variables)))
        sets = st.integers(0, (1 << len(names)) - 1)
        drawn = draw(st.dictionaries(sets, values, min_size=int(valid), max_size=max_terms))
        total = sum(drawn.values()) if valid else 1
        subsets = sorted(drawn)
        return Circuit(weighted_sum([Fraction(drawn[s]) / total for s in subsets], _monomials(subsets, names)), names)

    return one()


def _fraction(pair: tuple[int, int]) -> Fraction:
    return Fraction(*pair)


def _monomials(subsets: list[int], names: list[str]) -> list[Node]:
    return [product_of([var(name) for i, name in enumerate(names) if s >> i & 1]) for s in subsets]


def pcs(
    smooth: bool | None = None, max_variables: int = 4, max_size: int = 8, floats: bool = False
) -> SearchStrategy[PC]:
    """A `hypothesis` strategy for decomposable probabilistic circuits, with shared sub-circuits.

    Parameters
    ----------
    smooth : bool, optional
        True for smooth circuits only, False for others only, None for both.
    max_variables, max_size : int
        The largest number of variables (not all of which need occur), and the approximate largest number of sums and
        products before smoothing.
    floats : bool
        Whether the weights are floats; otherwise they are exact.

    Examples
    --------
    >>> from hypothesis import find
    >>> from pgcc.testing import pcs
    >>> print(find(pcs(smooth=True), lambda p: len(p.variables) == 2 and p.edges > 3).literals)
    ~z2*(z1 + ~z1)
    >>> find(pcs(smooth=False), lambda p: True).structure().smooth
    False
    """

    def one(pick: Pick) -> PC:
        made = make_pc(pick, 1 + pick(max_variables), pick(max_size + 1), exact=not floats)
        if smooth or (smooth is None and pick(2)):
            return made.smooth()
        if smooth is None or not made.structure().smooth:
            return made
        half = 0.5 if floats else Fraction(1, 2)
        part = made if made.literals.scopes.names else pos(made.variables[0])
        unsmooth = mixture([half, half], [part, true()])
        return PC(unsmooth.root, made.variables)

    return _by_picks(one)


# -- kernels ---------------------------------------------------------------------------------------------------------


def kernels(kind: str = "psd", max_items: int = 4, floats: bool = False) -> SearchStrategy[np.ndarray]:
    """A `hypothesis` strategy for kernels that `pgcc.dpp` accepts.

    Parameters
    ----------
    kind : str
        ======================  =============================================  ========================================
        kind                    what it is                                     how it is given
        ======================  =============================================  ========================================
        ``"psd"``               B·Bᵀ, of any rank                              ``pgcc.dpp(L=kernel)``
        ``"nonsymmetric"``      B·Bᵀ + A − Aᵀ                                  ``pgcc.dpp(L=kernel, symmetric=False)``
        ``"marginal"``          symmetric, with eigenvalues between 0 and 1    ``pgcc.dpp(K=kernel)``
        ``"projection"``        symmetric, with eigenvalues 0 and 1            ``pgcc.dpp(K=kernel)``
        ======================  =============================================  ========================================

    max_items : int
        The largest number of rows.
    floats : bool
        Whether the dtype is float64. Otherwise the numbers are exact: integers for L, or an object array of fractions
        for K.

    Examples
    --------
    >>> from hypothesis import find
    >>> from pgcc.testing import kernels
    >>> find(kernels(), lambda L: L[0, 1:].any())
    array([[1, 1],
           [1, 1]])
    >>> K = find(kernels("projection", floats=True), lambda K: 0 < K[0, 0] < 1)
    >>> K.round(3)
    array([[0.5, 0.5],
           [0.5, 0.5]])
    """
    if kind not in KERNEL_KINDS:
        raise PgccError(f"unknown kind of kernel {kind!r}: choose one of {', '.join(map(repr, KERNEL_KINDS))}")
    st = strategies()

    @st.composite
    def one(draw: Any) -> np.ndarray:
        n = draw(st.integers(1, max_items))
        rank = draw(st.integers(1, n))
        B = _integer_matrix(draw, st, n, rank)
        if kind in ("projection", "marginal"):
            eigenvalues = [draw(st.integers(0, 4)) if kind == "marginal" else 4 for _ in range(rank)]
            kernel = _marginal_kernel(B, [Fraction(k, 4) for k in eigenvalues])
        else:
            A = _integer_matrix(draw, st, n, n) if kind == "nonsymmetric" else np.zeros((n, n), int)
            kernel = B @ B.T + A - A.T
        return kernel.astype(float) if floats else kernel

    return one()


def _integer_matrix(draw: Any, st: Any, rows: int, columns: int) -> np.ndarray:
    size = rows * columns
    return np.array(draw(st.lists(st.integers(-2, 2), min_size=size, max_size=size)), int).reshape(rows, columns)


def _marginal_kernel(B: np.ndarray, eigenvalues: list[Fraction]) -> np.ndarray:
    """Σ λ_i·v_i·v_iᵀ / |v_i|², where the v_i are the columns of B after Gram–Schmidt orthogonalisation."""
    n = len(B)
    span = np.full((n, n), Fraction(0), dtype=object)
    kernel = span.copy()
    for eigenvalue, b in zip(eigenvalues, B.T, strict=True):
        v = b - span @ b
        length = v @ v
        if length:
            onto = np.outer(v, v) / Fraction(length)
            span, kernel = span + onto, kernel + eigenvalue * onto
    return kernel


# -- graphs ----------------------------------------------------------------------------------------------------------


def graphs(
    max_nodes: int = 5, weighted: bool = False, multigraph: bool = False, max_extra: int = 4
) -> SearchStrategy[networkx.Graph]:
    """A `hypothesis` strategy for connected graphs over the nodes 0, 1, …, which `pgcc.spanning_tree` accepts.

    Parameters
    ----------
    max_nodes, max_extra : int
        The largest number of nodes (a single node is possible too), and of edges beyond those of a spanning tree.
    weighted : bool
        Whether edges have an attribute ``weight``, an integer from 1 to 9.
    multigraph : bool
        Whether to make a `networkx.MultiGraph`, which may have parallel edges. There are never self-loops.

    Examples
    --------
    >>> from hypothesis import find
    >>> from pgcc.testing import graphs
    >>> find(graphs(), lambda G: G.number_of_edges() >= 3 and G.number_of_nodes() == 3).edges
    EdgeView([(0, 1), (0, 2), (1, 2)])
    >>> find(graphs(weighted=True), lambda G: G.number_of_nodes() > 1).edges(data=True)
    EdgeDataView([(0, 1, {'weight': 1})])
    """
    st = strategies()

    @st.composite
    def edges(draw: Any) -> list[tuple[int, ...]]:
        n = draw(st.integers(1, max_nodes))
        pairs: list[tuple[int, ...]] = [(draw(st.integers(0, node - 1)), node) for node in range(1, n)]
        if n > 1:
            second = st.integers(1, n - 1)
            extra = second.flatmap(lambda node: st.tuples(st.integers(0, node - 1), st.just(node)))
            pairs += draw(st.lists(extra, max_size=max_extra))
        if not multigraph:
            pairs = list(dict.fromkeys(pairs))
        return [(*pair, draw(st.integers(1, 9))) for pair in pairs] if weighted else pairs

    return edges().map(multigraph_of if multigraph else graph_of)


def graph_of(edges: list[tuple[int, ...]], multigraph: bool = False) -> networkx.Graph:
    """The graph with node 0 and these edges, (u, v) or (u, v, weight)."""
    import networkx

    graph = networkx.MultiGraph() if multigraph else networkx.Graph()
    graph.add_node(0)
    for u, v, *weight in edges:
        graph.add_edge(u, v, **({"weight": weight[0]} if weight else {}))
    return graph


def multigraph_of(edges: list[tuple[int, ...]]) -> networkx.MultiGraph:
    """The multigraph with node 0 and these edges, (u, v) or (u, v, weight)."""
    return graph_of(edges, multigraph=True)
