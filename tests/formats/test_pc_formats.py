"""Circuits in the files of others (.psdd, .sdd, .nnf): right answers by independent evaluations, and damage refused."""

import itertools
import math
import random
from fractions import Fraction

import numpy as np
import pytest
from how_many import some
from real_data import DATA

import pgcc
from pgcc.errors import FormatError
from pgcc.formats import nnf, psdd, sdd, vtree
from pgcc.formats.weights import literal_weights
from pgcc.ir.node import postorder, product, var, weighted_sum

CIRCUITS = DATA / "circuits"
needs_data = pytest.mark.skipif(not CIRCUITS.is_dir(), reason=f"the circuits made by others are not at {CIRCUITS}")


def rows_of(name, part="test"):
    return np.loadtxt(DATA / "sets" / name / f"{name}.{part}.data", delimiter=",", dtype=np.int8)


def words_of(path):
    lines = (line.split() for line in path.read_text().splitlines())
    return [words for words in lines if words and words[0] not in ("c", "psdd", "sdd")]


def write(folder, name, text):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


# -- .psdd against an evaluation of the file's text -------------------------------------------------


def log_likelihoods(path, rows):
    """Bottom-up in log space, from the text alone; −1 is unobserved. Variable i is column i − 1."""
    value = {}
    with np.errstate(divide="ignore"):
        for words in words_of(path):
            key = int(words[1])
            if words[0] == "D":
                terms = [
                    value[int(p)] + value[int(s)] + float(w)
                    for p, s, w in zip(words[4::3], words[5::3], words[6::3], strict=True)
                ]
                value[key] = np.logaddexp.reduce(terms) if len(terms) > 1 else terms[0]
            else:
                column = rows[:, abs(int(words[3])) - 1]
                p = float(int(words[3]) > 0) if words[0] == "L" else math.exp(float(words[4]))
                value[key] = np.log(np.where(column < 0, 1.0, np.where(column == 1, p, 1 - p)))
    return value[key]


@pytest.mark.slow
@needs_data
@pytest.mark.parametrize(("name", "average"), [("nltcs", -6.0447644580), ("plants", -13.3542228965)])
def test_average_log_likelihood(name, average):
    circuit = pgcc.load(CIRCUITS / f"{name}.psdd")
    model, rows = pgcc.compile(circuit), rows_of(name)
    assert circuit.variables == tuple(f"x{i + 1}" for i in range(rows.shape[1]))
    assert model.logprob(rows).mean() == pytest.approx(average, abs=1e-9)
    hidden = np.where(np.random.default_rng(3).random(rows.shape) < 0.5, -1, rows)[: 2000 if name == "nltcs" else 40]
    expected = log_likelihoods(CIRCUITS / f"{name}.psdd", hidden)
    np.testing.assert_allclose(model.logprob(hidden), expected, rtol=0, atol=1e-9)


@pytest.mark.slow
@needs_data
@pytest.mark.parametrize("name", ["jester", "mnist", "nltcs.clt", "asia.uai", "little_4var"])
def test_other_psdds(name):
    path = CIRCUITS / f"{name}.psdd"
    circuit = pgcc.load(path)
    assert circuit.facts.smooth
    assert circuit.facts.decomposable
    assert pgcc.compile(circuit, normalize=False).prob({}) == pytest.approx(1, abs=1e-6 if "asia" in name else 1e-12)
    n = len(circuit.variables)
    rows = rows_of(name.split(".")[0])[:50] if name in ("jester", "nltcs.clt") else None
    rows = np.random.default_rng(0).integers(-1, 2, (50, n)) if rows is None else rows
    values = pgcc.compile(circuit, normalize=False).logprob(rows)
    np.testing.assert_allclose(values, log_likelihoods(path, rows), atol=1e-9)


@needs_data
def test_little_psdd_by_brute_force():
    model = pgcc.compile(pgcc.load(CIRCUITS / "little_4var.psdd"), normalize=False)
    rows = np.array(list(itertools.product([0, 1], repeat=4)))
    assert math.fsum(model.prob(rows)) == pytest.approx(1, abs=1e-12)
    assert model.prob({"x1": 1, "x2": 1, "x3": 1, "x4": 1}) == pytest.approx(0.1 * 0.2)


@needs_data
def test_the_psdd_of_asia_is_the_network_of_asia():
    # Variable i of the PSDD is variable i − 1 of the network, and "true" is its value 1.
    numbers = (CIRCUITS / "asia.uai").read_text().split()
    assert numbers[:2] == ["BAYES", "8"]
    at, scopes, tables = 11, [], []
    for _ in range(8):
        scopes.append([int(v) for v in numbers[at + 1 : at + 1 + int(numbers[at])]])
        at += 1 + int(numbers[at])
    for scope in scopes:
        tables.append(np.array(numbers[at + 1 : at + 1 + 2 ** len(scope)], float).reshape([2] * len(scope)))
        at += 1 + 2 ** len(scope)
    rows = np.array(list(itertools.product([0, 1], repeat=8)))
    joint = [math.prod(table[tuple(row[s])] for s, table in zip(scopes, tables, strict=True)) for row in rows]
    model = pgcc.compile(pgcc.load(CIRCUITS / "asia.uai.psdd"))
    np.testing.assert_allclose(model.prob(rows), joint, rtol=1e-4)  # the logs have six digits


PSDD = """c a comment
psdd 99
L 0 0 1
L 1 0 -1
T 2 2 2 -0.5
T 3 2 2 -0.25
D 4 1 2 0 2 -0.6931471805599453 1 3 -0.6931471805599453
L 5 4 3
D 6 3 1 4 5 0.0
"""
VTREE = "vtree 5\nL 0 1\nL 2 2\nI 1 0 2\nL 4 3\nI 3 1 4\n"


def test_psdd_of_special_numbers(tmp_path):
    text = PSDD.replace("0 2 -0.6931471805599453 1 3 -0.6931471805599453", "0 2 0.0000001 1 3 -inf")
    model = pgcc.compile(psdd.read(write(tmp_path, "a.psdd", text)))
    assert model.prob({"x1": 1}) == 1.0
    assert model.prob({"x2": 1}) == pytest.approx(math.exp(-0.5))
    tiny = PSDD.replace("0 2 -0.6931471805599453 1 3 -0.6931471805599453", "0 2 -1500.5 1 3 0")
    model = pgcc.compile(psdd.read(write(tmp_path, "b.psdd", tiny)))
    assert model.logprob({"x1": 1}) == pytest.approx(-1500.5, abs=1e-9)
    two = PSDD.replace("T 2 2 2 -0.5", f"T 2 2 2 {math.log1p(-math.exp(-0.5))} -0.5")
    both = [psdd.read(write(tmp_path, "c.psdd", t)) for t in (two, PSDD)]
    assert both[0] == both[1]
    certain = PSDD.replace("T 2 2 2 -0.5", "T 2 2 2 0").replace("T 3 2 2 -0.25", "T 3 2 2 -inf")
    model = pgcc.compile(psdd.read(write(tmp_path, "d.psdd", certain)))
    assert model.prob([[1, 0, -1], [0, 1, -1]]).tolist() == [0.0, 0.0]
    assert model.prob({"x1": 0, "x2": 0}) == pytest.approx(0.5)


def by_nodes(path):
    """The root of a PSDD, by the definition of its lines, of interned nodes."""
    nodes = {}
    for words in words_of(path):
        if words[0] == "D":
            logs = [min(float(word), 0.0) for word in words[6::3]]
            pairs = zip(words[4::3], words[5::3], strict=True)
            elements = [product((nodes[int(prime)], nodes[int(sub)])) for prime, sub in pairs]
            node = elements[0] if logs == [0.0] else weighted_sum(map(math.exp, logs), elements)
        else:
            x, log = var(f"x{abs(int(words[3]))}"), float(words[-1])
            bar = var(x.name, complement=True)
            if words[0] == "L":
                node = x if log > 0 else bar
            else:
                node = weighted_sum((math.exp(log), -math.expm1(log)), (x, bar))
        nodes[int(words[1])] = node
    return node


@needs_data
@pytest.mark.parametrize("name", ["little_4var", "nltcs", "nltcs.clt", "mnist"])
def test_a_psdd_is_the_circuit_of_its_lines(name):
    path = CIRCUITS / f"{name}.psdd"
    circuit = psdd.read(path)
    assert len(circuit.scopes.of) == len(circuit.order)  # made before any node is
    assert circuit.root is by_nodes(path)
    assert circuit.order == postorder(circuit.root)


@pytest.mark.parametrize("seed", range(some(30)))
def test_random_psdds_are_the_circuits_of_their_lines(tmp_path, seed):
    rng = random.Random(seed)
    n = rng.randrange(2, 6)
    lines, below = [], []  # below: the ids of nodes over the variables 1..i
    for i in range(1, n + 1):
        first = len(lines)
        logs = [math.log(rng.choice([0.25, 0.5, 0.3])) for _ in range(2)]
        lines += [f"L {first} 0 {i}", f"L {first + 1} 0 -{i}", *(f"T {first + 2 + k} 0 {i} {logs[k]}" for k in (0, 1))]
        own, before = list(range(first, first + 4)), below
        below = list(own)
        if before:
            below = []
            for _ in range(rng.randrange(1, 5)):  # some of them are equal
                count = rng.randrange(1, 4)
                weight = math.log(1 / count)
                elements = [f"{rng.choice(own[:2])} {rng.choice(before)} {weight}" for _ in range(count)]
                below.append(len(lines))
                lines.append(f"D {len(lines)} 0 {count} " + " ".join(elements))
    path = write(tmp_path, "a.psdd", "\n".join(["psdd 1", *lines]) + "\n")
    circuit = psdd.read(path)
    assert circuit.root is by_nodes(path)
    assert circuit.order == postorder(circuit.root)


# -- .vtree ---------------------------------------------------------------------------------------


def test_vtree_beside_and_given(tmp_path):
    path = write(tmp_path, "a.psdd", PSDD)
    tree = write(tmp_path, "good.vtree", VTREE)
    assert psdd.read(path) == psdd.read(path, vtree=tree) == psdd.read(path, vtree=vtree.read(tree))
    swapped = VTREE.replace("L 0 1", "L 0 2").replace("L 2 2", "L 2 1")
    write(tmp_path, "a.vtree", swapped)
    with pytest.raises(FormatError, match=r"a\.psdd, line 3: variable 1 does not fit .*a\.vtree: 0 is the leaf of var"):
        pgcc.load(path)
    with pytest.raises(FormatError, match=r"vtree=False reads the circuit without it"):
        pgcc.load(path)
    assert pgcc.load(path, vtree=False) == psdd.read(path, vtree=tree)
    logic = write(tmp_path, "b.sdd", "sdd 3\nL 1 0 1\nL 2 2 2\nD 0 1 1 1 2\n")
    write(tmp_path, "b.vtree", swapped)
    with pytest.raises(FormatError, match=r"b\.vtree.*vtree=False"):
        pgcc.load(logic)
    assert pgcc.load(logic, vtree=False) == pgcc.parse("x1*x2")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("I 3 1 4", "I 3 4 1", "prime '4' does not sit at node 4"),
        ("I 1 0 2", "I 1 2 0", "does not sit at node 2"),
        ("L 4 3", "L 7 3", "is on no line before"),
        ("I 3 1 4", "I 3 1 1", "two parents"),
        ("I 3 1 4\n", "", "one root"),
        ("L 4 3", "L 4 2", "two leaves"),
        ("L 4 3", "L 4 -3", "not '-3'"),
        ("L 4 3", "L 2 3", "twice"),
        ("L 4 3", "L 4", "cut off"),
        ("L 4 3", "Q 4 3", "starts with L or I"),
        ("L 4 3", "L 4 3 3", "too long"),
        ("vtree 5", "vtree", "cut off"),
        ("vtree 5", "psdd 5", "first line"),
        ("I 3 1 4", "I 9 1 4", "has no node 3"),
        ("L 4 3", "L 4 0", "a literal is ±1, ±2, …, not 0"),
        ("L 4 3", "L x 3", "whole number"),
    ],
)
def test_damaged_vtrees(tmp_path, old, new, message):
    assert old in VTREE
    path = write(tmp_path, "a.psdd", PSDD)
    write(tmp_path, "a.vtree", VTREE.replace(old, new))
    with pytest.raises(FormatError, match=message):
        psdd.read(path)


# -- .sdd and .nnf: counts --------------------------------------------------------------------------


def sdd_count(path, pair):
    """The weighted model count of an .sdd over the variables it mentions, from its text; pair(v) = (w(v), w(−v))."""
    value, scope = {}, {}

    def free(variables):
        return math.prod(sum(pair(v)) for v in variables)

    for words in words_of(path):
        key = int(words[1])
        if words[0] in "FT":
            value[key], scope[key] = int(words[0] == "T"), frozenset()
        elif words[0] == "L":
            v = int(words[3])
            value[key], scope[key] = pair(abs(v))[v < 0], frozenset([abs(v)])
        else:
            elements = [(int(p), int(s)) for p, s in zip(words[4::2], words[5::2], strict=True)]
            scope[key] = frozenset().union(*(scope[p] | scope[s] for p, s in elements))
            value[key] = sum(value[p] * value[s] * free(scope[key] - scope[p] - scope[s]) for p, s in elements)
    everything = frozenset(abs(int(words[3])) for words in words_of(path) if words[0] == "L")
    return value[key] * free(everything - scope[key])


@needs_data
def test_random_sdd_counts():
    path = CIRCUITS / "random.sdd"
    circuit = pgcc.load(path)
    assert circuit.variables == tuple(f"x{i}" for i in range(1, 31))
    model = pgcc.compile(circuit, normalize=False)
    count = sdd_count(path, lambda v: (1, 1))
    assert model.prob({}, exact=True) == count
    assert model.prob({}) == pytest.approx(count, rel=1e-12)
    for seed in range(4):
        rng = random.Random(seed)
        pairs = {v: (Fraction(rng.randint(0, 9), 7), Fraction(rng.randint(0, 9), 11)) for v in range(1, 31)}
        weights = {sign * v: pairs[v][sign < 0] for v in pairs for sign in (1, -1)}
        weighted = pgcc.compile(sdd.read(path, weights=weights), normalize=False)
        expected = sdd_count(path, pairs.__getitem__)
        assert weighted.prob({}, exact=True) == expected
        assert weighted.prob({}) == pytest.approx(float(expected), rel=1e-12)


class Writer:
    """Shannon expansions of Boolean functions, as the text of .sdd, c2d and d4. Functions are sets of models."""

    def __init__(self):
        self.sdd, self.c2d, self.d4, self.edges = ["F 0", "T 1"], ["O 0 0", "A 0"], ["f 1 0", "t 2 0"], []
        self.literal = {}

    def c2d_literal(self, literal):
        if literal not in self.literal:
            self.c2d.append(f"L {literal}")
            self.literal[literal] = len(self.c2d) - 1
        return self.literal[literal]

    def expand(self, models, variables):
        """(sdd id, c2d id, d4 id) of a function; a constant is written as one, so that the text is not smooth."""
        if len(models) in (0, 2 ** len(variables)):
            constant = int(bool(models))
            return constant, constant, constant + 1
        x, rest = variables[0], variables[1:]
        high, low = (self.expand({m[1:] for m in models if m[0] == bit}, rest) for bit in (1, 0))
        self.sdd += [f"L {len(self.sdd)} 0 {x}", f"L {len(self.sdd) + 1} 0 -{x}"]
        top = len(self.sdd)
        self.sdd.append(f"D {top} 0 2 {top - 2} {high[0]} {top - 1} {low[0]}")
        ands = []
        for literal, below in ((x, high), (-x, low)):
            self.c2d.append(f"A 2 {self.c2d_literal(literal)} {below[1]}")
            ands.append(len(self.c2d) - 1)
        self.c2d.append(f"O {x} 2 {ands[0]} {ands[1]}")
        self.d4.append(f"o {len(self.d4) + 1} 0")
        self.edges += [f"{len(self.d4)} {high[2]} {x} 0", f"{len(self.d4)} {low[2]} {-x} 0"]
        return top, len(self.c2d) - 1, len(self.d4)

    def conjoin(self, a, b):
        self.sdd.append(f"D {len(self.sdd)} 0 1 {a[0]} {b[0]}")
        self.c2d.append(f"A 2 {a[1]} {b[1]}")
        self.d4.append(f"a {len(self.d4) + 1} 0")
        self.edges += [f"{len(self.d4)} {a[2]} 0", f"{len(self.d4)} {b[2]} 0"]

    def texts(self, n):
        d4 = [*reversed(self.d4), *self.edges]  # the root is first, and everything is used before it is defined
        count = sum(int(line.split()[1 if line[0] == "A" else 2]) for line in self.c2d if line[0] in "AO")
        return {
            "a.sdd": "\n".join([f"sdd {len(self.sdd)}", *self.sdd]),
            "a.nnf": "\n".join([f"nnf {len(self.c2d)} {count} {n}", *self.c2d]),
            "a.ddnnf": "\n".join(["c d4", *d4]),
        }


@pytest.mark.parametrize("seed", range(12))
def test_small_counts_by_brute_force(tmp_path, seed):
    rng = random.Random(seed)
    halves = [list(range(1, 1 + rng.randint(1, 4)))]
    halves.append(list(range(len(halves[0]) + 1, len(halves[0]) + 1 + rng.randint(1, 4))))
    chance = rng.choice([0.1, 0.5, 0.9, 1.0])
    functions = [{m for m in itertools.product((0, 1), repeat=len(h)) if rng.random() < chance} for h in halves]
    functions[1].add((1,) * len(halves[1]))  # the last variable is mentioned, or everything is a model
    n = len(halves[0]) + len(halves[1])
    writer = Writer()
    writer.conjoin(*(writer.expand(f, h) for f, h in zip(functions, halves, strict=True)))
    weights = {sign * v: Fraction(rng.randint(0, 9), 10) for v in range(1, n + 1) for sign in (1, -1)}
    models = [a + b for a in functions[0] for b in functions[1]]
    weigh = {m: math.prod(weights[v if bit else -v] for v, bit in enumerate(m, 1)) for m in models}
    rows = np.array(list(itertools.product((0, 1), repeat=n)))
    for name, text in writer.texts(n).items():
        path = write(tmp_path, name, text)
        mentions = [abs(int(line.split()[3])) for line in text.splitlines() if name == "a.sdd" and line[0] == "L"]
        if name == "a.sdd" and max(mentions, default=0) < n:
            continue  # without a vtree, an .sdd does not say that it has more variables
        more = {"variables": n} if name != "a.sdd" else {}
        read = sdd.read if name == "a.sdd" else nnf.read
        model = pgcc.compile(read(path, **more), normalize=False)
        assert model.prob({}, exact=True) == len(models)
        np.testing.assert_array_equal(model.prob(rows), [tuple(row) in weigh for row in rows.tolist()])
        model = pgcc.compile(read(path, weights=weights, **more), normalize=False)
        assert model.prob({}, exact=True) == sum(weigh.values())
        np.testing.assert_allclose(model.prob(rows), [float(weigh.get(tuple(row), 0)) for row in rows.tolist()])


def test_constants(tmp_path):
    for text, count in [
        ("nnf 1 0 3\nA 0\n", 8),
        ("nnf 1 0 3\nO 0 0\n", 0),
        ("nnf 1 0 0\nA 0\n", 1),
        ("nnf 1 0 2\nL -2", 2),
    ]:
        circuit = nnf.read(write(tmp_path, "a.nnf", text))
        assert pgcc.compile(circuit, normalize=False).prob({}, exact=True) == count
    for text, count in [("o 1 0\nt 2 0\n1 2 0", 8), ("f 1 0", 0), ("t 1 0", 8), ("a 1 0", 8), ("o 1 0", 0)]:
        circuit = nnf.read(write(tmp_path, "a.nnf", text), variables=3)
        assert pgcc.compile(circuit, normalize=False).prob({}, exact=True) == count
    for text, count in [("sdd 1\nT 0", 8), ("sdd 1\nF 0", 0), ("sdd 1\nL 0 0 1", 4)]:
        path, tree = write(tmp_path, "a.sdd", text), write(tmp_path, "a.vtree", VTREE)
        assert pgcc.compile(sdd.read(path), normalize=False).prob({}, exact=True) == count
        tree.unlink()


def test_weight_files(tmp_path):
    path = write(tmp_path, "a.nnf", "nnf 3 2 2\nL 1\nL -1\nO 1 2 0 1\n")
    for text in ("1 0.25\n-1 3/4\n", "c p weight 1 0.25 0\nc p weight -1 75e-2 0\nc other\n"):
        weights = write(tmp_path, "a.weights", text)
        assert literal_weights(weights) == {1: Fraction(1, 4), -1: Fraction(3, 4)}
        assert pgcc.compile(nnf.read(path, weights=weights), normalize=False).prob({"x1": 1}, exact=True) == Fraction(
            1, 2
        )


@pytest.mark.parametrize(
    "weights",
    [
        "1 0.5",
        "1 x\n-1 1",
        "1 1e999999999\n-1 1",
        "1 nan\n-1 1",
        "0 1",
        "1 1\n1 1\n-1 1",
        "1 1 1",
        "9 1\n-9 1",
        "1 1/0\n-1 1",
        "1 1e-99999999999999999999\n-1 1",
        "w 1 0.5",
        "c p weight 1",
        "1_0 1\n-10 1",
        b"\xff",
    ],
)
def test_damaged_weights(tmp_path, weights):
    path = write(tmp_path, "a.nnf", "nnf 3 2 2\nL 1\nL -1\nO 1 2 0 1\n")
    with pytest.raises(FormatError):
        nnf.read(path, weights=write(tmp_path, "a.weights", weights))
    for given in ({1: math.nan, -1: 1}, {"x1": 1}, {True: 1}, {0: 1}, {1: 1}, {1: "a", -1: 1}, {5: 1, -5: 1}):
        with pytest.raises(FormatError):
            nnf.read(path, weights=given)


# -- damage -----------------------------------------------------------------------------------------

SDD = """c a comment
sdd 8
L 1 0 1
L 2 0 -1
T 3
F 4
L 5 2 2
D 6 1 2 1 3 2 5
D 0 1 2 1 6 2 4
""".replace("D 0 1 2 1 6 2 4", "L 7 4 3\nD 0 3 1 6 7")
C2D = "c a comment\nnnf 6 6 3\nL 1\nL -1\nL 2\nA 2 1 2\nO 1 2 0 3\nA 1 4\n"
D4 = "o 1 0\na 2 0\nt 3 0\no 4 0\n1 2 1 0\n1 3 -1 2 0\n2 4 3 0\n4 3 4 0\n4 3 -4 0\n"
HUGE = "99999999999999999999"

# Name: what is replaced by what. Every one of these is an error.
DAMAGE = {
    "psdd": (
        PSDD,
        {
            "no header": ("psdd 99\n", ""),
            "another header": ("psdd 99", "sdd 99"),
            "header without a count": ("psdd 99", "psdd"),
            "count is a word": ("psdd 99", "psdd many"),
            "count is negative": ("psdd 99", "psdd -1"),
            "header too long": ("psdd 99", "psdd 99 1"),
            "forward reference": ("D 4 1 2 0 2", "D 4 1 2 0 5"),
            "itself": ("D 6 3 1 4 5", "D 6 3 1 6 5"),
            "no such node": ("D 6 3 1 4 5", "D 6 3 1 4 77"),
            "huge id as a child": ("D 6 3 1 4 5", f"D 6 3 1 4 {HUGE}"),
            "negative child": ("D 6 3 1 4 5", "D 6 3 1 4 -5"),
            "child is a word": ("D 6 3 1 4 5", "D 6 3 1 4 x"),
            "child is a float": ("D 6 3 1 4 5", "D 6 3 1 4 5.0"),
            "duplicate id": ("L 5 4 3", "L 4 4 3"),
            "negative id": ("L 0 0 1", "L -7 0 1"),
            "id is a word": ("L 5 4 3", "L five 4 3"),
            "unknown letter": ("L 5 4 3", "X 5 4 3"),
            "small letter": ("L 5 4 3", "l 5 4 3"),
            "literal 0": ("L 5 4 3", "L 5 4 0"),
            "literal is a word": ("L 5 4 3", "L 5 4 x3"),
            "huge literal": ("L 5 4 3", f"L 5 4 {HUGE}"),
            "huge negative literal": ("L 5 4 3", f"L 5 4 -{HUGE}"),
            "literal missing": ("L 5 4 3", "L 5 4"),
            "literal line too long": ("L 5 4 3", "L 5 4 3 3"),
            "vtree id is a word": ("L 5 4 3", "L 5 v 3"),
            "T without a number": ("T 2 2 2 -0.5", "T 2 2 2"),
            "T with a word": ("T 2 2 2 -0.5", "T 2 2 2 half"),
            "T of nan": ("T 2 2 2 -0.5", "T 2 2 2 nan"),
            "T of p > 1": ("T 2 2 2 -0.5", "T 2 2 2 0.5"),
            "T of inf": ("T 2 2 2 -0.5", "T 2 2 2 inf"),
            "T of a negative literal": ("T 2 2 2 -0.5", "T 2 2 -2 -0.5"),
            "T of two that do not sum to 1": ("T 2 2 2 -0.5", "T 2 2 2 -0.5 -0.5"),
            "T too long": ("T 2 2 2 -0.5", "T 2 2 2 -0.5 -0.5 -0.5"),
            "weight is nan": ("5 0.0", "5 nan"),
            "weight is inf": ("5 0.0", "5 inf"),
            "weight above 1": ("5 0.0", "5 0.1"),
            "weights that do not sum to 1": ("5 0.0", "5 -1"),
            "weight 0 alone": ("5 0.0", "5 -inf"),
            "weight too small to be meant": ("-0.6931471805599453 1", "-1e10 1"),
            "weight is a word": ("5 0.0", "5 0.0.0"),
            "weight with a comma": ("5 0.0", "5 0,0"),
            "underscore": ("5 0.0", "5 0_0"),
            "digits that are not ASCII": ("L 5 4 3", "L 5 4 ٣"),
            "no elements": ("D 6 3 1 4 5 0.0", "D 6 3 0"),
            "negative elements": ("D 6 3 1", "D 6 3 -1"),
            "too many elements claimed": ("D 6 3 1", "D 6 3 2"),
            "enormous count of elements": ("D 6 3 1", f"D 6 3 {HUGE}"),
            "too few elements claimed": ("D 4 1 2", "D 4 1 1"),
            "count of 5,000 digits": ("D 6 3 1", "D 6 3 " + "1" * 5000),
            "element cut off": ("1 3 -0.6931471805599453", "1 3"),
            "decision of two words": ("D 6 3 1 4 5 0.0", "D 6"),
            "letter alone": ("D 6 3 1 4 5 0.0", "D"),
            "a variable on both sides": ("D 6 3 1 4 5", "D 6 3 1 4 0"),
            "elements of different variables": ("D 4 1 2 0 2", "D 4 1 2 0 1"),
            "last line lost": ("D 6 3 1 4 5 0.0\n", ""),
            "last decision lost, next to last kept": ("D 6 3 1 4 5 0.0\n", "L 9 4 3\n"),
            "only a header": (PSDD, "psdd 99\n"),
            "empty": (PSDD, ""),
            "only comments": (PSDD, "c psdd 1\nc\n"),
            "null bytes": ("L 5 4 3", "L 5\0 4 3"),
        },
    ),
    "sdd": (
        SDD,
        {
            "no header": ("sdd 8\n", ""),
            "another header": ("sdd 8", "psdd 8"),
            "header without a count": ("sdd 8", "sdd"),
            "count is a word": ("sdd 8", "sdd x"),
            "count is negative": ("sdd 8", "sdd -8"),
            "header too long": ("sdd 8", "sdd 8 7"),
            "forward reference": ("1 3 2 5", "1 7 2 5"),
            "itself": ("D 0 3 1 6 7", "D 0 3 1 0 7"),
            "no such node": ("D 0 3 1 6 7", "D 0 3 1 6 8"),
            "huge id as a child": ("D 0 3 1 6 7", f"D 0 3 1 6 {HUGE}"),
            "negative child": ("D 0 3 1 6 7", "D 0 3 1 6 -7"),
            "child is a word": ("D 0 3 1 6 7", "D 0 3 1 6 T"),
            "duplicate literal id": ("L 2 0 -1", "L 1 0 -1"),
            "duplicate true id": ("T 3", "T 1"),
            "duplicate decision id": ("D 0 3 1 6 7", "D 6 3 1 6 7"),
            "negative id": ("L 7 4 3", "L -7 4 3"),
            "id is a float": ("L 7 4 3", "L 7.0 4 3"),
            "unknown letter": ("L 7 4 3", "N 7 4 3"),
            "literal 0": ("L 7 4 3", "L 7 4 0"),
            "literal is a word": ("L 7 4 3", "L 7 4 a"),
            "huge literal": ("L 7 4 3", f"L 7 4 {HUGE}"),
            "literal missing": ("L 7 4 3", "L 7 4"),
            "literal line too long": ("L 7 4 3", "L 7 4 3 1"),
            "vtree id is a word": ("L 7 4 3", "L 7 v 3"),
            "vtree id is negative": ("L 7 4 3", "L 7 -4 3"),
            "true without an id": ("T 3", "T"),
            "true too long": ("T 3", "T 3 0"),
            "false is a word": ("F 4", "F false"),
            "no elements": ("D 0 3 1 6 7", "D 0 3 0"),
            "negative elements": ("D 0 3 1", "D 0 3 -1"),
            "too many elements claimed": ("D 0 3 1", "D 0 3 2"),
            "enormous count of elements": ("D 0 3 1", f"D 0 3 {HUGE}"),
            "too few elements claimed": ("D 6 1 2", "D 6 1 1"),
            "element cut off": ("1 3 2 5", "1 3 2"),
            "decision of two words": ("D 0 3 1 6 7", "D 0"),
            "letter alone": ("D 0 3 1 6 7", "D"),
            "a variable on both sides": ("D 0 3 1 6 7", "D 0 3 1 6 5"),
            "the same element twice": ("1 3 2 5", "2 5 2 5"),
            "underscore": ("L 7 4 3", "L 7 4 3_0"),
            "digits that are not ASCII": ("L 7 4 3", "L 7 4 ٣"),
            "cut off at a line": ("L 7 4 3\nD 0 3 1 6 7", "L 8 4 3"),
            "only a header": (SDD, "sdd 8\n"),
            "empty": (SDD, ""),
            "only comments": (SDD, "c\n"),
            "null bytes": ("L 7 4 3", "L 7 4\0 3"),
        },
    ),
    "nnf": (
        C2D,
        {
            "header too short": ("nnf 6 6 3", "nnf 6 6"),
            "header too long": ("nnf 6 6 3", "nnf 6 6 3 3"),
            "no header": ("nnf 6 6 3\n", ""),
            "count is a word": ("nnf 6 6 3", "nnf six 6 3"),
            "edges are a word": ("nnf 6 6 3", "nnf 6 six 3"),
            "negative variables": ("nnf 6 6 3", "nnf 6 6 -3"),
            "enormous variables": ("nnf 6 6 3", f"nnf 6 6 {HUGE}"),
            "many variables": ("nnf 6 6 3", "nnf 6 6 99999999"),
            "too few variables": ("nnf 6 6 3", "nnf 6 6 1"),
            "more nodes claimed": ("nnf 6 6 3", "nnf 7 6 3"),
            "fewer nodes claimed": ("nnf 6 6 3", "nnf 5 6 3"),
            "enormous nodes": ("nnf 6 6 3", f"nnf {HUGE} 6 3"),
            "literal 0": ("L 2", "L 0"),
            "literal is a word": ("L 2", "L x"),
            "literal is past the variables": ("L 2", "L 4"),
            "huge literal": ("L 2", f"L {HUGE}"),
            "literal missing": ("L 2", "L"),
            "literal line too long": ("L 2", "L 2 3"),
            "unknown letter": ("L 2", "X 2"),
            "forward reference": ("A 2 1 2", "A 2 1 4"),
            "itself": ("A 1 4", "A 1 5"),
            "no such node": ("A 1 4", "A 1 44"),
            "negative child": ("A 1 4", "A 1 -1"),
            "child is a word": ("A 1 4", "A 1 b"),
            "count of children too large": ("A 1 4", "A 2 4"),
            "count of children too small": ("A 2 1 2", "A 1 1 2"),
            "enormous count of children": ("A 1 4", f"A {HUGE} 4"),
            "negative count of children": ("A 1 4", "A -1 4"),
            "and without a count": ("A 1 4", "A"),
            "or without a count": ("O 1 2 0 3", "O 1"),
            "or alone": ("O 1 2 0 3", "O"),
            "or decides a word": ("O 1 2 0 3", "O x 2 0 3"),
            "or decides no variable of the header": ("O 1 2 0 3", "O 9 2 0 3"),
            "or decides a negative variable": ("O 1 2 0 3", "O -1 2 0 3"),
            "a variable on both sides": ("A 2 1 2", "A 2 1 0"),
            "a literal twice": ("A 2 1 2", "A 2 1 1"),
            "or of the same child twice": ("O 1 2 0 3", "O 1 2 3 3"),
            "last line lost": ("A 1 4\n", ""),
            "only a header": (C2D, "nnf 6 6 3\n"),
            "only an honest header": (C2D, "nnf 0 0 3\n"),
            "empty": (C2D, ""),
            "only comments": (C2D, "c\n"),
            "underscore": ("L 2", "L 0_2"),
            "digits that are not ASCII": ("L 2", "L ٢"),
            "null bytes": ("L 2", "L 2\0"),
        },
    ),
    "ddnnf": (
        D4,
        {
            "node without 0": ("a 2 0", "a 2"),
            "node with another end": ("a 2 0", "a 2 1"),
            "node too long": ("a 2 0", "a 2 0 0"),
            "node alone": ("a 2 0", "a"),
            "node id 0": ("a 2 0", "a 0 0"),
            "node id is a word": ("a 2 0", "a x 0"),
            "node id is negative": ("a 2 0", "a -2 0"),
            "duplicate id": ("a 2 0", "a 1 0"),
            "unknown letter": ("a 2 0", "x 2 0"),
            "capital letter": ("a 2 0", "A 2 0"),
            "node lost": ("a 2 0\n", ""),
            "true lost": ("t 3 0\n", ""),
            "edge to nowhere": ("1 2 1 0", "1 9 1 0"),
            "edge from nowhere": ("1 2 1 0", "9 2 1 0"),
            "edge to a huge id": ("1 2 1 0", f"1 {HUGE} 1 0"),
            "edge to 0": ("1 2 1 0", "1 0 1 0"),
            "edge to a negative": ("1 2 1 0", "1 -2 1 0"),
            "edge of a word": ("1 2 1 0", "1 two 1 0"),
            "edge without its end": ("1 2 1 0", "1 2 1"),
            "edge of one word": ("1 2 1 0", "1"),
            "edge of two words": ("1 2 1 0", "1 2"),
            "edge with a 0 inside": ("1 3 -1 2 0", "1 3 0 2 0"),
            "literal is a word": ("1 2 1 0", "1 2 x 0"),
            "literal is a float": ("1 2 1 0", "1 2 1.0 0"),
            "huge literal": ("1 2 1 0", f"1 2 {HUGE} 0"),
            "huge negative literal": ("1 2 1 0", f"1 2 -{HUGE} 0"),
            "many variables": ("1 2 1 0", "1 2 99999999 0"),
            "cycle of one": ("2 4 3 0", "2 2 3 0"),
            "cycle of two": ("4 3 4 0", "4 2 4 0"),
            "cycle to the root": ("4 3 4 0", "4 1 4 0"),
            "true with a child": ("4 3 4 0", "3 4 4 0"),
            "literal twice on an edge": ("1 3 -1 2 0", "1 3 -1 -1 0"),
            "the same edge twice": ("4 3 -4 0", "4 3 4 0"),
            "literal and its negation": ("1 3 -1 2 0", "1 3 -1 1 0"),
            "a variable on both sides": ("2 4 3 0", "2 4 4 0"),
            "a variable decided twice": ("2 4 3 0", "2 4 1 0"),
            "only edges": (D4, "1 2 0\n"),
            "empty": (D4, ""),
            "only comments": (D4, "c\n"),
            "underscore": ("1 2 1 0", "1 2 1_0 0"),
            "digits that are not ASCII": ("1 2 1 0", "1 2 ١ 0"),
            "null bytes": ("1 2 1 0", "1 2 1\0 0"),
        },
    ),
}


def test_at_least_thirty_kinds_of_damage():
    assert all(len(kinds) >= 30 for _, kinds in DAMAGE.values())


@pytest.mark.parametrize("extension", DAMAGE)
def test_the_undamaged_text(tmp_path, extension):
    circuit = pgcc.load(write(tmp_path, f"a.{extension}", DAMAGE[extension][0]))
    assert circuit.facts.smooth
    total = pgcc.compile(circuit, normalize=False).prob({}, exact=True)
    assert float(total) == pytest.approx({"psdd": 1.0, "sdd": 3, "nnf": 6, "ddnnf": 8}[extension])


@pytest.mark.parametrize(("extension", "kind"), [(e, kind) for e, (_, kinds) in DAMAGE.items() for kind in kinds])
def test_damage(tmp_path, extension, kind):
    text, (old, new) = DAMAGE[extension][0], DAMAGE[extension][1][kind]
    assert old in text
    path = write(tmp_path, f"a.{extension}", text.replace(old, new))
    with pytest.raises(FormatError) as caught:
        pgcc.load(path)
    assert str(path) in str(caught.value)
    whole_file = ("empty", "only comments", "too few variables")
    assert kind in whole_file or f"{path}, line " in str(caught.value), str(caught.value)


@pytest.mark.parametrize("extension", DAMAGE)
def test_bytes_that_are_not_text(tmp_path, extension):
    data = DAMAGE[extension][0].encode()
    for damaged in (
        b"\xff\xfe" + data,
        data.replace(b"3", b"\xe9", 1),
        data.decode().encode("utf-16"),
        bytes(range(256)),
    ):
        with pytest.raises(FormatError):
            pgcc.load(write(tmp_path, f"a.{extension}", damaged))
    expected = pgcc.load(write(tmp_path, f"a.{extension}", data))
    for harmless in (b"\xef\xbb\xbf" + data, data.replace(b"\n", b"\r\n"), data.replace(b"\n", b" \n\n"), data[:-1]):
        assert pgcc.load(write(tmp_path, f"a.{extension}", harmless)) == expected


WORDS = [b"0", b"1", b"-1", b"nan", b"-inf", b"1e308", HUGE.encode()]


def mutated(rng, data):
    """A few random edits of bytes, words and lines."""
    for _ in range(rng.randint(1, 3)):
        at, other = rng.randrange(len(data) + 1), rng.randrange(len(data) + 1)
        lines = data.split(b"\n")
        i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
        match rng.randrange(7):
            case 0:
                data = data[:at]
            case 1:
                data = data[:at] + bytes([rng.choice(b"0123456789 -.LTDFAOatofe\n\xff\0_")]) + data[at + 1 :]
            case 2:
                data = (
                    data[: min(at, other)] + data[max(at, other) :]
                    if rng.random() < 0.3
                    else data[:at] + data[at + 1 :]
                )
            case 3:
                lines[i], lines[j] = lines[j], lines[i]
                data = b"\n".join(lines)
            case 4:
                lines.insert(i, lines[j])
                data = b"\n".join(lines)
            case 5:
                del lines[i]
                data = b"\n".join(lines)
            case _:
                words = data.split(b" ")
                words[rng.randrange(len(words))] = rng.choice(WORDS)
                data = b" ".join(words)
    return data


@pytest.mark.parametrize("extension", DAMAGE)
def test_fuzz(tmp_path, extension):
    rng = random.Random(2021)
    outcomes = {"answer": 0, "error": 0}
    for _ in range(600):
        data = mutated(rng, DAMAGE[extension][0].encode())
        path = write(tmp_path, f"a.{extension}", data)
        try:
            circuit = pgcc.load(path)
        except FormatError as error:
            outcomes["error"] += str(path) in str(error)
        else:
            assert circuit.facts.smooth, data
            assert circuit.facts.decomposable, data
            outcomes["answer"] += 1
    assert sum(outcomes.values()) == 600, outcomes  # every error names the file
    assert min(outcomes.values()) > 10, outcomes


@needs_data
@pytest.mark.parametrize("name", ["little_4var.psdd", "asia.uai.psdd", "nltcs.clt.psdd", "random.sdd"])
def test_files_cut_off_at_a_line(tmp_path, name):
    lines = (CIRCUITS / name).read_bytes().rstrip().split(b"\n")
    for keep in range(len(lines) // 2, len(lines), 1 if len(lines) < 100 else 7):
        with pytest.raises(FormatError):
            pgcc.load(write(tmp_path, name, b"\n".join(lines[:keep])))


@pytest.mark.slow
@needs_data
def test_deep_circuits(tmp_path):
    n = 20_000
    lines = [f"psdd {4 * n}", "T 1 0 1 -0.5"]
    for i in range(2, n + 1):
        lines += [f"T {2 * i} 0 {i} -0.5", f"D {2 * i + 1} 0 1 {2 * i} {2 * i - 1 if i > 2 else 1} 0.0"]
    circuit = pgcc.load(write(tmp_path, "deep.psdd", "\n".join(lines)))
    assert len(circuit.variables) == n
    assert pgcc.compile(circuit).logprob(np.ones((1, n), np.int8))[0] == pytest.approx(-0.5 * n)
