"""Determinantal point processes and spanning trees, against numpy's batched slogdet and networkx; cost; accuracy."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from typing import Any

import networkx as nx
import numpy as np

import pgcc
from benchmarks.common import Table, best_of, fitted_exponent
from pgcc.data.evidence import Evidence
from pgcc.queries.probability import probabilities

QUERIES = 10_000
ITEMS = (20, 50, 100)
BITS = 600  # of the reference
_BLOCK = 500  # n×n matrices at a time: more is slower for numpy


def run() -> Iterator[Table]:
    yield _marginals()
    yield _full_rows()
    yield _trees()
    yield _growth()
    yield _near_duplicates()
    yield _accuracy()


# -- what is asked ------------------------------------------------------------------------------------------------


def random_kernel(n: int, seed: int = 0) -> np.ndarray:
    """B·Bᵀ/n with independent normal entries."""
    B = np.random.default_rng(seed).standard_normal((n, n))
    return B @ B.T / n


def rbf_kernel(n: int, dimensions: int, length: float, seed: int = 0) -> np.ndarray:
    """exp(−|x − y|² / 2ℓ²) of random points in the unit cube, plus 1e-10·I: next to singular, but not by rounding."""
    points = np.random.default_rng(seed).random((n, dimensions))
    squared = ((points[:, None] - points[None]) ** 2).sum(axis=2)
    return np.exp(-squared / (2 * length**2)) + 1e-10 * np.eye(n)


def random_queries(count: int, n: int, ones: int | np.ndarray, zeros: int | np.ndarray, seed: int = 0) -> np.ndarray:
    """Rows of 1 (as many as said, of all rows or each), 0 (likewise) and −1, at random places."""
    rank = np.random.default_rng(seed).random((count, n)).argsort(axis=1).argsort(axis=1)
    inside = np.broadcast_to(np.asarray(ones), count)[:, None]
    outside = np.broadcast_to(np.asarray(zeros), count)[:, None]
    return np.where(rank < inside, 1, np.where(rank < inside + outside, 0, -1)).astype(np.int8)


# -- numpy --------------------------------------------------------------------------------------------------------


def by_blocks_of_k(K: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """log Pr(A in, B out) = log |det of K_AA, K_AB; −K_BA, I − K_BB|; A as large in all rows, and B too."""
    inside = np.nonzero(rows == 1)[1].reshape(len(rows), -1)
    outside = np.nonzero(rows == 0)[1].reshape(len(rows), -1)
    observed = np.concatenate([inside, outside], axis=1)
    blocks = K[observed[:, :, None], observed[:, None, :]]
    out = np.arange(inside.shape[1], observed.shape[1])
    blocks[:, out] *= -1.0
    blocks[:, out, out] += 1.0
    return np.linalg.slogdet(blocks)[1]


def by_mixed_matrix(L: np.ndarray, rows: np.ndarray, total: float) -> np.ndarray:
    """The same as log det(diag(not out)·L + diag(not in)) − log det(I + L), some rows at a time."""
    logs = np.empty(len(rows))
    diagonal = np.arange(len(L))
    for first in range(0, len(rows), _BLOCK):
        some = rows[first : first + _BLOCK]
        mixed = (some != 0)[:, :, None] * L
        mixed[:, diagonal, diagonal] += some != 1
        logs[first : first + _BLOCK] = np.linalg.slogdet(mixed)[1]
    return logs - total


def by_blocks_of_l(L: np.ndarray, rows: np.ndarray, total: float) -> np.ndarray:
    """log det L_AA − log det(I + L) of full rows; A as large in all of them."""
    inside = np.nonzero(rows == 1)[1].reshape(len(rows), -1)
    return np.linalg.slogdet(L[inside[:, :, None], inside[:, None, :]])[1] - total


def by_size(L: np.ndarray, rows: np.ndarray, total: float) -> np.ndarray:
    """The same for sets of any sizes, those of a size at a time."""
    logs = np.empty(len(rows))
    sizes = np.count_nonzero(rows == 1, axis=1)
    for size in np.unique(sizes):
        there = sizes == size
        logs[there] = by_blocks_of_l(L, rows[there], total)
    return logs


def _log_total(L: np.ndarray) -> float:
    return float(np.linalg.slogdet(np.eye(len(L)) + L)[1])


# -- speed --------------------------------------------------------------------------------------------------------


def _compare(calls: dict[str, Callable[[], np.ndarray]], two: Callable[[], np.ndarray]) -> dict[str, float]:
    """Milliseconds by name: "pgcc" first, then the alternatives; and by the clock "clock" and "two" of pgcc."""
    expected = calls["pgcc"]()
    for call in [*calls.values(), two]:
        np.testing.assert_allclose(call(), expected, rtol=1e-9, atol=1e-9)
    seconds = best_of(calls, 15, 6.0, time.process_time) | best_of({"clock": calls["pgcc"], "two": two}, 15, 4.0)
    return {name: each * 1e3 for name, each in seconds.items()}


def _marginals() -> Table:
    table = Table(
        f"determinants: {QUERIES:,} marginals Pr(A in, B out) of a DPP, |A| = |B| = n/10, in ms",
        ["n", "pgcc", "K blocks", "ratio", "mixed n×n", "ratio", "two threads", "gain"],
        notes=[
            "required ≥ 3 (numpy's slogdet on blocks of K, index sets and gathering included) and ≥ 20 (on n×n",
            "matrices); one thread, CPU time. gain: threads=2 over one, by the clock.",
        ],
    )
    for n in ITEMS:
        L = random_kernel(n)
        rows = random_queries(QUERIES, n, n // 10, n // 10)
        model, total, K = pgcc.compile(pgcc.dpp(L=L)), _log_total(L), np.linalg.solve(np.eye(n) + L, L)
        ms = _compare(
            {
                "pgcc": lambda m=model, x=rows: m.logprob(x),
                "blocks": lambda K=K, x=rows: by_blocks_of_k(K, x),
                "mixed": lambda L=L, x=rows, t=total: by_mixed_matrix(L, x, t),
            },
            lambda m=model, x=rows: m.logprob(x, threads=2),
        )
        ours = ms["pgcc"]
        table.add(
            f"{n}", ours, ms["blocks"], ms["blocks"] / ours, ms["mixed"], ms["mixed"] / ours, ms["two"],
            ms["clock"] / ms["two"],
        )  # fmt: skip
    return table


def _full_rows() -> Table:
    table = Table(
        f"determinants: likelihood of {QUERIES:,} full rows of a DPP, in ms",
        ["n, |A|", "pgcc", "numpy", "ratio", "two threads", "gain"],
        notes=[
            "required ≥ 3 (numpy's slogdet on blocks of L, index sets and gathering included); one thread, CPU time.",
            "about: |A| is binomial with mean n/10, and numpy takes the sets of a size at a time.",
        ],
    )
    for n in ITEMS:
        L = random_kernel(n)
        model, total = pgcc.compile(pgcc.dpp(L=L)), _log_total(L)
        sizes = np.random.default_rng(1).binomial(n, 0.1, QUERIES)
        for text, ones, numpy in (("", n // 10, by_blocks_of_l), ("about ", sizes, by_size)):
            rows = random_queries(QUERIES, n, ones, n)
            ms = _compare(
                {
                    "pgcc": lambda m=model, x=rows: m.logprob(x),
                    "numpy": lambda f=numpy, L=L, x=rows, t=total: f(L, x, t),
                },
                lambda m=model, x=rows: m.logprob(x, threads=2),
            )
            ratio, gain = ms["numpy"] / ms["pgcc"], ms["clock"] / ms["two"]
            table.add(f"{n}, {text}{n // 10}", ms["pgcc"], ms["numpy"], ratio, ms["two"], gain)
    return table


def random_graph(nodes: int, edges: int, seed: int = 0) -> nx.Graph:
    """Connected, with weights of about 1."""
    rng = np.random.default_rng(seed)
    graph = nx.Graph()
    order = rng.permutation(nodes).tolist()
    graph.add_edges_from((order[i], order[int(rng.integers(i))]) for i in range(1, nodes))
    while graph.number_of_edges() < edges:
        graph.add_edge(*rng.choice(nodes, 2, replace=False).tolist())
    for _, _, data in graph.edges(data=True):
        data["weight"] = float(rng.uniform(0.1, 2.0))
    return graph


def by_contraction(graph: nx.MultiGraph, inside: list[tuple], outside: list[tuple], total: float) -> float:
    """log Pr(inside in, outside out): delete, contract, and take the determinant of the reduced Laplacian.

    A multigraph, because contraction in a simple one forgets the weights of all but one of the edges that it merges.
    """
    rest = graph.copy()
    rest.remove_edges_from(outside)
    now = {node: node for node in rest}
    weight = 0.0
    for u, v in inside:
        keep, merged = now[u], now[v]
        if keep == merged:
            return -math.inf
        weight += math.log(graph[u][v][0]["weight"])
        nx.contracted_nodes(rest, keep, merged, self_loops=False, copy=False)
        now = {node: keep if at == merged else at for node, at in now.items()}
    return weight + _log_trees(rest) - total


def _log_trees(graph: nx.MultiGraph) -> float:
    sign, log = np.linalg.slogdet(nx.laplacian_matrix(graph).toarray()[1:, 1:])
    return float(log) if sign > 0 else -math.inf


def _trees() -> Table:
    table = Table(
        "determinants: random spanning trees with 50 nodes, 1,000 queries of 3 edges in and 3 out, µs per query",
        ["graph", "edges", "compile ms", "pgcc", "two threads", "networkx", "ratio"],
        notes=["required ≥ 100 (contract and delete with networkx, then numpy's slogdet of the Laplacian, 20 queries)"],
    )
    complete = nx.complete_graph(50)
    nx.set_edge_attributes(complete, 1.0, "weight")
    for name, graph in (("sparse", random_graph(50, 100)), ("weighted", random_graph(50, 300)), ("K_50", complete)):
        start = time.perf_counter()
        model = pgcc.compile(pgcc.spanning_tree(graph))
        compiled = time.perf_counter() - start
        edges = list(graph.edges)
        rows = random_queries(1_000, len(edges), 3, 3)
        few = [[[edges[i] for i in np.flatnonzero(row == value)] for value in (1, 0)] for row in rows[:20]]
        multi = nx.MultiGraph(graph)
        total = _log_trees(multi)
        theirs = [by_contraction(multi, *query, total) for query in few]
        np.testing.assert_allclose(model.logprob(rows[:20]), theirs, rtol=1e-8, atol=1e-8)
        calls: dict[str, Callable[[], Any]] = {
            "pgcc": lambda m=model, x=rows: m.logprob(x),
            "networkx": lambda g=multi, x=few, t=total: [by_contraction(g, *query, t) for query in x],
        }
        seconds = best_of(calls, 10, 4.0, time.process_time)
        two = best_of({"two": lambda m=model, x=rows: m.logprob(x, threads=2)}, 10, 4.0)["two"]
        ours, other = seconds["pgcc"] / len(rows), seconds["networkx"] / len(few)
        table.add(name, len(edges), compiled * 1e3, ours * 1e6, two / len(rows) * 1e6, other * 1e6, other / ours)
    return table


def _growth() -> Table:
    sizes, items = (0, 4, 8, 16, 32, 48, 64), (200, 400)
    table = Table(
        "determinants: marginals with q variables observed, half of them in; µs per query",
        ["q", *(f"n = {n}" for n in items), "ratio"],
    )
    calls = {}
    for n in items:
        model = pgcc.compile(pgcc.dpp(L=random_kernel(n)))
        for q in sizes:
            rows = random_queries(20_000 // max(q, 8), n, q // 2, q // 2)
            calls[f"{n} {q}"] = (len(rows), lambda m=model, x=rows: m.logprob(x))
    seconds = best_of({name: call for name, (_, call) in calls.items()}, 10, 3.0, time.process_time)
    micro = {name: each / calls[name][0] * 1e6 for name, each in seconds.items()}
    for q in sizes:
        small, large = (micro[f"{n} {q}"] for n in items)
        table.add(f"{q}", small, large, large / small)
    large_q = [q for q in sizes if q >= 16]
    exponents = [fitted_exponent(large_q, [micro[f"{n} {q}"] for q in large_q]) for n in items]
    table.notes.append(f"exponent of q, from 16 on: {', '.join(f'{k:.2f}' for k in exponents)} (required ≤ about 3)")
    table.notes.append("required: ratio about 1. q = 0 is what it takes to read a row, which has n entries.")
    return table


def near_duplicates(n: int, apart: float, seed: int = 0) -> np.ndarray:
    """A factor with max(20, n/5) columns, whose second half of rows is the first one, almost."""
    rng, rank = np.random.default_rng(seed), max(20, n // 5)
    B = rng.standard_normal((n, rank)) / math.sqrt(rank)
    B[n // 2 :] = B[: n // 2] + apart * rng.standard_normal((n // 2, rank)) / math.sqrt(rank)
    return B


def _near_duplicates() -> Table:
    count = 50
    table = Table(
        f"determinants: {count} full rows with max(4, n/10) items in, half of them near-duplicates; and marginals",
        ["n", "apart", "escalated", "pgcc µs", "balls µs", "ratio", "marginals: escalated", "pgcc µs"],
        notes=["required: none escalated at 1e-6 and 1e-7. balls: the same rows by method='ball'. CPU time per row."],
    )
    for n in (50, 100, 300):
        for apart in (1e-4, 1e-6, 1e-7, 1e-8, 1e-10):
            model, rng = pgcc.compile(pgcc.dpp(factor=near_duplicates(n, apart))), np.random.default_rng(1)
            size = max(4, n // 10) // 2
            twice = rng.random((count, n // 2)).argsort(axis=1).argsort(axis=1) < size
            rows = np.concatenate([twice, twice], axis=1).astype(np.int8)
            marginals = np.where((rows == 0) & (rng.random(rows.shape) > 0.1), -1, rows).astype(np.int8)
            cells = []
            for asked in (rows, marginals):
                evidence = Evidence(model.variables, asked)
                call = lambda e=evidence, m=model: probabilities(m._distribution(), e, logs=True, relative=True)  # noqa: E731
                escalated = call().used["ball"] / count
                cells += [f"{escalated:.0%}", best_of({"": call}, 10, 2.0, time.process_time)[""] / count * 1e6]
            balls = best_of({"": lambda m=model, x=rows: m.logprob(x, method="ball")}, 1, 1.0, time.process_time)[""]
            balls *= 1e6 / count
            table.add(f"{n}", f"{apart:.0e}", *cells[:2], balls, balls / cells[1], *cells[2:])
    return table


# -- accuracy -----------------------------------------------------------------------------------------------------


class Reference:
    """Pr(A in, B out) of the L-ensemble with exactly these entries, in ball arithmetic of python-flint."""

    def __init__(self, L: np.ndarray):
        self.L = L
        self.made: dict[int, tuple[Any, Any, Any]] = {}

    def _parts(self, bits: int) -> tuple[Any, Any, Any]:
        """L, K = L·(I + L)⁻¹ as nested lists, and det(I + L); call it with the precision set."""
        import flint

        if bits not in self.made:
            n = len(self.L)
            L = flint.arb_mat(n, n, [flint.arb(x) for x in self.L.ravel().tolist()])
            shifted = L + flint.arb_mat(n, n, [int(i == j) for i in range(n) for j in range(n)])
            self.made[bits] = L.tolist(), shifted.solve(L).tolist(), shifted.det()
        return self.made[bits]

    def probability(self, row: np.ndarray) -> Any:
        """A ball that is narrower than 1e-20 of its midpoint."""
        import flint

        for bits in (BITS, 4 * BITS):
            with flint.ctx.workprec(bits):
                value = self._at(row, bits)
                if value.rel_accuracy_bits() > 70:
                    return value
        raise ArithmeticError(f"{4 * BITS} bits are not enough")

    def _at(self, row: np.ndarray, bits: int) -> Any:
        import flint

        L, K, total = self._parts(bits)
        inside, outside = np.flatnonzero(row == 1).tolist(), np.flatnonzero(row == 0).tolist()
        if len(inside) + len(outside) == len(row):
            return flint.arb_mat([[L[i][j] for j in inside] for i in inside]).det() / total
        # In: a row of K; out: a row of I − K.
        observed = [*inside, *outside]
        rows = [[K[i][j] for j in observed] for i in inside]
        rows += [[int(i == j) - K[i][j] for j in observed] for i in outside]
        return flint.arb_mat(rows).det()


def hard_kernels(n: int) -> Iterator[tuple[str, np.ndarray]]:
    """Kernels for the test of accuracy, with their names."""
    yield "random", random_kernel(n)
    yield "RBF, 3-d, ℓ = 0.3", rbf_kernel(n, 3, 0.3)
    yield "RBF, 2-d, ℓ = 0.5", rbf_kernel(n, 2, 0.5)


def mixed_queries(count: int, n: int, seed: int = 0) -> np.ndarray:
    """|A| and |B| from 1 to n/10; every fifth row is full, with |A| from 1 to n/10."""
    rng = np.random.default_rng(seed)
    ones, zeros = rng.integers(1, n // 10 + 1, (2, count))
    zeros[::5] = n
    return random_queries(count, n, ones, zeros, seed)


def largest_error(reference: Reference, rows: np.ndarray, probs: np.ndarray, bounds: np.ndarray) -> tuple[float, bool]:
    """The largest relative error, and whether none is above its bound."""
    found = [float(abs(prob / reference.probability(row) - 1)) for row, prob in zip(rows, probs.tolist(), strict=True)]
    return max(found), bool((np.array(found) <= bounds).all())


def _accuracy(items: tuple[int, ...] = (50, 100, 200, 300)) -> Table:
    count = 200
    table = Table(
        f"determinants: accuracy of {count} queries, |A| and |B| from 1 to n/10, every fifth row full",
        [
            "kernel",
            "n",
            "smallest eigenvalue",
            "smallest Pr",
            "error",
            "bounds true",
            "escalated",
            "s to prepare",
            "ms",
        ],
        notes=[
            f"required: relative errors below 1e-9. Reference: balls of {BITS} bits, from L as given. ms: per query,",
            "once compiled and asked for the first time, which is what it takes to prepare.",
        ],
    )
    for n in items:
        for name, L in hard_kernels(n):
            rows = mixed_queries(count, n)
            start = time.perf_counter()
            model = pgcc.compile(pgcc.dpp(L=L))
            model.prob(rows[1])
            prepared = time.perf_counter()
            evidence = Evidence(model.variables, rows)
            answers = probabilities(model._distribution(), evidence, bounds=True)
            seconds = time.perf_counter() - prepared
            assert answers.bounds is not None
            error, true = largest_error(Reference(L), rows, answers.numbers, answers.bounds)
            table.add(
                name, f"{n}", f"{np.linalg.eigvalsh(L)[0]:.0e}", f"{answers.numbers.min():.0e}", error, true,
                f"{answers.used['ball'] / count:.1%}", prepared - start, seconds / count * 1e3,
            )  # fmt: skip
    return table
