"""Probabilistic circuits: sums with non-negative weights and products, over literals x and x̄.

    >>> from pgcc import pc
    >>> weather = 0.3 * pc.pos("rain") * pc.bernoulli("wet", 0.9) + 0.7 * pc.neg("rain") * pc.bernoulli("wet", 0.1)
    >>> weather
    <PC: 2 variables, 10 edges>

A `PC` is not a `Circuit`, because the same graph means different things in the two: a variable that a term does not
mention can have *either* value in a probabilistic circuit, but is *absent* in a generating polynomial. `PC.to_pgc` and
`to_pc` convert between them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Self

from pgcc.errors import CircuitError, EvidenceError, KnowsOtherWords, brief, plural
from pgcc.frontend.networkx_graphs import PROBABILISTIC, bernoulli_node, from_graph, to_graph
from pgcc.frontend.structure import Offender, Structure, check_literals_only
from pgcc.frontend.structure import structure as structure_of
from pgcc.ir.circuit import Circuit
from pgcc.ir.domains import Domain, Domains
from pgcc.ir.facts import is_monotone
from pgcc.ir.interpret import evaluate
from pgcc.ir.node import ONE, Node, const, var, weighted_sum
from pgcc.ir.node import product as product_node
from pgcc.ir.numbers import Number, as_number, is_number, reciprocal
from pgcc.ir.operands import check_decomposable, nonnegative
from pgcc.ir.printer import describe
from pgcc.locks import cached_property
from pgcc.passes.homogenize import homogenize, smooth

if TYPE_CHECKING:
    import networkx

__all__ = [
    "PC",
    "Offender",
    "SignedPC",
    "Smoothing",
    "Structure",
    "bernoulli",
    "categorical",
    "mixture",
    "neg",
    "pos",
    "product",
    "structure",
    "to_pc",
    "true",
]


def __dir__() -> list[str]:
    return __all__


@dataclass(frozen=True)
class Smoothing:
    """What smoothing costs: the number of edges of a circuit before and after.

    See Also
    --------
    pgcc.pc.PC.smooth : smooth a circuit

    Examples
    --------
    >>> from pgcc import pc
    >>> print((0.5 * pc.pos("a") * pc.pos("b") + 0.5 * pc.neg("a")).smoothing)
    4 edges before smoothing, 8 after
    """

    edges_before: int
    edges_after: int

    def __str__(self) -> str:
        return f"{self.edges_before:,} edges before smoothing, {self.edges_after:,} after"


class PC(KnowsOtherWords):
    """A probabilistic circuit (PC): weighted sums and products over literals x and x̄.

    Build one with `pos`, `neg`, `bernoulli`, `mixture`, `product` and the operators + * /. Its value at an assignment
    is that of the polynomial with x = 1 and x̄ = 0 for every variable x that is 1, and x = 0 and x̄ = 1 for every one
    that is 0. Its distribution is proportional to that value. PCs are immutable.

    Parameters
    ----------
    root : Node
        Sums with nonnegative weights and products over `var(x)` and `var(x, complement=True)`, without determinants.
    variables : sequence of str, optional
        All variables, in the order of the columns of your data. Variables that do not occur are 0 or 1 with equal
        probability.

    Attributes
    ----------
    literals : Circuit
        The circuit over literals as it is, not smoothed, and so not the generating polynomial (see `to_pgc`).

    See Also
    --------
    pgcc.pc.pos : the literal x
    pgcc.pc.bernoulli : a variable that is 1 with probability p
    pgcc.Circuit : the circuit of a generating polynomial
    pgcc.compile : compile a circuit to a model

    Examples
    --------
    >>> from pgcc import pc
    >>> p = 0.4 * pc.pos("a") * pc.pos("b") + 0.6 * pc.neg("a")
    >>> p.evaluate({"a": 0, "b": 1})
    Fraction(5404319552844595, 9007199254740992)
    >>> print(p.to_pgc())
    0.4*a*b + 0.6*~a*(b + ~b)
    """

    signed = False  # whether weights may be negative

    literals: Circuit

    def __init__(self, root: Node, variables: Iterable[str] | None = None):
        self.literals = Circuit(root, variables)
        check_literals_only(self.literals)
        for node in () if self.signed else self.literals.order:
            if not is_monotone(node):
                raise CircuitError(f"a probabilistic circuit has no negative numbers, but {describe(node)} does")

    @classmethod
    def _of(cls, literals: Circuit) -> Self:
        made = cls.__new__(cls)
        made.literals = literals
        return made

    @property
    def root(self) -> Node:
        """The root node."""
        return self.literals.root

    @property
    def variables(self) -> tuple[str, ...]:
        """All variables, in the order of the columns of your data."""
        return self.literals.variables

    @property
    def edges(self) -> int:
        """The number of edges."""
        return self.literals.edges

    # -- building ------------------------------------------------------------------------------------------------------

    def _made(self, literals: Circuit, *others: PC) -> PC:
        return (SignedPC if any(part.signed for part in (self, *others)) else PC)._of(literals)

    def _scaled(self, factor: Number) -> PC:
        if not self.signed and factor < 0:
            raise CircuitError(f"a weight of a probabilistic circuit is not negative: {brief(factor)}")
        return self._made(self.literals * factor)

    def __add__(self, other: Any) -> PC:
        if is_number(other) and not other:
            return self  # sum() starts with 0
        if is_number(other):
            raise CircuitError(
                f"{brief(other)} stands alone in a sum: in a probabilistic circuit that is {brief(other)} for every "
                f"assignment; write {brief(other)}*true() if that is meant, or multiply it by a literal"
            )
        if not isinstance(other, PC):
            return NotImplemented
        return self._made(self.literals + other.literals, other)

    __radd__ = __add__

    def __mul__(self, other: Any) -> PC:
        if is_number(other):
            return self._scaled(as_number(other))
        if not isinstance(other, PC):
            return NotImplemented
        return self._made(self.literals * other.literals, other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> PC:
        if not is_number(other):
            return NotImplemented
        return self * reciprocal(other)

    def __neg__(self) -> PC:
        return self._scaled(-1)

    def __sub__(self, other: Any) -> PC:
        if not isinstance(other, PC):
            return NotImplemented
        if not (self.signed or other.signed):
            raise CircuitError("a probabilistic circuit has no negative weights, so nothing can be subtracted")
        return self._made(self.literals - other.literals, other)

    def __eq__(self, other: object) -> bool:
        return self.literals == other.literals if isinstance(other, PC) else NotImplemented

    def __hash__(self) -> int:
        return hash((PC, self.literals))

    # -- reading -------------------------------------------------------------------------------------------------------

    def evaluate(self, assignment: Mapping[str, int]) -> Fraction:
        """The value at an assignment of 0 or 1 to every variable.

        It is exact, slow to compute, and not divided by the total.

        See Also
        --------
        pgcc.pc.PC.to_pgc : convert to a generating circuit
        pgcc.Model.prob : the probability of evidence

        Examples
        --------
        >>> from pgcc import pc
        >>> (pc.pos("a") / 4 + pc.neg("a") / 2).evaluate({"a": 1})
        Fraction(1, 4)
        """
        values = _codes(assignment, self.literals)
        point = self.literals.rewrite(lambda node: const(int(values[node.name] != node.is_complement)))
        return evaluate(Circuit(point), {})

    def structure(self) -> Structure:
        """Which structural properties hold, and where the others fail; see `pgcc.pc.Structure`.

        See Also
        --------
        pgcc.pc.structure : whether a circuit is decomposable, smooth and deterministic

        Examples
        --------
        >>> from pgcc import pc
        >>> report = (0.5 * pc.pos("a") * pc.pos("b") + 0.5 * pc.neg("a")).structure()
        >>> report.smooth, report.offenders["smooth"].variable, report.deterministic
        (False, 'b', True)
        """
        return structure_of(self.literals)

    @classmethod
    def from_networkx(cls, graph: networkx.DiGraph) -> Self:
        """Read a probabilistic circuit from a networkx graph.

        Edges point from each sum or product to its terms or factors.

        Parameters
        ----------
        graph : networkx.DiGraph
            An acyclic graph with exactly one node that no edge enters: the root. Every node has an attribute ``kind``:

            - ``"sum"``; every edge out of it has a ``weight``;
            - ``"product"``;
            - ``"literal"``, with ``variable`` (a name) and ``value`` (1 for x, 0 for x̄);
            - ``"bernoulli"``, with ``variable`` and ``p``, the probability of 1;
            - ``"constant"``, with ``value``, a number;
            - ``"copy"``, of its only child: for a parent that has the same child twice.

            Children are taken in the order in which the edges were added. A list of names in
            ``graph.graph["variables"]`` fixes the order of the variables.

        Raises
        ------
        CircuitError
            If the graph has any other form; the message names the node.

        See Also
        --------
        pgcc.pc.PC.to_networkx : convert a probabilistic circuit to a graph
        pgcc.Circuit.from_networkx : the same for a generating circuit

        Examples
        --------
        >>> import networkx as nx
        >>> from pgcc import pc
        >>> G = nx.DiGraph()
        >>> G.add_node("root", kind="sum")
        >>> G.add_node("a", kind="literal", variable="a", value=1)
        >>> G.add_node("not a", kind="literal", variable="a", value=0)
        >>> G.add_edge("root", "a", weight=0.25)
        >>> G.add_edge("root", "not a", weight=0.75)
        >>> print(pc.PC.from_networkx(G).to_pgc())
        0.25*a + 0.75*~a
        """
        return cls(*from_graph(graph, PROBABILISTIC, cls.signed))

    def to_networkx(self) -> networkx.DiGraph:
        """Convert the circuit to a networkx graph, which `from_networkx` reads back.

        Nodes are numbered from 0, and the root is the last.

        See Also
        --------
        pgcc.pc.PC.from_networkx : read a probabilistic circuit from a graph
        pgcc.Circuit.to_networkx : the same for a generating circuit

        Examples
        --------
        >>> from pgcc import pc
        >>> G = (0.5 * pc.pos("a") + 0.5 * pc.neg("a")).to_networkx()
        >>> G.nodes[2]["kind"], list(G.successors(2)), G.edges[2, 0]["weight"]
        ('sum', [0, 1], 0.5)
        """
        return to_graph(self.literals, PROBABILISTIC)

    # -- conversion ----------------------------------------------------------------------------------------------------

    @cached_property
    def _smooth(self) -> Circuit:
        check_decomposable(self.literals)
        return smooth(self.literals)

    def smooth(self) -> Self:
        """A smooth circuit of the same distribution.

        Each term of a sum gets a factor z + z̄ for every variable that it does not mention but another term does. These
        factors are shared, so the size grows nearly linearly if scopes are nested; `smoothing` tells you the cost.

        Raises
        ------
        CircuitError
            If a product is not decomposable; the message names the product and the variable.

        See Also
        --------
        pgcc.pc.Smoothing : what smoothing costs
        pgcc.pc.PC.to_pgc : convert to a generating circuit

        Examples
        --------
        >>> from pgcc import pc
        >>> (0.5 * pc.pos("a") * pc.pos("b") + 0.5 * pc.neg("a")).smooth().structure().smooth
        True
        """
        return self._of(self._smooth)

    @property
    def smoothing(self) -> Smoothing:
        """What smoothing costs: the number of edges before and after.

        Examples
        --------
        >>> from pgcc import pc
        >>> print((0.5 * pc.pos("a") * pc.pos("b") + 0.5 * pc.neg("a")).smoothing)
        4 edges before smoothing, 8 after
        """
        return Smoothing(self.edges, self._smooth.edges)

    def to_pgc(self) -> Circuit:
        """Convert to the circuit of the generating polynomial, which `pgcc.compile` takes.

        The circuit is smoothed, and then X becomes z and X̄ becomes z̄. A complement z̄ equals 1 in every generating
        polynomial; keeping it spares pgcc the search for variables that a term does not mention.

        Raises
        ------
        CircuitError
            If a product is not decomposable; the message names the product and the variable.

        See Also
        --------
        pgcc.pc.to_pc : convert a generating circuit to a probabilistic circuit
        pgcc.compile : compile a circuit to a model

        Examples
        --------
        >>> import pgcc
        >>> from pgcc import pc
        >>> model = pgcc.compile((0.5 * pc.pos("a") * pc.pos("b") + 0.5 * pc.neg("a")).to_pgc())
        >>> model.prob({"b": 1}, exact=True)  # 1/2 of (a, b), and 1/2 of each of (not a, b) and (not a, not b)
        Fraction(2, 3)
        """
        return self._smooth

    def _repr_html_(self) -> str:
        """What notebooks show: the size, and a picture of the circuit or of its top."""
        from pgcc.draw.html import pc_html

        return pc_html(self)

    def __repr__(self) -> str:
        n = len(self.variables)
        return f"<{type(self).__name__}: {plural(n, 'variable')}, {plural(self.edges, 'edge')}>"


class SignedPC(PC):
    """A probabilistic circuit whose weights may be negative: the result of converting a circuit with subtractions.

    Its values need not be probabilities; nothing prevents them from being negative.

    See Also
    --------
    pgcc.pc.PC : a probabilistic circuit
    pgcc.pc.to_pc : convert a generating circuit to a probabilistic circuit

    Examples
    --------
    >>> import pgcc
    >>> from pgcc import pc
    >>> pc.to_pc(pgcc.parse("(a + 1)*(b + 1)/2 - a*b"))
    <SignedPC: 2 variables, 10 edges>
    """

    signed = True


def pos(name: str) -> PC:
    """The literal x: 1 where x is 1, and 0 otherwise.

    See Also
    --------
    pgcc.pc.neg : the literal x̄
    pgcc.pc.bernoulli : a variable that is 1 with probability p

    Examples
    --------
    >>> from pgcc import pc
    >>> pc.pos("rain").evaluate({"rain": 1}), pc.pos("rain").evaluate({"rain": 0})
    (Fraction(1, 1), Fraction(0, 1))
    """
    return PC(var(name))


def neg(name: str) -> PC:
    """The literal x̄: 1 where x is 0, and 0 otherwise.

    See Also
    --------
    pgcc.pc.pos : the literal x
    pgcc.pc.bernoulli : a variable that is 1 with probability p

    Examples
    --------
    >>> from pgcc import pc
    >>> pc.neg("rain").evaluate({"rain": 1}), pc.neg("rain").evaluate({"rain": 0})
    (Fraction(0, 1), Fraction(1, 1))
    """
    return PC(var(name, complement=True))


def bernoulli(name: str, p: Any) -> PC:
    """A variable that is 1 with probability p: the sum p·x + (1 − p)·x̄.

    >>> from pgcc import pc
    >>> print(pc.bernoulli("a", "0.2").to_pgc())
    1/5*a + 4/5*~a

    See Also
    --------
    pgcc.pc.pos : the literal x
    pgcc.pc.neg : the literal x̄
    """
    return PC(bernoulli_node(name, p))


def categorical(name: str, probabilities: Mapping[Any, Any]) -> PC:
    """A variable with states: the sum Σ p_s · [it is in state s].

    Parameters
    ----------
    name : str
        The variable.
    probabilities : dict
        The probability of every state. They need not add up to 1: {"sun": 1, "rain": 0, "snow": 0} is the literal of
        the state "sun".

    See Also
    --------
    pgcc.pc.bernoulli : a variable that is 1 with probability p
    pgcc.Circuit.with_states : say which variables of a polynomial are states of one variable

    Examples
    --------
    >>> import pgcc
    >>> weather = pgcc.pc.categorical("weather", {"sun": "0.6", "rain": "0.3", "snow": "0.1"})
    >>> weather.evaluate({"weather": "rain"})
    Fraction(3, 10)
    """
    if not isinstance(probabilities, Mapping):
        raise CircuitError(
            f"the probabilities of {name!r} are a dict from states to numbers, not {brief(probabilities)}"
        )
    domain = Domain.of(name, probabilities)
    weights = [nonnegative(p, f"Pr({name} = {state})") for state, p in probabilities.items()]
    leaves = map(domain.leaf, range(len(weights)))
    return PC(weighted_sum(weights, leaves), Domains({name: domain}))


def true() -> PC:
    """The circuit without variables whose value is always 1.

    See Also
    --------
    pgcc.pc.pos : the literal x
    pgcc.pc.bernoulli : a variable that is 1 with probability p

    Examples
    --------
    >>> from pgcc import pc
    >>> (0.3 * pc.pos("rain") + 0.5 * pc.true()).evaluate({"rain": 0})
    Fraction(1, 2)
    """
    return PC(ONE)


def mixture(weights: Iterable[Any], parts: Iterable[PC]) -> PC:
    """A weighted sum Σ w_i · part_i, as a single sum node.

    Parameters
    ----------
    weights : iterable of numbers
        Nonnegative, unless a part is a `SignedPC`. They need not add up to 1.
    parts : iterable of PC
        One circuit per weight.

    See Also
    --------
    pgcc.pc.product : a product of circuits
    pgcc.mixture : a mixture of distributions

    Examples
    --------
    >>> from pgcc import pc
    >>> pc.mixture([0.2, 0.3, 0.5], [pc.bernoulli("a", p) for p in (0.1, 0.2, 0.3)]).edges
    9
    """
    listed, numbers = _parts(parts), [as_number(w) for w in weights]
    negative = [w for w in numbers if w < 0]
    if negative and not any(part.signed for part in listed):
        raise CircuitError(f"a weight of a probabilistic circuit is not negative: {brief(negative[0])}")
    return _joined(weighted_sum(numbers, [part.root for part in listed]), listed)


def product(parts: Iterable[PC]) -> PC:
    """A product Π part_i, as a single product node.

    >>> from pgcc import pc
    >>> pc.product([pc.pos("a"), pc.neg("b"), pc.pos("c")]).edges
    3

    See Also
    --------
    pgcc.pc.mixture : a weighted sum of circuits
    pgcc.product : the product of independent distributions
    """
    listed = _parts(parts)
    return _joined(product_node([part.root for part in listed]), listed)


def _joined(root: Node, parts: Sequence[PC]) -> PC:
    first, *others = parts
    return first._made(first.literals._with(root, *(other.literals for other in others)), *others)


def _parts(parts: Iterable[PC]) -> list[PC]:
    listed = list(parts)
    if not listed:
        raise CircuitError("a sum or product of no circuits: there is nothing to name its variables")
    for part in listed:
        if not isinstance(part, PC):
            raise CircuitError(f"a part of a probabilistic circuit is a PC, not {type(part).__name__}")
    return listed


def structure(circuit: PC | Circuit) -> Structure:
    """The structural properties of a `PC`, or of a `Circuit` interpreted as one; see `Structure`.

    See Also
    --------
    pgcc.pc.PC.structure : whether a circuit is decomposable, smooth and deterministic
    pgcc.pc.Structure : the report on structural properties

    Examples
    --------
    >>> import pgcc
    >>> from pgcc import pc
    >>> pc.structure(pgcc.parse("0.5*a*b + 0.5*a")).smooth
    False
    """
    return structure_of(circuit.literals if isinstance(circuit, PC) else circuit)


def to_pc(circuit: Circuit) -> PC:
    """Convert a decomposable generating circuit to a probabilistic circuit: each missing z_i becomes X̄_i.

    Parameters
    ----------
    circuit : Circuit
        A decomposable circuit without determinants.

    Returns
    -------
    PC
        A smooth circuit, which `to_pgc` converts back. It is a `SignedPC` if it has a negative number.

    Raises
    ------
    CircuitError
        If the circuit is not decomposable or has a determinant.

    See Also
    --------
    pgcc.pc.PC.to_pgc : convert to a generating circuit
    pgcc.pc.SignedPC : a circuit whose weights may be negative

    Examples
    --------
    >>> import pgcc
    >>> from pgcc import pc
    >>> print(pc.to_pc(pgcc.parse("0.4*a*b + 0.6")).literals)
    2/5*a*b + 3/5*~a*~b
    """
    if not isinstance(circuit, Circuit):
        raise CircuitError(f"to_pc takes a Circuit, not {type(circuit).__name__}")
    check_literals_only(circuit)
    check_decomposable(circuit)
    full = homogenize(circuit)
    return (PC if full.facts.monotone else SignedPC)._of(full)


def _codes(assignment: Mapping[str, Any], literals: Circuit) -> dict[str, bool]:
    """Whether each column is in."""
    codes: dict[str, bool] = {}
    used = set(literals.scopes.names)
    for name, domain in (literals.domains or Domains.plain(literals.variables)).items():
        if name in used:
            if name not in assignment:
                raise EvidenceError(f"variable {name!r} has no value")
            state = domain.number(assignment[name], f"variable {name!r}")
            codes |= {column: i == state for i, column in enumerate(domain.columns) if column}
    return codes
