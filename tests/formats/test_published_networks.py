"""Published networks, those in pgmpy's wheel: all posteriors as pyAgrum computes them, on the same doubles."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest

import pgcc
from benchmarks.networks import agrum_posteriors, folder, in_agrum, some_seen

# Those with at most 500,000 live terms.
SMALL = ["alarm", "asia", "cancer", "child", "earthquake", "hailfinder", "hepar2", "insurance", "pathfinder", "sachs"]
SMALL += ["survey", "water", "win95pts"]
LARGE = ["andes", "mildew", "pigs"]  # a little more


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL + LARGE)
def test_posteriors_are_those_of_pyagrum(name: str) -> None:
    where = folder()
    if where is None or find_spec("pyagrum") is None:
        pytest.skip("needs the networks of pgmpy, and pyagrum: pip install --no-deps pgmpy pyagrum")
    assert worst_difference(name) < 1e-12


def worst_difference(name: str, pieces: int = 50) -> float:
    """The largest difference of a posterior, for random pieces of evidence, of up to half of the variables."""
    import pyagrum

    model = pgcc.compile(pgcc.load(folder() / f"{name}.bif.gz"))
    network = model.circuit.network
    shares = np.linspace(0.02, 0.5, pieces)
    rows = np.concatenate([some_seen(network, 1, share, seed) for seed, share in enumerate(shares)])
    bayes = in_agrum(network)  # an engine does not keep it alive
    theirs = agrum_posteriors(pyagrum.ShaferShenoyInference(bayes), rows, lambda tensor: tensor.toarray())
    worst = 0.0
    for row, theirs_of_row in zip(rows.tolist(), theirs, strict=True):
        seen = {name: one.states[s] for (name, one), s in zip(network.domains.items(), row, strict=True) if s >= 0}
        mine = model.marginals(seen)
        for (variable, domain), expected in zip(network.domains.items(), theirs_of_row, strict=True):
            of_variable = [mine[variable][state] for state in domain.states] if variable in mine else [1.0]
            worst = max(worst, float(np.abs(np.array(of_variable) - expected).max()))
    return worst
