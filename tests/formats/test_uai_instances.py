"""Instances of the UAI 2014 competition: those that can be compiled with their evidence have the published answers."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from real_data import DATA

import pgcc
from pgcc.errors import FormatError

FOLDER = DATA / "uai"
LOADED = ["CSP_12", "Pedigree_13", "Promedus_24", "Promedus_27", "Promedus_30", "Promedus_33", "Promedus_34"]
REFUSED = ["Grids_11", "Pedigree_11", "Segmentation_11", "Segmentation_14", "linkage_16"]


def shared(name: str) -> Path:
    path = FOLDER / f"{name}.uai"
    if not path.exists():
        pytest.skip(f"{path} is not here")
    return path


def published(path: Path) -> tuple[float, list[list[float]]]:
    """log10 of the partition function, and the marginals of all variables."""
    words = iter(Path(f"{path}.MAR").read_text().split()[1:])
    marginals = [[float(next(words)) for _ in range(int(next(words)))] for _ in range(int(next(words)))]
    return float(Path(f"{path}.PR").read_text().split()[-1]), marginals


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] if name in ("CSP_12", "Pedigree_13") else []) for name in LOADED],
)
def test_answers_are_the_published_ones(name: str) -> None:
    path = shared(name)
    log10, marginals = published(path)
    model = pgcc.compile(pgcc.load(path, evidence=True), normalize=False)
    assert model.logprob() / math.log(10) == pytest.approx(log10, rel=6e-6)
    found = pgcc.compile(pgcc.load(path, evidence=True)).marginals({})
    for i, expected in enumerate(marginals, 1):
        answer = found.get(f"x{i}")
        if answer is None:  # observed
            assert sorted(expected) == [0] * (len(expected) - 1) + [1]
        else:
            values = [*answer.values()] if isinstance(answer, dict) else [1 - answer, answer]
            np.testing.assert_allclose(values, expected, rtol=1e-5, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("name", REFUSED)
def test_refusals_name_the_width(name: str) -> None:
    """When one of them can be loaded, it belongs to the list above."""
    with pytest.raises(FormatError, match=r"induced width of a min-fill order is at least \d+: .* live terms .*keep="):
        pgcc.load(shared(name), evidence=True)
