"""The contents of the page: the program that pgcc itself runs, as arrays, and the names of a model.

The program is that of the homogenized circuit (`pgcc.program.lower`), with an instruction for every product and without
those for magnitudes: instead, the page computes a bound on the error along with every value.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pgcc.codegen.source import prune
from pgcc.compiler import Compiled
from pgcc.errors import PgccError
from pgcc.explore.packing import as_scaled
from pgcc.explore.places import horizontal_places
from pgcc.explore.tree_graph import find_graph
from pgcc.ir.domains import Domains
from pgcc.ir.numbers import add
from pgcc.ir.operands import check_decomposable
from pgcc.program.det_structure import DetStructure
from pgcc.program.lower import lower
from pgcc.program.program import DET, LEAF, SUM, TIMES, Program

# The operations that the page runs, by the numbers that they have in `decode.js`.
OPERATIONS = (LEAF, SUM, TIMES, DET)

# A page that answers a click within about a second has at most this many variables, arguments of instructions, and
# multiplications for its determinants.
MOST_VARIABLES, MOST_ARGUMENTS, MOST_MULTIPLICATIONS = 20_000, 4_000_000, 500_000_000
_PART = "circuit.restrict(names) is a part of it, and model.condition(evidence) what evidence leaves"


def page_program(compiled: Compiled) -> Program:
    """The instructions that the value of a circuit needs, in order: instruction i writes slot i.

    Raises
    ------
    PgccError
        If the circuit is not decomposable, has numbers that doubles do not hold, or is too large for a page.
    """
    check_decomposable(
        compiled.circuit,
        "the explorer needs a decomposable circuit, and here {}: ask the model itself (marginals, cardinality, "
        "sample), or write the polynomial without common variables",
        PgccError,
    )
    n = len(compiled.circuit.variables)
    if n > MOST_VARIABLES:
        raise PgccError(
            f"{n:,} variables are too many for a page, which shows {MOST_VARIABLES:,} at most",
            advice=_PART,
        )
    program = prune(lower(compiled.homogenized, fuse=False)).expect(*OPERATIONS)
    _check_size(program)
    if not all(one.in_range for one in program.structures):
        raise PgccError("a determinant has entries beyond the range of doubles, which the page computes with: scale it")
    return program


def _check_size(program: Program) -> None:
    work = sum(map(_multiplications, program.structures))
    for count, most, what in (
        (program.operations, MOST_ARGUMENTS, "operations"),
        (work, MOST_MULTIPLICATIONS, "multiplications for the determinants"),
    ):
        if count > most:
            raise PgccError(
                f"the model is too large for a page: a click would take {count:,} {what}, and {most:,} is the limit",
                advice=_PART,
            )


def _multiplications(det: DetStructure) -> int:
    """About how many multiplications a click takes: one inverse, or one per size for a determinant with a size."""
    r, k = det.rank, det.children
    points = 1 if det.size is None else 4 * (min(r, k) + 1)
    return points * (2 * r**3 + r * r * k)


def program_arrays(program: Program) -> dict[str, np.ndarray]:
    """The instructions, weights, leaves and matrices of a program, and where its instructions stand when drawn."""
    weight, weight_exponent = as_scaled(program.numbers)
    leaves = [x for a, b in program.leaf_numbers for x in (a, b, add(a, b))]
    leaf, leaf_exponent = as_scaled(leaves)
    return {
        "op": np.array(list(map(OPERATIONS.index, program.op.tolist())), np.uint8),
        "start": np.diff(program.start).astype(np.int32),
        "args": program.args,
        "firstWeight": np.diff(program.first_weight).astype(np.int32),
        "weight": weight,
        "weightExponent": weight_exponent,
        "leafVariable": program.leaf_variable,
        "leaf": leaf,
        "leafExponent": leaf_exponent,
        "place": np.rint(1e4 * horizontal_places(program)).astype(np.int32),
        **_matrices(program.structures),
    }


def state_arrays(compiled: Compiled) -> dict[str, np.ndarray]:
    """The block of every column, the columns for which being out is a state, and whether a column is counted.

    Counted is what is yes or no.
    """
    columns = compiled.circuit.variables
    domains, blocks = compiled.given.domains or Domains.plain(columns), compiled.blocks
    yes = {d.columns[d.affirmed] for d in domains.values() if d.affirmed is not None}
    return {
        "block": np.arange(len(columns), dtype=np.int32) if blocks is None else blocks.block.astype(np.int32),
        "outs": compiled.outs.astype(np.int32),
        "counted": np.array([column in yes for column in columns], np.uint8),
    }


def _matrices(structures: list[DetStructure]) -> dict[str, np.ndarray]:
    """M0, U and V of all determinants by their columns: how many entries each has, their rows, and the entries."""
    counts, rows, entries = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0)]
    for matrix in (matrix for one in structures for matrix in one.floats):
        column, row = np.nonzero(matrix.T)
        counts.append(np.bincount(column, minlength=matrix.shape[1]))
        rows.append(row)
        entries.append(matrix[row, column])
    return {
        "columnLength": np.concatenate(counts).astype(np.int32),
        "row": np.concatenate(rows).astype(np.int32),
        "entry": np.concatenate(entries).astype(np.float64),
    }


def described(compiled: Compiled, program: Program) -> dict[str, Any]:
    """What the page knows about a model in addition to its arrays."""
    positive = bool((program.weights >= 0).all() and (program.leaf_table >= 0).all())
    return {
        "variables": list(compiled.circuit.variables),
        "states": _described_states(compiled),
        "root": program.value,
        "dets": [_described_det(one) for one in program.structures],
        # nothing is negative: choices at sums are probabilities
        "positive": positive and all(one.nonnegative for one in program.structures),
        # no two terms of a sum are positive at the same assignment: the largest term gives the mode
        "deterministic": compiled.max_product is not None,
        "graph": find_graph(program, compiled.circuit.variables),
        "sizes": {"nodes": len(compiled.circuit.order), "edges": compiled.circuit.edges},
    }


def _described_states(compiled: Compiled) -> list[dict[str, Any]]:
    """The variables with states, and where the probability of each state stands in an answer (−1: it is 1)."""
    domains = compiled.given.domains or Domains.plain(())
    place = {(name, state): at for name, state, at in domains.axis}
    return [
        {"name": name, "labels": list(map(str, d.states)), "places": [place.get((name, s), -1) for s in d.states]}
        for name, d in domains.items()
        if not d.is_plain
    ]


def _described_det(one: DetStructure) -> dict[str, Any]:
    counted = None if one.size is None or one.counted is None else [i for i, c in enumerate(one.counted) if c]
    return {"rank": one.rank, "children": one.children, "size": one.size, "counted": counted}
