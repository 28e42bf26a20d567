"""What all estimators have in common: their interface, the training loop, checkpoints, optimizers."""
