"""Pictures of circuits and answers: layout, SVG, DOT labels, matplotlib."""
