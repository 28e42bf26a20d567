"""Compiled loops of those."""
