"""Imports point one way (DESIGN, section 3), and `import pgcc` loads nothing heavy."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import pgcc

ROOT = Path(pgcc.__file__).parent

# A module imports from its own layer's folder, and from layers below it. The last line is the lowest.
LAYERS = [
    {"cli", "__main__"},
    {"torch"},
    {"learn"},
    {"cluster"},
    {"plot"},
    {"draw", "explore"},
    {"model"},
    {"queries"},
    {"validity", "codegen"},
    {"data"},
    {"compiler"},
    {"evaluate"},
    {"trainable"},
    {"determinants"},
    {"rings"},
    {"certify"},
    {"kernels"},
    {"program"},
    {"formats"},
    {"builders", "pc"},
    {"frontend"},
    {"passes"},
    {"exact"},
    {"linalg"},
    {"ir"},
    {"arrays", "methods"},
    {"collector", "errors", "interrupts", "locks", "progress"},
]
RANK = {part: -i for i, parts in enumerate(LAYERS) for part in parts}
# Free to import anything of pgcc: helpers for tests, which nothing imports.
UNRANKED = {"testing"}
# Modules that may import from pgcc inside functions: methods that delegate, what only some circuits need, and commands
# that start quickly.
DEFERRING = {
    "pgcc.ir.circuit",
    "pgcc.pc",
    "pgcc.validity.report",
    "pgcc.queries.explain",
    "pgcc.queries.mode",
    "pgcc.model",
    "pgcc.validity.standing",
    "pgcc.cli",
    "pgcc.kernels.policy",
    "pgcc.kernels.simd",
}
# Packages outside the standard library, and the modules (by prefix) that may import them, anywhere in their text.
THIRD_PARTY = {
    "numpy": ("pgcc",),
    "numba": ("pgcc.kernels",),
    "llvmlite": ("pgcc.kernels",),
    "flint": (
        "pgcc.rings",
        "pgcc.determinants",
        "pgcc.evaluate",
        "pgcc.exact",
        "pgcc.passes",
        "pgcc.validity",
    ),
    "sympy": ("pgcc.frontend.symbolic",),
    "networkx": ("pgcc.frontend", "pgcc.plot", "pgcc.testing"),
    "hypothesis": ("pgcc.testing",),
    "distributed": ("pgcc.cluster",),
    "matplotlib": ("pgcc.plot",),
    "pandas": ("pgcc.arrays",),
    "shtab": ("pgcc.cli.completion",),
    "tqdm": ("pgcc.progress",),
    "scipy": ("pgcc.learn",),
    "sklearn": ("pgcc.learn",),
    "threadpoolctl": ("pgcc.learn",),
    "torch": ("pgcc.torch",),
}


class Import(NamedTuple):
    """`importer` imports `target`, inside a function or not."""

    importer: str
    target: str
    deferred: bool
    line: int

    def __str__(self) -> str:
        return f"{self.importer}:{self.line} imports {self.target}"


def find_imports(module: str, source: str) -> Iterator[Import]:
    """What a module imports; what stands under `if TYPE_CHECKING` is never run."""
    stack: list[tuple[ast.AST, bool]] = [(ast.parse(source), False)]
    while stack:
        node, deferred = stack.pop()
        if isinstance(node, ast.Import):
            yield from (Import(module, alias.name, deferred, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}:{node.lineno}: a relative import"
            yield from (Import(module, target, deferred, node.lineno) for target in _targets(node))
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            stack.extend((child, deferred) for child in node.orelse)
        else:
            inside = deferred or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
            stack.extend((child, inside) for child in ast.iter_child_nodes(node))


def _targets(node: ast.ImportFrom) -> list[str]:
    """`from pgcc import cli` imports pgcc.cli; `from pgcc.ir.node import var` imports pgcc.ir.node."""
    assert node.module is not None
    return [f"pgcc.{alias.name}" for alias in node.names] if node.module == "pgcc" else [node.module]


def _module(path: Path) -> str:
    parts = ["pgcc", *path.relative_to(ROOT).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _part(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def complaint(found: Import) -> str | None:
    """What is wrong with an import, if anything."""
    package = found.target.split(".")[0]
    if package != "pgcc":
        return _third_party_complaint(found, package)
    importer, target = _part(found.importer), _part(found.target)
    if importer in UNRANKED:
        return None
    if importer not in RANK:
        if found.importer == "pgcc" and (target == "" or found.deferred):
            return None
        return f"{found}: in which layer is {importer or 'pgcc'}?"
    if found.deferred and found.importer not in DEFERRING:
        return f"{found} inside a function"
    if found.deferred:
        return None
    if target == "__version__":
        return None
    if target == "":  # `import pgcc`: the public names, for those who stand at the top
        return None if RANK[importer] == 0 else f"{found}: the package itself, from below"
    if target in RANK and (importer == target or RANK[target] < RANK[importer]):
        return None
    return None if importer in {"__main__"} and target == "cli" else f"{found}: that points the wrong way"


def _third_party_complaint(found: Import, package: str) -> str | None:
    if package in sys.stdlib_module_names:
        return None
    allowed = THIRD_PARTY.get(package, ())
    inside = any(found.importer == prefix or found.importer.startswith(f"{prefix}.") for prefix in allowed)
    return None if inside else f"{found}: only {', '.join(allowed) or 'nobody'} may"


def test_imports_point_one_way():
    found = [
        one
        for path in sorted(ROOT.rglob("*.py"))
        for one in find_imports(_module(path), path.read_text(encoding="utf-8"))
    ]
    assert len(found) > 100  # the walk does see them
    assert [text for one in found if (text := complaint(one))] == []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("pgcc.ir.node", "from pgcc.passes.simplify import fold"),
        ("pgcc.ir.node", "def f():\n    from pgcc.ir import facts"),
        ("pgcc.passes.simplify", "import pgcc.frontend.expression"),
        ("pgcc.evaluate.direct", "from pgcc import model"),
        ("pgcc.evaluate.direct", "import pgcc"),
        ("pgcc.model", "import numba"),
        ("pgcc.data.evidence", "import pandas"),
        ("pgcc.frontend.expression", "def f():\n    import sympy"),
        ("pgcc.novelty", "from pgcc import errors"),
    ],
)
def test_what_would_be_refused(module, source):
    (one,) = find_imports(module, source)
    assert complaint(one) is not None


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("pgcc.ir.circuit", "def f():\n    from pgcc.passes.pipeline import simplify"),
        ("pgcc.cli", "def f():\n    from pgcc.model import Model"),
        ("pgcc.cli", "import pgcc"),
        ("pgcc.rings.exact_values", "import flint"),
        ("pgcc.codegen.emit", "from pgcc import __version__"),
        ("pgcc.testing", "from pgcc.model import Model"),
    ],
)
def test_what_is_allowed(module, source):
    (one,) = find_imports(module, source)
    assert complaint(one) is None


def test_types_are_not_imports():
    source = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import sympy\nelse:\n    import numba\n"
    assert [one.target for one in find_imports("pgcc.ir.circuit", source)] == ["numba", "typing"]


def loaded_after(code: str) -> set[str]:
    """Which packages a fresh interpreter has loaded after running some code."""
    report = f"{code}\nimport sys\nprint(*sorted({{name.split('.')[0] for name in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", report], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


HEAVY = {"numba", "llvmlite", "sympy", "networkx", "flint", "pandas", "scipy", "matplotlib", "sklearn", "tqdm", "torch"}


def test_import_is_light():
    loaded = loaded_after("import pgcc")
    assert "pgcc" in loaded
    assert not loaded & (HEAVY | {"numpy"})


def test_parsing_needs_no_compiler():
    loaded = loaded_after("import pgcc; pgcc.parse('0.5*z + 0.5')")
    assert "pgcc" in loaded
    assert not loaded & HEAVY


def test_help_is_light():
    code = "import pgcc.cli\ntry: pgcc.cli.main(['--help'])\nexcept SystemExit: pass"
    assert not loaded_after(code) & (HEAVY | {"numpy"})


def test_a_query_loads_no_sympy():
    code = "import pgcc.cli\nassert pgcc.cli.main(['query', '--expr', '0.5*z + 0.5', 'z=1']) == 0"
    loaded = loaded_after(code)
    assert "pgcc" in loaded
    assert not loaded & {"sympy", "networkx", "pandas"}
