"""Pictures of circuits and answers: layout, labels, SVG, DOT text, matplotlib."""
