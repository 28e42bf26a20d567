"""Front ends: text, SymPy, probabilistic circuits, DPPs, graphs and known models, each built as a circuit."""
