"""Circuit → Program: the instruction set, lowering, the fast form, reverse passes."""
