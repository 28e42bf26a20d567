"""Compiled loops over number systems other than float64."""
