"""The inner loops of learning, compiled by Numba."""
