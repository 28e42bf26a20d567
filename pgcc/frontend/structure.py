"""Structural properties of probabilistic circuits (decomposable, smooth, deterministic …), and where they fail.

A literal is a variable x or its complement x̄. All properties are decided in nearly linear time: scopes are interned as
numbers, and the search for terms with common support (`common_support`) is bounded. If it needs more steps, the answer
is None: unknown.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from pgcc.errors import CircuitError, plural
from pgcc.frontend.common_support import find_meeting_terms
from pgcc.ir.circuit import Circuit
from pgcc.ir.facts import find_uneven_sums
from pgcc.ir.node import Node, Op
from pgcc.ir.printer import brief_text, describe
from pgcc.ir.scopes import difference, members

PROPERTIES = ("decomposable", "smooth", "structured_decomposable", "deterministic")


@dataclass(frozen=True)
class Offender:
    """A node at which a structural property fails or cannot be decided.

    Attributes
    ----------
    node : Node
        The first such node, children before parents.
    why : str
        What is wrong there, in words.
    variable : str or None
        The variable that two factors share, or that a term of a sum does not mention.

    See Also
    --------
    pgcc.pc.Structure : the report on structural properties

    Examples
    --------
    >>> from pgcc import pc
    >>> report = (0.5 * pc.pos("a") * pc.pos("b") + 0.5 * pc.neg("a")).structure()
    >>> report.offenders["smooth"].variable
    'b'
    """

    node: Node
    why: str
    variable: str | None = None

    def __str__(self) -> str:
        return f"{describe(self.node)}: {self.why}"


@dataclass(frozen=True)
class Structure:
    """The structural properties of a probabilistic circuit; print it to see them, and where they fail.

    Attributes
    ----------
    scope : tuple of str
        The variables that occur.
    nodes, edges : int
        The size of the circuit.
    decomposable : bool
        Whether the factors of every product have disjoint variables.
    smooth : bool
        Whether the terms of every sum have the same variables.
    structured_decomposable : bool
        Whether the circuit is decomposable and any two products over the same variables split them in the same way. (A
        smooth circuit with this property follows one vtree.)
    deterministic : bool or None
        Whether no two terms of any sum are nonzero at the same assignment; None if that could not be decided.
    offenders : dict
        For every property that is not True, an `Offender`: the node and the reason.

    See Also
    --------
    pgcc.pc.structure : whether a circuit is decomposable, smooth and deterministic
    pgcc.pc.Offender : a node at which a property fails

    Examples
    --------
    >>> from pgcc import pc
    >>> report = (0.5 * pc.pos("a") * pc.pos("b") + 0.5 * pc.neg("a")).structure()
    >>> report.decomposable, report.smooth, report.deterministic
    (True, False, True)
    """

    scope: tuple[str, ...]
    nodes: int
    edges: int
    decomposable: bool
    smooth: bool
    structured_decomposable: bool
    deterministic: bool | None
    offenders: dict[str, Offender] = field(default_factory=dict, compare=False, repr=False)

    def __str__(self) -> str:
        n = len(self.scope)
        lines = [f"{plural(n, 'variable')}, {plural(self.nodes, 'node')}, {plural(self.edges, 'edge')}"]
        for name in PROPERTIES:
            verdict = {True: "yes", False: "no", None: "unknown"}[getattr(self, name)]
            where = f" ({self.offenders[name]})" if name in self.offenders else ""
            lines.append(f"{name.replace('_', '-')}: {verdict}{where}")
        return "\n".join(lines)


def structure(circuit: Circuit) -> Structure:
    """The structural properties of a circuit of sums and products over literals.

    Parameters
    ----------
    circuit : Circuit
        Without determinants.

    Examples
    --------
    >>> import pgcc
    >>> print(structure(pgcc.parse("0.4*a*b + 0.6*~a")))
    2 variables, 5 nodes, 4 edges
    decomposable: yes
    smooth: no (sum 2/5*(a*b) + 3/5*~a: its term ~a does not mention 'b')
    structured-decomposable: yes
    deterministic: yes
    """
    check_literals_only(circuit)
    finders: dict[str, Callable[[Circuit], tuple[bool | None, Offender | None]]] = {
        "decomposable": _decomposable,
        "smooth": _smooth,
        "structured_decomposable": _structured,
        "deterministic": _deterministic,
    }
    found = {name: find(circuit) for name, find in finders.items()}
    return Structure(
        scope=tuple(filter(set(circuit.scopes.names).__contains__, circuit.domains or circuit.variables)),
        nodes=len(circuit.order),
        edges=circuit.edges,
        offenders={name: offender for name, (_, offender) in found.items() if offender is not None},
        **{name: verdict for name, (verdict, _) in found.items()},  # type: ignore[arg-type]
    )


def check_literals_only(circuit: Circuit) -> None:
    """Refuse determinants: a probabilistic circuit has sums and products only."""
    if any(node.op is Op.DET for node in circuit.order):
        raise CircuitError(
            "the circuit has a determinant: a probabilistic circuit has sums and products of literals only"
        )


def _decomposable(circuit: Circuit) -> tuple[bool, Offender | None]:
    overlap = circuit._overlap
    if overlap is None:
        return True, None
    node, name = overlap
    return False, Offender(node, f"two of its factors share {name!r}", name)


def _smooth(circuit: Circuit) -> tuple[bool, Offender | None]:
    uneven, scopes = find_uneven_sums(circuit), circuit.scopes
    if not len(uneven):
        return True, None
    i = int(uneven[0])
    c = next(c for c in circuit._links[i] if scopes.of[c] != scopes.of[i])
    name = scopes.names[next(members(difference(scopes.distinct[scopes.of[i]], scopes.distinct[scopes.of[c]])))]
    term = brief_text(circuit.order[c], depth=1)
    return False, Offender(circuit.order[i], f"its term {term} does not mention {name!r}", name)


def _structured(circuit: Circuit) -> tuple[bool, Offender | None]:
    decomposable, offender = _decomposable(circuit)
    if not decomposable:
        return False, offender
    splits: dict[int, tuple[list[int], Node]] = {}
    of = circuit.scopes.of
    for i, node in enumerate(circuit.order):
        if node.op is not Op.PRODUCT:
            continue
        parts = sorted(of[c] for c in circuit._links[i] if of[c])
        if len(parts) < 2:
            continue
        known, first = splits.setdefault(of[i], (parts, node))
        if known != parts:
            return False, Offender(node, f"splits its variables unlike {describe(first)}")
    return True, None


def _deterministic(circuit: Circuit) -> tuple[bool | None, Offender | None]:
    meeting, found = find_meeting_terms(circuit)
    if found is None:
        return True, None
    node, *terms = (circuit.order[i] for i in found)
    x, y = (brief_text(term, depth=1) for term in terms)
    if meeting and circuit.facts.monotone:  # with negative numbers, terms may cancel, and supports are smaller
        return False, Offender(node, f"its terms {x} and {y} can both be positive")
    return None, Offender(node, f"its terms {x} and {y} were not told apart")
