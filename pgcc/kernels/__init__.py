"""The compiled loops: plain functions over arrays, and the only Numba code in pgcc.

All are cached on disk, release the GIL and keep IEEE arithmetic (no fast-math).
"""
