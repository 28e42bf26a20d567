"""Distributions built from distributions: mixtures, products and unions; and random subsets of a given size.

The inputs are distributions, or multiples of distributions (a DPP given by L has the total det(I + L)). The result is a
distribution again, by construction. The operations on a single distribution are methods: `Circuit.compose`, `thin`,
`tilt`, `complement` and `observe`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from pgcc.collector import collector_paused
from pgcc.errors import CircuitError, SemanticsError, brief, plural
from pgcc.ir.circuit import Circuit
from pgcc.ir.domains import joined, kept_columns
from pgcc.ir.interpret import evaluate
from pgcc.ir.node import ONE, Node, is_size, var
from pgcc.ir.numbers import Number, as_number, nearest_float, one_minus
from pgcc.ir.operands import check_circuit, check_disjoint, need_sequence, new_names, nonnegative
from pgcc.ir.scopes import members
from pgcc.ir.spelling import display_text
from pgcc.passes.building import factors_of, product_of, sum_of
from pgcc.passes.compose import add, refuse_states
from pgcc.passes.total import TOLERANCE, is_one, positive_total, quotient

# -- mixtures and products -----------------------------------------------------------------------------------


def mixture(weights: Iterable[Any], circuits: Iterable[Circuit], *, normalize: bool = True) -> Circuit:
    """A mixture of distributions: `circuits[i]` with probability `weights[i]`.

    Parameters
    ----------
    weights : sequence of numbers
        Nonnegative numbers that add up to 1 (exactly if they are exact, to 1e-9 if they are floats). They are kept as
        you give them.
    circuits : sequence of Circuit
        One circuit per weight. They may have different variables: a variable that a circuit lacks is never in the sets
        drawn from it.
    normalize : bool
        Divide each weight by the total of its circuit, if that is not 1, so that normalized distributions are mixed (a
        DPP given by L has the total det(I + L)). Exact circuits have exact totals; with floats, totals have a relative
        error below 1e-12. If False, circuits whose total is not 1 are refused.

    Returns
    -------
    Circuit
        A circuit over the variables of all circuits, in order of first appearance.

    Raises
    ------
    CircuitError
        If the weights are not probabilities, or their number is not that of the circuits.
    SemanticsError
        If the total of a circuit is not positive (or, without `normalize`, not 1).
    PrecisionError
        If a total cannot be computed to 1e-12.

    See Also
    --------
    pgcc.product : the product of independent distributions
    pgcc.superpose : the union of independent random sets
    pgcc.Circuit.compose : replace variables by distributions

    Examples
    --------
    >>> import pgcc
    >>> a, b = pgcc.parse("0.5*x + 0.5"), pgcc.parse("0.9*y + 0.1")
    >>> m = pgcc.mixture(["0.3", "0.7"], [a, b])
    >>> pgcc.compile(m).prob({"x": 1}, exact=True)
    Fraction(3, 20)
    >>> pgcc.mixture([0.5, 0.6], [a, b])
    Traceback (most recent call last):
    pgcc.errors.CircuitError: the weights of a mixture add up to 1.1, not to 1
    """
    weights = need_sequence(weights, "weights of a mixture are a sequence")
    if any(isinstance(weight, Circuit) for weight in weights):
        raise CircuitError("the arguments are swapped: mixture(weights, circuits) takes the weights first")
    parts = _circuits(circuits, "mixture")
    shares = _weights(weights, len(parts))
    if not parts:
        raise CircuitError("a mixture has at least one circuit")
    terms: list[tuple[Number, Node]] = []
    for i, (share, part) in enumerate(zip(shares, parts, strict=True)):
        if share:
            terms.append((_normalized(share, part, f"circuit {i} of the mixture", normalize), part.root))
    return parts[0]._with(sum_of(terms), *parts[1:])


def _normalized(share: Number, part: Circuit, what: str, normalize: bool) -> Number:
    value = positive_total(part, what)
    if is_one(value):
        return share
    if not normalize:
        raise SemanticsError(
            f"{what} has the total {display_text(value)}, not 1", advice="normalize=True divides by it"
        )
    return quotient(share, value)


def _weights(weights: Sequence[Any], count: int) -> list[Number]:
    shares = [nonnegative(weight, f"weight {i} of the mixture") for i, weight in enumerate(weights)]
    if len(shares) != count:
        raise CircuitError(f"a mixture of {plural(count, 'circuit')} needs as many weights, not {len(shares)}")
    added = sum((Fraction(share) for share in shares), Fraction(0))
    floats = float in set(map(type, shares))
    if shares and (abs(added - 1) > TOLERANCE if floats else added != 1):
        shown = nearest_float(added) if floats else as_number(added)
        raise CircuitError(f"the weights of a mixture add up to {display_text(shown)}, not to 1")
    return shares


def product(circuits: Iterable[Circuit]) -> Circuit:
    """The product of independent distributions over different variables.

    Parameters
    ----------
    circuits : sequence of Circuit
        Circuits of which no two share a variable. An empty sequence gives the constant 1.

    Raises
    ------
    SemanticsError
        If two circuits share a variable; the message names the circuits and the variable. (`f * g` multiplies
        polynomials without this check.)

    See Also
    --------
    pgcc.mixture : a mixture of distributions
    pgcc.superpose : the union of independent random sets

    Examples
    --------
    >>> import pgcc
    >>> print(pgcc.product([pgcc.parse("0.5*x + 0.5"), pgcc.parse("0.9*y + 0.1")]))
    (1/2*x + 1/2)*(9/10*y + 1/10)
    >>> pgcc.product([pgcc.parse("x"), pgcc.parse("x/2 + y/2")])
    Traceback (most recent call last):
    pgcc.errors.SemanticsError: circuit 0 and circuit 1 share the variable 'x': they have to be independent
    """
    parts = _circuits(circuits, "product")
    check_disjoint(parts, "circuit")
    return _multiplied(parts)


def _multiplied(parts: Sequence[Circuit]) -> Circuit:
    return Circuit(product_of([part.root for part in parts]), joined([part.variables for part in parts]))


def _circuits(circuits: Iterable[Circuit], what: str) -> list[Circuit]:
    if isinstance(circuits, Circuit):
        raise CircuitError(f"{what} takes a sequence of circuits, not a single one")
    parts = need_sequence(circuits, f"what {what} takes is a sequence")
    for i, part in enumerate(parts):
        check_circuit(part, f"what {what} takes at position {i}")
    return parts


# -- unions --------------------------------------------------------------------------------------------------


def superpose(circuits: Iterable[Circuit]) -> Circuit:
    """The union of independent random sets, each drawn from one of the circuits.

    If the circuits share no variables, this is their product. A variable that several circuits share is in the union if
    it is in any of the sets. In general, no short polynomial expresses that; but there is one if, in all but at most
    one of these circuits, the variable is independent of everything else: a factor p·z + 1 − p of its own.

    Parameters
    ----------
    circuits : sequence of Circuit
        The circuits to draw the sets from.

    Raises
    ------
    SemanticsError
        If a variable depends on others in two of the circuits.
    CircuitError
        If a circuit that is not decomposable shares a variable with another.

    See Also
    --------
    pgcc.product : the product of independent distributions
    pgcc.mixture : a mixture of distributions

    Examples
    --------
    >>> import pgcc
    >>> print(pgcc.superpose([pgcc.parse("z/2 + 1/2"), pgcc.parse("z/3 + 2/3")]))
    2/3*z + 1/3

    A DPP, and noise:

    >>> d = pgcc.dpp(L=[[1, 0], [0, 3]], names=["a", "b"])
    >>> model = pgcc.compile(pgcc.superpose([d, pgcc.parse("a/4 + 3/4")]))
    >>> model.prob({"a": 1}, exact=True)
    Fraction(5, 8)
    """
    parts = _circuits(circuits, "superpose")
    owners: dict[str, list[int]] = {}
    for i, part in enumerate(parts):
        for name in part.variables:
            owners.setdefault(name, []).append(i)
    shared = {name: of for name, of in owners.items() if len(of) > 1}
    if not shared:
        return _multiplied(parts)
    for part in parts:
        refuse_states(part, shared, "superpose")
    with collector_paused():
        split = [_split(part, shared) for part in parts]
        free: list[Node] = []
        for name, of in shared.items():
            p = _union([split[i].alone[name] for i in of if name in split[i].alone])
            bound = [i for i in of if name not in split[i].alone]
            if len(bound) > 1:
                raise SemanticsError(
                    f"circuit {bound[0]} and circuit {bound[1]} share the variable {name!r}, and in both it depends on "
                    "others: their union has no short polynomial in general (relabel gives one of them other names)"
                )
            if bound:
                split[bound[0]].added[name] = p
            else:
                free.append(sum_of([(p, var(name)), (one_minus(p), ONE)]))
        columns = kept_columns(owners, *(part.variables for part in parts))
        return Circuit(product_of([*(one.root() for one in split), *free]), columns)


@dataclass
class _Split:
    """A circuit from which the factors that are single shared variables have been split off."""

    body: Circuit
    scale: Fraction  # the total of the factors that were split off, times constant factors of the root
    alone: dict[str, Fraction]  # for each variable that was split off, the probability that it is in
    added: dict[str, Number] = field(
        default_factory=dict
    )  # for each variable, the probability that another circuit adds it

    def root(self) -> Node:
        body = add(self.body, self.added) if any(self.added.values()) else self.body
        return sum_of([(as_number(self.scale), body.root)])


def _split(circuit: Circuit, shared: Iterable[str]) -> _Split:
    wanted = set(shared)
    scale, factors = factors_of(circuit.root)
    kept: list[Node] = []
    alone = {name: Fraction(0) for name in circuit.variables if name in wanted and name not in circuit._used}
    for factor in factors:
        name = _only_variable(factor) if circuit._overlap is None else None
        if name not in wanted or name is None:
            kept.append(factor)
            continue
        one, zero = (evaluate(Circuit(factor), {name: Fraction(x)}) for x in (1, 0))
        if not 0 <= zero <= one or not one:
            raise SemanticsError(f"the factor {Circuit(factor)} is no distribution of {name!r}, nor a multiple of one")
        alone[name], scale = 1 - zero / one, scale * one
    rest = kept_columns([v for v in circuit.variables if v not in alone], circuit.variables)
    return _Split(Circuit(product_of(kept), rest), scale, alone)


def _only_variable(factor: Node) -> str | None:
    """The name of the only variable of a factor; None if it has several, or none."""
    scopes = Circuit(factor).scopes
    names = [scopes.names[m] for m in members(scopes.distinct[scopes.of[-1]])]
    return names[0] if len(names) == 1 else None


def _union(probabilities: Iterable[Fraction]) -> Number:
    """The probability of a union of independent events: 1 − Π (1 − p)."""
    out = Fraction(1)
    for p in probabilities:
        out *= 1 - p
    return as_number(1 - out)


# -- subsets -------------------------------------------------------------------------------------------------


def subsets(names: str | Sequence[str], k: int) -> Circuit:
    """A uniformly random subset of size k of the named variables.

    Parameters
    ----------
    names : str or sequence of str
        The names, as for `pgcc.variables`.
    k : int
        The size of the subsets, from 0 to the number of names.

    Returns
    -------
    Circuit
        A circuit with fewer than 4·n·k edges. `Circuit.tilt` turns it into a conditional Bernoulli distribution:
        Pr(S) ∝ Π_{i∈S} w_i for |S| = k.

    See Also
    --------
    pgcc.Circuit.tilt : make members more or less likely
    pgcc.Circuit.observe : keep the terms that agree with the evidence or have a given size

    Examples
    --------
    >>> import pgcc
    >>> print(pgcc.subsets("a b c", 1))
    1/3*a + 2/3*(1/2*b + 1/2*c)
    >>> pgcc.compile(pgcc.subsets([f"x{i}" for i in range(100)], 50)).prob({"x0": 1, "x1": 1}, exact=True)
    Fraction(49, 198)
    """
    labels = _new_names(names)
    if not is_size(k, len(labels)):
        raise CircuitError(
            f"k={brief(k)}: a subset of {plural(len(labels), 'variable')} has 0 to {len(labels)} members"
        )
    with collector_paused():
        return Circuit(_choose(labels, k), labels)


def _choose(names: Sequence[str], k: int) -> Node:
    """Build T(m, j), a uniform j-subset of the last m names: (j/m)·z·T(m − 1, j − 1) + (1 − j/m)·T(m − 1, j)

    Each T(m, j) has the total 1. The list `row` holds T(m, 0), …, T(m, k).
    """
    row: list[Node] = [ONE]
    for m, name in enumerate(reversed(names), 1):
        z, least, most = var(name), max(0, k - (len(names) - m)), min(k, m)
        new = [ONE] * (most + 1)
        for j in range(max(least, 1), most + 1):
            share = as_number(Fraction(j, m))
            taken = product_of((z, row[j - 1]))
            new[j] = sum_of([(share, taken), (as_number(1 - Fraction(j, m)), row[j] if j < m else ONE)])
        row = new
    return row[k]


def _new_names(names: Any) -> list[str]:
    if isinstance(names, str):
        return new_names(names.replace(",", " ").split())
    return new_names(need_sequence(names, "the names are a sequence"))
