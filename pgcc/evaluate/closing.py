"""Rows of codes that say all that they imply, where columns are states of variables."""

from __future__ import annotations

import numpy as np

from pgcc.evaluate.kernels.closing import are_closed
from pgcc.ir.blocks import Blocks


def closed(rows: np.ndarray, blocks: Blocks) -> np.ndarray:
    """`blocks.closed`, in a twentieth of the time where nothing is to be done: evidence from outside is closed."""
    rows = np.ascontiguousarray(rows)
    return rows if are_closed(rows, blocks.first) else blocks.closed(rows)
