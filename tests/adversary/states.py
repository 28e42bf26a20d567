"""Cases with states, and a view of their models by columns, so that they are asked every question about columns.

Evidence about columns is told to the model by states, in one of the forms that people use, and its answers by state
are read back as answers about columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np

import pgcc
from pgcc.ir.domains import Domain, Domains

LABELS = (("sun", "rain", "snow"), ("1", "2", "3"), (0.5, -1, 2), ("no", "yes"), ("a=b", "x, y", "?", ""), ("M", "F"))


def picked_domains(pick: Any, most: int = 4) -> Domains:
    """One to four variables, of at most nine columns, of which one has several."""
    while True:
        labels = {f"v{i}": LABELS[pick(len(LABELS))] for i in range(pick.between(1, most))}
        domains = Domains.of(labels)
        domains = Domains({n: Domains.plain([n])[n] if d.states == ("no", "yes") else d for n, d in domains.items()})
        if domains.unit and len(domains.columns) <= 9:
            return domains


class ByColumns:
    """A model of variables with states as one of their columns."""

    def __init__(self, model: pgcc.Model):
        self.model = model
        self.domains = model.circuit.domains or Domains.plain(model.circuit.variables)
        self.columns = list(model.circuit.variables)
        self.owner = {c: (n, d.columns.index(c)) for n, d in self.domains.items() for c in d.columns if c}
        places = {(n, s): i for i, (n, s, _) in enumerate(self.domains.axis)}
        self.shown = [self.place(places, c) for c in self.columns]
        self.variables, self.circuit = tuple(self.columns), model.circuit

    def place(self, places: Mapping, column: str) -> int:
        name, i = self.owner[column]
        domain = self.domains[name]
        return places[name, None if domain.is_plain else domain.states[i]]

    # -- evidence --------------------------------------------------------------------------------------------------

    def told(self, codes: Mapping[str, int] | Iterable[int]) -> dict[str, Any]:
        """What columns show, by states."""
        by_name = codes if isinstance(codes, Mapping) else dict(zip(self.columns, codes, strict=True))
        found: dict[str, Any] = {}
        for name, domain in self.domains.items():
            seen = [-1 if c is None else int(by_name.get(c, -1)) for c in domain.columns]
            left = [i for i, code in enumerate(seen) if code != 0] if 1 not in seen else [seen.index(1)]
            if domain.columns.count(None) and 1 not in seen and 0 in seen:
                left = [domain.columns.index(None)]
            if len(left) < len(seen):
                states = [domain.states[i] for i in left]
                found[name] = states[0] if len(states) == 1 else set(states)
        return found

    def evidence(self, given: Any) -> Any:
        if given is None or isinstance(given, Mapping):
            return None if given is None else self.told(given)
        rows = np.asarray(given)
        return self.told(rows.tolist()) if rows.ndim == 1 else [self.told(row) for row in rows.tolist()]

    def counted(self, names: Any) -> dict[str, set]:
        found: dict[str, set] = {}
        for column in self.columns if names is None else names:
            name, i = self.owner[column]
            found.setdefault(name, set()).add(self.domains[name].states[i])
        return found

    def how(self, how: dict[str, Any]) -> dict[str, Any]:
        counts = {"over": self.counted(how.get("over"))} if "over" in how or "size" in how else {}
        return how | counts

    # -- questions -------------------------------------------------------------------------------------------------

    def prob(self, evidence: Any = None, **how: Any) -> Any:
        return self.model.prob(self.evidence(evidence), **self.how(how))

    def logprob(self, evidence: Any = None, **how: Any) -> Any:
        return self.model.logprob(self.evidence(evidence), **self.how(how))

    def conditional(self, query: Any, given: Any = None, **how: Any) -> Any:
        return self.model.conditional(self.evidence(query), given=self.evidence(given), **self.how(how))

    def condition(self, evidence: Any = None, **how: Any) -> ByColumns:
        return ByColumns(self.model.condition(self.evidence(evidence), **self.how(how)))

    def marginals(self, evidence: Any = None, **how: Any) -> Any:
        found = self.model.marginals(self.evidence(evidence), names=False, **self.how(how))
        return np.asarray(found)[..., self.shown]

    def log_odds(self, evidence: Any = None, **how: Any) -> Any:
        return self.model.log_odds(self.evidence(evidence), names=False, **self.how(how))[..., self.shown]

    def pairwise(self, evidence: Any = None, **how: Any) -> Any:
        found = self.model.pairwise(self.evidence(evidence), names=False, **self.how(how))
        return found[..., self.shown, :][..., self.shown]

    def covariance(self, evidence: Any = None, **how: Any) -> Any:
        found = self.model.covariance(self.evidence(evidence), names=False, **self.how(how))
        return found[..., self.shown, :][..., self.shown]

    def cardinality(self, evidence: Any = None, **how: Any) -> Any:
        """As many numbers as there are columns that are counted, and one: several of a variable cannot be in."""
        found = self.model.cardinality(self.evidence(evidence), **{"over": None, **self.how({"over": None, **how})})
        most = 1 + len(how.get("over") or self.columns)
        padded = np.zeros((*found.shape[:-1], max(most, found.shape[-1])))
        padded[..., : found.shape[-1]] = found
        assert not padded[..., most:].any()
        return padded[..., :most]

    def any_of(self, evidence: Any = None, over: Any = None) -> Any:
        return self.model.any_of(self.evidence(evidence), over=self.counted(over))

    def parity(self, evidence: Any = None, over: Any = None) -> Any:
        return self.model.parity(self.evidence(evidence), over=self.counted(over))

    def expected_count(self, evidence: Any = None, over: Any = None) -> Any:
        return self.model.expected_count(self.evidence(evidence), over=self.counted(over))

    def moments(self, evidence: Any = None, over: Any = None) -> Any:
        return self.model.moments(self.evidence(evidence), over=self.counted(over))

    def entropy(self, evidence: Any = None, **how: Any) -> Any:
        return self.model.entropy(self.evidence(evidence), **how)

    def kl(self, other: Any, **how: Any) -> Any:
        return self.model.kl(other.model if isinstance(other, ByColumns) else other, **how)

    def mode(self, evidence: Any = None) -> Any:
        found = self.model.mode(self.evidence(evidence))
        assignment = {c: int(found.assignment[n] == self.domains[n].states[i]) for c, (n, i) in self.owner.items()}
        return SimpleNamespace(
            assignment=assignment, logprob=found.logprob, exact=found.exact, bound=getattr(found, "bound", None)
        )

    def sample(self, n: int, evidence: Any = None, rng: Any = None) -> np.ndarray:
        drawn = self.model.sample(n, self.evidence(evidence), rng=rng, names=False)
        at = {name: j for j, name in enumerate(self.domains)}
        shown = [(at[n], self.domains[n].numbers[i]) for n, i in self.owner.values()]
        return np.stack([drawn[:, j] == number for j, number in shown], axis=1).astype(np.int8)


def possible_rows(domains: Domains, rows: np.ndarray) -> np.ndarray:
    """The rows of codes that variables with states can show."""
    kept = np.ones(len(rows), bool)
    for domain in domains.values():
        if domain.is_block:
            part = rows[:, [domains.at[c] for c in domain.columns]]
            kept &= ((part == 1).sum(axis=1) <= 1) & ~(part == 0).all(axis=1)
    return rows[kept]


def compiled(circuit: Any, **settings: Any) -> Any:
    model = pgcc.compile(circuit, **settings)
    return model if circuit.domains is None else ByColumns(model)


__all__ = ["ByColumns", "Domain", "compiled", "picked_domains", "possible_rows"]
