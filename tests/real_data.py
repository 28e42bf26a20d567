"""Where other people's data are: `PGCC_DATA`, by default ../shared/data. Tests skip where it is absent."""

from __future__ import annotations

import os
from pathlib import Path

DATA = Path(os.environ.get("PGCC_DATA", Path(__file__).parents[2] / "shared" / "data"))
