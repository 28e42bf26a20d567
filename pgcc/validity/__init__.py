"""Is it a distribution? The prover, its search, its verdicts, and the checker of its proofs."""
