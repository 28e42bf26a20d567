"""Roundings, underflow floors and bounds, of the program that runs."""
