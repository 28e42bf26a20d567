"""Continuous mixtures: thousands of components, tied by a small neural network."""
