"""The records that kernels read about determinants."""

from __future__ import annotations

import numpy as np
import pytest

from pgcc.determinants.kernels import picking, plan


@pytest.mark.parametrize("dtype", [plan.DETERMINANT, picking.SAMPLER], ids=["values", "sets"])
def test_no_field_is_an_attribute_of_every_record(dtype: np.dtype) -> None:
    """Of `record.size`, Numba reads the field, and numpy how many records there are, which is 1."""
    assert dtype.names is not None
    assert [name for name in dtype.names if hasattr(np.zeros((), np.dtype((np.record, [("_", "i8")])))[()], name)] == []
