"""Circuit → Program: a flat list of instructions over value slots."""
