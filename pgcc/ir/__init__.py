"""The language: nodes, circuits, their properties, and their meaning."""
