"""The layout of `plan`, which says of every determinant what its forms are and where their arrays start."""

from __future__ import annotations

FREE, OUT, RANK, TREES = range(4)
FORMS = 4
# Columns of `plan`, one row per determinant; the last ones say where its arrays start in `data` and in `ints`.
R, K, SYMMETRIC, DIRECTED, VARIABLES, HAS = 0, 1, 2, 3, 4, 5
CHILDREN, TABLE, MATRICES, EDGES, COLUMNS, READY, SIZE, DEFINITE, COUNTED, LOW = 9, 10, 12, 13, 14, 15, 16, 17, 18, 19
PLAN_COLUMNS = 21
