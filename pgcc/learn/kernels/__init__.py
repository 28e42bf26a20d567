"""Compiled loops of learning."""
