"""Evaluators of programs beyond values: marginals, counts, gradients, samples, coefficients."""
