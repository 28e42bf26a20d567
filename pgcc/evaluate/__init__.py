"""What a question computes of a compiled circuit: marginals, counts, gradients, samples, coefficients."""
