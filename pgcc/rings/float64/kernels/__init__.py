"""Compiled loops over float64, a block of rows at a time."""
