"""pgcc: a compiler for probability generating polynomials, and for probabilistic generating circuits (PGCs).

    >>> import pgcc
    >>> g = pgcc.parse("(0.1*(z1 + 1)*(6*z2 + 1) - 0.4*z1*z2) * (0.8*z3 + 0.2)")
    >>> f = pgcc.compile(g)
    >>> f.prob({"z1": 0, "z2": 1, "z3": 1})
    0.48

Names are imported when they are first used, which makes ``import pgcc`` instant.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pgcc import builders, pc, plot
    from pgcc.codegen.emit import emit
    from pgcc.errors import (
        CircuitError,
        EvidenceError,
        FormatError,
        ParseError,
        PgccError,
        PrecisionError,
        SemanticsError,
    )
    from pgcc.formats import load, save
    from pgcc.frontend.combine import mixture, product, subsets, superpose
    from pgcc.frontend.det_pgc import det_pgc
    from pgcc.frontend.determinant import determinant
    from pgcc.frontend.dpp import dpp
    from pgcc.frontend.expression import parse
    from pgcc.frontend.spanning_tree import arborescence, spanning_forest, spanning_tree
    from pgcc.frontend.symbolic import from_sympy
    from pgcc.ir.circuit import Circuit, variables
    from pgcc.model import Model, compile
    from pgcc.queries.gradient import grad
    from pgcc.validity.check import check

__version__ = "0.1.0"

# Where each public name lives.
_HOME = {
    "emit": "pgcc.codegen.emit",
    "CircuitError": "pgcc.errors",
    "EvidenceError": "pgcc.errors",
    "FormatError": "pgcc.errors",
    "ParseError": "pgcc.errors",
    "PgccError": "pgcc.errors",
    "PrecisionError": "pgcc.errors",
    "SemanticsError": "pgcc.errors",
    "mixture": "pgcc.frontend.combine",
    "product": "pgcc.frontend.combine",
    "subsets": "pgcc.frontend.combine",
    "superpose": "pgcc.frontend.combine",
    "det_pgc": "pgcc.frontend.det_pgc",
    "determinant": "pgcc.frontend.determinant",
    "dpp": "pgcc.frontend.dpp",
    "parse": "pgcc.frontend.expression",
    "load": "pgcc.formats",
    "save": "pgcc.formats",
    "arborescence": "pgcc.frontend.spanning_tree",
    "spanning_forest": "pgcc.frontend.spanning_tree",
    "spanning_tree": "pgcc.frontend.spanning_tree",
    "from_sympy": "pgcc.frontend.symbolic",
    "Circuit": "pgcc.ir.circuit",
    "variables": "pgcc.ir.circuit",
    "Model": "pgcc.model",
    "check": "pgcc.validity.check",
    "grad": "pgcc.queries.gradient",
    "compile": "pgcc.model",
}
# Modules that need not be imported by themselves.
_MODULES = ("builders", "cluster", "learn", "pc", "plot", "testing", "torch")

__all__ = [
    "Circuit",
    "CircuitError",
    "EvidenceError",
    "FormatError",
    "Model",
    "ParseError",
    "PgccError",
    "PrecisionError",
    "SemanticsError",
    "arborescence",
    "builders",
    "check",
    "compile",
    "det_pgc",
    "determinant",
    "dpp",
    "emit",
    "from_sympy",
    "grad",
    "load",
    "mixture",
    "parse",
    "pc",
    "plot",
    "product",
    "save",
    "spanning_forest",
    "spanning_tree",
    "subsets",
    "superpose",
    "variables",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"pgcc.{name}")
    home = _HOME.get(name)
    if home is None:
        from pgcc.errors import OTHER_WORDS, SpellingError

        if own := OTHER_WORDS.get(f"pgcc.{name}"):
            raise SpellingError(f"pgcc has no {name!r}: write {own}")
        raise AttributeError(f"module 'pgcc' has no attribute {name!r}")
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *_MODULES, "__version__"})
