"""The language: nodes, circuits, what is true of them, and what they mean."""
