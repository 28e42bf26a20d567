"""Networks for tests: random ones, their joint distribution by brute force, and where other people's are."""

from __future__ import annotations

import itertools
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from pgcc.frontend.network import Network, Tables
from pgcc.ir.domains import Domains


def random_network(
    n: int, rng: np.random.Generator, states: list[list[str]] | None = None, zeros: float = 0.2
) -> Network:
    """A Bayesian network over variables with up to four states, in an order in which parents need not come first."""
    labels = states or [[f"s{i}" for i in range(rng.integers(1, 5))] for _ in range(n)]
    domains = Domains.of({f"v{i}": one for i, one in enumerate(labels)})
    order, tables = rng.permutation(n).tolist(), {}
    for at, v in enumerate(order):
        parents = rng.permutation(order[:at])[: rng.integers(0, 3)].tolist()
        table = rng.random([len(labels[u]) for u in (*parents, v)])
        table[(rng.random(table.shape) < zeros) & (np.arange(table.shape[-1]) > 0)] = 0
        tables[f"v{v}"] = Tables(domains).conditional((*parents, v), table / table.sum(axis=-1, keepdims=True))
    return Network.bayesian(domains, tables)


def joint(network: Network) -> np.ndarray:
    """The product of all tables at every assignment."""
    result = np.ones([len(domain.states) for domain in network.domains.values()])
    for x in itertools.product(*map(range, result.shape)):
        for table in network.tables:
            result[x] *= table.table[tuple(x[v] for v in table.scope)]
    return result


def posteriors(network: Network, weights: np.ndarray) -> dict[str, np.ndarray]:
    """Of an array of weights, one axis per variable, the distribution of each."""
    axes = range(weights.ndim)
    return {
        name: weights.sum(axis=tuple(axis for axis in axes if axis != v)) / weights.sum()
        for v, name in enumerate(network.domains)
    }


def public_bif(name: str = "") -> list[Path]:
    """The networks that come with pgmpy."""
    spec = find_spec("pgmpy")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("pgmpy, which has public .bif networks, is not installed")
    folder = Path(spec.submodule_search_locations[0], "utils", "example_models")
    return sorted(folder.glob(f"{name or '*'}.bif.gz"))
