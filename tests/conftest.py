"""What tests share: where other people's data are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

DATA = Path(os.environ.get("PGCC_DATA", Path(__file__).parents[2] / "shared" / "data"))


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of real data sets and circuits (`PGCC_DATA`, by default ../shared/data)."""
    if not DATA.is_dir():
        pytest.skip(f"no data at {DATA}: set PGCC_DATA to the folder that has circuits/ and sets/")
    return DATA
