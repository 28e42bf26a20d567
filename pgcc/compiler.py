"""A circuit with everything that evaluating it needs, each part made when it is first asked for."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from pgcc.errors import PgccError, SemanticsError
from pgcc.ir.circuit import Circuit
from pgcc.ir.facts import overlaps
from pgcc.ir.node import Node, Op
from pgcc.ir.scopes import members, size
from pgcc.passes.expand_det import expand_det
from pgcc.passes.padding import homogenize
from pgcc.passes.pipeline import simplify
from pgcc.program.lower import lower, lower_with_nodes
from pgcc.program.program import Program
from pgcc.program.strategy import METHODS, choose
from pgcc.rings.balls import Exact
from pgcc.rings.direct import Direct
from pgcc.rings.identity import Multiaffinity, find_squares
from pgcc.rings.paper import evaluate_literally
from pgcc.rings.roots import Roots
from pgcc.rings.series import Series
from pgcc.rings.values import Values

T = TypeVar("T")
# Determinants larger than this are not expanded for the strategies that work on polynomials in t.
_MOST_EXPANDED = 10
# Scopes of multiaffine sums are kept up to this total; without one, a sum's degree is only the formal one.
_MOST_SCOPE = 10_000_000


class Compiled:
    """The strategies of one circuit.

    Parameters
    ----------
    circuit : Circuit
    validate : bool
        Test a circuit that is not decomposable for squares, and refuse it if it has one.
    """

    def __init__(self, circuit: Circuit, validate: bool = True):
        self.validate = validate
        self.circuit = simplify(circuit)
        self._made: dict[Callable[[Compiled], Any], Any] = {}
        if validate and not self.decomposable:
            self._refuse_squares()

    @property
    def decomposable(self) -> bool:
        """Whether one number per node is enough."""
        return self.circuit.overlap is None

    @cached_property
    def homogenized(self) -> Circuit:
        """The homogenised circuit of a decomposable one."""
        return homogenize(self.circuit)

    @cached_property
    def plain(self) -> Program:
        """The program of the polynomial as it stands; determinants of one size only are expanded."""
        return self._lowered[1]

    @cached_property
    def _lowered(self) -> tuple[Circuit, Program, list[Node]]:
        """The circuit that `plain` is the program of, that program, and the node that each instruction computes."""
        self._refuse_to_expand(sized_only=True)
        circuit = simplify(expand_det(self.circuit, sized_only=True))  # `simplify` may go on where it ended
        return circuit, *lower_with_nodes(circuit)

    @cached_property
    def multiaffinity(self) -> Multiaffinity:
        """Which values of `plain` have no squares, by the identity test."""
        circuit, program, _ = self._lowered
        column = {name: i for i, name in enumerate(circuit.variables)}
        return find_squares(program, [column[name] for name in overlaps(circuit)])

    @property
    def multiaffine(self) -> bool:
        """Whether no variable is squared: by structure, or by the test; False if it was not to be tested."""
        return self.decomposable or (self.validate and not self.multiaffinity.squared)

    @property
    def _degree(self) -> int | None:
        """A bound on the degree in t where |A| is not known to be one."""
        return None if self.multiaffine else self.circuit.facts.degree

    def _refuse_squares(self) -> None:
        squared = self.multiaffinity.squared
        if not squared:
            return
        name = self.circuit.variables[squared[0]]
        hint = (
            ""
            if self.circuit.facts.exact
            else " (some weights are floats, whose sums do not cancel exactly: write them as fractions or as text)"
        )
        raise SemanticsError(
            f"not a generating polynomial: {name!r} occurs to a power above 1{hint}; "
            "validate=False compiles it all the same"
        )

    # -- the evaluators -------------------------------------------------------------------------------

    @cached_property
    def direct(self) -> Direct:
        """One number per node."""
        return Direct(lower(self.homogenized))

    @cached_property
    def series(self) -> Series:
        """Truncated polynomials in t."""
        if not self.circuit.facts.dets:
            return Series(self.plain, self._caps)
        self._refuse_to_expand()
        return Series(lower(simplify(expand_det(self.circuit))))

    def _refuse_to_expand(self, sized_only: bool = False) -> None:
        """An error where a determinant that must be expanded is too large for it."""
        dets = [n for n in self.circuit.order if n.op is Op.DET and not (sized_only and n.size is None)]
        largest = max((n.matrices[0].shape[0] + len(n.inside) for n in dets), default=0)
        if largest > _MOST_EXPANDED:
            raise PgccError(
                f"polynomials in t would have to expand a determinant of {largest} rows into sums "
                f"and products (at most {_MOST_EXPANDED}): use another method, or a decomposable circuit"
            )

    @cached_property
    def roots(self) -> Roots:
        """Roots of unity."""
        return Roots(self.plain, self._degree)

    @cached_property
    def exact(self) -> Exact:
        """Balls and rationals."""
        if self.decomposable:
            return Exact(self.homogenized, homogeneous=True)
        return Exact(self.circuit, homogeneous=False, degree=self._degree)

    @cached_property
    def _caps(self) -> list[tuple[int, list[int]]]:
        """The sums known to be multiaffine although they are not decomposable, with the columns of their scopes."""
        if self.decomposable or not self.validate:
            return []
        circuit, _, nodes = self._lowered
        # by node: of a magnitude the coefficients that cancel in the value are left away, too
        affine = {nodes[i] for i in np.flatnonzero(self.multiaffinity.instructions).tolist()}
        scopes = _sum_scopes(circuit, affine)
        return [(i, scopes[node]) for i, node in enumerate(nodes) if node in scopes]

    def once(self, make: Callable[[Compiled], T]) -> T:
        """What `make` makes of this, made when it is first asked for: evaluators that only some questions need."""
        if make not in self._made:
            self._made[make] = make(self)
        return self._made[make]

    # -- one entry ------------------------------------------------------------------------------------

    def run(self, method: str, evidence: np.ndarray, rtol: float) -> Values:
        """Values by one method, without falling back on another."""
        match method:
            case "direct":
                if not self.decomposable:
                    raise PgccError("method 'direct' needs a decomposable circuit: this one is not (see explain())")
                return self.direct.evaluate(evidence, rtol)
            case "top":
                return self.series.top(evidence)
            case "bottom":
                return self.series.bottom(evidence)
            case "roots":
                return self.roots.evaluate(evidence)
            case "fft":
                return evaluate_literally(self.circuit, evidence)
            case "ball":
                return self.exact.evaluate(evidence, rtol)
        raise PgccError(f"unknown method {method!r}: choose 'auto' or one of {', '.join(map(repr, METHODS))}")

    def settle(self, evidence: np.ndarray, rtol: float, total: float, logs: bool, numbers: np.ndarray) -> np.ndarray:
        """Write values over `total`, or logarithms, where float64 certifies them at once; the numbers of other rows.

        Evidence need not have been checked: what is none is never settled.
        """
        if not self.decomposable:
            return np.arange(len(evidence))
        return self.direct.settle(evidence, rtol, total, logs, numbers)

    def run_auto(self, evidence: np.ndarray, rtol: float) -> tuple[Values, dict[str, int]]:
        """Values to `rtol`, and how many rows each method answered."""
        values, used = self._first_try(evidence, rtol)
        uncertain = values.uncertain(rtol)
        if len(uncertain):
            values.put(uncertain, self.run("ball", evidence[uncertain], rtol))
        used["ball"] = len(uncertain)
        return values, used

    def _first_try(self, evidence: np.ndarray, rtol: float) -> tuple[Values, dict[str, int]]:
        if self.decomposable:
            return self.run("direct", evidence, rtol), {"direct": len(evidence)}
        values = Values.empty(len(evidence))
        used: dict[str, int] = {}
        if self.circuit.facts.dets:
            return values, used  # float64 certifies no determinant in R[t]: straight to balls
        methods = choose((evidence == 1).sum(axis=1), self.series.lengths(evidence))
        for method in np.unique(methods).tolist():
            rows = np.flatnonzero(methods == method)
            used[method] = len(rows)
            values.put(rows, self.run(method, np.ascontiguousarray(evidence[rows]), rtol))
        return values, used


def _sum_scopes(circuit: Circuit, some: set[Node]) -> dict[Node, list[int]]:
    """Columns of the scopes of those nodes that are sums with a product of shared variables below them."""
    scopes = circuit.scopes
    column = {name: i for i, name in enumerate(circuit.variables)}
    columns = [column[name] for name in scopes.names]
    entangled: list[bool] = []  # nodes with such a product below them
    found: dict[Node, list[int]] = {}
    room = _MOST_SCOPE
    for i, node in enumerate(circuit.order):
        entangled.append(not scopes.disjoint[i] or any(entangled[c] for c in circuit.links[i]))
        if entangled[i] and node.op is Op.SUM and node in some:
            scope = scopes.distinct[scopes.of[i]]
            room -= size(scope)
            if room < 0:
                break
            found[node] = [columns[m] for m in members(scope)]
    return found
