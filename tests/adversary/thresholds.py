"""The sizes at which pgcc changes its ways, made so small that circuits of a few variables take every way there is.

Only constants that Python reads each time: what kernels were compiled with stays. A name that is no longer there is an
error: whoever renames a threshold, or removes it, does it here too.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

# module, name, the value with which small circuits are large
SMALL: list[tuple[str, str, Any]] = [
    ("passes.simplify", "LARGE", 3),
    ("passes.pipeline", "LARGE", 3),  # edges that are simplified to the end
    ("passes.total", "LARGE", 3),  # totals in doubles
    ("passes.pipeline", "WORTH", 0.3),
    ("passes.total", "_MOST_EXACT", 1),  # rows of a float determinant that is computed in fractions
    ("rings.identity", "_MOST_SCOPE", 6),  # of sums known to be multiaffine
    ("program.condense", "_MOST_READERS", 1),
    ("program.table_choice", "_NUMBERING", 0),  # wide tables, however little they save
    ("program.table_choice", "_FIRST_LEVEL", 0),
    ("program.table_choice", "_SECOND_LEVEL", 0),
    ("program.table_choice", "_PACKING", 0),
    ("program.table_choice", "_PACKING_VARIABLE", 0),
    ("program.det_structure", "_MOST_EXACT", 2),
    ("rings.float64.loop", "_KEPT", 1),
    ("rings.float64.loop", "_NEAR", 1),
    ("rings.float64.loop", "_NEXT", 1),
    ("evaluate.direct", "_BESIDE_MATRICES", 1),
    ("validity.coefficients", "_FEW", 2),
    ("evaluate.counting_exact", "_FEW_EXACT_BITS", 8),
    ("exact.truncated", "_FEW_POINTS", 1),
    ("determinants.forms", "_MOST_CHILDREN", 2),
    ("exact.ball_coefficients", "_MOST_ENTRIES", 4),
    ("exact.pencil", "_WORTH", 1),
    ("exact.pencil", "_PATIENCE", 0),
    ("evaluate.differentiation", "_MOST_NUMBERS", 8),
    ("evaluate.differentiation", "_BYTES", 1),
    ("determinants.reverse_pass", "_BYTES", 1),
    ("codegen.source", "STRAIGHT_LINE", 4),
    ("codegen.emit", "STRAIGHT_LINE", 4),
    ("codegen.emit", "POLYNOMIALS", 20),
    ("queries.probability", "_FEW", 0),
    ("queries.distribution", "_MOST_CODES", 8),
    ("evaluate.all_marginals", "_QUERIES", 4),
    ("queries.information", "MOST_LISTED", 4),  # assignments: above it, estimates from samples
    ("queries.mode", "_MOST_LISTED", 2),  # assignments: above it, by parts
    ("queries.mode_search", "_MOST_EXPANDED", 1),
    ("queries.mode_search", "_MOST_SWAPS", 1),
    ("queries.sampling", "_MANY", 2),
    ("queries.any_and_parity", "_LARGE", 0.5),
]


@contextmanager
def small_thresholds() -> Iterator[None]:
    """All thresholds small, until the end of the block."""
    with ExitStack() as stack:
        for module, name, value in SMALL:
            home = importlib.import_module(f"pgcc.{module}")
            if not hasattr(home, name):
                raise LookupError(f"pgcc.{module} has no threshold {name} any more: mend tests/adversary/thresholds.py")
            stack.enter_context(patch.object(home, name, value))
        yield
