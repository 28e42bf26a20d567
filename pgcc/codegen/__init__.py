"""Source of an evaluator that needs numpy and Numba only."""
