"""`.uai` networks: right against eliminations written here with plain tables; damaged files are refused with a line."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from real_data import DATA

import pgcc
from pgcc.errors import CircuitError, FormatError
from pgcc.formats import uai
from pgcc.frontend.elimination import Table as Factor
from pgcc.frontend.elimination import WidthError, eliminate
from pgcc.frontend.elimination_order import find_orders
from pgcc.ir.domains import Domains

CIRCUITS = DATA / "circuits"
Table = tuple[tuple[int, ...], np.ndarray]


def shared(name: str) -> Path:
    path = CIRCUITS / name
    if not path.exists():
        pytest.skip(f"{path} is not here")
    return path


# -- oracles: they share nothing with pgcc ------------------------------------------------------------------


def tables_of(path: Path) -> tuple[int, list[Table]]:
    """A reader of correct files."""
    words = iter(path.read_text().split())
    next(words)
    n = int(next(words))
    assert [int(next(words)) for _ in range(n)] == [2] * n
    scopes = [tuple(int(next(words)) for _ in range(int(next(words)))) for _ in range(int(next(words)))]
    tables = [np.array([float(next(words)) for _ in range(int(next(words)))]) for _ in scopes]
    assert next(words, None) is None
    return n, [(s, t.reshape((2,) * len(s))) for s, t in zip(scopes, tables, strict=True)]


def write_uai(path: Path, n: int, tables: Sequence[Table], kind: str = "MARKOV") -> Path:
    lines = [kind, str(n), " ".join(["2"] * n), str(len(tables))]
    lines += [" ".join(map(str, (len(s), *s))) for s, _ in tables]
    lines += [f"{t.size}\n " + " ".join(map(repr, t.ravel().tolist())) for _, t in tables]
    path.write_text("\n".join(lines) + "\n")
    return path


def numeric_mass(n: int, tables: Sequence[Table], evidence: dict[int, int], order: Sequence[int]) -> float:
    """Σ of the product of all tables over what agrees with the evidence; eliminates in the order given."""
    left = []
    for scope, table in tables:
        index = tuple(evidence.get(v, slice(None)) for v in scope)
        left.append((tuple(v for v in scope if v not in evidence), table[index]))
    for v in order:
        if v in evidence:
            continue
        mine = [f for f in left if v in f[0]]
        left = [f for f in left if v not in f[0]]
        scope = tuple(sorted({u for s, _ in mine for u in s} - {v}))
        bag = (*scope, v)
        total = np.ones((2,) * len(bag))
        for s, t in mine:  # one at a time: np.einsum with many operands is slow
            letters = [bag.index(u) for u in s]
            total = np.einsum(total, list(range(len(bag))), t, letters, list(range(len(bag))))
        left.append((scope, total.sum(axis=-1)))
    return float(np.prod([t for _, t in left]))


def brute_force(n: int, tables: Sequence[Table]) -> np.ndarray:
    """The weight of every assignment."""
    weights = np.ones((2,) * n)
    for x in itertools.product((0, 1), repeat=n):
        for scope, table in tables:
            weights[x] *= table[tuple(x[v] for v in scope)]
    return weights


def marginal(weights: np.ndarray, row: Sequence[int]) -> float:
    return float(weights[tuple(slice(None) if v < 0 else v for v in row)].sum() / weights.sum())


def random_tables(n: int, rng: np.random.Generator, zeros: float = 0.0) -> list[Table]:
    tables: list[Table] = []
    for _ in range(int(rng.integers(1, 2 * n + 1))):
        scope = tuple(int(v) for v in rng.permutation(n)[: rng.integers(0, min(n, 4) + 1)])
        table = rng.random((2,) * len(scope)) + 0.01
        if scope:
            table[rng.random(table.shape) < zeros] = 0.0
        tables.append((scope, table))
    return tables


# -- right answers --------------------------------------------------------------------------------------------


def test_asia_agrees_with_elimination() -> None:
    path = shared("asia.uai")
    n, tables = tables_of(path)
    circuit = pgcc.load(path)
    model = pgcc.compile(circuit)
    assert circuit.variables == tuple(f"x{v + 1}" for v in range(8))
    assert circuit.facts.smooth
    assert circuit.facts.decomposable
    order = range(n)
    assert numeric_mass(n, tables, {}, order) == pytest.approx(1, rel=1e-12)
    for row in itertools.product((-1, 0, 1), repeat=n):
        if sum(v >= 0 for v in row) == 1 or row[0] + row[3] + row[7] == 2:
            evidence = {v: x for v, x in enumerate(row) if x >= 0}
            expected = numeric_mass(n, tables, evidence, order)
            assert model.prob([row])[0] == pytest.approx(expected, rel=1e-10, abs=0)


@pytest.mark.slow
def test_dbn_11_marginals_agree_with_elimination() -> None:
    """Its width is 20: its circuit would have 60 million edges, but ten variables at a time take seconds."""
    path = shared("DBN_11.uai")
    _, tables = tables_of(path)
    total, singles, across, queries = bipartite_sums(tables)
    for first in (0, 30):
        kept = [f"x{v + 1}" for v in range(first, first + 10)]
        circuit = uai.read(path, keep=kept)
        model = pgcc.compile(circuit)
        assert circuit.variables == tuple(kept)
        assert circuit.facts.smooth
        for v in range(first, first + 10):
            assert model.prob({f"x{v + 1}": 1}) == pytest.approx(singles[v] / total, rel=1e-10)
        if first < 20:
            for evidence, mass in queries:
                mine = {f"x{v + 1}": x for v, x in evidence.items() if first <= v < first + 10}
                if len(mine) == len(evidence):
                    assert model.prob(mine) == pytest.approx(mass / total, rel=1e-10)
    model = pgcc.compile(uai.read(path, keep=["x4", "x8", "x26", "x39"]))
    for i, j in itertools.product((3, 7), (25, 38)):
        assert model.prob({f"x{i + 1}": 1, f"x{j + 1}": 1}) == pytest.approx(across[i, j - 20] / total, rel=1e-10)


def bipartite_sums(tables: Sequence[Table]) -> tuple[float, np.ndarray, np.ndarray, list]:
    """Of a 20 + 20 bipartite network: the total, the mass of every x_v = 1, of every x_i = x_j = 1 with i and j on
    different sides, and of some joint queries on the first side, summed over the values of the first side.

    Given the values a of the first twenty, the others are independent: Σ_a φ(a) Π_j (w_j0(a) + w_j1(a)).
    """
    bits = (np.arange(1 << 20)[:, None] >> np.arange(20)) & 1
    single = {s[0]: t for s, t in tables if len(s) == 1}
    log_first = sum(np.log(single[i])[bits[:, i]] for i in range(20))
    pairs = np.zeros((20, 20, 2, 2))
    for s, t in tables:
        if len(s) == 2:
            pairs[s[0], s[1] - 20] = np.log(t)
    constant = np.log([single[20 + j] for j in range(20)]) + pairs[:, :, 0].sum(axis=0)
    ones = bits.astype(float)
    w0, w1 = (np.exp(ones @ (pairs[:, :, 1, x] - pairs[:, :, 0, x]) + constant[:, x]) for x in (0, 1))
    mass = np.exp(log_first) * np.prod(w0 + w1, axis=1)
    firsts = mass @ ones
    others = mass @ (w1 / (w0 + w1))
    across = (ones * mass[:, None]).T @ (w1 / (w0 + w1))
    rng = np.random.default_rng(5)
    queries = []
    for k in range(40):
        chosen = 10 * (k % 2) + rng.permutation(10)[: 2 + k % 7]
        values = rng.integers(0, 2, len(chosen))
        agree = (bits[:, chosen] == values).all(axis=1)
        queries.append((dict(zip(chosen.tolist(), values.tolist(), strict=True)), float(mass[agree].sum())))
    return float(mass.sum()), np.concatenate([firsts, others]), across, queries


def test_dbn_11_whole_is_refused_with_its_width() -> None:
    with pytest.raises(FormatError, match=r"induced width of the best order found is \d+: .* live terms .*keep"):
        pgcc.load(shared("DBN_11.uai"))


@pytest.mark.parametrize("seed", range(40))
def test_random_networks_agree_with_brute_force(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 9))
    tables = random_tables(n, rng, zeros=0.2 if seed % 2 else 0.0)
    path = write_uai(tmp_path / "net.uai", n, tables)
    weights = brute_force(n, tables)
    if not weights.sum():
        assert pgcc.compile(pgcc.load(path), normalize=False).prob() == 0
        return
    circuit = pgcc.load(path)
    assert circuit.facts.smooth
    assert circuit.facts.decomposable
    assert circuit.facts.monotone
    rows = rng.integers(-1, 2, (50, n))
    expected = [marginal(weights, row) for row in rows]
    np.testing.assert_allclose(pgcc.compile(circuit).prob(rows), expected, rtol=1e-10, atol=0)
    raw = pgcc.compile(circuit, normalize=False).prob()
    assert raw == pytest.approx(weights.sum(), rel=1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_kept_variables_have_their_marginal_distribution(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 9))
    tables = random_tables(n, rng)
    kept = sorted(rng.permutation(n)[: rng.integers(1, n + 1)].tolist())
    path = write_uai(tmp_path / "net.uai", n, tables)
    circuit = uai.read(path, keep=[f"x{v + 1}" for v in reversed(kept)])
    assert circuit.variables == tuple(f"x{v + 1}" for v in kept)
    weights = brute_force(n, tables)
    model = pgcc.compile(circuit)
    for values in itertools.product((0, 1), repeat=len(kept)):
        row = [-1] * n
        for v, x in zip(kept, values, strict=True):
            row[v] = x
        assert model.prob([values])[0] == pytest.approx(marginal(weights, row), rel=1e-10)
    assert pgcc.compile(circuit, normalize=False).prob() == pytest.approx(weights.sum(), rel=1e-12)


def test_the_last_variable_of_a_scope_changes_fastest(tmp_path: Path) -> None:
    path = tmp_path / "n.uai"
    path.write_text("MARKOV 2 2 2 1 2 1 0 4 1 2 3 4")
    model = pgcc.compile(pgcc.load(path))
    assert model.prob({"x2": 0, "x1": 1}) == pytest.approx(0.2)
    assert model.prob({"x2": 1, "x1": 0}) == pytest.approx(0.3)


def test_a_variable_without_a_table_is_uniform(tmp_path: Path) -> None:
    path = tmp_path / "n.uai"
    path.write_text("MARKOV 2 2 2 1 1 1 2 1 3")
    model = pgcc.compile(pgcc.load(path))
    assert model.prob({"x1": 1}) == 0.5
    assert model.prob({"x2": 1}) == 0.75


def test_names_and_order_are_the_same_every_time(tmp_path: Path) -> None:
    path = write_uai(tmp_path / "n.uai", 8, random_tables(8, np.random.default_rng(1)))
    assert pgcc.load(path) == pgcc.load(path)


# -- size and range -------------------------------------------------------------------------------------------


def chain(n: int, rng: np.random.Generator) -> list[Factor]:
    return [Factor((v, v + 1), rng.random((2, 2)) + 0.1) for v in range(n - 1)]


@pytest.mark.slow
def test_size_is_linear_for_chains_and_stars() -> None:
    rng = np.random.default_rng(0)
    sizes = {}
    for n in (1000, 2000, 4000):
        names = Domains.plain(f"x{v}" for v in range(n))
        star = [Factor((0, v), rng.random((2, 2)) + 0.1) for v in range(1, n)]
        sizes[n] = [eliminate(names, chain(n, rng)).edges, eliminate(names, star).edges]
    for small, large in ((1000, 2000), (2000, 4000)):
        for a, b in zip(sizes[small], sizes[large], strict=True):
            assert b == pytest.approx(2 * a, rel=0.01)
    assert max(sizes[1000]) < 10_000


def test_the_width_of_known_graphs_is_found() -> None:
    def width(n: int, edges: list[tuple[int, int]]) -> int:
        return find_orders([2] * n, edges, set(range(n)))[0].width

    assert width(1, []) == 0
    assert width(50, [(v, v + 1) for v in range(49)]) == 1
    assert width(50, [(v, (v + 1) % 50) for v in range(50)]) == 2
    assert width(6, list(itertools.combinations(range(6), 2))) == 5
    assert width(16, [(a, b) for a in range(16) for b in (a + 1, a + 4) if b < 16 and (b != a + 1 or b % 4)]) == 4


def test_a_dense_network_is_refused_at_once() -> None:
    n = 1000
    rng = np.random.default_rng(0)
    ones = np.ones((2, 2))
    factors = [Factor((int(a), int(b)), ones) for a, b in rng.integers(0, n, (20_000, 2)) if a != b]
    with pytest.raises(WidthError, match="induced width is at least") as caught:
        eliminate(Domains.plain(f"x{v}" for v in range(n)), factors)
    assert caught.value.width > 20


def test_numbers_far_from_one_are_rescaled() -> None:
    big, small = np.array([1e300, 2e300]), np.array([3e-300, 1e-300])
    factors = [Factor((0,), big), Factor((0,), big), Factor((0, 1), np.outer(small, small)[:, :] + 1e-300)]
    factors += [Factor((1,), small)] * 4
    for keep in (None, ["x0"], ["x1"]):
        circuit = eliminate(Domains.plain(["x0", "x1"]), factors, keep)
        for name in circuit.variables:
            expected = 0.8 if name == "x0" else 1 / 82
            assert pgcc.compile(circuit).prob({name: 1}) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("keep", [None, ["x1"], ["x2"]])
def test_the_partition_function_is_that_of_the_file(tmp_path: Path, keep: list[str] | None) -> None:
    """However large: the powers of two by which tables are divided on the way were lost."""
    path = tmp_path / "n.uai"
    path.write_text("MARKOV\n2\n2 2\n3\n1 0\n1 1\n2 0 1\n2 1e300 3e300\n2 1e100 2e-100\n4 1 2 3 4\n")
    model = pgcc.compile(pgcc.load(path, **({} if keep is None else {"keep": keep})), normalize=False)
    expected = 0
    for x, y in itertools.product((0, 1), repeat=2):
        expected += Fraction((1e300, 3e300)[x]) * Fraction((1e100, 2e-100)[y]) * (1 + 2 * x + y)
    assert abs(model.prob({}, exact=True) / expected - 1) < 1e-12


@pytest.mark.parametrize("tables", ["2\n1 0\n2 0 1\n2 0 0\n4 1 2 3 4", "2\n1 0\n1 0\n2 0 1\n2 1 0", "1\n0\n1 0"])
@pytest.mark.parametrize("keep", [None, ["x2"]])
def test_a_partition_function_of_0(tmp_path: Path, tables: str, keep: list[str] | None) -> None:
    path = tmp_path / "n.uai"
    path.write_text(f"MARKOV\n2\n2 2\n{tables}\n")
    circuit = pgcc.load(path, **({} if keep is None else {"keep": keep}))
    assert circuit.variables == tuple(keep or ["x1", "x2"])
    model = pgcc.compile(circuit, normalize=False)
    assert model.prob({}) == model.prob({"x2": 1}) == 0.0
    assert model.prob({}, exact=True) == 0
    with pytest.raises(pgcc.SemanticsError, match=r"the total g\(1\) is 0.*normalize=False"):
        pgcc.compile(circuit)


def test_numbers_too_far_apart_are_refused() -> None:
    apart = Factor((0,), np.array([1e200, 1e-100]))
    with pytest.raises(CircuitError, match="differ too much"):
        eliminate(Domains.plain(["x0"]), [apart, apart])


def test_keep_is_checked(tmp_path: Path) -> None:
    path = tmp_path / "n.uai"
    path.write_text(GOOD)
    with pytest.raises(FormatError, match="cannot keep 'y'"):
        uai.read(path, keep=["y"])
    with pytest.raises(FormatError, match="at least one"):
        uai.read(path, keep=[])


# -- damaged files ----------------------------------------------------------------------------------------------

GOOD = "BAYES\n3\n2 2 2\n3\n1 0\n2 0 1\n3 0 1 2\n\n2\n 0.5 0.5\n4\n 0.1 0.9 0.3 0.7\n8\n" + " 0.25 0.75" * 4 + "\n"

DAMAGE = {
    "empty": ("", 1, "ends before BAYES or MARKOV"),
    "blank": (" \n\n ", 3, "ends before"),
    "other kind": (GOOD.replace("BAYES", "LIMID"), 1, "begins with BAYES or MARKOV"),
    "no kind": (GOOD.replace("BAYES\n", ""), 1, "begins with"),
    "no variables": ("MARKOV 0 0", 1, "without variables"),
    "negative count": (GOOD.replace("3\n2 2 2", "-3\n2 2 2"), 2, "whole number"),
    "count is no number": (GOOD.replace("3\n2 2 2", "three\n2 2 2"), 2, "whole number"),
    "count is a fraction": (GOOD.replace("3\n2 2 2", "3.0\n2 2 2"), 2, "whole number"),
    "count is huge": (GOOD.replace("3\n2 2 2", "999999999\n2 2 2"), 2, "ends before"),
    "count is beyond huge": (GOOD.replace("3\n2 2 2", "9" * 5000 + "\n2 2 2"), 2, "whole number"),
    "count in other digits": (GOOD.replace("3\n2 2 2", "٣\n2 2 2"), 2, "whole number"),
    "three states": (GOOD.replace("2 2 2", "2 3 2"), 11, "2 variables of 2 · 3 states, so its size is 6, not 4"),
    "one state": (GOOD.replace("2 2 2", "1 2 2"), 9, "so its size is 1, not 2"),
    "no state": (GOOD.replace("2 2 2", "0 2 2"), 3, "x1 has 0 states"),
    "too many states": (GOOD.replace("2 2 2", "99999 2 2"), 3, "x1 has 99999 states"),
    "one cardinality missing": (GOOD.replace("2 2 2", "2 2"), 6, "table 0 has no variables, so its size is 1, not 2"),
    "too many tables": (GOOD.replace("2\n3\n1 0", "2\n4\n1 0"), None, ""),
    "too few tables": (GOOD.replace("2\n3\n1 0", "2\n2\n1 0"), None, ""),
    "huge number of tables": (GOOD.replace("2\n3\n1 0", "2\n500000000\n1 0"), 4, "ends before all 500000000 tables"),
    "scope larger than the network": (GOOD.replace("2 0 1", "4 0 1"), 6, "has 4 variables, but the network has 3"),
    "huge scope": (GOOD.replace("2 0 1", "999999999 0 1"), 6, "variables, but"),
    "no such variable": (GOOD.replace("2 0 1", "2 0 3"), 6, "numbered 0 to 2"),
    "negative variable": (GOOD.replace("2 0 1", "2 0 -1"), 6, "whole number"),
    "a variable twice": (GOOD.replace("2 0 1", "2 1 1"), 6, "variable 1 twice"),
    "a variable missing": (GOOD.replace("2 0 1\n", "2 0\n"), None, ""),
    "wrong table size": (GOOD.replace("4\n 0.1", "3\n 0.1"), 11, "its size is 4, not 3"),
    "huge table size": (GOOD.replace("4\n 0.1", "999999999\n 0.1"), 11, "its size is 4"),
    "an entry missing": (GOOD.replace("0.1 0.9", "0.9"), None, ""),
    "an entry too many": (GOOD.replace("0.1 0.9", "0.1 0.9 0.9"), None, ""),
    "nan": (GOOD.replace("0.1 ", "nan "), 12, "is a number, not 'nan'"),
    "inf": (GOOD.replace("0.1 ", "inf "), 12, "is a number"),
    "out of range": (GOOD.replace("0.1 ", "1e999 "), 12, "out of the range"),
    "underflow": (GOOD.replace("0.1 ", "1e-999 "), 12, "out of the range"),
    "negative entry": (GOOD.replace("0.1 ", "-0.1 "), 12, "negative"),
    "entry is a word": (GOOD.replace("0.1 ", "x "), 12, "is a number"),
    "entry with underscore": (GOOD.replace("0.1 ", "0_1 "), 12, "is a number"),
    "entry with a comma": (GOOD.replace("0.1 ", "0,1 "), 12, "is a number"),
    "entry in hexadecimal": (GOOD.replace("0.1 ", "0x1 "), 12, "is a number"),
    "no probabilities": (
        GOOD.replace("0.1 ", "0.6 "),
        12,
        "the probabilities of 'x2' given x1=0 add up to 1.5: 0.5 more than 1 (a MARKOV",
    ),
    "extra word": (GOOD + "0.5\n", 15, "complete, but '0.5' follows"),
    "extra network": (GOOD + GOOD, 15, "complete, but 'BAYES' follows"),
    "truncated in a table": (GOOD[:-30], 13, "ends before all 8 entries of table 2"),
    "truncated in the scopes": (GOOD[:20], None, "ends before"),
    "a null byte": (GOOD.replace("0.1 ", "0.1\0 "), 12, "is a number"),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_damage_is_refused_with_the_line(kind: str, tmp_path: Path) -> None:
    text, line, message = DAMAGE[kind]
    path = tmp_path / "damaged.uai"
    path.write_text(text)
    with pytest.raises(FormatError) as caught:
        pgcc.load(path)
    assert "damaged.uai" in str(caught.value)
    assert message in str(caught.value)
    if line is not None:
        assert f", line {line}: " in str(caught.value)


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "damaged.uai"
    path.write_bytes(b"BAYES\n\xff\xfe")
    with pytest.raises(FormatError, match="not text"):
        pgcc.load(path)


def test_good_text_in_odd_clothes(tmp_path: Path) -> None:
    path = tmp_path / "good.uai"
    path.write_text(GOOD)
    expected = pgcc.load(path)
    for text in (
        GOOD.replace("\n", "\r\n"),
        " ".join(GOOD.split()),
        "\n\n" + GOOD.replace(" ", "\t\n"),
        "\ufeff" + GOOD,
        "# a network\n" + GOOD.replace("\n3\n", " # done\n3 #\n"),
    ):
        path.write_text(text, newline="")
        assert pgcc.load(path) == expected


@pytest.mark.slow
def test_mutated_files_never_raise_anything_else(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    path = tmp_path / "mutant.uai"
    words = GOOD.replace("BAYES", "MARKOV").split()
    odd = ["", "0", "2", "3", "-1", "1e100", "1e-100", "99999999", "nan", "x", "0.5", "BAYES", "MARKOV", "é", "٣"]
    refused = 0
    for _ in range(600):
        mutant = list(words)
        for _ in range(rng.integers(1, 4)):
            place = int(rng.integers(len(mutant)))
            match rng.integers(8):
                case 1:
                    del mutant[place]
                case 2:
                    mutant.insert(place, odd[rng.integers(len(odd))])
                case 3:
                    mutant = mutant[: place + 1]
                case _:
                    mutant[place] = odd[rng.integers(len(odd))]
        path.write_text("\n".join(mutant))
        try:
            circuit = pgcc.load(path)
        except FormatError:
            refused += 1
        else:
            assert circuit.facts.smooth
            n, tables = tables_of(path)
            weights = brute_force(n, tables)
            row = [1] + [-1] * (n - 1)
            assert pgcc.compile(circuit).prob([row])[0] == pytest.approx(marginal(weights, row), rel=1e-10)
    assert 300 < refused < 580


def test_names_are_given_by_relabel(tmp_path: Path) -> None:
    path = tmp_path / "good.uai"
    path.write_text(GOOD)
    with pytest.raises(FormatError, match=r"\.uai has no option names=; circuit\.relabel renames the variables$"):
        pgcc.load(path, names=["rain"])
    circuit = pgcc.load(path)
    assert circuit.relabel({"x1": "rain"}).variables == ("rain", *circuit.variables[1:])


def test_states_are_bounded_by_the_size_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "many.uai"
    path.write_text("MARKOV 2000 " + "10000 " * 2000 + "0")
    with pytest.raises(FormatError, match="the variables up to x7 have 70,000 states, far more than the file"):
        pgcc.load(path)
