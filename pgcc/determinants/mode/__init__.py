"""The most probable set of children of a determinant: the largest coefficient, with a proved bound on all others."""
