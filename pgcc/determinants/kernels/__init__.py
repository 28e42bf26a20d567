"""Compiled loops over determinants."""
