"""Determinants below the IR: values with error bounds, derivatives, counts and samples."""
