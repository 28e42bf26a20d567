"""The exact arithmetic of the checker of proofs: values of circuits, their coefficients, and tests of identity."""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import chain
from typing import Any, NamedTuple, NoReturn

from flint import arb, arb_mat, fmpq, fmpq_mat, fmpq_poly, fmpz, fmpz_mod_ctx, fmpz_mod_mat

from pgcc.errors import ProofError
from pgcc.exact.precision import precision
from pgcc.ir.circuit import Circuit
from pgcc.ir.matrix import Matrix
from pgcc.ir.node import Node, Op

_MOST_SIZE_BITS = 96

Rows = Sequence[Sequence[Any]]
Part = tuple[int, Fraction]  # (degree, factor) of a homogeneous part of a polynomial


class Ring(NamedTuple):
    """A field: how rationals become numbers of it, and how rows of them become a matrix (of flint)."""

    lift: Callable[[Any], Any]
    matrix: Callable[[int, int, list[Any]], Any]


def lift_exact(x: Any) -> fmpq:
    """A number, or the text of a fraction ("3/7")."""
    if type(x) is str:
        above, _, below = x.partition("/")
        return fmpq(fmpz(above), fmpz(below or "1"))
    return fmpq(*x.as_integer_ratio())


def exact_rows(matrix: Matrix) -> list[list[fmpq]]:
    """The entries as rationals."""
    return [[lift_exact(x) for x in row] for row in matrix.numbers()]


RATIONALS = Ring(lift_exact, fmpq_mat)
BALLS = Ring(lambda x: arb(lift_exact(x)), arb_mat)


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
    for node, links in zip(circuit.order, circuit._links, strict=True):
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
                unknown(node)
        at.append(value)
    return at[-1]


def unknown(node: Node) -> NoReturn:
    """Refuse a node that no rule is about."""
    raise ProofError(f"the checker does not know the operation {node.op!r}")


def _determinant(node: Node, below: Sequence[Any], ring: Ring) -> Any:
    """The value of a Det; of a sized one, the coefficient of s^size where f is s·f for the children that count."""
    f, y = below[: len(below) // 2], below[len(below) // 2 :]
    matrices = tuple([[ring.lift(x) for x in row] for row in m.numbers()] for m in node.matrices)
    if node.size is None:
        return bordered(matrices, f, y, ring)
    top = sum(counts and not x == 0 for x, counts in zip(f, node.counted, strict=True))  # noqa: SIM201 - balls
    if node.size > top:
        return ring.lift(0)
    values = [
        bordered(matrices, [ring.lift(s) * x if c else x for x, c in zip(f, node.counted, strict=True)], y, ring)
        for s in range(top + 1)
    ]
    return _from_points(values, node.size, ring)


def bordered(matrices: Sequence[Rows], f: Sequence[Any], y: Sequence[Any], ring: Ring) -> Any:
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


def total(circuit: Circuit, bits: int, at: int = 1) -> Any:
    """g(1), or at another number: a rational for bits = 0, else a ball computed with this many bits."""
    names = circuit.variables
    if not bits:
        return evaluate(circuit, dict.fromkeys(names, fmpq(at)), RATIONALS)
    with precision(bits):
        return evaluate(circuit, dict.fromkeys(names, arb(at)), BALLS)


def coefficient(circuit: Circuit, row: Mapping[str, int]) -> fmpq:
    """That of Π z_i over the variables with 1 in the row, of a multiaffine polynomial: [t^|A|] g(z_A = t, others 0)."""
    if set(row) != set(circuit.variables) or any(type(x) is not int or x not in (0, 1) for x in row.values()):
        raise ProofError("an assignment has 0 or 1 for every variable")
    top = sum(row.values())
    points = [{name: fmpq(t * x) for name, x in row.items()} for t in range(top + 1)]
    return _from_points([evaluate(circuit, point, RATIONALS) for point in points], top, RATIONALS)


# -- structure and identity ------------------------------------------------------------------------------------------


def scopes_of(circuit: Circuit) -> tuple[list[int], int]:
    """The variables of every node, and those that two factors of some product share; bit i is variable i.

    In a Det, f_i and y_i never stand in one monomial.
    """
    bit = {name: 1 << i for i, name in enumerate(circuit.variables)}
    of: list[int] = []
    shared = 0
    for node, links in zip(circuit.order, circuit._links, strict=True):
        below = [of[c] for c in links]
        scope, together = 0, True  # whether those below stand in one monomial
        match node.op:
            case Op.VAR:
                scope = bit[node.name]
            case Op.SUM:
                together = False
            case Op.DET:
                half = len(below) // 2
                below = [a | b for a, b in zip(below[:half], below[half:], strict=True)]
            case Op.CONST | Op.PRODUCT:
                pass
            case _:
                unknown(node)
        for factor in below:
            shared |= scope & factor if together else 0
            scope |= factor
        of.append(scope)
    return of, shared


def can_test(*circuits: Circuit) -> bool:
    """Whether circuits are small enough for tests of identity by `random_ring`.

    Where they are not, it only shows what is *not* identical.
    """
    return _identity_bits(circuits) <= _MOST_SIZE_BITS


def random_ring(*circuits: Circuit) -> tuple[int, Ring]:
    """Residues modulo a random prime, 128 bits longer than the size of the polynomials to test: one that is 0 at a
    random point is the polynomial 0, except with a probability of about 2⁻¹²⁰ (the prime may divide all its
    coefficients, or the point may be a zero: Schwartz and Zippel), if `can_test` says so."""
    bits = 128 + min(_identity_bits(circuits), _MOST_SIZE_BITS)
    while True:
        prime = secrets.randbits(bits) | 1 << bits | 1
        if fmpz(prime).is_probable_prime():
            return prime, modular(prime)


def _need_test(*circuits: Circuit) -> None:
    if not can_test(*circuits):
        raise ProofError("powers are too high for a test of identity")


def _identity_bits(circuits: Iterable[Circuit]) -> int:
    return math.prod(map(sum, zip(*map(_size, circuits), strict=True))).bit_length() + 2


def _size(circuit: Circuit) -> tuple[int, int]:
    """(u, b) with degrees of at most u, and numerators of at most 2·b·u bits over a denominator of at most b·u bits.

    b is the length of all numbers. A node is P/Dᵘ, D the product of all denominators: u adds up in a product, is one
    more in a sum, and in a determinant one more for every row.
    """
    sizes: list[int] = []
    bits = 1
    for node, links in zip(circuit.order, circuit._links, strict=True):
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
                unknown(node)
        bits += sum(2 + sum(map(int.bit_length, x.as_integer_ratio())) for row in rows for x in row)
        sizes.append(min(size, 1 << _MOST_SIZE_BITS))
    return max(sizes), bits


def is_short(circuit: Circuit) -> bool:
    """Whether its value at whole numbers of one digit is a rational of less than a million bits."""
    size, bits = _size(circuit)
    return size * (bits + 4) < 1_000_000


def same_polynomial(a: Circuit, b: Circuit) -> bool:
    """Whether two circuits are one polynomial, at a random point modulo a random prime."""
    if a == b:
        return True
    _need_test(a, b)
    prime, ring = random_ring(a, b)
    point = {name: ring.lift(secrets.randbelow(prime)) for name in {*a.variables, *b.variables}}
    return bool(evaluate(a, point, ring) == evaluate(b, point, ring))


def is_image(a: Circuit, h: Circuit, parts: Sequence[Part] | None, swapped: bool) -> bool:
    """Whether a is Σ w·(the component of h of degree k) over the parts (k, w), or h itself if parts is None.

    swapped : whether a(z) is that at 1/z, times all variables of h. At a random point modulo a random prime.

    h is decomposable, so that its degree is at most the number of its variables.
    """
    _need_test(a, h)
    prime, ring = random_ring(a, h)
    point = {name: ring.lift(1 + secrets.randbelow(prime - 1)) for name in {*a.variables, *h.variables}}
    at = {name: 1 / x for name, x in point.items()} if swapped else point
    if parts is None:
        found = evaluate(h, at, ring)
    else:
        scales = range(len(h.variables) + 1)
        values = [evaluate(h, {name: s * x for name, x in at.items()}, ring) for s in map(ring.lift, scales)]
        found = sum((ring.lift(w) * _from_points(values, k, ring) for k, w in parts), ring.lift(0))
    factor = math.prod((point[name] for name in h.variables), start=ring.lift(1)) if swapped else ring.lift(1)
    return scopes_of(h)[1] == 0 and bool(evaluate(a, point, ring) == factor * found)


def is_affine(circuit: Circuit, names: Iterable[str]) -> bool:
    """Whether second differences vanish in these variables, at a random point modulo a random prime."""
    _need_test(circuit)
    return not has_square(circuit, names)


def has_square(circuit: Circuit, names: Iterable[str]) -> bool:
    """Whether a second difference in one of these variables is not 0, as it is at some point modulo some prime."""
    prime, ring = random_ring(circuit)
    point = {name: ring.lift(secrets.randbelow(prime)) for name in circuit.variables}
    middle = evaluate(circuit, point, ring)
    for name in names:
        step = ring.lift(1 + secrets.randbelow(prime - 1))
        sides = [evaluate(circuit, {**point, name: point[name] + d}, ring) for d in (step, -step)]
        if sum(sides) != middle + middle:
            return True
    return False
