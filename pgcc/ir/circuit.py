"""`Circuit`: a root node, an order of the variables, and the operators that build larger circuits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from itertools import chain
from typing import TYPE_CHECKING, Any

from pgcc.collector import collector_paused
from pgcc.errors import CircuitError, EvidenceError, KnowsOtherWords, plural
from pgcc.ir.domains import Domain, Domains, as_columns, domains_of, joined
from pgcc.ir.facts import Facts, find_facts, find_overlap
from pgcc.ir.flat import Entry, Flat, make_nodes
from pgcc.ir.names import hint
from pgcc.ir.node import Node, Op, const, postorder, product, rebuild, var
from pgcc.ir.numbers import as_number, is_number, power, reciprocal
from pgcc.ir.scopes import Scopes
from pgcc.ir.spelling import MAX_BITS, power_bits
from pgcc.ir.terms import Term, added, multiplied, negated, node_of, sealed
from pgcc.locks import cached_property

if TYPE_CHECKING:
    import networkx
    import sympy

Names = Iterable[str] | str | None


class Level(Enum):
    """How tightly an expression binds; in the operand of an operator that binds more tightly, it is in parentheses."""

    SUM = 1
    PRODUCT = 2
    UNARY = 3


class Circuit(KnowsOtherWords):
    """A polynomial, stored as a graph (a DAG) of sums, products and determinants over named, ordered variables.

    If its coefficients are the probabilities of sets, this is what the paper calls a probabilistic generating circuit
    (PGC). Circuits are immutable; `+ - * /` and `**` build larger ones, which share the parts they have in common:
    the same nodes as `pgcc.parse` makes of the expression as text.

    Parameters
    ----------
    root : Node
        The node whose polynomial the circuit computes.
    variables : sequence of str, optional
        All variables, in the order of the columns of your data. By default, the order in which they first appear.
        You may name variables that do not occur in the circuit; they are then never in the set.

    See Also
    --------
    pgcc.parse : read a circuit from text
    pgcc.compile : compile a circuit to a model
    pgcc.Model : a compiled circuit that answers questions

    Examples
    --------
    >>> import pgcc
    >>> a, b = pgcc.variables("a b")
    >>> g = (a + 1) / 2 * (3 * b + 1) / 4
    >>> g.variables, g.edges
    (('a', 'b'), 7)
    """

    # What an operator has made instead of nodes: the terms of a sum or product, after those of `_left`.
    _level = Level.UNARY
    _terms: tuple[Term, ...] = ()
    _left: Circuit | None = None
    _term: Term | None = None  # its value as a part of an expression, once somebody has asked for it
    _uses = 0  # how many operators it is an operand of
    _network: Any = None  # the network that it was compiled from

    def __init__(self, root: Node, variables: Iterable[str] | None = None):
        if type(root) is not Node:
            raise CircuitError(f"the root of a circuit is a node, not {type(root).__name__}")
        self.root = root
        self._operands: tuple[Circuit, ...] = ()
        self._variables: tuple[str, ...] | None = as_columns(self._used if variables is None else variables)
        if variables is not None:
            self._check_variables(self._used)

    @cached_property
    def root(self) -> Node:
        """The node whose polynomial the circuit computes."""
        if "_flat" in self.__dict__:  # what a pass or a reader has made instead of nodes: see `from_flat`
            return self._flat.nodes[-1]
        return node_of(self._value)

    @property
    def variables(self) -> tuple[str, ...]:
        """All variables of the polynomial; of a variable with states, its columns (see `domains`)."""
        if self._variables is None:
            self._variables = _variables_of(self)
            self._operands = ()
        return self._variables

    @property
    def domains(self) -> Domains | None:
        """The states of every variable, and the columns that show them; None if all variables are plain binary ones.

        See Also
        --------
        pgcc.Circuit.with_states : say which variables of the polynomial are states of one variable

        Examples
        --------
        >>> import pgcc
        >>> pgcc.parse("0.4*a + 0.6").domains is None
        True
        """
        return domains_of(self.variables)

    @property
    def network(self) -> Any:
        """The Bayesian or Markov network that the circuit was compiled from; None if there was none, or it has changed.

        See Also
        --------
        pgcc.Circuit.do : intervene in it

        Examples
        --------
        >>> import pgcc
        >>> pgcc.builders.bayesian_network({"rain": 0.2, "wet": (["rain"], {0: 0.1, 1: 0.9})}).network
        <Network: 2 variables, Bayesian: Pr(rain) Pr(wet | rain)>
        """
        return self._network

    def _check_variables(self, used: Iterable[str]) -> None:
        known = set(self.variables)
        if len(known) != len(self.variables):
            twice = next(v for v in self.variables if self.variables.count(v) > 1)
            raise CircuitError(f"variable {twice!r} is listed twice")
        for name in self.variables:
            var(name)  # refuses what cannot be a name
        missing = [name for name in used if name not in known]
        if missing:
            raise CircuitError(f"variable {missing[0]!r} occurs in the circuit but is not in its list of variables")

    @cached_property
    def order(self) -> list[Node]:
        """Every node once, children before parents."""
        return list(self._flat.nodes) if "_flat" in self.__dict__ else postorder(self.root)

    @cached_property
    def _links(self) -> list[tuple[int, ...]]:
        """For every node, by position in `order`, the positions of its children."""
        with collector_paused():
            return [children for _, children, _ in self._flat.entries()]

    @cached_property
    def _flat(self) -> Flat:
        """The nodes as flat arrays, in the order of `order`."""
        with collector_paused():
            return Flat.of(self.order)

    @cached_property
    def scopes(self) -> Scopes:
        """Which variables each node depends on: a variable with states is one variable."""
        with collector_paused():
            return Scopes(self._flat, unit={} if self.domains is None else self.domains.unit)

    @cached_property
    def _overlap(self) -> tuple[Node, str] | None:
        """The first product that is not decomposable, with a variable that two of its factors share; or None."""
        return find_overlap(self._flat, self.scopes)

    @cached_property
    def _used(self) -> dict[str, None]:
        return dict.fromkeys(node.name for node in self.order if node.op is Op.VAR)

    @cached_property
    def facts(self) -> Facts:
        """Structural properties; see `Facts`."""
        return find_facts(self)

    @property
    def edges(self) -> int:
        """The number of edges, which is how the paper measures the size of a circuit."""
        return len(self._flat.child)

    # -- building ---------------------------------------------------------------------------------

    def _with(self, root: Node | None, *others: Circuit) -> Circuit:
        """A circuit over the variables of this circuit, followed by those that the others add.

        root : None if it is made when somebody asks for it.

        The variables are gathered only when somebody asks for them, so a loop of a million operators takes linear time.
        """
        circuit = Circuit.__new__(Circuit)
        circuit._variables, circuit._operands = None, (self, *others)
        if root is not None:
            circuit.root = root
        return circuit

    def _operate(self, level: Level, left: Circuit | None, terms: tuple[Term, ...], *others: Circuit) -> Circuit:
        """The circuit of an operator of this level: `left`, whose terms come first if its level is the same, and terms.

        Long sums and products are made when their nodes are asked for: n operators in a row take time linear in n.
        """
        circuit = self._with(None, *others)
        circuit._level, circuit._left, circuit._terms = level, left, terms
        for operand in (self, *others):
            operand._uses += 1
            if operand._uses == 2 or operand._level is not level:  # it is shared, or a node of its own in any case:
                operand._value  # noqa: B018 - now, so that there is no long chain of such operands to follow later
        return circuit

    @property
    def _value(self) -> Term:
        """The circuit as the term of an expression."""
        if self._term is None:
            if self._terms:
                self._gather()
                self._term = added(self._terms) if self._level is Level.SUM else multiplied(self._terms)
            else:
                self._term = (self.root.value, None) if self.root.op is Op.CONST else (1, self.root)
        return self._term

    def _gather(self) -> None:
        """Put the terms of the operands on the left before its own, unless these are shared or of another level."""
        parts, left = [self._terms], self._left
        while left is not None and left._level is self._level and left._uses < 2:
            parts.append(left._terms)
            left = left._left
        if left is not None:
            parts.append((left._addend if self._level is Level.SUM else left._factor,))
        self._terms, self._left = tuple(chain.from_iterable(reversed(parts))), None

    @property
    def _addend(self) -> Term:
        """The term that it is in a sum: a sum stands in parentheses."""
        return sealed(self._value) if self._level is Level.SUM else self._value

    @property
    def _factor(self) -> Term:
        """The term that it is in a product: sums and products stand in parentheses."""
        return self._value if self._level is Level.UNARY else sealed(self._value)

    def __add__(self, other: Any) -> Circuit:
        if isinstance(other, Circuit):
            return self._operate(Level.SUM, self, (other._addend,), other)
        return self._operate(Level.SUM, self, (_number(other),)) if is_number(other) else NotImplemented

    def __radd__(self, other: Any) -> Circuit:
        return self._operate(Level.SUM, None, (_number(other), self._addend)) if is_number(other) else NotImplemented

    def __sub__(self, other: Any) -> Circuit:
        if isinstance(other, Circuit):
            return self._operate(Level.SUM, self, (negated(other._addend),), other)
        return self._operate(Level.SUM, self, (negated(_number(other)),)) if is_number(other) else NotImplemented

    def __rsub__(self, other: Any) -> Circuit:
        if not is_number(other):
            return NotImplemented
        return self._operate(Level.SUM, None, (_number(other), negated(self._addend)))

    def __mul__(self, other: Any) -> Circuit:
        if isinstance(other, Circuit):
            return self._operate(Level.PRODUCT, self, (other._factor,), other)
        return self._operate(Level.PRODUCT, self, (_number(other),)) if is_number(other) else NotImplemented

    def __rmul__(self, other: Any) -> Circuit:
        if not is_number(other):
            return NotImplemented
        return self._operate(Level.PRODUCT, None, (_number(other), self._factor))

    def __truediv__(self, other: Any) -> Circuit:
        return self * reciprocal(other) if is_number(other) else NotImplemented

    def __neg__(self) -> Circuit:
        return self._operate(Level.UNARY, None, (negated(self._factor),))

    def __pos__(self) -> Circuit:
        return self if self._level is Level.UNARY else self._operate(Level.UNARY, None, (self._factor,))

    def __pow__(self, exponent: Any) -> Circuit:
        if isinstance(exponent, bool) or not isinstance(exponent, int) or exponent < 0:
            raise CircuitError(f"a circuit can be raised to a whole number ≥ 0, not to {exponent!r}")
        number, node = self._factor
        if not exponent or (node is None and power_bits(number, exponent) <= 2 * MAX_BITS):
            return self._operate(Level.UNARY, None, ((power(number, exponent), None),))
        return self._operate(Level.UNARY, None, ((1, power_node(node_of((number, node)), exponent)),))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Circuit):
            return NotImplemented
        return self.root is other.root and self.variables == other.variables and self.domains == other.domains

    def __hash__(self) -> int:
        return hash((self.root, self.variables))

    def relabel(self, names: Mapping[str, str]) -> Circuit:
        """The same circuit with variables renamed.

        Parameters
        ----------
        names : dict of str
            From old to new names. Variables that it does not mention keep theirs.

        >>> import pgcc
        >>> pgcc.parse("z1/2 + 1/2").relabel({"z1": "rain"}).variables
        ('rain',)

        See Also
        --------
        pgcc.Circuit.restrict : keep some variables and sum out the rest
        """
        domains = self.domains or Domains.plain(self.variables)
        unknown = [name for name in names if name not in domains]
        if unknown:
            raise CircuitError(f"cannot rename {unknown[0]!r}{hint(unknown[0], domains)}")
        renamed = domains.renamed(names)
        column = dict(zip(domains.columns, renamed.columns, strict=True))
        circuit = Circuit(self.rewrite(lambda node: var(column[node.name], node.is_complement)), renamed)
        circuit._network = self._network and self._network.renamed(names)
        return circuit

    def with_states(self, states: Mapping[str, Iterable[Any]]) -> Circuit:
        """The same circuit, some of whose variables are said to be the states of one variable.

        A variable with states is a *block* of columns of which exactly one is in. The column of the state ``s`` of
        ``v`` is called ``v=s``. A variable with two states has one column, ``v``, which is in if the state is "yes"
        or the like, or else the second; and one with a single state has none.

        Parameters
        ----------
        states : dict
            For each variable, its states: different labels, which are text or numbers.

        See Also
        --------
        pgcc.pc.categorical : a variable with states as a probabilistic circuit
        pgcc.parse : text can say so itself

        Examples
        --------
        >>> import pgcc
        >>> g = pgcc.parse('0.5*"w=sun" + 0.3*"w=rain" + 0.2*"w=snow"').with_states({"w": ["sun", "rain", "snow"]})
        >>> g.domains
        <Domains: w in {sun, rain, snow}>
        """
        known = self.domains or Domains.plain(self.variables)
        new = Domains.of(states)
        owner = {column: name for name, domain in new.items() for column in domain.columns if column}
        merged: dict[str, Domain] = {}
        for name, domain in known.items():
            name = owner.get(name, name)
            merged[name] = new.get(name, domain)
        return Circuit(self.root, Domains({**merged, **new}))

    def rewrite(self, leaf: Any) -> Node:
        """The root node after every variable leaf `node` has been replaced by `leaf(node)`.

        >>> import pgcc
        >>> g = pgcc.parse("0.4*a*b + 0.6")
        >>> c = pgcc.parse("c").root
        >>> print(pgcc.Circuit(g.rewrite(lambda node: c if node.name == "b" else node)))
        2/5*a*c + 3/5

        See Also
        --------
        pgcc.Circuit.simplify : a smaller circuit for the same polynomial
        """
        new: dict[Node, Node] = {}
        for node in self.order:
            new[node] = leaf(node) if node.op is Op.VAR else rebuild(node, [new[c] for c in node.children])
        return new[self.root]

    # -- transformations: documented here, made in `passes` and `frontend` -------------------------

    def simplify(self) -> Circuit:
        """A smaller circuit for the same polynomial; see `pgcc.passes.pipeline`.

        >>> import pgcc
        >>> print(pgcc.parse("(a*b)*(2*3 - 5) + 0*c").simplify())
        a*b

        See Also
        --------
        pgcc.Circuit.rewrite : replace every variable leaf
        """
        from pgcc.passes.pipeline import simplify

        return simplify(self)

    def observe(self, evidence: Any = None, *, over: Names = None, size: Any = None) -> Circuit:
        """Keep the terms that agree with the evidence, as a circuit over the variables that were not observed.

        The result is the polynomial of Pr(evidence, rest). It is not normalized: its total is Pr(evidence), and it is
        the constant 0 if the evidence is impossible. `pgcc.compile` divides by that total, as does `Model.condition`.

        Parameters
        ----------
        evidence : dict or text
            What you observed: a single piece of evidence, as in `Model.prob`.
        over : names, optional
            The variables that `size` counts, including those observed to be in. By default, all of them.
        size : int, (int, int), range, or list or set of int, optional
            How many of these variables are in: exactly k, a pair (at least, at most), or one of several: [0, 2] is 0
            or 2. A DPP becomes a k-DPP.

        Raises
        ------
        CircuitError
            If that many of them cannot be in. Also if more than 255 of them occur in one determinant that already has a
            size, or whose children are other circuits with variables that count.

        See Also
        --------
        pgcc.Model.condition : the distribution given evidence, as a model
        pgcc.Circuit.marginalize : sum out some variables

        Examples
        --------
        >>> import pgcc
        >>> g = pgcc.parse("0.4*a*b + 0.3*a*c + 0.1*b + 0.2")
        >>> print(g.observe({"a": 1}))
        2/5*b + 3/10*c
        >>> print(g.observe(size=1))
        1/10*b
        >>> print(g.observe(size=(0, 1), over="a, b"))
        1/5 + 3/10*a*c + 1/10*b
        >>> print(pgcc.parse("det([[1, 0], [0, 1]], [[1, 0], [0, 1]], [[1, 2], [2, 5]], [a, b])").observe(size=1))
        det([[1, 0], [0, 1]], [[1, 0], [0, 1]], [[1, 2], [2, 5]], [a, b], size=1)
        """
        from pgcc.data.evidence import Evidence, read_counted
        from pgcc.passes.condition import condition
        from pgcc.passes.sizes import of_size

        if size is None and over is not None:
            raise EvidenceError("`over` says what `size` counts: it means nothing alone", argument="over")
        counted = read_counted(over, self.variables, dict.fromkeys(self.variables)) if size is not None else []
        part = self if size is None else of_size(self, size, counted)
        return part if evidence is None else condition(part, Evidence(self.variables, evidence).observed())

    def exclude_empty(self) -> Circuit:
        """Take away the empty set, which does not occur: (g − g(0)) / (g(1) − g(0)).

        Nobody looks at an empty basket: this is the distribution given that a set is not empty. It has one term more
        than g, a negative number, which takes nothing from the probabilities of other sets. (`observe` with ``size=(1,
        n)`` has the same polynomial times its total, in a circuit that is larger. To take away the complete set:
        ``g.complement().exclude_empty().complement()``.)

        If all numbers are exact, so is the result. With floats, it is rounded, and to be on the safe side the empty set
        keeps 2⁻³⁶ of its probability.

        Raises
        ------
        CircuitError
            If hardly any other set has a positive probability.

        See Also
        --------
        pgcc.Circuit.observe : keep the terms that agree with the evidence or have a given size

        Examples
        --------
        >>> import pgcc
        >>> basket = pgcc.parse("(0.5*milk + 0.5)*(0.2*tea + 0.8)").exclude_empty()
        >>> print(basket)
        5/3*(1/2*milk + 1/2)*(1/5*tea + 4/5) - 2/3
        >>> pgcc.compile(basket).prob({"milk": 0}, exact=True), pgcc.check(basket).ok
        (Fraction(1, 6), True)
        """
        from pgcc.passes.condition import exclude_empty

        return exclude_empty(self)

    def do(self, states: Mapping[str, Any] | str) -> Circuit:
        """Intervene: the circuit of the Bayesian network in which each of these variables is set to a state.

        Whatever its causes are, x has this state: its table is replaced, and its parents have no effect on it. That is
        no question to the distribution, but to the network that the circuit was compiled from, which it knows until it
        is changed otherwise. (Pearl's do-operator. What was observed before compiling is observed
        after the intervention.)

        Parameters
        ----------
        states : dict or text
            From variables to the states that they are set to: ``{"wet": 1}``, or ``"wet=1"``.

        Raises
        ------
        CircuitError
            If the circuit was not compiled from a Bayesian network.

        See Also
        --------
        pgcc.Circuit.observe : keep the terms that agree with the evidence
        pgcc.builders.bayesian_network : the circuit of a Bayesian network

        Examples
        --------
        >>> import pgcc
        >>> lawn = pgcc.builders.bayesian_network({"rain": 0.2, "wet": (["rain"], {0: 0.1, 1: 0.9})})
        >>> seen, done = pgcc.compile(lawn.observe({"wet": 1})), pgcc.compile(lawn.do({"wet": 1}))
        >>> round(seen.prob({"rain": 1}), 6), round(done.prob({"rain": 1}), 6)
        (0.692308, 0.2)
        """
        from pgcc.data.text import parse_evidence

        if self._network is None:
            raise CircuitError(
                "only a circuit as it was compiled from a Bayesian network (pgcc.builders.bayesian_network, or "
                "pgcc.load of a .bif or .uai file) tells causes from effects"
            )
        if isinstance(states, str):
            states = parse_evidence(states, list(self._network.domains), self._network.domains)
        return self._network.do(states).circuit()

    def marginalize(self, names: Iterable[str]) -> Circuit:
        """Sum out the named variables (by setting z = 1), leaving a circuit over the others.

        >>> import pgcc
        >>> print(pgcc.parse("0.4*a*b + 0.3*a + 0.3").marginalize(["b"]))
        7/10*a + 3/10

        See Also
        --------
        pgcc.Circuit.restrict : keep some variables and sum out the rest
        pgcc.Circuit.observe : keep the terms that agree with the evidence or have a given size
        """
        from pgcc.passes.condition import marginalize

        return marginalize(self, names)

    def restrict(self, names: Iterable[str]) -> Circuit:
        """Keep the named variables, in this order, and sum out the rest.

        >>> import pgcc
        >>> pgcc.parse("0.4*a*b*c + 0.3*a + 0.3").restrict(["c", "a"]).variables
        ('c', 'a')

        See Also
        --------
        pgcc.Circuit.marginalize : sum out some variables
        """
        from pgcc.passes.compose import restrict

        return restrict(self, names)

    def compose(self, leaves: Mapping[str, Circuit]) -> Circuit:
        """Replace variables by circuits: hierarchical composition.

        To draw from the result, draw a set from this circuit; then, for every replaced variable in that set, draw a set
        from its leaf, independently.

        Parameters
        ----------
        leaves : mapping
            From variables to circuits. Each leaf must have the total 1 (exactly if its numbers are exact, to 1e-9 if
            they are floats; see `normalize`), and must share no variable with another leaf or with the variables that
            stay.

        Raises
        ------
        CircuitError
            If a name is not a variable of the circuit, or a leaf is not a circuit.
        SemanticsError
            If the total of a leaf is not 1, or two leaves share a variable.

        See Also
        --------
        pgcc.det_pgc : a DPP over groups, each with a distribution of its own
        pgcc.mixture : a mixture of distributions

        Examples
        --------
        >>> import pgcc
        >>> g = pgcc.parse("0.5*x*y + 0.5")
        >>> print(g.compose({"x": pgcc.parse("0.3*a*b + 0.7*a")}))
        1/2*(3/10*a*b + 7/10*a)*y + 1/2
        """
        from pgcc.passes.compose import compose

        return compose(self, leaves)

    def normalize(self) -> Circuit:
        """Divide the circuit by its total g(1), so that the coefficients sum to 1.

        The division is exact if all numbers are, and otherwise has a relative error below 1e-12. `pgcc.compile`
        normalizes by itself; you need this for circuits that become leaves of others.

        Raises
        ------
        SemanticsError
            If the total is not positive.
        PrecisionError
            If the total cannot be computed to 1e-12.

        See Also
        --------
        pgcc.compile : compile a circuit to a model

        Examples
        --------
        >>> import pgcc
        >>> print(pgcc.parse("3*a + 1").normalize())
        1/4*(3*a + 1)
        """
        from pgcc.passes.total import normalize

        return normalize(self)

    def thin(self, p: Any) -> Circuit:
        """Thin the distribution: draw a set, then keep each of its members with probability p, independently.

        Parameters
        ----------
        p : number, or mapping from variables to numbers
            Between 0 and 1. Variables that you do not name are always kept.

        See Also
        --------
        pgcc.Circuit.tilt : make members more or less likely
        pgcc.Circuit.compose : replace variables by distributions

        Examples
        --------
        >>> import pgcc
        >>> print(pgcc.parse("0.4*a*b + 0.6").thin({"a": "1/4"}))
        2/5*(1/4*a + 3/4)*b + 3/5
        """
        from pgcc.passes.compose import thin

        return thin(self, p)

    def tilt(self, weights: Mapping[str, Any]) -> Circuit:
        """Reweight the sets to Pr(S) · Π_{i∈S} w_i: exponential tilting, with w = exp(θ).

        The result is not normalized; `pgcc.compile` does that.

        Parameters
        ----------
        weights : mapping
            From variables to weights, numbers > 0. Variables that you do not name have weight 1.

        See Also
        --------
        pgcc.Circuit.thin : drop members at random
        pgcc.subsets : a random subset of a given size

        Examples
        --------
        >>> import pgcc
        >>> pgcc.compile(pgcc.parse("0.5*a + 0.5").tilt({"a": 3})).prob({"a": 1})
        0.75
        """
        from pgcc.passes.compose import tilt

        return tilt(self, weights)

    def complement(self, names: Iterable[str] | None = None) -> Circuit:
        """Swap 0 and 1, in all variables or in the named ones.

        Raises
        ------
        CircuitError
            If the circuit is not decomposable (two factors of a product share a variable): its products then do not
            show which variables are out.

        See Also
        --------
        pgcc.Circuit.observe : keep the terms that agree with the evidence or have a given size

        Examples
        --------
        >>> import pgcc
        >>> print(pgcc.parse("0.4*a*b + 0.6").complement())
        2/5*~a*~b + 3/5*a*b
        """
        from pgcc.passes.compose import complement

        return complement(self, names)

    def to_sympy(self) -> sympy.Expr:
        """Convert the polynomial to a SymPy expression.

        >>> import pgcc
        >>> pgcc.parse("a*b/2 + 1/2").to_sympy()
        a*b/2 + 1/2

        See Also
        --------
        pgcc.from_sympy : convert a SymPy expression to a circuit
        pgcc.Circuit.to_networkx : convert the circuit to a graph
        """
        from pgcc.frontend.symbolic import to_sympy

        return to_sympy(self)

    def to_networkx(self) -> networkx.DiGraph:
        """Convert the circuit to a networkx graph, which `from_networkx` reads back as the same circuit.

        Nodes are numbered from 0, and the root is the last.

        >>> import pgcc
        >>> G = pgcc.parse("0.5*a*b + 0.5").to_networkx()
        >>> G.nodes[2]["kind"], list(G.successors(2))
        ('product', [0, 1])

        See Also
        --------
        pgcc.Circuit.from_networkx : read a circuit from a graph
        pgcc.pc.PC.to_networkx : the same for a probabilistic circuit
        """
        from pgcc.frontend.networkx_graphs import GENERATING, to_graph

        return to_graph(self, GENERATING)

    @classmethod
    def from_networkx(cls, graph: networkx.DiGraph) -> Circuit:
        """Read a circuit from a networkx graph whose edges point from each node to its children.

        Parameters
        ----------
        graph : networkx.DiGraph
            An acyclic graph with exactly one node that no edge enters: the root. Every node has an attribute ``kind``:

            - ``"sum"``; every edge out of it has a ``weight``;
            - ``"product"``;
            - ``"literal"``, with ``variable`` (a name) and ``value`` (1 for z, 0 for its complement, which is 1 in
              every generating polynomial);
            - ``"constant"``, with ``value``, a number;
            - ``"bernoulli"``, with ``variable`` and ``p``;
            - ``"det"``, with the matrices ``M0``, ``U`` and ``V`` of det(M0 + U·diag(children)·Vᵀ), and optionally
              ``size`` and ``counted``; an edge with ``outside=i`` leads to the complement of child i, which is 1
              otherwise;
            - ``"copy"``, of its only child: for a parent that has the same child twice.

            An empty sum or product must have ``children=0``. Children are taken in the order in which the edges were
            added. A list of names in ``graph.graph["variables"]`` fixes the order of the variables.

        Raises
        ------
        CircuitError
            If the graph has any other form; the message names the node. Graphs of probabilistic circuits are refused
            too, because they mean something else: read them with `pgcc.pc.PC.from_networkx`.

        See Also
        --------
        pgcc.Circuit.to_networkx : convert the circuit to a graph
        pgcc.pc.PC.from_networkx : the same for a probabilistic circuit

        Examples
        --------
        >>> import pgcc
        >>> g = pgcc.dpp(L=[[1, 2, 0], [2, 6, 0], [0, 0, 4]])
        >>> pgcc.Circuit.from_networkx(g.to_networkx()) == g
        True
        """
        from pgcc.frontend.networkx_graphs import GENERATING, from_graph

        return cls(*from_graph(graph, GENERATING, signed=True))

    # -- printing and pickling --------------------------------------------------------------------

    def __str__(self) -> str:
        from pgcc.ir.printer import expression_text

        return expression_text(self)

    def __repr__(self) -> str:
        n = len(self.variables)
        text = str(self) if len(self.order) <= 40 else "…"
        text = "…" if "\n" in text else text
        return f"<Circuit: {plural(n, 'variable')}, {plural(self.edges, 'edge')}: {text}>"

    def _repr_html_(self) -> str:
        """What notebooks show: the size, and the picture of the circuit or of its top."""
        from pgcc.draw.html import circuit_html

        return circuit_html(self)

    def __reduce__(self) -> tuple:
        state = None if self._network is None else {"_network": self._network}
        return _from_entries, (self.variables, list(self._flat.entries())), state


def _from_entries(variables: tuple[str, ...], entries: list[Entry]) -> Circuit:
    """The circuit of nodes that were written one after another, children before parents: deep ones are pickled, too."""
    return Circuit(make_nodes(entries)[-1], variables)


def from_flat(flat: Flat, variables: Iterable[str]) -> Circuit:
    """The circuit of flat arrays; its nodes are made when somebody asks for them."""
    circuit = Circuit.__new__(Circuit)
    circuit._flat, circuit._variables, circuit._operands = flat, as_columns(variables), ()
    return circuit


def over_columns(circuit: Circuit) -> Circuit:
    """The same circuit whose columns are plain binary variables, whatever they show."""
    return circuit if circuit.domains is None else from_flat(circuit._flat, tuple(circuit.variables))


def _variables_of(circuit: Circuit) -> tuple[str, ...]:
    """The variables of all operands, left to right. The loop visits each operand once, however often it was used."""
    names: dict[str, None] = {}
    with_states: list[tuple[str, ...]] = []
    seen: set[int] = set()
    stack = [circuit]
    while stack:
        part = stack.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        if part._variables is None:
            stack.extend(reversed(part._operands))
        elif domains_of(part._variables) is None:
            names.update(dict.fromkeys(part._variables))
        else:
            with_states += [tuple(names), part._variables]
            names = {}
    return joined([*with_states, tuple(names)]) if with_states else tuple(names)


def _number(value: Any) -> Term:
    return as_number(value), None


def power_node(base: Node, exponent: int) -> Node:
    """base ** exponent by squaring: O(log exponent) nodes.

    >>> power_node(var("z"), 1)
    Var(z)
    """
    if exponent == 0:
        return const(1)
    result: Node | None = None
    while True:
        if exponent & 1:
            result = base if result is None else product((result, base))
        exponent >>= 1
        if not exponent:
            return result if result is not None else base
        base = product((base, base))


def variables(names: str | Sequence[str]) -> tuple[Circuit, ...]:
    """Circuits for single variables, from which to build expressions with Python operators.

    Parameters
    ----------
    names : str or sequence of str
        The names, as a sequence or as one string separated by spaces or commas.

    See Also
    --------
    pgcc.parse : read a circuit from text
    pgcc.from_sympy : convert a SymPy expression to a circuit

    Examples
    --------
    >>> import pgcc
    >>> a, b = pgcc.variables("a b")
    >>> print(a * b / 2 + 1 / 2)
    1/2*a*b + 0.5
    """
    listed = names.replace(",", " ").split() if isinstance(names, str) else list(names)
    return tuple(Circuit(var(name)) for name in listed)
