"""Rules of the house: kernels take few arguments and run without a compiler; no dispatch takes a new operation for
another one."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import pgcc
from pgcc.kernels import policy, simd
from pgcc.kernels.policy import choose_tier, kernel

ROOT = Path(pgcc.__file__).parent
MOST_ARGUMENTS = 10
DECORATORS = {name for name in vars(policy) if name.endswith("kernel")}


def kernels() -> Iterator[tuple[str, ast.FunctionDef]]:
    """(module:function, definition) of everything that is compiled."""
    for path in sorted(ROOT.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef) and DECORATORS & {ast.unparse(d) for d in node.decorator_list}:
                yield f"{path.relative_to(ROOT)}:{node.name}", node


def test_kernels_take_few_arguments() -> None:
    """Named tuples, not twenty positional arrays."""
    widths = {name: len(node.args.args) for name, node in kernels()}
    assert {"kernel", "separate_kernel", "bare_kernel", "inlined_kernel"} == DECORATORS
    assert len(widths) > 200
    wide = {name: n for name, n in widths.items() if n > MOST_ARGUMENTS}
    assert not wide, wide


# -- a new operation is an error until somebody handles it ------------------------------------------------------------

OPERATIONS = {"CONST", "VAR", "SUM", "PRODUCT", "DET"}
# A test of three or more operations is a dispatch; of fewer, it recognizes a special case.
MANY = 3
# Dispatches whose last branch is right for every operation, also for one that does not exist yet: the reason.
TAKE_ANY_OPERATION = {
    "passes/building.py:factors_of": "a node that is no constant, product or multiple is a factor, whatever it is",
    "validity/provenance.py:_combine": "an operation without a rule is not multiplied out, so that nothing is proved",
}


def operations_in(tree: ast.AST) -> set[str]:
    """The operations that are named, as in Op.SUM."""
    named = (node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "Op")
    return {node.attr for node in named} & OPERATIONS


def refuses(body: list[ast.stmt], never: set[str]) -> bool:
    """Whether the last statement raises, or calls a function that never returns."""
    last = body[-1]
    value = last.value if isinstance(last, (ast.Expr, ast.Return)) else None
    return isinstance(last, ast.Raise) or (isinstance(value, ast.Call) and ast.unparse(value.func) in never)


def find_chain(block: list[ast.stmt]) -> tuple[set[str], list[ast.stmt], int]:
    """The operations that a chain of ifs at the start of a block tests, its last branch, and how long the chain is.

    A chain goes on in `elif`, and after a branch that leaves the block: `if …: return …`, then another `if`.
    """
    found: set[str] = set()
    length, current = 1, block[0]
    while isinstance(current, ast.If):
        found |= operations_in(current.test)
        leaves = isinstance(current.body[-1], (ast.Return, ast.Raise, ast.Continue, ast.Break))
        if len(current.orelse) == 1 and isinstance(current.orelse[0], ast.If):
            current = current.orelse[0]
        elif current.orelse:
            return found, current.orelse, length
        elif not leaves:
            return found, current.body, length  # the last test may be of what no branch before it took
        elif not (length < len(block) and isinstance(block[length], ast.If) and operations_in(block[length].test)):
            return found, block[length:] or current.body, length
        else:
            current, length = block[length], length + 1
    return found, [current], length


def find_match(match: ast.Match, after: list[ast.stmt]) -> tuple[set[str], list[ast.stmt]]:
    """The operations that a match statement names, and its last branch: `case _`, or else the statement after it."""
    found: set[str] = set()
    for case in match.cases:
        if isinstance(case.pattern, ast.MatchAs) and case.pattern.pattern is None and case.guard is None:
            return found, case.body
        found |= operations_in(case.pattern)
    return found, after[:1]


def find_careless(tree: ast.AST, never: set[str]) -> Iterator[str]:
    """Functions with a dispatch over operations whose last branch takes all others."""
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        for owner in ast.walk(function):
            for block in (getattr(owner, field, None) for field in ("body", "orelse", "finalbody")):
                if isinstance(block, list) and any(
                    is_careless(found, last, never) for found, last in dispatches(block)
                ):
                    yield function.name


def dispatches(block: list[ast.stmt]) -> Iterator[tuple[set[str], list[ast.stmt]]]:
    """(operations, last branch) of the dispatches that stand in a block."""
    at = 0
    while at < len(block):
        statement, length = block[at], 1
        if isinstance(statement, ast.Match) and ast.unparse(statement.subject).split(".")[-1] == "op":
            yield find_match(statement, block[at + 1 :])
        elif isinstance(statement, ast.If):
            found, last, length = find_chain(block[at:])
            yield found, last
        at += length


def is_careless(found: set[str], last: list[ast.stmt], never: set[str]) -> bool:
    return len(found) >= MANY and not (last and refuses(last, never))


def never_returning(trees: list[ast.AST]) -> set[str]:
    """Names of functions that always raise."""
    functions = (node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    return {"assert_never"} | {
        f.name for f in functions if f.returns is not None and "NoReturn" in ast.unparse(f.returns)
    }


def test_every_dispatch_over_operations_ends_in_a_raise() -> None:
    """`else` and `case _` refuse; otherwise a sixth operation would be taken for one of the five."""
    trees = {str(path.relative_to(ROOT)): ast.parse(path.read_text()) for path in sorted(ROOT.rglob("*.py"))}
    never = never_returning(list(trees.values()))
    found = {f"{path}:{function}" for path, tree in trees.items() for function in find_careless(tree, never)}
    assert found == set(TAKE_ANY_OPERATION)


CARELESS = [
    "match node.op:\n    case Op.SUM:\n     x = 1\n    case Op.VAR | Op.DET:\n     x = 2\n    case _:\n     x = 3",
    "match node.op:\n    case Op.SUM | Op.PRODUCT | Op.VAR | Op.CONST:\n        x = 1\nreturn x",
    "if op is Op.SUM:\n    x = 1\nelif op in (Op.VAR, Op.CONST):\n    x = 2\nelse:\n    x = 3",
    "if op is Op.SUM:\n    return 1\nif op is Op.VAR or op is Op.CONST:\n    return 2\nreturn 3",
]
CAREFUL = [
    "match node.op:\n    case Op.SUM | Op.PRODUCT | Op.VAR:\n        pass\n    case _:\n        assert_never(node.op)",
    "match node.op:\n    case Op.SUM | Op.PRODUCT | Op.VAR:\n        return 1\nassert_never(node.op)",
    "if op is Op.SUM:\n    x = 1\nelif op in (Op.VAR, Op.CONST):\n    x = 2\nelse:\n    raise ValueError",
    "if op is Op.SUM:\n    return 1\nif op is Op.VAR or op is Op.CONST:\n    return 2\nraise ValueError",
    "if op is Op.SUM:\n    x = 1\nelif op is not Op.VAR and op is not Op.CONST:\n    assert_never(op)",
    "if op is Op.SUM:\n    return 1\nif op is Op.VAR:\n    return 2\nreturn 3",
]


@pytest.mark.parametrize("text", CARELESS + CAREFUL)
def test_the_scan_for_dispatches(text) -> None:
    lines = "\n".join(f"    {line}" for line in text.splitlines())
    assert bool([*find_careless(ast.parse(f"def f(node, op):\n{lines}"), {"assert_never"})]) == (text in CARELESS)


# -- kernels without a compiler ---------------------------------------------------------------------------------------

PROGRAM = """
import warnings
import numpy as np
import pgcc

warnings.simplefilter("error")
model = pgcc.compile(pgcc.parse("(0.3*a+0.7)*(0.5*b+0.5)"))
print(model.prob({"a": 1}), model.marginals([[-1, -1]]).tolist(), model.sample(2, rng=0).tolist())
print(np.round(model.logprob([[1, 0], [-1, 1]]), 12).tolist(), model.cardinality().tolist())
mixture = pgcc.compile(pgcc.parse("*".join(f"(1/{3+i}*x{i}*y{i}+{2+i}/{3+i})" for i in range(5))))
rows = np.random.default_rng(0).integers(-1, 2, (40, 10))
print(np.round(mixture.prob(rows), 12).tolist())
L = [[2.0, 1.0, 0.5], [1.0, 2.0, 0.25], [0.5, 0.25, 1.0]]
model = pgcc.compile(pgcc.dpp(L=L))
rows = [[1, 0, -1], [-1, -1, 1], [-1, -1, -1]]
print(np.round(model.prob(rows), 12).tolist(), np.round(model.marginals(rows), 12).tolist())
print(model.sample(3, rng=1).tolist(), np.round(model.cardinality(), 12).tolist())
print(pgcc.check(pgcc.parse("(1/2*a + 1/2)*(1/4*b + 3/4)")))
"""


def answers_of(program: str, **environment: str) -> str:
    """What the program prints where all work is compiled, unless the environment says otherwise."""
    settings = {**os.environ, "PGCC_TIER": "compiled", **environment}
    done = subprocess.run([sys.executable, "-c", program], env=settings, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_everything_runs_without_a_compiler() -> None:
    """NUMBA_DISABLE_JIT=1, to step through kernels: the same answers, from the same kernels."""
    assert answers_of(PROGRAM, NUMBA_DISABLE_JIT="1") == answers_of(PROGRAM)


@pytest.mark.slow
def test_a_processor_without_wide_vectors() -> None:
    """The code for AVX-512 is not all that is ever run here: circuits, which take least to compile."""
    program = PROGRAM.partition("L = [[")[0]
    assert answers_of(program, NUMBA_CPU_NAME="generic") == answers_of(program)


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).uniform(0.5, 2.0, shape)


@kernel
def _unary(a, out):
    x = simd.load(a, 0)
    simd.store(out, 24, simd.magnitude(x))
    simd.store(out, 32, simd.root(x))
    simd.store(out, 40, simd.nearest(x))
    simd.store(out, 48, simd.splat(simd.add_up(x)))


@kernel
def _binary(a, out):
    x, y, z = simd.load(a, 0), simd.load(a, 8), simd.load(a, 16)
    simd.store(out, 0, simd.mul(x, y))
    simd.store(out, 8, simd.plus(x, y))
    simd.store(out, 16, simd.minus(x, y))
    simd.store(out, 24, simd.div(x, y))
    simd.store(out, 32, simd.fused(x, y, z))
    simd.store(out, 48, simd.if_less(x, y, z, x))
    simd.store(out, 56, simd.smaller(x, y))
    simd.store(out, 64, simd.larger(x, y))


@kernel
def _bytes(codes, index, tables, counts, columns, out):
    simd.transpose(codes, 3, 9, columns, 0, 8)
    simd.store(out, 0, simd.lookup(tables, 4, columns, 64))
    simd.store(out, 8, simd.choose(codes, 5, 1.0, 2.0, 3.0))
    simd.store(out, 16, simd.gather(tables, 2, index, 0, index, 8))
    simd.store(out, 24, simd.entries(tables, 1, counts, 32))
    return simd.equal_bytes(codes, 2, 1), simd.lowest_bit(np.uint64(40))


class TestVectors:
    """The instructions of every operation on vectors do what it does in Python."""

    @pytest.fixture(autouse=True)
    def _compiled(self) -> Iterator[None]:
        before = choose_tier("compiled")
        yield
        choose_tier(before)

    @pytest.mark.parametrize(("function", "size"), [(_unary, 56), (_binary, 88)])
    def test_of_numbers(self, function, size) -> None:
        a, out, expected = numbers(24), np.zeros(size), np.zeros(size)
        function(a, out)
        function.py_func(a, expected)
        np.testing.assert_array_equal(out, expected)

    def test_of_bytes(self) -> None:
        rng = np.random.default_rng(1)
        codes = rng.choice(np.array([0, 1, 255, 7], np.uint8), 100)
        index, tables = rng.integers(0, 5, 16), numbers(64)

        def arrays() -> tuple[np.ndarray, ...]:
            return codes, index, tables, np.arange(64, dtype=np.uint16) % 9, np.zeros(96, np.uint8), np.zeros(32)

        compiled, interpreted = arrays(), arrays()
        results = _bytes(*compiled)
        assert _bytes.py_func(*interpreted) == results
        for one, other in zip(compiled, interpreted, strict=True):
            np.testing.assert_array_equal(one, other)

    def test_all_are_defined(self) -> None:
        """For Numba, and in Python."""
        from pgcc.kernels import llvm

        public = {name for name, value in vars(simd).items() if callable(value) and value.__module__ == simd.__name__}
        assert {name for name in public if not name.startswith("_")} == llvm.DEFINED
