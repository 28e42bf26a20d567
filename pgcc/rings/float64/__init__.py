"""The fast loop over float64."""
