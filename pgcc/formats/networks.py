"""What the formats of networks share: their options, files of evidence, and the checks while a network is read."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from pgcc.errors import CircuitError, EvidenceError, FormatError
from pgcc.formats.io import read_text, unpacked_name
from pgcc.formats.words import Words
from pgcc.frontend.elimination import WidthError
from pgcc.frontend.network import Network, Table, Tables
from pgcc.ir.circuit import Circuit
from pgcc.ir.domains import Domain, Domains, Label
from pgcc.locks import cached_property

Keep: TypeAlias = Iterable[str] | None
Evidence: TypeAlias = Mapping[str, Any] | str | os.PathLike[str] | bool | None


class Draft:
    """A Bayesian network with names that is being read."""

    def __init__(self) -> None:
        self.domains: dict[str, Domain] = {}
        self.tables: dict[str, Table] = {}

    def add_variable(self, name: str, states: Sequence[Label]) -> None:
        if name in self.domains:
            raise CircuitError(f"variable {name!r} is described twice")
        self.domains[name] = Domain.of(name, states)

    @cached_property
    def make(self) -> Tables:
        """All variables, which have been read before the first table."""
        if not self.domains:
            raise CircuitError("a network without variables")
        return Tables(Domains(self.domains))

    def begin_table(self, name: str, parents: Sequence[str]) -> tuple[int, ...]:
        """The scope of a table."""
        scope = self.make.scope(name, parents)
        if name in self.tables:
            raise CircuitError(f"variable {name!r} has two tables of probabilities")
        return scope

    def add_table(self, name: str, scope: tuple[int, ...], table: np.ndarray) -> None:
        self.tables[name] = self.make.conditional(scope, table)


def network_in(words: Words, read: Callable[[Words, Draft], None]) -> Network:
    """The network that is read from the words of a file; mistakes are in the line of the last word."""
    draft = Draft()
    with words.located():
        read(words, draft)
        words.next = len(words.words)
        return Network.bayesian(draft.make.domains, draft.tables)


def compiled(
    read_network: Callable[[Path], Network], path: Path, keep: Keep = None, evidence: Evidence = None
) -> Circuit:
    """The circuit of a network in a file: all formats of networks are read by it.

    Parameters
    ----------
    read_network : function
        What reads the network.
    path : Path
    keep : iterable of str, optional
        The variables to be asked about. The others are summed out while reading, as numbers, which takes far less
        memory: a network of large width may only be readable in this way. Of a Bayesian network, what they do not
        depend on is left out.
    evidence : dict, True or path, optional
        What was observed: ``{"HR": "HIGH"}``, or a set of states, or True for the file `.evid` beside, or another such
        file. The circuit is over the variables that were not observed in one state, and its total is that of the
        evidence. It is often far smaller.

    Raises
    ------
    FormatError
        If the network has too many live terms for a circuit.
    """
    network, beside = read_network(path), Path(f"{unpacked_name(path)}.evid")
    if evidence is True:
        evidence = beside
    if isinstance(evidence, (str, os.PathLike)):
        evidence = read_evidence(Path(evidence), network.domains)
    try:
        return network.asked(keep, evidence or {}).circuit()
    except WidthError as error:
        advice = error.advice or ""
        if beside.exists():
            advice = advice.replace("evidence={...}", f"evidence=True, which reads {beside.name},")
        message = f"{path}: the network is too dense for a circuit: {error.args[0]}"
        raise FormatError(message, advice=advice or None) from None
    except (CircuitError, EvidenceError) as error:
        raise FormatError(f"{path}: {error}") from None


def read_evidence(path: Path, domains: Domains) -> dict[str, Any]:
    """The observed states of variables, in a file of evidence, which numbers both."""
    words = Words(path, read_text(path))
    names = list(domains)
    if len(words.words) % 2 == 0 and words.count("the number of pieces of evidence") != 1:
        raise words.error("a file of evidence has one piece of evidence: 1")
    count = words.count("the number of observed variables")
    words.promise(count, "observed variables", words=2)
    observed: dict[str, Any] = {}
    for _ in range(count):
        name = names[words.member("an observed variable", "evidence", len(names))]
        states = domains[name].states
        state = words.count(f"the state of {name}")
        if state >= len(states):
            raise words.error(f"{name} has {len(states)} states, from 0, and no state {state}")
        if observed.setdefault(name, states[state]) != states[state]:
            raise words.error(f"{name} is observed in two states, {observed[name]} and {states[state]}")
    words.finish("evidence")
    return observed
