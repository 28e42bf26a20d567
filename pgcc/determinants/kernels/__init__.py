"""Kernels for determinants: filling in matrices, elimination, error bounds, derivatives and samples."""
