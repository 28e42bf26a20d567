"""The checker of proofs: the code that has to be trusted for a verdict of `pgcc.check`.

It takes a circuit and what the prover wrote down, and verifies every step over exact numbers: rationals (flint), balls
with a proven radius where rationals are too long, intervals of doubles rounded outwards for tables of more than 2¹³
coefficients, and, where a proof rests on two polynomials being equal, residues modulo a fresh random prime of more than
128 bits. It shares no code with the prover; of pgcc it uses the circuit and its numbers. A rule is a function in the
table `RULES`; a step by another rule is an error.
"""

from __future__ import annotations

import math
import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import chain
from typing import Any, NamedTuple, NoReturn

import numpy as np
from flint import arb, arb_mat, fmpq, fmpq_mat, fmpq_poly, fmpz, fmpz_mod_ctx, fmpz_mod_mat

from pgcc.errors import ProofError
from pgcc.ir.circuit import Circuit
from pgcc.ir.matrix import Matrix
from pgcc.ir.node import Node, Op
from pgcc.ir.numbers import nearest_float
from pgcc.rings.precision import precision

TOTAL_TOLERANCE = 1e-9  # how far from 1 the total of a circuit with float weights may be
_EXACT_TABLE = 13  # variables, up to which tables of coefficients are rationals
_MOST_SIZE_BITS = 96
_PRECISIONS = (256, 1024, 4096, 16384)  # bits of balls

Rows = Sequence[Sequence[Any]]
Step = tuple[int, str, int | None, Any]


class Proof(NamedTuple):
    """What shows one claim: plain data, beside the circuit.

    Attributes
    ----------
    claim : str
        ``"multiaffine"``, ``"normalized"``, ``"nonnegative"`` or ``"negative_dependence"``.
    holds : bool
        Whether the claim is proved, or refuted.
    rule : str
        A key of `CLAIMS[claim, holds]`.
    circuit : Circuit
        The circuit that the steps are about: the one that was given, or another one of the same polynomial.
    data : dict
        What the rule needs. Steps are tuples (position of a node in `circuit.order`, rule, sign, witness).
    """

    claim: str
    holds: bool
    rule: str
    circuit: Circuit
    data: dict[str, Any] = {}  # noqa: RUF012 - never written to


def verify(
    circuit: Circuit, proofs: Iterable[Proof], *, tolerance: float = 1e-12, normalize: bool = False
) -> dict[str, bool]:
    """Check proofs about a circuit; what they prove (True) and refute (False), by claim.

    Parameters
    ----------
    circuit : Circuit
    proofs : iterable of Proof
        One a claim. Those of `nonnegative` and `negative_dependence` may need that of `multiaffine`.
    tolerance, normalize
        What the claims mean, as in `pgcc.check`.

    Raises
    ------
    ProofError
        If a step does not hold.

    Examples
    --------
    >>> import pgcc
    >>> g = pgcc.parse("0.5*x + 0.5")
    >>> verify(g, pgcc.check(g).proofs)
    {'multiaffine': True, 'normalized': True, 'nonnegative': True}
    """
    case = _Case(circuit, Fraction(tolerance), normalize)
    order = ("multiaffine", "nonnegative", "normalized", "negative_dependence")
    given = {proof.claim: proof for proof in proofs}
    for claim in sorted(given, key=lambda name: order.index(name) if name in order else -1):
        proof = given[claim]
        try:
            rules = CLAIMS.get((claim, proof.holds), {})
            if proof.rule not in rules:
                raise ProofError(f"there is no rule {proof.rule!r} by which {claim} could be {_said(proof.holds)}")
            holds = rules[proof.rule](case, proof._replace(circuit=_anew(proof.circuit, circuit)))
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise ProofError(f"the proof that {claim} is {_said(proof.holds)} is damaged ({error!r})") from error
        if not holds:
            raise ProofError(f"{claim} is not {_said(proof.holds)} by {proof.rule}: what it says does not hold")
        case.known[claim] = bool(proof.holds)
    return {claim: case.known[claim] for claim in given}


def _anew(other: Circuit, given: Circuit) -> Circuit:
    """The circuit of a proof: the given one if they are equal, else made again from its root (it may keep what is not
    so: its order, its links)."""
    return given if other == given else Circuit(other.root, other.variables)


def _said(holds: bool) -> str:
    return "proved" if holds else "refuted"


@dataclass
class _Case:
    """The circuit, what is tolerated, and the claims that are settled."""

    circuit: Circuit
    tolerance: Fraction
    normalize: bool
    known: dict[str, bool] = field(default_factory=dict)

    def slacks(self, is_exact: bool) -> Iterator[Any]:
        """How far below 0 a coefficient may be: tolerance·|g(1)| where some numbers are floats, exactly or in balls."""
        if self.circuit.facts.exact or not self.tolerance:
            return iter([fmpq(0)])
        return (_lift_exact(self.tolerance) * abs(found) for found in self.totals(is_exact))

    def totals(self, is_exact: bool) -> Iterator[Any]:
        """g(1): exactly, or in ever smaller balls."""
        return (total(self.circuit, bits) for bits in ((0,) if is_exact else _PRECISIONS))


# -- exact values ----------------------------------------------------------------------------------------------------


class Ring(NamedTuple):
    """A field: how rationals become numbers of it, and how rows of them become a matrix (of flint)."""

    lift: Callable[[Any], Any]
    matrix: Callable[[int, int, list[Any]], Any]


def _lift_exact(x: Any) -> fmpq:
    """A number, or the text of a fraction ("3/7")."""
    if type(x) is str:
        above, _, below = x.partition("/")
        return fmpq(fmpz(above), fmpz(below or "1"))
    return fmpq(*x.as_integer_ratio())


def exact_rows(matrix: Matrix) -> list[list[fmpq]]:
    """The entries as rationals."""
    return [[_lift_exact(x) for x in row] for row in matrix.numbers()]


RATIONALS = Ring(_lift_exact, fmpq_mat)
BALLS = Ring(lambda x: arb(_lift_exact(x)), arb_mat)


def modular(prime: int) -> Ring:
    """The rationals modulo a prime; one that divides a denominator raises ZeroDivisionError."""
    context = fmpz_mod_ctx(prime)

    def lift(x: Any) -> Any:
        above, below = Fraction(x).as_integer_ratio()
        return context(above) if below == 1 else context(above) / context(below)

    return Ring(lift, lambda m, n, entries: fmpz_mod_mat(m, n, entries, context))


def evaluate(circuit: Circuit, point: Mapping[str, Any], ring: Ring) -> Any:
    """The polynomial at a point of a ring. (A complement ȳ is 1.)"""
    at: list[Any] = []
    one = ring.lift(1)
    for node, links in zip(circuit.order, circuit.links, strict=True):
        match node.op:
            case Op.CONST:
                value = ring.lift(node.value)
            case Op.VAR:
                value = one if node.is_complement else point[node.name]
            case Op.SUM:
                value = sum((ring.lift(w) * at[c] for w, c in zip(node.weights, links, strict=True)), ring.lift(0))
            case Op.PRODUCT:
                value = math.prod((at[c] for c in links), start=one)
            case Op.DET:
                value = _determinant(node, [at[c] for c in links], ring)
            case _:
                _unknown(node)
        at.append(value)
    return at[-1]


def _unknown(node: Node) -> NoReturn:
    raise ProofError(f"the checker does not know the operation {node.op!r}")


def _determinant(node: Node, below: Sequence[Any], ring: Ring) -> Any:
    """The value of a Det; of a sized one, the coefficient of s^size where f is s·f for the children that count."""
    f, y = below[: len(below) // 2], below[len(below) // 2 :]
    matrices = tuple([[ring.lift(x) for x in row] for row in m.numbers()] for m in node.matrices)
    if node.size is None:
        return _bordered(matrices, f, y, ring)
    top = sum(counts and not x == 0 for x, counts in zip(f, node.counted, strict=True))  # noqa: SIM201 - balls
    if node.size > top:
        return ring.lift(0)
    values = [
        _bordered(matrices, [ring.lift(s) * x if c else x for x, c in zip(f, node.counted, strict=True)], y, ring)
        for s in range(top + 1)
    ]
    return _from_points(values, node.size, ring)


def _bordered(matrices: Sequence[Rows], f: Sequence[Any], y: Sequence[Any], ring: Ring) -> Any:
    """det [[M0, U·diag(f)], [−Vᵀ, diag(y)]]: a child with y = 1 is f·u·vᵀ in M0, one with f = 0 is the factor y."""
    m0, u, v = matrices
    r, left_out = len(m0), {j for j in range(len(f)) if f[j] == 0}
    factor = math.prod((y[j] for j in left_out), start=ring.lift(1))
    inside = [j for j in range(len(f)) if j not in left_out and y[j] == 1]
    border = [j for j in range(len(f)) if j not in left_out and j not in inside]  # a ball may be neither = 1 nor ≠ 1
    top = ring.matrix(r, r, [x for row in m0 for x in row])
    if inside and r:
        left = ring.matrix(r, len(inside), [row[j] * f[j] for row in u for j in inside])
        top += left * ring.matrix(len(inside), r, [row[j] for j in inside for row in v])
    if border:
        k, rows = len(border), top.tolist()
        entries = [x for a in range(r) for x in (*rows[a], *(u[a][j] * f[j] for j in border))]
        entries += [
            x for j in border for x in (*(-row[j] for row in v), *(y[j] if i == j else ring.lift(0) for i in border))
        ]
        top = ring.matrix(r + k, r + k, entries)
    return factor * top.det()


def _from_points(values: Sequence[Any], k: int, ring: Ring) -> Any:
    """The coefficient of s^k of the polynomial of degree < len(values) with these values at s = 0, 1, 2, …"""
    n = len(values)
    whole = math.prod((fmpq_poly([-i, 1]) for i in range(n)), start=fmpq_poly([1]))
    found = ring.lift(0)
    for j, value in enumerate(values):
        basis = whole // fmpq_poly([-j, 1])
        weight = basis[k] / fmpq((-1) ** (n - 1 - j) * math.factorial(j) * math.factorial(n - 1 - j))
        found += ring.lift(Fraction(int(weight.p), int(weight.q))) * value
    return found


def total(circuit: Circuit, bits: int) -> Any:
    """g(1): a rational for bits = 0, else a ball computed with so many bits."""
    names = circuit.variables
    if not bits:
        return evaluate(circuit, dict.fromkeys(names, fmpq(1)), RATIONALS)
    with precision(bits):
        return evaluate(circuit, dict.fromkeys(names, arb(1)), BALLS)


def coefficient(circuit: Circuit, row: Mapping[str, int]) -> fmpq:
    """That of Π z_i over the variables with 1 in the row, of a multiaffine polynomial: [t^|A|] g(z_A = t, others 0)."""
    if set(row) != set(circuit.variables) or any(type(x) is not int or x not in (0, 1) for x in row.values()):
        raise ProofError("an assignment has 0 or 1 for every variable")
    top = sum(row.values())
    points = [{name: fmpq(t * x) for name, x in row.items()} for t in range(top + 1)]
    return _from_points([evaluate(circuit, point, RATIONALS) for point in points], top, RATIONALS)


# -- structure and identity ------------------------------------------------------------------------------------------


def _scopes(circuit: Circuit) -> tuple[list[int], int]:
    """The variables of every node, and those that two factors of some product share; bit i is variable i.

    In a Det, f_i and y_i never stand in one monomial.
    """
    bit = {name: 1 << i for i, name in enumerate(circuit.variables)}
    of: list[int] = []
    shared = 0
    for node, links in zip(circuit.order, circuit.links, strict=True):
        below = [of[c] for c in links]
        if node.op is Op.DET:
            half = len(below) // 2
            below = [a | b for a, b in zip(below[:half], below[half:], strict=True)]
        scope = bit[node.name] if node.op is Op.VAR else 0
        for factor in below:
            shared |= scope & factor if node.op is not Op.SUM else 0
            scope |= factor
        of.append(scope)
    return of, shared


def _random_ring(*circuits: Circuit) -> tuple[int, Ring]:
    """Residues modulo a random prime, 128 bits longer than the size of what is tested: what is 0 at a random point is
    0, but for a chance of about 2⁻¹²⁰ (that the prime divides all its coefficients; Schwartz and Zippel)."""
    bits = math.prod(map(sum, zip(*map(_size, circuits), strict=True))).bit_length() + 2
    if bits > _MOST_SIZE_BITS:
        raise ProofError("powers are too high for a test of identity")
    while True:
        prime = secrets.randbits(128 + bits) | 1 << 128 + bits | 1
        if fmpz(prime).is_probable_prime():
            return prime, modular(prime)


def _size(circuit: Circuit) -> tuple[int, int]:
    """(u, b) with degrees of at most u, and numerators of at most 2·b·u bits over a denominator of at most b·u bits.

    b is the length of all numbers. A node is P/Dᵘ, D the product of all denominators: u adds up in a product, is one
    more in a sum, and in a determinant one more for every row.
    """
    sizes: list[int] = []
    bits = 1
    for node, links in zip(circuit.order, circuit.links, strict=True):
        below = [sizes[c] for c in links]
        rows: Iterable[Sequence[Any]] = ()
        match node.op:
            case Op.CONST:
                size, rows = 1, [[node.value]]
            case Op.VAR:
                size = 1
            case Op.SUM:
                size, rows = 1 + max(below, default=0), [node.weights]
            case Op.PRODUCT:
                size = sum(below)
            case Op.DET:
                size, rows = len(links) + sum(below), list(chain(*map(Matrix.numbers, node.matrices)))
                size += node.matrices[0].shape[0]
            case _:
                _unknown(node)
        bits += sum(2 + sum(map(int.bit_length, x.as_integer_ratio())) for row in rows for x in row)
        sizes.append(min(size, 1 << _MOST_SIZE_BITS))
    return max(sizes), bits


def same_polynomial(a: Circuit, b: Circuit) -> bool:
    """Whether two circuits are one polynomial, at a random point modulo a random prime."""
    if a == b:
        return True
    prime, ring = _random_ring(a, b)
    point = {name: ring.lift(secrets.randbelow(prime)) for name in {*a.variables, *b.variables}}
    return bool(evaluate(a, point, ring) == evaluate(b, point, ring))


def _is_affine(circuit: Circuit, names: Iterable[str]) -> bool:
    """Whether second differences vanish in these variables, at a random point modulo a random prime."""
    prime, ring = _random_ring(circuit)
    point = {name: ring.lift(secrets.randbelow(prime)) for name in circuit.variables}
    middle = evaluate(circuit, point, ring)
    for name in names:
        step = ring.lift(1 + secrets.randbelow(prime - 1))
        sides = [evaluate(circuit, {**point, name: point[name] + d}, ring) for d in (step, -step)]
        if sum(sides) != middle + middle:
            return False
    return True


# -- claims ----------------------------------------------------------------------------------------------------------


def _decomposable(case: _Case, proof: Proof) -> bool:
    """No two factors of a product share a variable."""
    return _scopes(proof.circuit)[1] == 0 and same_polynomial(case.circuit, proof.circuit)


def _identity_test(case: _Case, proof: Proof) -> bool:
    """Only variables that two factors share can be squared, and they are not, but for a chance of about 2⁻¹²⁰."""
    shared = _scopes(case.circuit)[1]
    return _is_affine(case.circuit, [name for i, name in enumerate(case.circuit.variables) if shared >> i & 1])


def _square(case: _Case, proof: Proof) -> bool:
    """A second difference that is not 0 modulo a prime is not 0."""
    return not _is_affine(case.circuit, [proof.data["variable"]])


def _total_is_right(case: _Case, proof: Proof) -> bool:
    """g(1) = 1; to 1e-9 where some numbers are floats; or positive, if it is to be divided by it."""
    tolerance = _tolerated(case.circuit)
    return any(
        (found > 0 if case.normalize else abs(found - 1) <= tolerance) and _agrees(found, proof)
        for found in case.totals(proof.data["exact"])
    )


def _total_is_wrong(case: _Case, proof: Proof) -> bool:
    """g(1) is something else; or not positive."""
    tolerance = _tolerated(case.circuit)
    return any(
        (found <= 0 if case.normalize else abs(found - 1) > tolerance) and _agrees(found, proof)
        for found in case.totals(proof.data["exact"])
    )


def _tolerated(circuit: Circuit) -> fmpq:
    return fmpq(0) if circuit.facts.exact else _lift_exact(TOTAL_TOLERANCE)


def _agrees(found: Any, proof: Proof) -> bool:
    """A total that is told exactly is that."""
    return not proof.data["exact"] or found == _lift_exact(proof.data["total"])


def _positive_coefficient(case: _Case, proof: Proof) -> bool:
    """g(1) > 0 if one coefficient is positive and none is negative."""
    fine = case.normalize and case.known.get("multiaffine") and case.known.get("nonnegative without tolerance")
    return bool(fine and coefficient(case.circuit, proof.data["row"]) > 0)


def _by_steps(case: _Case, proof: Proof) -> bool:
    """Every step follows from those before it, and the last node is the root."""
    walk = _follow(proof)
    proved = walk.signs.get(len(proof.circuit.order) - 1) in (0, 1) and same_polynomial(case.circuit, proof.circuit)
    case.known["nonnegative without tolerance"] = proved
    return proved


def _stable_by_steps(case: _Case, proof: Proof) -> bool:
    """A stable multiaffine polynomial without negative coefficients is strongly Rayleigh (Borcea, Brändén, Liggett)."""
    fine = case.known.get("multiaffine") and case.known.get("nonnegative")
    stable = len(proof.circuit.order) - 1 in _follow(proof).stable
    return bool(fine and stable and same_polynomial(case.circuit, proof.circuit))


def _all_coefficients(case: _Case, proof: Proof) -> bool:
    """None of the 2ⁿ is below −slack."""
    if not case.known.get("multiaffine"):
        return False
    circuit, n = case.circuit, len(case.circuit.variables)
    tolerated = proof.data["tolerated"]
    slack = fmpq(0) if tolerated is None else next(case.slacks(tolerated))
    doubtful = 1 << n
    if n > _EXACT_TABLE:
        floor = -math.nextafter(nearest_float(_fraction(slack)), 0.0) if isinstance(slack, fmpq) else math.nan
        low = _coefficients(circuit, _Interval.lift).low
        rows = np.argwhere(~(low >= floor))
        doubtful = len(rows)
    if doubtful > 1 << _EXACT_TABLE or n <= _EXACT_TABLE:
        return bool(all(x >= -slack for x in _coefficients(circuit, _as_object).ravel()))
    names = circuit.variables
    return all(coefficient(circuit, dict(zip(names, map(int, row), strict=True))) >= -slack for row in rows)


def _negative_coefficient(case: _Case, proof: Proof) -> bool:
    """One of them is below −slack, and is what the proof says."""
    found = coefficient(case.circuit, proof.data["row"])
    fine = case.known.get("multiaffine") and found == _lift_exact(proof.data["value"])
    return bool(fine and any(found < -slack for slack in case.slacks(proof.data["tolerated"])))


def _correlated_pair(case: _Case, proof: Proof) -> bool:
    """g·∂ij g > ∂i g·∂j g at a positive point, times z_i·z_j; derivatives of a multiaffine g are differences."""
    circuit, (i, j) = case.circuit, proof.data["pair"]
    point = {name: _lift_exact(proof.data["point"].get(name, 1)) for name in circuit.variables}
    if not case.known.get("multiaffine") or i == j or not {i, j} <= set(point) or min(point.values()) <= 0:
        return False
    both, no_i, no_j, none = (
        evaluate(circuit, {**point, **dict.fromkeys(zeros, fmpq(0))}, RATIONALS) for zeros in ((), (i,), (j,), (i, j))
    )
    excess = both * (both - no_i - no_j + none) - (both - no_i) * (both - no_j)
    return bool(excess > 0 and excess == _lift_exact(proof.data["excess"]))


CLAIMS: dict[tuple[str, bool], dict[str, Callable[[_Case, Proof], bool]]] = {
    ("multiaffine", True): {"structure": _decomposable, "identity test": _identity_test},
    ("multiaffine", False): {"square": _square},
    ("normalized", True): {"total": _total_is_right, "positive coefficient": _positive_coefficient},
    ("normalized", False): {"total": _total_is_wrong},
    ("nonnegative", True): {"steps": _by_steps, "all coefficients": _all_coefficients},
    ("nonnegative", False): {"negative coefficient": _negative_coefficient},
    ("negative_dependence", True): {"steps": _stable_by_steps},
    ("negative_dependence", False): {"correlated pair": _correlated_pair},
}


# -- tables of all coefficients --------------------------------------------------------------------------------------


def _fraction(x: fmpq) -> Fraction:
    return Fraction(int(x.p), int(x.q))


def _as_object(x: Any) -> np.ndarray:
    return np.array([_lift_exact(x)], object)


class _Interval:
    """Intervals of doubles, rounded outwards. An end that is NaN says nothing, and no comparison with it holds."""

    def __init__(self, low: np.ndarray, high: np.ndarray):
        self.low, self.high = low, high

    @staticmethod
    def lift(x: Any) -> _Interval:
        """The doubles next to a number; itself, if it is one."""
        near = nearest_float(x)
        if math.isfinite(near) and Fraction(near) == Fraction(x):
            return _Interval(np.array([near]), np.array([near]))
        return _Interval(np.nextafter([near], -np.inf), np.nextafter([near], np.inf))

    def reshape(self, *shape: int) -> _Interval:
        return _Interval(self.low.reshape(*shape), self.high.reshape(*shape))

    def __getitem__(self, at: Any) -> _Interval:
        return _Interval(self.low[at], self.high[at])

    def __add__(self, other: _Interval) -> _Interval:
        return _Interval(_rounded(np.add, self.low, other.low, -1), _rounded(np.add, self.high, other.high, 1))

    def __neg__(self) -> _Interval:
        return _Interval(-self.high, -self.low)

    def __mul__(self, other: _Interval) -> _Interval:
        if np.min(other.low) >= 0 and np.min(self.low) >= 0:
            pairs = [(self.low, other.low)], [(self.high, other.high)]
        else:
            ends = [(x, y) for x in (self.low, self.high) for y in (other.low, other.high)]
            pairs = ends, ends
        lows, highs = (
            [_rounded(np.multiply, x, y, d) for x, y in some] for some, d in zip(pairs, (-1, 1), strict=True)
        )
        return _Interval(np.minimum.reduce(lows), np.maximum.reduce(highs))


def _rounded(operation: Any, x: np.ndarray, y: np.ndarray, direction: int) -> np.ndarray:
    """x + y or x·y, down or up by one unit in the last place at least; a sum or a product with 0 is not rounded."""
    with np.errstate(all="ignore"):
        near = operation(x, y)
        moved = near + direction * (np.abs(near) * 2.0**-52 + 2.0**-1074)
        exact = (x == 0) | (y == 0)
        return np.where(exact, 0.0 if operation is np.multiply else near, moved)


def _coefficients(circuit: Circuit, lift: Callable[[Any], Any]) -> Any:
    """All of them, in an array with an axis of length 2 for every variable (and one of length 1 for none).

    In a decomposable circuit the coefficients of every node are computed: 1 is (1, 0) in each variable that it misses.
    In any other the values at the corners {0, 1}ⁿ are, where 1 is (1, 1), and their differences are the coefficients.
    """
    n = len(circuit.variables)
    axis = {name: i for i, name in enumerate(circuit.variables)}
    scopes, shared = _scopes(circuit)
    zero, one = lift(0), lift(1)

    def along(i: int, first: Any, second: Any) -> Any:
        shape = [2 if i == k else 1 for k in range(n)]
        which = np.arange(2).reshape(shape)
        return _choose(which, first, second)

    absent = [along(i, one, one if shared else zero) for i in range(n)]

    def padded(x: Any, missing: int, needed: bool = not shared) -> Any:
        return x * math.prod((absent[i] for i in range(n) if missing >> i & 1), start=one) if missing and needed else x

    uses = Counter(c for links in circuit.links for c in links)
    at: dict[int, Any] = {}
    for k, (node, links) in enumerate(zip(circuit.order, circuit.links, strict=True)):
        match node.op:
            case Op.CONST:
                value = lift(node.value)
            case Op.VAR:
                i = axis[node.name]
                value = absent[i] if node.is_complement else along(i, zero, one)
            case Op.SUM:
                value = padded(zero, scopes[k], True)
                for w, c in zip(node.weights, links, strict=True):
                    value = value + padded(lift(w) * at[c], scopes[k] & ~scopes[c])
            case Op.PRODUCT:
                value = math.prod((at[c] for c in links), start=one)
            case Op.DET:
                half = len(links) // 2
                pairs = [
                    (padded(at[f], scopes[y] & ~scopes[f]), padded(at[y], scopes[f] & ~scopes[y]))
                    for f, y in zip(links[:half], links[half:], strict=True)
                ]
                value = _expanded_det(node, pairs, lift)
            case _:
                _unknown(node)
        at[k] = value
        for c in links:
            uses[c] -= 1
            if not uses[c]:
                at.pop(c, None)
    found = padded(at[len(circuit.order) - 1], ((1 << n) - 1) & ~scopes[-1], True)
    return _differences(found, n) if shared else found


def _choose(which: np.ndarray, first: Any, second: Any) -> Any:
    if isinstance(first, _Interval):
        return _Interval(np.where(which, second.low, first.low), np.where(which, second.high, first.high))
    return np.where(which, second, first)


def _expanded_det(node: Node, pairs: Sequence[tuple[Any, Any]], lift: Callable[[Any], Any]) -> Any:
    """Σ_T c_T · Π_{i∈T} f_i · Π_{i∉T} y_i, one child after the other."""
    k = len(pairs)
    matrices = tuple(map(exact_rows, node.matrices))
    values = []
    for T in range(1 << k):
        inside = [T >> i & 1 for i in range(k)]
        if node.size is not None and sum(x for x, c in zip(inside, node.counted, strict=True) if c) != node.size:
            values.append(lift(0))
            continue
        f, y = [fmpq(x) for x in inside], [fmpq(1 - x) for x in inside]
        values.append(lift(_fraction(_bordered(matrices, f, y, RATIONALS))))
    for f, y in pairs:
        values = [a * y + b * f for a, b in zip(values[::2], values[1::2], strict=True)]
    return values[0]


def _differences(values: Any, n: int) -> Any:
    """Coefficients from values at corners: in every variable, the value at 1 less that at 0."""
    for i in range(n):
        parts = [values[(slice(None),) * i + (slice(k, k + 1),)] for k in (0, 1)]
        which = np.arange(2).reshape([2 if i == k else 1 for k in range(n)])
        values = _choose(which, parts[0], parts[1] + -parts[0])
    return values


# -- rules for determinants: no coefficient, as a polynomial in the children and their complements, is negative -----


def is_symmetric(rows: Rows) -> bool:
    """A = Aᵀ"""
    return all(rows[i][j] == rows[j][i] for i in range(len(rows)) for j in range(i))


def is_semidefinite(rows: Rows, witness: Any) -> bool:
    """Whether a matrix A is symmetric and positive semidefinite.

    The witness is a lower triangular X without zeros on its diagonal, or None for the identity: X·A·Xᵀ is diagonally
    dominant, so it is positive semidefinite, and with it A.
    """
    n = len(rows)
    if not is_symmetric(rows):
        return False
    if witness is not None:
        lower = [list(map(_lift_exact, row)) for row in witness]
        if len(lower) != n or any(len(row) != i + 1 or not row[i] for i, row in enumerate(lower)):
            return False
        x = fmpq_mat(n, n, [x for row in lower for x in row + [fmpq(0)] * (n - len(row))])
        rows = (x * fmpq_mat(n, n, [a for row in rows for a in row]) * x.transpose()).tolist()
    return all(2 * row[i] >= sum(map(abs, row)) for i, row in enumerate(rows))  # a_ii ≥ Σ_{j≠i} |a_ij|, so a_ii ≥ 0


def is_laplacian(m0: Rows, u: Rows, v: Rows, witness: Any = None) -> bool:
    """M0 and all u_i·v_iᵀ have no positive entry off the diagonal and no negative sum of a row.

    So has M0 + Σ f_i·u_i·v_iᵀ, as linear forms in f: its determinant counts forests (matrix-tree theorem).
    """
    columns = zip(zip(*u, strict=True), zip(*v, strict=True), strict=True)
    products = (
        {(a, b): x * y for a, x in enumerate(left) if x for b, y in enumerate(right) if y} for left, right in columns
    )
    for part in chain([{(a, b): x for a, row in enumerate(m0) for b, x in enumerate(row) if x}], products):
        sums: dict[int, fmpq] = {}
        for (a, b), x in part.items():
            if a != b and x > 0:
                return False
            sums[a] = sums.get(a, fmpq(0)) + x
        if any(x < 0 for x in sums.values()):
            return False
    return True


def are_parallel(u: Rows, v: Rows) -> bool:
    """Whether every u_i·v_iᵀ is s·v_i·v_iᵀ with s ≥ 0."""
    for left, right in zip(zip(*u, strict=True), zip(*v, strict=True), strict=True):
        top = next((i for i, y in enumerate(right) if y), None)
        if top is None:
            continue
        if left[top] * right[top] < 0 or any(x * right[top] != y * left[top] for x, y in zip(left, right, strict=True)):
            return False
    return True


def _is_gram(m0: Rows, u: Rows, v: Rows, witness: Any) -> bool:
    """M0 ⪰ 0 and u_i ∥ v_i: mixed discriminants of positive semidefinite matrices are nonnegative."""
    return are_parallel(u, v) and is_semidefinite(m0, witness)


def _unit_rows(u: Rows) -> list[int] | None:
    """Which unit vectors the columns of U are. (Two that are the same one only add up.)"""
    units = [[i for i, x in enumerate(column) if x] for column in zip(*u, strict=True)]
    if any(len(one) != 1 or u[one[0]][j] != 1 for j, one in enumerate(units)):
        return None
    return [one[0] for one in units]


def kernel_of(m0: Rows, u: Rows, v: Rows) -> list[list[Any]] | None:
    """L where M0 = diag(d ≥ 0) and the columns of U are unit vectors: coefficients are its principal minors times some
    d_i. (A row of M0 + Σ f_i·e_i·v_iᵀ is f_i·v_iᵀ where i is in, and d_i·e_iᵀ where it is not.)"""
    units = _unit_rows(u)
    diagonal = all(x >= 0 if i == j else not x for i, row in enumerate(m0) for j, x in enumerate(row))
    return [list(v[i]) for i in units] if units is not None and diagonal else None


def marginal_kernel_of(m0: Rows, u: Rows, v: Rows) -> list[list[Any]] | None:
    """K where M0 = I − K, the columns of U are unit vectors and those of V the same columns of K."""
    K = [[int(i == j) - x for j, x in enumerate(row)] for i, row in enumerate(m0)]
    units = _unit_rows(u)
    fits = units is not None and all(row[j] == K[unit][i] for i, row in enumerate(v) for j, unit in enumerate(units))
    return K if fits else None


def plus_transpose(rows: Rows) -> list[list[Any]]:
    """L + Lᵀ"""
    return [[x + rows[j][i] for j, x in enumerate(row)] for i, row in enumerate(rows)]


def _is_kernel(m0: Rows, u: Rows, v: Rows, witness: Any) -> bool:
    """L + Lᵀ ⪰ 0: no principal minor of L is negative."""
    L = kernel_of(m0, u, v)
    return L is not None and is_semidefinite(plus_transpose(L), witness)


def _is_marginal_kernel(m0: Rows, u: Rows, v: Rows, witness: Any) -> bool:
    """0 ⪯ K ⪯ I: a determinantal point process."""
    K = marginal_kernel_of(m0, u, v)
    return K is not None and is_semidefinite(m0, witness[0]) and is_semidefinite(K, witness[1])


DET_RULES: dict[str, Callable[[Rows, Rows, Rows, Any], bool]] = {
    "matrix-tree theorem": is_laplacian,
    "Gram determinant": _is_gram,
    "positive semidefinite kernel": _is_kernel,
    "marginal kernel": _is_marginal_kernel,
}


# -- rules for nodes -------------------------------------------------------------------------------------------------

Monomial = frozenset[tuple[str | int, int]]  # (variable, or position of a part that is proved; power)
Terms = dict[Monomial, Fraction]


def _holds(rule: str, node: Node, witness: Any) -> bool:
    m0, u, v = map(exact_rows, node.matrices)
    return DET_RULES[rule](m0, u, v, witness)


@dataclass
class _Walk:
    """What the steps have shown so far, by position in the circuit's order.

    signs: 1 for no negative coefficient, −1 for no positive one, 0 for neither. terms: polynomials in variables and in
    parts without negative coefficients. stable: no zeros where all variables have positive imaginary parts, or 0.
    """

    circuit: Circuit
    signs: dict[int, int] = field(default_factory=dict)
    terms: dict[tuple[Any, int], Terms] = field(default_factory=dict)
    stable: set[int] = field(default_factory=set)
    matrices: set[tuple[str, Any]] = field(default_factory=set)

    def below(self, i: int) -> list[int | None]:
        return [self.signs.get(c) for c in self.circuit.links[i]]

    def has_rule(self, node: Node, rule: str, witness: Any) -> bool:
        """Whether a determinant has nonnegative coefficients in its children, by one of `DET_RULES`."""
        key = rule, node.matrices
        if key not in self.matrices and _holds(rule, node, witness):
            self.matrices.add(key)
        return key in self.matrices


def _follow(proof: Proof) -> _Walk:
    """All steps of a proof, in order."""
    walk = _Walk(proof.circuit)
    for number, (i, rule, sign, witness) in enumerate(proof.data["steps"]):
        if rule not in RULES or type(i) is not int or i < 0 or type(sign) not in (int, type(None)):
            raise ProofError(f"step {number}: {rule!r} is no rule, {i!r} no position or {sign!r} no sign")
        op, holds = RULES[rule]
        node = proof.circuit.order[i]
        if (op is not None and node.op is not op) or not holds(walk, i, node, sign, witness):
            raise ProofError(f"step {number}: {rule!r} does not show that node {i}, {node!r}, has the sign {sign}")
        if sign is not None:
            walk.signs[i] = sign
    return walk


def _sign(x: Any) -> int:
    return (x > 0) - (x < 0)


def _number(walk: _Walk, i: int, node: Node, sign: Any, _: Any) -> bool:
    """A number is its own coefficient."""
    return sign == _sign(node.value)


def _variable(walk: _Walk, i: int, node: Node, sign: Any, _: Any) -> bool:
    """The coefficient of a variable is 1."""
    return sign == 1


def _weighted_sum(walk: _Walk, i: int, node: Node, sign: Any, _: Any) -> bool:
    """Coefficients add up: the sign of every term w·f, which is that of w times that of f, is this one or 0."""
    terms = [(_sign(w), s) for w, s in zip(node.weights, walk.below(i), strict=True) if w]
    return sign in (-1, 0, 1) and all(s is not None and w * s in (0, sign) for w, s in terms)


def _product(walk: _Walk, i: int, node: Node, sign: Any, _: Any) -> bool:
    """Coefficients of a product are sums of products of coefficients; a factor of 0 makes it 0."""
    below = walk.below(i)
    if sign == 0:
        return 0 in below
    return None not in below and sign == math.prod(below)  # type: ignore[arg-type]


def _det_by(rule: str) -> Callable[[_Walk, int, Node, Any, Any], bool]:
    """A determinant without negative coefficients in its children, of children without negative coefficients."""

    def holds(walk: _Walk, i: int, node: Node, sign: Any, witness: Any) -> bool:
        return sign == 1 and all(s in (0, 1) for s in walk.below(i)) and walk.has_rule(node, rule, witness)

    return holds


def _part(walk: _Walk, i: int, node: Node, sign: Any, space: Any) -> bool:
    """A node without negative coefficients is taken for a variable."""
    walk.terms[space, i] = {frozenset({(i, 1)}): Fraction(1)}
    return sign is None and walk.signs.get(i) in (0, 1)


def _terms(walk: _Walk, i: int, node: Node, sign: Any, space: Any) -> bool:
    """A node is multiplied out, from the terms of its children."""
    below = [walk.terms[space, c] for c in walk.circuit.links[i]]
    found: Terms = {}
    match node.op:
        case Op.CONST:
            found = {frozenset(): Fraction(node.value)}
        case Op.VAR:
            found = {frozenset() if node.is_complement else frozenset({(node.name, 1)}): Fraction(1)}
        case Op.SUM:
            for w, terms in zip(node.weights, below, strict=True):
                for m, x in terms.items():
                    found[m] = found.get(m, Fraction(0)) + Fraction(w) * x
        case Op.PRODUCT:
            found = {frozenset(): Fraction(1)}
            for terms in below:
                found = _times(found, terms)
        case _:
            return False
    walk.terms[space, i] = {m: x for m, x in found.items() if x}
    return sign is None


def _times(a: Terms, b: Terms) -> Terms:
    out: Terms = {}
    for m, x in a.items():
        for n, y in b.items():
            powers = dict(m)
            for name, power in n:
                powers[name] = powers.get(name, 0) + power
            both = frozenset(powers.items())
            out[both] = out.get(both, Fraction(0)) + x * y
    return out


def _multiplied_out(walk: _Walk, i: int, node: Node, sign: Any, space: Any) -> bool:
    """All coefficients have the sign."""
    return sign in (-1, 0, 1) and {_sign(x) for x in walk.terms[space, i].values()} <= {sign}


def _part_of_determinant(walk: _Walk, i: int, node: Node, sign: Any, witness: Any) -> bool:
    """Σ_j w_j·D(s_j) = Σ_d (Σ_j w_j·s_j^d)·[s^d] D at s_j = 1, 2, 3, …, where every child of D(s) is Σ_m s^m·f_m.

    The f_m have no negative coefficients, nor has D as a polynomial in its children.
    """
    order, links = walk.circuit.order, walk.circuit.links
    dets = [order[c] for c in links[i]]
    if any(d.op is not Op.DET or d.data != dets[0].data for d in dets):
        return False
    points, half = range(1, len(dets) + 1), len(dets[0].inside)
    degrees = [_degree_in_s(walk, [links[c][p] for c in links[i]], points) for p in range(2 * half)]
    if None in degrees or not walk.has_rule(dets[0], *witness):
        return False
    most = sum(max(degrees[p] or 0, degrees[half + p] or 0) for p in range(half))
    sums = (sum(Fraction(w) * s**d for w, s in zip(node.weights, points, strict=True)) for d in range(most + 1))
    return sign in (-1, 0, 1) and {_sign(x) for x in sums} <= {0, sign}


def _degree_in_s(walk: _Walk, at_points: Sequence[int], points: Sequence[int]) -> int | None:
    """The largest m where these nodes are Σ_m s^m·f_m at the points, with f_m that have no negative coefficients."""
    if len(set(at_points)) == 1:
        return 0 if walk.signs.get(at_points[0]) in (0, 1) else None
    forms = []
    for c in at_points:
        node, form = walk.circuit.order[c], dict[int, Fraction]()
        edges = zip(node.weights, walk.circuit.links[c], strict=True) if node.op is Op.SUM else [(1, c)]
        for w, part in edges:
            form[part] = form.get(part, Fraction(0)) + Fraction(w)  # a child may occur twice
        forms.append(form)
    most = 0
    for part in {part for form in forms for part in form}:
        weights = [form.get(part, Fraction(0)) for form in forms]
        if weights[0] <= 0 or walk.signs.get(part) not in (0, 1):
            return None
        power = int(weights[1] / weights[0]).bit_length() - 1  # s = 2 is the second point
        if power < 0 or any(w != weights[0] * s**power for w, s in zip(weights, points, strict=True)):
            return None
        most = max(most, power)
    return most


def _stable_number(walk: _Walk, i: int, node: Node, sign: Any, _: Any) -> bool:
    """A nonnegative number has no zeros, or is 0."""
    return _stable(walk, i, sign, node.value >= 0)


def _stable_variable(walk: _Walk, i: int, node: Node, sign: Any, _: Any) -> bool:
    """z is not 0 where its imaginary part is positive."""
    return _stable(walk, i, sign, True)


def _linear_form(walk: _Walk, i: int, node: Node, sign: Any, _: Any) -> bool:
    """Σ w_i·z_i + c with w, c ≥ 0 maps the upper half-plane to itself, or is a number."""
    return _stable(walk, i, sign, is_form(node))


def _multiple(walk: _Walk, i: int, node: Node, sign: Any, _: Any) -> bool:
    """c·g with c > 0 is stable if g is."""
    terms = [(w, c) for w, c in zip(node.weights, walk.circuit.links[i], strict=True) if w]
    return _stable(walk, i, sign, len(terms) == 1 and terms[0][0] > 0 and terms[0][1] in walk.stable)


def _stable_product(walk: _Walk, i: int, node: Node, sign: Any, _: Any) -> bool:
    """A product of stable polynomials is stable."""
    return _stable(walk, i, sign, walk.stable.issuperset(walk.circuit.links[i]))


def _symmetric_determinant(walk: _Walk, i: int, node: Node, sign: Any, witness: Any) -> bool:
    """Linear forms in det(M0 + Σ f_i·A_i) with symmetric A_i ⪰ 0; if it has a size, all children count."""
    rule, data = witness
    forms = all(map(is_form, node.inside)) and all(y.op is Op.CONST and y.value >= 0 for y in node.outside)
    symmetric = rule in ("Gram determinant", "marginal kernel")
    if rule == "positive semidefinite kernel":
        L = kernel_of(*map(exact_rows, node.matrices))
        symmetric = L is not None and is_symmetric(L)
    return _stable(walk, i, sign, forms and all(node.counted) and symmetric and walk.has_rule(node, rule, data))


def is_form(node: Node) -> bool:
    """Whether it is Σ w_i·z_i + c with nonnegative numbers."""
    match node.op:
        case Op.CONST:
            return bool(node.value >= 0)
        case Op.VAR:
            return True
        case Op.SUM:
            return min(node.weights, default=0) >= 0 and all(not c.children and is_form(c) for c in node.children)
    return False


def _stable(walk: _Walk, i: int, sign: Any, holds: bool) -> bool:
    if holds:
        walk.stable.add(i)
    return holds and sign is None


# The operation that a rule is about (None: any), and whether a step by it holds.
RULES: dict[str, tuple[Op | None, Callable[[_Walk, int, Node, Any, Any], bool]]] = {
    "number": (Op.CONST, _number),
    "variable": (Op.VAR, _variable),
    "weighted sum": (Op.SUM, _weighted_sum),
    "product": (Op.PRODUCT, _product),
    **{name: (Op.DET, _det_by(name)) for name in DET_RULES},
    "part of a determinant": (Op.SUM, _part_of_determinant),
    "part": (None, _part),
    "terms": (None, _terms),
    "multiplied out": (None, _multiplied_out),
    "stable number": (Op.CONST, _stable_number),
    "stable variable": (Op.VAR, _stable_variable),
    "linear form": (Op.SUM, _linear_form),
    "multiple": (Op.SUM, _multiple),
    "stable product": (Op.PRODUCT, _stable_product),
    "symmetric determinant": (Op.DET, _symmetric_determinant),
}
