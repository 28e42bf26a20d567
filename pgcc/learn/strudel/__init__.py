"""Strudel: deterministic, structured-decomposable circuits that grow from a Chow–Liu tree, and mixtures of them."""
