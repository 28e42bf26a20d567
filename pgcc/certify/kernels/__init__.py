"""Compiled loops of the error analysis."""
