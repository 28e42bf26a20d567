"""Operands of passes and front ends: read and checked, with errors that say what was expected."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pgcc.arrays import as_array
from pgcc.errors import CircuitError, PgccError, SemanticsError, brief, plural
from pgcc.ir.circuit import Circuit
from pgcc.ir.domains import Domains
from pgcc.ir.names import default_names, hint
from pgcc.ir.node import var
from pgcc.ir.numbers import Number, as_number
from pgcc.ir.printer import describe

# -- circuits and their variables --------------------------------------------------------------------------------------


def check_circuit(value: Any, what: str) -> None:
    """Refuse a value that is not a circuit."""
    if not isinstance(value, Circuit):
        hint = "; its method to_pgc() makes one" if hasattr(value, "to_pgc") else ""
        raise CircuitError(f"{what} is a circuit, not {brief(value)}{hint}")


def claim_variables(owners: dict[str, str], circuit: Circuit, what: str) -> None:
    """Add the variables of a circuit to `owners`; refuse a variable that has another owner."""
    for name in circuit.variables:
        if name in owners:
            raise SemanticsError(f"{owners[name]} and {what} share the variable {name!r}: they have to be independent")
        owners[name] = what


def check_disjoint(circuits: Iterable[Circuit], what: str) -> None:
    """Refuse circuits with a variable in common; they are called `what` 0, `what` 1, …"""
    owners: dict[str, str] = {}
    for i, circuit in enumerate(circuits):
        claim_variables(owners, circuit, f"{what} {i}")


def check_decomposable(
    circuit: Circuit, message: str = "not decomposable: {}", error: type[PgccError] = CircuitError
) -> None:
    """Refuse a circuit with a product whose factors share a variable; the message says where, in place of {}.

    >>> from pgcc import parse
    >>> check_decomposable(parse("a*(a + 1)"))
    Traceback (most recent call last):
    pgcc.errors.CircuitError: not decomposable: two factors of product a*(a + 1) share 'a'
    """
    if circuit._overlap is not None:
        node, name = circuit._overlap
        raise error(message.format(f"two factors of {describe(node)} share {name!r}"))


def list_variables(
    circuit: Circuit, names: Iterable[str] | None, verb: str, error: type[PgccError] = CircuitError
) -> list[str]:
    """Variables of the circuit, each once, those with states by their columns; all of them for None."""
    if names is None:
        return list(circuit.variables)
    try:
        listed = [names] if isinstance(names, str) else list(dict.fromkeys(names))
    except TypeError:
        raise CircuitError(f"variables to {verb} are a sequence of names, not {brief(names)}") from None
    domains = circuit.domains or Domains({})
    check_known(circuit, [name for name in listed if name not in domains], verb, error)
    return [c for name in listed for c in (domains[name].columns if name in domains else (name,)) if c]


def check_known(circuit: Circuit, names: Iterable[Any], verb: str, error: type[PgccError] = CircuitError) -> None:
    """Refuse names that are no columns of the circuit."""
    known, domains = set(circuit.variables), circuit.domains or Domains({})
    for name in names:
        if name in domains and name not in known:
            raise error(f"cannot {verb} {name!r}, which has states: name their columns, {list(domains[name].columns)}")
        if name not in known:
            raise error(f"cannot {verb} {name!r}: the circuit has no such variable{hint(name, domains or known)}")


# -- sequences, and names for new variables ----------------------------------------------------------------------------


def as_list(values: Any, what: str) -> list:
    """The elements of a sequence or another iterable; the rows of an array, a tensor or a DataFrame."""
    array = as_array(values, what)
    try:
        return list(values if array is None else array)
    except TypeError:
        raise CircuitError(f"{what}: a sequence is needed, not {brief(values)}") from None


def need_sequence(values: Any, what: str) -> list:
    """The elements of a sequence that is not text, called `what` ("the names are a sequence").

    >>> need_sequence("abc", "the names are a sequence")
    Traceback (most recent call last):
    pgcc.errors.CircuitError: the names are a sequence, not 'abc'
    """
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise CircuitError(f"{what}, not {values!r}")
    return list(values)


def new_names(names: Iterable[Any], what: str = "variables") -> list[str]:
    """Names for new variables: each is possible, and none stands twice.

    >>> new_names(["a", "a"])
    Traceback (most recent call last):
    pgcc.errors.CircuitError: two variables are called 'a'
    """
    listed = list(names)
    for name in listed:
        var(name)  # refuses what cannot be a name
    if len(set(listed)) < len(listed):
        raise CircuitError(f"two {what} are called {next(x for x in listed if listed.count(x) > 1)!r}")
    return [str(name) for name in listed]


def model_names(names: Iterable[str] | None, count: int, what: str = "variable") -> list[str]:
    """The names of the variables of a new model, of which there have to be `count`; x1, x2, … for None."""
    if count < 1:
        raise CircuitError(f"a model has at least one {what}")
    if names is None:
        return default_names(count)
    labels = need_sequence(names, f"names are a sequence, one for each {what}")
    if len(labels) != count:
        raise CircuitError(f"{plural(count, what)}, but {plural(len(labels), 'name')}")
    return new_names(labels, f"{what}s")


# -- numbers -----------------------------------------------------------------------------------------------------------


def probability(value: Any, what: str) -> Number:
    """A number between 0 and 1."""
    number = _number(value)
    if number is None or not 0 <= number <= 1:
        raise CircuitError(f"{what} is {brief(value)}, not a number between 0 and 1")
    return number


def positive(value: Any, what: str) -> Number:
    """A number above 0."""
    number = _number(value)
    if number is None or number <= 0:
        raise CircuitError(f"{what} is {brief(value)}, not a number above 0")
    return number


def nonnegative(value: Any, what: str) -> Number:
    """A number that is not negative."""
    number = _number(value)
    if number is None or number < 0:
        raise CircuitError(f"{what} is {brief(value)}, not a number that is not negative")
    return number


def _number(value: Any) -> Number | None:
    try:
        return as_number(value)
    except CircuitError:
        return None
