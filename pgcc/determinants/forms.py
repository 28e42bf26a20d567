"""The determinants of a program: the forms by which each can be computed, and their arrays for the kernels.

`kernels/forms` explains the forms and computes them; here their bases are found, when they are needed, and laid out as
flat arrays (`lay_out`). `staged` makes a `FloatDeterminant` for every Det of a program.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from pgcc.determinants.bases import Base, base_by_inverse, determinant_at, find_base
from pgcc.determinants.elementary import elementary_symmetric
from pgcc.determinants.kernels.forms import determinant_rows
from pgcc.determinants.kernels.plan import (
    BASES,
    DETERMINANT,
    FREE,
    OUT,
    RANK,
    TOTAL,
    TREES,
    Children,
    FloatLayout,
    Found,
)
from pgcc.determinants.large_definite import IdentityPlus
from pgcc.locks import cached_property, new_lock
from pgcc.program.det_structure import DetStructure, Laplacian

Value = tuple[float, int, float]  # mantissa, binary exponent, relative error

# The most children for which a base is computed in multiple precision.
_MOST_CHILDREN = 1024
# The bases of L-ensembles and marginal kernels with a number of children in this range are computed by BLAS (see
# `large_definite`), and in advance.
_LARGE_KERNEL, _MOST_BY_PRODUCTS = 200, 2500
# The most multiplications in multiple precision for the base of a graph, about a second: see `prefers_trees`.
_MOST_PRODUCTS = 10**8
# The most entries of the matrices for the form RANK.
_MOST_NUMBERS = 1 << 24
_ONE: Value = (0.5, 1, 0.0)
_UNKNOWN: Value = (0.0, 0, np.inf)
# Sums below this are finite doubles, and so are their rounding errors.
_LARGE = 2.0**1000
# The smallest difference of numbers near 1 that is accurate to a double, if the numbers are pairs of doubles.
_SMALLEST_SUM = 2.0**-40
# The relative error of totals (values where nothing is observed), until a query needs a smaller one.
_TOTAL_ERROR = 5e-11


class FloatDeterminant:
    """One determinant and the bases found for it so far.

    Parameters
    ----------
    structure : DetStructure
    phi : float64 array
        The values of its children where nothing is observed.
    columns : int array, optional
        The columns of the variables, if the children are φ_i times distinct variables.
    n_variables : int
        The number of variables of the circuit.
    """

    def __init__(
        self, structure: DetStructure, phi: np.ndarray, columns: np.ndarray | None = None, n_variables: int = 0
    ):
        self.structure, self.phi = structure, np.array(phi)
        everything = [structure.size is not None] * structure.children
        self.counted = np.array(everything if structure.size is None else structure.counted or everything, bool)
        self.columns, self.n_variables = columns, n_variables
        self.refined = False  # whether `total` is as accurate as it can be made
        most = _MOST_CHILDREN if self._ensemble is None and self._marginals is None else _MOST_BY_PRODUCTS
        small = structure.children <= most and structure.in_range
        self.may_have_free = small
        self.free: Base | None = None
        self.out: Base | None = None
        if small and (structure.laplacian is None or structure.size is not None):
            if self._marginals is not None:
                self.out = base_by_inverse(structure, self._marginals, 1)
            # multiple precision yields pairs of doubles even beside items of tiny probability
            in_pairs = self.out is not None and self.out.low is not None
            if not in_pairs and (self._marginals is None or structure.children <= _MOST_CHILDREN):
                self.out = find_base(structure, np.zeros(structure.children))
        if structure.size is not None:
            self.may_have_free = self.may_have_free and structure.symmetric and not np.all(self.counted)
        if structure.size is not None or structure.is_marginal_kernel or self._ensemble is not None:
            self.find_free_base()

    def find_free_base(self) -> bool:
        """Compute the base FREE, where all uncounted children are free; return whether it is new."""
        if not self.may_have_free:
            return False
        self.may_have_free = False
        if self._ensemble is not None:
            self.free = base_by_inverse(self.structure, self._ensemble, -1)
        if self.free is None and (self.structure.children <= _MOST_CHILDREN or self._marginals is not None):
            self.free = find_base(self.structure, self._free_phi)
        return self.free is not None

    @cached_property
    def _ensemble(self) -> IdentityPlus | None:
        """I + L, if this is det(I + diag(f)·L) of a large symmetric L."""
        if self.structure.children < _LARGE_KERNEL or self.structure.size is not None or not self._is_ensemble:
            return None
        return IdentityPlus(self.structure.floats[2])

    @cached_property
    def _marginals(self) -> IdentityPlus | None:
        """I − K, if this is det(I − K + diag(f)·K) of a large symmetric K."""
        structure = self.structure
        if structure.children < _LARGE_KERNEL or not structure.is_marginal_kernel:
            return None
        return IdentityPlus(-structure.floats[2]) if structure.symmetric and structure.doubles[2] else None

    @property
    def _is_ensemble(self) -> bool:
        """Whether this is det(I + diag(f)·L) of a symmetric L of doubles, where a free child is 1."""
        structure = self.structure
        is_plain = structure.identity_m0 and structure.identity_u and structure.doubles[2] and structure.symmetric
        return is_plain and bool((self.phi == 1.0).all())

    @property
    def forms(self) -> list[str]:
        """Names of the forms by which it can be computed in float64; the cheapest first if little is observed."""
        structure = self.structure
        if structure.size is not None:
            return ["elementary symmetric polynomials"] if (self.free or self.out) and structure.symmetric else []
        has = lay_out([self], [_UNKNOWN]).plan[0].has
        return [
            *(["observed rows of the marginal kernel"] if self.free or self.may_have_free else []),
            *(["rows that are not out"] if has[OUT] else []),
            *([f"{structure.rank} rows and those that are in"] if has[RANK] else []),
            *(["star–mesh elimination"] if has[TREES] else []),
        ]

    @property
    def _free_phi(self) -> np.ndarray:
        """The values of the children at the base FREE."""
        return np.where(self.counted, 0.0, self.phi)

    @cached_property
    def total(self) -> Value:
        """Its value where nothing is observed: in float64 if that is accurate enough, otherwise in ball arithmetic."""
        structure, k = self.structure, self.structure.children
        if not structure.in_range:
            return _UNKNOWN
        if structure.size is None and structure.is_marginal_kernel and (self.phi == 1.0).all():
            return _ONE
        if self._ensemble is not None:
            value = self._ensemble.determinant()
            if value is not None and value[2] <= _TOTAL_ERROR:
                return value
        found = Found(np.zeros(1), np.zeros(1, np.int64), np.zeros(1))
        slots, work = np.arange(2 * k, dtype=np.int32), np.concatenate([self.phi, np.ones(k)])
        children = Children(slots[:k], slots[k:], work, 1, np.zeros(0, np.uint8), 0, 1)
        determinant_rows(lay_out([self], [_UNKNOWN], without_totals=True), 0, children, _TOTAL_ERROR, False, found)
        if found.error[0] <= _TOTAL_ERROR or structure.size is not None or self._has_only_trees:
            return float(found.mantissa[0]), int(found.exponent[0]), float(found.error[0])
        return determinant_at(structure, self.phi)

    @property
    def prefers_trees(self) -> bool:
        """Whether values are computed by star–mesh elimination, even where the form FREE would be faster.

        In large graphs, computing the base takes longer than thousands of eliminations. Marginals need it all the same.
        """
        structure = self.structure
        return structure.laplacian is not None and structure.rank * structure.children**2 > _MOST_PRODUCTS

    @property
    def _has_only_trees(self) -> bool:
        """Whether every row is computed by star–mesh elimination, which does not depend on `total`."""
        return self.structure.laplacian is not None and self.structure.size is None and self.free is None

    def refine(self, rtol: float) -> bool:
        """Compute `total` to a relative error of `rtol`, if that is possible; return whether it was computed again."""
        if self.total[2] <= rtol or self.refined or self._has_only_trees:
            return False
        self.refined = True
        structure = self.structure
        if structure.in_range and structure.size is None:
            self.total = determinant_at(structure, self.phi)
        elif structure.size and self.counted.all() and self._is_ensemble:
            self.total = elementary_symmetric(structure.floats[2], structure.size) or self.total
        return True

    @cached_property
    def elimination_order(self) -> np.ndarray:
        """The nodes of a graph in the order in which star–mesh elimination numbers them; it begins with the last one.

        A minimum-degree ordering, until the remaining graph is dense: errors grow with the number of neighbours.
        """
        trees = self.structure.laplacian
        assert trees is not None
        r = len(trees.kill)
        around: list[set[int]] = [set() for _ in range(r)]
        for a, b in zip(trees.tail.tolist(), trees.head.tolist(), strict=True):
            if a != b and b < r:
                around[a].add(b)
                around[b].add(a)
        left, first = set(range(r)), []
        by_degree = [(len(near), node) for node, near in enumerate(around)]
        heapq.heapify(by_degree)
        while by_degree:
            degree, node = heapq.heappop(by_degree)
            if node not in left or degree != len(around[node]):
                continue  # an outdated entry: the degree has changed, and there is another entry for the node
            if 2 * degree > len(left):
                break
            left.remove(node)
            first.append(node)
            for other in around[node]:
                around[other] |= around[node]
                around[other] -= {node, other}
                heapq.heappush(by_degree, (len(around[other]), other))
        return np.array([*sorted(left), *reversed(first)], np.int64)

    @cached_property
    def at_free(self) -> Value:
        """The determinant at the base FREE, without its size."""
        return determinant_at(self.structure, self._free_phi) if self.free else _UNKNOWN

    @cached_property
    def at_zero(self) -> Value:
        """The determinant at the base OUT, where every child is 0: det M0."""
        if self.out is None:
            return _UNKNOWN
        if self.structure.identity_m0:
            return _ONE
        found = None if self._marginals is None else self._marginals.determinant()
        return found or determinant_at(self.structure, np.zeros(len(self.phi)))


class FloatDeterminants:
    """All determinants of a program, and their `layout` for the kernels."""

    def __init__(self, each: Sequence[FloatDeterminant]):
        self.each = list(each)
        self._lock = new_lock()
        self.layout = self._laid_out()

    def refine(self, rtol: float) -> None:
        """Compute the totals to a relative error of `rtol`, and a new `layout` if one has changed."""
        self._change_each(lambda one: one.refine(rtol))

    def find_free_bases(self) -> None:
        """Compute the bases FREE, for queries that observe little, and a new `layout` if one is new."""
        self._change_each(FloatDeterminant.find_free_base)

    def _change_each(self, change: Callable[[FloatDeterminant], bool]) -> None:
        """Call `change`, which returns whether a determinant has changed, for all of them."""
        with self._lock:
            changed = [change(one) for one in self.each]
            if any(changed):
                self.layout = self._laid_out()

    def _laid_out(self) -> FloatLayout:
        return lay_out(self.each, [one.total for one in self.each])


class FlatArray:
    """A flat array to which arrays are appended."""

    def __init__(self, dtype: type):
        self.parts: list[np.ndarray] = [np.zeros(0, dtype)]
        self.size = 0

    def put(self, *arrays: np.ndarray) -> int:
        """Append arrays, and return the offset of the first one."""
        start = self.size
        for array in arrays:
            self.parts.append(array.ravel())
            self.size += array.size
        return start

    def flat(self) -> np.ndarray:
        return np.concatenate(self.parts)


def lay_out(each: Sequence[FloatDeterminant], totals: Sequence[Value], without_totals: bool = False) -> FloatLayout:
    """The arrays that kernels read.

    without_totals : leave out the forms that need `totals`, and read all children as numbers, not from evidence.
    """
    data, ints = FlatArray(np.float64), FlatArray(np.int64)
    plan = np.zeros(len(each), DETERMINANT)
    bases = np.zeros((BASES * len(each), 3))
    for d, one in enumerate(each):
        structure = one.structure
        det: Any = plan[d]
        det.rank, det.children, det.symmetric = structure.rank, structure.children, structure.symmetric
        det.definite = structure.nonnegative and structure.ratio is not None
        det.fixed_size = -1
        if structure.size is not None:
            det.fixed_size, det.counted = structure.size, ints.put(one.counted.astype(np.int64))
        det.phi = data.put(one.phi)
        free, out = None if without_totals and structure.size is None else one.free, one.out
        for form, base in ((FREE, free), (OUT, out)):
            if base is not None:
                det.has[form], det.kernel[form], det.scale[form] = 1, data.put(base.kernel), data.put(base.scale)
        if free is not None:
            det.gap = data.put(free.gap)
        bases[BASES * d + FREE] = totals[d] if structure.size is None else one.at_free
        bases[BASES * d + OUT] = one.at_zero
        bases[BASES * d + TOTAL] = totals[d]
        if one.columns is not None and not without_totals:
            det.variables = one.n_variables
            det.child_of, det.variable_of, det.child_bits = map(ints.put, _columns(one.columns, one.n_variables))
            for form, base in ((FREE, free), (OUT, out)):
                if base is not None:
                    _put_variable_tables(det, one, base, form, data)
        if structure.laplacian is not None and structure.in_range:
            _put_graph(det, one, structure.laplacian, data, ints)
        elif _has_rank_form(structure):
            m0, u, v = structure.floats
            det.has[RANK], det.m0, det.u, det.v = 1, data.put(m0), data.put(u.T), data.put(v.T)
            if structure.ratio is not None:
                det.ratio = data.put(structure.ratio)
    return FloatLayout(plan, data.flat(), ints.flat(), bases)


def _has_rank_form(structure: DetStructure) -> bool:
    """Whether the form RANK applies: if the matrices are symmetric, it takes u_i = s_i·v_i."""
    r, k = structure.rank, structure.children
    known = structure.ratio is not None or not structure.symmetric
    return structure.laplacian is None and structure.in_range and known and r * (2 * k + r) <= _MOST_NUMBERS


def _put_graph(det: Any, one: FloatDeterminant, trees: Laplacian, data: FlatArray, ints: FlatArray) -> None:
    """Lay out the form TREES, whose nodes are numbered in the order of elimination."""
    label = np.append(np.argsort(one.elimination_order), len(trees.kill))  # the ground is the last node
    det.has[TREES], det.directed, det.prefers_trees = 1, trees.directed, one.prefers_trees
    det.tail, det.head = ints.put(label[trees.tail]), ints.put(label[trees.head])
    det.weight, det.kill = data.put(trees.weight), data.put(trees.kill[one.elimination_order])


@np.errstate(over="ignore", under="ignore", divide="ignore")
def _put_variable_tables(det: Any, one: FloatDeterminant, base: Base, form: int, data: FlatArray) -> None:
    """Lay out what `fill_variables` and `fill_low` of the kernels look up: see the fields of `DETERMINANT`.

    Entries are those of children observed 1, and then those of children that differ from the base in another way. The
    low parts are there only if the kernel is known in pairs of doubles.
    """
    phi = one.phi
    change, diagonal = phi / base.scale, np.diag(base.kernel)
    if form == FREE:
        other, other_low = -base.gap, -base.gap_low
    else:
        other, other_low = diagonal + base.scale / phi, np.full(len(phi), np.nan)
        cancels = (diagonal < 0.0) & ~(-4.0 * diagonal <= other)  # see `guarded_sum` of the kernels
        for i in np.flatnonzero(other < _LARGE).tolist() if base.low is not None else []:
            other[i], other_low[i] = _exact_sum(one, base, i)
        known = base.low is not None and other < _LARGE
        other[cancels & ~(known & (np.abs(other) > _SMALLEST_SUM))] = np.nan
        other_low[cancels] = np.nan
    det.changes[form] = data.put(change, -change if form == FREE else change)
    det.diagonals[form] = data.put(diagonal, other)
    if base.low is not None:
        det.has_low[form], det.low[form] = 1, data.put(base.low)
        det.low_diagonals[form] = data.put(np.diag(base.low), other_low)


def _exact_sum(one: FloatDeterminant, base: Base, i: int) -> tuple[float, float]:
    """G_ii + 1/φ_i, scaled, as a pair of doubles."""
    assert base.low is not None
    entry = Fraction(base.kernel[i, i]) + Fraction(base.low[i, i])
    exact = entry + Fraction(base.square[i]) / (one.structure.exact_ratio[i] * Fraction(one.phi[i]))
    return float(exact), float(exact - Fraction(float(exact)))


def _columns(columns: np.ndarray, n_variables: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """`child_of`, `variable_of` and `child_bits` of the plan."""
    child_of, there = np.zeros(n_variables, np.int64), np.zeros(-(-n_variables // 64) * 64, np.uint8)
    child_of[columns], there[columns] = np.arange(len(columns)), 1
    return child_of, columns.astype(np.int64), np.packbits(there, bitorder="little").view("<u8").view(np.int64)
